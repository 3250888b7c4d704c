package tx

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What a sender has only at times counts while it has it, each piece once.
func TestHeldCountsWhatIsThereAtTimes(t *testing.T) {
	const n = 100
	for name, row := range map[string]struct {
		grow func(s *Sender)
		want int
	}{
		"nothing":                        {func(*Sender) {}, 0},
		"a SACK that is worked on":       {func(s *Sender) { s.sack.chunk = make(wire.Sack, 0, n) }, n},
		"chunks to be sent again":        {func(s *Sender) { s.outstanding.retransmitLog.entries = make([]transmission, 0, n) }, n * int(unsafe.Sizeof(transmission{}))},
		"losses of late":                 {func(s *Sender) { s.recovery.recentLosses = new([maxRecentLosses]recentLoss) }, int(unsafe.Sizeof([maxRecentLosses]recentLoss{}))},
		"octets that were copied":        {func(s *Sender) { s.detached = detachedOctets{upTo: s.outstanding.firstUnacked + 1, octets: n} }, n},
		"octets of what is acknowledged": {func(s *Sender) { s.detached = detachedOctets{upTo: s.outstanding.firstUnacked, octets: n} }, 0},
		"all of these": {func(s *Sender) {
			s.sack.chunk, s.recovery.recentLosses = make(wire.Sack, 0, n), new([maxRecentLosses]recentLoss)
			s.detached = detachedOctets{upTo: s.outstanding.firstUnacked + 1, octets: n}
		}, 2*n + int(unsafe.Sizeof([maxRecentLosses]recentLoss{}))},
	} {
		l := newLab(t, 1)
		before := l.s.Held()
		row.grow(l.s)
		check.Equal(t, name, l.s.Held()-before, row.want)
	}
	o, before := new(outStreams), 0
	for what, grow := range []func(){func() {}, func() { *o.nextSSN.Use(7) = 1 }, func() { *o.lastTSN.Use(900) = 1 }} {
		grow()
		sum := o.nextSSN.Held() + o.lastTSN.Held()
		check.That(t, o.held() == sum && (what == 0 || sum > before), "step %d: %d octets, the tables have %d", what,
			o.held(), sum)
		before = sum
	}
}
