package sctp

import (
	"cmp"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// StreamStats is a snapshot of one stream pair.
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

// Peek has look see the association, and takes its gate for that long only: look copies what it wants to know, changes nothing and does not block.
func (c *Conn) Peek(look func(a *assoc.Assoc)) {
	c.own()
	look(c.a)
	c.disown()
	if c.gate.waiting.Load() != 0 && c.tryOwn() { // packets have come meanwhile
		c.Unlock()
	}
}

// looks is how many associations Transport.Snapshot looks at before it lets others have the processor.
const looks = 4

// Snapshot returns what each association is doing, the oldest first, for people who look. It holds the gate of one association at a time, and
// no longer than it takes to copy what is there.
func (t *Transport) Snapshot() []Snapshot {
	t.mu.RLock()
	live := t.live()
	t.mu.RUnlock()
	slices.SortFunc(live, func(a, b *Conn) int { return cmp.Compare(a.born, b.born) })
	list := make([]Snapshot, len(live))
	paths, streams := make([]PathStats, 0, assoc.MaxPaths), make([]StreamStats, 0, 1024) // so that nothing is allocated under the gate
	for i, c := range live {
		s := &list[i]
		s.Passive, s.Since, s.Memory = c.listener != nil, c.began, c.drawn()
		next := 0
		c.Peek(func(a *assoc.Assoc) {
			s.Stats, s.LocalPort, s.Remote = a.Stats(), a.LocalPort(), netip.AddrPortFrom(a.PeerAddr().Addr(), a.PeerPort())
			paths = paths[:0]
			for j := range a.NumPaths() {
				paths = append(paths, a.PathStats(j))
			}
			streams, next = a.Streams(0, streams[:0])
		})
		s.Paths, s.Streams = slices.Clone(paths), slices.Clone(streams)
		for next >= 0 {
			c.Peek(func(a *assoc.Assoc) { streams, next = a.Streams(next, streams[:0]) })
			s.Streams = append(s.Streams, streams...)
		}
		if i%looks == looks-1 {
			runtime.Gosched()
		}
	}
	return list
}
