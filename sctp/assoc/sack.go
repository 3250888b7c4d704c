package assoc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// handleSack processes a SACK (section 6.2.1). Each says all that there is to say, so that the last one in a packet
// does; a peer has no reason to send others before it, and gets no work for them.
func (a *Assoc) handleSack(now rawio.Time, in *inbound, c wire.Chunk) {
	in.sacks--
	k, err := wire.AsSack(c)
	if err != nil {
		a.rare().Malformed++
		return
	}
	if !sackStates.has(a.state) {
		a.rare().Unexpected++ // section 6
		return
	}
	a.stats.SacksIn++
	if in.sacks > 0 {
		a.rare().SacksPassedOver++
		return
	}
	res, err := a.sender().HandleSack(now, k)
	if err != nil { // a TSN never sent, section 12.4
		a.violated(err)
		return
	}
	a.acknowledged(now, res)
}

// nearSackDelay is the longest SACK.Delay where round trips are shorter than it, crowdSackDelay that
// in a crowd. A peer may have an RTO.Min of 100 ms: it sends again what is acknowledged later.
const (
	nearSackDelay  = 25 * time.Millisecond
	crowdSackDelay = 80 * time.Millisecond
)

// hurrySack has the SACK for what came from p wait no longer than a round trip, or nearSackDelay: a
// peer that has lost the last of what it sent waits for it, and for nothing else. In a crowd, or
// where no round trip is known, it may take crowdSackDelay, by the letter of section 6.2 SackDelay.
func (a *Assoc) hurrySack(p *path) {
	if a.cfg.RFC9260 {
		return
	}
	trip, most := p.ShortestRTT(), nearSackDelay
	if a.crowded || trip == 0 {
		most = crowdSackDelay
	}
	a.recv.SetSackDelay(min(a.cfg.SackDelay, max(trip, most)), a.cfg.LoneSackDelay)
}

// acknowledged clears error counters for what the peer acknowledged (sections 8.1 and 8.2).
func (a *Assoc) acknowledged(now rawio.Time, res tx.Result) {
	if !res.NewlyAcked {
		return
	}
	a.errors = 0
	a.continues = false // a new opportunity to transmit, also where the owner is amid one
	for i, p := range a.paths {
		switch {
		case res.Suspected.Has(i):
			a.suspected(now, p, res.Paths.Has(i))
		case res.Paths.Has(i):
			a.pathAlive(now, p)
			a.prove(now, p)
		}
	}
	a.dry()
}

// SackNow reports whether PollTransmit should be called before HandlePacket is called again: there have
// been losses, and a SACK is due that should not come to stand for all of a batch (section 6.2).
func (a *Assoc) SackNow() bool { return a.recv != nil && a.recv.SackNow() }
