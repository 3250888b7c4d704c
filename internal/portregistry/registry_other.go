//go:build !linux

package portregistry

import (
	"net/netip"
	"time"
)

type nameSocket struct{}

func (nameSocket) close() {}

type coHolder struct{}

func (*coHolder) close() {}

// ClaimPort claims an SCTP port for this process at a place, until release is called. It fails with
// rawio.ErrPortInUse.
func ClaimPort(number uint16, at Place) (release func(), err error) {
	registryMu.Lock()
	defer registryMu.Unlock()
	k := portKey{number: number}
	p := portEntries[k]
	if p == nil {
		p = &portEntry{portKey: k}
		portEntries[k] = p
	}
	return p.addOwnMember(at)
}

// OwnerQuery is asked of the owner of a port.
type OwnerQuery struct{ list []Place }

// AskOwner returns the query where a port is served, nil if it has no owner.
func AskOwner(number uint16) (*OwnerQuery, error) {
	registryMu.Lock()
	defer registryMu.Unlock()
	if p := portEntries[portKey{number: number}]; p != nil {
		return &OwnerQuery{p.listPlaces()}, nil
	}
	return nil, nil
}

// AwaitAnswer returns the places.
func (q *OwnerQuery) AwaitAnswer(time.Time) ([]Place, error) { return q.list, nil }

// CheckPlace says whether a place is the owner's own.
func (q *OwnerQuery) CheckPlace(Place, netip.Addr) error { return nil }

// Close ends the query.
func (q *OwnerQuery) Close() {}

// CheckUDPOwner says whether the program behind a UDP port may serve an SCTP port.
func CheckUDPOwner(uint16, netip.AddrPort) error { return nil }

// UDPOwner says which user has a UDP port.
func UDPOwner(netip.AddrPort) string { return "another program" }
