package assoc

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Message is one user message to send. See Assoc.Send and Source.
type Message = tx.Message

// Source supplies messages at the moment they can be sent and learns when they are acknowledged.
type Source = tx.Source

// Runner is a Source that reports at once what it has in a row: a Run of at most RunMost.
type (
	Runner = tx.Runner
	Run    = tx.Run
)

// RunMost is the most messages of a Run.
const RunMost = tx.RunMost

// Received is one complete message of the peer, held until Release. A message that
// Config.MaxMessage allows but the receive buffer does not hold comes in pieces, in order (section
// 6.9). More says that the message goes on, Offset how many octets of it came before. A piece with
// Cut set, and no octets, ends a message whose rest will not come: the peer has restarted, or has
// given it up.
type Received = rx.Message

// Verdict is a Placer's answer about a DATA chunk.
type Verdict uint8

const (
	// Queue: ordinary delivery through Receive.
	Queue Verdict = iota
	// Consumed: the payload is placed; it costs no receive window and is not delivered. Only for a
	// whole message: a chunk with both B and E set.
	Consumed
	// DropUnacked: treat the chunk as if it had never been received; the peer sends it again.
	DropUnacked
	// AbortAssoc: the chunk violates the protocol above; the association is aborted.
	AbortAssoc
)

// Placer is asked about each new DATA chunk, after the checksum, tag, duplicate and window checks.
// That is before any queue, and before its TSN counts as received. d is a view into the packet that
// buf owns. Fragments of a message are offered too, with their flags.
type Placer interface {
	Place(now rawio.Time, d wire.Data, buf *rawio.Buf) Verdict
}

// RowPlacer is a Placer that takes DATA of several packets in one call, which costs less than Place
// for each.
type RowPlacer interface {
	Placer
	// PlaceRow takes the first packets of a row. It returns how many of them Place would have
	// answered with Consumed. Place is asked about the others.
	PlaceRow(now rawio.Time, row Row) int
}

// SetUpper sets the upper layer. p is asked about incoming DATA; with nil everything is queued for
// Receive. s supplies messages and hears of acknowledgements, also for messages of Send. If s is
// nil there is only Send, and acknowledgements go unreported. Call SetUpper before the first
// packet.
func (a *Assoc) SetUpper(p Placer, s Source) {
	a.hooks.placer, a.hooks.source = p, s
	a.connectUpper(a.sender())
}

// Send queues a message. Its memory belongs to the association until Source.Acked or
// EventSendFailed. When Message.Expires is over, only EventSendFailed comes. Send fails with
// ErrNotUp, ErrClosing, ErrReservedPPID, ErrSendBufferFull, ErrEmptyMessage, ErrMessageTooBig,
// ErrNeedsFragments, ErrInvalidStream or ErrNoPath.
func (a *Assoc) Send(now rawio.Time, m *Message) error {
	switch {
	case setupStates.has(a.state) || a.awaitsKeys():
		return ErrNotUp
	case a.state != Established:
		return ErrClosing
	case m.PPID == keymgmt.PPID && a.protection() != nil:
		return ErrReservedPPID
	case a.cfg.DisableFragments && m.Len() > a.MaxPayload():
		return ErrNeedsFragments
	}
	err := a.sender().Enqueue(m)
	a.send.hasUnackedSends = a.send.hasUnackedSends || err == nil
	return err
}

// Expect says whether the user is about to send more. Short messages may wait a moment for that
// (Config.NoDelay).
func (a *Assoc) Expect(more bool) {
	if more || !a.IsIdle() {
		a.sender().Expect(more)
	}
}

// Receive returns the next message, or piece of one, in delivery order. Release gives its window
// back.
func (a *Assoc) Receive() (*Received, bool) {
	if a.recv == nil {
		return nil, false
	}
	return a.recv.Receive()
}

// Release frees a message that Receive returned. The peer may learn of the larger window at the
// next PollTransmit. Until Release the message takes part of the window, also if the peer restarts.
func (a *Assoc) Release(r *Received) { a.recv.Release(r) }

// HoldSack holds, or releases, a SACK that is due only for the number of packets (RFC 9260 section
// 6.2). A caller that expects the packets to be answered within a moment holds it. The SACK then
// goes with that DATA. The caller releases it right after.
func (a *Assoc) HoldSack(on bool) {
	if a.recv != nil {
		a.recv.HoldSack(on)
	}
}

// SetCrowded says whether the association is one of very many that packets come for just now.
// Acknowledging each a little sooner is then not worth a packet and a timer. So the SACK may wait
// for DATA to go with, for as long as Config.SackDelay.
func (a *Assoc) SetCrowded(is bool) { a.hints.isCrowded = is }

// DataSent returns how many DATA chunks have been sent, each counted once.
func (a *Assoc) DataSent() uint64 {
	if a.IsIdle() {
		return a.idleState.sender.SentTSNs()
	}
	return a.sender().SentTSNs()
}

// SackDue says whether the next PollTransmit sends a SACK. A Release that opens the window by much
// makes one due.
func (a *Assoc) SackDue(now rawio.Time) bool { return a.recv != nil && a.recv.SackDue(now) }

// Close gives back all memory that the association holds of received packets. Call it after
// EventDown, when no Received is in use any more.
func (a *Assoc) Close() {
	if a.recv != nil {
		a.recv.Close()
	}
}

// Detach frees the user's memory: it copies payload of unacknowledged messages of stream into
// memory of the association. It does so for messages whose body lies within that slice (nil: any).
// more says that only a part was copied, because there is so much. Call again, after others have
// had the association.
func (a *Assoc) Detach(stream wire.StreamID, within []byte) (more bool) {
	return !a.IsIdle() && a.sender().Detach(stream, within)
}

// MaxPayload returns the user octets that one DATA chunk carries on the path with the smallest MTU.
// It leaves space for a SACK.
func (a *Assoc) MaxPayload() int { return a.sender().MaxPayload() }
