package assoc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// handleSack processes a SACK (section 6.2.1). Each says all that there is to say, so the last one
// in a packet is enough. A peer has no reason to send others before it, and gets no work for them.
func (a *Assoc) handleSack(now rawio.Time, in *inbound, c wire.Chunk) {
	in.sacksLeft--
	k, err := wire.AsSack(c)
	if err != nil {
		a.rareCounters().Malformed++
		return
	}
	if !sackStates.has(a.state) {
		a.rareCounters().Unexpected++ // section 6
		return
	}
	a.stats.SacksIn++
	if in.sacksLeft > 0 {
		a.rareCounters().SacksPassedOver++
		return
	}
	res, err := a.sender().HandleSack(now, k)
	if err != nil && a.isAckAcrossRestart(k.CumTSN()) {
		return
	}
	if err != nil { // a TSN never sent, section 12.4
		a.abortForViolation(err)
		return
	}
	a.handleNewlyAcked(now, res)
}

// shortRTTSackDelay is the longest SACK.Delay if round trips are shorter than it. crowdedSackDelay
// is that in a crowd. A peer may have an RTO.Min of 100 ms: it retransmits what is acknowledged
// later.
const (
	shortRTTSackDelay = 25 * time.Millisecond
	crowdedSackDelay  = 80 * time.Millisecond
)

// limitSackDelay limits the wait of the SACK for what came from p. The limit is a round trip or
// shortRTTSackDelay, whichever is longer. A peer that has lost the last of what it sent waits for
// that SACK alone. In a crowd, or if no round trip is known, crowdedSackDelay replaces
// shortRTTSackDelay. By the letter of section 6.2 the wait is SackDelay.
func (a *Assoc) limitSackDelay(p *path) {
	if a.cfg.RFC9260 {
		return
	}
	trip, most := p.MinRTT(), shortRTTSackDelay
	if a.hints.isCrowded || trip == 0 {
		most = crowdedSackDelay
	}
	a.recv.SetSackDelay(min(a.cfg.SackDelay, max(trip, most)), a.cfg.LoneSackDelay)
}

// handleNewlyAcked clears error counters for what the peer acknowledged (sections 8.1 and 8.2).
func (a *Assoc) handleNewlyAcked(now rawio.Time, res tx.Result) {
	if !res.NewlyAcked {
		return
	}
	a.health.errorCount = 0
	a.send.burstContinues = false // a new opportunity to transmit, even within one
	for i, p := range a.paths {
		switch {
		case res.Suspected.Has(i):
			a.probeSuspectedPath(now, p, res.Paths.Has(i))
		case res.Paths.Has(i):
			a.markPathAlive(now, p)
			a.verifyRTT(now, p)
		}
	}
	a.reportLow()
	a.reportSenderDry()
}

// SackNow reports whether PollTransmit should be called before HandlePacket is called again. There
// have been losses, and the SACK that is due should not cover a whole batch (section 6.2).
func (a *Assoc) SackNow() bool { return a.recv != nil && a.recv.SackNow() }
