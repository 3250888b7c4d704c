package route

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	answerLifetime = 10 * time.Second // of an answer: routes and MTUs change seldom
	// of an answer not trusted any more: repeated refusals do not each ask the system
	distrustInterval = answerLifetime / 100
	ownAddrsLifetime = time.Second // of the list of own addresses, where no change is reported
	maxAnswers       = 4096        // kept at a time, against a flood of addresses

	defaultMTU  = 1500  // octets, where the system does not tell
	loopbackMTU = 65536 // octets, as Linux has it
)

// Path is what the system says about the way to a remote address.
type Path struct {
	Source netip.Addr // the source address it would choose; invalid if it does not tell
	MTU    int        // IP-level MTU in octets
}

// Table asks the system and remembers its answers. It is safe for concurrent use.
type Table struct {
	mu               sync.Mutex
	system           routeSource              // guarded by mu
	answers          map[lookupKey]cachedPath // guarded by mu
	closed           bool                     // guarded by mu
	distrustedAt     time.Time                // guarded by mu: when ForgetRoutesTo last did something
	ownAddrs         []netip.Addr             // guarded by mu: all of this host, link-local ones with their zone
	ownAddrsExpireAt time.Time                // guarded by mu: when they are asked for anew
	now              func() time.Time         // a test's clock
}

type lookupKey struct{ local, remote netip.Addr }

type cachedPath struct {
	path      Path
	expiresAt time.Time
}

// Open returns a table for the network namespace of the calling thread.
func Open() (*Table, error) {
	s, err := openSystem()
	if err != nil {
		return nil, err
	}
	return &Table{system: s, answers: make(map[lookupKey]cachedPath), now: time.Now}, nil
}

// Lookup returns the path from local, which may be invalid for "any", to remote. Where the system
// gives no answer, it returns 1500 octets, or 65536 for a loopback address.
func (t *Table) Lookup(local, remote netip.Addr) Path {
	k := lookupKey{local, remote}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if a, ok := t.answers[k]; ok && now.Before(a.expiresAt) {
		return a.path
	}
	var p Path
	ok := false
	if !t.closed {
		p, ok = t.system.lookupRoute(local, remote)
	}
	if !ok {
		p.MTU = defaultMTU
		if remote.IsLoopback() {
			p.MTU = loopbackMTU
		}
	}
	if len(t.answers) >= maxAnswers {
		clear(t.answers)
	}
	t.answers[k] = cachedPath{path: p, expiresAt: now.Add(answerLifetime)}
	return p
}

// ForgetRoutesTo drops the cached routes to remote, so that the system is asked again. It is called
// when the system has refused a packet that fits the cached MTU: the route has changed.
func (t *Table) ForgetRoutesTo(remote netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Sub(t.distrustedAt) < distrustInterval {
		return
	}
	t.distrustedAt = now
	maps.DeleteFunc(t.answers, func(k lookupKey, _ cachedPath) bool { return k.remote == remote.Unmap() })
}

// Addrs returns this host's unicast addresses without link-local ones: IPv4 before IPv6, and
// loopback addresses last.
func (t *Table) Addrs() []netip.Addr {
	t.mu.Lock()
	var all []netip.Addr
	if !t.closed {
		all = t.system.unicastAddrs()
	}
	t.mu.Unlock()
	var out []netip.Addr
	for _, class := range []func(netip.Addr) bool{
		func(a netip.Addr) bool { return a.IsGlobalUnicast() && a.Is4() },
		func(a netip.Addr) bool { return a.IsGlobalUnicast() && a.Is6() },
		netip.Addr.IsLoopback,
	} {
		for _, a := range all {
			if class(a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// Owns says whether an address is one of this host's, of an interface that is down too.
func (t *Table) Owns(a netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); !t.closed && !now.Before(t.ownAddrsExpireAt) {
		t.ownAddrs, t.ownAddrsExpireAt = t.system.allAddrs(), now.Add(ownAddrsLifetime)
	}
	return slices.Contains(t.ownAddrs, a.Unmap())
}

// Close gives the system's resources back. After it the table knows nothing but its fallbacks.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.system.close()
	}
}
