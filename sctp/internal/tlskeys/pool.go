package tlskeys

import (
	"errors"
	"runtime"
	"sync/atomic"
)

// ErrBusy says that there are as many sessions as a Pool allows.
var ErrBusy = errors.New("too many TLS handshakes are under way")

// Pool bounds the sessions of a host, and how many of them compute at a time. It leaves a processor
// to data.
type Pool struct {
	workers  chan struct{}
	sessions atomic.Int64
	most     int64
}

// NewPool returns a Pool of at most that many sessions.
func NewPool(sessions int) *Pool {
	return &Pool{workers: make(chan struct{}, max(runtime.GOMAXPROCS(0)-1, 1)), most: int64(sessions)}
}

// open takes the place of a session.
func (p *Pool) open() bool {
	if p.sessions.Add(1) > p.most {
		p.sessions.Add(-1)
		return false
	}
	return true
}

func (p *Pool) close() { p.sessions.Add(-1) }

// acquire waits until the session may compute, release is while it waits for the peer.
func (p *Pool) acquire() { p.workers <- struct{}{} }
func (p *Pool) release() { <-p.workers }
