package assoc

import (
	"fmt"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Marks are the points in the sequences of TSNs that never go back, except when the peer restarts.
type Marks struct {
	Acked, Next wire.TSN // the Cumulative TSN Ack Point; the next TSN to be sent
	Received    wire.TSN // the Cumulative TSN of the peer, if there is one
	Receiving   bool     // there is
}

// Marks returns the association's present marks.
func (a *Assoc) Marks() Marks {
	if a.IsIdle() {
		next := a.idleState.sender.NextTSN()
		return Marks{Acked: next - 1, Next: next, Received: a.idleState.receiver.CumTSN(), Receiving: true}
	}
	m := Marks{Acked: a.sender().CumTSN(), Next: a.sender().NextTSN()}
	if a.recv != nil {
		m.Received, m.Receiving = a.recv.CumTSN(), true
	}
	return m
}

// cookieWorkSteps is the cost of signing a cookie, or looking at one: some microseconds.
const cookieWorkSteps = 24

// Steps returns how much work the peer has caused. It counts what was looked at for the peer or for
// timers: chunks, TSNs, gap blocks, paths, messages and links to them. It never goes back.
func (a *Assoc) Steps() uint64 { return a.stats.workSteps }

// Audit recounts what the association keeps count of, and reports what does not agree or exceeds
// its limit. lent is the user data in octets that Receive has returned and Release has not taken
// back. Audit walks over all that is outstanding or held, and is for simulators and tests.
func (a *Assoc) Audit(lent int) error {
	if a.state == Closed || a.IsIdle() {
		return nil
	}
	if err := a.sender().Audit(); err != nil {
		return fmt.Errorf("sender: %w", err)
	}
	if a.recv != nil {
		if err := a.recv.Audit(lent); err != nil {
			return fmt.Errorf("receiver: %w", err)
		}
	}
	if n := len(a.control.entries); n > maxControlEntries || len(a.control.buf) > 2*maxControlOctets ||
		len(a.outbox.packets) > maxOutboxPackets {
		return fmt.Errorf("%d control packets of %d octets and %d answers wait", n, len(a.control.buf),
			len(a.outbox.packets))
	}
	return nil
}
