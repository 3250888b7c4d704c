package main

import (
	"errors"
	"io"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
)

func TestOnlyOnesOwnHostsAreAttacked(t *testing.T) {
	for _, tt := range []struct {
		addr         string
		ownNamespace bool
		want         bool
	}{
		{"127.0.0.1", false, true},
		{"127.5.0.1", false, true},
		{"::1", false, true},
		{"10.0.0.1", false, false},
		{"10.0.0.1", true, true},
		{"fd00::1", true, true},
		{"fe80::1", true, true},
		{"192.0.2.1", true, false},
		{"2001:db8::1", true, false},
		{"0.0.0.0", false, false},
	} {
		got := isAllowed(netip.MustParseAddr(tt.addr), tt.ownNamespace)
		check.That(t, got == tt.want, "%s, in a namespace of its own %v: %v", tt.addr, tt.ownNamespace, got)
	}
}

func TestCommandLinesThatAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{}, {"127.0.0.1"}, {"127.0.0.1:0"}, {"localhost:5000"}, {"192.0.2.1:5000"}, {"--link", "tun", "127.0.0.1:5000"},
		{"--duration", "-1s", "127.0.0.1:5000"}, {"127.0.0.1:5000", "127.0.0.2:5000"},
	} {
		_, err := parseOptions(args, io.Discard)
		usage := (*cli.UsageError)(nil)
		check.That(t, errors.As(err, &usage), "%q: %v", args, err)
	}
	if o, err := parseOptions([]string{"--i-own-this-host", "192.0.2.1:5000"}, io.Discard); err != nil ||
		o.target.Port() != 5000 {
		t.Errorf("a host of one's own: %+v, %v", o, err)
	}
}
