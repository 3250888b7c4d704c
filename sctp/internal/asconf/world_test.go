package asconf_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// addrList is a peer's addresses.
type addrList struct {
	list        []netip.Addr
	unconfirmed []netip.Addr
	primary     netip.Addr
	most        int
	refuses     netip.Addr
	log         []string
}

func (l *addrList) Has(a netip.Addr) bool { return slices.Contains(l.list, a) }
func (l *addrList) Count() int            { return len(l.list) }
func (l *addrList) IsConfirmed(a netip.Addr) bool {
	return l.Has(a) && !slices.Contains(l.unconfirmed, a)
}
func (l *addrList) IsLastConfirmed(a netip.Addr) bool {
	return l.IsConfirmed(a) && !slices.ContainsFunc(l.list, func(b netip.Addr) bool { return b != a && l.IsConfirmed(b) })
}

func (l *addrList) Add(a netip.Addr) bool {
	if len(l.list) == l.most || a == l.refuses {
		return false
	}
	l.list, l.unconfirmed = append(l.list, a), append(l.unconfirmed, a)
	l.log = append(l.log, "+"+a.String())
	return true
}

func (l *addrList) Delete(a netip.Addr) {
	l.list = slices.DeleteFunc(l.list, func(b netip.Addr) bool { return a == b })
	l.log = append(l.log, "-"+a.String())
}

func (l *addrList) DeleteOthers(than netip.Addr) {
	for _, a := range slices.Clone(l.list) {
		if a != than {
			l.Delete(a)
		}
	}
}

func (l *addrList) SetPrimary(a netip.Addr) {
	l.primary = a
	l.log = append(l.log, "!"+a.String())
}

func addr(last byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, last}) }

// three is a peer with the addresses 1, 2 and 3, of which 3 is not confirmed, and room for one
// more.
func three() *addrList {
	return &addrList{list: []netip.Addr{addr(1), addr(2), addr(3)}, unconfirmed: []netip.Addr{addr(3)}, most: 4}
}

// part is a parameter of an ASCONF.
type part struct {
	t    wire.ParamType
	id   uint32
	addr netip.Addr
	raw  []byte // in place of all
}

// asconfOf makes an ASCONF.
func asconfOf(t testing.TB, seq uint32, parts ...part) wire.Asconf {
	t.Helper()
	b := wire.AppendAsconf(nil, seq, addr(1))
	for _, p := range parts {
		if p.raw != nil {
			b = append(b, p.raw...)
			continue
		}
		b = wire.AppendAddrRequest(b, p.t, p.id, p.addr)
	}
	return must.Get(wire.AsAsconf(chunkOf(t, wire.CloseChunk(b, 0))))(t)
}

// chunkOf returns the one chunk in b.
func chunkOf(t testing.TB, b []byte) wire.Chunk {
	t.Helper()
	pkt := must.Get(wire.ParsePacket(append(wire.AppendHeader(nil, 1, 2, 3), b...)))(t)
	cs := pkt.Chunks()
	c, ok := cs.Next()
	must.That(t, ok, "no chunk in %x", b)
	return c
}
