package assoc_test

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// Two endpoints in one program: the loop moves packets between them, as a link and a clock would.
func Example() {
	addrs := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:0"), netip.MustParseAddrPort("192.0.2.2:0")}
	cfg := endpoint.Config{Rand: rand.Reader, MTU: func(_, _ netip.Addr) int { return 1480 }}
	eps := []*endpoint.Endpoint{endpoint.New(cfg), endpoint.New(cfg)}
	now := rawio.Time(0)
	if err := eps[1].Listen(7, nil); err != nil {
		panic(err)
	}
	client, err := eps[0].Connect(now, nil, 0, addrs[0], addrs[1:], 7)
	if err != nil {
		panic(err)
	}
	assocs := []*assoc.Assoc{client, nil}
	batch := assoc.NewTxBatch(16)

	// carry delivers what one side has written into batch to the other.
	carry := func(from int) (n int) {
		to := 1 - from
		for _, p := range batch.Pkts {
			in := rawio.Packet{Data: slices.Concat(p.Vec...), Local: addrs[to], Remote: addrs[from]}
			a, ok := eps[to].Lookup(&in)
			if ok && a == nil {
				if a, _ = eps[to].HandleUnmatched(now, &in); a != nil {
					assocs[to] = a
				}
			}
			if a != nil {
				a.HandlePacket(now, &in)
			}
			n++
		}
		batch.Reset()
		return n
	}
	exchange := func() {
		for moved := 1; moved > 0; {
			moved = 0
			for i := range eps {
				eps[i].PollTransmit(now, batch)
				moved += carry(i)
				if assocs[i] != nil {
					assocs[i].PollTransmit(now, batch)
					moved += carry(i)
				}
			}
		}
	}

	exchange()
	fmt.Println(client.State())
	if err := client.Send(now, &assoc.Message{Stream: 3, PPID: 42, Body: [2][]byte{[]byte("hello")}}); err != nil {
		panic(err)
	}
	exchange()
	if m, ok := assocs[1].Receive(); ok {
		b := make([]byte, m.Size)
		m.CopyTo(b, 0)
		fmt.Printf("stream %d, PPID %d: %s\n", m.Stream, m.PPID, b)
		assocs[1].Release(m)
	}
	if err := client.Shutdown(now); err != nil {
		panic(err)
	}
	exchange()
	for e, ok := client.PollEvent(); ok; e, ok = client.PollEvent() {
		fmt.Println(e.Kind, e.Err)
	}
	// Output:
	// ESTABLISHED
	// stream 3, PPID 42: hello
	// up <nil>
	// sender dry <nil>
	// down sctp: association shut down
}
