package rx

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// placed feeds one whole chunk as a packet that is placed.
func placed(t *testing.T, r *Receiver, now rawio.Time, d wire.Data) {
	t.Helper()
	must.Equal(t, "admission", r.Admit(d), New)
	r.Placed(d)
	must.OK(t, r.PacketDone(now))
}

// begun returns a receiver of 1000 octets that has had TSN 1, and has acknowledged it.
func begun(t *testing.T, partial int) *Receiver {
	t.Helper()
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000, Partial: partial, PMDCS: 200, InStreams: 2, SackDelay: 200 * time.Millisecond})
	placed(t, r, 0, chunk(1, 0, ube, "x"))
	sack(r)
	return r
}

// A row is for DATA that asks for nothing but to be counted.
func TestNoRowWhereMoreIsToBeDone(t *testing.T) {
	first := func(r *Receiver) *Receiver {
		must.OK(t, r.PacketDone(0))
		sack(r)
		return r
	}
	for _, tt := range []struct {
		name    string
		partial int
		spoil   func(r *Receiver)
		mend    func(r *Receiver) // nil: not at once
	}{
		{"in the midst of a packet", 0, func(r *Receiver) { r.Placed(chunk(2, 0, ube, "x")) }, func(r *Receiver) { first(r) }},
		{"a TSN missing", 0, func(r *Receiver) { placed(t, r, 0, chunk(3, 0, ube, "x")) }, nil},
		{"a TSN that was missing", 0, func(r *Receiver) { placed(t, r, 0, chunk(3, 0, ube, "x")); placed(t, r, 0, chunk(2, 0, ube, "x")) }, nil},
		{"a duplicate", 0, func(r *Receiver) { mustPacket(t, r, 0, chunk(1, 0, ube, "x")) }, nil},
		{"memory short", 0, func(r *Receiver) { r.Squeeze(true) }, func(r *Receiver) { r.Squeeze(false) }},
		{"a buffer that shrinks", 0, func(r *Receiver) { r.SetBuffers(500, 500, 0) }, func(r *Receiver) { placed(t, r, 0, onStream(0, 2, 0, ube, string(make([]byte, 500)))) }},
		{"an unread message", 0, func(r *Receiver) { mustPacket(t, r, 0, chunk(2, 0, be, "x")) }, func(r *Receiver) { received(r) }},
		{"a message that waits for its SSN", 0, func(r *Receiver) { mustPacket(t, r, 0, chunk(2, 1, be, "x")) }, func(r *Receiver) { placed(t, r, 0, chunk(3, 0, be, "y")); received(r) }},
		{"a fragment", 0, func(r *Receiver) { mustPacket(t, r, 0, chunk(2, 0, wire.FlagB, "x")) }, func(r *Receiver) { mustPacket(t, r, 0, chunk(3, 0, wire.FlagE, "y")); received(r) }},
		{"a message of which all that has come is read", 2, func(r *Receiver) {
			mustPacket(t, r, 0, chunk(2, 0, wire.FlagB, "xyz"))
			must.That(t, pieces(r) != "" && r.Buffered() == 0, "no piece was delivered")
		}, func(r *Receiver) { mustPacket(t, r, 0, chunk(3, 0, wire.FlagE, "y")); received(r) }},
		{"no room in memory, without user data", 0, func(r *Receiver) {
			for i := 2; r.Window() > 0; i++ { // they wait for SSN 0
				placed(t, r, 0, chunk(i, i, be, "x"))
			}
			must.Equal(t, "user data", r.Buffered(), 0)
			tsn := int(r.CumTSN()) + 1
			must.Equal(t, "admission", r.Admit(chunk(tsn, 0, ube, "x")), Dropped)
			must.OK(t, r.PacketDone(0))
		}, nil},
		{"a peer that begins anew", 0, func(r *Receiver) { r.Restart(Config{PeerTSN: 8, RecvBuffer: 1000, InStreams: 2}) }, func(r *Receiver) { placed(t, r, 0, chunk(8, 0, ube, "x")) }},
	} {
		r := begun(t, tt.partial)
		next, ok := r.Row()
		must.That(t, ok && next == 2, "%s: before, a row from TSN %d on: %v", tt.name, next, ok)
		tt.spoil(r)
		_, ok = r.Row()
		check.That(t, !ok, "%s: a row", tt.name)
		if tt.mend != nil {
			tt.mend(r)
			next, ok = r.Row()
			check.That(t, ok && next == r.CumTSN()+1, "%s: afterwards, a row from TSN %d on behind %d: %v", tt.name, next, r.CumTSN(), ok)
		}
	}
	_, ok := newReceiver().Row()
	check.That(t, !ok, "a row before the first DATA")
}

// A loss is remembered for so many packets, and none of a row is among them.
func TestNoRowUntilALossIsForgotten(t *testing.T) {
	r := begun(t, 0)
	mustPacket(t, r, 0, chunk(1, 0, ube, "x"))
	for i := range WaryPackets - 1 {
		_, ok := r.Row()
		must.That(t, !ok, "a row %d packets behind a loss", i+1)
		placed(t, r, 0, chunk(2+i, 0, ube, "x"))
	}
	next, ok := r.Row()
	check.That(t, ok && next == WaryPackets+1, "%d packets behind a loss, a row from TSN %d on: %v", WaryPackets, next, ok)
}

// twins are two receivers that are given the same: by the one each packet of a row is taken in by itself, by the other all at once.
type twins struct {
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
}

// both does something with each, with the same outcome.
func (w *twins) both(what string, do func(r *Receiver) any) any {
	w.t.Helper()
	w.event = what
	one, other := do(w.r[0]), do(w.r[1])
	must.That(w.t, reflect.DeepEqual(one, other), "%s: one by one %v, in a row %v", what, one, other)
	return one
}

func (w *twins) same() {
	w.t.Helper()
	if !reflect.DeepEqual(w.r[0], w.r[1]) {
		w.t.Fatalf("after %s\none by one %s\nin a row   %s", w.event, w.r[0].Tell(w.now), w.r[1].Tell(w.now))
	}
}

// packet gives both a packet with chunks, of which whole messages are placed, or all queued.
func (w *twins) packet(place bool, chunks ...wire.Data) {
	w.t.Helper()
	w.event = "a packet"
	loss := false
	admitted := w.both("a packet", func(r *Receiver) any {
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
		loss = r.Gaps()
		must.OK(w.t, r.PacketDone(w.now))
		return got
	}).([]Admission)
	if w.come = true; loss || slices.Contains(admitted, Duplicate) {
		w.quiet = 0
	}
	w.quiet++
}

// next is the next chunk that the peer sends.
func (w *twins) next() wire.Data {
	if len(w.rest) == 0 {
		id, n := w.rnd.IntN(2), 1
		if w.rnd.IntN(6) == 0 {
			n = 2 + w.rnd.IntN(2)
		}
		flags, ssn := uint8(0), w.ssn[id]
		if w.rnd.IntN(2) == 0 {
			flags = wire.FlagU
		} else {
			w.ssn[id]++
		}
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
			w.rest = append(w.rest, onStream(id, len(w.sent)+1+i, ssn, f, "0123456789012345678901234567890123456789"[:1+w.rnd.IntN(40)]))
		}
	}
	d := w.rest[0]
	w.rest, w.sent = w.rest[1:], append(w.sent, d)
	return d
}

// unordered makes the next chunk a whole unordered message.
func (w *twins) unordered() wire.Data {
	d := onStream(w.rnd.IntN(2), len(w.sent)+1, 0, ube, "01234567890123456789"[:1+w.rnd.IntN(20)])
	w.sent = append(w.sent, d)
	return d
}

func (w *twins) read() {
	w.both("a read", func(r *Receiver) any {
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

func (w *twins) release() {
	if n := len(w.lent[0]); n > 0 {
		k := w.rnd.IntN(n)
		w.both("a release", func(r *Receiver) any {
			i := slices.Index(w.r[:], r)
			r.Release(w.lent[i][k])
			w.lent[i] = slices.Delete(w.lent[i], k, k+1)
			return nil
		})
	}
}

func (w *twins) readAll() {
	for before := -1; before != w.r[0].Buffered(); {
		before = w.r[0].Buffered()
		w.read()
		for len(w.lent[0]) > 0 {
			w.release()
		}
	}
}

func (w *twins) sack(room int) {
	w.both("a SACK", func(r *Receiver) any { return r.AppendSack(nil, room) })
}

// calm ends all that speaks against a row.
func (w *twins) calm() {
	w.t.Helper()
	w.short(false)
	for len(w.rest) > 0 {
		w.next()
	}
	for i := 0; int(w.r[0].CumTSN()) < len(w.sent); i++ {
		must.That(w.t, i < 1000, "TSN %d is never taken", w.r[0].CumTSN()+1)
		w.packet(true, w.sent[w.r[0].CumTSN()])
		w.readAll()
		w.sack(1400)
	}
	for w.readAll(); w.quiet < WaryPackets+w.rnd.IntN(3)-1; {
		w.packet(true, w.unordered())
		w.sack(1400)
	}
}

func (w *twins) short(on bool) {
	w.squeeze = on
	w.both("a squeeze", func(r *Receiver) any { r.Squeeze(on); return nil })
}

// row gives both n packets in a row.
func (w *twins) row(n int) {
	w.t.Helper()
	for range n {
		placed(w.t, w.r[0], w.now, w.unordered())
		w.quiet++
	}
	w.r[1].PlacedRow(w.now, n)
	w.event = fmt.Sprint("a row of ", n)
}

// event does one of what may happen.
func (w *twins) step() {
	w.t.Helper()
	rnd := w.rnd
	switch rnd.IntN(30) {
	case 0, 1, 2:
		w.packet(rnd.IntN(2) == 0, w.next())
	case 3:
		w.packet(rnd.IntN(2) == 0, w.next(), w.next())
	case 4:
		switch rnd.IntN(6) {
		case 0: // lost
			w.next()
			w.packet(rnd.IntN(2) == 0, w.next())
		case 1: // late, or again
			if n := len(w.sent); n > 0 {
				w.packet(true, w.sent[n-1-rnd.IntN(min(n, 8))])
			}
		case 2:
			w.short(true)
		}
	case 5, 6, 7, 8:
		w.read()
		w.release()
	case 9, 10:
		w.readAll()
	case 11, 12:
		w.sack(16 + rnd.IntN(30))
	case 13:
		on := rnd.IntN(2) == 0
		w.both("a SACK held", func(r *Receiver) any { r.HoldSack(on); return nil })
	case 14:
		delay, lone := time.Duration(rnd.IntN(3))*100*time.Millisecond, time.Duration(rnd.IntN(3))*10*time.Millisecond
		w.both("another delay", func(r *Receiver) any { r.SetSackDelay(delay, lone); return nil })
	case 15, 16:
		w.both("an answer", func(r *Receiver) any { r.Answered(w.now); return nil })
	case 17:
		octets, most := 800+rnd.IntN(800), rnd.IntN(1600)
		w.both("another buffer", func(r *Receiver) any { r.SetBuffers(octets, most, 30); return nil })
	case 18:
		octets := 800 + rnd.IntN(1600)
		if octets >= w.r[0].cfg.RecvBuffer {
			w.both("a buffer that grows", func(r *Receiver) any { r.Grow(octets); return nil })
		}
	case 19:
		w.both("a trim", func(r *Receiver) any { r.Trim(); return nil })
	case 20:
		w.both("a SACK again", func(r *Receiver) any { r.DemandSack(); return nil })
	case 21:
		if w.short(false); rnd.IntN(3) == 0 {
			w.calm()
		}
	case 22: // each packet is answered
		for len(w.rest) == 0 && !w.squeeze && rnd.IntN(20) > 0 {
			w.packet(true, w.unordered())
			w.sack(1400)
		}
	case 23, 24:
		w.both("whether a SACK is due", func(r *Receiver) any { return []any{r.SackDue(w.now), r.SackNow(), r.SackPending(), r.Deadline()} })
	case 25, 26, 27:
		w.now = w.now.Add([]time.Duration{1, time.Millisecond, 15 * time.Millisecond, 300 * time.Millisecond}[rnd.IntN(4)])
	case 28:
		w.both("a SHUTDOWN", func(r *Receiver) any { r.AckSent(); return nil })
	default:
		w.both("its size", func(r *Receiver) any { r.SetPMDCS(100); return r.Held() })
	}
}

// Packets in a row leave a receiver in the very state that it has when each is taken in by itself, whatever came before and comes after. There
// is a row where no TSN is missing, nothing is held, nothing was lost of late and memory is not short, and nowhere else.
func TestRowIsAsOneByOne(t *testing.T) {
	rows, several, none := 0, 0, 0
	for seed := range 40 {
		w := &twins{t: t, rnd: rand.New(rand.NewPCG(uint64(seed), 0x2077)), now: 1000 * ms, quiet: WaryPackets}
		for i := range w.r {
			w.r[i] = NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000, Partial: 30, PMDCS: 200, InStreams: 2, SackDelay: 200 * time.Millisecond, LoneDelay: 20 * time.Millisecond, Letter: seed%4 == 3})
		}
		for range 500 {
			next, ok := w.r[1].Row()
			r := w.r[0]
			want := w.come && w.quiet >= WaryPackets && !w.squeeze && !r.Gaps() && r.Buffered() == 0 && r.Window() > 0 && r.reasm.held.edge == nil && r.reasm.limit <= r.cfg.RecvBuffer
			must.That(t, ok == want && next == r.CumTSN()+1, "after %s: a row from TSN %d on behind %d: %v, want %v; %d packets behind a loss", w.event, next, r.CumTSN(), ok, want, w.quiet)
			switch n := 1 + w.rnd.IntN(16); {
			case ok && int(r.CumTSN()) == len(w.sent) && len(w.rest) == 0 && w.rnd.IntN(3) == 0:
				if w.row(n); n > 1 {
					several++
				}
				rows++
			case !ok:
				none++
				fallthrough
			default:
				w.step()
			}
			w.same()
		}
		must.OK(t, w.r[0].Audit(lent(w.lent[0])))
		must.OK(t, w.r[1].Audit(lent(w.lent[1])))
	}
	check.That(t, rows > 1000 && several > 1000 && none > 1000, "%d rows, %d of several packets, and %d times there was none", rows, several, none)
}

func lent(list []*Message) (n int) {
	for _, m := range list {
		n += m.Size
	}
	return n
}
