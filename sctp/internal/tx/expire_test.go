package tx

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// enqueue gives a message to the sender and returns its token.
func (l *senderLab) enqueue(size int, m Message) uint64 {
	l.t.Helper()
	l.token++
	m.Token, m.Body[0] = l.token, make([]byte, size)
	must.OK(l.t, l.s.Enqueue(&m))
	return l.token
}

// expiredTokens returns the tokens of the messages that Expire drops.
func (l *senderLab) expiredTokens() (tokens []uint64) {
	l.t.Helper()
	for _, f := range l.s.Expire(l.now) {
		check.That(l.t, !f.Sent && !f.Pulled, "%+v", f)
		tokens = append(tokens, f.Token)
	}
	return tokens
}

func TestLifetime(t *testing.T) {
	l := newLab(t, 1)
	l.s.SetPeer(2*full, 16) // room for two full chunks
	l.now = 10 * second
	short, long := l.now.Add(200*time.Millisecond), l.now.Add(2*time.Second)
	l.enqueue(3*full, Message{Expires: short}) // 1: sent in part
	l.enqueue(100, Message{Expires: short})    // 2: waits for the window
	l.enqueue(100, Message{})                  // 3: for ever
	l.enqueue(100, Message{Expires: long})     // 4
	l.enqueue(100, Message{Expires: short})    // 5
	l.expectTSNs("before", "1 | 2")
	check.Equal(t, "next timeout", l.s.NextTimeout(), short)
	l.now = short - 1
	got := l.expiredTokens()
	check.That(t, got == nil, "too early: %v", got)
	l.now, l.s.cfg.SendBuffer = short, 3*full+400
	check.Equal(t, "message for a full buffer", l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, 1)}}),
		ErrSendBufferFull)
	check.Equal(t, "expired", fmt.Sprint(l.expiredTokens()), "[2 5]") // not the first one, which is on its way
	check.Equal(t, "octets queued", l.s.Queued(), full+200)
	check.That(t, l.s.queue.waiting.at(l.s.queue.waiting.length).Body[0] == nil,
		"what has expired keeps the user's memory")
	check.Error(t, "what has expired takes room", l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, 200)}, Token: 6}),
		nil)
	l.s.queue.current.msg.Expires = 1 // long ago: what was begun is sent all the same
	l.sackAfter(10, 2)
	got = l.expiredTokens()
	check.That(t, got == nil, "expired %v", got)
	// The messages that are left have TSNs and SSNs without a hole.
	var ssns []wire.SSN
	for _, p := range l.transmit() {
		for _, d := range chunks(t, p) {
			ssns = append(ssns, d.SSN())
		}
	}
	check.Equal(t, "SSNs", fmt.Sprint(ssns), "[0 1 2 3]")
	l.sack(6)
	check.That(t, fmt.Sprint(l.acked) == "[1 3 4 6]" && l.s.queue.bufferedOctets == 0 && l.s.queue.waitingOctets == 0,
		"acknowledged %v, %d octets held, %d unsent", l.acked, l.s.queue.bufferedOctets, l.s.queue.waitingOctets)
	// The life of message 4 is over: nothing to do, once.
	l.now = long
	got = l.expiredTokens()
	check.That(t, got == nil && l.s.NextTimeout() == rawio.Never, "expired %v, next timeout %v", got, l.s.NextTimeout())
}

// A message that waits in front of a closed window goes, and the zero window probe of the next one
// is not put off by that.
func TestLifetimeBeforeAClosedWindow(t *testing.T) {
	l := newLab(t, 1)
	l.s.SetPeer(0, 16)
	l.enqueue(100, Message{Expires: 700 * ms})
	l.expectTSNs("closed", "")
	check.Equal(t, "next timeout", l.s.NextTimeout(), 700*ms)
	l.now = 700 * ms
	got := l.expiredTokens()
	check.That(t, fmt.Sprint(got) == "[1]" && l.s.NextTimeout() == rawio.Never && l.s.Idle(l.now),
		"expired %v, next timeout %v", got, l.s.NextTimeout())
	l.enqueue(100, Message{})
	l.expectTSNs("still closed", "")
	check.Equal(t, "probe, one RTO after the window was found closed, at", l.s.NextTimeout(), second)
	l.now = second
	l.expectTSNs("probe", "1")
}

func TestFailedMessagesDoNotExpireAgain(t *testing.T) {
	l := newLab(t, 1)
	l.s.SetPeer(0, 16)
	l.enqueue(100, Message{Expires: second})
	l.s.Stop()
	f, ok := l.s.NextFailed()
	must.That(t, ok && f.Token == 1, "%v, %v", f, ok)
	_, ok = l.s.NextFailed()
	check.That(t, !ok && l.s.NextTimeout() == rawio.Never, "next timeout %v", l.s.NextTimeout())
	l.now = second
	got := l.expiredTokens()
	check.That(t, got == nil, "%v", got)
}

func TestDestinationOfAMessage(t *testing.T) {
	l := newLab(t, 3)
	// req 9260-6.4-1
	for _, path := range []uint8{2, 0, 3, 3, 1} {
		l.enqueue(100, Message{Path: path})
	}
	l.enqueue(2*full, Message{Path: 2})
	l.expectTSNs("each to its own path", "1>1 | 2 | 3 4>2 | 5 | 6>1 | 7>1")
	l.sack(7)
	for _, state := range []PathState{Unconfirmed, PotentiallyFailed, Inactive} {
		l.pathAt(1).State = state
		l.enqueue(100, Message{Path: 2})
		p := l.s.Poll(l.now)
		check.That(t, p == l.pathAt(0), "%v: data goes to %v", state, p.Remote)
		l.transmit()
	}
	check.Equal(t, "a fourth path", l.s.Enqueue(&Message{Path: 4, Body: [2][]byte{{1}}}), ErrPath)
}

// A path whose cwnd is full holds its message back, and what comes behind it.
func TestDestinationHasItsOwnCwnd(t *testing.T) {
	l := newLab(t, 2)
	for range 5 {
		l.enqueue(full, Message{Path: 2})
	}
	l.enqueue(full, Message{})
	l.expectTSNs("cwnd of 4000", "1>1 | 2>1 | 3>1 | 4>1 | 5>1 | 6")
	for range 2 {
		l.enqueue(full, Message{Path: 2})
	}
	l.enqueue(full, Message{})
	l.expectTSNs("full", "")
	l.sack(5)
	l.expectTSNs("open again", "7>1 | 8>1 | 9")
}

func TestNoBundle(t *testing.T) {
	l := newLab(t, 1)
	for _, alone := range []bool{false, false, true, false, true, true, false, false} {
		l.enqueue(50, Message{NoBundle: alone})
	}
	l.expectTSNs("one at a time", "1 2 | 3 | 4 | 5 | 6 | 7 8")
	l.sack(8)
	l.enqueue(full+50, Message{NoBundle: true})
	l.enqueue(50, Message{})
	l.expectTSNs("in two chunks", "9 | 10 | 11")
}

// What is not for a Source to ask has no effect there.
func TestSourceTakesNoOptions(t *testing.T) {
	// req 3758-4.2-2: DDP is a Source
	l := newLab(t, 2)
	l.s.SetUpper(overreachingSource{}, l)
	l.s.Poll(second)
	m := l.s.queue.current.msg
	check.That(t, l.s.queue.current.loaded && m.Expires == 0 && m.Path == 0 && !m.NoBundle, "%+v", m)
}

// overreachingSource is a Source that sets the fields that are not its own.
type overreachingSource struct{}

func (overreachingSource) Next(_ rawio.Time, _ int, m *Message) bool {
	m.Body[0], m.Expires, m.Path, m.NoBundle = make([]byte, 10), 1, 9, true
	return true
}
func (overreachingSource) Idle() bool                              { return false }
func (overreachingSource) Acked(rawio.Time, wire.StreamID, uint64) {}
