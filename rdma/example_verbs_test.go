package rdma_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
)

// end is one end of a session with 4096 octets of memory that the peer may reach in every way.
type end struct {
	dev    *rdma.Device
	pd     *rdma.PD
	cq     *rdma.CQ
	qp     *rdma.QP
	memory []byte
	mr     *rdma.MR
	peer   rdma.STag // the peer's memory
}

// newEnds connects two ends over a link in memory. Each tells the other its STag as private data.
func newEnds(ctx context.Context) (client, server *end) {
	clientLink, serverLink, err := mem.Pair(mem.Options{})
	check(err)
	client, server = newEnd(clientLink), newEnd(serverLink)
	listener, err := server.dev.Listen(rdma.DefaultPort)
	check(err)
	accepted := make(chan struct{})
	go func() {
		req, err := listener.Accept(ctx)
		check(err)
		server.peer = rdma.STag(binary.BigEndian.Uint32(req.PrivateData()))
		check(req.Accept(server.qp, server.advertise()))
		close(accepted)
	}()
	addr := netip.AddrPortFrom(serverLink.LocalAddrs()[0].Addr(), rdma.DefaultPort)
	reply, err := client.qp.Connect(ctx, addr, client.advertise())
	check(err)
	client.peer = rdma.STag(binary.BigEndian.Uint32(reply))
	<-accepted
	return client, server
}

func newEnd(link *mem.Link) *end {
	e := &end{memory: make([]byte, 4096)}
	var err error
	e.dev, err = rdma.NewDevice(link, nil)
	check(err)
	e.pd = e.dev.AllocPD()
	e.cq, err = e.dev.CreateCQ(256)
	check(err)
	e.qp, err = e.dev.CreateQP(&rdma.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq})
	check(err)
	e.mr, err = e.pd.Register(e.memory, rdma.LocalWrite|rdma.RemoteRead|rdma.RemoteWrite|rdma.RemoteAtomic, nil)
	check(err)
	return e
}

func (e *end) advertise() []byte { return binary.BigEndian.AppendUint32(nil, uint32(e.mr.STag())) }

// recv posts octets [off, off+n) of the memory for one Send of the peer.
func (e *end) recv(off, n int) {
	check(e.qp.PostRecv(&rdma.RecvWR{SGL: []rdma.SGE{e.mr.SGE(off, n)}}))
}

func (e *end) post(wr rdma.SendWR) { check(e.qp.PostSend(&wr)) }

// wait returns the next completion, which must be a success.
func (e *end) wait(ctx context.Context) rdma.WC {
	var wcs [1]rdma.WC
	for {
		n, err := e.cq.Poll(wcs[:])
		check(err)
		if n == 1 {
			break
		}
		check(e.cq.Wait(ctx))
	}
	if wcs[0].Status != rdma.StatusSuccess {
		panic(fmt.Sprintf("%v: %v (%v)", wcs[0].Opcode, wcs[0].Status, e.qp.Err()))
	}
	return wcs[0]
}

// close ends the session gracefully, from the client's side, and the associations with it.
func (e *end) close(ctx context.Context) {
	check(e.qp.Disconnect(ctx))
	check(e.dev.Wait(ctx))
	check(e.dev.Close())
}

// A message goes to and fro. Sends ask for no completion of their own: the answer tells enough.
func Example_pingPong() {
	ctx := context.Background()
	client, server := newEnds(ctx)
	const rounds = 3
	client.recv(0, 16)
	server.recv(0, 16)
	go func() {
		for range rounds {
			n := server.wait(ctx).ByteLen
			echo := append([]byte("re: "), server.memory[:n]...)
			server.recv(0, 16) // before the answer, which lets the next ping come
			server.post(rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Unsignaled, Inline: echo})
		}
	}()
	for i := range rounds {
		client.post(rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Unsignaled, Inline: fmt.Appendf(nil, "ping %d", i)})
		n := client.wait(ctx).ByteLen
		fmt.Printf("%s\n", client.memory[:n])
		client.recv(0, 16)
	}
	client.close(ctx)
	check(server.dev.Close())
	// Output:
	// re: ping 0
	// re: ping 1
	// re: ping 2
}

// A client fetches from the server's memory. The server's program does nothing, and does not
// notice.
func Example_remoteRead() {
	ctx := context.Background()
	client, server := newEnds(ctx)
	copy(server.memory[1000:], "whatever is there")
	client.post(rdma.SendWR{Op: rdma.OpRead, SGL: []rdma.SGE{client.mr.SGE(0, 17)}, RemoteSTag: client.peer,
		RemoteTO: 1000})
	fmt.Printf("%v of %d octets: %q\n", client.wait(ctx).Opcode, 17, client.memory[:17])
	client.close(ctx)
	check(server.dev.Close())
	// Output: RDMA Read of 17 octets: "whatever is there"
}

// A key-value store that clients read by RDMA alone: the server fills a table of slots of fixed
// size, and a client computes where a key is and reads the slot. A slot that the server is changing
// has an odd version, so that a reader that meets one tries again.
func Example_keyValueStore() {
	ctx := context.Background()
	client, server := newEnds(ctx)
	const (
		slotLen = 64 // version 8, key 16, value 40
		slots   = 4096 / slotLen
	)
	slotOf := func(key string) uint64 {
		h := uint64(14695981039346656037) // FNV-1a
		for _, c := range []byte(key) {
			h = (h ^ uint64(c)) * 1099511628211
		}
		return h % slots * slotLen
	}

	put := func(key, value string) { // on the server
		to := slotOf(key)
		bump := func() {
			_, err := server.mr.Atomic(int(to), rdma.FetchAdd(1))
			check(err)
		}
		slot := server.memory[to:][:slotLen]
		bump()
		clear(slot[8:])
		copy(slot[8:24], key)
		copy(slot[24:], value)
		bump()
	}
	get := func(key string) string { // on the client
		read := func(off, n int, flags rdma.Flags) {
			client.post(rdma.SendWR{Op: rdma.OpRead, Flags: flags, SGL: []rdma.SGE{client.mr.SGE(off, n)},
				RemoteSTag: client.peer, RemoteTO: slotOf(key)})
		}
		for {
			read(slotLen, 8, 0)
			read(0, slotLen, rdma.Fence) // in their order: without a fence the server may take them in any
			read(slotLen+8, 8, rdma.Fence)
			for range 3 {
				client.wait(ctx)
			}
			before := binary.NativeEndian.Uint64(client.memory[slotLen:])
			after := binary.NativeEndian.Uint64(client.memory[slotLen+8:])
			switch {
			case before != after || before%2 == 1:
				continue // it is being changed
			case text(client.memory[8:24]) != key:
				return "(none)"
			}
			return text(client.memory[24:slotLen])
		}
	}

	put("apple", "red")
	put("banana", "yellow")
	put("apple", "green")
	for _, key := range []string{"apple", "banana", "cherry"} {
		fmt.Println(key, get(key))
	}
	client.close(ctx)
	check(server.dev.Close())
	// Output:
	// apple green
	// banana yellow
	// cherry (none)
}

// A lock in the server's memory: 8 octets that are 0 when it is free, and taken by compare and
// swap. What the holder wrote before it gave the lock up is in place for the next one, as
// operations of one session keep their order.
func Example_lock() {
	ctx := context.Background()
	client, server := newEnds(ctx)
	atomic := func(op rdma.AtomicOp) (found uint64) { // by the client, on the lock
		client.post(rdma.SendWR{Op: rdma.OpAtomic, RemoteSTag: client.peer, RemoteTO: 0, Atomic: op})
		return client.wait(ctx).Original
	}
	const holder = 1
	try := func() {
		if found := atomic(rdma.CmpSwap(0, holder)); found != 0 {
			fmt.Println("held by", found)
			return
		}
		client.post(rdma.SendWR{Op: rdma.OpWrite, Inline: []byte("guarded"), RemoteSTag: client.peer, RemoteTO: 8})
		client.wait(ctx)
		atomic(rdma.CmpSwap(holder, 0))
		fmt.Printf("%s\n", text(server.memory[8:24]))
	}

	// The server's own program takes part, on the same memory.
	_, err := server.mr.Atomic(0, rdma.CmpSwap(0, 77))
	check(err)
	try()
	_, err = server.mr.Atomic(0, rdma.CmpSwap(77, 0))
	check(err)
	try()
	client.close(ctx)
	check(server.dev.Close())
	// Output:
	// held by 77
	// guarded
}

// One goroutine serves two CQs by one completion channel: an event says which of them has
// something. In the end all that was made is destroyed, the users before what they use.
func Example_completionChannel() {
	ctx := context.Background()
	link, _, err := mem.Pair(mem.Options{})
	check(err)
	dev, err := rdma.NewDevice(link, nil)
	check(err)
	pd, channel := dev.AllocPD(), dev.CreateCompChannel()
	names := make(map[*rdma.CQ]string)
	var qps []*rdma.QP
	for _, name := range []string{"sends", "receives"} {
		cq, err := channel.CreateCQ(256)
		check(err)
		names[cq] = name
		qp, err := dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
		check(err)
		check(qp.PostRecv(&rdma.RecvWR{ID: uint64(len(name))}))
		qps = append(qps, qp)
		cq.Arm(false)
	}
	for _, qp := range qps {
		check(qp.Close()) // what was posted is flushed
	}
	for range names {
		cq, err := channel.GetEvent(ctx)
		check(err)
		cq.Arm(false) // first, so that no completion is missed
		var wcs [16]rdma.WC
		n, err := cq.Poll(wcs[:])
		check(err)
		fmt.Println(names[cq], n, wcs[0].ID, wcs[0].Status)
		check(cq.AckEvents(1))
	}
	for cq := range names {
		check(cq.Destroy(ctx))
	}
	check(channel.Destroy())
	check(pd.Destroy())
	check(dev.Close())
	// Output:
	// sends 1 5 Work Request Flushed Error
	// receives 1 8 Work Request Flushed Error
}

// text cuts what follows the first octet 0.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
