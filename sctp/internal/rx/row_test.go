package rx

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// feedPlaced feeds one whole chunk as a packet that is placed.
func feedPlaced(t *testing.T, r *Receiver, now rawio.Time, d wire.Data) {
	t.Helper()
	must.Equal(t, "admission", r.Admit(d), New)
	r.Placed(d)
	must.OK(t, r.PacketDone(now))
}

// beganPartial returns a receiver of 1000 octets that has had TSN 1, and has acknowledged it.
func beganPartial(t *testing.T, partial int) *Receiver {
	t.Helper()
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000, PartialPoint: partial, PMDCS: 200, InStreams: 2,
		SackDelay: 200 * time.Millisecond})
	feedPlaced(t, r, 0, dataChunk(1, 0, ube, "x"))
	sackOf(r)
	return r
}

// A row is for DATA that asks for nothing but to be counted.
func TestNoRowWhereMoreIsToBeDone(t *testing.T) {
	first := func(r *Receiver) *Receiver {
		must.OK(t, r.PacketDone(0))
		sackOf(r)
		return r
	}
	for _, tt := range []struct {
		name    string
		partial int
		spoil   func(r *Receiver)
		mend    func(r *Receiver) // nil: not at once
	}{
		{"in the midst of a packet", 0, func(r *Receiver) { r.Placed(dataChunk(2, 0, ube, "x")) }, func(r *Receiver) { first(r) }},
		{"a TSN missing", 0, func(r *Receiver) { feedPlaced(t, r, 0, dataChunk(3, 0, ube, "x")) }, nil},
		{"a TSN that was missing", 0, func(r *Receiver) {
			feedPlaced(t, r, 0, dataChunk(3, 0, ube, "x"))
			feedPlaced(t, r, 0, dataChunk(2, 0, ube, "x"))
		}, nil},
		{"a duplicate", 0, func(r *Receiver) { mustPacket(t, r, 0, dataChunk(1, 0, ube, "x")) }, nil},
		{"memory short", 0, func(r *Receiver) { r.SetMemoryPressure(true) }, func(r *Receiver) { r.SetMemoryPressure(false) }},
		{"a buffer that shrinks", 0, func(r *Receiver) { r.SetBuffers(500, 500, 0) }, func(r *Receiver) { feedPlaced(t, r, 0, onStream(0, 2, 0, ube, string(make([]byte, 500)))) }},
		{"an unread message", 0, func(r *Receiver) { mustPacket(t, r, 0, dataChunk(2, 0, be, "x")) }, func(r *Receiver) { drainText(r) }},
		{"a message that waits for its SSN", 0, func(r *Receiver) { mustPacket(t, r, 0, dataChunk(2, 1, be, "x")) }, func(r *Receiver) { feedPlaced(t, r, 0, dataChunk(3, 0, be, "y")); drainText(r) }},
		{"a fragment", 0, func(r *Receiver) { mustPacket(t, r, 0, dataChunk(2, 0, wire.FlagB, "x")) }, func(r *Receiver) { mustPacket(t, r, 0, dataChunk(3, 0, wire.FlagE, "y")); drainText(r) }},
		{"a message of which all that has come is read", 2, func(r *Receiver) {
			mustPacket(t, r, 0, dataChunk(2, 0, wire.FlagB, "xyz"))
			must.That(t, drainPieces(r) != "" && r.Buffered() == 0, "no piece was delivered")
		}, func(r *Receiver) { mustPacket(t, r, 0, dataChunk(3, 0, wire.FlagE, "y")); drainText(r) }},
		{"no room in memory, without user data", 0, func(r *Receiver) {
			for i := 2; r.Window() > 0; i++ { // they wait for SSN 0
				feedPlaced(t, r, 0, dataChunk(i, i, be, "x"))
			}
			must.Equal(t, "user data", r.Buffered(), 0)
			tsn := int(r.CumTSN()) + 1
			must.Equal(t, "admission", r.Admit(dataChunk(tsn, 0, ube, "x")), Dropped)
			must.OK(t, r.PacketDone(0))
		}, nil},
		{"a peer that begins anew", 0, func(r *Receiver) { r.Restart(Config{PeerTSN: 8, RecvBuffer: 1000, InStreams: 2}) }, func(r *Receiver) { feedPlaced(t, r, 0, dataChunk(8, 0, ube, "x")) }},
	} {
		r := beganPartial(t, tt.partial)
		must.That(t, r.CanPlaceRow(), "%s: before, no row", tt.name)
		tt.spoil(r)
		check.That(t, !r.CanPlaceRow(), "%s: a row", tt.name)
		if tt.mend != nil {
			tt.mend(r)
			check.That(t, r.CanPlaceRow(), "%s: afterwards, no row", tt.name)
		}
	}
	check.That(t, !newReceiver().CanPlaceRow(), "a row before the first DATA")
}

// A loss is remembered for so many packets, and none of a row is among them.
func TestNoRowUntilALossIsForgotten(t *testing.T) {
	r := beganPartial(t, 0)
	mustPacket(t, r, 0, dataChunk(1, 0, ube, "x"))
	for i := range LossBackoffPackets - 1 {
		must.That(t, !r.CanPlaceRow(), "a row %d packets behind a loss", i+1)
		feedPlaced(t, r, 0, dataChunk(2+i, 0, ube, "x"))
	}
	check.That(t, r.CanPlaceRow(), "%d packets behind a loss, no row", LossBackoffPackets)
}

// receiverPair are two receivers that are given the same: by the one each packet of a row is taken
// in by itself, by the other all at once.
type receiverPair struct {
	t       *testing.T
	rnd     *rand.Rand
	r       [2]*Receiver
	lent    [2][]*Message
	now     rawio.Time
	sent    []wire.Data // from TSN 1 on
	ssn     [2]int
	rest    []wire.Data // of a message in fragments
	quiet   int         // packets with DATA since a loss
	come    bool        // some DATA has
	squeeze bool
	event   string
	train   [2]*rawio.Buf
}

// onBoth does something with each, with the same outcome.
func (w *receiverPair) onBoth(what string, do func(r *Receiver) any) any {
	w.t.Helper()
	w.event = what
	one, other := do(w.r[0]), do(w.r[1])
	must.That(w.t, reflect.DeepEqual(one, other), "%s: one by one %v, in a row %v", what, one, other)
	return one
}

func (w *receiverPair) checkSame() {
	w.t.Helper()
	if !reflect.DeepEqual(w.r[0], w.r[1]) {
		w.t.Fatalf("after %s\none by one %s\nin a row   %s", w.event, w.r[0].DumpState(w.now), w.r[1].DumpState(w.now))
	}
}

// feedPacket gives both a packet with chunks, of which whole messages are placed, or all queued.
func (w *receiverPair) feedPacket(place bool, chunks ...wire.Data) {
	w.t.Helper()
	w.event = "a packet"
	loss := false
	admitted := w.onBoth("a packet", func(r *Receiver) any {
		var got []Admission
		for _, d := range chunks {
			a := r.Admit(d)
			got = append(got, a)
			switch {
			case a != New:
			case place && d.B() && d.E():
				r.Placed(d)
			default:
				must.OK(w.t, r.Queue(d, nil))
			}
		}
		loss = r.HasGaps()
		must.OK(w.t, r.PacketDone(w.now))
		return got
	}).([]Admission)
	if w.come = true; loss || slices.Contains(admitted, Duplicate) {
		w.quiet = 0
	}
	w.quiet++
}

// nextSSN returns the U bit and the SSN of the next message of a stream.
func (w *receiverPair) nextSSN(id int) (flags uint8, ssn int) {
	if ssn = w.ssn[id]; w.rnd.IntN(2) == 0 {
		return wire.FlagU, ssn
	}
	w.ssn[id]++
	return 0, ssn
}

// nextChunk is the next chunk that the peer sends.
func (w *receiverPair) nextChunk() wire.Data {
	if len(w.rest) == 0 {
		id, n := w.rnd.IntN(2), 1
		if w.rnd.IntN(6) == 0 {
			n = 2 + w.rnd.IntN(2)
		}
		flags, ssn := w.nextSSN(id)
		for i := range n {
			f := flags
			if i == 0 {
				f |= wire.FlagB
			}
			if i == n-1 {
				f |= wire.FlagE
			}
			if w.rnd.IntN(8) == 0 {
				f |= wire.FlagI
			}
			w.rest = append(w.rest, onStream(id, len(w.sent)+1+i, ssn, f,
				"0123456789012345678901234567890123456789"[:1+w.rnd.IntN(40)]))
		}
	}
	d := w.rest[0]
	w.rest, w.sent = w.rest[1:], append(w.sent, d)
	return d
}

// wholeUnordered makes the next chunk a whole unordered message.
func (w *receiverPair) wholeUnordered() wire.Data {
	d := onStream(w.rnd.IntN(2), len(w.sent)+1, 0, ube, "01234567890123456789"[:1+w.rnd.IntN(20)])
	w.sent = append(w.sent, d)
	return d
}

func (w *receiverPair) readBoth() {
	w.onBoth("a read", func(r *Receiver) any {
		m, ok := r.Receive()
		if !ok {
			return "nothing"
		}
		b := make([]byte, m.Size)
		m.CopyTo(b, 0)
		i := slices.Index(w.r[:], r)
		w.lent[i] = append(w.lent[i], m)
		return fmt.Sprint(m.Stream, m.SSN, m.PPID, m.Unordered, m.Offset, m.More, m.Cut, string(b))
	})
}

func (w *receiverPair) releaseOne() {
	if n := len(w.lent[0]); n > 0 {
		k := w.rnd.IntN(n)
		w.onBoth("a release", func(r *Receiver) any {
			i := slices.Index(w.r[:], r)
			r.Release(w.lent[i][k])
			w.lent[i] = slices.Delete(w.lent[i], k, k+1)
			return nil
		})
	}
}

func (w *receiverPair) readAll() {
	for before := -1; before != w.r[0].Buffered(); {
		before = w.r[0].Buffered()
		w.readBoth()
		for len(w.lent[0]) > 0 {
			w.releaseOne()
		}
	}
}

func (w *receiverPair) sackBoth(room int) {
	w.onBoth("a SACK", func(r *Receiver) any { return r.AppendSack(nil, room) })
}

// endObstacles ends all that speaks against a row.
func (w *receiverPair) endObstacles() {
	w.t.Helper()
	w.setPressure(false)
	for len(w.rest) > 0 {
		w.nextChunk()
	}
	for i := 0; int(w.r[0].CumTSN()) < len(w.sent); i++ {
		must.That(w.t, i < 1000, "TSN %d is never taken", w.r[0].CumTSN()+1)
		w.feedPacket(true, w.sent[w.r[0].CumTSN()])
		w.readAll()
		w.sackBoth(1400)
	}
	for w.readAll(); w.quiet < LossBackoffPackets+w.rnd.IntN(3)-1; {
		w.feedPacket(true, w.wholeUnordered())
		w.sackBoth(1400)
	}
}

func (w *receiverPair) setPressure(on bool) {
	w.squeeze = on
	w.onBoth("a squeeze", func(r *Receiver) any { r.SetMemoryPressure(on); return nil })
}

// placeRow gives both n packets in a row.
func (w *receiverPair) placeRow(n int) {
	w.t.Helper()
	for range n {
		feedPlaced(w.t, w.r[0], w.now, w.wholeUnordered())
		w.quiet++
	}
	w.r[1].PlacedRow(n)
	w.r[1].RowDone(w.now, n)
	w.event = fmt.Sprint("a row of ", n)
}

// randomStep does one of what may happen.
func (w *receiverPair) randomStep() { w.checkSteps(w.rnd.IntN(30)) }

func (w *receiverPair) checkSteps(what int) {
	w.t.Helper()
	rnd := w.rnd
	switch what {
	case 0, 1, 2:
		w.feedPacket(rnd.IntN(2) == 0, w.nextChunk())
	case 3:
		w.feedPacket(rnd.IntN(2) == 0, w.nextChunk(), w.nextChunk())
	case 4:
		switch rnd.IntN(6) {
		case 0: // lost
			w.nextChunk()
			w.feedPacket(rnd.IntN(2) == 0, w.nextChunk())
		case 1: // late, or again
			if n := len(w.sent); n > 0 {
				w.feedPacket(true, w.sent[n-1-rnd.IntN(min(n, 8))])
			}
		case 2:
			w.setPressure(true)
		}
	case 5, 6, 7, 8:
		w.readBoth()
		w.releaseOne()
	case 9, 10:
		w.readAll()
	case 11, 12:
		w.sackBoth(16 + rnd.IntN(30))
	case 13:
		on := rnd.IntN(2) == 0
		w.onBoth("a SACK held", func(r *Receiver) any { r.HoldSack(on); return nil })
	case 14:
		delay, lone := time.Duration(rnd.IntN(3))*100*time.Millisecond, time.Duration(rnd.IntN(3))*10*time.Millisecond
		w.onBoth("another delay", func(r *Receiver) any { r.SetSackDelay(delay, lone); return nil })
	case 15, 16:
		w.onBoth("an answer", func(r *Receiver) any { r.NoteDataSent(w.now); return nil })
	case 17:
		octets, most := 800+rnd.IntN(800), rnd.IntN(1600)
		w.onBoth("another buffer", func(r *Receiver) any { r.SetBuffers(octets, most, 30); return nil })
	case 18:
		octets := 800 + rnd.IntN(1600)
		if octets >= w.r[0].cfg.RecvBuffer {
			w.onBoth("a buffer that grows", func(r *Receiver) any { r.GrowBuffer(octets); return nil })
		}
	case 19:
		w.onBoth("a trim", func(r *Receiver) any { r.Trim(); return nil })
	case 20:
		w.onBoth("a SACK again", func(r *Receiver) any { r.DemandSack(); return nil })
	case 21:
		if w.setPressure(false); rnd.IntN(3) == 0 {
			w.endObstacles()
		}
	case 22: // each packet is answered
		for len(w.rest) == 0 && !w.squeeze && rnd.IntN(20) > 0 {
			w.feedPacket(true, w.wholeUnordered())
			w.sackBoth(1400)
		}
	case 23, 24:
		w.onBoth("whether a SACK is due", func(r *Receiver) any {
			return []any{r.SackDue(w.now), r.SackNow(), r.SackPending(), r.Deadline()}
		})
	case 25, 26, 27:
		w.now = w.now.Add([]time.Duration{1, time.Millisecond, 15 * time.Millisecond,
			300 * time.Millisecond}[rnd.IntN(4)])
	case 28:
		w.onBoth("a SHUTDOWN", func(r *Receiver) any { r.NoteCumAckSent(); return nil })
	default:
		w.onBoth("its size", func(r *Receiver) any { r.SetPMDCS(100); return r.Held() })
	}
}

// Packets in a row leave a receiver in the very state that it has when each is taken in by itself,
// whatever came before and comes after. There is a row where no TSN is missing, nothing is held,
// nothing was lost recently and memory is not short, and nowhere else.
func TestRowIsAsOneByOne(t *testing.T) {
	rows, several, none := 0, 0, 0
	for seed := range 40 {
		w := &receiverPair{t: t, rnd: rand.New(rand.NewPCG(uint64(seed), 0x2077)), now: 1000 * ms,
			quiet: LossBackoffPackets}
		for i := range w.r {
			w.r[i] = NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000, PartialPoint: 30, PMDCS: 200, InStreams: 2,
				SackDelay: 200 * time.Millisecond, LoneSackDelay: 20 * time.Millisecond, StrictRFC: seed%4 == 3})
		}
		for range 500 {
			ok := w.r[1].CanPlaceRow()
			r := w.r[0]
			want := w.come && w.quiet >= LossBackoffPackets && !w.squeeze && !r.HasGaps() && r.Buffered() == 0 &&
				r.Window() > 0 && r.reassembly.byLastTSN.endsAtBase == nil && r.reassembly.dataLimit <= r.cfg.RecvBuffer
			must.That(t, ok == want, "after %s: a row behind TSN %d: %v, want %v; %d packets behind a loss", w.event,
				r.CumTSN(), ok, want, w.quiet)
			switch n := 1 + w.rnd.IntN(16); {
			case ok && int(r.CumTSN()) == len(w.sent) && len(w.rest) == 0 && w.rnd.IntN(3) == 0:
				if w.placeRow(n); n > 1 {
					several++
				}
				rows++
			case !ok:
				none++
				fallthrough
			default:
				w.randomStep()
			}
			w.checkSame()
		}
		must.OK(t, w.r[0].Audit(lentOctets(w.lent[0])))
		must.OK(t, w.r[1].Audit(lentOctets(w.lent[1])))
	}
	check.That(t, rows > 1000 && several > 1000 && none > 1000,
		"%d rows, %d of several packets, and %d times there was none", rows, several, none)
}

// beginMessage returns a receiver of 1000 octets with the beginning of a message, as it is when
// that is acknowledged. It begins to deliver in pieces what leaves less than 400 octets.
func beginMessage(t *testing.T, cfg Config, flags uint8) *Receiver {
	t.Helper()
	cfg.PeerTSN, cfg.RecvBuffer, cfg.PMDCS, cfg.InStreams, cfg.SackDelay = 1, 1000, 200, 2, 200*time.Millisecond
	r := NewReceiver(cfg)
	mustPacket(t, r, 0, dataChunk(1, 0, wire.FlagB|flags, "0123456789"))
	sackOf(r)
	return r
}

// Fragments in the middle of a message are taken in a row where nothing but a message is held to
// which they may belong.
func TestMiddleIsWhereAMessageGoesOn(t *testing.T) {
	check.That(t, !midMessage(newReceiver(), 0), "the middle of a message before the first DATA")
	for _, flags := range []uint8{0, wire.FlagU} {
		for _, tt := range []struct {
			name  string
			spoil func(r *Receiver)
			mend  func(r *Receiver) // nil: not at once
		}{
			{"in the midst of a packet", func(r *Receiver) { must.OK(t, r.Queue(dataChunk(2, 0, flags, "x"), nil)) }, func(r *Receiver) { must.OK(t, r.PacketDone(0)) }},
			{"a fragment missing", func(r *Receiver) { mustPacket(t, r, 0, dataChunk(3, 0, flags, "x")) }, nil},
			{"a fragment that was missing", func(r *Receiver) {
				mustPacket(t, r, 0, dataChunk(3, 0, flags, "x"))
				mustPacket(t, r, 0, dataChunk(2, 0, flags, "x"))
			}, nil},
			{"a duplicate", func(r *Receiver) { mustPacket(t, r, 0, dataChunk(1, 0, wire.FlagB|flags, "x")) }, nil},
			{"memory short", func(r *Receiver) { r.SetMemoryPressure(true) }, func(r *Receiver) { r.SetMemoryPressure(false) }},
			{"the end", func(r *Receiver) { mustPacket(t, r, 0, dataChunk(2, 0, wire.FlagE|flags, "x")) }, func(r *Receiver) { mustPacket(t, r, 0, dataChunk(3, 1, wire.FlagB|flags, "x")) }},
			{"a peer that begins anew", func(r *Receiver) { r.Restart(Config{PeerTSN: 8, RecvBuffer: 1000, InStreams: 2}) }, func(r *Receiver) { mustPacket(t, r, 0, dataChunk(8, 0, wire.FlagB|flags, "x")) }},
		} {
			r := beginMessage(t, Config{}, flags)
			must.That(t, midMessage(r, flags), "%s: before, not the middle of a message", tt.name)
			tt.spoil(r)
			_, ok := r.MidMessage()
			check.That(t, !ok, "%s: the middle of a message", tt.name)
			if tt.mend != nil {
				tt.mend(r)
				check.That(t, midMessage(r, flags), "%s: afterwards, not the middle of a message", tt.name)
			}
		}
	}
	r := beginMessage(t, Config{PartialPoint: 5}, 0)
	must.Equal(t, "pieces", drainPieces(r), "0:0+10..")
	check.That(t, midMessage(r, 0), "not the middle of a message of which all that has come is read")
	mustPacket(t, r, 0, dataChunk(1, 0, wire.FlagB, "x"))
	for i := range LossBackoffPackets - 1 {
		_, ok := r.MidMessage()
		must.That(t, !ok, "the middle of a message, %d packets behind a loss", i+1)
		mustPacket(t, r, 0, dataChunk(2+i, 0, 0, "x"))
		drainText(r)
	}
	check.That(t, midMessage(r, 0), "%d packets behind a loss, not the middle of a message", LossBackoffPackets)
}

// midMessage says whether fragments with U bits like flags may be taken in a row.
func midMessage(r *Receiver, flags uint8) bool {
	unordered, ok := r.MidMessage()
	return ok && unordered == (flags&wire.FlagU != 0)
}

// Of a row only that fragment is taken which is of the message, has room, and makes no piece of it
// due.
func TestContinueTakesWhatIsJustAdded(t *testing.T) {
	x := func(n int) string { return string(make([]byte, n)) }
	for _, tt := range []struct {
		name string
		cfg  Config
		d    wire.Data // behind ten octets of stream 0, SSN 0
		want bool
	}{
		{"one more", Config{}, dataChunk(2, 0, 0, x(10)), true},
		{"another SSN", Config{}, dataChunk(2, 1, 0, x(10)), false},
		{"another stream", Config{}, onStream(1, 2, 0, 0, x(10)), false},
		{"unordered", Config{}, dataChunk(2, 0, wire.FlagU, x(10)), false},
		{"so much that 400 octets are left", Config{}, dataChunk(2, 0, 0, x(590)), true},
		{"so much that less are", Config{}, dataChunk(2, 0, 0, x(591)), false},
		{"so much, of a message that the buffer holds", Config{MaxMessage: 1000}, dataChunk(2, 0, 0, x(591)), true},
		{"so much that one octet may follow", Config{MaxMessage: 1000}, dataChunk(2, 0, 0, x(989)), true},
		{"so much that nothing may", Config{MaxMessage: 1000}, dataChunk(2, 0, 0, x(990)), false},
		{"so much, of one of two buffers, that 400 octets are left", Config{MaxMessage: 2000}, dataChunk(2, 0, 0, x(590)), true},
		{"and that less are", Config{MaxMessage: 2000}, dataChunk(2, 0, 0, x(591)), false},
		{"up to the point of partial delivery", Config{MaxMessage: 1000, PartialPoint: 30}, dataChunk(2, 0, 0, x(20)), true},
		{"beyond it", Config{MaxMessage: 1000, PartialPoint: 30}, dataChunk(2, 0, 0, x(21)), false},
	} {
		r, one := beginMessage(t, tt.cfg, 0), beginMessage(t, tt.cfg, 0)
		must.That(t, midMessage(r, 0), "%s: not the middle of a message", tt.name)
		check.Equal(t, tt.name, r.QueueMiddle(tt.d, nil), tt.want)
		if tt.want {
			mustPacket(t, one, 0, tt.d)
			r.RowDone(0, 1)
		}
		check.That(t, reflect.DeepEqual(one, r), "%s: one by one %s\nin a row %s", tt.name, one.DumpState(0),
			r.DumpState(0))
	}
	r := beginMessage(t, Config{MaxMessage: 1000}, wire.FlagU)
	check.That(t, r.QueueMiddle(dataChunk(2, 7, wire.FlagU, x(980)), nil), "an unordered message has no SSN")
	r.RowDone(0, 1)
	check.That(t, r.QueueMiddle(dataChunk(3, 7, wire.FlagU, x(9)), nil), "the window is open")
	r.RowDone(0, 1)
	r = beginMessage(t, Config{MaxMessage: 2000}, 0)
	r.Release(&Message{Size: -990}) // as if somebody held so many
	check.Equal(t, "window", r.Window(), 0)
	check.That(t, !r.QueueMiddle(dataChunk(2, 0, 0, "x"), nil), "the window is closed")
}

// longChunk is the next chunk of messages of many fragments, mostly of the same length.
func (w *receiverPair) longChunk() wire.Data {
	if len(w.rest) == 0 {
		id, n, size := w.rnd.IntN(2), 1+w.rnd.IntN(60), 1+w.rnd.IntN(40)
		if w.rnd.IntN(4) == 0 {
			n = 1
		}
		flags, ssn := w.nextSSN(id)
		for i := range n {
			f, ssn, id := flags, ssn, id
			if i == 0 {
				f |= wire.FlagB
			}
			if i == n-1 {
				f |= wire.FlagE
			}
			switch w.rnd.IntN(2000) {
			case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
				f |= wire.FlagI
			case 11:
				ssn++
			case 12:
				id = 1 - id
			case 13:
				f ^= wire.FlagU
			}
			if w.rnd.IntN(20) == 0 {
				size = 1 + w.rnd.IntN(40)
			}
			w.rest = append(w.rest, onStream(id, len(w.sent)+1+i, ssn, f,
				"0123456789012345678901234567890123456789"[:size]))
		}
	}
	d := w.rest[0]
	w.rest, w.sent = w.rest[1:], append(w.sent, d)
	return d
}

// dueChunk is the chunk that the cumulative TSN waits for.
func (w *receiverPair) dueChunk() wire.Data {
	for int(w.r[0].CumTSN()) >= len(w.sent) {
		w.longChunk()
	}
	return w.sent[w.r[0].CumTSN()]
}

// drawBufs are a buffer for each to have a chunk lie in, or none.
func (w *receiverPair) drawBufs() (b [2]*rawio.Buf) {
	switch w.rnd.IntN(8) {
	case 0:
		w.train = [2]*rawio.Buf{}
	case 1, 2:
		n := 1 + w.rnd.IntN(200)
		filled := w.rnd.IntN(n + 1)
		for i := range w.train {
			w.train[i] = rawio.NewBuf(make([]byte, n))
			w.train[i].Filled = filled
		}
	}
	return w.train
}

// queueOn gives a receiver a packet with a chunk.
func (w *receiverPair) queueOn(i int, d wire.Data, buf *rawio.Buf) (a Admission, err error) {
	r := w.r[i]
	if a = r.Admit(d); a == New {
		if err := r.Queue(d, buf); err != nil {
			return a, err
		}
	}
	return a, r.PacketDone(w.now)
}

// feedOne gives both the same packet with a chunk.
func (w *receiverPair) feedOne(d wire.Data, b [2]*rawio.Buf) (a Admission, err error) {
	w.t.Helper()
	a, err = w.queueOn(0, d, b[0])
	also, fails := w.queueOn(1, d, b[1])
	must.That(w.t, a == also && reflect.DeepEqual(err, fails), "TSN %d: one by one %d, %v, in a row %d, %v", d.TSN(),
		a, err, also, fails)
	w.event = fmt.Sprint("TSN ", d.TSN())
	return a, err
}

// queueMiddle gives both up to n fragments in a row, and returns how many were taken as one.
func (w *receiverPair) queueMiddle(n int) (k int, err error) {
	w.t.Helper()
	one, other := w.r[0], w.r[1]
	unordered, ok := other.MidMessage()
	m := one.reassembly.byLastTSN.endsAtBase
	must.That(w.t, ok == (m != nil && one.ackPolicy.lossBackoff == 0 && !w.squeeze),
		"after %s: the middle of a message behind TSN %d: %v", w.event, one.CumTSN(), ok)
	must.That(w.t, !ok || unordered == m.Unordered, "after %s: the middle of an unordered message: %v", w.event,
		unordered)
	for ; ok && k < n; k++ {
		d := w.dueChunk()
		if d.B() || d.E() || d.I() || d.U() != unordered {
			break
		}
		b := w.drawBufs()
		size, offset := m.Size+len(d.Payload()), m.Offset
		a, fails := w.queueOn(0, d, b[0])
		aside, g := min(2*one.cfg.PMDCS, one.cfg.RecvBuffer/2), &one.reassembly
		want := a == New && fails == nil && g.byLastTSN.endsAtBase == m && m.Size == size && m.Offset == offset &&
			!(g.maxMessage > g.dataLimit && g.dataLimit-size < aside) &&
			!(one.cfg.PartialPoint > 0 && size > one.cfg.PartialPoint)
		took := other.QueueMiddle(d, b[1])
		must.That(w.t, took == want, "TSN %d: taken in a row %v, want %v: one by one %d, %v", d.TSN(), took, want, a,
			fails)
		if w.event = fmt.Sprint("TSN ", d.TSN(), " of a row"); took {
			continue
		}
		if k > 0 {
			other.RowDone(w.now, k)
		}
		also, err := w.queueOn(1, d, b[1])
		must.That(w.t, a == also && reflect.DeepEqual(err, fails), "TSN %d: one by one %d, %v, behind a row %d, %v",
			d.TSN(), a, fails, also, err)
		return k, err
	}
	if k > 0 {
		other.RowDone(w.now, k)
	}
	return k, nil
}

// stepUnread does something to both, of what step does too, but to give them packets of its own.
func (w *receiverPair) stepUnread() error {
	switch w.rnd.IntN(40) {
	case 0: // lost, and come again
		d := w.dueChunk()
		if _, err := w.feedOne(w.longChunk(), w.drawBufs()); err != nil {
			return err
		}
		if w.rnd.IntN(2) == 0 {
			_, err := w.feedOne(d, w.drawBufs())
			return err
		}
	case 1:
		if n := len(w.sent); n > 0 {
			_, err := w.feedOne(w.sent[n-1-w.rnd.IntN(min(n, 8))], w.drawBufs())
			return err
		}
	case 2:
		w.setPressure(w.rnd.IntN(4) == 0)
	case 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14:
		w.readAll()
	case 15, 16, 17, 18, 19, 20:
		w.sackBoth(1400)
	case 21, 22:
		if r := w.r[0]; !r.HasGaps() && !r.hadGaps { // many packets later
			r.ackPolicy.lossBackoff = min(r.ackPolicy.lossBackoff, int32(w.rnd.IntN(2)))
			w.r[1].ackPolicy.lossBackoff = r.ackPolicy.lossBackoff
		}
	case 23, 24:
		w.setPressure(false)
	case 25, 26, 27, 28, 29, 30, 31, 32, 33, 34:
		_, err := w.feedOne(w.dueChunk(), w.drawBufs())
		return err
	default:
		for k := w.rnd.IntN(30); ; k = w.rnd.IntN(30) {
			if k > 4 && k != 22 && k != 21 {
				w.checkSteps(k)
				return nil
			}
		}
	}
	return nil
}

// Fragments that are added in a row to the message in assembly leave a receiver in the very state
// that it has when each is taken in by itself, whatever came before and comes after. They are added
// wherever nothing else comes of them.
func TestMiddleIsAsOneByOne(t *testing.T) {
	rows, fragments, singles, errors := 0, 0, 0, map[string]int{}
	for seed := range 120 {
		w := &receiverPair{t: t, rnd: rand.New(rand.NewPCG(uint64(seed), 0x9260)), now: 1000 * ms}
		for i := range w.r {
			w.r[i] = NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000,
				MaxMessage: []int{0, 0, 1000, 1400, 500}[seed%5], PartialPoint: []int{0, 0, 300}[seed%3],
				PMDCS:     []int{50, 200}[seed%2],
				InStreams: 2, SackDelay: 200 * time.Millisecond, LoneSackDelay: 20 * time.Millisecond,
				StrictRFC: seed%4 == 3})
		}
		var err error
		for i := 0; i < 250 && err == nil; i++ {
			if w.rnd.IntN(2) == 0 {
				var k int
				if k, err = w.queueMiddle(1 + w.rnd.IntN(16)); k > 0 {
					rows, fragments = rows+1, fragments+k
				} else {
					singles++
				}
			} else {
				err = w.stepUnread()
			}
			w.checkSame()
		}
		if err != nil {
			errors[err.Error()[:20]]++
		}
		must.OK(t, w.r[0].Audit(lentOctets(w.lent[0])))
		must.OK(t, w.r[1].Audit(lentOctets(w.lent[1])))
	}
	check.That(t, rows > 500 && fragments > 2*rows && singles > 500 && len(errors) > 1,
		"%d fragments in %d rows, and %d times there was none; %v", fragments, rows, singles, errors)
}

func lentOctets(list []*Message) (n int) {
	for _, m := range list {
		n += m.Size
	}
	return n
}
