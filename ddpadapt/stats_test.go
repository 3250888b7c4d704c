package ddpadapt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Every counter counts: there is a row for each field, and for each fault.
func TestEveryCounterCounts(t *testing.T) {
	// open returns an end with a session on stream 0 that the peer asked for and the user accepted.
	open := func(t *testing.T, cfg Config) (*end, *Session) {
		b := newEnd(t, newFake(), cfg)
		b.injectLines(0, "0 initiate")
		s := b.expectEvents(EventUp, EventInitiate)[1].Session
		must.OK(t, s.Accept(0, b.newStream(4).Stream, nil))
		b.expectSends("0: 0 accept")[0].arrived = true
		b.ackArrived()
		return b, s
	}
	peer := func(lines ...string) func(*testing.T) *end {
		return func(t *testing.T) *end {
			b, _ := open(t, Config{})
			b.injectLines(0, lines...)
			return b
		}
	}
	raw := func(ppid uint32, flags uint8, msg string) func(*testing.T) *end {
		return func(t *testing.T) *end {
			b, _ := open(t, Config{})
			b.injectMessage(0, ppid, flags, []byte(msg))
			return b
		}
	}
	asked := func(lines ...string) func(*testing.T) *end { // the side that has sent an Initiate
		return func(t *testing.T) *end {
			a, _ := newPair(t)
			must.Do(a.Open(0, 0, a.newStream(1).Stream, nil))(t)
			a.pullPackets()
			a.injectLines(0, lines...)
			return a
		}
	}
	rows := map[string]func(t *testing.T) *end{
		"SegmentsIn": peer("1 segment x"),
		"SegmentsOut": func(t *testing.T) *end {
			a, b := newPair(t)
			_, _, ua, _ := connectSession(a, b)
			must.OK(t, ua.sendText("x"))
			a.pullPackets()
			return a
		},
		"Requests":   peer(),
		"OutOfOrder": peer("2 segment x"),
		"Violations": peer("1 accept"),
		"Refused": func(t *testing.T) *end {
			b := newEnd(t, newFake(), Config{})
			b.injectLines(0, "3 segment x")
			return b
		},
		"PendingFull": func(t *testing.T) *end {
			b := newEnd(t, newFake(), Config{MaxPending: 1})
			b.injectLines(0, "0 initiate")
			b.injectLines(1, "0 initiate")
			return b
		},
		"RefusalsFull": func(t *testing.T) *end {
			f := newFake()
			f.in, f.out = 1000, 1000
			b := newEnd(t, f, Config{MaxPending: -1})
			_, msg := encodeLine("0 initiate")
			for id := range wire.StreamID(maxRefusals + 1) {
				b.injectMessage(id, PPIDControl, wire.FlagU, msg)
			}
			return b
		},
		"RecordsFull": func(t *testing.T) *end {
			b, _ := open(t, Config{MaxOutOfOrder: 1})
			b.injectLines(0, "3 segment x")
			_, msg := encodeLine("2 segment y")
			b.injectMessage(0, PPIDSegment, wire.FlagU, msg)
			return b
		},
		"NextSession": func(t *testing.T) *end {
			b, s := open(t, Config{})
			must.OK(t, s.Terminate(0))
			b.pullPackets() // not acknowledged: ours is not over
			b.injectLines(0, "0 initiate")
			_, msg := encodeLine("1 segment x")
			check.Equal(t, "verdict", b.injectMessage(0, PPIDSegment, wire.FlagU, msg), assoc.DropUnacked)
			return b
		},
		"AfterEnd": func(t *testing.T) *end {
			b, s := open(t, Config{})
			s.Abort()
			b.injectLines(0, "1 segment x")
			return b
		},
		"BadStreams": func(t *testing.T) *end {
			b := newEnd(t, newFake(), Config{})
			_, msg := encodeLine("0 initiate")
			b.injectMessage(8, PPIDControl, wire.FlagU, msg)
			return b
		},
		"Ignored": func(t *testing.T) *end {
			b := newEnd(t, newFake(), Config{})
			b.injectLines(0, "0 terminate")
			return b
		},
	}
	const u = wire.FlagU
	for f, drive := range map[Fault]func(t *testing.T) *end{
		FaultPPID:        raw(0, u, "\x00\x01data"),
		FaultShort:       raw(16, u, "\x00"),
		FaultOrdered:     raw(16, 0, "\x00\x01\x00"),
		FaultFunction:    raw(17, u, "\x00\x01\x00\x00"),
		FaultPrivateData: raw(17, u, "\x00\x01\x00\x04x"),
		FaultSetup:       raw(17, u, "\x00\x01\x00\x05"),
		FaultTooLong: func(t *testing.T) *end {
			b, s := open(t, Config{})
			s.nextSSN = 0
			b.receiveMessage(0, PPIDSegment, true, make([]byte, maxSegment+1))
			return b
		},
		FaultStart: func(t *testing.T) *end {
			a, _ := newPair(t)
			must.Do(a.Open(0, 0, a.newStream(1).Stream, nil))(t)
			a.injectLines(0, "0 segment x") // before the Initiate has left
			return a
		},
		FaultAnswer:       asked("0 segment x"),
		FaultCrossed:      asked("0 initiate"),
		FaultControl:      peer("1 accept"),
		FaultAfterEnd:     peer("1 terminate", "2 segment x"),
		FaultDuplicateSSN: peer("1 segment x", "1 segment x"),
		FaultWindowSSN:    peer("32768 segment x"),
		FaultEarlyData: func(t *testing.T) *end {
			b := newEnd(t, newFake(), Config{MaxEarly: 10})
			b.injectLines(0, "0 initiate", "1 segment "+strings.Repeat("x", 20))
			return b
		},
	} {
		rows[fmt.Sprintf("Faults[%d]", f)] = drive
	}
	counters.Each(Stats{}, func(name string, _ uint64) {
		if name == "Faults[0]" {
			return // no fault
		}
		t.Run(name, func(t *testing.T) {
			drive := rows[name]
			must.That(t, drive != nil, "nothing here makes it count")
			s := drive(t).Stats()
			faults := uint64(0)
			counters.Each(s, func(other string, v uint64) {
				check.That(t, other != name || v != 0 && v <= 1000, "it counted %d", v)
				if strings.HasPrefix(other, "Faults[") {
					faults += v
				}
			})
			check.Equal(t, "faults and violations", faults, s.Violations)
		})
	})
}

func TestSlowPathsAreCounted(t *testing.T) {
	// req 5042-6.4.4-1: messages that cost more than others and end no session are counted, session
	// by session.
	b := newEnd(t, newFake(), Config{})
	b.injectLines(0, "0 initiate", "1 segment early", "2 segment early too")
	b.injectLines(1, "0 initiate")
	evs := b.expectEvents(EventUp, EventInitiate, EventInitiate)
	s, other := evs[1].Session, evs[2].Session
	for _, x := range []*Session{s, other} {
		must.OK(t, x.Accept(0, b.newStream(8).Stream, nil))
	}
	b.injectLines(0, "4 segment waits", "3 segment comes", "5 segment in order")
	s.nextSSN = 0 // for the Received below, which is all zero
	b.receiveFragmented(&assoc.Received{PPID: PPIDSegment, Unordered: true, Size: 30})
	b.pullPackets()
	got, want := s.Stats(), (llp.StreamStats{In: 6, Out: 1, Early: 2, OutOfOrder: 2, Fragmented: 1})
	check.That(t, got == want, "%+v, want %+v", got, want)
	check.Equal(t, "the other session", other.Stats(), (llp.StreamStats{Out: 1}))
	check.That(t, s.State() == Open && other.State() == Open, "states %v and %v", s.State(), other.State())
}
