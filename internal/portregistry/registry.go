// Package portregistry records which program of this host has which SCTP port, as the kernel does
// for TCP ports.
//
//   - In: claims of ports, at one address or several; questions about a port.
//   - Out: whether the claim holds, and where another program serves the port.
//   - Invariant: the first program that claims a port has it until it releases it or ends.
//   - Read first: registry.go.
//
// # How
//
// On Linux an abstract Unix socket of the network namespace has a name for each port. It listens,
// so that the kernel says which user owns it. On other systems a port is claimed within the process
// only.
//
// Programs of one user may have a port at different addresses. The first has the name, and keeps
// the list. Each of the others holds the socket too. So no other program gets the name when the
// first ends, and one of them becomes the owner.
package portregistry

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"github.com/rddp-go/rddp/rawio"
)

// Place is where a port is served.
type Place struct {
	Addr  netip.Addr // invalid: at all addresses of this host
	Encap uint16     // the UDP port by which it is reached; 0: raw IP
}

// PlaceAt returns the place at an address of this host, or at all of them where that is not valid.
func PlaceAt(a netip.Addr, encap uint16) Place { return Place{a.Unmap().WithZone(""), encap} }

// ServesAddr says whether packets to an address arrive at that place.
func (p Place) ServesAddr(a netip.Addr) bool {
	return !p.Addr.IsValid() || p.Addr == a.Unmap().WithZone("")
}

// member is a place, and the program that has it.
type member struct {
	Place
	programID uint64
	coHolder  *coHolder // nil: of this process
}

// conflictsWith says whether two members exclude each other. One by raw IP and one by UDP, of one
// program, do not.
func (m member) conflictsWith(o member) bool {
	same := !m.Addr.IsValid() || !o.Addr.IsValid() || m.Addr == o.Addr
	return same && (m.programID != o.programID || (m.Encap == 0) == (o.Encap == 0))
}

// portKey is a port in a network namespace.
type portKey struct {
	netns  uint64
	number uint16
}

// portEntry is one whose name this process has.
type portEntry struct {
	portKey
	members []member
	socket  nameSocket
}

// maxMembers keeps the list short enough for the buffer of a Unix socket.
const maxMembers = 1000

var (
	registryMu  sync.Mutex
	portEntries = make(map[portKey]*portEntry) // guarded by registryMu

	programID = rand.Uint64() // this one
)

// addMember adds a member, unless it conflicts with another. Called with registryMu held.
func (p *portEntry) addMember(m member) error {
	if len(p.members) == maxMembers || slices.ContainsFunc(p.members, m.conflictsWith) {
		return portInUseError(p.number, "")
	}
	p.members = append(p.members, m)
	return nil
}

// removeMember drops a member, and the name with the last member of this process: a co-holder goes
// on with it. Called with registryMu held.
func (p *portEntry) removeMember(m member) {
	if i := slices.Index(p.members, m); i >= 0 {
		p.members = slices.Delete(p.members, i, i+1)
	}
	if portEntries[p.portKey] == p && !slices.ContainsFunc(p.members, func(m member) bool {
		return m.coHolder == nil
	}) {
		delete(portEntries, p.portKey)
		p.socket.close()
		for _, m := range p.members {
			m.coHolder.close()
		}
	}
}

// addOwnMember is addMember for this process. Called with registryMu held.
func (p *portEntry) addOwnMember(at Place) (release func(), err error) {
	m := member{at, programID, nil}
	if err := p.addMember(m); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		registryMu.Lock()
		defer registryMu.Unlock()
		p.removeMember(m)
	}), nil
}

// listPlaces lists the members. Called with registryMu held.
func (p *portEntry) listPlaces() (list []Place) {
	for _, m := range p.members {
		list = append(list, m.Place)
	}
	return list
}

// portInUseError says that another program has a port; of may say more about it.
func portInUseError(number uint16, of string) error {
	return fmt.Errorf("SCTP port %d%s: %w", number, of, rawio.ErrPortInUse)
}
