package assoc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/reconfig"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// streamResets is the stream reconfiguration of an association. It is the Host of the machine: what
// that asks of the association, and does to it.
type streamResets struct {
	a        *Assoc
	machine  *reconfig.Machine
	now      rawio.Time // of the call of the machine that is under way
	path     *path      // where the request went last
	isEnding bool       // the association, or its incarnation, ends,
	isOver   bool       // or has ended: the machine may still be in the middle of a call

	// The TSNs of a side have begun anew, and the first of them. What comes late may still have old
	// ones.
	ownHasRestarted, peerHasRestarted bool
	ownFirstTSN, peerFirstTSN         wire.TSN
}

func (h *streamResets) Streams() (out, in int) {
	return int(h.a.agreed.outStreams), int(h.a.agreed.inStreams)
}

func (h *streamResets) NextTSN() wire.TSN { return h.a.sender().NextTSN() }

func (h *streamResets) CumTSN() wire.TSN {
	h.a.sender() // it rests no longer
	return h.a.recv.CumTSN()
}

func (h *streamResets) IsAcked(t wire.TSN) bool { return h.a.sender().IsAcked(t) }

func (h *streamResets) RTO() time.Duration { return h.requestPath().RTO() }

// requestPath returns where the request has gone, or is to go.
func (h *streamResets) requestPath() *path {
	if h.path == nil {
		return h.a.dataPath()
	}
	return h.path
}

func (h *streamResets) HoldOut(streams []wire.StreamID) reconfig.Hold {
	return reconfig.Hold(h.a.sender().Hold(streams))
}

func (h *streamResets) HoldMore(hold reconfig.Hold, streams []wire.StreamID) bool {
	return h.a.sender().HoldMore(tx.Hold(hold), streams)
}

func (h *streamResets) HasSettled(hold reconfig.Hold, acked bool) bool {
	return h.a.sender().HasSettled(tx.Hold(hold), acked)
}

func (h *streamResets) ReleaseOut(hold reconfig.Hold) {
	h.a.sender().Release(tx.Hold(hold))
	h.a.send.burstContinues = false // a new opportunity to transmit
}

// ResetOut also takes the peer's word that it has got all up to last: it has reset what comes in
// only then (section 5.2.2, E2). Nothing of before is sent again, or given up, behind the reset.
func (h *streamResets) ResetOut(streams []wire.StreamID, last wire.TSN) {
	res, err := h.a.sender().HandleCumAck(h.now, last)
	if err != nil {
		h.a.abortForViolation(err)
		return
	}
	h.a.handleNewlyAcked(h.now, res)
	h.a.sender().ResetSSNs(streams)
}

func (h *streamResets) OutIsAtZero(streams []wire.StreamID) bool {
	return h.a.sender().AreSSNsZero(streams)
}

func (h *streamResets) HoldIn(streams []wire.StreamID, after wire.TSN) {
	h.a.sender() // it rests no longer
	h.a.recv.Defer(streams, after)
}

func (h *streamResets) ReleaseIn() {
	if h.a.IsIdle() {
		return
	}
	if list := h.a.recv.TakeDeferred(); len(list) > 0 && h.a.state != Closed && !h.isEnding {
		h.a.handleDeferredData(h.now, list)
	}
}

func (h *streamResets) ResetIn(streams []wire.StreamID, after wire.TSN) {
	h.a.sender() // it rests no longer
	h.abortIfWrong(h.a.recv.ResetStreams(streams, after))
}

func (h *streamResets) FreezeIn() {
	h.a.sender() // it rests no longer
	h.a.recv.Freeze()
}

func (h *streamResets) ThawIn() {
	if !h.a.IsIdle() {
		h.abortIfWrong(h.a.recv.Thaw())
	}
}

// abortIfWrong aborts the association if the peer has reset what it should not.
func (h *streamResets) abortIfWrong(err error) {
	if err != nil && h.a.state != Closed && !h.isEnding {
		h.a.abortForViolation(err)
	}
}

func (h *streamResets) Violate(err error) { h.abortIfWrong(err) }

func (h *streamResets) AddOut(n int) {
	h.a.sender().AddStreams(n)
	h.a.agreed.outStreams += uint16(n)
}

func (h *streamResets) AddIn(n int) {
	h.a.sender() // it rests no longer
	h.a.recv.AddStreams(n)
	h.a.agreed.inStreams += uint16(n)
}

func (h *streamResets) RestartTSNs(next, expected wire.TSN) {
	s := h.a.sender()
	if was := s.NextTSN(); next == was {
		s.ResetSSNs(nil)
	} else {
		s.RestartTSN(next)
		h.ownHasRestarted, h.ownFirstTSN = true, next
	}
	if expected != h.a.recv.CumTSN()+1 {
		h.peerHasRestarted, h.peerFirstTSN = true, expected
		h.a.ecn.echoPending = false
	}
	h.abortIfWrong(h.a.recv.RestartTSN(expected))
}

func (h *streamResets) Report(e reconfig.Event) {
	if h.isOver {
		return // EventDown was the last event
	}
	c := &StreamChange{Request: e.Request, ByPeer: e.ByPeer, Incoming: e.Incoming, Added: e.Count}
	for _, s := range e.Streams {
		c.Streams = append(c.Streams, uint16(s))
	}
	c.OutStreams, c.InStreams = h.Streams()
	c.NextTSN, c.PeerTSN = h.NextTSN(), h.CumTSN()+1
	kind := map[reconfig.EventKind]EventKind{reconfig.StreamsReset: EventStreamsReset,
		reconfig.TSNsReset: EventTSNsReset, reconfig.StreamsAdded: EventStreamsAdded}[e.Kind]
	h.a.events.push(Event{Kind: kind, Change: c, Err: e.Err})
}

// maxLateTSNs is how many TSNs after a restart those of before count as late. They are half of all
// TSNs away. No time would do: a packet may be under way for minutes, and a host may be suspended.
const maxLateTSNs = 1 << 29

// isLate says whether t is of before a restart of TSNs that began with first. next is the next one.
func isLate(hasRestarted bool, first, next, t wire.TSN) bool {
	const half = 1 << 30 // of the distance between old and new TSNs
	return hasRestarted && uint32(next-first) < maxLateTSNs && uint32(t-(first-1)) >= half
}

// isAckAcrossRestart says whether the peer acknowledges TSNs of before the last restart of the own
// ones. They may also be of later: the peer has begun anew, and its answer that says so is not here
// yet. No such TSN means what was sent.
func (a *Assoc) isAckAcrossRestart(cum wire.TSN) bool {
	h := a.streamResets()
	return h != nil &&
		(h.machine.IsFreezing() || isLate(h.ownHasRestarted, h.ownFirstTSN, a.sender().NextTSN(), cum))
}

// isLateForwardTSN says whether a FORWARD TSN is of before the last restart of the peer's TSNs.
func (a *Assoc) isLateForwardTSN(t wire.TSN) bool {
	h := a.streamResets()
	if h == nil || !isLate(h.peerHasRestarted, h.peerFirstTSN, a.recv.CumTSN()+1, t) {
		return false
	}
	a.rareCounters().Unexpected++
	return true
}

// handleDeferredData handles DATA that has waited for a reset of its streams.
func (a *Assoc) handleDeferredData(now rawio.Time, list []wire.Chunk) {
	var in inbound
	in.Packet, in.path = &rawio.Packet{Local: a.sacks.local, Remote: a.sacks.path.Remote}, a.sacks.path
	for _, c := range list {
		if !a.handleChunk(now, &in, c) || a.state == Closed {
			return
		}
	}
	a.endDataPacket(now, &in)
}
