package rx

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// newAbandoned returns a receiver with a window of 1000 octets that expects TSN 1 from a peer that
// may give messages up.
func newAbandoned() *Receiver {
	return NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000, PMDCS: 200, InStreams: 16, MayAbandon: true,
		SackDelay: 200 * time.Millisecond})
}

// forwardTSN makes a FORWARD TSN with pairs of a stream and an SSN.
func forwardTSN(newCum int, pairs ...int) wire.ForwardTSN {
	var skips []wire.Skip
	for i := 0; i < len(pairs); i += 2 {
		skips = append(skips, wire.Skip{Stream: wire.StreamID(pairs[i]), SSN: wire.SSN(pairs[i+1])})
	}
	return wire.ForwardTSN(wire.AppendForwardTSN(nil, wire.TSN(newCum), skips))
}

// mustForward feeds a FORWARD TSN as a packet, and returns whether it was news.
func mustForward(t *testing.T, r *Receiver, newCum int, pairs ...int) bool {
	t.Helper()
	isNews := r.ForwardTSN(forwardTSN(newCum, pairs...))
	must.OK(t, r.PacketDone(0))
	return isNews
}

func TestForwardTSNMovesTheCumulativeTSN(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tsns   []int // received, unordered messages each
		newCum int
		want   string
		isNews bool
	}{
		// req 3758-3.6-1: the example of the RFC
		{"and on over what has come", []int{1, 2, 4, 5, 7}, 3, "cum 5 2-2", true},
		{"up to the next gap", []int{1, 2, 4, 6}, 3, "cum 4 2-2", true},
		{"to what it says, where nothing follows", []int{1, 2}, 5, "cum 5", true},
		// req 3758-3.2-2
		{"over several gaps", []int{2, 4, 6, 9}, 7, "cum 7 2-2", true},
		{"to the highest TSN", []int{2, 4}, 4, "cum 4", true},
		{"to one before the highest", []int{2, 5}, 4, "cum 5", true},
		{"beyond the highest", []int{3}, 9, "cum 9", true},
		{"to one that has come itself", []int{3, 4, 6}, 3, "cum 4 2-2", true},
		{"far beyond all that a gap block reaches", []int{2, 70, 4000}, 1 << 30, "cum 1073741824", true},
		{"2^31-1 on", []int{2}, 1<<31 - 1, "cum 2147483647", true},
		// req 3758-3.6-2
		{"not where it is already", []int{1, 2, 4}, 2, "cum 2 2-2", false},
		{"not back", []int{1, 2, 4}, 1, "cum 2 2-2", false},
		{"not 2^31 on, which is as far back", []int{2}, 1 << 31, "cum 0 2-2", false},
	} {
		r := newAbandoned()
		for _, n := range tt.tsns {
			mustPacket(t, r, 0, dataChunk(n, 0, ube, "x"))
		}
		sackOf(r)
		check.Equal(t, tt.name+": news", mustForward(t, r, tt.newCum), tt.isNews)
		check.Equal(t, tt.name, sackText(sackOf(r)), tt.want)
		check.OK(t, r.Audit(0))
		check.Equal(t, tt.name+": received", drainText(r), strings.Repeat("x|", len(tt.tsns)))
		for n := range 8 { // what comes now is new, or not, as the SACK has said
			d := dataChunk(n, 0, ube, "y")
			got, want := r.Admit(d), New
			if d.TSN().LessEq(r.CumTSN()) || r.tracker.aboveCum.Has(d.TSN()) {
				want = Duplicate
			}
			check.Equal(t, tt.name+": what comes after it", got, want)
		}
	}
}

// The cumulative TSN moves across the wrap, and back it does not.
func TestForwardTSNAcrossTheWrap(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1<<32 - 2, RecvBuffer: 1000, InStreams: 16, MayAbandon: true})
	mustPacket(t, r, 0, dataChunk(1, 2, be, "x"))
	must.That(t, mustForward(t, r, 0, 0, 1) && r.CumTSN() == 1, "cumulative TSN %d", r.CumTSN())
	check.Equal(t, "received", drainText(r), "x|")
	check.That(t, !mustForward(t, r, -1) && r.CumTSN() == 1, "back to %d", r.CumTSN())
}

func TestWhatForwardTSNSkipsIsADuplicateWhenItComes(t *testing.T) {
	r := newAbandoned()
	mustPacket(t, r, 0, dataChunk(1, 0, be, "a"))
	mustForward(t, r, 3, 0, 2)
	sackOf(r)
	got := must.Get(feedPacket(r, 0, dataChunk(2, 1, be, "late")))(t)
	check.Equal(t, "a TSN that was skipped", got[0], Duplicate)
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 3 dup 2")
	check.Equal(t, "received", drainText(r), "a|")
}

func TestWhenASackAnswersForwardTSN(t *testing.T) {
	// req 3758-3.6-3: as if it were DATA (RFC 9260 section 6.2)
	for _, tt := range []struct {
		name  string
		story func(r *Receiver)
		due   bool
	}{
		{"alone: delayed", func(r *Receiver) { r.ForwardTSN(forwardTSN(3)); r.PacketDone(0) }, false},
		{"the second packet, after DATA", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(2, 1, be, "x"))
			r.ForwardTSN(forwardTSN(3))
			r.PacketDone(0)
		}, true},
		{"with DATA in its packet: one packet", func(r *Receiver) {
			r.ForwardTSN(forwardTSN(3))
			feedPacket(r, 0, dataChunk(4, 1, be, "x"))
		}, false},
		{"it closes a gap", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(3, 1, be, "x"))
			sackOf(r)
			r.ForwardTSN(forwardTSN(2))
			r.PacketDone(0)
		}, true},
		{"it leaves a gap", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(3, 1, be, "x"), dataChunk(7, 1, ube, "x"))
			sackOf(r)
			r.ForwardTSN(forwardTSN(4))
			r.PacketDone(0)
		}, true},
		// req 3758-3.6-2
		{"out of date: at once", func(r *Receiver) { r.ForwardTSN(forwardTSN(1)); r.PacketDone(0) }, true},
	} {
		r := newAbandoned()
		mustPacket(t, r, 0, dataChunk(1, 0, be, "x"))
		sackOf(r)
		tt.story(r)
		check.Equal(t, tt.name+": SACK due", r.SackDue(0), tt.due)
		check.That(t, tt.due || r.Deadline() == rawio.Time(200*time.Millisecond), "%s: due at %v", tt.name, r.Deadline())
	}
	r := newAbandoned()
	r.ForwardTSN(forwardTSN(3))
	must.OK(t, r.PacketDone(0))
	check.That(t, r.SackDue(0), "the first of the association is not answered at once")
}

func TestForwardTSNReleasesWhatHasWaited(t *testing.T) {
	// req 3758-3.6-4
	for _, tt := range []struct {
		name    string
		chunks  []wire.Data
		forward wire.ForwardTSN
		want    string
		later   []wire.Data
		then    string
	}{
		{"behind the one that was given up", []wire.Data{dataChunk(2, 1, be, "b"), dataChunk(3, 2, be, "c")},
			forwardTSN(1, 0, 0), "b|c|", nil, ""},
		{"up to the SSN, and what follows it", []wire.Data{dataChunk(2, 1, be, "b"), dataChunk(4, 3, be, "d"), dataChunk(5, 4, be, "e")},
			forwardTSN(3, 0, 2), "b|d|e|", nil, ""},
		{"but not beyond a hole", []wire.Data{dataChunk(2, 1, be, "b"), dataChunk(5, 4, be, "e"), dataChunk(3, 2, be, "c")},
			forwardTSN(1, 0, 0), "b|c|", []wire.Data{dataChunk(4, 3, be, "d")}, "d|e|"},
		{"of several streams", []wire.Data{onStream(1, 3, 1, be, "b"), onStream(2, 4, 1, be, "c"), onStream(3, 6, 1, be, "d")},
			forwardTSN(2, 1, 0, 2, 0), "c|b|", []wire.Data{onStream(3, 5, 0, be, "x")}, "x|d|"},
		{"the last SSN of a stream that is named twice", []wire.Data{dataChunk(3, 2, be, "c")},
			forwardTSN(2, 0, 0, 0, 1), "c|", nil, ""},
		{"the same, the other way about", []wire.Data{dataChunk(3, 2, be, "c")},
			forwardTSN(2, 0, 1, 0, 0), "c|", nil, ""},
		{"what comes later follows the skipped ones", nil, forwardTSN(3, 0, 2), "",
			[]wire.Data{dataChunk(5, 4, be, "e"), dataChunk(4, 3, be, "d")}, "d|e|"},
		{"a stream that was never used", nil, forwardTSN(1, 7, 0), "", []wire.Data{onStream(7, 2, 1, be, "b")}, "b|"},
		{"streams that there are not are ignored", []wire.Data{dataChunk(2, 1, be, "b")},
			forwardTSN(1, 16, 0, 65535, 9, 0, 0), "b|", nil, ""},
		{"an SSN that was delivered changes nothing", []wire.Data{dataChunk(1, 0, be, "a"), dataChunk(2, 1, be, "b"), dataChunk(4, 3, be, "d")},
			forwardTSN(3, 0, 1), "a|b|", []wire.Data{dataChunk(5, 2, be, "c")}, "c|d|"},
		{"nor does one of long ago", []wire.Data{dataChunk(1, 0, be, "a"), dataChunk(2, 1, be, "b"), dataChunk(4, 3, be, "d")},
			forwardTSN(3, 0, 40000), "a|b|", []wire.Data{dataChunk(5, 2, be, "c")}, "c|d|"},
		{"without an SSN nothing is released", []wire.Data{dataChunk(2, 1, be, "b")}, forwardTSN(1), "",
			nil, ""},
	} {
		r := newAbandoned()
		mustPacket(t, r, 0, tt.chunks...)
		must.That(t, r.ForwardTSN(tt.forward), "%s: out of date", tt.name)
		must.OK(t, r.PacketDone(0))
		check.OK(t, r.Audit(0))
		check.Equal(t, tt.name, drainText(r), tt.want)
		mustPacket(t, r, 0, tt.later...)
		check.Equal(t, tt.name+", then", drainText(r), tt.then)
		check.OK(t, r.Audit(0))
		if tt.name != "without an SSN nothing is released" {
			check.That(t, r.Buffered() == 0 && !r.HasMissing(), "%s: %d octets are held, missing: %v", tt.name,
				r.Buffered(), r.HasMissing())
		}
	}
}

// What becomes due while the program does not read keeps its turn, and a second FORWARD TSN counts
// on from there.
func TestForwardTSNsWhileNothingIsRead(t *testing.T) {
	r := newAbandoned()
	mustPacket(t, r, 0, dataChunk(2, 1, be, "b"), dataChunk(4, 3, be, "d"), dataChunk(6, 5, be, "f"))
	mustForward(t, r, 1, 0, 0)
	mustForward(t, r, 3, 0, 2)
	mustPacket(t, r, 0, dataChunk(7, 6, be, "g"))
	mustForward(t, r, 5, 0, 4)
	mustForward(t, r, 9, 0, 8) // 8 and 9 are lost
	mustPacket(t, r, 0, dataChunk(10, 9, be, "j"))
	check.OK(t, r.Audit(0))
	check.Equal(t, "received", drainText(r), "b|d|f|g|j|")
	check.OK(t, r.Audit(0))
}

// With more messages of a stream on their way than SSNs tell apart by RFC 1982, their TSNs do.
func TestSkippedSSNFarAhead(t *testing.T) {
	const waiting = 40_000
	for _, row := range []struct {
		name         string
		newCum, skip int
		want         int // messages that are delivered
	}{
		{"the first of very many", 1, 0, waiting},
		{"one behind all that wait, with a hole before it", waiting + 5, waiting + 4, waiting},
	} {
		r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 16 << 20, InStreams: 16, MayAbandon: true})
		for i := range waiting {
			mustPacket(t, r, 0, dataChunk(2+i, 1+i, be, "x"))
		}
		must.That(t, mustForward(t, r, row.newCum, 0, row.skip), "%s: out of date", row.name)
		n := 0
		for m, ok := r.Receive(); ok; m, ok = r.Receive() {
			n++
			r.Release(m)
		}
		check.Equal(t, row.name, n, row.want)
		next, _, _ := r.Stream(0)
		check.Equal(t, row.name+": the next SSN", next, wire.SSN(max(row.skip, waiting)+1))
		check.OK(t, r.Audit(0))
	}
	// A peer whose SACKs are lost names SSNs again that were skipped long ago, however far it
	// jumps.
	r := newAbandoned()
	mustForward(t, r, 100, 0, 99)
	mustForward(t, r, 70_000, 0, 50)
	mustPacket(t, r, 0, dataChunk(70_001, 100, be, "x"))
	check.Equal(t, "received", drainText(r), "x|")
}

func TestForwardTSNDropsWhatCannotBeWhole(t *testing.T) {
	// req 3758-3.6-5
	const b, m, e, u = wire.FlagB, uint8(0), wire.FlagE, wire.FlagU
	for _, tt := range []struct {
		name    string
		chunks  []wire.Data
		forward wire.ForwardTSN
		held    int // octets
		later   []wire.Data
		want    string
	}{
		{"the beginning without the rest", []wire.Data{dataChunk(1, 0, b, "a")}, forwardTSN(3, 0, 0), 0,
			[]wire.Data{dataChunk(4, 1, be, "x")}, "x|"},
		{"the rest without the beginning", []wire.Data{dataChunk(2, 0, m, "b"), dataChunk(3, 0, e, "c")},
			forwardTSN(1, 0, 0), 0, []wire.Data{dataChunk(4, 1, be, "x")}, "x|"},
		{"both ends of it", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(3, 0, e, "c")}, forwardTSN(2, 0, 0), 0,
			[]wire.Data{dataChunk(4, 1, be, "x")}, "x|"},
		{"of unordered messages too", []wire.Data{dataChunk(1, 0, b|u, "a"), dataChunk(3, 0, e|u, "c"), dataChunk(5, 0, m|u, "d"), dataChunk(6, 0, b|u, "e")},
			forwardTSN(5), 1, []wire.Data{dataChunk(7, 0, e|u, "f")}, "ef|"},
		{"the end comes when the beginning is given up", []wire.Data{dataChunk(1, 0, b, "a")}, forwardTSN(2, 0, 0), 0,
			[]wire.Data{dataChunk(3, 0, e, "c"), dataChunk(4, 1, be, "x")}, "x|"},
		{"several messages", []wire.Data{dataChunk(1, 0, b, "a"), onStream(1, 4, 0, e, "d"), onStream(2, 5, 0, b, "e"), dataChunk(9, 1, be, "x")},
			forwardTSN(8, 0, 0, 1, 0, 2, 0), 1, nil, "x|"},
		{"not what lacks only later TSNs", []wire.Data{dataChunk(2, 1, b, "b"), dataChunk(5, 2, e, "e")}, forwardTSN(1, 0, 0), 2,
			[]wire.Data{dataChunk(3, 1, e, "c"), dataChunk(4, 2, b, "d")}, "bc|de|"},
		{"not what ends where the next begins", []wire.Data{dataChunk(2, 1, b, "b"), dataChunk(3, 1, e, "c")},
			forwardTSN(1, 0, 0), 2, nil, "bc|"},
	} {
		r := newAbandoned()
		mustPacket(t, r, 0, tt.chunks...)
		must.That(t, r.ForwardTSN(tt.forward), "%s: out of date", tt.name)
		must.OK(t, r.PacketDone(0))
		check.Equal(t, tt.name+": octets held", r.Buffered(), tt.held)
		check.OK(t, r.Audit(0))
		mustPacket(t, r, 0, tt.later...)
		check.Equal(t, tt.name, drainText(r), tt.want)
		check.That(t, r.Buffered() == 0 && r.reassembly.store.usedMemory == 0 && !r.HasMissing(),
			"%s: %d octets, %d of memory are left, missing: %v", tt.name, r.Buffered(), r.reassembly.store.usedMemory,
			r.HasMissing())
	}
}

// The last fragments of a message that is given up may never get a TSN. Then the next message shows
// it, and its stream does not wait.
func TestMessageThatBeginsBeforeTheOneBeforeHasEnded(t *testing.T) {
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	for _, tt := range []struct {
		name   string
		chunks []wire.Data
		want   string
		gone   uint64
	}{
		{"in order", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(2, 1, be, "b")}, "b|", 1},
		{"the next first", []wire.Data{dataChunk(2, 1, be, "b"), dataChunk(1, 0, b, "a")}, "b|", 1},
		{"the next in fragments", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(2, 1, b, "b"), dataChunk(3, 1, e, "c")}, "bc|", 1},
		{"the next in fragments, backwards", []wire.Data{dataChunk(3, 1, e, "c"), dataChunk(2, 1, b, "b"), dataChunk(1, 0, b, "a")}, "bc|", 1},
		{"of another stream", []wire.Data{dataChunk(1, 0, b, "a"), onStream(1, 2, 0, be, "b"), dataChunk(3, 1, be, "c")}, "b|c|", 1},
		{"beyond a gap", []wire.Data{dataChunk(2, 0, m, "a"), dataChunk(3, 1, be, "b"), dataChunk(1, 0, b, "x")}, "b|", 1},
		{"several in a row", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(2, 1, b, "b"), dataChunk(3, 2, b, "c"), dataChunk(4, 3, be, "d")}, "d|", 3},
		{"unordered", []wire.Data{dataChunk(1, 0, b|wire.FlagU, "a"), dataChunk(2, 0, ube, "b"), dataChunk(3, 0, be, "c")}, "b|c|", 1},
	} {
		r := newAbandoned()
		mustPacket(t, r, 0, tt.chunks...)
		check.OK(t, r.Audit(0))
		check.Equal(t, tt.name, drainText(r), tt.want)
		check.Equal(t, tt.name+": given up", r.TakeAbandoned(), tt.gone)
		check.That(t, r.Buffered() == 0 && r.TakeAbandoned() == 0 && !r.HasMissing(), "%s: %d octets, missing: %v",
			tt.name, r.Buffered(), r.HasMissing())
	}
	// What continues another message than its neighbour is still no abandonment.
	for _, d := range []wire.Data{dataChunk(2, 1, m, "x"), dataChunk(2, 1, e, "x"), onStream(1, 2, 0, e, "x")} {
		r := newAbandoned()
		_, err := feedPacket(r, 0, dataChunk(1, 0, b, "a"), d)
		check.That(t, err != nil, "a fragment of another message, without its beginning")
	}
}

func TestReaderLearnsThatTheRestWillNotCome(t *testing.T) {
	// req 3758-3.6-6
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	x := strings.Repeat("x", 300)
	begin := []wire.Data{dataChunk(1, 0, b, x), dataChunk(2, 0, m, x), dataChunk(3, 0, m, x)}
	for _, tt := range []struct {
		name  string
		story func(r *Receiver)
		want  string
	}{
		{"its pieces were read", func(r *Receiver) { drainPieces(r); r.ForwardTSN(forwardTSN(4, 0, 0)) },
			"0:900+0cut"},
		{"they were not", func(r *Receiver) { r.ForwardTSN(forwardTSN(4, 0, 0)) }, "0:0+900.. 0:900+0cut"},
		{"what has waited for its end follows", func(r *Receiver) {
			drainPieces(r)
			feedPacket(r, 0, onStream(1, 6, 0, be, "a"), dataChunk(7, 1, be, "b"))
			r.ForwardTSN(forwardTSN(5, 0, 0))
		}, "0:900+0cut 1:0+1 0:0+1"},
		{"more of it had come", func(r *Receiver) {
			drainPieces(r)
			feedPacket(r, 0, dataChunk(5, 0, m, "y"), dataChunk(6, 0, e, "z"))
			r.ForwardTSN(forwardTSN(4, 0, 0))
		}, "0:900+0cut"},
		{"the next message begins in its place", func(r *Receiver) {
			drainPieces(r)
			feedPacket(r, 0, dataChunk(4, 1, be, "b"))
		}, "0:900+0cut 0:0+1"},
		{"not if only another message is given up", func(r *Receiver) {
			drainPieces(r)
			feedPacket(r, 0, dataChunk(4, 0, m, "y"), dataChunk(5, 0, e, "z"))
			r.ForwardTSN(forwardTSN(6, 0, 1))
		}, "0:900+2"},
	} {
		r := newAbandoned()
		mustPacket(t, r, 0, begin...)
		tt.story(r)
		must.OK(t, r.PacketDone(0))
		check.OK(t, r.Audit(0))
		check.Equal(t, tt.name, drainPieces(r), tt.want)
		check.That(t, r.Buffered() == 0 && r.reassembly.store.usedMemory == 0, "%s: %d octets, %d of memory are left",
			tt.name, r.Buffered(), r.reassembly.store.usedMemory)
		r.Restart(Config{PeerTSN: 5000, RecvBuffer: 1000, PMDCS: 200, InStreams: 2})
		check.Equal(t, tt.name+": after a restart", drainPieces(r), "")
	}
}

// The window opens by what is dropped, and the peer hears of it.
func TestWhatIsDroppedOpensTheWindow(t *testing.T) {
	r := newAbandoned()
	x := strings.Repeat("x", 300)
	mustPacket(t, r, 0, dataChunk(1, 0, be, "a"))
	mustPacket(t, r, 0, dataChunk(2, 1, wire.FlagB, x), dataChunk(3, 1, 0, x))
	check.Equal(t, "a_rwnd", sackOf(r).ARwnd(), 399)
	mustForward(t, r, 4, 0, 1)
	check.That(t, r.SackDue(0) && sackOf(r).ARwnd() == 999, "SACK due %v, window %d", r.SackDue(0), r.Window())
	r.SetBuffers(300, 0, 0)
	mustPacket(t, r, 0, dataChunk(5, 2, wire.FlagB, x), dataChunk(7, 2, 0, x))
	mustForward(t, r, 6, 0, 2)
	check.Equal(t, "a smaller buffer comes about as what was advertised is used up", r.Window(), 399)
	check.OK(t, r.Audit(0))
}

// A message that its stream has skipped, and one that was placed before its turn, do not get into
// each other's way.
func TestForwardTSNSkipsPlacedMessages(t *testing.T) {
	r := newAbandoned()
	place := func(tsn, ssn int) {
		d := dataChunk(tsn, ssn, be, "placed")
		must.Equal(t, "verdict", r.Admit(d), New)
		r.Placed(d)
	}
	place(3, 2)
	place(5, 4)
	mustPacket(t, r, 0, dataChunk(6, 5, be, "f"))
	mustForward(t, r, 4, 0, 3)
	check.Equal(t, "received", drainText(r), "f|")
	check.That(t, r.reassembly.streams.numPlaceholders == 0 && r.reassembly.store.usedMemory == 0,
		"%d messages still wait, %d octets", r.reassembly.streams.numPlaceholders, r.reassembly.store.usedMemory)
	place(9, 8)
	r.Close()
	check.OK(t, r.Audit(0))
}

// With memory short all that waits is dropped, in the trees too, and comes again.
func TestPressureDropsWhatWaitsInOrder(t *testing.T) {
	r := newAbandoned()
	mustPacket(t, r, 0, dataChunk(2, 1, be, "b"), dataChunk(3, 2, be, "c"), onStream(1, 5, 1, be, "e"))
	r.SetMemoryPressure(true)
	check.OK(t, r.Audit(0))
	check.That(t, r.Buffered() == 0 && r.Evicted() == 3 && r.reassembly.outOfOrder.count == 0, "%d octets, %d evicted",
		r.Buffered(), r.Evicted())
	r.SetMemoryPressure(false)
	mustForward(t, r, 1, 0, 0)
	mustPacket(t, r, 0, dataChunk(3, 2, be, "c"), dataChunk(2, 1, be, "b"))
	check.Equal(t, "received", drainText(r), "b|c|")
	// A message is dropped of a stream whose skipping nobody has read yet.
	r = newAbandoned()
	mustPacket(t, r, 0, dataChunk(5, 4, be, "e"))
	mustForward(t, r, 2, 0, 1)
	r.SetMemoryPressure(true)
	r.SetMemoryPressure(false)
	mustPacket(t, r, 0, dataChunk(3, 2, be, "c"))
	check.Equal(t, "received", drainText(r), "c|")
	check.OK(t, r.Audit(0))
}

// A FORWARD TSN costs a step for each stream that it names, and for each message that it drops,
// which has paid for that. However far it jumps, and however many messages it releases, they become
// ready as they are read.
func TestForwardTSNBuysNoWork(t *testing.T) {
	const waiting = 20_000
	big := func() *Receiver {
		return NewReceiver(Config{PeerTSN: 1, RecvBuffer: 4 << 20, PMDCS: 1400, InStreams: 65_535, MayAbandon: true})
	}
	costOf := func(r *Receiver, f wire.ForwardTSN) uint64 {
		begun := r.Steps()
		must.That(t, r.ForwardTSN(f), "out of date")
		must.OK(t, r.PacketDone(0))
		return r.Steps() - begun
	}
	r := big()
	for i := range waiting {
		mustPacket(t, r, 0, dataChunk(2+i, 1+i, be, "x"))
	}
	check.Equal(t, "steps for very many messages that it releases", costOf(r, forwardTSN(1, 0, 0)), 1)
	begun := r.Steps()
	m := mustReceive(t, r)
	r.Release(m)
	check.That(t, r.Steps()-begun <= 2*deliverBatchSize*2*16, "%d steps for the first that is read", r.Steps()-begun)

	r = big()
	for i := range waiting { // SSNs far apart
		mustPacket(t, r, 0, onStream(i, 2+i, 40_000, be, "x"))
	}
	var skips []int
	for i := range 8_000 {
		skips = append(skips, i, 39_999)
	}
	check.Equal(t, "steps for as many streams as it names", costOf(r, forwardTSN(1<<30, skips...)), 8_000)
	n := 0
	begun = r.Steps()
	for m, ok := r.Receive(); ok; m, ok = r.Receive() {
		n++
		r.Release(m)
	}
	check.That(t, n == 8_000 && r.Steps()-begun <= 8_000*2*8, "%d messages in %d steps", n, r.Steps()-begun)

	r = big()
	for i := range waiting {
		mustPacket(t, r, 0, dataChunk(2+2*i, i, wire.FlagB, "x"))
	}
	check.That(t, costOf(r, forwardTSN(2*waiting+1)) <= waiting*2 && r.Buffered() == 0 && r.TakeAbandoned() == waiting,
		"%d octets are left", r.Buffered())

	r = big()
	for i := range 100 { // one chunk at the end of the window, and a jump to before it
		mustPacket(t, r, 0, dataChunk(int(r.CumTSN())+65_535, 0, ube, "x"))
		got := costOf(r, forwardTSN(int(r.CumTSN())+65_000))
		must.That(t, got <= 1, "jump %d: %d steps", i, got)
	}
	check.OK(t, r.Audit(0))
}

// The streams that a FORWARD TSN names take no more memory than DATA on them would, and those that
// there are not take none.
func TestForwardTSNBuysNoMemory(t *testing.T) {
	few := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000, InStreams: 64, MayAbandon: true})
	held := few.Held()
	mustForward(t, few, 10, 0, 0, 64, 0, 65_535, 0)
	check.Equal(t, "octets held", few.Held(), held)
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 4 << 20, InStreams: 65_535, MayAbandon: true})
	for i := range 100 {
		var skips []int
		for k := range 16_000 {
			skips = append(skips, (7*k+i)%65_536, 1000*i)
		}
		mustForward(t, r, 100_000*(1+i), skips...)
	}
	const page = 64 * 4
	check.That(t, r.reassembly.Held() <= 1024*(page+8)+int(unsafe.Sizeof(extensions{})) && r.reassembly.ext.waiting.Held() == 0, "%d octets held, %d of waiting ones",
		r.reassembly.Held(), r.reassembly.ext.waiting.Held())
}
