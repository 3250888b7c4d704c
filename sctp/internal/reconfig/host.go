package reconfig

import (
	"time"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Hold tells apart what HoldOut has begun. None is 0.
type Hold uint32

// Host is the association, as far as a Machine asks and changes it. A list of streams that is nil
// means all of them.
type Host interface {
	// Streams returns how many streams go out and come in.
	Streams() (out, in int)
	// NextTSN returns the TSN that the next new DATA chunk will have.
	NextTSN() wire.TSN
	// CumTSN returns the TSN up to which all DATA of the peer has come.
	CumTSN() wire.TSN
	// IsAcked says whether the peer has acknowledged own DATA up to a TSN.
	IsAcked(t wire.TSN) bool
	// RTO returns the retransmission timeout of the path that a request takes.
	RTO() time.Duration

	// HoldOut has messages wait that are given from now on for the streams, until ReleaseOut. A
	// message waits until everything is released that was held when it was given, and is for its
	// stream.
	HoldOut(streams []wire.StreamID) Hold
	// HoldMore adds streams to a Hold. It does not, and returns false, if another was begun later.
	HoldMore(h Hold, streams []wire.StreamID) bool
	// HasSettled says whether all that was given before HoldOut for its streams has its TSNs, but
	// for what an older Hold has. With acked they are also acknowledged, and so are those of all
	// other streams.
	HasSettled(h Hold, acked bool) bool
	// ReleaseOut ends HoldOut.
	ReleaseOut(h Hold)
	// ResetOut makes 0 the next SSN of streams. The peer has received every TSN up to last.
	ResetOut(streams []wire.StreamID, last wire.TSN)
	// OutIsAtZero says whether the next SSN of each of the streams is 0.
	OutIsAtZero(streams []wire.StreamID) bool

	// HoldIn keeps DATA of the streams with TSNs beyond after from being processed, until
	// ReleaseIn.
	HoldIn(streams []wire.StreamID, after wire.TSN)
	// ReleaseIn ends HoldIn, if there was one.
	ReleaseIn()
	// ResetIn makes 0 the next SSN that is expected of streams, for DATA with TSNs beyond after.
	// All DATA up to there has come.
	ResetIn(streams []wire.StreamID, after wire.TSN)
	// FreezeIn acknowledges DATA, and puts it into the order of no stream until RestartTSNs or
	// ThawIn: it is not known yet whether it was sent before or after a reset.
	FreezeIn()
	// ThawIn ends FreezeIn without a reset.
	ThawIn()

	// AddOut and AddIn add streams.
	AddOut(n int)
	AddIn(n int)
	// RestartTSNs has own DATA go on with TSN next, and expects the peer's to go on with another.
	// All SSNs begin with 0, in both directions. It ends FreezeIn: DATA before TSN expected is of
	// before, and resets beyond it are of later.
	RestartTSNs(next, expected wire.TSN)

	// Violate ends the association: the peer has broken the protocol.
	Violate(err error)

	// Report tells the user of something that is done, or was refused.
	Report(Event)
}

// EventKind says what an Event is about.
type EventKind uint8

// What may happen (RFC 6525 section 6.1).
const (
	StreamsReset EventKind = iota + 1 // the Stream Reset Event
	TSNsReset                         // the Association Reset Event
	StreamsAdded                      // the Stream Change Event
)

// Event is what the user hears.
type Event struct {
	Kind     EventKind
	Request  RequestID       // the own request, 0 if the peer has asked for it
	ByPeer   bool            // the peer has asked for it
	Incoming bool            // it is about streams that come in, else about those that go out
	Streams  []wire.StreamID // StreamsReset; nil: all
	Count    int             // StreamsAdded: how many
	Err      error           // why it was not done; nil: it was
}
