package main

import (
	"time"

	"github.com/rddp-go/rddp/internal/timeline"
	"github.com/rddp-go/rddp/rdma"
)

// sampler samples the associations of a run from time to time, beside the run.
type sampler struct {
	recorder    timeline.Recorder
	stopRequest chan struct{}
	stopped     chan struct{}
}

// startSampler starts to sample, until stopAndReturn.
func startSampler(e *engine) *sampler {
	s := &sampler{stopRequest: make(chan struct{}), stopped: make(chan struct{})}
	qps := e.distinctAssociations()
	go s.sampleUntilStop(qps, time.Now())
	return s
}

// distinctAssociations returns a QP of each association. The server tells associations apart by the
// client's ports.
func (e *engine) distinctAssociations() (list []*rdma.QP) {
	if e.client {
		return e.associationQPs()
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

func (s *sampler) sampleUntilStop(qps []*rdma.QP, start time.Time) {
	defer close(s.stopped)
	for {
		s.takeSample(qps, time.Since(start))
		select {
		case <-s.stopRequest:
			s.takeSample(qps, time.Since(start))
			return
		case <-time.After(s.recorder.Due() * time.Duration(len(qps))):
		}
	}
}

func (s *sampler) takeSample(qps []*rdma.QP, at time.Duration) {
	p := timeline.Point{At: at.Seconds()}
	for _, qp := range qps {
		stats, _ := qp.Stats()
		path, _ := pathInUse(qp)
		p.Add(&stats, &path)
	}
	s.recorder.Add(p)
}

// stopAndReturn stops and returns the samples.
func (s *sampler) stopAndReturn() []timeline.Point {
	close(s.stopRequest)
	<-s.stopped
	return s.recorder.Points()
}
