package attack

import (
	"errors"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/attacker"
)

// messagesPort is where the victim takes messages, without DDP.
const messagesPort = 5045

// minMessage is the shortest message that it sends, in octets. Each of those that fail with an
// association is a step: more than fit the buffer would be too many for stepsAtOnce.
const minMessage = 64

// NewWithMessages is New with attackers of a program that takes messages. It offers every extension,
// and lets its peer reset and add streams. An association with DDP lets it do neither. Its link
// detects errors, so that a checksum may be 0.
func NewWithMessages(c *attacker.Choices) *Simulation {
	return newSimulation(c, func(s *Simulation) {
		s.takesMessages = true
		s.messagesCfg = assoc.Config{RecvBuffer: s.cfg.RecvBuffer, SendBuffer: s.cfg.SendBuffer,
			InStreams: s.cfg.InStreams, OutStreams: 64, MaxOutStreams: 80, PartialReliability: true, Interleaving: c.One(2),
			StreamReset: assoc.AllowStreamReset | assoc.AllowTSNReset | assoc.AllowAddStreams}
		if c.One(2) {
			s.messagesCfg.NewScheduler = sched.RoundRobin
		}
		s.victim.DetectErrors(rawio.DTLSErrorDetection)
		for port, cfg := range map[uint16]*assoc.Config{victimPort: &s.cfg, messagesPort: &s.messagesCfg} {
			if err := s.victim.EP.Listen(port, cfg); err != nil {
				s.recordFailure("listen: %v", err)
			}
		}
	})
}

// checkChecksum holds that only a packet of an association that is set up goes without a checksum,
// where both ends may have agreed on that (RFC 9653 section 5.2).
func (s *Simulation) checkChecksum(b []byte) {
	pkt := wire.Packet(b)
	if pkt.ChecksumOK() {
		return
	}
	if !s.takesMessages || pkt.Checksum() != 0 {
		s.recordFailure("a packet with checksum %#x", pkt.Checksum())
	}
	s.stats.ZeroChecksums++
	it := pkt.Chunks()
	for c, ok := it.Next(); ok; c, ok = it.Next() {
		switch c.Type() {
		case wire.ChunkInit, wire.ChunkInitAck, wire.ChunkCookieEcho:
			s.recordFailure("%v without a checksum", c.Type())
		}
	}
}

// ForSeed returns the siege that a seed stands for: half of them are of messages.
func ForSeed(seed uint64) *Simulation {
	if seed%2 == 0 {
		return NewWithMessages(attacker.Seeded(seed))
	}
	return New(attacker.Seeded(seed))
}

// messageConn is one association of the victim's with messages.
type messageConn struct {
	s      *Simulation
	a      *assoc.Assoc
	up     bool
	gone   bool
	worked uint64 // steps when it was looked at last
}

func (s *Simulation) adoptMessages(a *assoc.Assoc) *messageConn {
	h := &messageConn{s: s, a: a}
	a.Owner = h
	s.stats.Associations++
	return h
}

var _ victimAssoc = (*messageConn)(nil)

// Assoc implements simulation.Conn.
func (h *messageConn) Assoc() *assoc.Assoc { return h.a }

// Gone implements simulation.Conn.
func (h *messageConn) Gone() bool { return h.gone }

func (h *messageConn) stepsTaken() uint64  { return h.a.Steps() }
func (h *messageConn) stepsAtOnce() uint64 { return messageStepsAtOnce }
func (h *messageConn) held() int           { return h.a.Held() }
func (h *messageConn) roots() []any        { return []any{h.a} }

// Pump implements simulation.Conn.
func (h *messageConn) Pump() {
	for rounds := 0; ; rounds++ {
		for {
			ev, ok := h.a.PollEvent()
			if !ok {
				break
			}
			h.handleEvent(ev)
		}
		h.read()
		if h.up && !h.gone && rounds == 0 {
			h.act()
		}
		if rounds > 1000 {
			h.s.recordFailure("one packet keeps an association busy for %d rounds", rounds)
			return
		}
		if !h.s.victim.Transmit(h.a) && !h.a.HasEvents() {
			h.s.checkWork(h, &h.worked)
			h.s.victim.Settled(h)
			return
		}
	}
}

func (h *messageConn) handleEvent(ev assoc.Event) {
	switch ev.Kind {
	case assoc.EventRestart:
		h.s.stats.Restarts++
		h.s.victim.EP.Refresh(h.a)
	case assoc.EventUp, assoc.EventPathUp, assoc.EventPathDown:
		h.up = h.up || ev.Kind == assoc.EventUp
		h.s.victim.EP.Refresh(h.a)
	case assoc.EventStreamsReset, assoc.EventTSNsReset, assoc.EventStreamsAdded:
		if ev.Err == nil {
			h.s.stats.Changes++
		}
	case assoc.EventDown:
		h.gone = true
		h.s.stats.Ends++
		if err := (*assoc.InternalError)(nil); errors.As(ev.Err, &err) {
			h.s.recordFailure("%v", err)
		}
		h.s.victim.EP.Remove(h.s.victim.Time(), h.a)
	}
}

// read takes what has come, most of the time.
func (h *messageConn) read() {
	if h.s.c.One(4) {
		return
	}
	for r, ok := h.a.Receive(); ok; r, ok = h.a.Receive() {
		h.s.stats.Receives++
		h.a.Release(r)
	}
}

// act is what the program does: it sends messages of each kind, and asks for changes of streams.
func (h *messageConn) act() {
	c, now := h.s.c, h.s.victim.Time()
	if c.One(3) {
		m := assoc.Message{Stream: wire.StreamID(c.Below(h.a.OutStreams())), Unordered: c.One(4),
			Body: [2][]byte{make([]byte, minMessage+c.Length(3000))}}
		if h.a.Extensions().Has(assoc.PartialReliability) && c.One(2) {
			m.Policy, m.Limit = assoc.AbandonPolicy(c.Below(4)), uint32(c.Below(3))
		}
		if m.Policy == assoc.AbandonExpired {
			m.Expires = now.Add(time.Duration(c.Below(200)) * time.Millisecond)
		}
		if h.a.Send(now, &m) == nil { // refused when the buffer is full, or at the end
			h.s.stats.Sends++
		}
	}
	if c.One(12) {
		r := assoc.StreamRequest{ResetOut: c.One(2), ResetIn: c.One(3)}
		for range c.Below(4) {
			r.Streams = append(r.Streams, wire.StreamID(c.Below(8)))
		}
		switch c.Below(6) {
		case 1:
			r = assoc.StreamRequest{ResetTSNs: true}
		case 2:
			r = assoc.StreamRequest{AddOut: c.Below(2), AddIn: c.Below(2)}
		}
		if id, err := h.a.StartInTurn(now, r); err == nil && c.One(8) {
			h.a.StopWaiting(now, id)
		}
	}
}
