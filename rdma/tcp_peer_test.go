package rdma

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// rawPeer is the other end of a connection in the test's hands: it writes octets, and reads FPDUs.
type rawPeer struct {
	t      *testing.T
	nc     net.Conn
	framer mpa.Framer
	msn    uint32
}

// dialRaw connects to the listener of the lab.
func (x *lab) dialRaw() *rawPeer {
	nc := must.Get(net.Dial("tcp", x.addr.String()))(x.t)
	x.t.Cleanup(func() { nc.Close() })
	return &rawPeer{t: x.t.(*testing.T), nc: nc, framer: mpa.Framer{MakesCRC: true}}
}

// ask sends a Request and takes the Reply.
func (r *rawPeer) ask() {
	f := mpa.Frame{CRC: true, Revision: mpa.Revision}
	must.Do(r.nc.Write(f.Append(nil)))(r.t)
	b := make([]byte, mpa.FrameHeaderLen)
	must.Do(io.ReadFull(r.nc, b))(r.t)
	got, n, err := mpa.ParseFrame(b, true)
	must.That(r.t, err == nil && n == len(b) && !got.Rejected, "Reply %+v, %v", got, err)
}

// fpdu is an FPDU with an untagged message.
func (r *rawPeer) fpdu(qn uint32, op rdmap.Opcode, payload []byte) []byte {
	var s ddp.Segment
	r.msn++
	s.HeaderLen = ddp.Untagged{Last: true, QN: qn, MSN: r.msn, Rsvd: [5]byte{rdmap.Control(op)}}.Put(s.Header[:])
	s.Body[0] = payload
	var b mpa.Batch
	b.Reset()
	r.framer.Append(&b, &s)
	return bytes.Join(b.Pieces(), nil)
}

// take reads one FPDU, and returns its ULPDU.
func (r *rawPeer) take() []byte {
	var head [2]byte
	must.Do(io.ReadFull(r.nc, head[:]))(r.t)
	n := int(binary.BigEndian.Uint16(head[:]))
	b := make([]byte, (n+2+3)&^3+4-2)
	must.Do(io.ReadFull(r.nc, b))(r.t)
	return b[:n]
}

// ends checks that the other end closes the connection.
func (r *rawPeer) ends(name string) {
	r.t.Helper()
	must.OK(r.t, r.nc.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := io.Copy(io.Discard, r.nc)
	check.That(r.t, !errors.Is(err, os.ErrDeadlineExceeded), "%s: the connection is not closed: %v", name, err)
}

// accepted answers the next request by a QP of device b.
func (x *lab) accepted() *side {
	b := newSide(x.t, x.b, nil, nil)
	r := must.Get(x.l.Accept(ctx(x.t)))(x.t)
	must.OK(x.t, r.Accept(b.qp, nil))
	return b
}

// answered has the next request answered while the caller asks.
func (x *lab) answered() <-chan *side {
	c := make(chan *side, 1)
	go func() { c <- x.accepted() }()
	return c
}

func TestMalformedStartupsOverTCP(t *testing.T) {
	x := newTCPLab(t, nil)
	ask := mpa.Frame{CRC: true, Revision: mpa.Revision, Private: []byte("hi")}
	request := ask.Append(nil)
	for _, row := range []struct {
		name string
		in   []byte
	}{
		{"another protocol", []byte("GET / HTTP/1.1\r\n\r\n")},
		{"a Reply", (&mpa.Frame{IsReply: true, Revision: 1}).Append(nil)},
		{"revision 9", append(append(bytes.Clone(request[:17]), 9), request[18:]...)},
		{"more than private data", append(bytes.Clone(request), 0)},
		{"a FIN in the middle", request[:10]},
	} {
		r := x.dialRaw()
		must.Do(r.nc.Write(row.in))(t)
		if row.name == "a FIN in the middle" {
			must.OK(t, r.nc.(*net.TCPConn).CloseWrite())
		}
		r.ends(row.name)
	}
	must.OK(t, x.b.Wait(ctx(t)))
	s := x.b.Stats().TCP
	check.That(t, s.Connections == 5 && s.StartupFaults == 4, "%+v", s)
}

func TestInvalidFPDUsOverTCP(t *testing.T) {
	// The peer hears of it in a Terminate with the code of MPA, and TCP is closed behind that.
	x := newTCPLab(t, nil)
	r := x.dialRaw()
	side := x.answered()
	r.ask()
	b := <-side
	b.recv(1, 0, 100)
	must.Do(r.nc.Write(r.fpdu(rdmap.QueueSend, rdmap.OpSend, []byte("good"))))(t)
	check.Equal(t, "receives", b.good().ByteLen, 4)
	bad := r.fpdu(rdmap.QueueSend, rdmap.OpSend, []byte("bad"))
	bad[25] ^= 1
	must.Do(r.nc.Write(bad))(t)
	u := r.take()
	tm := must.Get(rdmap.ParseTerminate(u[ddp.UntaggedHeaderLen:]))(t)
	check.That(t, tm.Layer == rdmap.LayerLLP && tm.EType == rdmap.ETypeMPA && tm.Code == rdmap.CodeMPACRC, "%+v", tm)
	n, err := r.nc.Read(make([]byte, 1))
	check.That(t, n == 0 && err == io.EOF, "behind the Terminate: %d octets, %v", n, err)
	r.nc.Close()
	<-b.qp.Done()
	var e *mpa.Error
	check.That(t, errors.As(b.qp.Err(), &e) && e.Code == mpa.CodeCRC && x.b.Stats().Faults.CRC == 1, "%v", b.qp.Err())
}

// What a peer does to a connection that is set up, and what the QP says of it.
func TestEndsOfConnections(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(r *rawPeer)
		want func(err error) bool
	}{
		{"reset", func(r *rawPeer) { r.nc.(*net.TCPConn).SetLinger(0); r.nc.Close() },
			func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		{"a FIN in an FPDU", func(r *rawPeer) {
			r.nc.Write(r.fpdu(rdmap.QueueSend, rdmap.OpSend, []byte("good"))[:9])
			r.nc.Close()
		}, func(err error) bool { return errors.Is(err, mpa.ErrTruncated) }},
		{"a FIN", func(r *rawPeer) { r.nc.Close() }, func(err error) bool { return err == nil }},
	} {
		x := newTCPLab(t, nil)
		r := x.dialRaw()
		side := x.answered()
		r.ask()
		b := <-side
		row.end(r)
		<-b.qp.Done()
		check.That(t, row.want(b.qp.Err()) && b.qp.State() == StateError, "%s: %v, state %v", row.name, b.qp.Err(),
			b.qp.State())
	}
}

// untilTCPIsFull polls completions until a goroutine waits for TCP, and returns how many there
// were.
func (s *side) untilTCPIsFull() (polled int) {
	c := s.qp.peer.Load().conn.(*tcpConn)
	var before uint64
	for same := 0; same < 20; time.Sleep(time.Millisecond) {
		var wcs [8]WC
		n := must.Get(s.cq.Poll(wcs[:]))(s.t)
		polled += n
		c.peek(func() {
			if out := c.core.Stats().FPDUsOut; !c.isWriting || n > 0 || out != before {
				same, before = 0, out
			}
		})
		same++
	}
	return polled
}

// A peer that does not read keeps nobody from anything: memory comes back, and the QP can be
// closed.
func TestPeerThatDoesNotRead(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(t *testing.T, b *side)
	}{
		{"Deregister", func(t *testing.T, b *side) { must.OK(t, b.mr.Deregister()) }},
		{"Invalidate", func(t *testing.T, b *side) { b.mr.Invalidate() }},
		{"Close", func(t *testing.T, b *side) { must.OK(t, b.qp.Close()) }},
		{"an error of the peer", nil},
	} {
		x := newTCPLab(t, &Config{TCP: TCPConfig{LingerTimeout: 50 * time.Millisecond}})
		r := x.dialRaw()
		side := x.answered()
		r.ask()
		b := <-side
		b.recv(1, 0, 100)
		must.Do(r.nc.Write(r.fpdu(rdmap.QueueSend, rdmap.OpSend, []byte("hello"))))(t)
		b.good()
		for range 100 { // far more than TCP takes
			b.post(SendWR{Op: OpWrite, SGL: []SGE{b.mr.SGE(0, 1<<20)}, RemoteSTag: 1})
		}
		flushed := 100
		flushed -= b.untilTCPIsFull()
		if row.do != nil {
			row.do(t, b)
			if row.name != "Close" {
				clear(b.buf) // the program's again
				must.OK(t, b.qp.Close())
			}
		} else {
			bad := r.fpdu(rdmap.QueueSend, rdmap.OpSend, nil)
			bad[3] ^= 1
			must.Do(r.nc.Write(bad))(t)
		}
		for range flushed {
			wc := b.wc() // TCP may have taken some more
			check.That(t, wc.Status != rdmap.StatusSuccess || row.name != "Close",
				"a request has succeeded after Close")
		}
		<-b.qp.Done()
	}
}

// What a peer has not read yet goes out as it was when the program had its memory back, or not at
// all.
func TestMemoryThatIsBackIsNotSent(t *testing.T) {
	x := newTCPLab(t, nil)
	r := x.dialRaw()
	side := x.answered()
	r.ask()
	b := <-side
	fill(b.buf, 1)
	b.recv(1, 0, 100)
	must.Do(r.nc.Write(r.fpdu(rdmap.QueueSend, rdmap.OpSend, nil)))(t)
	b.good()
	for range 100 {
		b.post(SendWR{Op: OpWrite, Flags: Unsignaled, SGL: []SGE{b.mr.SGE(0, 1<<20)}, RemoteSTag: 1})
	}
	b.untilTCPIsFull()
	must.OK(t, b.mr.Deregister())
	clear(b.buf)
	d, buf, have := mpa.Deframer{ChecksCRC: true}, make([]byte, 1<<20), 0
	for terminated := false; !terminated; {
		have += must.Get(r.nc.Read(buf[have:]))(t)
		for at := 0; ; {
			u, n := must.Two(d.Next(buf[at:have]))(t) // with the CRC of what the memory had
			if n == 0 {
				have = copy(buf, buf[at:have])
				break
			}
			at += n
			terminated = terminated || rdmap.Opcode(u[1]&15) == rdmap.OpTerminate
		}
	}
}

// Two ends that read from each other at full depth do not block each other, whatever the length.
func TestBothEndsAnswerReads(t *testing.T) {
	a, b := newTCPLab(t, nil).join(func(c *QPConfig) { c.IRD, c.ORD = 16, 16 })
	const reads = 64
	for _, s := range []*side{a, b} {
		peer := map[*side]*side{a: b, b: a}[s]
		for range reads {
			s.post(SendWR{Op: OpRead, SGL: []SGE{s.mr.SGE(0, 1<<20)}, RemoteSTag: peer.mr.STag()})
		}
	}
	for range reads {
		a.good()
		b.good()
	}
}

func TestConnectionsThatSayNothing(t *testing.T) {
	x := newTCPLab(t, &Config{Limits: Limits{MaxRequests: 4}, TCP: TCPConfig{StartupTimeout: 200 * time.Millisecond}})
	var silent []*rawPeer
	for range 8 {
		silent = append(silent, x.dialRaw())
	}
	for i, r := range silent {
		r.ends(string(rune('0' + i)))
	}
	must.OK(t, x.b.Wait(ctx(t)))
	s := x.b.Stats().TCP
	check.That(t, s.Dropped >= 4 && s.StartupTimeouts >= 1 && s.StartupTimeouts+s.Dropped == 8, "%+v", s)
	a := newSide(t, x.a, nil, nil)
	must.Do(x.connect(a.qp, nil, func(r *Request) error { return r.Accept(newSide(t, x.b, nil, nil).qp, nil) }))(t)
}

func TestInitiatorWaitsALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := must.Get(NewDevice(nil, nil))(t)
		defer d.Close()
		for _, whose := range []string{"the Device's", "the context's"} {
			a := newSide(t, d, nil, nil)
			c, _ := net.Pipe()
			until, cancel := context.WithTimeout(context.Background(),
				map[string]time.Duration{"the Device's": time.Hour,
					"the context's": time.Second}[whose])
			began := time.Now()
			_, err := a.qp.ConnectOver(until, c, nil)
			took := time.Since(began)
			cancel()
			if whose == "the Device's" {
				check.That(t, errors.Is(err, mpa.ErrStartupTimeout) && took == 10*time.Second, "%v after %v", err, took)
			} else {
				check.That(t, errors.Is(err, context.DeadlineExceeded) && took == time.Second, "%v after %v", err, took)
			}
		}
	})
}

func TestIdleQPsOverTCP(t *testing.T) {
	// req 5044-7.1.2-27
	x := newTCPLab(t, &Config{IdleTimeout: 100 * time.Millisecond})
	a, b := x.join(nil)
	for _, s := range []*side{a, b} {
		select {
		case <-s.qp.Done():
		case <-time.After(5 * time.Second):
			t.Fatal("a QP on which nothing happens goes on")
		}
	}
	check.That(t, errors.Is(a.qp.Err(), ErrIdle) || errors.Is(b.qp.Err(), ErrIdle), "%v, %v", a.qp.Err(), b.qp.Err())
	must.OK(t, x.a.Wait(ctx(t)))
}

// Private data, limits and states are refused over TCP as they are over SCTP.
func TestArgumentsOverTCP(t *testing.T) {
	x := newTCPLab(t, nil)
	a := newSide(t, x.a, nil, nil)
	_, err := a.qp.Connect(ctx(t), x.addr, make([]byte, 509))
	check.Equal(t, "509 octets", err, llp.ErrPrivateDataTooLong)
	_, err = a.qp.Dial(ctx(t), "sctp", x.addr.String(), nil)
	check.Equal(t, "SCTP without a link", err, ErrNoLink)
	_, err = a.qp.Dial(ctx(t), "udp", x.addr.String(), nil)
	check.That(t, errors.As(err, new(UnknownNetworkError)), "udp: %v", err)
	_, err = x.a.ListenOn("unix", "/tmp/x")
	check.That(t, errors.As(err, new(UnknownNetworkError)), "unix: %v", err)
	_, err = x.a.ListenOn("tcp", x.addr.String())
	check.That(t, errors.Is(err, syscall.EADDRINUSE), "an address that is taken: %v", err)
	must.Do(x.connect(a.qp, nil, func(r *Request) error { return r.Accept(newSide(t, x.b, nil, nil).qp, nil) }))(t)
	_, err = a.qp.Connect(ctx(t), x.addr, nil)
	check.Equal(t, "a QP that is connected", err, ErrInUse)
	check.That(t, x.a.Transport() == nil && a.qp.Paths() == nil && a.qp.MULPDU() > 1000, "MULPDU %d", a.qp.MULPDU())
	_, ok := a.qp.Stats()
	s, some := a.qp.StreamStats()
	check.That(t, !ok && some && s.Out > 0, "%v, %+v", ok, s)
	snap := x.a.Snapshot()
	check.That(t, len(snap.QPs) == 1 && snap.QPs[0].SCTP == -1 && snap.QPs[0].Remote == x.addr &&
		snap.Associations == nil,
		"%+v", snap.QPs)
	must.OK(t, x.a.Close())
	_, err = newSide(t, x.a, nil, nil).qp.Connect(ctx(t), x.addr, nil)
	check.Equal(t, "after Close", err, net.ErrClosed)
	_, err = x.a.ListenOn("tcp", "127.0.0.1:0")
	check.Equal(t, "Listen after Close", err, net.ErrClosed)
}
