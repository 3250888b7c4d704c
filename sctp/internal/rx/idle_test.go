package rx

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What goes on from a Receiver that rests has all that counts: TSNs and SSNs, what the peer was
// told of the window, and when SACKs are due.
func TestResume(t *testing.T) {
	cfg := Config{PeerTSN: 1, RecvBuffer: 1 << 16, PMDCS: 1400, InStreams: 9, SackDelay: 200 * time.Millisecond}
	r := NewReceiver(cfg)
	check.That(t, r.CanIdle(), "a Receiver that has received nothing does not rest")
	take := func(r *Receiver, tsn, stream, ssn int) {
		t.Helper()
		d := onStream(stream, tsn, ssn, be, "data")
		must.That(t, r.Admit(d) == New, "TSN %d is not admitted", tsn)
		must.OK(t, r.Queue(d, nil))
		must.OK(t, r.PacketDone(0))
	}
	for i := range 3 {
		take(r, 1+i, 8, i)
	}
	check.That(t, !r.CanIdle(), "it rests with messages to be read")
	var last *Message
	for m, ok := r.Receive(); ok; m, ok = r.Receive() {
		if last != nil {
			r.Release(last)
		}
		last = m
	}
	r.AppendSack(nil, 100)
	check.That(t, !r.CanIdle(), "it rests with a message in use")
	r.Release(last)
	r.AppendSack(nil, 100)
	check.That(t, r.CanIdle(), "it does not rest when all is read and acknowledged")
	r.SetSackDelay(7*time.Millisecond, 0)
	r.ackPolicy.lossBackoff, r.ackPolicy.answeredInRow, r.ackPolicy.delayExpired, r.evictedChunks,
		r.advertisedWindow = 5, 6, true, 4, 60_000
	r.ackPolicy.delayLimit = 9 * time.Millisecond
	rest := r.IdleState()
	next := NewReceiver(rest.Config(cfg))
	next.RestoreFrom(&rest)
	for _, s := range []*Receiver{r, next} {
		ssn, waits, known := s.Stream(8)
		check.That(t, ssn == 3 && waits == 0 && known, "stream 8 goes on with SSN %d, %d wait; known: %v", ssn, waits,
			known)
		check.Equal(t, "acknowledged", s.CumTSN(), 3)
		check.Equal(t, "evicted", s.Evicted(), 4)
		check.Equal(t, "window advertised", s.advertisedWindow, 60_000)
		check.Equal(t, "window", s.Window(), 1<<16)
		check.Equal(t, "SACK.Delay", s.ackPolicy.sackDelay, 7*time.Millisecond)
		check.That(t, s.ackPolicy.lossBackoff == 5 && s.ackPolicy.delayLimit == 9*time.Millisecond &&
			s.ackPolicy.answeredInRow == 6 && s.ackPolicy.delayExpired && s.ackPolicy.firstAcked &&
			s.reassembly.byLastTSN.baseTSN == 3, "of SACKs it knows %+v", s.ackPolicy)
	}
	ssn, known := rest.Stream(8)
	_, other := rest.Stream(800)
	check.That(t, ssn == 3 && known && !other && rest.CumTSN() == 3 && rest.Evicted() == 4 &&
		rest.Held() == next.reassembly.streams.table.Held() && rest.Held() > 0,
		"what is left does not say what the Receiver would: %+v", rest)
	check.Equal(t, "window at rest", rest.Window(1<<16), 1<<16)
	check.Equal(t, "window at rest, of which less is wanted", rest.Window(1000), 60_000)
	take(next, 4, 8, 3)
	m, ok := next.Receive()
	check.That(t, ok && m.SSN == 3, "the next message is not delivered")
	must.OK(t, next.Audit(m.Size))
}

// Whatever is still to come of it keeps a Receiver from resting.
func TestWhatKeepsAReceiverFromResting(t *testing.T) {
	for what, does := range map[string]func(r *Receiver){
		"a SACK that is due":           func(r *Receiver) { r.ackPolicy.Demand() },
		"a SACK that is delayed":       func(r *Receiver) { r.ackPolicy.sackDueAt = rawio.Time(time.Second) },
		"a packet in processing":       func(r *Receiver) { r.ackPolicy.NoteData(false) },
		"want of memory":               func(r *Receiver) { r.SetMemoryPressure(true); r.ackPolicy.NoteSackSent() },
		"a window that has grown":      func(r *Receiver) { r.GrowBuffer(1 << 20) },
		"a TSN that is missing":        func(r *Receiver) { r.tracker.Add(9) },
		"a TSN that was missing":       func(r *Receiver) { r.hadGaps = true },
		"a duplicate to report":        func(r *Receiver) { r.tracker.NoteDuplicate(0) },
		"a message placed out of turn": func(r *Receiver) { r.reassembly.MarkDelivered(3, 9, 1) },
		"a fragment": func(r *Receiver) {
			must.OK(t, r.reassembly.Add(dataChunk(1, 0, wire.FlagB, "data"), nil))
		},
		"a message of which part is up": func(r *Receiver) { r.reassembly.partial.popped = &Message{More: true} },
	} {
		r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 16, PMDCS: 1400, InStreams: 9})
		does(r)
		check.That(t, !r.CanIdle(), "a Receiver rests in spite of %s", what)
	}
}
