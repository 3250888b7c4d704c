package main

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"
)

// octets is a number of octets as a flag: 4096, 64G.
type octets uint64

const units = "KMGT"

// Set implements pflag.Value.
func (o *octets) Set(s string) error {
	shift := 0
	if n := len(s) - 1; n > 0 {
		if i := strings.IndexByte(units, s[n]); i >= 0 {
			s, shift = s[:n], 10*(i+1)
		}
	}
	v, err := strconv.ParseUint(s, 10, 63)
	if err != nil || bits.Len64(v)+shift > 63 {
		return errors.New("it is a number of octets, such as 4096 or 64G")
	}
	*o = octets(v << shift)
	return nil
}

// String implements pflag.Value.
func (o *octets) String() string {
	v, unit := uint64(*o), ""
	for i := 0; i < len(units) && v > 0 && v%1024 == 0; i++ {
		v, unit = v/1024, units[i:i+1]
	}
	return strconv.FormatUint(v, 10) + unit
}

// Type implements pflag.Value.
func (o *octets) Type() string { return "octets" }
