package model

import (
	"bytes"
	"cmp"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Road is a bottleneck between a sender that has always more to send and a peer.
type Road struct {
	Rate    int64         // octets a second
	Queue   int           // octets that wait in front of it; 0: any number
	Trip    time.Duration // without the queue
	Control cc.Factory
	Peer    Peer
	Window  func(now rawio.Time) int // a_rwnd of the peer, in octets; nil: one that nothing fills
	Message int                      // octets of a message; 0: as many as a packet has room for
	Trusted bool                     // the sender does not try its peer
}

// Peer answers: it is asked when a packet has come, and in each millisecond.
type Peer func(x *Exchange, came []wire.TSN)

// Exchange is what a peer sees. It is to be strong, so that it knows what the sender has sent, as if it had guessed.
type Exchange struct {
	Ticks int
	Cum   wire.TSN // of all that came
	s     *tx.Sender
	now   rawio.Time
	trip  time.Duration
	wnd   func(now rawio.Time) int
	got   map[wire.TSN]bool
	top   wire.TSN // the highest of got
	sacks []said

	asked  map[wire.TSN]bool // what a peer has said that it misses
	hidden wire.TSN          // and one that it has
	road   []carried
}

type said struct {
	at   rawio.Time
	sack func() wire.SackFields
}

type carried struct {
	at   rawio.Time
	tsns []wire.TSN
}

// Window returns the a_rwnd that the peer has to offer.
func (x *Exchange) Window() uint32 { return uint32(x.wnd(x.now)) }

// Got reports whether a TSN has come.
func (x *Exchange) Got(t wire.TSN) bool { return x.got[t] }

// Sent returns the highest TSN that the sender has sent.
func (x *Exchange) Sent() wire.TSN { return x.s.NextTSN() - 1 }

// Acked returns the Cumulative TSN Ack Point of the sender.
func (x *Exchange) Acked() wire.TSN { return x.s.CumTSN() }

// honest is the SACK of what came.
func (x *Exchange) honest(dups ...wire.TSN) wire.SackFields {
	k := wire.SackFields{CumTSN: x.Cum, ARwnd: x.Window(), Dups: dups}
	for t := x.Cum + 2; t.LessEq(x.top) && len(k.Gaps) < 300; t++ {
		if !x.Got(t) {
			continue
		}
		o := uint16(t - x.Cum)
		if n := len(k.Gaps); n > 0 && k.Gaps[n-1].End == o-1 {
			k.Gaps[n-1].End = o
		} else {
			k.Gaps = append(k.Gaps, wire.GapBlock{Start: o, End: o})
		}
	}
	return k
}

// Say sends a SACK.
func (x *Exchange) Say(k wire.SackFields) { x.Guess(func() wire.SackFields { return k }) }

// Guess sends a SACK of what will be true when it arrives.
func (x *Exchange) Guess(sack func() wire.SackFields) {
	x.sacks = append(x.sacks, said{x.now.Add(x.trip / 2), sack})
}

// Gained is what a peer was given.
type Gained struct {
	Sent, Again int        // octets of DATA chunks, and those of them that went again
	Packets     int        // that they came in
	Data        int        // octets of user data, each once
	Took        rawio.Time // until the end of it, or of the association
	Beyond      int        // by how much cwnd was more than an initial window and what was acknowledged, once
	Err         error      // of a SACK
}

const (
	roadMTU = 1480
	// window is the peer's.
	window = sendBuffer
)

// Carry has the sender send for so long, with numbers by chance from a seed.
func (r Road) Carry(t *testing.T, seed uint32, lasts time.Duration) (g Gained) {
	draw := func() uint32 {
		seed = seed*1664525 + 1013904223
		return seed >> 8
	}
	if r.Window == nil {
		r.Window = func(rawio.Time) int { return window }
	}
	cfg := tx.Config{TSN: firstTSN, SendBuffer: sendBuffer, MaxBurst: 4, Draw: draw}
	if r.Trusted {
		cfg.Draw = nil
	}
	s := tx.NewSender(cfg)
	p := tx.NewPath(netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:0"), roadMTU, rto, r.Control)
	p.State = tx.Active
	p.NoFarther(r.Trip) // the handshake has proved that
	must.OK(t, s.AddPath(p))
	s.SetPeer(uint32(r.Window(0)), 1)
	initial := p.CC().Window()
	x := &Exchange{Cum: firstTSN - 1, s: s, trip: r.Trip, wnd: r.Window, got: map[wire.TSN]bool{}, top: firstTSN - 1, asked: map[wire.TSN]bool{}}
	b := pack.NewBatch(1)
	body := bytes.Repeat([]byte{1}, cmp.Or(r.Message, s.MaxPayload()))
	var free rawio.Time              // when the bottleneck is
	acked := make(map[wire.TSN]bool) // at any time
	know := func(from, to wire.TSN) {
		for ; from.LessEq(to); from++ {
			acked[from] = true
		}
	}
	tick := rawio.Time(0)
	for end := rawio.Time(lasts); x.now < end; {
		for s.Enqueue(&tx.Message{Body: [2][]byte{body}}) == nil {
		}
		s.StartBurst(x.now)
		for p := s.Poll(x.now); p != nil; p = s.Poll(x.now) {
			b.Reset()
			b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
			before := s.Stats().Retransmits
			s.Fill(x.now, b, p)
			b.End()
			octets := b.Octets()
			g.Sent += octets
			g.Packets++
			if s.Stats().Retransmits > before {
				g.Again += octets
			}
			free = max(free, x.now)
			if r.Queue > 0 && int(int64(free-x.now)*r.Rate/int64(time.Second)) > r.Queue {
				continue
			}
			free = free.Add(time.Duration(int64(octets) * int64(time.Second) / r.Rate))
			x.road = append(x.road, carried{free.Add(r.Trip / 2), tsns(t, b.Pkts[0])})
		}
		next := min(s.NextTimeout(), tick)
		if len(x.road) > 0 {
			next = min(next, x.road[0].at)
		}
		if len(x.sacks) > 0 {
			next = min(next, x.sacks[0].at)
		}
		x.now = max(x.now, next)
		g.Took, g.Data = x.now, int(s.Stats().Chunks-s.Stats().Retransmits)*len(body)
		if x.now >= tick {
			tick += ms
			x.Ticks++
			r.Peer(x, nil)
		}
		for len(x.road) > 0 && x.road[0].at <= x.now {
			came := x.road[0].tsns
			x.road = x.road[1:]
			for _, t := range came {
				x.got[t] = true
				if x.top.Less(t) {
					x.top = t
				}
			}
			for x.Got(x.Cum + 1) {
				x.Cum++
			}
			r.Peer(x, came)
		}
		for len(x.sacks) > 0 && x.sacks[0].at <= x.now {
			k := x.sacks[0].sack()
			x.sacks = x.sacks[1:]
			cum := s.CumTSN()
			if _, g.Err = s.HandleSack(x.now, wire.Sack(wire.AppendSack(nil, k))); g.Err != nil {
				return g
			}
			for s.More() {
				s.Continue()
			}
			know(cum+1, s.CumTSN())
			for _, b := range k.Gaps {
				if !k.CumTSN.Less(cum) {
					know(k.CumTSN.Add(uint32(b.Start)), k.CumTSN.Add(uint32(b.End)))
				}
			}
			g.Beyond = max(g.Beyond, p.CC().Window()-initial-len(acked)*(wire.DataHeaderLen+len(body)))
		}
		if s.NextTimeout() <= x.now {
			s.HandleTimeout(x.now)
			for s.More() {
				s.Continue()
			}
		}
	}
	return g
}

func tsns(t *testing.T, p rawio.Packet) (list []wire.TSN) {
	it := wire.Packet(bytes.Join(p.Vec, nil)).Chunks()
	for c, ok := it.Next(); ok; c, ok = it.Next() {
		list = append(list, must.Get(wire.AsData(c))(t).TSN())
	}
	return list
}
