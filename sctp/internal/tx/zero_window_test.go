package tx

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// With nothing in flight and a window smaller than the next chunk, the chunk is cut to the window
// after 200 ms where that is worth it. Else it waits an RTO, and goes as a zero window probe.
func TestChunkIsCutToTheWindow(t *testing.T) {
	const half = full / 2
	mtu := func(n int) func(*senderLab) { return func(l *senderLab) { l.pathAt(0).SetMTU(n) } }
	nothing := func(*senderLab) {}
	for _, row := range []struct {
		name            string
		largest, window uint32
		with            func(*senderLab)
		want            string // when chunks go, in ms, and how long they are
	}{
		// req 9260-6.1-1, 9260-6.1-5
		{"half a chunk", 1 << 20, half, nothing, "200:484"},
		{"less", 1 << 20, half - 1, nothing, "1000:968"},
		{"a whole one", 1 << 20, full, nothing, "0:968"},
		{"all but one octet of it", 1 << 20, full - 1, nothing, "200:967"},
		{"closed", 1 << 20, 0, nothing, "1000:968"},
		{"half of the largest window", 6000, 3000, mtu(9012), "200:3000"},
		{"less than that", 6000, 2999, mtu(9012), "1000:6000"},
		{"half of the smallest window that RFC 9260 allows", 1, 750, mtu(9012), "200:750"},
		{"never more than an octet", 1, 1, mtu(9012), "1000:6000"},
		{"no message is to be cut", 1 << 20, half, func(l *senderLab) { l.s.cfg.NoFragments = true }, "1000:968"},
		{"the letter", 1 << 20, half, func(l *senderLab) { l.s.cfg.StrictRFC = true }, "1000:968"},
		{"a message of a Source", 1 << 20, half, func(l *senderLab) {
			l.s.queue.waiting, l.s.queue.current, l.s.queue.waitingOctets, l.s.queue.bufferedOctets = messageQueue{},
				currentMessage{}, 0, 0
			u := &countedSource{n: 1, size: full}
			l.s.SetUpper(u, u)
		}, "1000:968"},
		{"an RTO shorter than that", 1 << 20, half, func(l *senderLab) { l.pathAt(0).rttEst.rto = 100 * time.Millisecond }, "100:484"},
		{"the rest of a message", 1 << 20, half, func(l *senderLab) { l.s.queue.current.offset = 100 }, "200:484"},
	} {
		l := newLab(t, 1)
		l.s.cfg.StrictRFC = false
		l.s.window.largest = 0
		l.s.SetPeer(row.largest, 16)
		l.s.setRwnd(row.window)
		l.enqueueMany(1, 6000)
		row.with(l)
		got := []string{}
		for len(got) == 0 && l.now < 2*second {
			for _, p := range l.transmit() {
				got = append(got, fmt.Sprint(l.now/ms, ":", len(chunks(t, p)[0].Payload())))
			}
			l.now = max(l.now, min(l.s.NextTimeout(), 2*second))
		}
		check.Equal(t, row.name, strings.Join(got, " "), row.want)
	}
}

// What the window does while a chunk waits to be cut.
func TestChunkWaitsToBeCut(t *testing.T) {
	const half = full / 2
	begin := func() *senderLab {
		l := newLab(t, 1)
		l.s.cfg.StrictRFC = false
		l.s.setRwnd(half)
		l.enqueueMany(2, full)
		l.expectTSNs("nothing fits", "")
		return l
	}
	window := func(l *senderLab, n uint32) { l.handleSack(makeSack(l.s.CumTSN(), n)) }
	at := func(l *senderLab, when rawio.Time) *senderLab { l.now = when; return l }

	l := begin()
	at(l, 199*ms).expectTSNs("199 ms", "")
	at(l, 200*ms).expectTSNs("the beginning of the first message", "1")
	r := l.s.outstanding.recordOf(1)
	check.That(t, r.wireFlags&wire.FlagE == 0 && r.wireFlags&wire.FlagB != 0 && r.wireFlags&wire.FlagI != 0 &&
		!l.s.window.probing, "flags %#x, probing %t", r.wireFlags, l.s.window.probing)
	check.That(t, l.s.NextTimeout() > l.now, "a timer of %v at %v, although the chunk has gone", l.s.NextTimeout(),
		l.now)
	at(l, 210*ms).expectTSNs("nothing more while that is in flight", "")
	l.handleSack(makeSack(1, half))
	l.expectTSNs("the rest of it fits", "2") // 484 octets
	l.handleSack(makeSack(2, half))
	l.expectTSNs("the second message does not", "")
	at(l, 409*ms).expectTSNs("199 ms later", "")
	at(l, 410*ms).expectTSNs("its beginning", "3")

	l = begin()
	at(l, 100*ms)
	window(l, full)
	l.expectTSNs("the window opens: the whole message", "1")
	check.That(t, l.s.outstanding.recordOf(1).wireFlags&wire.FlagE != 0, "it is cut although the window has opened")

	l = begin()
	p := l.pathAt(0)
	p.ObserveRTT(400 * time.Millisecond)
	p.rttEst.minRTT = minRTTFilter{current: 400 * time.Millisecond, samples: 1}
	p.pacing.nextSendAt = 300 * ms
	at(l, 200*ms).expectTSNs("a packet that is paced", "")
	check.Equal(t, "timer of a packet that is paced", l.s.NextTimeout(), p.pacing.nextSendAt)
	at(l, p.pacing.nextSendAt).expectTSNs("its time has come", "1")

	l = begin()
	at(l, 150*ms)
	window(l, half-1)
	l.expectTSNs("the window becomes silly", "")
	at(l, 200*ms).expectTSNs("200 ms", "")
	at(l, 1149*ms).expectTSNs("less than an RTO since", "")
	at(l, 1150*ms).expectTSNs("a zero window probe", "1")
	check.That(t, l.s.window.probing && l.s.outstanding.recordOf(1).size == full, "no probe: %+v",
		l.s.outstanding.recordOf(1))
}
