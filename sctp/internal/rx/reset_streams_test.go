package rx

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func streamList(ids ...wire.StreamID) []wire.StreamID { return ids }

// mustDrain returns what there is to read, after an audit.
func mustDrain(t *testing.T, r *Receiver) string {
	t.Helper()
	must.OK(t, r.Audit(0))
	return drainText(r)
}

func TestStreamsThatAreReset(t *testing.T) {
	for _, newResetReceiver := range []func() *Receiver{newReceiver, newAbandoned} {
		r := newResetReceiver()
		mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"), onStream(2, 2, 0, be, "b"), onStream(3, 3, 0, be, "c"))
		must.OK(t, r.ResetStreams(streamList(3, 1, 15), 3))
		mustPacket(t, r, 0, onStream(1, 4, 0, be, "d"), onStream(2, 5, 1, be, "e"), onStream(3, 6, 0, be, "f"),
			onStream(15, 7, 0, be, "g"))
		check.Equal(t, "messages", mustDrain(t, r), "a|b|c|d|e|f|g|")
		must.OK(t, r.ResetStreams(nil, 7))
		mustPacket(t, r, 0, onStream(1, 8, 0, be, "h"), onStream(2, 9, 0, be, "i"))
		check.Equal(t, "messages", mustDrain(t, r), "h|i|")
	}
}

// What waits to be read when a stream is reset is read before what comes later.
func TestMessagesAreDueBeforeAReset(t *testing.T) {
	for _, newResetReceiver := range []func() *Receiver{newReceiver, newAbandoned} {
		for _, list := range [][]wire.StreamID{nil, {1}} {
			r := newResetReceiver()
			mustPacket(t, r, 0, onStream(1, 2, 1, be, "b"), onStream(1, 3, 2, be, "c"), onStream(2, 4, 1, be, "y"))
			mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"), onStream(2, 5, 0, be, "x"))
			must.OK(t, r.ResetStreams(list, 5))
			mustPacket(t, r, 0, onStream(1, 6, 0, be, "d"))
			check.Equal(t, "messages", mustDrain(t, r), "a|x|y|b|c|d|")
		}
	}
}

// A reset says that all before it has come. If then a message still waits the peer has made a
// mistake.
func TestResetsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name  string
		data  []wire.Data
		list  []wire.StreamID
		after wire.TSN
		ok    bool
	}{
		{"an SSN is missing", []wire.Data{onStream(1, 1, 1, be, "a")}, streamList(1), 1, false},
		{"an SSN is missing, of all streams", []wire.Data{onStream(1, 1, 1, be, "a")}, nil, 1, false},
		{"in the middle of a message", []wire.Data{onStream(1, 1, 0, wire.FlagB, "a")}, streamList(1), 1, false},
		{"in the middle of a message, of all streams", []wire.Data{onStream(1, 1, 0, wire.FlagB, "a")}, nil, 1, false},
		{"an SSN of another stream", []wire.Data{onStream(1, 1, 1, be, "a")}, streamList(2), 1, true},
		{"in the middle of a message of another stream", []wire.Data{onStream(1, 1, 0, wire.FlagB, "a")},
			streamList(2), 1, true},
		{"before a message", []wire.Data{onStream(1, 2, 0, wire.FlagB, "a"), onStream(2, 1, 0, be, "b")},
			streamList(1), 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReceiver()
			mustPacket(t, r, 0, c.data...)
			err := r.ResetStreams(c.list, c.after)
			var v *ViolationError
			check.Equal(t, "it is a violation", errors.As(err, &v), !c.ok)
		})
	}
}

// DATA of streams that are to be reset waits for DATA from before. Until then it is as if it were
// still on its way.
func TestDeferredData(t *testing.T) {
	r := newReceiver()
	mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"))
	r.Defer(streamList(1, 3), 2)
	early, other := onStream(1, 4, 0, be, "new"), onStream(2, 5, 0, be, "other")
	got := must.Get(feedPacket(r, 0, early, early, other, onStream(3, 6, 0, ube, "U")))(t)
	check.Equal(t, "admissions", fmt.Sprint(got), fmt.Sprint([]Admission{Dropped, Dropped, New, Dropped}))
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 1 4-4")
	check.That(t, !r.CanIdle(), "it may become idle")
	mustPacket(t, r, 0, onStream(1, 2, 1, be, "old"))
	must.OK(t, r.ResetStreams(streamList(1, 3), 2))
	list := r.TakeDeferred()
	check.Equal(t, "what was deferred", len(list), 2)
	for _, c := range list {
		mustPacket(t, r, 0, must.Get(wire.AsData(c))(t))
	}
	check.Equal(t, "messages", mustDrain(t, r), "a|other|old|new|U|")
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 2 2-4")
	check.That(t, r.aside == nil && len(r.TakeDeferred()) == 0, "something is set aside")
}

// What is deferred is little. The rest is dropped, and the peer sends it again.
func TestDeferredDataIsBounded(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 20, InStreams: 16})
	r.Defer(nil, 2)
	before := r.Held()
	for tsn := range 1000 {
		check.Equal(t, "admission", r.Admit(onStream(1, 3+tsn, tsn, be, "x")), Dropped)
	}
	check.Equal(t, "chunks", len(r.aside.deferred), maxDeferred)
	r.TakeDeferred()
	r.Defer(nil, 2)
	big := string(make([]byte, 20_000))
	for tsn := range 1000 {
		check.Equal(t, "admission", r.Admit(onStream(1, 3+tsn, tsn, be, big)), Dropped)
	}
	check.That(t, len(r.aside.deferred) == 3 && r.Held()-before <= 1<<16, "%d chunks in %d octets", len(r.aside.deferred),
		r.Held()-before)
	r.Close()
	check.That(t, r.aside == nil, "something is set aside")
}

// Frozen DATA is acknowledged, takes its part of the window, and is in the order of no stream until
// it is known which one.
func TestFrozenDataAndNoReset(t *testing.T) {
	r := newReceiver()
	mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"), onStream(1, 3, 2, be, "c"))
	window := r.Window()
	r.Freeze()
	mustPacket(t, r, 0, onStream(1, 4, 3, wire.FlagB, "d1"))
	mustPacket(t, r, 0, onStream(1, 2, 1, be, "b"), onStream(1, 6, 4, be, "e"), onStream(1, 5, 3, wire.FlagE, "d2"))
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 6")
	check.Equal(t, "window", r.Window(), window-6)
	check.That(t, !r.HasMissing() && !r.CanIdle(), "missing: %v, may be idle: %v", r.HasMissing(), r.CanIdle())
	_, isMid := r.MidMessage()
	check.That(t, !isMid && !r.CanPlaceRow(), "a row is taken")
	check.Equal(t, "messages", mustDrain(t, r), "a|")
	must.OK(t, r.Thaw())
	check.Equal(t, "messages", mustDrain(t, r), "b|c|d1d2|e|")
	check.That(t, r.CanIdle() || r.aside == nil, "something is set aside")
	must.OK(t, r.Thaw()) // and nothing
}

func TestFrozenDataAroundAReset(t *testing.T) {
	for _, c := range []struct {
		name   string
		data   []wire.Data // while it is frozen; TSNs 1 and 2 were SSN 0 and 1 of stream 1
		resets []resetMark // of the peer
		first  wire.TSN    // with which it goes on
		want   string
		sack   string
	}{
		{"nothing has come", nil, nil, 3, "a|b|", "cum 2"},
		{"all is of before", []wire.Data{onStream(1, 3, 2, be, "c"), onStream(1, 4, 3, be, "d")}, nil, 5, "a|b|c|d|",
			"cum 4"},
		{"all is of later", []wire.Data{onStream(1, 4, 1, be, "d"), onStream(1, 3, 0, be, "c")}, nil, 3, "a|b|c|d|",
			"cum 4"},
		{"some is of later", []wire.Data{onStream(1, 5, 1, be, "e"), onStream(1, 3, 2, be, "c"), onStream(1, 4, 0, be, "d")},
			nil, 4, "a|b|c|d|e|", "cum 5"},
		{"what is of later may be missing in part", []wire.Data{onStream(1, 3, 2, be, "c"), onStream(1, 5, 1, be, "e")}, nil,
			4, "a|b|c|", "cum 3 2-2"},
		{"what is of before is missing", []wire.Data{onStream(1, 4, 3, be, "d"), onStream(1, 5, 0, be, "e")}, nil, 5,
			"a|b|d|e|", "cum 5"},
		{"a fragment of before", []wire.Data{onStream(1, 3, 2, wire.FlagB, "c"), onStream(1, 5, 0, be, "e")}, nil, 5,
			"a|b|e|", "cum 5"},
		{"the rest of a message of before", []wire.Data{onStream(1, 3, 2, wire.FlagB, "c"), onStream(1, 6, 0, wire.FlagE, "c"),
			onStream(1, 5, 0, 0, "c"), onStream(1, 7, 1, be, "d")}, nil, 5, "a|b|d|", "cum 7"},
		{"the TSNs jump", nil, nil, 1 << 31, "a|b|", "cum 2147483647"},
		{"the peer has reset a stream before", []wire.Data{onStream(1, 3, 0, be, "c"), onStream(1, 4, 1, be, "d"),
			onStream(1, 5, 0, be, "e")}, []resetMark{{after: 2, streams: streamList(1)}}, 5, "a|b|c|d|e|", "cum 5"},
		{"the peer has reset a stream later", []wire.Data{onStream(1, 3, 0, be, "c"), onStream(1, 4, 0, be, "d"),
			onStream(2, 5, 0, be, "e")}, []resetMark{{after: 3, streams: streamList(1)}}, 3, "a|b|c|d|e|", "cum 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, newResetReceiver := range []func() *Receiver{newReceiver, newAbandoned} {
				r := newResetReceiver()
				mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"), onStream(1, 2, 1, be, "b"))
				r.Freeze()
				for _, d := range c.data {
					mustPacket(t, r, 0, d)
				}
				for _, m := range c.resets {
					must.OK(t, r.ResetStreams(m.streams, m.after))
				}
				must.OK(t, r.RestartTSN(c.first))
				check.Equal(t, "messages", mustDrain(t, r), c.want)
				check.Equal(t, "SACK", sackText(sackOf(r)), c.sack)
				next := int(uint32(r.CumTSN() + 1))
				mustPacket(t, r, 0, onStream(9, next, 0, be, "z"))
				check.That(t, mustDrain(t, r) != "", "nothing comes any more")
			}
		})
	}
}

// The peer's TSNs begin anew. What has come of before is read, in the order of its streams, though
// something is missing.
func TestRestartOfThePeersTSNs(t *testing.T) {
	for _, newResetReceiver := range []func() *Receiver{newReceiver, newAbandoned} {
		r := newResetReceiver()
		mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"), onStream(2, 4, 2, be, "z"), onStream(2, 3, 1, be, "y"),
			onStream(1, 5, 3, be, "d"), onStream(1, 7, 4, wire.FlagB, "lost"), onStream(1, 9, 5, wire.FlagE, "lost"))
		must.OK(t, r.RestartTSN(1000))
		check.Equal(t, "messages", mustDrain(t, r), "a|d|y|z|")
		check.Equal(t, "SACK", sackText(sackOf(r)), "cum 999")
		mustPacket(t, r, 0, onStream(1, 1000, 0, be, "new"), onStream(2, 1001, 0, be, "N"))
		check.Equal(t, "messages", mustDrain(t, r), "new|N|")
		check.That(t, !r.HasMissing() && r.Buffered() == 0, "something is missing, or %d octets are held", r.Buffered())
	}
}

// A message that is delivered in pieces ends where its rest will not come.
func TestRestartCutsAMessageInPieces(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 4000, PartialPoint: 10, InStreams: 16})
	mustPacket(t, r, 0, onStream(1, 1, 0, wire.FlagB, "a long beginning"))
	mustPacket(t, r, 0, onStream(1, 2, 0, 0, "and more of it"))
	first, ok := r.Receive()
	must.That(t, ok && first.More, "no piece is delivered")
	must.OK(t, r.RestartTSN(900))
	for m, ok := r.Receive(); ok; m, ok = r.Receive() {
		check.That(t, m.More || m.Cut, "the message ends as if it were whole")
		r.Release(m)
	}
	mustPacket(t, r, 0, onStream(1, 900, 0, be, "new"))
	r.Release(first)
	check.Equal(t, "messages", mustDrain(t, r), "new|")
}

// A peer resets its TSNs in the middle of a message, and goes on with the rest of it under a new
// SSN, as libusrsctp does. That message is lost, and nothing else is.
func TestRestartInTheMiddleOfAMessage(t *testing.T) {
	for _, c := range []struct {
		name string
		rest []wire.Data // from TSN 901 on
		want string
	}{
		{"in order", []wire.Data{onStream(1, 901, 0, 0, "m"), onStream(1, 902, 0, 0, "m"), onStream(1, 903, 0, wire.FlagE, "m"),
			onStream(1, 904, 1, be, "b"), onStream(2, 905, 0, be, "c")}, "b|c|"},
		{"only the end", []wire.Data{onStream(1, 901, 0, wire.FlagE, "m"), onStream(1, 902, 1, be, "b")}, "b|"},
		{"reordered", []wire.Data{onStream(1, 904, 1, be, "b"), onStream(1, 903, 0, wire.FlagE, "m"), onStream(2, 905, 0, be, "c"),
			onStream(1, 902, 0, 0, "m"), onStream(1, 901, 0, 0, "m")}, "c|b|"},
		{"unordered", []wire.Data{onStream(1, 901, 0, wire.FlagU, "m"), onStream(1, 902, 0, wire.FlagU|wire.FlagE, "m"),
			onStream(1, 903, 0, be, "b")}, "b|"},
		{"there is no rest", []wire.Data{onStream(1, 901, 0, be, "b"), onStream(1, 902, 1, wire.FlagB, "c"),
			onStream(1, 903, 1, wire.FlagE, "d")}, "b|cd|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, newResetReceiver := range []func() *Receiver{newReceiver, newAbandoned} {
				r := newResetReceiver()
				mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"), onStream(1, 2, 1, wire.FlagB, "m"))
				r.Freeze()
				mustPacket(t, r, 0, onStream(1, 3, 1, 0, "m"))
				must.OK(t, r.RestartTSN(901))
				for _, d := range c.rest {
					mustPacket(t, r, 0, d)
				}
				check.Equal(t, "messages", mustDrain(t, r), "a|"+c.want)
				check.That(t, !r.HasMissing() && r.Buffered() == 0, "something is missing, or %d octets are held", r.Buffered())
			}
		})
	}
}

// A Receiver that rests after a reset of TSNs still takes the rest of a message, and nothing later.
func TestRestOfAMessageBehindAResumption(t *testing.T) {
	cfg := Config{PeerTSN: 1, RecvBuffer: 1 << 16, PMDCS: 1400, InStreams: 16}
	resume := func(r *Receiver) *Receiver {
		t.Helper()
		r.AppendSack(nil, 100)
		must.That(t, r.CanIdle(), "it does not rest")
		rest := r.IdleState()
		next := NewReceiver(rest.Config(cfg))
		next.RestoreFrom(&rest)
		return next
	}
	r := NewReceiver(cfg)
	must.OK(t, r.RestartTSN(901))
	r = resume(r)
	mustPacket(t, r, 0, onStream(1, 901, 0, 0, "m"))
	r = resume(r)
	mustPacket(t, r, 0, onStream(1, 902, 0, wire.FlagE, "m"), onStream(1, 903, 1, be, "b"))
	check.Equal(t, "messages", mustDrain(t, r), "b|")
	r = resume(r)
	_, err := feedPacket(r, 0, onStream(1, 904, 2, wire.FlagE, "x"))
	var v *ViolationError
	check.That(t, errors.As(err, &v), "a fragment comes behind a message, and it is no violation")
}

// Only the rest of one message may come so, and only at the first of the new TSNs.
func TestFragmentsWithoutAMessageBehindARestart(t *testing.T) {
	for name, list := range map[string][]wire.Data{
		"behind the rest":           {onStream(1, 901, 0, wire.FlagE, "m"), onStream(1, 902, 1, wire.FlagE, "x")},
		"behind a message":          {onStream(1, 901, 0, be, "a"), onStream(1, 902, 1, wire.FlagE, "x")},
		"behind the rest's, middle": {onStream(1, 901, 0, wire.FlagE, "m"), onStream(1, 902, 1, 0, "x")},
	} {
		r := newReceiver()
		must.OK(t, r.RestartTSN(901))
		mustPacket(t, r, 0, list[0])
		_, err := feedPacket(r, 0, list[1])
		var v *ViolationError
		check.That(t, errors.As(err, &v), "%s a fragment comes, and it is no violation", name)
	}
}

// A peer may answer a reset of TSNs with any others. What was frozen is of before then, and costs
// no more than it did.
func TestRestartFarFromFrozenData(t *testing.T) {
	for _, newResetReceiver := range []func() *Receiver{newReceiver, newAbandoned} {
		for _, first := range []wire.TSN{1 << 31, 1 << 30, 3 << 30, 4 + 1<<16, 1<<32 - 1<<16} {
			r := newResetReceiver()
			r.Freeze()
			mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"), onStream(1, 2, 1, wire.FlagB, "lost"), onStream(1, 4, 3, be, "d"))
			held := r.Held()
			must.OK(t, r.ResetStreams(streamList(5), 1))
			must.OK(t, r.RestartTSN(first))
			check.That(t, r.Held() <= held+4096, "%d octets are held, and %d were", r.Held(), held)
			check.Equal(t, "messages", mustDrain(t, r), "a|d|")
			check.Equal(t, "cumulative TSN", r.CumTSN(), first-1)
			must.OK(t, r.Audit(0))
			mustPacket(t, r, 0, onStream(1, int(uint32(first)), 0, be, "z"))
			check.Equal(t, "messages", mustDrain(t, r), "z|")
		}
	}
}

// DATA that is acknowledged and discarded leaves what is frozen where it is.
func TestDiscardedDataWhileFrozen(t *testing.T) {
	for _, newResetReceiver := range []func() *Receiver{newReceiver, newAbandoned} {
		r := newResetReceiver()
		mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"))
		r.Freeze()
		mustPacket(t, r, 0, onStream(1, 2, 1, wire.FlagB, "b"))
		for _, d := range []wire.Data{onStream(99, 4, 0, be, "x"), onStream(99, 3, 7, be, "y")} {
			must.That(t, r.Admit(d) == New, "not admitted")
			r.Placed(d)
			must.OK(t, r.PacketDone(0))
		}
		outside := onStream(0, 5, 0, be|wire.FlagU, "z")
		must.That(t, r.AdmitOutside(outside) == New, "not admitted")
		must.OK(t, r.TakeOutside(outside))
		mustPacket(t, r, 0, onStream(1, 6, 0, be, "c"))
		must.OK(t, r.Audit(0))
		must.OK(t, r.RestartTSN(6))
		check.Equal(t, "messages", mustDrain(t, r), "a|c|")
		check.Equal(t, "cumulative TSN", r.CumTSN(), 6)
		must.OK(t, r.Audit(0))
	}
}

// A FORWARD TSN far ahead of what is frozen is not taken. It comes again.
func TestForwardTSNFarAheadWhileFrozen(t *testing.T) {
	r := newAbandoned()
	forward := func(t wire.TSN) bool {
		f, _ := wire.AsForwardTSN(wire.Chunk(wire.AppendForwardTSN(nil, t, nil)))
		return r.ForwardTSN(f)
	}
	r.Freeze()
	mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"), onStream(1, 3, 2, be, "c"))
	for _, far := range []wire.TSN{1 << 31, 1<<31 - 1, 2 + 1<<16, 1, 0} {
		check.That(t, !forward(far), "FORWARD TSN %d is taken", far)
	}
	check.That(t, forward(1+1<<16), "one at the end of the window is not taken")
	must.OK(t, r.Thaw())
	check.Equal(t, "messages", mustDrain(t, r), "a|")
	must.OK(t, r.Audit(0))
	check.That(t, forward(1<<30), "one far ahead is not taken when nothing is frozen")
	must.OK(t, r.Audit(0))
}

// Messages that the peer gives up while DATA is frozen are not waited for.
func TestForwardTSNWhileFrozen(t *testing.T) {
	r := newAbandoned()
	mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"))
	r.Freeze()
	mustPacket(t, r, 0, onStream(1, 3, 2, be, "c"), onStream(1, 6, 1, be, "e"))
	check.That(t, mustForward(t, r, 2, 1, 1) && !mustForward(t, r, 2, 1, 1), "FORWARD TSN is news, or it is not")
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 3 3-3")
	check.That(t, mustForward(t, r, 5, 1, 0), "FORWARD TSN is no news") // of after the reset
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 6")
	must.OK(t, r.RestartTSN(4))
	check.Equal(t, "messages", mustDrain(t, r), "a|c|e|")
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 6")
}

// What is missing among frozen DATA is given up when that is thawed: what lacks nothing is
// delivered, at a price that does not depend on how far the TSNs have come.
func TestMissingDataIsGivenUpWhileFrozen(t *testing.T) {
	for how, thaw := range map[string]func(*Receiver) error{"no TSN was reset": (*Receiver).Thaw,
		"TSNs were":    func(r *Receiver) error { return r.RestartTSN(9) },
		"the last are": func(r *Receiver) error { return r.RestartTSN(7) },
		"far TSNs are": func(r *Receiver) error { return r.RestartTSN(1 << 31) }} {
		r := newAbandoned()
		mustPacket(t, r, 0, onStream(1, 1, 0, be, "a"))
		r.Freeze()
		held := r.Held()
		mustPacket(t, r, 0, onStream(1, 2, 1, wire.FlagB, "lost"), onStream(1, 4, 2, wire.FlagB, "c"),
			onStream(1, 5, 2, wire.FlagE, "d"), onStream(1, 7, 4, be, "e"), onStream(1, 8, 5, wire.FlagB, "lost"))
		r.GiveUpMissing()
		check.Equal(t, "SACK", sackText(sackOf(r)), "cum 8")
		must.OK(t, r.Audit(0))
		must.OK(t, thaw(r))
		must.OK(t, r.Audit(0))
		check.Equal(t, how+": messages", mustDrain(t, r), "a|cd|e|")
		check.That(t, !r.HasMissing() && r.Buffered() == 0, "%s: %d octets are held", how, r.Buffered())
		check.That(t, r.Held() <= held+1<<16, "%s: %d octets of memory, and %d before", how, r.Held(), held)
	}
}

func TestFrozenDataIsBounded(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000, InStreams: 16})
	r.Freeze()
	taken := 0
	for tsn := range 2000 {
		if r.Admit(onStream(1, 1+tsn, tsn, be, "xx")) == New {
			must.OK(t, r.Queue(onStream(1, 1+tsn, tsn, be, "xx"), nil))
			taken++
		}
	}
	check.Equal(t, "chunks in a window of 1000 octets", taken, 500)
	must.OK(t, r.Audit(0))
	r.Close()
	check.That(t, r.Buffered() == 0 && r.reassembly.store.usedMemory == 0, "%d octets are held in %d of memory",
		r.Buffered(), r.reassembly.store.usedMemory)

	r = NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 20, InStreams: 16})
	r.Freeze()
	for tsn := range maxFrozen {
		must.OK(t, r.Queue(onStream(1, 1+tsn, tsn, be, "x"), nil))
	}
	check.Equal(t, "admission of one more", r.Admit(onStream(1, 1+maxFrozen, 0, be, "x")), Dropped)
}

func TestStreamsAreAdded(t *testing.T) {
	r := newReceiver()
	r.AddStreams(2)
	mustPacket(t, r, 0, onStream(17, 1, 0, be, "a"))
	_, err := feedPacket(r, 0, onStream(18, 2, 0, be, "b"))
	check.That(t, err != nil, "DATA of a stream that does not exist is taken")
	check.Equal(t, "messages", mustDrain(t, r), "a|")
}
