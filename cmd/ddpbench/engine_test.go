package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// TestCreditsNeverExceedTheSlotsAndAllAreUsed plays a sender and a receiver that do their steps in
// any order.
func TestCreditsNeverExceedTheSlotsAndAllAreUsed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for slots := 1; slots <= 20; slots++ {
		g := creditGranter{slots: slots}
		credits, flying, sent, granted := slots, 0, 0, 0
		var grants []int
		for sent < 2000 {
			moved := false
			for _, step := range rng.Perm(3) {
				switch {
				case step == 0 && credits > 0:
					credits--
					flying++
					sent++
				case step == 1 && flying > 0:
					flying--
					g.countArrival()
					if n := g.takeGrant(); n > 0 {
						grants, granted = append(grants, n), granted+n
					}
				case step == 2 && len(grants) > 0:
					credits, granted = credits+grants[0], granted-grants[0]
					grants = grants[1:]
				default:
					continue
				}
				moved = true
				if rng.IntN(2) == 0 {
					break
				}
			}
			must.That(t, moved, "%d slots: stuck after %d messages", slots, sent)
			must.That(t, flying <= slots, "%d slots: %d messages under way", slots, flying)
			must.That(t, len(grants) <= 2, "%d slots: %d grants under way", slots, len(grants))
			must.Equal(t, "slots: credits in all", credits+flying+g.toGrant+granted, slots)
		}
	}
}

// TestCreditsOnTheWire: a Send without a buffer would end the session (RFC 5041 section 7.1).
func TestCreditsOnTheWire(t *testing.T) {
	for _, depth := range []string{"1", "2", "3", "5", "8"} {
		for _, args := range []string{"-s 1", "-s 3000 --mtu 1500", "-s 1 -b", "-s 3000 --mtu 1500 -b -q 2"} {
			t.Run("depth "+depth+" "+args, func(t *testing.T) {
				_, errs, code := runBench(t, append(strings.Fields(args), "send", "--self", "--link", "mem", "-n",
					"200",
					"-t", depth, "--verify")...)
				check.That(t, code == exitOK, "exit code %d: %s", code, errs)
			})
		}
	}
}

// TestVerifyFinds flips a bit of what is sent, or looks for other content than the server has.
func TestVerifyFinds(t *testing.T) {
	for _, tt := range []struct{ name, args string }{
		{"write", "write -n 100 -s 100 -q 2"}, {"send", "send -n 100 -s 100"}, {"read", "read -n 100 -s 100"},
		{"write latency", "write --lat -n 3 -s 100"}, {"send latency", "send --lat -n 3 -s 100"}, {"read latency", "read --lat -n 3 -s 100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newLab(t)
			c, e := x.connectedClient(t, append(strings.Fields(tt.args), "--verify")...)
			if e.verb == verbRead {
				e.seed++
			} else {
				e.slotBytes(e.lanes[0].src, 0)[99] ^= 1
			}
			must.OK(t, c.measureConnected(t.Context(), e))
			err := c.contentError()
			check.That(t, exitCode(err) == exitBad, "wrong content was not found: %v", err)
			e.disconnectLanes()
			for _, l := range e.lanes {
				check.That(t, l.qp.State() != rdma.StateRTS, "a session is left without a word")
			}
		})
	}
}

func TestServerRefuses(t *testing.T) {
	x := newLab(t)
	x.server.placeTimeout = 0
	connect := func(t *testing.T, h hello) (*engine, error) {
		e := must.Get(newEngine(x.dev, h.params, true))(t)
		t.Cleanup(e.close)
		l := must.Get(e.addLane(h.lane))(t)
		_, err := l.qp.Connect(t.Context(), x.to, h.encode())
		return e, err
	}
	refused := func(t *testing.T, h hello, want string) {
		t.Helper()
		_, err := connect(t, h)
		var rejected *llp.RejectedError
		check.That(t, errors.As(err, &rejected) && strings.Contains(cli.Explain(err), want), "got %v, want %q", err,
			want)
	}
	one := hello{params: params{verb: verbWrite, size: 64, depth: 4, qps: 2, iters: 1}, run: 1}
	must.Do(connect(t, one))(t)
	t.Run("the same QP twice", func(t *testing.T) { refused(t, one, "QP 0 is there already") })
	t.Run("another size on the second QP", func(t *testing.T) {
		h := one
		h.lane, h.size = 1, 128
		refused(t, h, "ask for different things")
	})
	t.Run("more runs than it serves one address", func(t *testing.T) {
		var ends *engine // as soon as its client leaves
		for i := range uint64(maxRuns/2 - 1) {
			h := one
			if h.run = 100 + i; i == 0 {
				h.qps = 1
			}
			if e := must.Get(connect(t, h))(t); i == 0 {
				ends = e
			}
		}
		h := one
		h.run = 1000
		refused(t, h, "the server is busy")
		key := runKey{id: 1000}
		x.server.mu.Lock()
		for k := range x.server.runs {
			key.addr = k.addr
		}
		x.server.mu.Unlock()
		from := netip.AddrPortFrom(key.addr, 1)
		_, _, freed, _ := x.server.findRun(key, from, &h)
		must.That(t, freed != nil, "a client without a place is not told when there is one")
		got := make(chan error)
		go func() {
			_, _, err := x.server.awaitRun(t.Context(), time.Hour, key, from, &h)
			got <- err
		}()
		ends.disconnectLanes()
		err := <-got
		check.That(t, err == nil, "it waits for a place that comes free, and hears %v", err)
	})
	t.Run("more memory than it has left", func(t *testing.T) {
		used := x.server.runQuota.UsedUnits()
		for i := range byte(40) { // each half of what those before have left
			addr := netip.AddrFrom4([4]byte{192, 0, 2, 100 + i})
			for half := int64(maxServeMemory / 2); half > 0; {
				if !x.server.memoryQuota.TryAcquire(addr, half) {
					half /= 2
				}
			}
		}
		h := one
		h.run = 2000
		_, _, _, err := x.server.findRun(runKey{netip.MustParseAddr("192.0.2.3"), 1}, netip.AddrPort{}, &h)
		check.That(t, err != nil && strings.Contains(err.Error(), "has no memory for another") &&
			x.server.runQuota.UsedUnits() == used, "%v, %d places taken, %d before", err,
			x.server.runQuota.UsedUnits(), used)
	})
	t.Run("a run that its device has no room for", func(t *testing.T) {
		s := newLab(t, nil, &rdma.Config{Limits: rdma.Limits{MaxCQE: 1}}).server
		_, _, freed, err := s.findRun(runKey{netip.MustParseAddr("192.0.2.3"), 1}, netip.AddrPort{}, &one)
		check.That(t, err != nil && freed == nil && s.runQuota.UsedUnits() == 0 && s.memoryQuota.UsedUnits() == 0,
			"%v, %d places and %d octets are taken", err, s.runQuota.UsedUnits(), s.memoryQuota.UsedUnits())
	})
	t.Run("a QP of a run that has ended", func(t *testing.T) {
		err := (&clientRun{hasEnded: true}).acceptQP(nil, &one)
		check.That(t, err != nil && strings.Contains(err.Error(), "ended already"), "got %v", err)
		check.Equal(t, "end of a run whose QPs have not all come when the server ends",
			(&clientRun{}).followClient(must.Ended()), errServerStopped)
	})
	t.Run("what is no request", func(t *testing.T) {
		pd := x.dev.AllocPD()
		cq := must.Get(x.dev.CreateCQ(256))(t)
		qp := must.Get(x.dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq}))(t)
		defer qp.Close()
		_, err := qp.Connect(t.Context(), x.to, []byte("hello"))
		check.That(t, err != nil && strings.Contains(cli.Explain(err), "not from a ddpbench"), "got %v", err)
		const line = ": refused: a ddpbench listens here: the request is not from a ddpbench\n"
		waitUntil(t, "the server says why it refused", func() bool { return strings.Contains(x.out.String(), line) })
	})
}

// Every so many messages ask for a completion, and the last; what did not ask is complete when all
// is acknowledged.
func TestCompletionsAreAskedForNowAndThen(t *testing.T) {
	x := newLab(t)
	_, e := x.connectedClient(t, "write", "-n", "7", "-t", "6")
	l := e.lanes[0]
	l.toPost, e.hasBegun = 7, true
	every := uint64(e.completionInterval())
	for l.toPost > 0 {
		n := min(int(l.toPost), 3)
		must.OK(t, e.postMessages(l, n))
		for i := range n {
			number := l.posted - uint64(n-i) + 1
			asks := e.wrs[i].Flags&rdma.Unsignaled == 0
			check.That(t, asks == (number%every == 0 || number == 7), "message %d of 7, every %d: it asks %v", number,
				every, asks)
		}
	}
	l.completed, l.doneSent, e.completed = 5, true, 5
	must.OK(t, e.handleControl(l, &control{kind: controlAck, count: 7}))
	check.That(t, e.completed == 7 && l.completed == 7 && l.doneAcked && l.verdictKnown,
		"%d messages completed, %d of the lane, acknowledged %v, judged %v", e.completed, l.completed, l.doneAcked,
		l.verdictKnown)
	for _, v := range []verb{verbRead, verbWrite} {
		// what was read has come when it completes, what was written when it is acknowledged
		for _, done := range []uint64{6, 7} {
			e, l := &engine{params: params{verb: v}}, &lane{doneSent: true, posted: 7, completed: done}
			must.OK(t, e.handleControl(l, &control{kind: controlAck, count: 7}))
			check.That(t, e.endedAt.IsZero() == (v == verbRead && done == 7), "%v, %d of 7 complete: the end is %v",
				v, done, e.endedAt)
		}
	}
}

// A port that another program has ends the tool.
func TestPortOfAnotherProgram(t *testing.T) {
	for _, args := range []string{"write -p 7", "write -p 7 --self"} {
		o := must.Get(parseArgs(strings.Fields(args), io.Discard))(t)
		o.link.Opener = mempair.Taken(t, 7)
		check.Error(t, args, o.runMode(t.Context(), io.Discard), rawio.ErrPortInUse)
	}
}

func TestClientLeaves(t *testing.T) {
	x := newLab(t)
	_, e := x.connectedClient(t, "write", "-n", "100")
	e.close()
	waitUntil(t, "the server gives the run up", func() bool { return strings.Contains(x.out.String(), "\n") })
	check.That(t, strings.Contains(x.out.String(), "session") || strings.Contains(x.out.String(), "peer"),
		"the server does not say why: %s", x.out)
}

// TestHostilePeer gives an engine what no ddpbench sends.
func TestHostilePeer(t *testing.T) {
	server := params{verb: verbSend, size: 100, depth: 4, qps: 1, iters: 10}
	for _, tt := range []struct {
		name   string
		p      params
		client bool
		give   func(e *engine, l *lane) error
		want   string
	}{
		{"an answer that is too long", server, true, func(e *engine, l *lane) error { return new(target).decodeAnswer(append(new(target).encodeAnswer(), 0)) }, "not a ddpbench"},
		{"an answer of something else", server, true, func(e *engine, l *lane) error { return new(target).decodeAnswer(make([]byte, answerLen)) }, "not a ddpbench"},
		{"control of a wrong length", server, true, func(e *engine, l *lane) error { return new(control).decode(make([]byte, 39)) }, "not ddpbench's"},
		{"control of an unknown kind", server, true, func(e *engine, l *lane) error { return new(control).decode(append([]byte{9}, make([]byte, 39)...)) }, "not ddpbench's"},
		{"a bandwidth that is none", server, true, func(e *engine, l *lane) error {
			b := append([]byte{byte(controlReport)}, make([]byte, 39)...)
			copy(b[16:], "\xff\xff\xff\xff")
			return new(control).decode(b)
		}, "a bandwidth of NaN"},
		{"more credits than buffers", server, true, func(e *engine, l *lane) error { return e.handleControl(l, &control{kind: controlGrant, count: 1}) }, "grants 1 credits"},
		{"credits that wrap", server, true, func(e *engine, l *lane) error {
			l.credits = 0
			return e.handleControl(l, &control{kind: controlGrant, count: 1 << 63})
		}, "grants 9223372036854775808"},
		{"an answer before the end", server, true, func(e *engine, l *lane) error { return e.handleControl(l, &control{kind: controlAck}) }, "acknowledges 0"},
		{"a go for the client", server, true, func(e *engine, l *lane) error { return e.handleControl(l, &control{kind: controlGo}) }, "under way"},
		{"an end for the client", server, true, func(e *engine, l *lane) error { return e.handleControl(l, &control{kind: controlDone}) }, "had not begun"},
		{"data for a client that sends", server, true, func(e *engine, l *lane) error { return e.handleData(l, make([]byte, 100)) }, "where it should not"},
		{"notes that nobody has asked for", server, true, func(e *engine, l *lane) error { return e.handleControl(l, &control{kind: controlNotes}) }, "0 octets that nobody"},
		{"notes longer than their memory", server, true, func(e *engine, l *lane) error {
			e.wantsNotes = true
			return e.handleControl(l, &control{kind: controlNotes, count: maxNotesLen + 1})
		}, "131073 octets that nobody"},
		{"notes for a server", server, false, func(e *engine, l *lane) error {
			e.wantsNotes = true
			return e.handleControl(l, &control{kind: controlNotes})
		}, "nobody has asked"},
		{"a go twice", server, false, func(e *engine, l *lane) error {
			l.hasBegun = true
			return e.handleControl(l, &control{kind: controlGo})
		}, "under way"},
		{"an end before go", server, false, func(e *engine, l *lane) error { return e.handleControl(l, &control{kind: controlDone}) }, "had not begun"},
		{"an end twice", server, false, func(e *engine, l *lane) error {
			l.hasBegun, l.peerDone = true, true
			return e.handleControl(l, &control{kind: controlDone})
		}, "had not begun"},
		{"an end after fewer messages than it says", server, false, func(e *engine, l *lane) error {
			l.hasBegun = true
			return e.handleControl(l, &control{kind: controlDone, count: 5})
		}, "0 messages came of 5"},
		{"data shorter than agreed", server, false, func(e *engine, l *lane) error { return e.handleData(l, make([]byte, 99)) }, "sent 99 octets"},
		{"data in a test of writes", params{verb: verbWrite, size: 100, depth: 4, qps: 1, iters: 10}, false, func(e *engine, l *lane) error { return e.handleData(l, make([]byte, 40)) }, "where it should not"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &engine{params: tt.p, client: tt.client}
			l := &lane{credits: e.slotCount(), granter: creditGranter{slots: e.slotCount()}}
			e.lanes = []*lane{l}
			err := tt.give(e, l)
			check.That(t, err != nil && strings.Contains(err.Error(), tt.want), "got %v, want %q", err, tt.want)
		})
	}
}

// What was looked at does not pass for the next message, and a verdict without an acknowledgement
// ends nothing.
func TestEachMessageIsJudgedByItself(t *testing.T) {
	e := &engine{params: params{verb: verbSend, verify: true, size: 100, depth: 1, qps: 1, iters: 10}}
	l, msg := &lane{}, make([]byte, 100)
	e.lanes = []*lane{l}
	for i, bad := range []uint64{0, 1, 1, 2} {
		if i%2 == 0 {
			fillContent(msg, e.slotSeed(0, true, 0))
		}
		err := e.handleData(l, msg)
		check.That(t, err == nil && e.badMessages() == bad && l.received == uint64(i+1), "message %d: %d are bad, %v",
			i, e.badMessages(), err)
	}
	for _, first := range []*lane{{}, {doneAcked: true}, {verdictKnown: true}} { // the second has said all
		e.lanes = []*lane{first, {doneAcked: true, verdictKnown: true}}
		check.That(t, e.announceDone(false) == nil && !e.reportDone, "it reports when the first is as %+v", first)
	}
	e.reportDone, e.lanes = true, e.lanes[1:]
	check.Equal(t, "end of what was reported", e.announceDone(false), nil)
	e.client, e.lanes = true, []*lane{l}
	must.OK(t, e.handleControl(l, &control{kind: controlVerdict, count: 5}))
	check.That(t, e.badMessages() == 7 && !e.isFinished(), "%d are bad, finished %v", e.badMessages(), e.isFinished())
	begun := time.Unix(1000, 0)
	e.duration = time.Second
	e.startClock(begun)
	e.startClock(begun.Add(1)) // by another lane
	check.That(t, e.startedAt == begun && e.deadline == begun.Add(time.Second), "from %v to %v", e.startedAt,
		e.deadline)
}

// What an end has no room for ends the run on both ends, with an error, and nothing stays behind.
func TestRunThatOneEndHasNoRoomFor(t *testing.T) {
	for _, limits := range []rdma.Limits{{MaxQPs: 1}, {MaxRegions: 1}, {MaxRegions: 2}, {MaxRegions: 3}, {MaxCQE: 8},
		{MaxWR: 16}} {
		for server := range 2 {
			var cfg [2]*rdma.Config
			cfg[server] = &rdma.Config{Limits: limits}
			x := newLab(t, cfg[:]...)
			for _, args := range []string{"write -q 2 -b", "send -q 2 -b", "read -q 2 -b"} {
				err := x.newClient(t, append(strings.Fields(args), "-n", "10", "-s", "64", "-t",
					"16")...).measureAllSizes(t.Context())
				check.That(t, err != nil, "%s with %+v: no error", args, limits)
			}
			waitUntil(t, "all QPs are gone", func() bool { return len(x.dev.QPs())+len(x.server.dev.QPs()) == 0 })
		}
	}
}

// A session that ends under a run ends the run, whatever it was about to post.
func TestEndedSessionEndsTheRun(t *testing.T) {
	x := newLab(t)
	for _, args := range []string{"write", "send", "read", "write --lat", "send --lat", "read --lat"} {
		c, e := x.connectedClient(t, strings.Fields(args)...)
		l := e.lanes[0]
		l.qp.Close()
		l.hasBegun, l.toPost = true, 1
		post, end, recv := e.postMessages(l, 1), e.announceDone(false), l.postRecv(0)
		check.That(t, post != nil && end != nil && recv != nil, "%s: %v, %v, %v", args, post, end, recv)
		lead, trips := e.leadRun(t.Context()), e.runPingPong(t.Context(), newHistogram())
		l.toPost, l.doneSent, l.controlsOutstanding, l.granter.toGrant = 0, false, 0, l.granter.slots
		e.hasBegun = true
		all, grant := e.postOnAllLanes(false), e.grantCredits(l)
		check.That(t, lead != nil && trips != nil && all != nil && grant != nil, "%s: %v, %v, %v, %v", args, lead, trips,
			all, grant)
		err := c.measureConnected(t.Context(), e)
		e.bidirectional, l.peerDone = true, false
		check.That(t, err != nil && e.handlePeerDone(l, &control{count: l.received}) != nil, "%s: no error", args)
	}
	_, e := x.connectedClient(t, "send", "--lat", "-n", "9")
	l := e.lanes[0]
	e.onTick = func(time.Time) { l.qp.Close() } // behind the first round trip
	must.OK(t, l.sendControl(control{kind: controlGo}))
	check.That(t, e.measureRoundTrips(t.Context(), l, newHistogram()) != nil,
		"the session has ended and the round trips go on")
	check.That(t, e.measureRoundTrips(t.Context(), l, newHistogram()) != nil,
		"the session has ended and the round trips begin")
	_, e = x.connectedClient(t, "read", "--lat", "-n", "9")
	e.onTick = func(time.Time) { e.size = 1 << 30 } // of which nothing is registered
	check.That(t, e.measureRoundTrips(t.Context(), e.lanes[0], newHistogram()) != nil,
		"a message cannot be posted and the round trips go on")
}

// TestFailedRequest: an error status ends the run unless all was said.
func TestFailedRequest(t *testing.T) {
	x := newLab(t)
	_, e := x.connectedClient(t, "write", "-n", "10")
	l := e.lanes[0]
	check.Error(t, "flushed in the middle", e.handleFailure(l, &rdma.WC{Status: rdmap.StatusWRFlushErr}), errPeerLeft)
	err := e.handleFailure(l, &rdma.WC{Status: rdmap.StatusRemAccessErr, Opcode: rdmap.WCWrite})
	check.That(t, err != nil && strings.Contains(err.Error(), "RDMA Write failed: remote access error"),
		"refused: %v", err)
	l.doneAcked, l.verdictKnown = true, true
	check.Error(t, "flushed at the end", e.handleFailure(l, &rdma.WC{Status: rdmap.StatusWRFlushErr}), nil)
	check.That(t, l.sessionEnded, "flushed at the end: %+v", l)
}

// Both ends, of any two releases, agree what is in a message, and no two messages of a run are the
// same.
func TestPatternTellsSeedsAndOctetsApart(t *testing.T) {
	seen := make(map[uint64]string)
	for _, client := range []bool{false, true} {
		for lane := range 3 {
			for slot := range 3 {
				at, s := fmt.Sprint(client, lane, slot), (&params{seed: 1}).slotSeed(lane, client, slot)
				check.That(t, seen[s] == "", "what is sent is the same for %s and %s", at, seen[s])
				seen[s] = at
			}
		}
	}
	check.Equal(t, "words of the reference implementation of SplitMix64",
		[2]uint64{contentWord(1234567, 0), contentWord(1234567, 4)},
		[2]uint64{6457827717110365317, 16408922859458223821})
	const seed = 13 // its first octet is 0xff
	for _, n := range []int{0, 1, 7, 8, 9, 100, 4096} {
		b := make([]byte, n)
		fillContent(b, seed)
		check.That(t, hasContent(b, seed), "%d octets are not what they were filled with", n)
		check.That(t, n < 8 || !hasContent(b, seed+1), "%d octets are the same for two seeds", n)
		for i := range b {
			b[i] ^= 0x10
			check.That(t, !hasContent(b, seed), "a flipped bit in octet %d of %d is not seen", i, n)
			b[i] ^= 0x10
		}
		good := append([]byte(nil), b...)
		spoilContent(b, seed)
		for i := range b {
			check.That(t, b[i] != good[i], "octet %d of %d is as it should be in spoiled memory", i, n)
		}
	}
}
