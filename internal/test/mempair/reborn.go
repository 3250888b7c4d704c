package mempair

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// RestartLink is the server's link when the client's host crashes and comes back: first joined to
// the one client, then to the other, which has the same address.
type RestartLink struct {
	*mem.Link
	Lives [2]*mem.Link
	Life  atomic.Int32 // the one that it is joined to, or Dead
	In    chan rawio.Packet
	Intr  chan struct{} // of one read
}

// Dead is the life of a host that is down.
const Dead = -1

// ReadBatch reads what has come from the client that lives.
func (r *RestartLink) ReadBatch(pkts []rawio.Packet) (int, error) {
	select {
	case <-r.Intr:
		return 0, rawio.ErrInterrupted
	case p, ok := <-r.In:
		if !ok {
			return 0, net.ErrClosed
		}
		pkts[0] = p
		return 1, nil
	}
}

// PollBatch is ReadBatch that does not wait.
func (r *RestartLink) PollBatch(pkts []rawio.Packet) int {
	select {
	case p, ok := <-r.In:
		if ok {
			pkts[0] = p
			return 1
		}
	default:
	}
	return 0
}

// Interrupt ends the read under way, or the next.
func (r *RestartLink) Interrupt() {
	select {
	case r.Intr <- struct{}{}:
	default:
	}
}

// WriteBatch sends to the client that lives.
func (r *RestartLink) WriteBatch(pkts []rawio.Packet) (int, error) {
	life := r.Life.Load()
	if life == Dead {
		return len(pkts), nil
	}
	return r.Lives[life].WriteBatch(pkts)
}

// Prompt implements rawio.Prompter.
func (r *RestartLink) Prompt() rawio.Link { return r }

// Close closes both links.
func (r *RestartLink) Close() error {
	r.Lives[0].Close()
	return r.Lives[1].Close()
}

// Run reads both until they are closed.
func (r *RestartLink) Run() {
	var wg sync.WaitGroup
	for i, l := range r.Lives {
		wg.Add(1)
		go func() {
			defer wg.Done()
			pkts := make([]rawio.Packet, 16)
			for {
				n, err := l.ReadBatch(pkts)
				if err != nil {
					return
				}
				for k := range n {
					if int(r.Life.Load()) == i {
						r.In <- pkts[k]
					} else {
						pkts[k].Release()
					}
				}
			}
		}()
	}
	wg.Wait()
	close(r.In)
}
