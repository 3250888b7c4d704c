package main

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/rddp-go/rddp/rawio"
)

// rawLink is what the raw link has.
type rawLink interface {
	rawio.Link
	rawio.PortBinder
	rawio.Addresser
}

// reorderingLink keeps some of the packets back, in both directions, until those of the next batch
// have gone.
type reorderingLink struct {
	rawLink
	percent int

	mu   sync.Mutex
	sent []rawio.Packet // guarded by mu: kept back, with memory of their own
	came []rawio.Packet // of the reader: they come behind the next batch
}

func (l *reorderingLink) isKept() bool { return rand.IntN(100) < l.percent }

func (l *reorderingLink) ReadBatch(pkts []rawio.Packet) (int, error) {
	behind := l.came
	n, err := l.rawLink.ReadBatch(pkts[:max(len(pkts)-len(behind), 1)])
	if err != nil {
		return n, err
	}
	if len(behind) > 0 {
		k := copy(pkts[n:], behind)
		l.came = behind[k:]
		return n + k, nil
	}
	kept := 0
	for i := range n {
		if n-kept > 1 && l.isKept() {
			l.came = append(l.came, pkts[i])
			kept++
			continue
		}
		pkts[i-kept] = pkts[i]
	}
	return n - kept, nil
}

func (l *reorderingLink) WriteBatch(pkts []rawio.Packet) (int, error) {
	l.mu.Lock()
	behind := l.sent
	l.sent = nil
	l.mu.Unlock()
	for i := range pkts {
		if l.isKept() {
			p := pkts[i]
			p.Vec = [][]byte{slices.Concat(p.Vec...)}
			l.mu.Lock()
			l.sent = append(l.sent, p)
			l.mu.Unlock()
			continue
		}
		if _, err := l.rawLink.WriteBatch(pkts[i : i+1]); err != nil {
			return i, err
		}
	}
	for i := range behind {
		_, _ = l.rawLink.WriteBatch(behind[i : i+1]) // a packet that is refused is lost
	}
	return len(pkts), nil
}
