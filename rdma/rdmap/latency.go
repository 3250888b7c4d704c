package rdmap

import (
	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/rawio"
)

// Histogram counts durations. Count[i] is those of up to 2^i microseconds that the one before does
// not count; the last is all that are longer.
type Histogram = counters.Histogram

// Latency counts how long requests took, from PostSend until they were found complete. It counts
// those that asked for a completion and succeeded.
type Latency struct {
	Send   Histogram // Immediate Data too
	Write  Histogram // Immediate Data behind one too
	Read   Histogram
	Atomic Histogram
}

// Add adds what another has counted.
func (l *Latency) Add(other *Latency) {
	l.Send.Add(&other.Send)
	l.Write.Add(&other.Write)
	l.Read.Add(&other.Read)
	l.Atomic.Add(&other.Atomic)
}

func (l *Latency) histogramFor(op WROpcode) *Histogram {
	switch op.completionOpcode() {
	case WCWrite:
		return &l.Write
	case WCRead:
		return &l.Read
	case WCAtomic:
		return &l.Atomic
	}
	return &l.Send
}

// Measure has the requests of q counted in l, which others may share under the same association
// lock. The owner of the lock keeps now.
func (q *QP) Measure(now *rawio.Time, l *Latency) { q.sq.now, q.sq.latency = now, l }
