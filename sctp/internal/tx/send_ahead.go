package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// aheadShare is the part of cwnd that a scheduler adds to it, for streams that send little. When
// cwnd falls, what is in flight may exceed it for longer than a round trip. A short message would
// wait for that as long as one that fills cwnd. So it goes ahead, as by Limited Transmit (RFC
// 3042). What goes ahead in a round trip is no more than the share, so that congestion hardly
// notices.
const aheadShare = 32

// aheadBudget is how many octets of chunks may go ahead before a round trip is over.
type aheadBudget struct {
	left     int
	refillAt rawio.Time
}

// aheadRoom returns how many octets may go to p although cwnd is full.
func (s *Sender) aheadRoom(now rawio.Time, p *Path) int {
	y := s.queue.streams
	if y == nil || y.active == 0 || s.cfg.StrictRFC || p.onePacketOnly || p.SRTT() == 0 {
		return 0
	}
	if !now.Before(y.ahead.refillAt) {
		y.ahead = aheadBudget{p.sendWindow() / aheadShare, now.Add(p.SRTT())}
	}
	return y.ahead.left
}

// goesAhead reports whether the chunk in the slot goes to p although cwnd is full, behind octets in
// the same packet. Its stream has little that is not acknowledged, and the rest of the message fits
// aheadRoom. So does a message that has to be finished before that of such a stream.
func (s *Sender) goesAhead(now rawio.Time, p *Path, octets int) bool {
	l, y := &s.queue.current, s.queue.streams
	if !l.fromQueue || octets+s.dataHeaderLen()+wire.PaddedLen(l.rest()) > s.aheadRoom(now, p) {
		return false
	}
	stream := uint16(l.msg.Stream)
	if l.offset > 0 && !y.interleaves { // it is in the way of what comes next
		stream, _ = y.scheduler.Next(false)
	}
	return s.isLight(wire.StreamID(stream), p)
}

// isLight reports whether a stream has so little that is not acknowledged that it may go ahead.
func (s *Sender) isLight(stream wire.StreamID, p *Path) bool {
	return s.queue.streams.amounts.octetsOf(stream) <= p.sendWindow()/aheadShare
}

// resendsAhead reports whether one of the first chunks to be sent again goes to p although cwnd is
// full.
func (s *Sender) resendsAhead(now rawio.Time, p *Path) bool {
	g, room := &s.outstanding, s.aheadRoom(now, p)
	t, ok := g.toRetransmit.Next(g.firstUnacked, g.len())
	for passed := 0; room > 0 && ok && passed <= maxSkipped; t, ok = g.nextInSet(&g.toRetransmit, t) {
		*s.work.steps++
		r := g.recordOf(t)
		if s.retransmitPath(r) == p && p.fitsChunk(r) && r.chunkLen() <= room && s.isLight(r.stream, p) {
			return true
		}
		passed++
	}
	return false
}
