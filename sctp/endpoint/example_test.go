package endpoint_test

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A listening endpoint answers an INIT without keeping anything of it.
func ExampleEndpoint_HandleUnmatched() {
	ep := endpoint.New(endpoint.Config{Rand: rand.Reader, MTU: func(_, _ netip.Addr) int { return 1480 }})
	if err := ep.Listen(7, &assoc.Config{OutStreams: 4}); err != nil {
		panic(err)
	}

	init := wire.AppendInit(wire.AppendHeader(nil, 9999, 7, 0), wire.ChunkInit,
		wire.InitFields{Tag: 0x1234, ARwnd: 65536, OutStreams: 10, InStreams: 10, TSN: 1})
	wire.PutChecksum(init, wire.ChecksumBytes(init))
	p := rawio.Packet{Data: init, Local: netip.MustParseAddrPort("192.0.2.1:0"), Remote: netip.MustParseAddrPort("192.0.2.2:0")}

	a, ok := ep.Lookup(&p)
	fmt.Println("lookup:", a != nil, ok)
	a, isNew := ep.HandleUnmatched(0, &p)
	fmt.Println("unmatched:", a != nil, isNew)

	batch := assoc.NewTxBatch(1)
	ep.PollTransmit(0, batch)
	answer := wire.Packet(slices.Concat(batch.Pkts[0].Vec...))
	cs := answer.Chunks()
	c, _ := cs.Next()
	ack, _ := wire.AsInit(c)
	fmt.Printf("%v to %v, tag %#x, %d streams; %d associations\n", c.Type(), batch.Pkts[0].Remote, answer.VTag(), ack.OutStreams(), ep.Len())
	// Output:
	// lookup: false true
	// unmatched: false false
	// INIT ACK to 192.0.2.2:0, tag 0x1234, 4 streams; 0 associations
}
