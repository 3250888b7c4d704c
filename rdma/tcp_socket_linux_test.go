package rdma

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/mpa"
)

// sockopt reads an option of TCP.
func sockopt(t *testing.T, c net.Conn, option int) (n int) {
	raw := must.Get(c.(*net.TCPConn).SyscallConn())(t)
	must.OK(t, raw.Control(func(fd uintptr) { n, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option) }))
	return n
}

// FPDUs have the length of TCP's segments, and leave at once: most segments then begin with one.
func TestFPDUsAreOfTheLengthOfSegments(t *testing.T) {
	// req 5044-5.1-1, 5044-5.1-2, 5044-5.1-4
	x := newTCPLab(t, nil)
	for _, mss := range []int{0, 1400} {
		d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
			if mss == 0 {
				return nil
			}
			return c.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, mss) })
		}}
		c := must.Get(d.Dial("tcp", x.addr.String()))(t)
		must.OK(t, c.(*net.TCPConn).SetNoDelay(false))
		a := newSide(t, x.a, nil, nil)
		b := x.answered()
		must.Do(a.qp.ConnectOver(ctx(t), c, nil))(t)
		<-b
		if emss := sockopt(t, c, unix.TCP_MAXSEG); mss > 0 { // else it grows with the window of the peer
			check.That(t, a.qp.MULPDU() == mpa.MULPDU(emss, false) && emss < mss, "EMSS %d, MULPDU %d", emss,
				a.qp.MULPDU())
		}
		check.That(t, mss > 0 || a.qp.MULPDU() > 10_000, "MULPDU %d over the loopback", a.qp.MULPDU())
		check.Equal(t, "TCP_NODELAY", sockopt(t, c, unix.TCP_NODELAY), 1)
		must.OK(t, a.qp.Close())
	}
}

// Where TCP does not say how long its segments are, the MTU of the interface lets expect it.
func TestLikelyLengthOfSegments(t *testing.T) {
	// req 5044-5.1-3
	lo := must.Get(net.InterfaceByName("lo"))(t)
	check.Equal(t, "IPv4", likelyEMSS(netip.MustParseAddr("127.0.0.1")), lo.MTU-20-20-12)
	if n := likelyEMSS(netip.IPv6Loopback()); n != 0 { // a host without IPv6 has none
		check.Equal(t, "IPv6", n, lo.MTU-40-20-12)
	}
	check.Equal(t, "an address of nobody", likelyEMSS(netip.MustParseAddr("192.0.2.1")), 0)
	c, _ := net.Pipe()
	check.Equal(t, "no TCP at all", (&tcpConn{nc: c}).firstEMSS(), 0)
}

// A large read buffer is kept while much comes, and given up afterwards.
func TestReadBuffersShrink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &lab{t: t, a: must.Get(NewDevice(nil, nil))(t), b: must.Get(NewDevice(nil, nil))(t)}
		defer x.a.Close()
		defer x.b.Close()
		ca, cb := net.Pipe()
		a, b := x.joinOver(t, ca, cb)
		much := func() {
			b.recv(1, 0, 8)
			for range 20 {
				a.post(SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(0, 1<<20)}, RemoteSTag: b.mr.STag()})
				a.good()
			}
			a.post(SendWR{Op: OpImm})
			a.good()
			b.good()
		}
		tc := b.qp.peer.Load().conn.(*tcpConn)
		charged := func() (n int64) {
			tc.peek(func() { n = tc.readCharge })
			return n
		}
		much()
		must.That(t, charged() == largeReadBuffer && x.b.tcp.readMemory.UsedUnits() == largeReadBuffer,
			"%d octets are charged", charged())
		time.Sleep(2 * shrinkAfter) // of the bubble
		check.Equal(t, "charged when nothing comes", charged(), 0)
		check.Equal(t, "octets of all", x.b.tcp.readMemory.UsedUnits(), 0)
		x.b.tcp.readMemory.Max = 0 // there is no more
		much()
		check.Equal(t, "charged where there is no memory", charged(), 0)
	})
}

// Nothing is allocated for a message, once the buffers have their length.
func TestMessagesOverTCPAllocateNothing(t *testing.T) {
	a, b := newTCPLab(t, nil).join(nil)
	sgl := []SGE{a.mr.SGE(0, 20_000)}
	wr := SendWR{Op: OpWriteImm, SGL: sgl, RemoteSTag: b.mr.STag()}
	recv := RecvWR{SGL: []SGE{b.mr.SGE(0, 8)}}
	var wcs [1]WC
	wait := func(s *side) {
		for {
			if n, _ := s.cq.Poll(wcs[:]); n > 0 {
				return
			}
			s.cq.Arm(false)
			if n, _ := s.cq.Poll(wcs[:]); n > 0 {
				return
			}
			<-s.cq.Ready()
		}
	}
	once := func() {
		b.qp.PostRecv(&recv)
		a.qp.PostSend(&wr)
		wait(a)
		wait(b)
	}
	for range 100 {
		once()
	}
	n := testing.AllocsPerRun(200, once)
	check.That(t, n < 1, "%v allocations a message", n)
}
