package main

import (
	"encoding/binary"
	"fmt"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// errorsFound has the server's stack find errors, and tell of them in Terminate Messages that quote
// the client's segment.
func (s *stage) errorsFound() error {
	for _, e := range []struct {
		name  string
		wr    func(a, b *end) rdma.SendWR
		sent  func(a, b *end) message
		etype byte
		code  byte
		layer rdmap.Layer
	}{
		{"a Write to an STag that does not exist",
			func(a, b *end) rdma.SendWR {
				return rdma.SendWR{Op: rdma.OpWrite, SGL: []rdma.SGE{a.mr.SGE(0, 10)}, RemoteSTag: b.mr.STag() ^ 1,
					RemoteTO: 99}
			},
			func(_, b *end) message { return writeMessage(b.mr.STag()^1, 99, pieceOf(0, 10)) },
			byte(ddp.TypeTagged), ddp.CodeInvalidSTag, rdmap.LayerDDP},
		{"a Send longer than the receive",
			func(a, _ *end) rdma.SendWR {
				return rdma.SendWR{Op: rdma.OpSend, SGL: []rdma.SGE{a.mr.SGE(0, short+1)}}
			},
			func(_, _ *end) message { return sendMessage(rdmap.OpSend, 1, 0, pieceOf(0, short+1)) },
			byte(ddp.TypeUntagged), ddp.CodeTooLong, rdmap.LayerDDP},
		{"a Read out of bounds",
			func(a, b *end) rdma.SendWR {
				return rdma.SendWR{Op: rdma.OpRead, SGL: []rdma.SGE{a.mr.SGE(0, 10)}, RemoteSTag: b.mr.STag(),
					RemoteTO: base - 1}
			},
			func(a, b *end) message { return readRequest(1, a.mr.STag(), base, 10, b.mr.STag(), base-1) },
			byte(rdmap.RemoteProtection), rdmap.CodeBounds, rdmap.LayerRDMA},
		{"an atomic on an address that is not aligned",
			func(_, b *end) rdma.SendWR {
				return rdma.SendWR{Op: rdma.OpAtomic, RemoteSTag: b.mr.STag(), RemoteTO: base + 1,
					Atomic: rdma.FetchAdd(1)}
			},
			func(_, b *end) message { return atomicRequest(1, b.mr.STag(), base+1, rdma.FetchAdd(1)) },
			byte(rdmap.RemoteOperation), rdmap.CodeCatastrophic, rdmap.LayerRDMA},
	} {
		a, b, err := s.newSession(e.name, rdma.QPConfig{}, rdma.QPConfig{}, short, nil)
		if err != nil {
			return err
		}
		if err := a.postAndWait(s.ctx, recvs, e.wr(a, b)); err != nil { // the receives are flushed
			return err
		}
		select {
		case <-a.qp.Done():
		case <-s.ctx.Done():
			return fmt.Errorf("%s: %w", e.name, s.ctx.Err())
		}
		m := e.sent(a, b)
		t := rdmap.Terminate{Layer: e.layer, EType: rdmap.EType(e.etype), Code: e.code}
		t.HasRDMA = e.layer == rdmap.LayerRDMA && t.EType == rdmap.RemoteProtection
		s.scenes = append(s.scenes, scene{e.name,
			[]message{controlMessage(fnInitiate, []byte(e.name)), m, controlMessage(fnTerminate, nil)},
			[]message{controlMessage(fnAccept, nil), terminateMessage(t, &m), controlMessage(fnTerminate, nil)}})
	}
	return nil
}

// errorsToldByHand sends a Terminate Message of each layer, type and code there is, with all
// headers that it may quote. They are made by the encoders of rdmap and ddp; SCTP carries them as
// they are.
func (s *stage) errorsToldByHand() error {
	one := uint32(ddpadapt.AdaptationDDP)
	cfg := &sctp.Config{Adaptation: &one, OutStreams: 64, InStreams: 64}
	conn, err := s.client.Transport().Dial(s.ctx, s.addr, cfg)
	if err != nil {
		return err
	}
	quoted := writeMessage(0x01020304, 0x05060708090A0B0C, nil)
	for i, t := range everyTerminate() {
		name := fmt.Sprintf("by hand: %v", &t)
		b, err := newEnd(s.server, rdma.QPConfig{}, short)
		if err != nil {
			return err
		}
		m := terminateMessage(t, &quoted)
		if err := sendByHand(conn, uint16(i), name, m.terminate.Append(nil), func() error {
			req, err := s.listener.Accept(s.ctx)
			if err != nil {
				return err
			}
			return req.Accept(b.qp, nil)
		}); err != nil {
			return err
		}
		s.scenes = append(s.scenes, scene{name,
			[]message{controlMessage(fnInitiate, []byte(name)), m, controlMessage(fnTerminate, nil)},
			[]message{controlMessage(fnAccept, nil), controlMessage(fnTerminate, nil)}})
	}
	return conn.Close()
}

// sendByHand opens a session, sends a Terminate Message and then the session's, and waits for the
// peer's.
func sendByHand(conn *sctp.Conn, stream uint16, private string, payload []byte, accept func() error) error {
	ssn := uint16(0)
	out := func(ppid uint32, b []byte) error {
		m := append(binary.BigEndian.AppendUint16(nil, ssn), b...)
		ssn++
		_, err := conn.WriteMsg(m, sctp.SendInfo{Stream: stream, PPID: ppid, Unordered: true})
		return err
	}
	in := func(fn byte) error {
		b := make([]byte, 1024)
		n, info, err := conn.ReadMsg(b)
		if err == nil && (info.Stream != stream || info.PPID != ddpadapt.PPIDControl || n < 4 || b[3] != fn) {
			err = fmt.Errorf("%s: control message %d expected, got %x", private, fn, b[:n])
		}
		return err
	}
	seg := make([]byte, ddp.UntaggedHeaderLen)
	ddp.Untagged{Last: true, Rsvd: [5]byte{rdmap.Control(rdmap.OpTerminate)}, QN: rdmap.QueueTerminate, MSN: 1}.Put(seg)
	for _, step := range []func() error{
		func() error { return out(ddpadapt.PPIDControl, append([]byte{0, fnInitiate}, private...)) },
		accept,
		func() error { return in(fnAccept) },
		func() error { return out(ddpadapt.PPIDSegment, append(seg, payload...)) },
		func() error { return out(ddpadapt.PPIDControl, []byte{0, fnTerminate}) },
		func() error { return in(fnTerminate) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// everyTerminate lists RFC 5040 Figure 9, RFC 5041 section 7.2 and RFC 6581 section 8.
func everyTerminate() []rdmap.Terminate {
	var all []rdmap.Terminate
	add := func(layer rdmap.Layer, etype byte, rdmaHeader bool, codes ...byte) {
		for _, c := range codes {
			all = append(all, rdmap.Terminate{Layer: layer, EType: rdmap.EType(etype), Code: c, HasRDMA: rdmaHeader})
		}
	}
	add(rdmap.LayerRDMA, byte(rdmap.LocalCatastrophic), false, 0)
	add(rdmap.LayerRDMA, byte(rdmap.RemoteProtection), true, 0, 1, 2, 3, 4, 9, 0xFF)
	add(rdmap.LayerRDMA, byte(rdmap.RemoteOperation), false, 5, 6, 7, 8, 9, 0xFF)
	add(rdmap.LayerDDP, byte(ddp.TypeLocal), false, 0)
	add(rdmap.LayerDDP, byte(ddp.TypeTagged), false, 0, 1, 2, 3, 4)
	add(rdmap.LayerDDP, byte(ddp.TypeUntagged), false, 1, 2, 3, 4, 5, 6)
	add(rdmap.LayerLLP, byte(rdmap.ETypeMPA), false, rdmap.CodeSetupLocal, rdmap.CodeInsufficientIRD, rdmap.CodeNoRTR)
	return all
}
