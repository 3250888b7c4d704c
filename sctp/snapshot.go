package sctp

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// Snapshot is what one association is doing.
type Snapshot struct {
	Remote    netip.AddrPort // address of the primary path, and the SCTP port
	LocalPort uint16
	Passive   bool      // set up by the peer
	Since     time.Time // when setting it up began
	Memory    int64     // octets that the peer is charged for, see TransportConfig.MaxMemory
	assoc.Stats
	Paths []PathStats
}

// Snapshot returns what each association is doing, the oldest first, for people who look. It holds the gate of one association at a time, and
// no longer than it takes to copy what is there.
func (t *Transport) Snapshot() []Snapshot {
	t.mu.RLock()
	live := make([]*Conn, 0, len(t.conns))
	for c := range t.conns {
		live = append(live, c)
	}
	t.mu.RUnlock()
	slices.SortFunc(live, func(a, b *Conn) int { return cmp.Compare(a.born, b.born) })
	list := make([]Snapshot, 0, len(live))
	for _, c := range live {
		paths := make([]PathStats, 0, assoc.MaxPaths) // so that nothing is allocated under the gate
		s := Snapshot{Passive: c.listener != nil, Since: c.began, Memory: c.drawn()}
		a, _ := c.Lock()
		s.Stats, s.LocalPort, s.Remote = a.Stats(), a.LocalPort(), netip.AddrPortFrom(a.PeerAddr().Addr(), a.PeerPort())
		for i := range a.NumPaths() {
			paths = append(paths, a.PathStats(i))
		}
		c.Unlock()
		s.Paths = paths
		list = append(list, s)
	}
	return list
}
