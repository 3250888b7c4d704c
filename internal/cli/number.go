package cli

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Number is a number on a command line with a range. It refuses anything else with a sentence that
// names the range. Int, Float, Seconds and Duration make one. It is a value for package flag as
// well as for pflag. Programs have no other numbers in their flags (test/arch).
type Number struct {
	kind             string // what it is: a whole number
	minText, maxText string // as they are typed
	zeroAllowed      bool   // 0 is taken too, wherever the range begins
	parse            func(text string) (set func(), zero, inside bool)
	currentText      func() string
}

// OrZero makes the flag take 0 too, which stands for a default or for none.
func (n *Number) OrZero() *Number {
	n.zeroAllowed = true
	return n
}

// Range returns the ends of the range as they are typed, and whether 0 is taken too.
func (n *Number) Range() (least, most string, zero bool) { return n.minText, n.maxText, n.zeroAllowed }

// Set implements flag.Value.
func (n *Number) Set(text string) error {
	set, zero, inside := n.parse(text)
	if set == nil || !inside && !(zero && n.zeroAllowed) {
		return errors.New(n.rangeSentence())
	}
	set()
	return nil
}

// rangeSentence returns a sentence with the allowed numbers.
func (n *Number) rangeSentence() string {
	zero := ""
	if n.zeroAllowed {
		zero = "0 or "
	}
	return fmt.Sprintf("it is %s, %sfrom %s to %s", n.kind, zero, n.minText, n.maxText)
}

// String implements flag.Value.
func (n *Number) String() string {
	if n == nil || n.currentText == nil { // package flag asks a zero Number
		return "0"
	}
	return n.currentText()
}

// Type implements pflag.Value: it stands for the number in the help.
func (n *Number) Type() string { return "n" }

type wholeNumber interface {
	~int | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Year is the longest time that a program of this project can be asked to run.
const Year = 365 * 24 * time.Hour

// Int is a whole number from least to most, in decimal, or in hex behind 0x.
func Int[T wholeNumber](p *T, value, least, most T) *Number {
	*p = value
	text := func(v T) string { return fmt.Sprintf("%d", v) }
	return &Number{kind: "a whole number", minText: text(least), maxText: text(most), currentText: func() string {
		return text(*p)
	},
		parse: func(s string) (func(), bool, bool) {
			if u, err := strconv.ParseUint(s, 0, 64); err == nil {
				return func() { *p = T(u) }, u == 0, (least < 0 || u >= uint64(least)) && most >= 0 && u <= uint64(most)
			}
			i, err := strconv.ParseInt(s, 0, 64)
			if err != nil || i >= 0 {
				return nil, false, false
			}
			return func() { *p = T(i) }, false, least < 0 && i >= int64(least) && (most >= 0 || i <= int64(most))
		}}
}

// Port is a port of SCTP or UDP.
func Port[T ~int | ~uint16](p *T, value T) *Number {
	n := Int(p, value, 1, 65535)
	n.kind = "a port"
	return n
}

// Float is a number from least to most.
func Float(p *float64, value, least, most float64) *Number {
	*p = value
	text := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return &Number{kind: "a number", minText: text(least), maxText: text(most), currentText: func() string {
		return text(*p)
	},
		parse: func(s string) (func(), bool, bool) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return nil, false, false
			}
			return func() { *p = v }, v == 0, v >= least && v <= most // which NaN is not
		}}
}

// Seconds is a time from least to most, in seconds with or without a fraction.
func Seconds(p *time.Duration, value, least, most time.Duration) *Number {
	*p = value
	text := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
	return &Number{kind: "a time in seconds", minText: text(least), maxText: text(most), currentText: func() string {
		return text(*p)
	},
		parse: func(s string) (func(), bool, bool) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return nil, false, false
			}
			return func() { *p = time.Duration(v * float64(time.Second)) }, v == 0, v >= least.Seconds() &&
				v <= most.Seconds()
		}}
}

// Duration is a time from least to most, with a unit.
func Duration(p *time.Duration, value, least, most time.Duration) *Number {
	*p = value
	text := func(d time.Duration) string {
		if d == 0 {
			return "0"
		}
		return d.String()
	}
	return &Number{kind: "a time, such as 1.5s or 200ms", minText: text(least), maxText: text(most),
		currentText: func() string { return text(*p) },
		parse: func(s string) (func(), bool, bool) {
			d, err := time.ParseDuration(s)
			if err != nil {
				return nil, false, false
			}
			return func() { *p = d }, d == 0, d >= least && d <= most
		}}
}

// octetSuffixes are the suffixes of a number of octets. Each is 2^10 times the one before.
const octetSuffixes = "KMGT"

// Octets is a number of octets from least to most: 4096, 64K, 1M. K is 2^10, M 2^20, G 2^30 and T
// 2^40.
func Octets[T ~int | ~uint64](p *T, value, least, most T) *Number {
	*p = value
	return &Number{kind: "a number of bytes, such as 4096, 64K or 1M", minText: formatOctets(uint64(least)),
		maxText:     formatOctets(uint64(most)),
		currentText: func() string { return formatOctets(uint64(*p)) }, parse: func(s string) (func(), bool, bool) {
			shift := 0
			if n := len(s) - 1; n > 0 {
				if i := strings.IndexByte(octetSuffixes, s[n]&^0x20); i >= 0 {
					s, shift = s[:n], 10*(i+1)
				}
			}
			v, err := strconv.ParseUint(s, 10, 63)
			if err != nil || bits.Len64(v)+shift > 63 {
				return nil, false, false
			}
			v <<= shift
			return func() { *p = T(v) }, v == 0, v >= uint64(least) && v <= uint64(most)
		}}
}

// formatOctets writes a number with the largest suffix that fits.
func formatOctets(v uint64) string {
	unit := ""
	for i := 0; i < len(octetSuffixes) && v > 0 && v%1024 == 0; i++ {
		v, unit = v/1024, octetSuffixes[i:i+1]
	}
	return strconv.FormatUint(v, 10) + unit
}
