package cli

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
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
