package reconfig

import (
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// deferredReset is an Outgoing SSN Reset Request of the peer that waits for DATA sent before it:
// "deferred reset processing" (section 5.2.2, E2).
type deferredReset struct {
	isActive bool
	part     int // in peerRequests
	lastTSN  wire.TSN
	streams  []wire.StreamID // nil: all
	asked    bool            // it fulfils an own request
}

// takeOutgoingReset is section 5.2.2: the peer resets streams that come in.
func (m *Machine) takeOutgoingReset(now rawio.Time, r *parameter) wire.ReconfigResult {
	if m.deferred.isActive { // and this is the request that it is about
		return wire.ReconfigInProgress
	}
	asked := m.takeImplicitResponse(now, r.responseSeq)
	_, in := m.host.Streams()
	streams := streamsOf(r.streams)
	switch {
	case m.cfg.Paired || m.cfg.Allowed&Streams == 0 && !asked:
		return wire.ReconfigDenied
	case !areBelow(streams, in):
		return wire.ReconfigWrongSSN
	case !asked && !m.limit.Allow(now, peerRate):
		return wire.ReconfigInProgress
	}
	m.hasAsked = m.hasAsked && !asked
	m.deferred = deferredReset{isActive: true, part: int(r.seq - m.peer.first), lastTSN: r.lastTSN, streams: streams,
		asked: asked}
	if m.host.CumTSN().Less(r.lastTSN) {
		m.host.HoldIn(streams, r.lastTSN)
		return wire.ReconfigInProgress
	}
	m.resetIn()
	return wire.ReconfigPerformed
}

// takeImplicitResponse says whether an Outgoing SSN Reset Request answers an own Incoming SSN Reset
// Request. If that waits for an answer, it has got it (E1).
func (m *Machine) takeImplicitResponse(now rawio.Time, seq uint32) (asked bool) {
	if p := m.own.find(wire.ParamIncomingReset); p != nil && m.own.isInFlight() && p.seq == seq {
		p.progress = partDone
		m.endIfAnswered(now)
		return true
	}
	return m.hasAsked && m.askedReset == seq
}

// resetIn performs the deferred reset (E3 and E4).
func (m *Machine) resetIn() {
	d := m.deferred
	m.deferred = deferredReset{}
	m.host.ResetIn(d.streams, d.lastTSN)
	m.host.Report(Event{Kind: StreamsReset, ByPeer: !d.asked, Incoming: true, Streams: d.streams})
	m.host.ReleaseIn()
}

// endDeferral performs the deferred reset when all DATA sent before it is there, and says so (E5).
func (m *Machine) endDeferral() {
	if d := &m.deferred; d.isActive && !m.host.CumTSN().Less(d.lastTSN) {
		p := &m.peer.parts[d.part]
		m.resetIn()
		p.result, p.isOpen, m.peer.combined = wire.ReconfigPerformed, false, false
		m.appendResponses(false)
	}
}

// cancelDeferral lets the DATA go on that a deferred reset holds.
func (m *Machine) cancelDeferral() {
	if m.deferred.isActive {
		m.deferred = deferredReset{}
		m.host.ReleaseIn()
	}
}

// takeIncomingReset is section 5.2.3: the peer asks to reset streams that go out.
func (m *Machine) takeIncomingReset(now rawio.Time, r *parameter) wire.ReconfigResult {
	o := &m.own
	if o.answers && o.answersSeq == r.seq && o.state != ownNone {
		return wire.ReconfigInProgress // the answer waits until what was given before is sent
	}
	out, _ := m.host.Streams()
	if p := m.own.find(wire.ParamAddOutStreams); p != nil { // the peer may have added them already
		out += p.count
	}
	streams := streamsOf(r.streams)
	switch {
	case m.cfg.Paired || m.cfg.Allowed&Streams == 0 || m.isDead:
		return wire.ReconfigDenied
	case !areBelow(streams, out):
		return wire.ReconfigWrongSSN
	case m.own.coversReset(streams) || m.own.state == ownNone && m.host.OutIsAtZero(streams):
		return wire.ReconfigNothingToDo
	case m.own.state != ownNone:
		return m.resultWhileBusy()
	case !m.limit.Allow(now, peerRate):
		return wire.ReconfigInProgress
	}
	m.beginOwn(now, ownRequest{answers: true, answersSeq: r.seq, byPeer: true, streams: streams,
		hold: m.host.HoldOut(streams), parts: []ownPart{{kind: wire.ParamOutgoingReset}}})
	return wire.ReconfigInProgress
}

// coversReset says whether the own request resets all of these streams that go out: it "completely
// overlaps the received Incoming SSN Reset Request" (section 5.2.3).
func (o *ownRequest) coversReset(list []wire.StreamID) bool {
	if o.find(wire.ParamOutgoingReset) == nil || o.streams == nil {
		return o.find(wire.ParamOutgoingReset) != nil
	}
	if list == nil {
		return false
	}
	sorted := slices.Sorted(slices.Values(o.streams))
	return !slices.ContainsFunc(list, func(s wire.StreamID) bool {
		_, found := slices.BinarySearch(sorted, s)
		return !found
	})
}

// resultWhileBusy answers a request that takes an own one, while there is one. The peer asks again
// (section 5.2.7, H2), unless the own request waits for the peer's turn too.
func (m *Machine) resultWhileBusy() wire.ReconfigResult {
	if m.own.needsPeersTurn() {
		return wire.ReconfigAlreadyInProgress
	}
	return wire.ReconfigInProgress
}

// takeAddOut is section 5.2.5: the peer adds streams that come in. That may be the answer to an own
// Add Incoming Streams Request. But the parameter does not say so, and the peer may have had the
// same idea. So the own request goes again, until there is a response, or no more is to be
// expected.
func (m *Machine) takeAddOut(now rawio.Time, r *parameter, paired bool) wire.ReconfigResult {
	p := m.own.find(wire.ParamAddInStreams)
	isLikely := p != nil && m.own.isInFlight() && p.count == r.count
	asked := isLikely && p.progress != partLikely || m.askedAdd == r.count
	_, in := m.host.Streams()
	switch {
	case r.count == 0:
		return wire.ReconfigNothingToDo
	case !asked && !isLikely && (m.cfg.Allowed&Adding == 0 || m.cfg.Paired && !paired || r.count > m.cfg.MaxIn-in),
		r.count > MaxStreams-in:
		return wire.ReconfigDenied
	case !asked && !m.limit.Allow(now, peerRate):
		return wire.ReconfigInProgress
	}
	if isLikely {
		p.progress, m.own.repeats = partLikely, 0
	} else if asked {
		m.askedAdd = 0
	}
	m.host.AddIn(r.count)
	m.host.Report(Event{Kind: StreamsAdded, ByPeer: !asked, Incoming: true, Count: r.count})
	return wire.ReconfigPerformed
}

// takeAddIn is section 5.2.6: the peer asks for more streams that go out. The answer is an own
// request. Some peers wait for a response beside it: the request has no place for a Response
// Sequence Number.
func (m *Machine) takeAddIn(now rawio.Time, r *parameter, paired bool) wire.ReconfigResult {
	out, _ := m.host.Streams()
	switch {
	case r.count == 0:
		return wire.ReconfigNothingToDo
	case m.cfg.Allowed&Adding == 0 || m.cfg.Paired && !paired || r.count > m.cfg.MaxOut-out || m.isDead:
		return wire.ReconfigDenied
	case m.own.state != ownNone:
		return m.resultWhileBusy()
	case !m.limit.Allow(now, peerRate):
		return wire.ReconfigInProgress
	}
	m.beginOwn(now, ownRequest{answers: true, answersSeq: r.seq, byPeer: true,
		parts: []ownPart{{kind: wire.ParamAddOutStreams, count: r.count}}})
	return wire.ReconfigPerformed
}

// streamsOf returns the streams of a list, nil if it is empty.
func streamsOf(l wire.Uint16List) (list []wire.StreamID) {
	for i := range l.Len() {
		list = append(list, wire.StreamID(l.At(i)))
	}
	return list
}
