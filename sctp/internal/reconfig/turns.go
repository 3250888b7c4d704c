package reconfig

import (
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// RequestID tells the own requests apart. None is 0.
type RequestID uint32

// waitingRequest is a request of the user that waits for its turn.
type waitingRequest struct {
	id      RequestID
	request Request
	hold    Hold
	askers  int // how many have asked for it: it was joined
}

// StartInTurn begins with a request when those before it have ended. Its messages are held already:
// nothing that is given behind it goes in the old numbering (section 5.1.2, A1). What is wrong with
// it, or in its way, is the error. How it ends, or each of its two parts, the Host hears by Report.
// Requests that only reset streams that go out are joined while they wait, up to maxStreams of
// them.
func (m *Machine) StartInTurn(now rawio.Time, r Request, maxStreams int) (RequestID, error) {
	if err := m.check(now, r); err != nil {
		return 0, err
	}
	if !m.IsBusy() {
		m.lastID++
		m.begin(now, r, m.lastID, 0)
		return m.lastID, nil
	}
	if n := len(m.waiting); n > 0 {
		w := &m.waiting[n-1]
		if w.takes(r, maxStreams) && m.host.HoldMore(w.hold, r.Streams) {
			w.request.Streams = append(w.request.Streams, r.Streams...)
			w.askers++
			return w.id, nil
		}
	}
	m.lastID++
	r.Streams = slices.Clone(r.Streams)
	m.waiting = append(m.waiting, waitingRequest{id: m.lastID, request: r, hold: m.holdFor(r), askers: 1})
	return m.lastID, nil
}

// takes says whether r may be joined to w. A stream that is reset twice begins anew in between.
func (w *waitingRequest) takes(r Request, maxStreams int) bool {
	resetsList := func(r Request) bool { return r.ResetOut && !r.ResetIn && len(r.Streams) > 0 }
	return resetsList(w.request) && resetsList(r) && len(w.request.Streams)+len(r.Streams) <= maxStreams &&
		!slices.ContainsFunc(r.Streams, func(s wire.StreamID) bool { return slices.Contains(w.request.Streams, s) })
}

// IsUnderWay says whether a request waits, or is not ended.
func (m *Machine) IsUnderWay(id RequestID) bool {
	return m.own.state != ownNone && m.own.id == id || m.findWaiting(id) >= 0
}

// StopWaiting forgets a request that waits for its turn, if nobody else has asked for it. One that
// is under way goes on.
func (m *Machine) StopWaiting(id RequestID) {
	at := m.findWaiting(id)
	if at < 0 {
		return
	}
	w := &m.waiting[at]
	if w.askers--; w.askers > 0 {
		return
	}
	hold := w.hold
	m.waiting = slices.Delete(m.waiting, at, at+1)
	m.release(hold)
}

func (m *Machine) findWaiting(id RequestID) int {
	return slices.IndexFunc(m.waiting, func(w waitingRequest) bool { return w.id == id })
}

// startNext begins with the requests that wait, when it is their turn.
func (m *Machine) startNext(now rawio.Time) {
	for len(m.waiting) > 0 && m.own.state == ownNone && !m.tsnWait.isThere() {
		w := m.takeWaiting()
		if err := m.check(now, w.request); err != nil {
			m.failWaiting(w, err)
			continue
		}
		m.begin(now, w.request, w.id, w.hold)
	}
}

// failAllWaiting ends the requests that wait.
func (m *Machine) failAllWaiting(why error) {
	for len(m.waiting) > 0 {
		m.failWaiting(m.takeWaiting(), why)
	}
}

// takeWaiting takes the first one.
func (m *Machine) takeWaiting() waitingRequest {
	w := m.waiting[0]
	if m.waiting = slices.Delete(m.waiting, 0, 1); len(m.waiting) == 0 {
		m.waiting = nil
	}
	return w
}

// failWaiting ends a request that has waited. None is under way.
func (m *Machine) failWaiting(w waitingRequest, why error) {
	m.own = newOwnRequest(w.request, w.id, w.hold)
	m.failOwn(why)
}

// holdFor holds messages for a request, if it needs that.
func (m *Machine) holdFor(r Request) Hold {
	switch {
	case r.ResetTSNs || r.ResetOut && len(r.Streams) == 0:
		return m.host.HoldOut(nil)
	case r.ResetOut:
		return m.host.HoldOut(r.Streams)
	}
	return 0
}

// release ends a hold, if there is one.
func (m *Machine) release(h Hold) {
	if h != 0 {
		m.host.ReleaseOut(h)
	}
}
