package cli

import (
	"flag"
	"io"
	"math"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

// What is outside the range, overflows, is no number or none at all is refused, and leaves the
// value as it was; the ends are inside.
func TestNumbersAreWithinTheirRange(t *testing.T) {
	var i int
	var u uint64
	var p uint16
	var f float64
	var d time.Duration
	for _, row := range []struct {
		name string
		n    *Number
		good []string
		bad  []string
		says string
	}{
		{"a count", Int(&i, 7, 1, 99), []string{"1", "99", "0x63"}, []string{"0", "100", "-1", "1.0", "1e1", "18446744073709551615", "18446744073709551617", "-9223372036854775809"},
			"it is a whole number, from 1 to 99"},
		{"a count, or none", Int(&i, 7, 5, 99).OrZero(), []string{"0", "5"}, []string{"4", "-0.0", "100"}, "it is a whole number, 0 or from 5 to 99"},
		{"below zero", Int(&i, 7, -5, -2), []string{"-5", "-2"}, []string{"-6", "-1", "0", "3"}, "it is a whole number, from -5 to -2"},
		{"around zero", Int(&i, 7, -5, 5), []string{"-5", "0", "5"}, []string{"-6", "6"}, "it is a whole number, from -5 to 5"},
		{"the largest", Int(&u, 7, 0, math.MaxUint64), []string{"0", "18446744073709551615"}, []string{"-1", "18446744073709551616"}, "it is a whole number, from 0 to 18446744073709551615"},
		{"a port", Port(&p, 7), []string{"1", "65535"}, []string{"0", "65536", "-1", "131073"}, "it is a port, from 1 to 65535"},
		{"a share", Float(&f, 7, 0, 100), []string{"0", "100", "1e2", "-0"}, []string{"100.0001", "-1e-9", "NaN", "Inf", "1e400", "0x"}, "it is a number, from 0 to 100"},
		{"seconds", Seconds(&d, 7, time.Millisecond, 1e9*time.Second), []string{"0.001", "1e9", "2.5"}, []string{"0", "1e-10", "0.00099", "1000000001", "1e10", "NaN", "inf", "-1", "1s"},
			"it is a time in seconds, from 0.001 to 1000000000"},
		{"seconds, or none", Seconds(&d, 7, time.Microsecond, time.Second).OrZero(), []string{"0", "1e-6"}, []string{"1e-7", "1.1"}, "it is a time in seconds, 0 or from 0.000001 to 1"},
		{"a time", Duration(&d, 7, -time.Second, time.Second), []string{"-1s", "1s", "0", "40us"}, []string{"1", "1.1s", "-2s", "9223372036854775808ns", "1e9s"}, "it is a time, such as 1.5s or 200ms, from -1s to 1s"},
		{"octets", Octets(&i, 7, 1, 1<<20), []string{"1", "1M", "1024k"}, []string{"0", "1025K", "2M", "1T", "-1", "1e3"}, "it is a number of bytes, such as 4096, 64K or 1M, from 1 to 1M"},
	} {
		for _, text := range append([]string{"", "x", " 1"}, row.bad...) {
			was := row.n.String()
			err := row.n.Set(text)
			check.That(t, err != nil && err.Error() == row.says && row.n.String() == was, "%s: %q becomes %v: %v",
				row.name, text, row.n, err)
		}
		for _, text := range row.good {
			check.OK(t, row.n.Set(text))
		}
	}
	check.That(t, i == 1<<20 && u == math.MaxUint64 && p == 65535 && f == 0 && d == 40*time.Microsecond,
		"the last that were taken are %d, %d, %d, %v, %v", i, u, p, f, d)
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Var(Int(&i, 3, 1, 4), "i", "")
	fs.PrintDefaults() // asks a Number that is none
	check.That(t, fs.Parse([]string{"-i", "5"}) != nil && fs.Parse([]string{"-i", "4"}) == nil && i == 4,
		"package flag takes %d", i)
}

// A number is its default until it is set.
func TestNumbersBeginAsTheirDefaults(t *testing.T) {
	i, u, p, f, s, d, o := 0, uint64(0), uint16(0), 0.0, time.Duration(0), time.Duration(0), 0
	for _, row := range []struct {
		n    *Number
		text string
	}{
		{Int(&i, 7, 1, 99), "7"}, {Int(&u, 8, 1, 99), "8"}, {Port(&p, 9), "9"}, {Float(&f, 1.5, 0, 2), "1.5"},
		{Seconds(&s, 2500*time.Millisecond, 0, time.Hour), "2.5"}, {Duration(&d, time.Minute, 0, time.Hour), "1m0s"},
		{Octets(&o, 4<<10, 1, 1<<20), "4K"},
	} {
		check.Equal(t, "text", row.n.String(), row.text)
	}
	check.That(t, i == 7 && u == 8 && p == 9 && f == 1.5 && s == 2500*time.Millisecond && d == time.Minute && o == 4<<10,
		"the variables are %v, %v, %v, %v, %v, %v and %v", i, u, p, f, s, d, o)
}
