package rx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// MaxSackDelay is the longest SACK.Delay that RFC 9260 section 6.2 allows.
const MaxSackDelay = 500 * time.Millisecond

// AckPolicy decides when a SACK is due (RFC 9260 sections 6.2 and 6.7). It is due at once for the
// first DATA, for gaps, duplicates, dropped DATA and the I bit. Otherwise one is due for every
// second packet, and within SACK.Delay. Waiting pays if DATA goes meanwhile. If not it costs a
// timer, which wakes a thread that has to look at the association again. So if packets come more
// than SACK.Delay apart and a SACK has waited without DATA, none is delayed. That lasts until DATA
// would have been in time.
type AckPolicy struct {
	sackDelay        time.Duration // for a packet that DATA of ours is expected to answer, with the SACK
	loneDelay        time.Duration // for any other
	lastDataAt       rawio.Time    // when the last packet with DATA came
	sackDueAt        rawio.Time    // when a SACK that waits has to go
	packetsSinceSack int32         // with DATA since the last SACK
	lossBackoff      int32         // packets with DATA until SACKs may stand for many packets again
	answeredInRow    uint8         // packets in a row that were answered by DATA
	strictRFC        bool          // no SACK goes before it has to
	delayExpired     bool          // the last delayed SACK was not carried by DATA
	firstAcked       bool          // the first DATA of the association was acknowledged
	mustSend         bool          // a SACK has to go now
	// A SACK that is due only for the number of packets may wait for DATA to carry it.
	isHeld bool

	// A duplicate that comes while its SACK waits, or just has, shows how long the peer waits.
	// delayLimit is half of that.
	delayLimit time.Duration // of sackDelay and loneDelay; 0: nothing is known
	lastWaited bool          // the last SACK has waited for all of its delay

	hasDuplicate bool // the packet in processing has a duplicate
	hasData      bool // the packet in processing has DATA
	isUrgent     bool // and its SACK is not to be delayed
}

// NewAckPolicy returns a policy. A delay above MaxSackDelay is cut to it. lone is the delay for
// packets that no DATA is expected to answer; 0 stands for the same. With letter, strict RFC mode,
// a SACK is delayed also where no DATA comes to carry it.
func NewAckPolicy(delay, lone time.Duration, letter bool) AckPolicy {
	a := AckPolicy{sackDueAt: rawio.Never, strictRFC: letter}
	a.setDelay(delay, lone)
	return a
}

func (a *AckPolicy) setDelay(delay, lone time.Duration) {
	delay = min(delay, MaxSackDelay)
	if a.delayLimit > 0 {
		delay = min(delay, a.delayLimit)
	}
	if lone <= 0 || lone > delay {
		lone = delay
	}
	a.sackDelay, a.loneDelay = delay, lone
}

// answeredThreshold is how many packets in a row DATA must have answered before an answer to the
// next is expected.
const answeredThreshold = 16

// NoteData notes a DATA chunk of the packet in processing; urgent says that its SACK must not wait.
func (a *AckPolicy) NoteData(urgent bool) {
	a.hasData = true
	a.isUrgent = a.isUrgent || urgent
}

// NoteDuplicate notes that a DATA chunk of the packet in processing has come before.
func (a *AckPolicy) NoteDuplicate() { a.hasDuplicate = true }

// minPeerTimeout is the least time until a peer retransmits. The network has doubled what comes
// twice sooner.
const minPeerTimeout = 10 * time.Millisecond

// learnDelayLimit notes that a peer has retransmitted what came so long ago. That was not
// acknowledged yet, or only just.
func (a *AckPolicy) learnDelayLimit(ago time.Duration) {
	slow := a.sackDueAt != rawio.Never || a.lastWaited
	if a.strictRFC || !slow || ago < minPeerTimeout || a.delayLimit > 0 && a.delayLimit <= ago/2 {
		return
	}
	a.delayLimit = ago / 2
	a.setDelay(a.sackDelay, a.loneDelay)
}

// LossBackoffPackets is how many packets with DATA a loss is remembered for.
const LossBackoffPackets = 1024

// NoteLoss notes that a packet was lost, of the peer's or of ours.
func (a *AckPolicy) NoteLoss() { a.lossBackoff = LossBackoffPackets }

// PacketDone ends a packet. gaps says whether TSNs are missing, or were before this packet.
func (a *AckPolicy) PacketDone(now rawio.Time, gaps bool) {
	if !a.hasData {
		return
	}
	if a.hasDuplicate {
		a.learnDelayLimit(now.Sub(a.lastDataAt))
		a.hasDuplicate = false
	}
	seldom := now.Sub(a.lastDataAt) > a.loneDelay
	a.lastDataAt = now
	a.packetsSinceSack++
	a.lossBackoff = max(a.lossBackoff-1, 0)
	if a.packetsSinceSack >= 2 {
		a.answeredInRow = 0
	}
	switch {
	case a.isUrgent || gaps || !a.firstAcked:
		a.mustSend = true
	case a.packetsSinceSack >= 2: // hasSackToSend is true
	case a.answeredInRow >= answeredThreshold:
		a.sackDueAt = now.Add(a.sackDelay)
	case a.delayExpired && seldom: // so that no timer has to wake a thread later
		a.mustSend = true
	default:
		a.sackDueAt = now.Add(a.loneDelay)
	}
	a.firstAcked = true
	a.hasData, a.isUrgent = false, false
}

// allowsFastPath says that further packets with DATA in order only have to be counted: there was
// one before, and no recent loss.
func (a *AckPolicy) allowsFastPath() bool { return a.firstAcked && a.lossBackoff == 0 && !a.hasData }

// PacketsDone ends n packets that came together, each with DATA in order. allowsFastPath must have
// returned true.
func (a *AckPolicy) PacketsDone(now rawio.Time, n int) {
	a.NoteData(false)
	if a.PacketDone(now, false); n > 1 {
		a.packetsSinceSack += int32(n - 1)
		a.answeredInRow = 0
	}
}

// Demand makes a SACK due that no packet has asked for: a window update.
func (a *AckPolicy) Demand() { a.mustSend = true }

// Due reports whether a SACK has to go now.
func (a *AckPolicy) Due(now rawio.Time) bool {
	if !now.Before(a.sackDueAt) {
		a.mustSend, a.answeredInRow, a.delayExpired, a.lastWaited = true, 0, !a.strictRFC, true
	}
	return a.hasSackToSend() && (a.mustSend || !a.isHeld)
}

// hasSackToSend says whether there is a SACK to send, held back or not.
func (a *AckPolicy) hasSackToSend() bool {
	return a.mustSend || a.packetsSinceSack >= 2
}

// Hold makes a SACK wait, or lets it go. A caller that holds it lets it go once it is clear whether
// DATA goes with it. While there are losses none waits.
func (a *AckPolicy) Hold(on bool) {
	a.isHeld = on && a.lossBackoff == 0
}

// DueNow reports whether a SACK that is due should go before another packet is handled. Where
// packets come in batches one SACK for a batch is cheaper. But it may stand for all that is in
// flight: if it is lost, only T3-rtx helps. So while there are losses every second packet gets its
// SACK (section 6.2).
func (a *AckPolicy) DueNow() bool { return a.hasSackToSend() && a.lossBackoff > 0 }

// Pending reports whether DATA was received that no SACK has acknowledged, which outgoing DATA is
// to be bundled with.
func (a *AckPolicy) Pending() bool { return a.mustSend || a.packetsSinceSack > 0 }

// Deadline returns when a delayed SACK becomes due, or Never.
func (a *AckPolicy) Deadline() rawio.Time { return a.sackDueAt }

// NoteDataSent notes that DATA goes to the peer, with a SACK or without. A delayed SACK would have
// gone along.
func (a *AckPolicy) NoteDataSent(now rawio.Time) {
	if a.delayExpired && now.Sub(a.lastDataAt) <= a.loneDelay {
		a.delayExpired = false
	}
}

// NoteSackSent notes that everything received is acknowledged.
func (a *AckPolicy) NoteSackSent() {
	if a.packetsSinceSack == 1 && !a.mustSend { // before it had to be
		a.answeredInRow, a.delayExpired = min(a.answeredInRow+1, answeredThreshold), false
	}
	a.lastWaited = a.lastWaited && a.sackDueAt != rawio.Never
	a.packetsSinceSack, a.mustSend, a.sackDueAt = 0, false, rawio.Never
}
