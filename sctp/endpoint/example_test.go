package endpoint_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// An INIT is answered and forgotten. Nothing is kept of it but what the cookie carries.
func Example() {
	host := endpoint.New(endpoint.Config{
		Rand: rand.NewChaCha8([32]byte{1}),
		MTU:  func(_, _ netip.Addr) int { return 1480 },
	})
	if err := host.Listen(7, nil); err != nil {
		panic(err)
	}
	init := wire.AppendInit(wire.AppendHeader(nil, 5000, 7, 0), wire.ChunkInit,
		wire.InitFields{Tag: 1, ARwnd: 1 << 16, OutStreams: 1, InStreams: 1})
	wire.PutChecksum(init, wire.ChecksumBytes(init))
	p := rawio.Packet{Data: init, Local: netip.MustParseAddrPort("192.0.2.1:0"),
		Remote: netip.MustParseAddrPort("192.0.2.2:0")}

	if a, ok := host.Lookup(&p); a == nil && ok {
		_, made := host.HandleUnmatched(0, &p)
		fmt.Println("an association:", made)
	}
	batch := assoc.NewTxBatch(1)
	host.PollTransmit(0, batch)
	var answer []byte
	for _, piece := range batch.Pkts[0].Vec {
		answer = append(answer, piece...)
	}
	chunks := wire.Packet(answer).Chunks()
	c, _ := chunks.Next()
	fmt.Println("the answer:", c.Type())
	// Output:
	// an association: false
	// the answer: INIT ACK
}
