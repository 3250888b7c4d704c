package rx

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// newLimited returns a receiver with a window of 1000 octets, that begins to deliver a message in
// pieces when it leaves less than 400 of them.
func newLimited(maxMessage int) *Receiver {
	return NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1000, MaxMessage: maxMessage, PMDCS: 200, InStreams: 16,
		SackDelay: 200 * time.Millisecond})
}

// drainPieces drains the receiver: each message by its stream, or its mark, and its octets, a piece
// with its offset and what follows.
func drainPieces(r *Receiver) string {
	out := ""
	for m, ok := r.Receive(); ok; m, ok = r.Receive() {
		out += fmt.Sprintf("%d:%d+%d", m.Stream, m.Offset, m.Size)
		if m.More {
			out += ".."
		}
		if m.Cut {
			out += "cut"
		}
		out += " "
		r.Release(m)
	}
	return strings.TrimSpace(out)
}

func TestPartialDelivery(t *testing.T) {
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	x := strings.Repeat("x", 300)
	for _, tt := range []struct {
		name  string
		story func(r *Receiver) error
		want  string
	}{
		// req 9260-6.9-7
		{"what fills the buffer is delivered in pieces", func(r *Receiver) error {
			_, err := feedPacket(r, 0, dataChunk(1, 0, b, x), dataChunk(2, 0, m, x), dataChunk(3, 0, m, x))
			return err
		}, "0:0+900.."},
		{"what leaves room is not", func(r *Receiver) error {
			_, err := feedPacket(r, 0, dataChunk(1, 0, b, x), dataChunk(2, 0, m, x))
			return err
		}, ""},
		{"nor is what is complete", func(r *Receiver) error {
			_, err := feedPacket(r, 0, dataChunk(1, 0, b, x), dataChunk(2, 0, m, x), dataChunk(3, 0, e, x))
			return err
		}, "0:0+900"},
		{"unordered messages too", func(r *Receiver) error {
			_, err := feedPacket(r, 0, dataChunk(1, 0, b|wire.FlagU, x), dataChunk(2, 0, wire.FlagU, x),
				dataChunk(3, 0, wire.FlagU, x))
			return err
		}, "0:0+900.."},
		{"only what is acknowledged for good", func(r *Receiver) error {
			_, err := feedPacket(r, 0, dataChunk(2, 0, b, x), dataChunk(3, 0, m, x), dataChunk(4, 0, m, x))
			return err
		}, ""},
		{"nor is a message before its turn that does not fill the buffer", func(r *Receiver) error {
			_, err := feedPacket(r, 0, dataChunk(1, 1, b, x), dataChunk(2, 1, m, x), dataChunk(3, 1, m, x))
			return err
		}, ""},
		{"what becomes due in its stream comes first", func(r *Receiver) error {
			feedPacket(r, 0, dataChunk(2, 1, be, "b"), dataChunk(1, 0, be, "a"))
			_, err := feedPacket(r, 0, dataChunk(3, 2, b, x), dataChunk(4, 2, m, x), dataChunk(5, 2, m, x))
			return err
		}, "0:0+1 0:0+1 0:0+900.."},
		{"all that is there when a gap closes", func(r *Receiver) error {
			feedPacket(r, 0, dataChunk(2, 0, m, x), dataChunk(3, 0, m, x))
			_, err := feedPacket(r, 0, dataChunk(1, 0, b, x))
			return err
		}, "0:0+900.."},
		{"messages delivered before it come first", func(r *Receiver) error {
			feedPacket(r, 0, onStream(1, 1, 0, be, "a"))
			_, err := feedPacket(r, 0, dataChunk(2, 0, b, x), dataChunk(3, 0, m, x), dataChunk(4, 0, m, x))
			return err
		}, "1:0+1 0:0+900.."},
		{"unread ones before it do not matter: they are there to be read", func(r *Receiver) error {
			feedPacket(r, 0, onStream(1, 1, 0, be, x+x))
			_, err := feedPacket(r, 0, dataChunk(2, 0, b, x), dataChunk(3, 0, m, "x"))
			return err
		}, "1:0+600"},
	} {
		r := newLimited(0)
		err := tt.story(r)
		check.That(t, err == nil, "%s: %v", tt.name, err)
		check.Equal(t, tt.name, drainPieces(r), tt.want)
		r.Close()
		check.That(t, r.Buffered() == 0 && r.reassembly.store.memorySize() == 0,
			"%s: Close leaves %d octets, %d of memory", tt.name, r.Buffered(), r.reassembly.store.memorySize())
	}
}

// RFC 6458 section 8.1.21.
func TestPartialDeliveryPoint(t *testing.T) {
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	x := strings.Repeat("x", 100)
	for _, tt := range []struct {
		name   string
		chunks []wire.Data
		want   string
	}{
		{"what has reached the point waits for its end", []wire.Data{dataChunk(1, 0, b, x), dataChunk(2, 0, m, x)}, ""},
		{"what is beyond does not, and its pieces follow", []wire.Data{dataChunk(1, 0, b, x), dataChunk(2, 0, m, x), dataChunk(3, 0, m, "y"), dataChunk(4, 0, m, x), dataChunk(5, 0, e, x)},
			"0:0+201.. 0:201+200"},
		{"not before its turn", []wire.Data{dataChunk(1, 1, b, x), dataChunk(2, 1, m, x), dataChunk(3, 1, m, x)}, ""},
		{"not while those before it in its stream are yet to be read", []wire.Data{dataChunk(2, 1, be, "b"), dataChunk(1, 0, be, "a"), dataChunk(3, 2, b, x), dataChunk(4, 2, m, x), dataChunk(5, 2, m, "y")},
			"0:0+1 0:0+1"},
		{"not beyond what is acknowledged", []wire.Data{dataChunk(2, 0, b, x), dataChunk(3, 0, m, x), dataChunk(4, 0, m, x)}, ""},
	} {
		r := newLimited(1000) // within the buffer
		r.SetBuffers(1000, 0, 200)
		for _, d := range tt.chunks {
			mustPacket(t, r, 0, d)
		}
		check.Equal(t, tt.name, drainPieces(r), tt.want)
	}
}

// What the peer was told that it may send is taken, whatever becomes of the buffer.
func TestAnAdvertisedWindowDoesNotShrink(t *testing.T) {
	r, tsn := newLimited(0), 1
	take := func(octets int) {
		mustPacket(t, r, 0, dataChunk(tsn, tsn-1, be, strings.Repeat("x", octets)))
		tsn++
	}
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"a smaller buffer", func() { r.SetBuffers(300, 0, 0) }, 1000},
		{"is used up", func() { take(600) }, 400},
		{"and what is read makes no room", func() { drainPieces(r) }, 400},
		{"what is placed does not either", func() { r.Admit(dataChunk(tsn, 1, be, "x")); r.Placed(dataChunk(tsn, 1, be, "x")); tsn++ }, 399},
		{"until it is as small as it should be", func() { take(299); drainPieces(r) }, 300},
		{"a larger buffer is there at once", func() { sackOf(r); r.SetBuffers(5000, 0, 0) }, 5000},
		{"also behind what waits for a TSN", func() { tsn++; take(1); r.SetBuffers(6000, 0, 0) }, 5999},
	} {
		step.do()
		check.Equal(t, step.name, r.Window(), step.want)
		must.OK(t, r.Audit(0))
	}
	check.That(t, r.SackDue(0), "the peer does not hear of a larger window") // req 9260-6.2-20
}

func TestPiecesFollowOneAnother(t *testing.T) {
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	x := strings.Repeat("x", 300)
	r := newLimited(0)
	mustPacket(t, r, 0, dataChunk(1, 0, b, x), dataChunk(2, 0, m, x), dataChunk(3, 0, m, x[:50]))
	must.Equal(t, "pieces", drainPieces(r), "0:0+650..")
	// TSN 4 is late; messages of other streams, and the next ones of this stream, are complete.
	mustPacket(t, r, 0, dataChunk(5, 0, e, x), onStream(1, 6, 0, be, "a"), onStream(2, 7, 0, be|wire.FlagU, "b"),
		dataChunk(8, 1, be, "c"))
	check.Equal(t, "what came between two pieces", drainPieces(r), "")
	mustPacket(t, r, 0, dataChunk(4, 0, m, x))
	check.Equal(t, "pieces", drainPieces(r), "0:650+600 1:0+1 2:0+1 0:0+1")
	check.That(t, r.Window() == 1000 && r.reassembly.store.usedMemory == 0, "window %d, memory %d", r.Window(),
		r.reassembly.store.usedMemory)
	// Whoever leaves off in the middle gets the memory back.
	mustPacket(t, r, 0, dataChunk(9, 2, b, x), dataChunk(10, 2, m, x), dataChunk(11, 2, m, x[:50]))
	mustPacket(t, r, 0, onStream(1, 13, 1, be, "d"))
	piece, _ := r.Receive()
	r.Close()
	r.Release(piece)
	check.That(t, r.Buffered() == 0 && r.reassembly.store.usedMemory == 0, "Close leaves %d octets, %d of memory",
		r.Buffered(), r.reassembly.store.usedMemory)
}

// A message of any length goes through a small buffer, and the window never closes for good.
func TestAMessageManyTimesTheBuffer(t *testing.T) {
	// req 9260-6.9-7
	r := newLimited(0)
	x, total, read := strings.Repeat("x", 180), 0, 0
	for i := range 1000 {
		flags := []uint8{wire.FlagB, 0, wire.FlagE}[min(i, 1)+i/999]
		must.That(t, r.Window() >= len(x), "window %d after %d octets", r.Window(), total)
		mustPacket(t, r, 0, dataChunk(1+i, 0, flags, x))
		total += len(x)
		for m, ok := r.Receive(); ok; m, ok = r.Receive() {
			must.That(t, m.Offset == read && m.More != (i == 999), "a piece at %d after %d octets, more: %v",
				m.Offset, read, m.More)
			read += m.Size
			r.Release(m)
		}
	}
	check.Equal(t, "octets", read, total)
}

func TestLimitsOfPartialDelivery(t *testing.T) {
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	x := strings.Repeat("x", 500)
	for _, tt := range []struct {
		name       string
		maxMessage int
		chunks     []wire.Data
		want       error
	}{
		{"as long as MaxMessage", 1500, []wire.Data{dataChunk(1, 0, b, x), dataChunk(2, 0, m, x), dataChunk(3, 0, e, x)}, nil},
		{"one chunk as long as MaxMessage", 500, []wire.Data{dataChunk(1, 0, be, x)}, nil},
		{"longer than MaxMessage, over several pieces", 1400, []wire.Data{dataChunk(1, 0, b, x), dataChunk(2, 0, m, x), dataChunk(3, 0, e, x)}, ErrMessageTooBig},
		{"as long as MaxMessage and no end", 1500, []wire.Data{dataChunk(1, 0, b, x), dataChunk(2, 0, m, x), dataChunk(3, 0, m, x)}, ErrMessageTooBig},
		{"with MaxMessage within the buffer nothing comes in pieces", 1000, []wire.Data{dataChunk(1, 0, b, x), dataChunk(2, 0, m, x[:400]), dataChunk(3, 0, e, x[:100])}, nil},
		{"before its turn in the stream", 0, []wire.Data{dataChunk(1, 1, b, x), dataChunk(2, 1, m, x)}, &ViolationError{TSN: 1}},
	} {
		r := newLimited(tt.maxMessage)
		var err error
		got := ""
		for _, d := range tt.chunks {
			if _, err = feedPacket(r, 0, d); err != nil {
				break
			}
			got += drainPieces(r)
		}
		var v *ViolationError
		want, violation := tt.want.(*ViolationError)
		check.That(t, violation == errors.As(err, &v) && (violation && v.TSN == want.TSN || err == tt.want), "%s: %v",
			tt.name, err)
		check.That(t, tt.maxMessage != 1000 || got == "0:0+1000", "%s: %s", tt.name, got)
		r.Close()
		check.That(t, r.Buffered() == 0 && r.reassembly.store.memorySize() == 0,
			"%s: Close leaves %d octets, %d of memory", tt.name, r.Buffered(), r.reassembly.store.memorySize())
	}
}

func TestRestartForgetsAllButWhatIsHeld(t *testing.T) {
	anew := Config{PeerTSN: 5000, RecvBuffer: 1000, PMDCS: 200, InStreams: 2, SackDelay: 200 * time.Millisecond,
		LoneSackDelay: 20 * time.Millisecond}
	x := strings.Repeat("x", 300)
	t.Run("what the upper layer holds counts until it is released", func(t *testing.T) {
		r := newLimited(0)
		mustPacket(t, r, 0, dataChunk(1, 0, be, x), dataChunk(2, 1, be, x), dataChunk(4, 3, be, x))
		held, _ := r.Receive()
		r.Restart(anew)
		check.That(t, r.Buffered() == 300 && r.Window() == 700, "%d octets held, window %d", r.Buffered(), r.Window())
		// req 9260-5.2.4-5: the new association begins at its own TSN and SSNs.
		check.That(t, r.CumTSN() == 4999 && !r.HasGaps() && !r.SackPending(), "cumulative TSN %d, gaps %v",
			r.CumTSN(), r.HasGaps())
		mustPacket(t, r, 0, dataChunk(5000, 0, be, "new"))
		k := sackOf(r)
		check.That(t, k.CumTSN() == 5000 && k.ARwnd() == 697, "SACK of %d with a_rwnd %d", k.CumTSN(), k.ARwnd())
		b := make([]byte, 300)
		held.CopyTo(b, 0)
		check.Equal(t, "what is held was overwritten", string(b), x)
		r.Release(held)
		mustPacket(t, r, 0, dataChunk(5001, 1, be, "er"))
		check.That(t, r.Deadline() == 20*ms && r.ackPolicy.sackDelay == anew.SackDelay,
			"a SACK is delayed until %d, others by %v", r.Deadline(), r.ackPolicy.sackDelay)
		got := drainText(r)
		check.That(t, got == "new|er|" && r.Window() == 1000 && r.reassembly.store.usedMemory == 0,
			"%q, window %d, memory %d", got, r.Window(), r.reassembly.store.usedMemory)
		var v *ViolationError
		_, err := feedPacket(r, 0, onStream(2, 5002, 0, be, "x"))
		check.That(t, errors.As(err, &v), "a stream that the restart has not asked for: %v", err)
	})
	t.Run("what comes out of order after it", func(t *testing.T) {
		r := newLimited(0)
		r.Restart(anew)
		mustPacket(t, r, 0, dataChunk(5001, 0, wire.FlagE, "b"))
		mustPacket(t, r, 0, dataChunk(5000, 0, wire.FlagB, "a"))
		check.Equal(t, "received", drainText(r), "ab|")
	})
	t.Run("again and again", func(t *testing.T) {
		r := newLimited(0)
		for i := range 100 {
			feedPacket(r, 0, dataChunk(int(r.CumTSN())+1, 0, be, x))
			r.Receive()
			r.Restart(anew)
			must.That(t, r.Buffered() <= 1300, "%d octets held after %d restarts", r.Buffered(), i+1)
		}
	})
	t.Run("in the middle of a message that is read in pieces", func(t *testing.T) {
		begin := func(r *Receiver) {
			feedPacket(r, 0, dataChunk(1, 0, wire.FlagB, x), dataChunk(2, 0, 0, x), dataChunk(3, 0, 0, x))
		}
		for _, tt := range []struct {
			name  string
			story func(r *Receiver)
			want  string
		}{
			{"one piece was read", func(r *Receiver) { begin(r); drainPieces(r); r.Restart(anew) }, "0:900+0cut 0:0+1"},
			{"two restarts", func(r *Receiver) { begin(r); drainPieces(r); r.Restart(anew); r.Restart(anew) }, "0:900+0cut 0:0+1"},
			{"a restart after the end is known", func(r *Receiver) { begin(r); drainPieces(r); r.Restart(anew); drainPieces(r); r.Restart(anew) }, "0:0+1"},
			{"nothing was read", func(r *Receiver) { begin(r); r.Restart(anew) }, "0:0+1"},
			{"its last piece was not read", func(r *Receiver) {
				begin(r)
				drainPieces(r)
				feedPacket(r, 0, dataChunk(4, 0, wire.FlagE, x))
				r.Restart(anew)
			}, "0:900+0cut 0:0+1"},
			{"all of it was read", func(r *Receiver) {
				begin(r)
				feedPacket(r, 0, dataChunk(4, 0, wire.FlagE, x))
				drainPieces(r)
				r.Restart(anew)
			}, "0:0+1"},
		} {
			r := newLimited(0)
			tt.story(r)
			mustPacket(t, r, 0, dataChunk(5000, 0, be, "x"))
			check.Equal(t, tt.name, drainPieces(r), tt.want)
		}
	})
}

func TestMessageThatIsCutOff(t *testing.T) {
	x := strings.Repeat("x", 300)
	for _, tt := range []struct {
		name  string
		story func(r *Receiver)
		want  string
	}{
		{"its pieces were read, and what follows waits", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(1, 0, wire.FlagB, x), dataChunk(2, 0, 0, x), dataChunk(3, 0, 0, x))
			drainPieces(r)
			feedPacket(r, 0, dataChunk(5, 1, wire.FlagB|wire.FlagE|wire.FlagU, x))
		}, "0:900+0cut 0:0+300"},
		{"nothing was read", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(1, 0, wire.FlagB, x), dataChunk(2, 0, 0, x), dataChunk(3, 0, 0, x))
		}, "0:0+900.. 0:900+0cut"},
		{"its end was not read", func(r *Receiver) {
			feedPacket(r, 0, dataChunk(1, 0, wire.FlagB, x), dataChunk(2, 0, 0, x), dataChunk(3, 0, 0, x))
			drainPieces(r)
			feedPacket(r, 0, dataChunk(4, 0, wire.FlagE, x))
		}, "0:900+300"},
		{"none is delivered in pieces", func(r *Receiver) { feedPacket(r, 0, dataChunk(1, 0, wire.FlagB, x)) }, ""},
	} {
		r := newLimited(0)
		tt.story(r)
		r.CutOff()
		r.CutOff() // once
		check.Equal(t, tt.name, drainPieces(r), tt.want)
		r.Close()
		check.That(t, r.Buffered() == 0 && r.reassembly.store.usedMemory == 0,
			"%s: %d octets and %d of memory are left", tt.name, r.Buffered(), r.reassembly.store.usedMemory)
	}
}
