package assoc

import (
	"testing"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

func TestReportsInASecond(t *testing.T) {
	var l errorReportLimit
	const first = rawio.Time(900 * time.Millisecond)
	for n := range 2 * maxPeerErrors {
		check.That(t, l.allow(first) == (n < maxPeerErrors), "report %d", n)
	}
	for _, at := range []time.Duration{100 * time.Millisecond, time.Second - 1, time.Second} {
		check.That(t, l.allow(first.Add(at)) == (at == time.Second), "another %v later", at)
	}
}

// Each part of what an association keeps for its peer counts for what it holds, and a large one is
// not kept for reuse.
func TestPartsOfWhatIsHeld(t *testing.T) {
	own := new(cookieEchoed)
	a := &Assoc{lifecycle: lifecycle{stateData: own}}
	a.ensureDataState().sender = *tx.NewSender(tx.Config{})
	check.Equal(t, "octets of nobody", a.Buffered(), 0)
	for i, part := range []struct {
		grow func()
		by   int
	}{
		{func() { a.paths = make([]*path, 2) }, 2 * (pathSize + pathExtraSize)},
		{func() { a.control.buf = make([]byte, 3, 100) }, 100},
		{func() { a.control.entries = make([]controlEntry, 1, 3) }, 3 * int(unsafe.Sizeof(controlEntry{}))},
		{func() { a.outbox.buf = make([]byte, 3, 200) }, 200},
		{func() { a.outbox.packets = make([]outPacket, 0, 7) }, 7 * int(unsafe.Sizeof(outPacket{}))},
		{func() { a.events.ring = make([]Event, 5) }, 5 * int(unsafe.Sizeof(Event{}))},
		{func() { a.events.peerErrors = 2 }, 2 * maxCauses * maxReport},
		{func() { a.rareCounters().Malformed++ }, int(unsafe.Sizeof(Counters{}))},
		{func() { own.cookie = make([]byte, 3, 50) }, 50},
		{func() { own.errorChunk = make([]byte, 3, 70) }, 70},
		{func() { a.recv = rx.NewReceiver(rx.Config{RecvBuffer: 1000}) }, rx.NewReceiver(rx.Config{RecvBuffer: 1000}).Held() - int(unsafe.Sizeof(rx.Receiver{}))},
		{func() { a.stateData, a.paths = nil, nil }, -50 - 70 - 2*(pathSize+pathExtraSize)},
	} {
		before := a.Held()
		part.grow()
		check.That(t, a.Held()-before == part.by, "part %d holds %d octets, want %d", i, a.Held()-before, part.by)
	}
	a.events = eventQueue{}
	for n, size := range []int{2, 2, 4, 4, 8} {
		a.events.push(Event{})
		check.That(t, len(a.events.ring) == size && a.HasEvents(), "%d events take the room of %d", n+1,
			len(a.events.ring))
	}
	for n, kept := range []bool{false, true} {
		a.events.ring, a.events.n = make([]Event, 8), int32(n)
		a.trimIdle()
		check.That(t, (a.events.ring != nil) == kept, "an idle association keeps room for events with %d of them: %v",
			n, !kept)
	}
	a.events.n = 0
	for more, kept := range []bool{true, false} {
		a.control.buf, a.outbox.buf, a.events.ring = make([]byte, 1, maxSpareOctets+more),
			make([]byte, 1, maxSpareOctets+more), make([]Event, maxSpareEvents+more)
		check.Equal(t, "there is something to give back", a.HasEvents(), !kept)
		a.control.clear()
		a.outbox.packets = make([]outPacket, 1)
		a.outbox.PollTransmit(NewTxBatch(1))
		a.PollEvent()
		check.That(t, (a.control.buf != nil) == kept && (a.outbox.buf != nil) == kept &&
			(a.events.ring != nil) == kept && len(a.control.buf)+len(a.outbox.buf) == 0,
			"%d more than is spared are kept: %v", more, !kept)
	}
	a.ReportSenderDry(false)
	a.events = eventQueue{}
	a.events.push(Event{Kind: EventPathUp})
	for i, want := range []bool{true, false} { // what it is told of then is rare
		_, ok := a.PollEvent()
		check.That(t, ok == want && (a.events.ring != nil) == want && a.HasEvents() == want,
			"look %d at the events: one %v, room %v", i, ok, a.events.ring != nil)
	}
}
