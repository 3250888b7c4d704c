package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rddp-go/rddp/internal/counters"
)

// sendHistogram sends a histogram, with one more label if that has a name.
func (e *emitter) sendHistogram(name, help string, h counters.Histogram, label, value string) {
	labels, values := e.labelValues(label, value)
	buckets, total := make(map[float64]uint64), uint64(0)
	for i, n := range h.Count {
		if total += n; i < counters.NumBuckets-1 {
			buckets[counters.BucketBound(i).Seconds()] = total
		}
	}
	e.ch <- prometheus.MustNewConstHistogram(prometheus.NewDesc(name, help, labels, nil), total, h.Sum.Seconds(),
		buckets, values...)
}
