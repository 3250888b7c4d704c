//go:build linux

package main

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio/netconn"
	"github.com/rddp-go/rddp/rdma"
)

// lane is one goroutine of a client that has one session after the other with one server.
type lane struct {
	*child
	dev   *rdma.Device
	to    service
	index uint32 // of the server in the books
	rng   *rand.Rand
	own   bool   // RDMA: an association for each session, and a negotiated setup
	port  uint16 // SCTP: the local port, so that a client that was killed restarts its association; 0 for any

	ids   func() uint64
	gap   time.Duration // between two operations, on average
	burst int           // operations left before the next pause
}

func (c *child) startClient() error {
	var n uint64
	ids := func() uint64 { // under c.mu
		n++
		return uint64(c.Number)<<32 | n
	}
	var lanes []*lane
	for i, s := range c.Servers {
		dev, err := c.openDevice(s)
		if err != nil {
			return err
		}
		add := func(own bool, port uint16, session func(*lane)) {
			l := &lane{child: c, dev: dev, to: s, index: uint32(i), own: own, port: port, ids: ids,
				rng: rand.New(rand.NewPCG(c.Seed, uint64(c.Number)<<8|uint64(len(lanes))))}
			lanes = append(lanes, l)
			go func() {
				for {
					c.awaitWork()
					session(l)
				}
			}()
		}
		add(false, 0, (*lane).rdmaSession)
		add(false, 0, (*lane).rdmaSession)
		add(true, 0, (*lane).rdmaSession)
		add(false, 0, (*lane).sctpSession)
		add(false, s.SCTPPort+c.OwnPorts, (*lane).sctpSession)
	}
	for _, l := range lanes {
		l.gap = time.Duration(float64(len(lanes)) / c.Rate * float64(time.Second))
	}
	c.mu.Lock()
	c.lanes = len(lanes)
	c.mu.Unlock()
	return nil
}

// peerAddr is where the lane's server has an SCTP port.
func (l *lane) peerAddr(port uint16) netip.AddrPort {
	if l.Link == "conn" {
		return netip.AddrPortFrom(netconn.PeerAddr, port)
	}
	return netip.AddrPortFrom(l.to.Addr, port)
}

// beginEntry opens an entry for a new session.
func (l *lane) beginEntry(kind uint32, window int) (*entry, error) {
	l.mu.Lock()
	id := l.ids()
	l.mu.Unlock()
	e, err := l.book.beginEntry(id, kind, window)
	if err != nil {
		time.Sleep(100 * time.Millisecond)
		return nil, err
	}
	e.server = l.index
	return e, nil
}

// endRefused ends a session that was not set up. The next one has to wait, as the server may be
// gone for a moment.
func (l *lane) endRefused(e *entry) {
	l.book.endEntry(e, stateRefused)
	time.Sleep(100 * time.Millisecond)
}

// keepRate keeps the rate: operations come in bursts, between which there are pauses. Before a rest
// it hurries.
func (l *lane) keepRate() {
	if l.burst > 0 || l.wantRest() {
		l.burst--
		return
	}
	l.burst = l.rng.IntN(16)
	time.Sleep(time.Duration(float64(l.gap) * float64(l.burst+1) * l.rng.ExpFloat64()))
}

// drawSize draws the octets of an operation: most are small, some are not.
func (l *lane) drawSize() int {
	switch l.rng.IntN(16) {
	case 0:
		return l.rng.IntN(64 << 10)
	case 1, 2, 3:
		return l.rng.IntN(8 << 10)
	case 4:
		return 0
	}
	return l.rng.IntN(1500)
}
