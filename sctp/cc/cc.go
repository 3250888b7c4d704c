package cc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Controller decides how much DATA may be in flight to one destination address.
type Controller interface {
	// Window returns cwnd.
	Window() int
	// Ssthresh returns the slow-start threshold.
	Ssthresh() int
	// OnSent says that octets of DATA were sent, after which flight octets are outstanding.
	OnSent(now rawio.Time, octets, flight int)
	// OnAck says that a SACK acknowledged DATA that was sent to this destination. It comes before
	// the OnLoss of the same SACK (section 7.2.4).
	OnAck(now rawio.Time, a Ack)
	// OnLoss says that a SACK has revealed a loss outside Fast Recovery (section 7.2.3).
	OnLoss(now rawio.Time)
	// Undo takes the last OnLoss or OnTimeout back: there was no loss. It does nothing if a mark or
	// Reset has come since, and never lowers the window.
	Undo(now rawio.Time)
	// OnECN says that the peer has echoed a congestion mark (RFC 3168 section 6.1.2). The reaction
	// is that to a loss, or milder (RFC 8511). It comes at most once in a window of data, and never
	// raises the window.
	OnECN(now rawio.Time)
	// OnTimeout says that T3-rtx has expired (section 7.2.3).
	OnTimeout(now rawio.Time)
	// OnIdle comes before the first transmission after a silence of rtos whole RTOs (section
	// 7.2.1). Nothing was sent since then.
	OnIdle(now, since rawio.Time, rtos int)
	// SetPMDCS says how large a DATA chunk fits the path: the path MTU has changed.
	SetPMDCS(octets int)
	// Reset goes back to the initial parameters: the path itself has changed (section 7.2.5).
	Reset()
}

// Ack is what one SACK tells about the DATA sent to one destination.
type Ack struct {
	// Octets are newly acknowledged, by the cumulative TSN or by a gap block.
	Octets int
	// Full are those of Octets that were in flight when cwnd was full, since it was last reduced.
	// It need not be full when they are acknowledged. At the end of an answer less is sent, but the
	// path has carried the window.
	Full int
	// Dups are the octets of DATA that the SACK lists as duplicates.
	Dups int
	// Flight is the flight size before the SACK.
	Flight int
	// Recovery is set while the sender is in Fast Recovery.
	Recovery bool
	// Spread is set while packets are spread over the round trip, so that growth makes no burst.
	Spread bool
	// AllAcked is set when the SACK has left nothing outstanding.
	AllAcked bool
	// RTT is the round trip time that the SACK measured, once in a round trip (section 6.3.1), or
	// 0.
	RTT time.Duration
	// Trip is the shortest round trip of the chunks newly acknowledged that were sent once, or 0.
	// It may be longer than the path's by the delay of a SACK.
	Trip time.Duration
}

// Factory makes the controller of a destination. pmdcs is the largest DATA chunk in octets, chunk
// header included, that fits the path. ipv6 says which family the destination's address is of.
type Factory func(pmdcs int, ipv6 bool) Controller
