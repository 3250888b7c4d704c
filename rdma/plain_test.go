package rdma

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp"
)

// A program that has RDMA uses SCTP as such over the same link, in the same moment, with the same
// peer: endpoints that are restricted to DDP and others that are not live beside each other (RFC
// 5043 sections 5.1, 11.1).
func TestPlainSCTPBesideRDMA(t *testing.T) {
	// req 5043-5.1-2: other traffic has an association of its own
	x := newLab(t, nil)
	a, b := x.join(nil)
	l := must.Get(x.b.Transport().Listen(77, nil))(t)
	conn := must.Get(x.a.Transport().Dial(ctx(t), netip.AddrPortFrom(x.addr.Addr(), 77), nil))(t)
	defer conn.Close()
	far := must.Get(l.Accept(ctx(t)))(t)
	defer far.Close()
	for i := range 20 {
		b.recv(1, 100, 10)
		must.Do(conn.WriteMsg([]byte("plain"), sctp.SendInfo{Stream: 1, PPID: 99}))(t)
		a.post(SendWR{Op: OpWrite, Flags: Unsignaled, Inline: []byte{byte(i)}, RemoteSTag: b.mr.STag()})
		a.post(SendWR{Op: OpSend, Inline: []byte("direct")})
		var m [100]byte
		n, info, err := far.ReadMsg(m[:])
		must.That(t, err == nil && string(m[:n]) == "plain" && info.PPID == 99 && info.Stream == 1, "%q, %+v, %v",
			m[:n], info, err)
		wc := b.good()
		must.That(t, wc.ByteLen == 6 && string(b.buf[100:106]) == "direct" && b.buf[0] == byte(i), "%+v, %q", wc,
			b.buf[100:106])
		a.good()
	}
	// The end of one is nothing to the other.
	must.OK(t, conn.Close())
	b.recv(1, 100, 10)
	a.post(SendWR{Op: OpSend, Inline: []byte("still here")})
	b.good()
}

// What is posted together leaves in one packet: an RDMA Write and the Send that tells of it (RFC
// 5043 section 11.2). Alone, neither waits for anything.
func TestWriteAndSendShareAPacket(t *testing.T) {
	a, b := newLab(t, &Config{SCTP: sctp.Config{DisablePMTUD: true}}).join(nil)
	data := func() (packets, chunks uint64) {
		s := a.qp.peer.Load().sctp().c.Stats()
		return s.PacketsOut, s.DataOut
	}
	for range 5 {
		b.recv(1, 0, 10)
		packets, chunks := data()
		n, err := a.qp.PostSendList([]SendWR{
			{Op: OpWrite, Flags: Unsignaled, Inline: []byte("short"), RemoteSTag: b.mr.STag()},
			{Op: OpSend, Inline: []byte("told")}})
		must.That(t, n == 2 && err == nil, "%v, %v", n, err)
		n, err = a.qp.PostSendList([]SendWR{{Op: OpSend, SGL: make([]SGE, 1000)}})
		check.That(t, n == 0 && err != nil, "one that cannot be: %d posted, %v", n, err)
		p, c := data()
		check.That(t, p-packets == 1 && c-chunks == 2, "%d segments in %d packets, want 2 in 1", c-chunks, p-packets)
		b.good()
		a.good()
	}
}

// Both programs ask for as many Reads as their depth allows, and more wait behind: each answers the
// other and none waits for ever.
func TestBothEndsReadAtFullDepth(t *testing.T) {
	const reads, size = 200, 5000
	for _, depth := range []int{1, 16, 256} {
		a, b := newLab(t, nil).join(func(c *QPConfig) { c.IRD, c.ORD, c.MaxSend = depth, depth, reads })
		fill(a.buf[:size], 1)
		fill(b.buf[:size], 2)
		for i := range reads {
			for _, x := range [][2]*side{{a, b}, {b, a}} {
				x[0].post(SendWR{ID: uint64(i), Op: OpRead, SGL: []SGE{x[0].mr.SGE((i%100+1)*size, size)},
					RemoteSTag: x[1].mr.STag()})
			}
		}
		for i := range reads {
			for _, x := range []*side{a, b} {
				wc := x.good()
				must.That(t, wc.ID == uint64(i), "depth %d: %+v, want Read %d", depth, wc, i)
			}
		}
		for i := 1; i <= 100; i++ {
			must.That(t, string(a.buf[i*size:(i+1)*size]) == string(b.buf[:size]) &&
				string(b.buf[i*size:(i+1)*size]) == string(a.buf[:size]), "depth %d: what was read differs", depth)
		}
	}
}
