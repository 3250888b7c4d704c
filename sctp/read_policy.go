package sctp

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// readPolicy decides which goroutine reads a queue of the link, how the reader waits while nothing
// is there, and what is sent together. simplePolicy is the one to read first, adaptivePolicy the
// one that Transports have. docs/dev/read-policy.md describes both.
//
// LendLimit, GathersReplies, Coalesces and YieldsForLock may be called at any time. The reader of
// the queue calls the others.
type readPolicy interface {
	// LendLimit is for a goroutine that is about to wait for a packet. It may read the link itself
	// if it is back within that time. 0: only the receive goroutine reads.
	LendLimit() time.Duration
	// KeepsThread reports whether the reader stays on its operating system thread.
	KeepsThread() bool

	// WaitBatch waits for packets.
	WaitBatch(pkts []rawio.Packet) (n int, err error)
	// RecordArrival notes that packets have come.
	RecordArrival(now rawio.Time, packets int)
	// ExpectsMore reports whether to look for more packets before anything is sent for these.
	ExpectsMore(packets int) bool
	// TrainIsLate reports, if such a look has found none, whether that was the last one.
	TrainIsLate(now rawio.Time) bool
	// RecordHandled notes that packets are handled. woken is how many goroutines they have woken.
	// answered says that their association is another than before, or has sent messages since.
	RecordHandled(packets, octets int, woken uint64, answered bool)

	// HoldsSack reports whether a SACK waits for the answer of the goroutines that were woken.
	// RecordHeldSack follows on it.
	HoldsSack() bool
	RecordHeldSack(answered bool)
	// Coalesces reports whether packets of an association may go out with those of others.
	// withOthers says that others are being served with it, repliesExpected that several goroutines
	// are awake to answer.
	Coalesces(withOthers, repliesExpected bool) bool
	// GathersReplies reports whether the reader, while it is awake, sends what others leave to it.
	GathersReplies() bool
	// FlushOnWait makes the reader send that before it waits, if it can. It reports whether it can.
	FlushOnWait(t *Transport) bool

	// YieldsForLock reports whether a caller that waits for an association lock yields a few times
	// before it sleeps.
	YieldsForLock() bool
}

// forceSimple makes all Transports read by simplePolicy, for tests.
var forceSimple bool

// newReadPolicy returns the policy for a queue. waits says that the reader may decide how to wait.
func (t *Transport) newReadPolicy(q rawio.Shard, waits bool) readPolicy {
	if t.readsSimply {
		return simplePolicy{q}
	}
	return newAdaptivePolicy(t, q, waits)
}

// simplePolicy has one goroutine block in ReadBatch, handle the packets, send what they have
// caused, and block again. Nothing waits for anything else. Deadlines, Abort and the backlog do not
// depend on the policy.
type simplePolicy struct{ queue rawio.Shard }

func (simplePolicy) LendLimit() time.Duration { return 0 }
func (simplePolicy) KeepsThread() bool        { return false }

func (s simplePolicy) WaitBatch(pkts []rawio.Packet) (n int, err error) {
	return s.queue.ReadBatch(pkts)
}

func (simplePolicy) RecordArrival(rawio.Time, int)        {}
func (simplePolicy) ExpectsMore(int) bool                 { return false }
func (simplePolicy) TrainIsLate(rawio.Time) bool          { return true }
func (simplePolicy) RecordHandled(int, int, uint64, bool) {}

func (simplePolicy) HoldsSack() bool             { return false }
func (simplePolicy) RecordHeldSack(bool)         {}
func (simplePolicy) Coalesces(bool, bool) bool   { return false }
func (simplePolicy) GathersReplies() bool        { return false }
func (simplePolicy) FlushOnWait(*Transport) bool { return false }
func (simplePolicy) YieldsForLock() bool         { return false }
