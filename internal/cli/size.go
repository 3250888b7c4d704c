package cli

import (
	"math"
	"strconv"
	"strings"
)

// Size is a number of octets on the command line: 4096, 64K, 1M. K is 2^10 and M 2^20.
type Size int

// Set implements pflag.Value.
func (s *Size) Set(text string) error {
	digits, unit := text, uint64(1)
	switch {
	case strings.HasSuffix(text, "K"), strings.HasSuffix(text, "k"):
		digits, unit = text[:len(text)-1], 1<<10
	case strings.HasSuffix(text, "M"), strings.HasSuffix(text, "m"):
		digits, unit = text[:len(text)-1], 1<<20
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n > math.MaxInt32/unit {
		return Usagef("a size is a number of bytes, such as 4096, 64K or 1M")
	}
	*s = Size(n * unit)
	return nil
}

// String implements pflag.Value.
func (s *Size) String() string { return strconv.Itoa(int(*s)) }

// Type implements pflag.Value.
func (s *Size) Type() string { return "bytes" }
