package main

import (
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// A host is shown by its name where it has one, unless that is not wanted or the host is this one.
func TestNameOfAHostInTheOutput(t *testing.T) {
	self, nobody := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.1")
	for _, row := range []struct {
		name            string
		addr            netip.Addr
		numeric, isSelf bool
		ending, mustNot string
	}{
		{"by default", self, false, false, " (127.0.0.1)", ""},
		{"numbers alone", self, true, false, "", "("},
		{"of both ends in one", self, false, true, "", "("},
		{"without a name", nobody, true, false, "", "("},
	} {
		o := &options{}
		o.numeric, o.self = row.numeric, row.isSelf
		got := newReporter(o, row.addr, io.Discard).displayName
		check.That(t, strings.HasSuffix(got, row.ending) && (row.mustNot == "" || !strings.Contains(got, row.mustNot)) &&
			strings.Contains(got, row.addr.String()), "%s: %q", row.name, got)
	}
}
