package rdma

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/wire"
)

// When the end of a region returns, its memory is the program's: what was sent from it and is lost
// is sent again as it was, whatever is written there now.
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
			link := new(mempair.LossyLink)
			x := newLabOver(t, &Config{SCTP: sctp.Config{RTOInitial: rto, RTOMin: rto}},
				func(la, _ *mem.Link) rawio.Link { link.Link = la; return link })
			a, b := x.join(nil)
			source := fill(make([]byte, 1000), 5)
			want := bytes.Clone(source)
			mr := must.Get(a.pd.Register(source, 0, nil))(t)
			link.Lose.Store(true)
			a.post(SendWR{ID: 1, Op: OpWrite, SGL: []SGE{mr.SGE(0, len(source))}, RemoteSTag: b.mr.STag()})
			must.OK(t, row.end(mr))
			clear(source)
			must.That(t, link.Lost.Load() != 0, "nothing was sent before")
			link.Lose.Store(false)
			a.good()
			check.That(t, bytes.Equal(b.buf[:len(want)], want), "the peer has got what was written afterwards")
		})
	}
}

// A server that restarts ends the sessions of the association, and with the last of them the
// association: the client does not keep it for nothing, and the server cannot keep the client from
// ending it.
func TestRestartEndsAnAssociationThatHasNoSession(t *testing.T) {
	link, lb := &mempair.TapLink{Sent: make(chan wire.Packet, 1000)}, (*mem.Link)(nil)
	x := newLabOver(t, nil, func(a, b *mem.Link) rawio.Link { link.Link, lb = a, b; return link })
	a, _ := x.join(nil)
	p := a.qp.peer.Load().sctp()
	const tag = 0x0BAD0BAD
	port := p.a.LocalPort()
	say := func(vtag uint32, chunk []byte) {
		pkt := append(wire.AppendHeader(nil, DefaultPort, port, vtag), chunk...)
		wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
		must.Do(lb.WriteBatch([]rawio.Packet{{Vec: [][]byte{pkt}, Local: netip.AddrPortFrom(x.addr.Addr(), 0),
			Remote: netip.AddrPortFrom(link.LocalAddrs()[0].Addr(), 0)}}))(t)
	}
	in := wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: tag, ARwnd: 1 << 20, OutStreams: 1, InStreams: 1,
		TSN: 1})
	say(0, wire.CloseChunk(wire.AppendAdaptationIndication(in, ddpadapt.AdaptationDDP), 0))
	ack := must.Get(wire.AsInit(link.First(ctx(t), tag, wire.ChunkInitAck)))(t)
	ps := ack.Params()
	for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
		if prm.Type() == wire.ParamStateCookie {
			say(ack.Tag(), wire.AppendCookieEcho(nil, prm.Value()))
		}
	}
	must.That(t, link.First(ctx(t), tag, wire.ChunkShutdown) != nil, "no SHUTDOWN")
	check.Error(t, "the queue pair ended", a.qp.Err(), ddpadapt.ErrRestarted)
}
