package cli

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// A flag that a link cannot do anything with is refused, not forgotten.
func TestShardsAreForLinksOfSeveralQueues(t *testing.T) {
	var usage *UsageError
	for _, kind := range []string{"", "raw", "mem"} {
		f := LinkFlags{Kind: kind, Shards: 2}
		l, err := f.Open(true)
		check.That(t, errors.As(err, &usage), "--link %q: %v, %v", kind, l, err)
		d, err := f.Device(true, nil, nil)
		check.That(t, d == nil && errors.As(err, &usage), "a device over --link %q: %v, %v", kind, d, err)
		s, err := f.OpenSelf()
		check.That(t, errors.As(err, &usage), "--self --link %q: %v, %v", kind, s, err)
	}
	f := LinkFlags{Kind: "udp", Shards: 2}
	s := must.Get(f.OpenSelf())(t)
	s.Client.Close()
	s.Server.Close()
}

func TestOctetsHaveAUnit(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "4096": 4096, "64K": 1 << 16, "64k": 1 << 16, "1M": 1 << 20,
		"1m": 1 << 20, "2047M": 2047 << 20, "2147483647": 1<<31 - 1,
		"1G": 1 << 30,
		// -1: refused
		"2048M": -1, "2147483648": -1, "2097152K": -1, "": -1, "K": -1, "-1": -1, "1KK": -1, "1P": -1, "1.5G": -1,
		"8388608T": -1, "18014398509481985K": -1, "9223372036854775808": -1} {
		var s int
		err := Octets(&s, 0, 0, 1<<31-1).Set(text)
		check.That(t, (err == nil) == (want >= 0) && (err != nil || int(s) == want), "%q: %d, %v", text, s, err)
	}
}
