package main

import (
	"time"

	"github.com/rddp-go/rddp/internal/timeline"
	"github.com/rddp-go/rddp/rdma"
)

// sampler looks at the associations of a run from time to time, beside it.
type sampler struct {
	rec  timeline.Recorder
	end  chan struct{}
	done chan struct{}
}

// watchOver begins to look, until stop.
func watchOver(e *engine) *sampler {
	s := &sampler{end: make(chan struct{}), done: make(chan struct{})}
	qps := e.distinct()
	go s.run(qps, time.Now())
	return s
}

// distinct returns a QP of each association. The server tells them by the client's ports.
func (e *engine) distinct() (list []*rdma.QP) {
	if e.client {
		return e.associations()
	}
	seen := make(map[any]bool)
	for _, l := range e.lanes {
		if at := l.qp.RemoteAddr(); !seen[at] {
			seen[at] = true
			list = append(list, l.qp)
		}
	}
	return list
}

func (s *sampler) run(qps []*rdma.QP, start time.Time) {
	defer close(s.done)
	for {
		s.look(qps, time.Since(start))
		select {
		case <-s.end:
			s.look(qps, time.Since(start))
			return
		case <-time.After(s.rec.Due() * time.Duration(len(qps))):
		}
	}
}

func (s *sampler) look(qps []*rdma.QP, at time.Duration) {
	p := timeline.Point{At: at.Seconds()}
	for _, qp := range qps {
		stats, _ := qp.Stats()
		path, _ := current(qp)
		p.Add(&stats, &path)
	}
	s.rec.Add(p)
}

// stop returns what was seen.
func (s *sampler) stop() []timeline.Point {
	close(s.end)
	<-s.done
	return s.rec.Points()
}
