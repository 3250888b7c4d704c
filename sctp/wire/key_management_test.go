package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestKeyManagementHasItsOctetsAndFields(t *testing.T) {
	// req dtlschunk-4.1-1, dtlschunk-4.1-2
	// req dtlschunk-4.1-4
	// req dtlschunk-4.1-6, dtlschunk-4.1-7
	// req dtlschunk-4.1-9
	for _, c := range []struct {
		name string
		k    wire.KeyManagement
		want string
	}{
		{"a client", wire.KeyManagement{TieBreaker: 0x01020304, Client: true, Methods: []byte{192}}, "8006000a 01020304 01 c0 0000"},
		{"a server", wire.KeyManagement{TieBreaker: 5, Server: true, Methods: []byte{1, 192, 0}}, "8006000c 00000005 02 01c000"},
		{"restarts", wire.KeyManagement{Restart: true, Server: true, Client: true, Methods: []byte{1, 2}}, "8006000b 00000000 07 0102 00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wire.AppendKeyManagement(nil, c.k)
			wantOctets(t, b, c.want)
			n := int(b[3])
			k := must.Get(wire.Param(b[:n]).KeyManagement())(t)
			check.Slice(t, "methods", k.Methods, c.k.Methods)
			k.Methods, c.k.Methods = nil, nil
			check.That(t, k.TieBreaker == c.k.TieBreaker && k.Restart == c.k.Restart && k.Server == c.k.Server &&
				k.Client == c.k.Client, "%+v, want %+v", k, c.k)
		})
	}
}

// What is reserved makes no difference; a parameter without a method is none.
func TestKeyManagementOfOthers(t *testing.T) {
	// req dtlschunk-4.1-5
	k := must.Get(wire.Param(parseHex(t, "8006000a 00000007 fa c0")).KeyManagement())(t)
	check.That(t, k.Server && !k.Client && !k.Restart && k.TieBreaker == 7, "%+v", k)
	check.Fails(wire.Param(parseHex(t, "80060009 00000007 02")).KeyManagement())(t, "no method", wire.ErrParamLength)
	check.Fails(wire.Param(parseHex(t, "80050009 00000007 02")).KeyManagement())(t, "another type", wire.ErrParamType)
	stop, report := wire.ParamKeyManagement.UnknownAction()
	check.That(t, !stop && !report, "to a host that does not know it: stop %v, report %v", stop, report)
}
