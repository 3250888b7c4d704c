package main

import (
	"time"
	"unsafe"
)

// bandwidth is what a bandwidth run yields.
type bandwidth struct {
	iters     uint64  // messages of all QPs
	peak, avg float64 // MiB/s
	rate      float64 // million messages a second
}

const mega = 1 << 20

// bandwidth sums up what this end transmitted.
func (e *engine) bandwidth() bandwidth {
	b := e.rates(e.completed, e.end.Sub(e.start))
	b.peak = e.peak.rate() * float64(e.size) / mega
	return b
}

// moved sums up what went in both directions, as a server sees it.
func (e *engine) moved(took time.Duration) bandwidth {
	n := e.completed
	for _, l := range e.lanes {
		if l != nil {
			n += l.got
		}
	}
	return e.rates(n, took)
}

// rates is what n messages in some time are.
func (p *params) rates(n uint64, took time.Duration) bandwidth {
	b := bandwidth{iters: n}
	if s := took.Seconds(); s > 0 {
		b.rate = float64(n) / s / 1e6
		b.avg = float64(n) * float64(p.size) / s / mega
	}
	return b
}

// peak finds the highest bandwidth between the posting of any message and the completion of any later
// one, as perftest does. It needs the times of all of them: so a run with a duration, or with more
// messages than perftest would look at, has none.
type peak struct {
	posted []time.Duration // since the run began, of each message
	ends   []batch
	epoch  time.Time
}

// batch is a number of completions seen together.
type batch struct {
	completed int // messages until now
	at        time.Duration
}

const maxPeak = 20000 // messages

// peakPlace is how many octets it takes to remember a message.
const peakPlace = int64(unsafe.Sizeof(time.Duration(0)) + unsafe.Sizeof(batch{}))

// measurable reports whether a run has a peak.
func (p *params) measurable() bool {
	return !p.noPeak && p.iters > 0 && p.iters*uint64(p.qps) <= maxPeak
}

func (k *peak) begin(p *params, now time.Time) {
	if !p.measurable() {
		return
	}
	n := int(p.iters) * p.qps
	*k = peak{posted: make([]time.Duration, 0, n), ends: make([]batch, 0, n), epoch: now}
}

func (k *peak) post(n int) {
	if k.posted == nil {
		return
	}
	at := time.Since(k.epoch)
	for range n {
		k.posted = append(k.posted, at)
	}
}

func (k *peak) complete(completed uint64, now time.Time) {
	if k.posted != nil {
		k.ends = append(k.ends, batch{int(completed), now.Sub(k.epoch)})
	}
}

// rate returns the peak in messages a second, 0 if there is none.
func (k *peak) rate() (best float64) {
	first := 0 // the first batch that ends after message i
	for i, at := range k.posted {
		for first < len(k.ends) && k.ends[first].completed <= i {
			first++
		}
		for _, end := range k.ends[first:] {
			if d := end.at - at; d > 0 {
				best = max(best, float64(end.completed-i)/d.Seconds())
			}
		}
	}
	return best
}
