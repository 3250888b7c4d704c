package ddpadapt_test

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// node is one end: an endpoint, its association and the Mux on it.
type node struct {
	addr netip.AddrPort
	ep   *endpoint.Endpoint
	a    *assoc.Assoc
	mux  *ddpadapt.Mux
	out  *assoc.TxBatch
}

func newNode(addr string) *node {
	mtu := func(_, _ netip.Addr) int { return 1480 }
	return &node{addr: netip.MustParseAddrPort(addr), ep: endpoint.New(endpoint.Config{Rand: rand.Reader, MTU: mtu}),
		out: assoc.NewTxBatch(8)}
}

func (n *node) adoptAssoc(a *assoc.Assoc, initiator bool) {
	n.a, n.mux = a, ddpadapt.NewMux(a, ddpadapt.Config{Initiator: initiator})
	a.SetUpper(n.mux, n.mux)
}

// receivePacket handles a packet from peer as a shell would.
func (n *node) receivePacket(peer *node, data []byte) {
	p := rawio.Packet{Data: data, Buf: rawio.NewBuf(data), Local: n.addr, Remote: peer.addr}
	defer p.Release()
	a, ok := n.ep.Lookup(&p)
	if ok && a == nil {
		var isNew bool
		if a, isNew = n.ep.HandleUnmatched(0, &p); isNew {
			n.adoptAssoc(a, false)
		}
	}
	if a != nil {
		a.HandlePacket(0, &p)
		n.mux.HandleReceived(0)
	}
}

// sendPackets writes what n has to send to peer, and says whether there was something.
func (n *node) sendPackets(peer *node) bool {
	n.ep.PollTransmit(0, n.out)
	if n.a != nil {
		n.a.PollTransmit(0, n.out)
		for e, ok := n.a.PollEvent(); ok; e, ok = n.a.PollEvent() {
			if e.Kind == assoc.EventUp {
				n.ep.Refresh(n.a)
			}
			n.mux.HandleEvent(0, e)
		}
	}
	var packets [][]byte
	for i := range n.out.Pkts {
		packets = append(packets, slices.Concat(n.out.Pkts[i].Vec...))
	}
	n.out.Reset()
	for _, b := range packets {
		peer.receivePacket(n, b)
	}
	return len(packets) > 0
}

// runUntilQuiet lets packets pass until none is left.
func runUntilQuiet(a, b *node) {
	for moved := true; moved; {
		moved = a.sendPackets(b)
		moved = b.sendPackets(a) || moved
	}
}

// ulp is an upper layer with one receive buffer.
type ulp struct{ buf ddp.RecvBuffer }

func (u *ulp) AdmitTagged(uint8, *ddp.Region, ddp.STag, uint64, int) (ddp.Access, *ddp.Error) {
	return ddp.RemoteWrite, nil
}
func (u *ulp) Buffer(_, _ uint32, _ [5]byte) (*ddp.RecvBuffer, uint8) { return &u.buf, 0 }
func (u *ulp) DeliverTagged(uint8, ddp.STag, uint64, uint64)          {}
func (u *ulp) Drained()                                               {}
func (u *ulp) Completed(token uint64)                                 { fmt.Println("sent: message", token) }
func (u *ulp) Failed(token uint64, err error)                         { fmt.Println("failed:", err) }
func (u *ulp) Fatal(err *ddp.Error)                                   { fmt.Println("fatal:", err) }
func (u *ulp) PeerClosed()                                            {}
func (u *ulp) DeliverUntagged(_, _ uint32, _ [5]byte, n uint32, b *ddp.RecvBuffer) {
	fmt.Printf("received: %s\n", b.Pieces[0].Mem.RAM()[:n])
}

// A session over an association: opened, accepted, used and terminated.
func Example() {
	client, server := newNode("10.0.0.1:0"), newNode("10.0.0.2:0")
	var cfg assoc.Config
	ddpadapt.Configure(&cfg)
	if err := server.ep.Listen(7000, &cfg); err != nil {
		panic(err)
	}
	a, err := client.ep.Connect(0, &cfg, 0, client.addr, []netip.AddrPort{server.addr}, 7000)
	if err != nil {
		panic(err)
	}
	client.adoptAssoc(a, true)
	runUntilQuiet(client, server)

	// The active side opens a session on a free stream.
	table := ddp.NewTable(rand.Reader)
	stream := func(id ddp.StreamID) *ddp.Stream {
		mem := ddp.Bytes(make([]byte, 64))
		buf, err := ddp.MakeRecvBuffer(ddp.Gather{{Mem: mem, Len: mem.Len()}}, 0)
		if err != nil {
			panic(err)
		}
		return ddp.NewStream(ddp.StreamConfig{ID: id, PD: 1, Table: table, ULP: &ulp{buf}, Queues: 1})
	}
	ds := stream(1)
	session, err := client.mux.Open(0, -1, ds, []byte("may I?"))
	if err != nil {
		panic(err)
	}
	runUntilQuiet(client, server)

	// The passive side answers.
	for ev, ok := server.mux.PollEvent(); ok; ev, ok = server.mux.PollEvent() {
		if ev.Kind == ddpadapt.EventInitiate {
			fmt.Printf("server: %v %q\n", ev.Kind, ev.Private)
			if err := ev.Session.Accept(0, stream(2), []byte("please do")); err != nil {
				panic(err)
			}
		}
	}
	runUntilQuiet(client, server)
	for ev, ok := client.mux.PollEvent(); ok; ev, ok = client.mux.PollEvent() {
		fmt.Printf("client: %v %q\n", ev.Kind, ev.Private)
	}

	hello := []byte("hello")
	if err := ds.SendUntagged(0, [5]byte{}, ddp.Gather{{Mem: ddp.Bytes(hello), Len: 5}}, 1); err != nil {
		panic(err)
	}
	// Each side ends its direction.
	if err := session.Terminate(0); err != nil {
		panic(err)
	}
	runUntilQuiet(client, server)
	for ev, ok := server.mux.PollEvent(); ok; ev, ok = server.mux.PollEvent() {
		fmt.Printf("server: %v\n", ev.Kind)
		if err := ev.Session.Terminate(0); err != nil {
			panic(err)
		}
	}
	runUntilQuiet(client, server)
	fmt.Println("client:", session.State())
	// Output:
	// server: initiate "may I?"
	// client: up ""
	// client: accepted "please do"
	// received: hello
	// sent: message 1
	// server: terminated
	// client: ended
}
