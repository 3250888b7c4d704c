package cli

import (
	"errors"
	"testing"
)

// A flag that a link cannot do anything with is refused, not forgotten.
func TestShardsAreForLinksOfSeveralQueues(t *testing.T) {
	var usage *UsageError
	for _, kind := range []string{"", "raw", "mem"} {
		f := LinkFlags{Kind: kind, Shards: 2}
		if l, err := f.Open(true); !errors.As(err, &usage) {
			t.Errorf("--link %q: %v, %v", kind, l, err)
		}
		if s, err := f.OpenSelf(); !errors.As(err, &usage) {
			t.Errorf("--self --link %q: %v, %v", kind, s, err)
		}
	}
	f := LinkFlags{Kind: "udp", Shards: 2}
	s, err := f.OpenSelf()
	if err != nil {
		t.Fatal(err)
	}
	s.Client.Close()
	s.Server.Close()
}
