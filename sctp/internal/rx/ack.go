package rx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// MaxSackDelay is the longest SACK.Delay that RFC 9260 section 6.2 allows.
const MaxSackDelay = 500 * time.Millisecond

// AckPolicy decides when a SACK is due (RFC 9260 sections 6.2 and 6.7): at once for the first DATA,
// for gaps, duplicates, dropped DATA and the I bit, else for every second packet and within
// SACK.Delay. To wait pays if DATA goes meanwhile, and costs a timer if not, which wakes a thread,
// and has to look at the association again. So where packets come more than SACK.Delay apart and
// one has waited in vain, SACK.Delay is none until DATA would have been in time.
type AckPolicy struct {
	sackDelay        time.Duration // for a packet that DATA of ours is expected to answer, with the SACK
	loneDelay        time.Duration // for any other
	lastDataAt       rawio.Time    // when the last packet with DATA came
	sackDueAt        rawio.Time    // when a SACK that waits has to go
	packetsSinceSack int32         // with DATA since the last SACK
	lossBackoff      int32         // packets with DATA until SACKs may stand for many packets again
	answeredInRow    uint8         // packets in a row that were answered by DATA
	strictRFC        bool          // no SACK goes before it has to
	delayExpired     bool          // the last one that waited did so in vain
	firstAcked       bool          // the first DATA of the association was acknowledged
	mustSend         bool          // a SACK has to go now
	isHeld           bool          // it may wait for DATA to go with, unless it is due for another reason than the number of packets

	// What came twice while the SACK for it waited, or just had, says how long the peer waits for
	// that: limit is half of it.
	delayLimit time.Duration // of delay and lone; 0: nothing is known
	lastWaited bool          // the last SACK has waited for all of its delay

	hasDuplicate bool // the packet in processing has a duplicate
	hasData      bool // the packet in processing has DATA
	isUrgent     bool // and its SACK is not to be delayed
}

// NewAckPolicy returns a policy. A delay above MaxSackDelay is cut to it. lone is the delay for
// packets that no DATA is expected to answer; 0 stands for the same. By the letter a SACK waits
// also where none did in vain.
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

// answeredThreshold is how many packets in a row were answered by DATA when the next is expected to
// be.
const answeredThreshold = 16

// NoteData notes a DATA chunk of the packet in processing; urgent says that its SACK must not wait.
func (a *AckPolicy) NoteData(urgent bool) {
	a.hasData = true
	a.isUrgent = a.isUrgent || urgent
}

// NoteDuplicate notes that a DATA chunk of the packet in processing has come before.
func (a *AckPolicy) NoteDuplicate() { a.hasDuplicate = true }

// minPeerTimeout is how soon a peer sends again at least. What comes twice sooner is the network's
// doing.
const minPeerTimeout = 10 * time.Millisecond

// learnDelayLimit takes that a peer has sent again what came so long ago, and was not acknowledged
// yet or only just.
func (a *AckPolicy) learnDelayLimit(ago time.Duration) {
	slow := a.sackDueAt != rawio.Never || a.lastWaited
	if a.strictRFC || !slow || ago < minPeerTimeout || a.delayLimit > 0 && a.delayLimit <= ago/2 {
		return
	}
	a.delayLimit = ago / 2
	a.setDelay(a.sackDelay, a.loneDelay)
}

// LossBackoffPackets is for how many packets with DATA a loss is remembered.
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
	case a.packetsSinceSack >= 2: // wanted knows
	case a.answeredInRow >= answeredThreshold:
		a.sackDueAt = now.Add(a.sackDelay)
	case a.delayExpired && seldom: // so that nobody has to be woken for it later
		a.mustSend = true
	default:
		a.sackDueAt = now.Add(a.loneDelay)
	}
	a.firstAcked = true
	a.hasData, a.isUrgent = false, false
}

// allowsFastPath says that the next packets with DATA that is in order ask for nothing but to be
// counted: there was one before, and no loss of late.
func (a *AckPolicy) allowsFastPath() bool { return a.firstAcked && a.lossBackoff == 0 && !a.hasData }

// PacketsDone ends n packets that came together, each with DATA in order, where plain says so.
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

// Hold has a SACK wait, or lets it go. Who holds it lets it go at once when it is clear whether
// DATA goes with it. While there are losses none waits.
func (a *AckPolicy) Hold(on bool) {
	a.isHeld = on && a.lossBackoff == 0
}

// DueNow reports whether a SACK that is due should go before another packet is handled. Where
// packets come in batches one SACK for a batch is cheaper, but it may stand for all that is in
// flight: if it is lost, only T3-rtx goes on. So while there are losses every second packet gets
// its SACK (section 6.2).
func (a *AckPolicy) DueNow() bool { return a.hasSackToSend() && a.lossBackoff > 0 }

// Pending reports whether DATA was received that no SACK has acknowledged, which outgoing DATA is
// to be bundled with.
func (a *AckPolicy) Pending() bool { return a.mustSend || a.packetsSinceSack > 0 }

// Deadline returns when a delayed SACK becomes due, or Never.
func (a *AckPolicy) Deadline() rawio.Time { return a.sackDueAt }

// NoteDataSent notes that DATA goes to the peer, with a SACK or without: had one waited, it would
// go along.
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
