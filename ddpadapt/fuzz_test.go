package ddpadapt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What a message of the tracked session is.
const (
	aSegment = iota
	aTerminate
	aStray     // an Accept, which has no place there
	aMalformed // an ordered one
)

// tracked is a passive session, and what the model knows of it: messages counted from 0, without
// any wrap.
type tracked struct {
	*end
	in     fuzzinput.Script
	s      *Session
	u      *user
	first  uint16 // DDP-SSN of message 0
	limit  int    // messages that may wait
	next   int    // the message whose turn it is
	wait   map[int]int
	open   bool // accepted
	closed bool // the peer has terminated
	dead   bool
	want   []string
}

// sendMessage sends one, a number of places ahead of its turn or behind.
func (k *tracked) sendMessage() {
	kind, ahead := k.in.Next(), k.in.Next()
	switch kind >> 4 {
	case 1:
		ahead = int(k.in.Next16())
	case 2:
		ahead += MaxInFlight - 128
	case 3:
		ahead -= 64
	default:
		ahead %= 8
	}
	kind %= 16
	if kind > aMalformed {
		kind = aSegment
	}
	ahead = int(uint16(ahead))
	n := k.next + ahead
	b := binary.BigEndian.AppendUint16(nil, k.first+uint16(n))
	ppid, flags := uint32(PPIDControl), uint8(wire.FlagU)
	switch kind {
	case aTerminate:
		b = append(b, 0, byte(fnTerminate))
	case aStray:
		b = append(b, 0, byte(fnAccept))
	default:
		ppid = PPIDSegment
		var h [ddp.MaxHeaderLen]byte
		b = append(b, h[:ddp.Tagged{Last: true, STag: 1, TO: uint64(n)}.Put(h[:])]...)
		if kind == aMalformed {
			flags = 0
		}
	}
	verdict := assoc.Consumed
	if !k.dead {
		verdict = k.expectVerdict(n, ahead, kind)
	}
	dead := k.dead
	if got := k.injectMessage(1, ppid, flags, b); got != verdict && !dead {
		k.Fatalf("message %d, %d ahead, kind %d: verdict %d, want %d", n, ahead, kind, got, verdict)
	}
}

// expectVerdict says what becomes of a message.
func (k *tracked) expectVerdict(n, ahead, kind int) assoc.Verdict {
	_, again := k.wait[n]
	switch {
	case ahead >= MaxInFlight || again:
		k.sessionDied()
	case ahead == 0 && (k.open || kind != aSegment):
		k.judgeTurn(n, kind)
	case len(k.wait) == k.limit:
		return assoc.DropUnacked
	default:
		k.wait[n] = kind
	}
	k.drainWaiting()
	return assoc.Consumed
}

// judgeTurn judges the message whose turn it is.
func (k *tracked) judgeTurn(n, kind int) {
	k.next++
	switch {
	case kind == aStray, kind == aMalformed, k.closed, kind == aTerminate && !k.open:
		k.sessionDied()
	case kind == aTerminate:
		k.closed = true
		k.want = append(k.want, "peer closed")
	default:
		k.want = append(k.want, fmt.Sprintf("tagged %d+0", n))
	}
}

// sessionDied is the end of the session, of which the user of its stream hears.
func (k *tracked) sessionDied() {
	k.dead = true
	if k.open {
		k.want = append(k.want, "fatal 3/0")
	}
}

func (k *tracked) drainWaiting() {
	for !k.dead {
		kind, ok := k.wait[k.next]
		if !ok || kind == aSegment && !k.open {
			return
		}
		delete(k.wait, k.next)
		k.judgeTurn(k.next, kind)
	}
}

func (k *tracked) acceptSession() {
	err := k.s.Accept(0, k.u.Stream, nil)
	if k.open || k.dead {
		if err == nil {
			k.Fatal("accepted twice, or after its end")
		}
		return
	}
	if err != nil {
		k.Fatal(err)
	}
	k.open = true
	k.drainWaiting()
}

// checkDelivered compares what the user was told with what was to come.
func (k *tracked) checkDelivered() {
	k.checkCounts()
	told := 0
	for _, line := range k.u.log {
		if told < len(k.want) && line == k.want[told] {
			told++
			continue
		}
		k.Fatalf("told %q, want %q", k.u.log, k.want)
	}
	if told < len(k.want) {
		k.Fatalf("told %q, want %q", k.u.log, k.want)
	}
	k.u.log, k.want = nil, nil
	fault := false
	for ev, ok := k.PollEvent(); ok; ev, ok = k.PollEvent() {
		var e *llp.TerminatedError
		fault = fault || errors.As(ev.Err, &e)
	}
	if st := k.s.State(); (st == Over || st == Ended) != k.dead || k.dead && k.s.Err() == nil {
		k.Fatalf("state %v after an end: %v, %v", st, k.dead, k.s.Err())
	}
	if fault && !k.dead && !k.closed {
		k.Fatal("terminated for no reason")
	}
	if n := k.s.outOfOrder.numRecords; !k.dead && n != len(k.wait) {
		k.Fatalf("%d messages wait, want %d", n, len(k.wait))
	}
}

// FuzzSequence sends a session messages of any DDP-SSN, also across the wrap: they are delivered in
// order, each once, and the session ends by what no peer does that follows RFC 5043, and by nothing
// else. In the end nothing is kept.
func FuzzSequence(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 2, 1, 0, 0})
	f.Add([]byte{1, 2, 0, 0, 3, 0, 0, 1, 0, 2, 0, 1, 0, 0, 0, 1, 3, 0, 0})
	f.Add([]byte{3, 0, 0, 1, 2, 0, 0x10, 127, 255, 0, 0x20, 126, 0, 0x30, 60, 0, 0, 0})
	f.Add([]byte{1, 2, 0, 0x20, 127, 0, 0x20, 129, 0, 2, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 {
			return
		}
		k := &tracked{end: newEnd(t, newFake(), Config{MaxOutOfOrder: 8}), in: in[1:], wait: map[int]int{}, limit: 8,
			first: 1}
		k.end.expectEvents(EventUp)
		k.s, k.u = k.pendingSession(1), k.newStream(0)
		if in[0]&1 != 0 { // nearly all numbers have been used
			k.first = 65533
			k.s.nextSSN = k.first
		}
		for len(k.in) > 0 {
			if k.in.Next()%8 == 2 {
				k.acceptSession()
			} else {
				k.sendMessage()
			}
			k.checkDelivered()
		}
		k.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: errors.New("end of the test")})
		st := &k.records
		must.That(t, k.Sessions() == 0 && k.earlyOctets == 0 && (len(st.slab) == 0 || len(st.free) == len(st.slab)-1),
			"%d sessions, %d octets and %d messages are kept", k.Sessions(), k.earlyOctets, len(st.slab)-1-len(st.free))
	})
}

// FuzzMessage takes user messages apart, and puts control messages together again.
func FuzzMessage(f *testing.F) {
	f.Add(uint32(PPIDControl), true, []byte{0, 0, 0, 5, 0x80, 7, 0xC0, 9, 'h', 'i'})
	f.Add(uint32(PPIDControl), true, []byte{0, 1, 0, 4})
	f.Add(uint32(PPIDSegment), true, []byte{255, 255, 0xC1, 0x40})
	f.Add(uint32(99), false, []byte{})
	f.Fuzz(func(t *testing.T, ppid uint32, unordered bool, b []byte) {
		msg := parseMessage(ppid, unordered, b)
		_ = msg.fn.String()
		ok := msg.fault == 0
		must.That(t, !ok || msg.hasSSN && unordered && msg.ssn == binary.BigEndian.Uint16(b) &&
			len(msg.payload) <= len(b)-ssnLen, "%x became %+v", b, msg)
		if ok && ppid == PPIDControl {
			again := make([]byte, controlLen)
			putControl(again, msg.ssn, msg.fn)
			must.That(t, string(append(again, msg.payload...)) == string(b) &&
				msg.fn.plainCode().enhancedIf(msg.fn.isEnhanced()) == msg.fn, "%x became %+v", b, msg)
			if msg.fn.isEnhanced() {
				setup, private := llp.SplitSetup(msg.payload)
				must.That(t, setup == nil || string(private) == string(msg.payload[llp.SetupLen:]),
					"private data %x of %x", private, msg.payload)
			}
		}
	})
}
