package reconfig

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// waitingTSNReset is an SSN/TSN Reset Request of the peer that waits until all own DATA is
// acknowledged (section 5.2.4). By the letter it would count as such at once, and what of it is on
// its way would be lost. The request has no answer at first: to libusrsctp "In progress" is the
// last one. When it comes again it has that answer, or the peer might give up what is performed
// then. A peer whose window stays closed until the answer would wait for ever: it is denied.
type waitingTSNReset struct {
	hold     Hold       // for it, once no own request is under way
	deniedAt rawio.Time // or Never: there is none
	seq      uint32     // of the request
}

// DefersTSNReset says whether an SSN/TSN Reset Request of the peer waits for its answer.
func (m *Machine) DefersTSNReset() bool { return m.tsnWait.isThere() }

func (w *waitingTSNReset) isThere() bool { return w.deniedAt != rawio.Never }

// takeTSNReset is section 5.2.4: the peer begins anew with its TSNs and all SSNs. endTSNWait
// performs it. One that waits goes on waiting, also if the peer asks by another number: what was
// given to send meanwhile would never come to an end if it did not.
func (m *Machine) takeTSNReset(now rawio.Time, p *peerPart, seq uint32) wire.ReconfigResult {
	p.hasTSNs, p.next, p.expected = true, m.host.NextTSN(), m.host.CumTSN()+1+tsnJump
	isRepeated := m.tsnWait.isThere() && m.tsnWait.seq == seq
	switch {
	case m.cfg.Paired || m.cfg.Allowed&TSNs == 0:
		m.dropTSNWait()
		return wire.ReconfigDenied
	case m.tsnWait.isThere():
	case m.own.needsPeersTurn():
		return wire.ReconfigAlreadyInProgress
	case m.hasReset && now.Sub(m.tsnsResetAt) < segmentLife, !m.limit.Allow(now, peerRate):
		return wire.ReconfigInProgress
	default:
		m.tsnWait.deniedAt = now.Add(longestHold)
	}
	p.isUnanswered, m.tsnWait.seq = !isRepeated, seq
	return wire.ReconfigInProgress
}

// endTSNWait performs the reset that waits, if all own DATA is acknowledged. An own request that
// the peer can answer meanwhile ends first.
func (m *Machine) endTSNWait(now rawio.Time) {
	if !m.tsnWait.isThere() || m.own.state != ownNone {
		return
	}
	if m.tsnWait.hold == 0 {
		m.tsnWait.hold = m.host.HoldOut(nil)
	}
	if !m.host.HasSettled(m.tsnWait.hold, true) {
		return
	}
	p := &m.peer.parts[0] // it is alone in its chunk
	p.next, p.expected = m.host.NextTSN(), m.host.CumTSN()+1+tsnJump
	m.host.RestartTSNs(p.next, p.expected)
	m.tsnsResetAt, m.hasReset = now, true
	m.answerTSNReset(wire.ReconfigPerformed)
	m.host.Report(Event{Kind: TSNsReset, ByPeer: true})
}

// answerTSNReset answers the reset that has waited.
func (m *Machine) answerTSNReset(result wire.ReconfigResult) {
	p := &m.peer.parts[0]
	p.result, p.isOpen, p.isUnanswered = result, false, false
	m.appendResponses(false)
	m.dropTSNWait()
}

// dropTSNWait lets messages go on that wait for an SSN/TSN reset of the peer.
func (m *Machine) dropTSNWait() {
	hold := m.tsnWait.hold
	m.tsnWait = waitingTSNReset{deniedAt: rawio.Never}
	m.release(hold)
}
