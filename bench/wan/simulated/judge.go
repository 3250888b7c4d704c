package simulated

import "time"

// What is asked of a stack, as ratios to the better of its references.
const (
	medianLimit = 1.05
	medianSlack = 300 * time.Microsecond // that the median may be longer in any case
	tailLimit   = 1.2
	enoughHits  = 20 // transfers of each stack that met a loss, for a p99 to be compared
)

// Comparison is a quantile of a stack beside that of the better reference.
type Comparison struct {
	Q       float64
	Against string // the reference
	Ratio   float64
	In      Interval
	Met     bool
}

// Named is a sample of a stack.
type Named struct {
	Name string
	*Sample
}

// Judge compares the median, and the p99, or the p90 where too few transfers met a loss. It is met
// if the lower end of the interval is below the limit. ok is false where there is nothing to
// compare.
func Judge(own *Sample, refs []Named, seed uint64) (median, tail Comparison, ok bool) {
	q := 0.99
	if own.Hit < enoughHits {
		q = 0.9
	}
	for _, r := range refs {
		if r.N() == 0 || own.N() == 0 {
			return median, tail, false
		}
		if r.Hit < enoughHits {
			q = 0.9
		}
	}
	if len(refs) == 0 {
		return median, tail, false
	}
	return compareStacks(own, refs, 0.5, medianSlack, medianLimit, seed),
		compareStacks(own, refs, q, 0, tailLimit, seed), true
}

func compareStacks(own *Sample, refs []Named, q float64, slack time.Duration, limit float64,
	seed uint64) (c Comparison) {
	best := refs[0]
	for _, r := range refs[1:] {
		if r.Quantile(q) < best.Quantile(q) {
			best = r
		}
	}
	c.Q, c.Against = q, best.Name
	c.Ratio, c.In = Ratio(own, best.Sample, q, slack, seed)
	c.Met = c.In.Low <= limit
	return c
}
