package rx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// MaxSackDelay is the longest SACK.Delay that RFC 9260 section 6.2 allows.
const MaxSackDelay = 500 * time.Millisecond

// AckPolicy decides when a SACK is due (RFC 9260 sections 6.2 and 6.7): at once for the first DATA,
// for gaps, duplicates, dropped DATA and the I bit, else for every second packet and within
// SACK.Delay.
type AckPolicy struct {
	delay    time.Duration
	begun    bool       // the first DATA of the association was acknowledged
	packets  int        // with DATA since the last SACK
	due      bool       // a SACK has to go now
	deadline rawio.Time // or at this time
	wary     int        // packets with DATA until SACKs may stand for many packets again

	data   bool // the packet in processing has DATA
	urgent bool // and its SACK is not to be delayed
}

// NewAckPolicy returns a policy. A delay above MaxSackDelay is cut to it.
func NewAckPolicy(delay time.Duration) AckPolicy {
	return AckPolicy{delay: min(delay, MaxSackDelay), deadline: rawio.Never}
}

// Data notes a DATA chunk of the packet in processing; urgent says that its SACK must not wait.
func (a *AckPolicy) Data(urgent bool) {
	a.data = true
	a.urgent = a.urgent || urgent
}

// waryPackets is for how many packets with DATA a loss is remembered.
const waryPackets = 1024

// Loss notes that a packet was lost, of the peer's or of ours.
func (a *AckPolicy) Loss() { a.wary = waryPackets }

// PacketDone ends a packet. gaps says whether TSNs are missing, or were before this packet.
func (a *AckPolicy) PacketDone(now rawio.Time, gaps bool) {
	if !a.data {
		return
	}
	a.packets++
	a.wary = max(a.wary-1, 0)
	if a.urgent || gaps || !a.begun || a.packets >= 2 {
		a.due = true
	} else {
		a.deadline = min(a.deadline, now.Add(a.delay))
	}
	a.begun = true
	a.data, a.urgent = false, false
}

// Demand makes a SACK due that no packet has asked for: a window update.
func (a *AckPolicy) Demand() { a.due = true }

// Due reports whether a SACK has to go now.
func (a *AckPolicy) Due(now rawio.Time) bool { return a.due || !now.Before(a.deadline) }

// Now reports whether a SACK that is due should go before another packet is handled. Where packets come
// in batches one SACK for a batch is cheaper, but it may stand for all that is in flight: if it is lost,
// only T3-rtx goes on. So while there are losses every second packet gets its SACK (section 6.2).
func (a *AckPolicy) Now() bool { return a.due && a.wary > 0 }

// Pending reports whether DATA was received that no SACK has acknowledged, which outgoing DATA is
// to be bundled with.
func (a *AckPolicy) Pending() bool { return a.due || a.packets > 0 }

// Deadline returns when a delayed SACK becomes due, or Never.
func (a *AckPolicy) Deadline() rawio.Time { return a.deadline }

// Sent notes that everything received is acknowledged.
func (a *AckPolicy) Sent() { a.packets, a.due, a.deadline = 0, false, rawio.Never }
