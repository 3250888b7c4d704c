package tx

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// shrinkPaths has paths carry no more than 600 octets, whose links cut packets of so many octets.
func (l *senderLab) shrinkPaths(cutFrom ...int) {
	for i, n := range cutFrom {
		if l.pathAt(i).CutFrom = int32(n); n != 0 {
			l.pathAt(i).SetMTU(600)
		}
	}
}

// Chunks that have become too long leave in one packet an RTO, which takes as many as cwnd lets go,
// and nothing that fits waits for them.
func TestOnePacketAnRTOIsCut(t *testing.T) {
	l := newLab(t, 1)
	l.enqueueMany(4, full)
	l.enqueueMany(2, 100)
	l.transmit()
	l.shrinkPaths(1012)
	l.runNextTimeout()
	l.expectTSNs("when T3-rtx has expired", "1")
	first := l.now
	l.sack(1)
	l.expectTSNs("before an RTO is over: what fits", "5 6")
	l.sack(1, gap{5, 6})
	l.expectTSNs("and nothing more", "")
	at := l.s.NextTimeout()
	must.Equal(t, "the next may go", at, first.Add(l.pathAt(0).RTO()))
	l.now = at - 1
	l.expectTSNs("just before it", "")
	l.now = at
	l.expectTSNs("at it, as many as cwnd lets go", "2 3")
	l.sack(3, gap{5, 6})
	l.expectTSNs("before an RTO is over again", "")
	l.now = at.Add(l.pathAt(0).RTO())
	l.expectTSNs("the last", "4")
	l.sack(6)
	check.Equal(t, "outstanding", l.s.Outstanding(), 0)
}

// What is too long for a path goes over another that it fits, or whose link can cut it, before it
// is cut.
func TestWhatIsTooLongTakesAnotherPathFirst(t *testing.T) {
	for _, row := range []struct {
		name    string
		cutFrom []int // 0: the path carries all
		state   []PathState
		want    string
	}{
		{"the other carries it", []int{1012, 0}, nil, "1>1"},
		{"the other carries it, and this one cannot cut", []int{-1, 0}, nil, "1>1"},
		{"the third carries it", []int{1012, 1012, 0}, nil, "1>2"},
		{"neither does: the same again", []int{1012, 1012}, nil, "1"},
		{"the other can cut it", []int{-1, 1012}, nil, "1>1"},
		{"none can", []int{-1, -1}, nil, "1"},
		{"the other is down", []int{1012, 0}, []PathState{Active, Inactive}, "1"},
		{"the other is unconfirmed", []int{1012, 0}, []PathState{Active, Unconfirmed}, "1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, len(row.cutFrom))
			for i, st := range row.state {
				l.pathAt(i).State = st
			}
			l.enqueueMany(4, full)
			l.transmit()
			l.shrinkPaths(row.cutFrom...)
			l.sack(0, gap{2, 2})
			l.sack(0, gap{2, 3})
			// the third miss indication: Fast Retransmit, to the same path if there is no reason
			// against it
			l.sack(0, gap{2, 4})
			l.expectTSNs("what is missing", row.want)
		})
	}
}

// Fragments that arrive say nothing about longer packets: a black hole is still one. Nor do those
// that are lost.
func TestFragmentsAreNoEvidence(t *testing.T) {
	for _, row := range []struct {
		name    string
		cutFrom int
		story   func(l *senderLab)
		want    int
	}{
		{"they arrive", 1012, func(l *senderLab) { l.sack(1) }, 1},
		{"they are lost", 1012, func(l *senderLab) { l.runNextTimeout() }, 1},
		{"the link cuts nothing, and a router may", -1, func(l *senderLab) { l.sack(1) }, 1},
		{"of a link that cuts to the path's MTU: they have that length", 0, func(l *senderLab) { l.sack(1) }, 0},
	} {
		l := newLab(t, 1)
		l.pathAt(0).BasePMTU = 500
		l.enqueueMany(1, full)
		l.transmit()
		l.runNextTimeout()
		l.pathAt(0).SetMTU(600)
		l.pathAt(0).CutFrom = int32(row.cutFrom)
		l.now += second
		l.expectTSNs(row.name, "1")
		row.story(l)
		check.Equal(t, row.name+": expiries that may be a black hole", int(l.pathAt(0).blackHoleTimeouts), row.want)
	}
}

// Neither a probe for a lost tail, over the same path or another, is cut before an RTO is over:
// T3-rtx comes as it would.
func TestProbesDoNotHaveChunksCutMoreOften(t *testing.T) {
	for _, paths := range []int{1, 2} {
		l := newLab(t, paths)
		l.s.cfg.StrictRFC = false
		for i := range paths {
			l.pathAt(i).ObserveRTT(20 * time.Millisecond)
			l.pathAt(i).HeartbeatsOnSuspicion = true
		}
		l.enqueueMany(1, full)
		l.transmit()
		l.shrinkPaths([]int{1012, 1012}[:paths]...)
		l.runNextTimeout() // the probe
		cut := 0
		var last [2]float64
		for l.now < 10*second {
			for _, p := range l.transmit() {
				i := int(p.Remote.Addr().As4()[3] - 1)
				if p.Fragment > 0 {
					at := time.Duration(l.now).Seconds()
					check.That(t, last[i] == 0 || at-last[i] >= 0.999,
						"%d paths: a second packet is cut %.3f s after another", paths, at-last[i])
					last[i] = at
					cut++
				}
			}
			l.runNextTimeout()
		}
		check.That(t, cut > 2, "%d paths: %d packets were cut", paths, cut)
	}
}

// Stuck is what no path carries as it is.
func TestStuck(t *testing.T) {
	for _, row := range []struct {
		name        string
		cutFrom     []int
		unconfirmed int // this path is
		packet, mtu int
	}{
		{"it fits", []int{0}, -1, 0, 0},
		{"too long", []int{1012}, -1, 12 + counted, 600},
		{"too long, not cut", []int{-1}, -1, 12 + counted, 600},
		{"another path carries it", []int{-1, 0}, -1, 0, 0},
		{"another path that is not confirmed", []int{-1, 0}, 1, 12 + counted, 600},
	} {
		l := newLab(t, len(row.cutFrom))
		packet, mtu, _ := l.s.OversizedChunk(l.now)
		check.That(t, packet == 0 && mtu == 0, "%s, before anything was sent: %d of %d", row.name, packet, mtu)
		l.enqueueMany(1, full)
		l.transmit()
		if row.unconfirmed >= 0 {
			l.pathAt(row.unconfirmed).State = Unconfirmed
		}
		l.shrinkPaths(row.cutFrom...)
		l.now += second
		packet, mtu, ago := l.s.OversizedChunk(l.now)
		check.That(t, packet == row.packet && mtu == row.mtu && (packet == 0 || ago == time.Second), "%s: %d of %d",
			row.name, packet, mtu)
	}
}
