package sctp

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// StreamStats is a snapshot of one stream pair.
//
//	type StreamStats struct {
//		ID      uint16
//		NextOut uint16 // SSN of the next message to be sent
//		NextIn  uint16 // SSN of the next message to be delivered
//		// complete messages that have come and wait for an earlier one
//		Waiting int
//	}
type StreamStats = assoc.StreamStats

// Snapshot is what one association is doing.
type Snapshot struct {
	Remote    netip.AddrPort // address of the primary path, and the SCTP port
	LocalPort uint16
	Passive   bool      // set up by the peer
	Since     time.Time // when setting it up began
	Memory    int64     // octets that the peer is charged for, see TransportConfig.MaxMemory
	assoc.Stats
	Paths   []PathStats
	Streams []StreamStats // that ordered messages have used
}

// peekAssoc calls look under the association lock, which it takes for that long only. look copies
// what it wants to know, changes nothing and does not block.
func (c *Conn) peekAssoc(look func(a *assoc.Assoc)) {
	c.acquireLock()
	look(&c.core)
	c.unlockWithoutFlush()
}

// Snapshot returns what each association is doing, the oldest first: all of Snapshots.
func (t *Transport) Snapshot() []*Snapshot { return slices.Collect(t.Snapshots()) }

// Snapshots goes through what each association is doing, the oldest first, for people who look. It
// holds one association lock at a time, and no longer than it takes to copy what is there. All
// takes some 0.5 s for 10,000 associations.
func (t *Transport) Snapshots() iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		l := snapshotter{streams: make([]StreamStats, 0, 1024)}
		var stroll pollpolicy.Throttle
		for _, c := range t.connsByAge() {
			if !yield(l.takeSnapshot(c)) {
				return
			}
			stroll.Step()
		}
	}
}

// connsByAge returns the associations, the oldest first.
func (t *Transport) connsByAge() []*Conn {
	t.mu.RLock()
	live := t.liveConnsLocked()
	t.mu.RUnlock()
	compared, stroll := 0, pollpolicy.Throttle{}
	slices.SortFunc(live, func(a, b *Conn) int {
		if compared++; compared%64 == 0 {
			stroll.Step()
		}
		return cmp.Compare(a.origin.assocNumber, b.origin.assocNumber)
	})
	return live
}

// snapshotter has space for the copies, so that nothing is allocated under an association lock.
type snapshotter struct {
	paths   []PathStats
	streams []StreamStats
}

func (l *snapshotter) takeSnapshot(c *Conn) *Snapshot {
	s := &Snapshot{Passive: c.origin.listener != nil, Since: c.t.startedAt.Add(time.Duration(c.origin.beganAt)),
		Memory: c.drawnOctets()}
	next := 0
	c.peekAssoc(func(a *assoc.Assoc) {
		s.Stats, s.LocalPort, s.Remote = a.Stats(), a.LocalPort(), netip.AddrPortFrom(a.PeerAddr().Addr(), a.PeerPort())
		l.paths = l.paths[:0]
		for j := range a.NumPaths() {
			l.paths = append(l.paths, a.PathStats(j))
		}
		l.streams, next = a.Streams(0, l.streams[:0])
	})
	s.Paths, s.Streams = slices.Clone(l.paths), slices.Clone(l.streams)
	for next >= 0 {
		c.peekAssoc(func(a *assoc.Assoc) { l.streams, next = a.Streams(next, l.streams[:0]) })
		s.Streams = append(s.Streams, l.streams...)
	}
	return s
}
