package assoc_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// fuzzOctets is what a fuzz target may do with its octets. A client sends a message in virtual
// time, over a road that loses one packet in five. Behind each packet that arrives comes a forged
// one: its header, so the right ports and tag, and the next four octets as a chunk.
func fuzzOctets(octets []byte) (got []byte, end error) {
	addrs := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:0"), netip.MustParseAddrPort("192.0.2.2:0")}
	road, now, batch := simnet.New(1), rawio.Time(0), assoc.NewTxBatch(16)
	road.Connect(addrs[0].Addr(), addrs[1].Addr(), simnet.Params{Delay: 10 * time.Millisecond, Loss: 0.2})
	hosts := []*endpoint.Endpoint{newHost(1), newHost(2)}
	_ = hosts[1].Listen(7, nil)
	client, _ := hosts[0].Connect(now, nil, 0, addrs[0], addrs[1:], 7)
	assocs := []*assoc.Assoc{client}
	receive := func(h *endpoint.Endpoint, p rawio.Packet) {
		a, ok := h.Lookup(&p)
		if ok && a == nil { // an INIT, a COOKIE ECHO, or out of the blue
			if a, ok = h.HandleUnmatched(now, &p); ok {
				assocs = append(assocs, a)
			}
		}
		if a != nil {
			a.HandlePacket(now, &p)
		}
	}
	send := func(more bool) bool {
		for i := range batch.Pkts {
			road.Send(now, &batch.Pkts[i])
		}
		batch.Reset()
		return more
	}
	for end == nil && now < rawio.Time(time.Hour) {
		next := rawio.Never
		for _, a := range assocs {
			a.HandleTimeout(now)
			for e, ok := a.PollEvent(); ok; e, ok = a.PollEvent() {
				if a == client && e.Kind == assoc.EventUp {
					_ = a.Send(now, &assoc.Message{Stream: 3, Body: [2][]byte{[]byte("hello")}})
					_ = a.Shutdown(now) // when that is acknowledged
				} else if a == client && e.Kind == assoc.EventDown {
					end = e.Err
				}
			}
			for m, ok := a.Receive(); ok; m, ok = a.Receive() {
				got = append(got, make([]byte, m.Size)...)
				m.CopyTo(got[len(got)-m.Size:], 0)
				a.Release(m)
			}
			for send(a.PollTransmit(now, batch)) {
			}
			next = min(next, a.NextTimeout())
		}
		for send(hosts[0].PollTransmit(now, batch)) || send(hosts[1].PollTransmit(now, batch)) {
		}
		now = max(now, min(next, road.NextArrival()))
		for to, p, ok := road.Deliver(now); ok; to, p, ok = road.Deliver(now) {
			h := hosts[slices.Index(addrs, netip.AddrPortFrom(to, 0))]
			receive(h, p)
			n := min(4, len(octets))
			forged := slices.Concat(p.Data[:wire.CommonHeaderLen], octets[:n])
			wire.PutChecksum(forged, wire.ChecksumBytes(forged))
			receive(h, rawio.Packet{Data: forged, Local: p.Local, Remote: p.Remote})
			octets = octets[n:]
			p.Release()
		}
	}
	return got, end
}

func newHost(seed byte) *endpoint.Endpoint {
	return endpoint.New(endpoint.Config{Rand: rand.NewChaCha8([32]byte{seed}),
		MTU: func(_, _ netip.Addr) int { return 1480 }})
}

func Example() {
	// nothing, an unknown chunk, and an ABORT behind it
	for _, octets := range []string{"", "\x3f\x00\x00\x04", "\x3f\x00\x00\x04\x06\x00\x00\x04"} {
		got, end := fuzzOctets([]byte(octets))
		fmt.Printf("%q, %v\n", got, end)
	}
	// Output:
	// "hello", sctp: association shut down
	// "hello", sctp: association shut down
	// "", sctp: association aborted by the peer
}
