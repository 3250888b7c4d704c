//go:build !linux

package claim

import (
	"net/netip"
	"time"
)

type name struct{}

func (name) close() {}

type guest struct{}

func (*guest) close() {}

// Take claims an SCTP port for this process at a place, until release is called. It fails with rawio.ErrPortInUse.
func Take(number uint16, at Place) (release func(), err error) {
	mu.Lock()
	defer mu.Unlock()
	k := key{number: number}
	p := ports[k]
	if p == nil {
		p = &port{key: k}
		ports[k] = p
	}
	return p.enterOwn(at)
}

// Question is asked of the owner of a port.
type Question struct{ list []Place }

// Ask returns the question where a port is served, nil where it has no owner.
func Ask(number uint16) (*Question, error) {
	mu.Lock()
	defer mu.Unlock()
	if p := ports[key{number: number}]; p != nil {
		return &Question{p.places()}, nil
	}
	return nil, nil
}

// Answer returns the places.
func (q *Question) Answer(time.Time) ([]Place, error) { return q.list, nil }

// Check says whether a place is the owner's own.
func (q *Question) Check(Place, netip.Addr) error { return nil }

// Close ends the question.
func (q *Question) Close() {}

// CheckUDP says whether the program behind a UDP port may serve an SCTP port.
func CheckUDP(uint16, netip.AddrPort) error { return nil }

// OwnerOf says whose a UDP port is.
func OwnerOf(netip.AddrPort) string { return "another program" }
