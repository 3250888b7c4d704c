package tx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestSourceIsAskedBehindTheQueueAsCwndAllows(t *testing.T) {
	l := newLab(t, 1)
	src := &countedSource{n: 7, size: full}
	l.s.SetUpper(src, l)
	l.enqueueMany(1, full)
	l.expectTSNs("the queue first, then the Source, as cwnd allows", "1 | 2 | 3 | 4 | 5")
	check.That(t, src.n == 3 && src.max == full, "%d messages left, asked for %d octets", src.n, src.max)
	l.sack(3)
	check.Equal(t, "acknowledged", fmt.Sprint(l.acked, src.acked), "[1] [7 6]")
	// A message that was pulled waits in the slot when the window turns out too small.
	l.handleSack(makeSack(5, 50))
	l.expectTSNs("no room", "")
	check.That(t, src.n == 2 && !l.s.Idle(l.now), "%d left", src.n)
	l.sack(5)
	l.expectTSNs("room again", "6 | 7 | 8")
	l.sack(8)
	check.That(t, l.s.Idle(l.now), "not idle")
}

// What a Source gives is cut only if it fits no packet: it may take the room that is kept for a
// SACK, and goes alone then.
func TestSourceIsCutOnlyWhereIPWouldCut(t *testing.T) {
	// req 5043-9-3
	for _, tt := range []struct {
		size int
		want string
	}{
		{full, "1 | 2"},
		{full + 1, "1 | 2"},
		{full + 16, "1 | 2"}, // as long as the PMDCS
		{full + 17, "1 | 2 | 3 | 4"},
		{2*full + 8, "1 | 2 | 3 | 4 | 5 | 6"}, // its end does not grow by the room of a SACK
	} {
		l := newLab(t, 1)
		l.s.SetUpper(&countedSource{n: 2, size: tt.size}, l)
		l.expectTSNs(fmt.Sprintf("two messages of %d octets", tt.size), tt.want)
		for i, p := range l.b.Pkts {
			check.That(t, p.Len() <= labMTU, "%d octets: packet %d has %d", tt.size, i, p.Len())
		}
		// With a SACK in it the packet has no room: it goes by itself, and the message in the next.
		l = newLab(t, 1)
		l.s.SetUpper(&countedSource{n: 1, size: tt.size}, l)
		l.s.StartBurst(l.now)
		p := l.s.Poll(l.now)
		l.b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
		l.b.Commit(wire.AppendSack(l.b.Tail(), wire.SackFields{CumTSN: 1}))
		n := l.s.Fill(l.now, l.b, p)
		check.That(t, (n == 0) == (tt.size > full && tt.size <= full+16), "%d octets: %d chunks beside a SACK",
			tt.size, n)
	}
}

// A Source that cuts messages to fit fills every packet to the same length, whatever the length of
// what it cuts: the next one begins in what the last one has left of a packet, unless that is next
// to nothing.
func TestSourceFillsPackets(t *testing.T) {
	for _, tt := range []struct {
		name string
		size int // of what the Source cuts
		want string
	}{
		// A packet with one full chunk has 12+16+968 octets.
		{"two and a half chunks", 2420, "996 996 996 996 996"},
		{"hardly anything left", 968 - 16 - 60, "920 920 920 920 920"},
		{"just enough left", 968 - 16 - 64, "996 996 996 996 996"},
	} {
		l := newLab(t, 1)
		l.s.SetUpper(&cutSource{size: tt.size}, l)
		var got []string
		for _, p := range l.transmit() {
			got = append(got, fmt.Sprint(p.Len()))
		}
		check.Equal(t, tt.name+": octets of packets", strings.Join(got, " "), tt.want)
	}
	// so does a long message of the queue behind a short one
	for first, want := range map[int]int{968 - 16 - 64: 996, 968 - 16 - 60: 920} {
		l := newLab(t, 1)
		l.enqueueMany(1, first)
		l.enqueueMany(1, 2000)
		n := l.transmit()[0].Len()
		check.That(t, n == want, "%d octets, then a long message: a packet of %d octets, want %d", first, n, want)
	}
}
