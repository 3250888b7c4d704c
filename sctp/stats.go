package sctp

import (
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// TransportStats counts what passed between a Transport and its link, and what became of its
// associations. What happened within them is in Transport.Totals.
type TransportStats struct {
	RxPackets uint64 // packets read from the link
	RxBatches uint64 // calls of ReadBatch that returned packets
	RxDropped uint64 // malformed, bad checksum, stray ICMP report, or backlog full; a sum
	TxPackets uint64 // packets the link took
	TxBatches uint64 // calls of WriteBatch
	TxFailed  uint64 // packets the link refused; SCTP treats them as lost

	// packets dropped because too many others, 12288 or 24 MiB, waited for the owner of their
	// association
	BacklogDropped uint64
	// times that an association had its window closed because it held more than its share of
	// Config.MaxMemory
	Squeezed      uint64
	MemoryAborted uint64 // associations aborted because memory was used up and they held more than their share
	MemoryRefused uint64 // associations refused, of peers and of the program, because their address had its share
	// associations aborted because Config.Backlog others of that address, or twice that of all,
	// waited for Listener.Accept
	AcceptRefused uint64
	EventsLost    uint64 // notifications that found Config.Events others waiting for Conn.NextEvent

	// Endpoint counts the packets that belong to no association, by what became of them.
	Endpoint endpoint.Stats

	// Associations that were established, and why associations have ended.
	Established uint64 // associations that came to be, set up by either side
	EndShutdown uint64 // gracefully
	EndAborted  uint64 // by this side, its program or its stack
	EndInternal uint64 // because the stack has contradicted itself: assoc.InternalError
	EndByPeer   uint64 // by an ABORT of the peer
	EndTimeout  uint64 // the peer did not answer, be it a setup, data, or a shutdown
	EndRefused  uint64 // the peer's host has no SCTP, or there is no way to it, or the peer is not what Config requires

	// With a packet buffer too, which belongs to no association. That one is not used again.
	Contradictions uint64 // what the stack has found wrong with itself, in the whole process
}

type transportCounters struct {
	rxPackets, rxBatches, rxDropped  atomic.Uint64
	txPackets, txBatches, txDiscards atomic.Uint64

	squeezed, memoryAborted, memoryRefused                 atomic.Uint64
	backlogDropped, acceptRefused, eventsLost, established atomic.Uint64
}

// Stats returns the transport's counters.
func (t *Transport) Stats() TransportStats {
	t.setup.mu.Lock()
	defer t.setup.mu.Unlock()
	t.mu.RLock()
	defer t.mu.RUnlock()
	c, s := &t.stats, t.ended.stats
	s.RxPackets, s.RxBatches, s.BacklogDropped = c.rxPackets.Load(), c.rxBatches.Load(), c.backlogDropped.Load()
	s.RxDropped = c.rxDropped.Load() + s.BacklogDropped
	s.TxPackets, s.TxBatches, s.TxFailed = c.txPackets.Load(), c.txBatches.Load(), c.txDiscards.Load()
	s.AcceptRefused, s.EventsLost, s.Established = c.acceptRefused.Load(), c.eventsLost.Load(), c.established.Load()
	s.Squeezed, s.MemoryAborted, s.MemoryRefused = c.squeezed.Load(), c.memoryAborted.Load(), c.memoryRefused.Load()
	s.Endpoint, s.Contradictions = t.ep.Stats(), invariant.Total()
	return s
}

// Trips returns the round trip times measured on all associations, those that have ended included.
// It looks at every association, each for a moment.
func (t *Transport) Trips() assoc.Histogram {
	t.mu.RLock()
	sum, live := t.ended.rtts, t.liveConnsLocked()
	t.mu.RUnlock()
	for _, c := range live {
		c.peekAssoc(func(a *assoc.Assoc) {
			trips := a.Stats().Trips
			sum.Add(&trips)
		})
	}
	return sum
}

// liveConnsLocked returns the associations. Called with mu held.
func (t *Transport) liveConnsLocked() []*Conn { return slices.Collect(maps.Keys(t.conns)) }

// Totals returns the sums of the counters of all associations, those that have ended included. It
// looks at every association, each for a moment.
func (t *Transport) Totals() assoc.Counters {
	t.mu.RLock()
	sum, live := t.ended.counters, t.liveConnsLocked()
	t.mu.RUnlock()
	for _, c := range live {
		s := c.Stats().Counters
		counters.Add(&sum, &s)
	}
	return sum
}

// Associations returns how many there are, those that are being set up by this side included.
func (t *Transport) Associations() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.conns)
}

// countEnd counts the end of an association. Called with mu held.
func (t *Transport) countEnd(err error) {
	var aborted *assoc.AbortError
	s := &t.ended.stats
	switch {
	case err == assoc.ErrShutdown:
		s.EndShutdown++
	case errors.As(err, &aborted) && aborted.ByPeer:
		s.EndByPeer++
	case errors.As(err, &aborted):
		s.EndAborted++
	case errors.As(err, new(*assoc.InternalError)):
		s.EndInternal++
	case isTimeout(err):
		s.EndTimeout++
	default:
		s.EndRefused++
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
