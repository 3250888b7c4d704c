package main

import (
	"time"
	"unsafe"
)

// bandwidth is the result of a bandwidth run.
type bandwidth struct {
	iters     uint64  // messages of all QPs
	peak, avg float64 // MiB/s
	rate      float64 // million messages a second
}

const mebi = 1 << 20

// ownBandwidth sums up what this end transmitted.
func (e *engine) ownBandwidth() bandwidth {
	b := e.bandwidthOf(e.completed, e.endedAt.Sub(e.startedAt))
	b.peak = e.peak.highestRate() * float64(e.size) / mebi
	return b
}

// totalBandwidth sums up what went in both directions, as a server sees it.
func (e *engine) totalBandwidth(took time.Duration) bandwidth {
	n := e.completed
	for _, l := range e.lanes {
		if l != nil {
			n += l.received
		}
	}
	return e.bandwidthOf(n, took)
}

// bandwidthOf returns the bandwidth of n messages in some time.
func (p *params) bandwidthOf(n uint64, took time.Duration) bandwidth {
	b := bandwidth{iters: n}
	if s := took.Seconds(); s > 0 {
		b.rate = float64(n) / s / 1e6
		b.avg = float64(n) * float64(p.size) / s / mebi
	}
	return b
}

// peak finds the highest bandwidth, as perftest does. That is between the posting of any message
// and the completion of any later one. It needs the times of all messages. So a run with a duration
// has none, nor one with more messages than perftest would look at.
type peak struct {
	postTimes []time.Duration // since the run began, of each message
	batches   []completionBatch
	beganAt   time.Time
}

// completionBatch is a number of completions that were seen together.
type completionBatch struct {
	completed  int // messages until now
	sinceStart time.Duration
}

const maxPeakMessages = 20000 // messages

// peakMessageOctets is how many octets a message takes in a peak.
const peakMessageOctets = int64(unsafe.Sizeof(time.Duration(0)) + unsafe.Sizeof(completionBatch{}))

// hasPeak reports whether a run has a peak.
func (p *params) hasPeak() bool {
	return !p.noPeak && p.iters > 0 && p.iters*uint64(p.qps) <= maxPeakMessages
}

func (k *peak) startRun(p *params, now time.Time) {
	if !p.hasPeak() {
		return
	}
	n := int(p.iters) * p.qps
	*k = peak{postTimes: make([]time.Duration, 0, n), batches: make([]completionBatch, 0, n), beganAt: now}
}

func (k *peak) recordPosts(n int) {
	if k.postTimes == nil {
		return
	}
	at := time.Since(k.beganAt)
	for range n {
		k.postTimes = append(k.postTimes, at)
	}
}

func (k *peak) recordCompletions(completed uint64, now time.Time) {
	if k.postTimes != nil {
		k.batches = append(k.batches, completionBatch{int(completed), now.Sub(k.beganAt)})
	}
}

// highestRate returns the peak in messages a second, 0 if there is none.
func (k *peak) highestRate() (best float64) {
	first := 0 // the first batch that ends after message i
	for i, at := range k.postTimes {
		for first < len(k.batches) && k.batches[first].completed <= i {
			first++
		}
		for _, end := range k.batches[first:] {
			if d := end.sinceStart - at; d > 0 {
				best = max(best, float64(end.completed-i)/d.Seconds())
			}
		}
	}
	return best
}
