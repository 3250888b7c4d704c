package asconf_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/internal/asconf"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzHandle gives a Responder and a Requester whatever a peer may send. Answers are well-formed
// and fit the packet, the peer keeps an address that is confirmed, and what is kept is bounded.
func FuzzHandle(f *testing.F) {
	f.Add([]byte(asconfOf(f, 1, part{t: wire.ParamAddIP, id: 1, addr: addr(4)}, part{t: wire.ParamDeleteIP, id: 2, addr: addr(2)})), byte(1))
	f.Add([]byte(asconfOf(f, 1, part{t: wire.ParamDeleteIP, id: 1, addr: addr(1)}, part{t: wire.ParamDeleteIP, id: 2, addr: addr(2)})), byte(3))
	f.Add([]byte(ackOf(f, 9, wire.CauseResourceShortage)), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, source byte) {
		p := three()
		r, q := asconf.NewResponder(1), asconf.NewRequester(9)
		_ = q.Ask(asconf.Request{Addr: addr(4)})
		q.Begin(lookup)
		q.Chunk()
		pkt, err := wire.ParsePacket(append(wire.AppendHeader(nil, 1, 2, 3), b...))
		if err != nil {
			return
		}
		cs := pkt.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			if a, err := wire.AsAsconf(c); err == nil {
				ack := r.Handle(a, true, addr(source), 200, p)
				responses(t, ack)
				check.That(t, len(ack) <= 200 && r.Held() < 1<<12, "%d octets, %d kept", len(ack), r.Held())
			}
			if a, err := wire.AsAsconfAck(c); err == nil {
				_, _, _ = q.HandleAck(a)
			}
		}
		check.That(t, p.Count() > 0 && p.Count() <= 4 && (p.IsConfirmed(addr(1)) || p.IsConfirmed(addr(2))), "%v", p.list)
	})
}
