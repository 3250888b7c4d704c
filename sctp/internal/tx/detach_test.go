package tx

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestDetachedMemoryIsNotSentFromAgain(t *testing.T) {
	l := newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(2 * counted)
	mem := bytes.Repeat([]byte{'m'}, 3*full)
	src := mem[:full]
	other := bytes.Repeat([]byte{'o'}, full)
	for i, m := range []*Message{
		{Stream: 1, Body: [2][]byte{other[:100], src[100:]}}, // in flight
		{Stream: 2, Body: [2][]byte{mem[full : 2*full]}},     // in flight, another stream
		{Stream: 1, Body: [2][]byte{mem[2*full:]}},           // queued
	} {
		m.Token = uint64(i)
		must.OK(t, l.s.Enqueue(m))
	}
	l.expectTSNs("two in flight", "1 | 2")
	l.s.Detach(1, mem[full-1:])
	r := l.s.outstanding.recordOf(1)
	check.That(t, &r.body[0][0] == &other[0] && &r.body[1][0] != &src[100],
		"of the first only the piece within the memory was to be copied")
	check.Equal(t, "another stream's message was copied", &l.s.outstanding.recordOf(2).body[0][0], &mem[full])
	clear(mem[:full])
	clear(mem[2*full:])
	l.runNextTimeout()
	check.That(t, bytes.IndexByte(chunks(t, l.transmit()[0])[0].Payload(), 0) < 0,
		"the retransmission shows the user's changes")
	l.sack(2)
	check.That(t, bytes.IndexByte(chunks(t, l.transmit()[0])[0].Payload(), 0) < 0,
		"the queued message shows the user's changes")
	l.s.Detach(1, nil)
}

// A stream that ends is looked at, and not what others have sent, and copied in parts, each
// piece once. A table that speaks of a TSN of long ago misleads nobody.
func TestDetachingTakesItsOwnStreamAndItsTime(t *testing.T) {
	l := newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(1 << 40)
	l.s.cfg.SendBuffer = 1 << 30
	l.s.SetPeer(1<<30, 16)
	mem := make([]byte, full)
	const own = 1000
	for i := range 20 * own {
		m := Message{Stream: 3, Body: [2][]byte{mem}}
		if i%20 == 7 {
			m.Stream = 5
		}
		must.OK(t, l.s.Enqueue(&m))
	}
	for l.s.NextTSN() <= 20*own {
		l.transmit()
	}
	l.sack(100) // five of its chunks
	parts, begun := 1, l.s.Steps()
	for ; l.s.Detach(5, nil); parts++ {
		check.That(t, l.s.detached.octets >= maxDetachOctets && l.s.detached.octets <= maxDetachOctets+full,
			"%d octets copied at once", l.s.detached.octets)
		l.s.detached.octets = 0
	}
	for t0, want := range map[wire.TSN]bool{107: false, 108: true, 109: false, 128: true, 20*own - 12: true} {
		r := l.s.outstanding.recordOf(t0)
		check.That(t, (&r.body[0][0] != &mem[0]) == want, "TSN %d of stream %d: copied %v", t0, r.stream, !want)
	}
	steps := int(l.s.Steps() - begun)
	check.That(t, parts == (own-5)*full/maxDetachOctets+1 && steps <= parts*own, "%d parts, %d steps", parts, steps)
	l.s.detached.octets = 0
	check.That(t, !l.s.Detach(5, nil) && l.s.detached.octets <= 0, "copied again: %d octets", l.s.detached.octets)
	*l.s.streams.lastTSN.Use(9) = 20*own - 12 // of the other stream
	l.s.Detach(9, nil)
	check.That(t, l.s.detached.octets <= 0 && !l.s.Detach(1000, nil), "something of another stream was copied")
}

// Memory beside a message is no reason to copy it, nor is no memory at all; what is copied counts
// until it is acknowledged.
func TestOnlyWhatSharesAnOctetIsCopied(t *testing.T) {
	mem := make([]byte, 300)
	for _, row := range []struct {
		from, to int
		copied   int
	}{{0, 100, 0}, {0, 101, 99}, {199, 300, 1}, {200, 300, 0}, {150, 151, 99}, {150, 150, 0}, {100, 200, 100},
		{0, 300, 100}} {
		l := newLab(t, 1)
		l.enqueueMany(2, 10) // for so many there are records then
		l.transmit()
		l.sack(2)
		must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{mem[100:199], mem[199:200]}}))
		l.transmit()
		before := l.s.Held()
		l.s.Detach(0, mem[row.from:row.to])
		check.That(t, l.s.Held()-before == row.copied, "%d to %d: %d octets are copied", row.from, row.to,
			l.s.Held()-before)
		l.enqueueMany(1, 10)
		l.transmit()
		l.s.Detach(0, mem[row.from:row.from])
		l.sack(4)
		check.That(t, l.s.Held() == before, "%d to %d: %d octets count when all is acknowledged", row.from, row.to,
			l.s.Held()-before)
	}
}
