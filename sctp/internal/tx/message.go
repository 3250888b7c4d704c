package tx

import (
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// HeadCap is the most octets that a Message carries in its Head.
const HeadCap = 26

// Message is one user message: its user data is Head[:HeadLen], then both pieces of Body.
type Message struct {
	Stream    wire.StreamID
	Unordered bool
	// SackNow asks the peer not to delay the SACK: the I bit of the last chunk (section 6.1).
	SackNow bool
	PPID    uint32 // in host order
	// HeadLen is how many octets of Head count, up to HeadCap.
	HeadLen uint8
	// Head is copied; it precedes Body.
	Head [HeadCap]byte

	// NoBundle, Path, Policy, Reserve, Expires and Limit are for Enqueue only. A Source is asked at
	// the moment that its message can be sent.

	// NoBundle keeps other messages out of the packets in which new chunks of this one go.
	NoBundle bool
	// Path is 1 + the index of the path that new chunks of the message take while that is active. 0
	// leaves the choice to the Sender.
	Path uint8
	// Policy says when the message is abandoned although it was sent.
	Policy AbandonPolicy
	// Reserve takes the room that HasReserve tells of, and not that of HasRoom.
	Reserve bool
	// Body is the user's memory. It is referenced, never copied and never written to, until the
	// message is acknowledged or has failed.
	Body [2][]byte
	// Token is given back with the acknowledgement or the failure.
	Token uint64

	// Expires is when the message is no longer worth sending, unless a part of it was sent before.
	// 0 means never. See Expire. With AbandonExpired it holds for what was sent as well.
	Expires rawio.Time
	// Limit is how often a chunk is sent again, or for which messages this one is abandoned: see
	// Policy.
	Limit   uint32
	arrival uint32 // counts messages, where a scheduler chooses; it wraps
}

// Len returns the octets of user data.
func (m *Message) Len() int { return int(m.HeadLen) + len(m.Body[0]) + len(m.Body[1]) }

// Sink hears when a message is done. Calls come from within the Sender, which must not be called
// back from there.
type Sink interface {
	// Acked says that the cumulative TSN has passed the message, all its fragments: its memory is
	// free. Calls come in TSN order.
	Acked(now rawio.Time, stream wire.StreamID, token uint64)
}

// Source supplies messages at the moment the association can send them. So nothing waits in a queue
// on the way out.
type Source interface {
	Sink
	// Next fills m, which is zero, with a message of 1 to max octets on an existing stream. It
	// returns false if there is nothing to send now. Any other message is a fault, see Fault. max
	// is what one DATA chunk carries, or what is left of a packet that has DATA already. A longer
	// message is kept for the next packet. One that no packet carries, even without a SACK, is
	// fragmented. Next is called when cwnd and rwnd allow sending. It is also called to learn
	// whether there is something to probe a closed window with, or to wait for before shutdown.
	Next(now rawio.Time, max int, m *Message) bool
	// Idle says that Next would return false, and do nothing else.
	Idle() bool
}

// upperLayer is what is above the Sender.
type upperLayer struct {
	source Source
	sink   Sink
	fault  *invariant.Error // the Source has broken its word: it is asked no more
}
