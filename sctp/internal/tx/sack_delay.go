package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A peer may wait before it acknowledges a lone packet (RFC 9260 section 6.2). It waits for another
// packet, or for DATA that the SACK goes along with. It does not say for how long, so that is
// learnt from SACKs that leave nothing to acknowledge. It is by how much they come later than the
// shortest recent round trip. That is the round trip of a HEARTBEAT, or of DATA that was
// acknowledged at once.
const (
	// defaultSackDelay is the delay of a peer of which nothing is known: what section 6.2
	// recommends.
	defaultSackDelay = 200 * time.Millisecond
	// minSackDelay is what it may take any peer to come to it.
	minSackDelay = 5 * time.Millisecond
	// sackDelayWindow is how many waits are remembered at least, and half of how many at most.
	sackDelayWindow = 32
)

// sackDelays are the peer's on one path.
type sackDelays struct {
	current, previous time.Duration // the longest of n waits, and of sackDelayWindow before them
	samples           int           // 0: there were none
}

func (w *sackDelays) addSample(d time.Duration) {
	if w.samples == sackDelayWindow {
		*w = sackDelays{previous: w.current}
	}
	w.samples++
	w.current = max(w.current, d)
}

// longestDelay returns the longest recent wait.
func (w *sackDelays) longestDelay() time.Duration {
	if w.samples == 0 {
		return defaultSackDelay
	}
	return max(w.current, w.previous, minSackDelay)
}

// observeSackDelay notes how soon the SACK has come for the last of what it acknowledges, and
// whether it was asked for.
func (p *Path) observeSackDelay(now rawio.Time, c ackedChunks) {
	k, r := &p.sack, c.record
	if r.flags&flagAmbiguous != 0 {
		return
	}
	if d := time.Duration(stampOf(now)-r.sentStamp) * time.Microsecond; k.minRTT == 0 || d < k.minRTT {
		k.minRTT = max(d, 1)
	}
	k.sackNowAsked = k.sackNowAsked || r.wireFlags&wire.FlagI != 0
}

// learnSackDelay learns from a SACK that has acknowledged all there was, unless it was asked for.
func (p *Path) learnSackDelay() {
	if k := &p.sack; k.minRTT > 0 && !k.sackNowAsked {
		p.sackDelays.addSample(k.minRTT - p.rttEst.minRTT.get())
	}
}

// learnLateSack learns that the peer has had the chunk of a probe for a lone packet twice. It has
// waited for longer than before, if its SACK was not lost.
func (b *tailProbe) learnLateSack() {
	if p := b.singlePacketPath; p != nil {
		p.sackDelays.addSample(min(2*b.probeDelay, defaultSackDelay))
		b.singlePacketPath = nil
	}
}
