package rdmap_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// printer is a CQ that prints.
type printer string

func (p printer) Push(wc rdmap.WC) { fmt.Printf("%s: %v %d: %v\n", p, wc.Opcode, wc.ID, wc.Status) }

// side is a lower layer without a network: it implements ddp.LLP and rdmap.Host.
type side struct{}

func (side) MULPDU() int                   { return 1400 }
func (side) Ready()                        {}
func (side) Finish()                       {}
func (side) Abort()                        {}
func (side) SharedRegion(*ddp.Region) bool { return false }
func (side) FlushLater()                   {}
func (side) HighWater()                    {}
func (side) Broken(*rdmap.InternalError)   {}
func (side) Detach() bool                  { return false }
func (side) Failed(err *rdmap.StreamError) { fmt.Println(err) }
func (side) PeerClosed()                   {}

// moveSegments moves the segments of one stream to the other.
func moveSegments(from, to *ddp.Stream) {
	var s ddp.Segment
	for from.NextSegment(1400, &s) {
		b := append(append(append([]byte(nil), s.Header[:s.HeaderLen]...), s.Body[0]...), s.Body[1]...)
		var p ddp.Placed
		to.Place(b, &p)
		to.Deliver(&p)
		from.Acked()
	}
}

// A client writes to a region that a server advertised, reads it back, and then, fenced so that the
// read is over, invalidates it with a Send.
func Example() {
	table := ddp.NewTable(rand.NewChaCha8([32]byte{})) // crypto/rand.Reader in earnest
	newQP := func(name string, pd ddp.PD) *rdmap.QP {
		qp, err := rdmap.NewQP(rdmap.Config{Table: table, PD: pd, Stream: ddp.StreamID(pd), QPNum: uint32(pd),
			SendCQ: printer(name), RecvCQ: printer(name), Host: side{},
			MaxSend: 16, MaxRecv: 16, MaxSGE: 2, MaxInline: 64, IRD: 4, ORD: 4})
		if err != nil {
			panic(err)
		}
		qp.Stream().Attach(side{})
		qp.Start()
		return qp
	}
	region := func(pd ddp.PD, b []byte, a ddp.Access) *ddp.Region {
		r, err := table.Register(ddp.Spec{PD: pd, Mem: ddp.Bytes(b), Access: a})
		if err != nil {
			panic(err)
		}
		return r
	}
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	client, server := newQP("client", 1), newQP("server", 2)
	memory, back := make([]byte, 64), make([]byte, 64)
	advertised := region(2, memory, ddp.RemoteRead|ddp.RemoteWrite|ddp.LocalWrite)
	sink := region(1, back, ddp.LocalWrite)

	must(server.PostRecv(&rdmap.RecvWR{ID: 100, SGL: []rdmap.SGE{{LKey: advertised.STag(), Addr: 32, Len: 32}}}))
	must(client.PostSend(&rdmap.SendWR{ID: 1, Op: rdmap.WRWrite, Inline: []byte("hello"),
		RemoteSTag: advertised.STag()}))
	must(client.PostSend(&rdmap.SendWR{ID: 2, Op: rdmap.WRRead, SGL: []rdmap.SGE{{LKey: sink.STag(), Len: 5}},
		RemoteSTag: advertised.STag()}))
	must(client.PostSend(&rdmap.SendWR{ID: 3, Op: rdmap.WRSendInv, Flags: rdmap.Fence,
		InvalidateSTag: advertised.STag()}))
	moveSegments(client.Stream(), server.Stream()) // Write and Read Request
	moveSegments(server.Stream(), client.Stream()) // Read Response
	moveSegments(client.Stream(), server.Stream()) // Send
	fmt.Printf("server has %q, client has %q, the STag is valid: %v\n", memory[:5], back[:5], advertised.Valid())
	// Output:
	// client: RDMA Write 1: success
	// client: RDMA Read 2: success
	// server: Receive 100: success
	// client: Send 3: success
	// server has "hello", client has "hello", the STag is valid: false
}
