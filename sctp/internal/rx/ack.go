package rx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// MaxSackDelay is the longest SACK.Delay that RFC 9260 section 6.2 allows.
const MaxSackDelay = 500 * time.Millisecond

// AckPolicy decides when a SACK is due (RFC 9260 sections 6.2 and 6.7): at once for the first DATA,
// for gaps, duplicates, dropped DATA and the I bit, else for every second packet and within
// SACK.Delay. To wait pays if DATA goes meanwhile, and costs a timer if not, which wakes a thread, and has to look at the association again. So
// where packets come more than SACK.Delay apart and one has waited in vain, SACK.Delay is none until DATA would have been in time.
type AckPolicy struct {
	delay    time.Duration // for a packet that DATA of ours is expected to answer, with the SACK
	lone     time.Duration // for any other
	last     rawio.Time    // when the last packet with DATA came
	deadline rawio.Time    // when a SACK that waits has to go
	packets  int32         // with DATA since the last SACK
	wary     int32         // packets with DATA until SACKs may stand for many packets again
	answered uint8         // packets in a row that were answered by DATA
	letter   bool          // no SACK goes before it has to
	vain     bool          // the last one that waited did so in vain
	begun    bool          // the first DATA of the association was acknowledged
	due      bool          // a SACK has to go now
	held     bool          // it may wait for DATA to go with, unless it is due for another reason than the number of packets

	// What came twice while the SACK for it waited, or just had, says how long the peer waits for that: limit is half of it.
	limit  time.Duration // of delay and lone; 0: nothing is known
	waited bool          // the last SACK has waited for all of its delay

	again  bool // the packet in processing has a duplicate
	data   bool // the packet in processing has DATA
	urgent bool // and its SACK is not to be delayed
}

// NewAckPolicy returns a policy. A delay above MaxSackDelay is cut to it. lone is the delay for packets that
// no DATA is expected to answer; 0 stands for the same. By the letter a SACK waits also where none did in vain.
func NewAckPolicy(delay, lone time.Duration, letter bool) AckPolicy {
	a := AckPolicy{deadline: rawio.Never, letter: letter}
	a.setDelay(delay, lone)
	return a
}

func (a *AckPolicy) setDelay(delay, lone time.Duration) {
	delay = min(delay, MaxSackDelay)
	if a.limit > 0 {
		delay = min(delay, a.limit)
	}
	if lone <= 0 || lone > delay {
		lone = delay
	}
	a.delay, a.lone = delay, lone
}

// answeredEnough is how many packets in a row were answered by DATA when the next is expected to be.
const answeredEnough = 16

// Data notes a DATA chunk of the packet in processing; urgent says that its SACK must not wait.
func (a *AckPolicy) Data(urgent bool) {
	a.data = true
	a.urgent = a.urgent || urgent
}

// Again notes that a DATA chunk of the packet in processing has come before.
func (a *AckPolicy) Again() { a.again = true }

// leastTimeout is how soon a peer sends again at least. What comes twice sooner is the network's doing.
const leastTimeout = 10 * time.Millisecond

// learn takes that a peer has sent again what came so long ago, and was not acknowledged yet or only just.
func (a *AckPolicy) learn(ago time.Duration) {
	slow := a.deadline != rawio.Never || a.waited
	if a.letter || !slow || ago < leastTimeout || a.limit > 0 && a.limit <= ago/2 {
		return
	}
	a.limit = ago / 2
	a.setDelay(a.delay, a.lone)
}

// WaryPackets is for how many packets with DATA a loss is remembered.
const WaryPackets = 1024

// Loss notes that a packet was lost, of the peer's or of ours.
func (a *AckPolicy) Loss() { a.wary = WaryPackets }

// PacketDone ends a packet. gaps says whether TSNs are missing, or were before this packet.
func (a *AckPolicy) PacketDone(now rawio.Time, gaps bool) {
	if !a.data {
		return
	}
	if a.again {
		a.learn(now.Sub(a.last))
		a.again = false
	}
	seldom := now.Sub(a.last) > a.lone
	a.last = now
	a.packets++
	a.wary = max(a.wary-1, 0)
	if a.packets >= 2 {
		a.answered = 0
	}
	switch {
	case a.urgent || gaps || !a.begun:
		a.due = true
	case a.packets >= 2: // wanted knows
	case a.answered >= answeredEnough:
		a.deadline = now.Add(a.delay)
	case a.vain && seldom: // so that nobody has to be woken for it later
		a.due = true
	default:
		a.deadline = now.Add(a.lone)
	}
	a.begun = true
	a.data, a.urgent = false, false
}

// plain says that the next packets with DATA that is in order ask for nothing but to be counted: there was one before, and no loss of late.
func (a *AckPolicy) plain() bool { return a.begun && a.wary == 0 && !a.data }

// PacketsDone ends n packets that came together, each with DATA in order, where plain says so.
func (a *AckPolicy) PacketsDone(now rawio.Time, n int) {
	a.Data(false)
	if a.PacketDone(now, false); n > 1 {
		a.packets += int32(n - 1)
		a.answered = 0
	}
}

// Demand makes a SACK due that no packet has asked for: a window update.
func (a *AckPolicy) Demand() { a.due = true }

// Due reports whether a SACK has to go now.
func (a *AckPolicy) Due(now rawio.Time) bool {
	if !now.Before(a.deadline) {
		a.due, a.answered, a.vain, a.waited = true, 0, !a.letter, true
	}
	return a.wanted() && (a.due || !a.held)
}

// wanted says whether there is a SACK to send, held back or not.
func (a *AckPolicy) wanted() bool {
	return a.due || a.packets >= 2
}

// Hold has a SACK wait, or lets it go. Who holds it lets it go at once when it is clear whether DATA goes with it. While there are losses none waits.
func (a *AckPolicy) Hold(on bool) {
	a.held = on && a.wary == 0
}

// Now reports whether a SACK that is due should go before another packet is handled. Where packets come
// in batches one SACK for a batch is cheaper, but it may stand for all that is in flight: if it is lost,
// only T3-rtx goes on. So while there are losses every second packet gets its SACK (section 6.2).
func (a *AckPolicy) Now() bool { return a.wanted() && a.wary > 0 }

// Pending reports whether DATA was received that no SACK has acknowledged, which outgoing DATA is
// to be bundled with.
func (a *AckPolicy) Pending() bool { return a.due || a.packets > 0 }

// Deadline returns when a delayed SACK becomes due, or Never.
func (a *AckPolicy) Deadline() rawio.Time { return a.deadline }

// Answered notes that DATA goes to the peer, with a SACK or without: had one waited, it would go along.
func (a *AckPolicy) Answered(now rawio.Time) {
	if a.vain && now.Sub(a.last) <= a.lone {
		a.vain = false
	}
}

// Sent notes that everything received is acknowledged.
func (a *AckPolicy) Sent() {
	if a.packets == 1 && !a.due { // before it had to be
		a.answered, a.vain = min(a.answered+1, answeredEnough), false
	}
	a.waited = a.waited && a.deadline != rawio.Never
	a.packets, a.due, a.deadline = 0, false, rawio.Never
}
