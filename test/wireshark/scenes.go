package main

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/rawio/pcap"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// scene is one DDP stream session: what both ends sent, in the order of sending.
type scene struct {
	name           string // the private data of the Initiate
	client, server []message
}

// stage is where scenes are played: a client and a server on this host, with a tap on the client's
// link.
type stage struct {
	ctx            context.Context
	client, server *rdma.Device
	listener       *rdma.Listener
	addr           netip.AddrPort
	scenes         []scene
}

// openStage makes a stage over UDP on the loopback device; the capture goes to file.
func openStage(ctx context.Context, file string) (*stage, error) {
	host := netip.MustParseAddr("127.0.0.1")
	serverLink, err := udp.Open(udp.Config{Local: host, MTU: 1500}) // 9899, which Wireshark takes for SCTP
	if err != nil {
		return nil, err
	}
	s := &stage{ctx: ctx, addr: netip.AddrPortFrom(host, rdma.DefaultPort)}
	if s.server, err = rdma.NewDevice(serverLink, nil); err != nil {
		return nil, err
	}
	if s.listener, err = s.server.Listen(s.addr.Port()); err != nil {
		return nil, err
	}
	clientLink, err := udp.Open(udp.Config{Local: host, Port: udp.AnyPort, MTU: 1500})
	if err != nil {
		return nil, err
	}
	tap, err := pcap.Create(clientLink, file)
	if err != nil {
		return nil, err
	}
	s.client, err = rdma.NewDevice(tap, nil)
	return s, err
}

// closeStage ends all associations and completes the capture.
func (s *stage) closeStage() error {
	err := s.client.Wait(s.ctx)
	if e := s.client.Close(); err == nil {
		err = e
	}
	s.server.Close()
	return err
}

// end is one end of a session, with a megabyte of memory that the other may reach in every way, and
// some receives.
type end struct {
	pd  *rdma.PD
	cq  *rdma.CQ
	qp  *rdma.QP
	buf []byte
	mr  *rdma.MR
}

const (
	base  = 1<<40 + 3 // Tagged Offset of the first octet
	recvs = 16        // receives posted ...
	long  = 4096      // ... of so many octets each, or
	short = 100
)

func newEnd(d *rdma.Device, cfg rdma.QPConfig, recvLen int) (*end, error) {
	e := &end{pd: d.AllocPD(), buf: make([]byte, 1<<20)}
	var err error
	if e.cq, err = d.CreateCQ(1024); err != nil {
		return nil, err
	}
	cfg.PD, cfg.SendCQ, cfg.RecvCQ = e.pd, e.cq, e.cq
	if e.qp, err = d.CreateQP(&cfg); err != nil {
		return nil, err
	}
	for i := range e.buf {
		e.buf[i] = byte(i*7) ^ byte(i>>8)
	}
	if e.mr, err = e.registerRegion(e.buf); err != nil {
		return nil, err
	}
	for i := range recvs {
		if err := e.qp.PostRecv(&rdma.RecvWR{SGL: []rdma.SGE{e.mr.SGE(len(e.buf)-(i+1)*recvLen, recvLen)}}); err !=
			nil {
			return nil, err
		}
	}
	return e, nil
}

// registerRegion registers memory for this queue pair alone, so that the peer may invalidate it.
func (e *end) registerRegion(b []byte) (*rdma.MR, error) {
	const all = rdma.LocalWrite | rdma.RemoteRead | rdma.RemoteWrite | rdma.RemoteAtomic
	return e.pd.Register(b, all, &rdma.RegionOptions{QP: e.qp, Base: base})
}

// postAndWait posts requests and waits until all of them have completed, well or not, as have
// others receives.
func (e *end) postAndWait(ctx context.Context, others int, wrs ...rdma.SendWR) error {
	if _, err := e.qp.PostSendList(wrs); err != nil {
		return err
	}
	var wcs [16]rdma.WC
	for left := len(wrs) + others; left > 0; {
		n, err := e.cq.Poll(wcs[:])
		if err == nil && n == 0 {
			err = e.cq.Wait(ctx)
		}
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// newSession connects a client's end to one of the server, whose program answers by accept. An
// Accept that negotiates is up to the stack.
func (s *stage) newSession(name string, client, server rdma.QPConfig, recvLen int, private []byte) (a, b *end,
	err error) {
	if a, err = newEnd(s.client, client, long); err != nil {
		return nil, nil, err
	}
	if b, err = newEnd(s.server, server, recvLen); err != nil {
		return nil, nil, err
	}
	_, err = s.connectEnds(a, name, func(r *rdma.Request) error { return r.Accept(b.qp, private) })
	return a, b, err
}

func (s *stage) connectEnds(a *end, name string, answer func(*rdma.Request) error) (reply []byte, err error) {
	answered := make(chan error, 1)
	go func() {
		req, err := s.listener.Accept(s.ctx)
		if err == nil {
			err = answer(req)
		}
		answered <- err
	}()
	reply, err = a.qp.Connect(s.ctx, s.addr, []byte(name))
	if e := <-answered; e != nil {
		return nil, e
	}
	return reply, err
}

// privatePattern is private data.
func privatePattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*11 + 5)
	}
	return b
}

// playAll plays all scenes.
func (s *stage) playAll() error {
	for _, f := range []func() error{
		s.playOperations, s.playRefused, s.playNegotiated, s.peerToPeer, s.refusedNegotiated, s.errorsFound,
		s.errorsToldByHand,
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// playOperations has every operation.
func (s *stage) playOperations() error {
	const name = "every operation"
	a, b, err := s.newSession(name, rdma.QPConfig{}, rdma.QPConfig{}, long, privatePattern(512))
	if err != nil {
		return err
	}
	var inv [2]*rdma.MR
	for i := range inv {
		if inv[i], err = b.registerRegion(make([]byte, 8)); err != nil {
			return err
		}
	}
	const (
		longTO, fetchTO, word = base + 777, base + 1_000, 100_000
		sum                   = 1 << 63
	)
	tag, sink := b.mr.STag(), a.mr.STag()
	gather := func(off, n int) []rdma.SGE { return []rdma.SGE{a.mr.SGE(off, n)} }
	masked := rdma.AtomicOp{Data: 5, Mask: sum | 0x80}
	swap := rdma.AtomicOp{Swap: true, Data: 0x1111222233334444, Mask: 0xFFFF, Compare: 0x99, CompareMask: 0xFF00}
	zero := make([]byte, 8)
	copy(b.buf[word:], zero)
	err = a.postAndWait(s.ctx, 0,
		rdma.SendWR{Op: rdma.OpWrite, SGL: gather(0, 5000), RemoteSTag: tag, RemoteTO: longTO},
		rdma.SendWR{Op: rdma.OpWrite, RemoteSTag: tag, RemoteTO: base},
		rdma.SendWR{Op: rdma.OpSend},
		rdma.SendWR{Op: rdma.OpSend, SGL: gather(100, 100)},
		rdma.SendWR{Op: rdma.OpSend, SGL: gather(200, 4000)},
		rdma.SendWR{Op: rdma.OpSendSE, SGL: gather(300, 7)},
		rdma.SendWR{Op: rdma.OpSendInv, SGL: gather(400, 8), InvalidateSTag: inv[0].STag()},
		rdma.SendWR{Op: rdma.OpSendSEInv, SGL: gather(500, 9), InvalidateSTag: inv[1].STag()},
		rdma.SendWR{Op: rdma.OpRead, SGL: gather(30_000, 6000), RemoteSTag: tag, RemoteTO: fetchTO},
		rdma.SendWR{Op: rdma.OpRead, SGL: gather(0, 0), RemoteSTag: tag, RemoteTO: fetchTO},
		rdma.SendWR{Op: rdma.OpImm, Immediate: 0x1122334455667788},
		rdma.SendWR{Op: rdma.OpImmSE, Immediate: 0x99AABBCCDDEEFF00},
		rdma.SendWR{Op: rdma.OpWriteImm, SGL: gather(600, 10), RemoteSTag: tag, RemoteTO: base, Immediate: 42},
		rdma.SendWR{Op: rdma.OpWriteImmSE, SGL: gather(700, 11), RemoteSTag: tag, RemoteTO: base, Immediate: 43},
		rdma.SendWR{Op: rdma.OpAtomic, RemoteSTag: tag, RemoteTO: base + word, Atomic: rdma.FetchAdd(7)},
		rdma.SendWR{Op: rdma.OpAtomic, RemoteSTag: tag, RemoteTO: base + word, Atomic: masked},
		rdma.SendWR{Op: rdma.OpAtomic, RemoteSTag: tag, RemoteTO: base + word, Atomic: swap},
		rdma.SendWR{Op: rdma.OpAtomic, RemoteSTag: tag, RemoteTO: base + word, Atomic: rdma.CmpSwap(12, 99)},
	)
	if err != nil {
		return err
	}
	own := b.buf[50_000:52_000]
	err = b.postAndWait(s.ctx, 10, // the receives that the client has used
		rdma.SendWR{Op: rdma.OpSend, SGL: []rdma.SGE{b.mr.SGE(50_000, 2000)}},
		rdma.SendWR{Op: rdma.OpWrite, SGL: []rdma.SGE{b.mr.SGE(50_000, 20)}, RemoteSTag: sink, RemoteTO: base + 9})
	if err != nil {
		return err
	}
	if err := a.qp.Disconnect(s.ctx); err != nil {
		return err
	}
	s.scenes = append(s.scenes, scene{name,
		[]message{
			controlMessage(fnInitiate, []byte(name)),
			writeMessage(tag, longTO, pieceOf(0, 5000)),
			writeMessage(tag, base, nil),
			sendMessage(rdmap.OpSend, 1, 0, nil),
			sendMessage(rdmap.OpSend, 2, 0, pieceOf(100, 100)),
			sendMessage(rdmap.OpSend, 3, 0, pieceOf(200, 4000)),
			sendMessage(rdmap.OpSendSE, 4, 0, pieceOf(300, 7)),
			sendMessage(rdmap.OpSendInv, 5, inv[0].STag(), pieceOf(400, 8)),
			sendMessage(rdmap.OpSendSEInv, 6, inv[1].STag(), pieceOf(500, 9)),
			readRequest(1, sink, base+30_000, 6000, tag, fetchTO),
			readRequest(2, sink, base, 0, tag, fetchTO),
			immediateMessage(rdmap.OpImmediate, 7, 0x1122334455667788),
			immediateMessage(rdmap.OpImmediateSE, 8, 0x99AABBCCDDEEFF00),
			writeMessage(tag, base, pieceOf(600, 10)),
			immediateMessage(rdmap.OpImmediate, 9, 42),
			writeMessage(tag, base, pieceOf(700, 11)),
			immediateMessage(rdmap.OpImmediateSE, 10, 43),
			atomicRequest(3, tag, base+word, rdma.FetchAdd(7)),
			atomicRequest(4, tag, base+word, masked),
			atomicRequest(5, tag, base+word, swap),
			atomicRequest(6, tag, base+word, rdma.CmpSwap(12, 99)),
			controlMessage(fnTerminate, nil),
		},
		[]message{
			controlMessage(fnAccept, privatePattern(512)),
			readResponse(sink, base+30_000, readContent(6000)),
			readResponse(sink, base, nil),
			atomicResponse(1, 0),
			atomicResponse(2, 7),
			atomicResponse(3, 12),
			atomicResponse(4, 0x4444),
			sendMessage(rdmap.OpSend, 1, 0, own),
			writeMessage(sink, base+9, own[:20]),
			controlMessage(fnTerminate, nil),
		}})
	return nil
}

// pieceOf is what the memory of an end holds at first.
func pieceOf(off, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		at := off + i
		b[i] = byte(at*7) ^ byte(at>>8)
	}
	return b
}

// readContent is what the Read fetches, from 1000 on: behind the Write from 777 on.
func readContent(n int) []byte {
	b := pieceOf(1000, n)
	copy(b, pieceOf(1000-777, 5000-(1000-777)))
	return b
}

// playRefused is a session that the server's program rejects.
func (s *stage) playRefused() error {
	const name = "rejected"
	a, err := newEnd(s.client, rdma.QPConfig{}, long)
	if err != nil {
		return err
	}
	if _, err := s.connectEnds(a, name, func(r *rdma.Request) error { return r.Reject([]byte("no room")) }); err ==
		nil {
		return fmt.Errorf("%s: the session was accepted", name)
	}
	s.scenes = append(s.scenes, scene{name,
		[]message{controlMessage(fnInitiate, []byte(name))},
		[]message{controlMessage(fnReject, []byte("no room"))}})
	return nil
}

// playNegotiated is a session with negotiation of IRD and ORD (RFC 6581).
func (s *stage) playNegotiated() error {
	const name = "negotiated"
	a, _, err := s.newSession(name, rdma.QPConfig{Negotiate: true, IRD: 5, ORD: 9}, rdma.QPConfig{IRD: 7, ORD: 16},
		long,
		privatePattern(508))
	if err != nil {
		return err
	}
	if err := a.qp.Disconnect(s.ctx); err != nil {
		return err
	}
	s.scenes = append(s.scenes, scene{name,
		[]message{enhancedControl(fnEnhancedInitiate, llp.Setup{IRD: 5, ORD: 9}, []byte(name)),
			controlMessage(fnTerminate, nil)},
		[]message{enhancedControl(fnEnhancedAccept, llp.Setup{IRD: 7, ORD: 5}, privatePattern(508)),
			controlMessage(fnTerminate, nil)}})
	return nil
}

// peerToPeer is a session whose client sends a Ready to Receive indication first.
func (s *stage) peerToPeer() error {
	const name = "peer to peer"
	a, _, err := s.newSession(name, rdma.QPConfig{Negotiate: true, PeerToPeer: true, IRD: 1, ORD: 2},
		rdma.QPConfig{IRD: 3, ORD: 4}, long, nil)
	if err != nil {
		return err
	}
	if err := a.qp.Disconnect(s.ctx); err != nil {
		return err
	}
	const all = llp.RTRSend | llp.RTRWrite | llp.RTRRead
	s.scenes = append(s.scenes, scene{name,
		[]message{
			enhancedControl(fnEnhancedInitiate, llp.Setup{IRD: 1, ORD: 2, PeerToPeer: true, RTR: all},
				[]byte(name)),
			writeMessage(0, 0, nil),
			controlMessage(fnTerminate, nil),
		},
		[]message{
			enhancedControl(fnEnhancedAccept, llp.Setup{IRD: 3, ORD: 1, PeerToPeer: true,
				RTR: llp.RTRWrite | llp.RTRRead}, nil),
			controlMessage(fnTerminate, nil),
		}})
	return nil
}

// refusedNegotiated is a negotiated session that the server's program rejects, with what it would
// take.
func (s *stage) refusedNegotiated() error {
	const name = "negotiated and rejected"
	a, err := newEnd(s.client, rdma.QPConfig{Negotiate: true, IRD: 2, ORD: 2}, long)
	if err != nil {
		return err
	}
	offer := llp.Setup{IRD: 100, ORD: 200, RTR: llp.RTRWrite}
	if _, err := s.connectEnds(a, name,
		func(r *rdma.Request) error { return r.RejectSetup(offer, []byte("more, please")) }); err == nil {
		return fmt.Errorf("%s: the session was accepted", name)
	}
	s.scenes = append(s.scenes, scene{name,
		[]message{enhancedControl(fnEnhancedInitiate, llp.Setup{IRD: 2, ORD: 2}, []byte(name))},
		[]message{enhancedControl(fnEnhancedReject, llp.Setup{IRD: 100, ORD: 200}, []byte("more, please"))}})
	return nil
}
