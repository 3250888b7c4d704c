// Package claim keeps which program of this host has which SCTP port, as the kernel does for those of TCP: the first comer has a port until it gives it back or
// ends, and the others ask it where it is reached. On Linux an abstract Unix socket of a network namespace has a name for each port, and listens, so that the kernel
// tells who owns it. Elsewhere a port is claimed within the process alone.
//
// Programs of one user may have a port at different addresses. The first has the name, and keeps the list; each of the others holds the socket too, so that nobody
// else gets the name when the first ends, and one of them goes on with it.
package claim

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

// At returns the place at an address of this host, or at all of them where that is not valid.
func At(a netip.Addr, encap uint16) Place { return Place{a.Unmap().WithZone(""), encap} }

// Serves says whether packets to an address come to that place.
func (p Place) Serves(a netip.Addr) bool {
	return !p.Addr.IsValid() || p.Addr == a.Unmap().WithZone("")
}

// member is a place, and the program that has it.
type member struct {
	Place
	program uint64
	guest   *guest // nil: of this process
}

// meets says whether two members cannot both be: of one program, one by raw IP and one by UDP can.
func (m member) meets(o member) bool {
	same := !m.Addr.IsValid() || !o.Addr.IsValid() || m.Addr == o.Addr
	return same && (m.program != o.program || (m.Encap == 0) == (o.Encap == 0))
}

// key is a port in a network namespace.
type key struct {
	netns  uint64
	number uint16
}

// port is one whose name this process has.
type port struct {
	key
	members []member
	name    name
}

// maxMembers keeps the list short enough for the buffer of a Unix socket.
const maxMembers = 1000

var (
	mu    sync.Mutex
	ports = make(map[key]*port) // guarded by mu

	program = rand.Uint64() // this one
)

// enter notes a member, unless another is in its way. Called with mu held.
func (p *port) enter(m member) error {
	if len(p.members) == maxMembers || slices.ContainsFunc(p.members, m.meets) {
		return inUse(p.number, "")
	}
	p.members = append(p.members, m)
	return nil
}

// leave drops a member, and the name with the last of this process: a guest goes on with it. Called with mu held.
func (p *port) leave(m member) {
	if i := slices.Index(p.members, m); i >= 0 {
		p.members = slices.Delete(p.members, i, i+1)
	}
	if ports[p.key] == p && !slices.ContainsFunc(p.members, func(m member) bool { return m.guest == nil }) {
		delete(ports, p.key)
		p.name.close()
		for _, m := range p.members {
			m.guest.close()
		}
	}
}

// enterOwn is enter for this process. Called with mu held.
func (p *port) enterOwn(at Place) (release func(), err error) {
	m := member{at, program, nil}
	if err := p.enter(m); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		mu.Lock()
		defer mu.Unlock()
		p.leave(m)
	}), nil
}

// places lists the members. Called with mu held.
func (p *port) places() (list []Place) {
	for _, m := range p.members {
		list = append(list, m.Place)
	}
	return list
}

// inUse says that another has a port, and perhaps more of it.
func inUse(number uint16, of string) error {
	return fmt.Errorf("SCTP port %d%s: %w", number, of, rawio.ErrPortInUse)
}
