package model

import (
	"bytes"
	"cmp"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Bottleneck is a bottleneck between a sender that has always more to send and a peer.
type Bottleneck struct {
	Rate        int64         // octets a second
	QueueOctets int           // octets that wait in front of it; 0: any number
	Trip        time.Duration // without the queue
	Control     cc.Factory
	Peer        Peer
	Window      func(now rawio.Time) int // a_rwnd of the peer, in octets; nil: one that nothing fills
	Message     int                      // octets of a message; 0: as many as a packet has room for
	TrustsPeer  bool                     // the sender does not try its peer
}

// Peer answers: it is asked when a packet has come, and in each millisecond.
type Peer func(x *PeerView, came []wire.TSN)

// PeerView is what a peer sees. It is to be strong, so that it knows what the sender has sent, as
// if it had guessed.
type PeerView struct {
	Ticks           int
	Cum             wire.TSN // of all that came
	s               *tx.Sender
	now             rawio.Time
	rtt             time.Duration
	windowFunc      func(now rawio.Time) int
	received        map[wire.TSN]bool
	highestReceived wire.TSN // the highest of got
	pendingSacks    []timedSack

	reportedMissing map[wire.TSN]bool // what a peer has said that it misses
	hiddenTSN       wire.TSN          // and one that it has
	inTransit       []timedPacket
}

type timedSack struct {
	at   rawio.Time
	sack func() wire.SackFields
}

type timedPacket struct {
	at   rawio.Time
	tsns []wire.TSN
}

// Window returns the a_rwnd that the peer has to offer.
func (x *PeerView) Window() uint32 { return uint32(x.windowFunc(x.now)) }

// HasReceived reports whether a TSN has come.
func (x *PeerView) HasReceived(t wire.TSN) bool { return x.received[t] }

// HighestSent returns the highest TSN that the sender has sent.
func (x *PeerView) HighestSent() wire.TSN { return x.s.NextTSN() - 1 }

// Acked returns the Cumulative TSN Ack Point of the sender.
func (x *PeerView) Acked() wire.TSN { return x.s.CumTSN() }

// honestSack is the SACK of what came.
func (x *PeerView) honestSack(dups ...wire.TSN) wire.SackFields {
	k := wire.SackFields{CumTSN: x.Cum, ARwnd: x.Window(), Dups: dups}
	for t := x.Cum + 2; t.LessEq(x.highestReceived) && len(k.Gaps) < 300; t++ {
		if !x.HasReceived(t) {
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

// SendSack sends a SACK.
func (x *PeerView) SendSack(k wire.SackFields) {
	x.SendSackOnArrival(func() wire.SackFields { return k })
}

// SendSackOnArrival sends a SACK of what will be true when it arrives.
func (x *PeerView) SendSackOnArrival(sack func() wire.SackFields) {
	x.pendingSacks = append(x.pendingSacks, timedSack{x.now.Add(x.rtt / 2), sack})
}

// TransferResult is what a peer was given.
type TransferResult struct {
	SentOctets, ResentOctets int        // octets of DATA chunks, and those of them that went again
	Packets                  int        // that they came in
	Data                     int        // octets of user data, each once
	EndAt                    rawio.Time // until the end of it, or of the association
	// by how much cwnd was more than an initial window and what was acknowledged, once
	CwndExcess int
	Err        error // of a SACK
}

const (
	bottleneckMTU = 1480
	// peerWindow is the peer's.
	peerWindow = sendBuffer
)

// Transfer has the sender send for so long, with random numbers from a seed.
func (r Bottleneck) Transfer(t *testing.T, seed uint32, lasts time.Duration) (g TransferResult) {
	draw := func() uint32 {
		seed = seed*1664525 + 1013904223
		return seed >> 8
	}
	if r.Window == nil {
		r.Window = func(rawio.Time) int { return peerWindow }
	}
	cfg := tx.Config{TSN: firstTSN, SendBuffer: sendBuffer, MaxBurst: 4, Rand: draw}
	if r.TrustsPeer {
		cfg.Rand = nil
	}
	s := tx.NewSender(cfg)
	p := tx.NewPath(netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:0"), bottleneckMTU, rto, r.Control)
	p.State = tx.Active
	p.BoundProvedRTT(r.Trip) // the handshake has proved that
	must.OK(t, s.AddPath(p))
	s.SetPeer(uint32(r.Window(0)), 1)
	initial := p.CC().Window()
	x := &PeerView{Cum: firstTSN - 1, s: s, rtt: r.Trip, windowFunc: r.Window, received: map[wire.TSN]bool{},
		highestReceived: firstTSN - 1, reportedMissing: map[wire.TSN]bool{}}
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
			g.SentOctets += octets
			g.Packets++
			if s.Stats().Retransmits > before {
				g.ResentOctets += octets
			}
			free = max(free, x.now)
			if r.QueueOctets > 0 && int(int64(free-x.now)*r.Rate/int64(time.Second)) > r.QueueOctets {
				continue
			}
			free = free.Add(time.Duration(int64(octets) * int64(time.Second) / r.Rate))
			x.inTransit = append(x.inTransit, timedPacket{free.Add(r.Trip / 2), packetTSNs(t, b.Pkts[0])})
		}
		next := min(s.NextTimeout(), tick)
		if len(x.inTransit) > 0 {
			next = min(next, x.inTransit[0].at)
		}
		if len(x.pendingSacks) > 0 {
			next = min(next, x.pendingSacks[0].at)
		}
		x.now = max(x.now, next)
		g.EndAt, g.Data = x.now, int(s.Stats().Chunks-s.Stats().Retransmits)*len(body)
		if x.now >= tick {
			tick += ms
			x.Ticks++
			r.Peer(x, nil)
		}
		for len(x.inTransit) > 0 && x.inTransit[0].at <= x.now {
			came := x.inTransit[0].tsns
			x.inTransit = x.inTransit[1:]
			for _, t := range came {
				x.received[t] = true
				if x.highestReceived.Less(t) {
					x.highestReceived = t
				}
			}
			for x.HasReceived(x.Cum + 1) {
				x.Cum++
			}
			r.Peer(x, came)
		}
		for len(x.pendingSacks) > 0 && x.pendingSacks[0].at <= x.now {
			k := x.pendingSacks[0].sack()
			x.pendingSacks = x.pendingSacks[1:]
			cum := s.CumTSN()
			if _, g.Err = s.HandleSack(x.now, wire.Sack(wire.AppendSack(nil, k))); g.Err != nil {
				return g
			}
			for s.HasMoreWork() {
				s.ContinueWork(x.now)
			}
			know(cum+1, s.CumTSN())
			for _, b := range k.Gaps {
				if !k.CumTSN.Less(cum) {
					know(k.CumTSN.Add(uint32(b.Start)), k.CumTSN.Add(uint32(b.End)))
				}
			}
			g.CwndExcess = max(g.CwndExcess, p.CC().Window()-initial-len(acked)*(wire.DataHeaderLen+len(body)))
		}
		if s.NextTimeout() <= x.now {
			s.HandleTimeout(x.now)
			for s.HasMoreWork() {
				s.ContinueWork(x.now)
			}
		}
	}
	return g
}

func packetTSNs(t *testing.T, p rawio.Packet) (list []wire.TSN) {
	it := wire.Packet(bytes.Join(p.Vec, nil)).Chunks()
	for c, ok := it.Next(); ok; c, ok = it.Next() {
		list = append(list, must.Get(wire.AsData(c))(t).TSN())
	}
	return list
}
