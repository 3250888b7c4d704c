package rdma

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Bits of how.
const (
	weAsk     = 1 << iota // the peer is the responder
	noCRC                 // this side can do without
	markers               // and asks for Markers
	inFPDUs               // the octets are ULPDUs, each behind its length, on a connection that is set up
	piecemeal             // they come in small pieces
)

const regionLen = 64

// FuzzConnection feeds a connection with what a hostile peer might send, and closes it. STag 1 in
// tagged segments and in Read Requests stands for that of real memory.
//
//fuzz:covers ./rdma ./mpa
func FuzzConnection(f *testing.F) {
	request := mpa.Frame{CRC: true, Revision: mpa.Revision, Private: []byte("hi")}
	enhanced := mpa.Frame{CRC: true, Revision: mpa.EnhancedRevision,
		Setup: &llp.Setup{IRD: 1, ORD: 1, PeerToPeer: true, RTR: llp.RTRWrite}}
	reply := enhanced
	reply.IsReply = true
	rejection := mpa.Frame{IsReply: true, Rejected: true, Revision: mpa.EnhancedRevision, Setup: enhanced.Setup}
	send := untagged(rdmap.QueueSend, 1, rdmap.OpSend, []byte("hello"))
	write := tagged(rdmap.OpWrite, 1, 8, []byte("data"))
	var rr [rdmap.ReadRequestLen]byte
	(&rdmap.ReadRequest{SinkSTag: 9, Size: 32, SrcSTag: 1}).Put(&rr)
	read := untagged(rdmap.QueueReadRequest, 1, rdmap.OpReadRequest, rr[:])
	for _, row := range []struct {
		how uint8
		in  []byte
	}{
		{0, request.Append(nil)}, {0, enhanced.Append(nil)}, {0, []byte("GET / HTTP/1.1\r\n\r\n")},
		{0, append(request.Append(nil), 0)}, {piecemeal, request.Append(nil)[:10]},
		{weAsk, reply.Append(nil)}, {weAsk, rejection.Append(nil)}, {weAsk, request.Append(nil)},
		{weAsk | noCRC, append(reply.Append(nil), 0, 4, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0)},
		{inFPDUs, bytes.Join([][]byte{send, write, read}, nil)}, {inFPDUs | noCRC | piecemeal, write},
		{inFPDUs | markers, bytes.Join([][]byte{read, send}, nil)}, {inFPDUs, []byte{2, 0, 0}},
		{inFPDUs, append(write, 1)}, {weAsk | inFPDUs, bytes.Join([][]byte{write, send}, nil)},
	} {
		f.Add(row.how, row.in)
	}
	f.Fuzz(func(t *testing.T, how uint8, in []byte) {
		synctest.Test(t, func(t *testing.T) { playPeer(t, how, in) })
	})
}

// behindLength puts the length of an ULPDU before it.
func behindLength(b []byte) []byte { return append([]byte{byte(len(b))}, b...) }

func untagged(qn, msn uint32, op rdmap.Opcode, payload []byte) []byte {
	b := make([]byte, ddp.UntaggedHeaderLen)
	ddp.Untagged{Last: true, QN: qn, MSN: msn, Rsvd: [5]byte{rdmap.Control(op)}}.Put(b)
	return behindLength(append(b, payload...))
}

func tagged(op rdmap.Opcode, tag ddp.STag, to uint64, payload []byte) []byte {
	b := make([]byte, ddp.TaggedHeaderLen)
	ddp.Tagged{Last: true, Rsvd: rdmap.Control(op), STag: tag, TO: to}.Put(b)
	return behindLength(append(b, payload...))
}

// victim is a program with a QP on one end of a pipe.
type victim struct {
	dev  *rdma.Device
	qp   *rdma.QP
	mem  []byte
	mr   *rdma.MR
	done chan struct{} // closed when it has a session, or will not get one
	err  error
}

func newVictim(t *testing.T, how uint8) *victim {
	v := &victim{mem: bytes.Repeat([]byte{0xEE}, 4*regionLen), done: make(chan struct{})}
	v.dev = must.Get(rdma.NewDevice(nil, &rdma.Config{
		TCP: rdma.TCPConfig{NoCRC: how&noCRC != 0, Markers: how&markers != 0}}))(t)
	pd := v.dev.AllocPD()
	cq := must.Get(v.dev.CreateCQ(64))(t)
	v.mr = must.Get(pd.Register(v.mem[regionLen:2*regionLen],
		rdma.RemoteRead|rdma.RemoteWrite|rdma.LocalWrite, nil))(t)
	recv := must.Get(pd.Register(v.mem[3*regionLen:], rdma.LocalWrite, nil))(t)
	v.qp = must.Get(v.dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, MaxRecv: 4, MaxSend: 8}))(t)
	for i := range 4 {
		must.OK(t, v.qp.PostRecv(&rdma.RecvWR{ID: uint64(i), SGL: []rdma.SGE{recv.SGE(i*16, 16)}}))
	}
	return v
}

// join sets up its session over c, in either role.
func (v *victim) join(t *testing.T, c net.Conn, asks bool) {
	defer close(v.done)
	if asks {
		if _, v.err = v.qp.ConnectOver(t.Context(), c, nil); v.err == nil {
			v.err = v.qp.PostSend(&rdma.SendWR{Op: rdma.OpWrite, SGL: []rdma.SGE{v.mr.SGE(0, regionLen)}, RemoteSTag: 7})
		}
		return
	}
	var r *rdma.Request
	if r, v.err = v.dev.RequestOver(t.Context(), c); v.err == nil {
		v.err = r.Accept(v.qp, nil)
	}
}

// playPeer is the life of a connection.
func playPeer(t *testing.T, how uint8, in []byte) {
	v := newVictim(t, how)
	ours, theirs := net.Pipe()
	go v.join(t, ours, how&weAsk != 0)
	drained := make(chan struct{})
	go func() {
		io.Copy(io.Discard, theirs)
		close(drained)
	}()
	if how&inFPDUs != 0 {
		writePieces(theirs, how, startupFrame(how))
		in = v.frame(how, in)
	}
	synctest.Wait() // the Reply, or the victim's first FPDU, goes first
	writePieces(theirs, how, in)
	theirs.Close()
	<-v.done
	if v.err == nil {
		<-v.qp.Done()
	}
	must.OK(t, v.qp.Close())
	must.OK(t, v.dev.Close())
	ours.Close() // after a rejection it is the program's
	<-drained
	for i, b := range v.mem {
		if in := i / regionLen; b != 0xEE && in != 1 && in != 3 {
			t.Fatalf("octet %d of what was never registered is %#x", i, b)
		}
	}
}

// writePieces writes b, in small pieces if the peer does so, until the victim hangs up.
func writePieces(c net.Conn, how uint8, b []byte) {
	for n := 0; len(b) > 0; b = b[n:] {
		if n = len(b); how&piecemeal != 0 {
			n = min(n, 1+n%7)
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

// startupFrame is the peer's, in order.
func startupFrame(how uint8) []byte {
	f := mpa.Frame{CRC: how&noCRC == 0, Revision: mpa.Revision}
	if how&weAsk != 0 {
		f.IsReply, f.Revision = true, mpa.EnhancedRevision
		f.Setup = &llp.Setup{IRD: 8, ORD: 8, PeerToPeer: true, RTR: llp.RTRWrite}
	}
	return f.Append(nil)
}

// frame makes FPDUs of ULPDUs that each have their length before them.
func (v *victim) frame(how uint8, in []byte) (out []byte) {
	framer := mpa.Framer{MakesCRC: how&noCRC == 0, MakesMarkers: how&markers != 0}
	for len(in) > 0 {
		n := min(int(in[0]), len(in)-1)
		u := v.withRealSTags(bytes.Clone(in[1 : 1+n]))
		in = in[1+n:]
		var s ddp.Segment
		s.HeaderLen = copy(s.Header[:], u)
		s.Body[0] = u[s.HeaderLen:]
		var b mpa.Batch
		b.Reset()
		framer.Append(&b, &s)
		out = append(out, bytes.Join(b.Pieces(), nil)...)
	}
	return out
}

// withRealSTags puts that of the memory in place of 1.
func (v *victim) withRealSTags(u []byte) []byte {
	at := 2 // of a tagged segment
	if len(u) > 0 && !ddp.Control(u[0]).Tagged() {
		at = ddp.UntaggedHeaderLen + 16 // what a Read Request reads
	}
	if len(u) >= at+4 && binary.BigEndian.Uint32(u[at:]) == 1 {
		binary.BigEndian.PutUint32(u[at:], uint32(v.mr.STag()))
	}
	return u
}
