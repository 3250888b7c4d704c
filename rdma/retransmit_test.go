package rdma

import (
	"bytes"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/mempair"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/wire"
)

// losing is a link that loses what it is to send, while it is told to.
type losing struct {
	*mem.Link
	lose atomic.Bool
	lost atomic.Int32
}

func (l *losing) WriteBatch(pkts []rawio.Packet) (int, error) {
	if !l.lose.Load() {
		return l.Link.WriteBatch(pkts)
	}
	l.lost.Add(int32(len(pkts)))
	return len(pkts), nil
}

// When the end of a region returns, its memory is the program's: what was sent from it and is lost is sent again as it
// was, whatever is written there now.
func TestLostWriteIsSentAgainAsItWas(t *testing.T) {
	const rto = 20 * time.Millisecond
	for _, row := range []struct {
		name string
		end  func(mr *MR) error
	}{
		{"Invalidate", func(mr *MR) error { mr.Invalidate(); return nil }},
		{"Reregister", func(mr *MR) error { return mr.Reregister(make([]byte, 10), LocalWrite, 0) }},
		{"Deregister", (*MR).Deregister},
	} {
		t.Run(row.name, func(t *testing.T) {
			la, lb := mempair.New(t, mem.Options{MTU: 1500})
			link := &losing{Link: la}
			cfg := &Config{SCTP: sctp.Config{RTOInitial: rto, RTOMin: rto}}
			x := &lab{t: t, addr: netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), DefaultPort)}
			x.a = must.Get(NewDevice(link, cfg))(t)
			defer x.a.Close()
			x.b = must.Get(NewDevice(lb, cfg))(t)
			defer x.b.Close()
			x.l = must.Get(x.b.Listen(DefaultPort))(t)
			a, b := x.join(nil)
			source := fill(make([]byte, 1000), 5)
			want := bytes.Clone(source)
			mr := must.Get(a.pd.Register(source, 0, nil))(t)
			link.lose.Store(true)
			a.post(SendWR{ID: 1, Op: OpWrite, SGL: []SGE{mr.SGE(0, len(source))}, RemoteSTag: b.mr.STag()})
			must.OK(t, row.end(mr))
			clear(source)
			must.That(t, link.lost.Load() != 0, "nothing was sent before")
			link.lose.Store(false)
			a.good()
			check.That(t, bytes.Equal(b.buf[:len(want)], want), "the peer has got what was written afterwards")
		})
	}
}

// tapped is a link that shows what it sends.
type tapped struct {
	*mem.Link
	sent chan wire.Packet
}

func (l *tapped) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		select {
		case l.sent <- slices.Concat(pkts[i].Vec...):
		default:
		}
	}
	return l.Link.WriteBatch(pkts)
}

// waits for a packet that begins with such a chunk.
func (l *tapped) first(t *testing.T, tag uint32, want wire.ChunkType) wire.Chunk {
	t.Helper()
	for end := ctx(t).Done(); ; {
		select {
		case pkt := <-l.sent:
			cs := pkt.Chunks()
			if c, _ := cs.Next(); pkt.VTag() == tag && c.Type() == want {
				return c
			}
		case <-end:
			t.Fatalf("no %v", want)
		}
	}
}

// A server that restarts ends the sessions of the association, and with the last of them the association: the client does
// not keep it for nothing, and the server cannot keep the client from ending it.
func TestRestartEndsAnAssociationThatHasNoSession(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	link := &tapped{Link: la, sent: make(chan wire.Packet, 1000)}
	x := &lab{t: t, addr: netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), DefaultPort)}
	x.a = must.Get(NewDevice(link, nil))(t)
	defer x.a.Close()
	x.b = must.Get(NewDevice(lb, nil))(t)
	defer x.b.Close()
	x.l = must.Get(x.b.Listen(DefaultPort))(t)
	a, _ := x.join(nil)
	p := a.qp.peer.Load()
	const tag = 0x0BAD0BAD
	port := p.a.LocalPort()
	say := func(vtag uint32, chunk []byte) {
		pkt := append(wire.AppendHeader(nil, DefaultPort, port, vtag), chunk...)
		wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
		must.Do(lb.WriteBatch([]rawio.Packet{{Vec: [][]byte{pkt}, Local: netip.AddrPortFrom(x.addr.Addr(), 0), Remote: netip.AddrPortFrom(la.LocalAddrs()[0].Addr(), 0)}}))(t)
	}
	in := wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: tag, ARwnd: 1 << 20, OutStreams: 1, InStreams: 1, TSN: 1})
	say(0, wire.CloseChunk(wire.AppendAdaptationIndication(in, ddpadapt.AdaptationDDP), 0))
	ack := must.Get(wire.AsInit(link.first(t, tag, wire.ChunkInitAck)))(t)
	ps := ack.Params()
	for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
		if prm.Type() == wire.ParamStateCookie {
			say(ack.Tag(), wire.AppendCookieEcho(nil, prm.Value()))
		}
	}
	link.first(t, tag, wire.ChunkShutdown)
	check.Error(t, "the queue pair ended", a.qp.Err(), ddpadapt.ErrRestarted)
}
