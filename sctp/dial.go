package sctp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/hostaddr"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Dialer is Dial with options. The zero value has the defaults.
type Dialer struct {
	// Config is that of the association.
	Config Config
	// FallbackDelay is how long an attempt has before the next begins beside it. 0 means 250 ms
	// (RFC 8305 section 5).
	FallbackDelay time.Duration
	// Together uses all addresses of the name as those of one host with several (RFC 9260 section
	// 1.3), beside Config.RemoteAddrs.
	Together bool

	links *sharedLinks // nil: those of the process
}

// Dial sets up an association with an SCTP port of a host. It opens links when they are first
// needed, and the whole process shares them. They are raw IP if permitted, and UDP (RFC 6951). UDP
// goes first to a program of this host that listens by it. The network is "sctp", or "sctp4" or
// "sctp6" for one family of addresses. A name is resolved, and its addresses are tried in the way
// of RFC 8305, each over both links. Dial uses the attempt that the peer answers first; no other
// reaches the peer's Accept. The environment variable RDDP_LINK=raw or udp selects one link.
// RDDP_LINK=tun selects TUN, whose addresses are in RDDP_TUN. A program that wants another link, or
// more to say about it, uses [NewTransport] and [Transport.Dial].
func Dial(ctx context.Context, network, address string) (*Conn, error) {
	return new(Dialer).Dial(ctx, network, address)
}

// dialAttempt is one of the ways to a host.
type dialAttempt struct {
	t        *Transport
	kind     linkKind
	remote   netip.AddrPort
	route    localRoute     // by UDP
	registry *localRegistry // of this host, if it is one
}

// dial makes the attempt.
func (a *dialAttempt) dial(ctx context.Context, cfg *Config) (*Conn, error) {
	if w := a.route; a.kind == udpLink && cfg.EncapPort == 0 {
		if w.noAnswerYet {
			defer context.AfterFunc(ctx, a.registry.close)()
			w = a.registry.routeTo(a.remote.Addr(), time.Now().Add(registryMaxWait))
		}
		if w.err != nil {
			return nil, &DialError{a.remote, cmp.Or(ctx.Err(), w.err)}
		}
		cfg.EncapPort = w.encapPort
	}
	return a.t.Dial(ctx, a.remote, cfg)
}

// Dial is the function Dial with the options of d.
func (d *Dialer) Dial(ctx context.Context, network, address string) (*Conn, error) {
	l, cfg := d.links, d.Config
	cfg.tlsHost = hostOf(address)
	if l == nil {
		l = processLinks
	}
	fail := func(err error) (*Conn, error) { return nil, &net.OpError{Op: "dial", Net: network, Err: err} }
	remotes, err := resolveAddrs(ctx, network, address)
	if err != nil {
		return fail(err)
	}
	ts, kinds, err := l.usableTransports(false)
	if err != nil {
		return fail(err)
	}
	if d.Together {
		for _, r := range remotes[1:] {
			cfg.RemoteAddrs = append(slices.Clip(cfg.RemoteAddrs), r.Addr())
		}
		remotes = remotes[:1]
	}
	var list []dialAttempt
	var near *localRegistry
	for _, r := range remotes {
		var w localRoute
		if slices.Contains(kinds, udpLink) && cfg.EncapPort == 0 {
			var here bool
			if here, w.err = hostaddr.IsLocal(r.Addr()); here {
				if near == nil {
					near = askLocalRegistry(r.Port())
					defer near.close()
				}
				w = near.routeTo(r.Addr(), time.Now().Add(registryFirstWait))
			}
		}
		first := l.preferredIndex(r.Addr(), kinds, w.encapPort != 0 && w.err == nil)
		for i := range ts {
			k := (first + i) % len(ts)
			if kinds[k] != udpLink || !w.rawOnly || len(ts) == 1 {
				list = append(list, dialAttempt{ts[k], kinds[k], r, w, near})
			}
		}
	}
	c, by, err := raceAttempts(ctx, list, &cfg, d.FallbackDelay)
	if err == nil {
		l.rememberAnswer(by.remote.Addr(), by.kind)
	}
	return c, err
}

// raceAttempts makes the attempts one after the other, and waits at most delay for each before it
// starts the next. The first attempt that gets an answer goes on alone, and others with it only if
// it fails. Until then a peer keeps no state of an attempt. The error is that of the first attempt.
// A refusal goes before silence, and a lack of resources of this host before all. A host that has
// refused by one link may be silent by the other, such as raw IP to an unbound port. It then gets
// the time of one retransmission.
func raceAttempts(ctx context.Context, list []dialAttempt, cfg *Config, delay time.Duration) (*Conn, *dialAttempt,
	error) {
	type result struct {
		i   int
		c   *Conn
		err error
	}
	if delay <= 0 {
		delay = 250 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var answered atomic.Int32 // which attempt goes on: one more than its place in list
	results := make(chan result, len(list))
	timer := time.NewTimer(delay)
	defer timer.Stop()
	started, ended := 0, 0
	done, refused := make([]bool, len(list)), make(map[netip.Addr]bool)
	hopeless := func() bool { // of what has no end yet
		for i, a := range list {
			if !done[i] && (i >= started || !refused[a.remote.Addr()]) {
				return false
			}
		}
		return true
	}
	var enough <-chan time.Time
	start := func() {
		if started == len(list) {
			return
		}
		i, own := started, *cfg
		own.mayProceed = func() bool {
			return answered.CompareAndSwap(0, int32(i+1)) || answered.Load() == int32(i+1)
		}
		started++
		timer.Reset(delay)
		go func() {
			c, err := list[i].dial(ctx, &own)
			results <- result{i, c, err}
		}()
	}
	start()
	for first := error(nil); ; {
		select {
		case r := <-results:
			if r.err == nil {
				return r.c, &list[r.i], nil
			}
			ended++
			done[r.i] = true
			no := errors.Is(r.err, syscall.ECONNREFUSED)
			if no {
				refused[list[r.i].remote.Addr()] = true
			}
			if !errors.Is(r.err, assoc.ErrOvertaken) && (first == nil || no && errors.Is(first, syscall.ETIMEDOUT) ||
				isOutOfResources(r.err)) {
				first = r.err
			}
			if ended == len(list) {
				return nil, nil, first
			}
			answered.CompareAndSwap(int32(r.i+1), 0)
			start()
		case <-timer.C:
			start()
		case <-enough:
			if answered.Load() == 0 {
				return nil, nil, first
			}
		}
		if enough == nil && hopeless() {
			enough = time.After(3 * cmp.Or(cfg.RTOInitial, time.Second))
		}
	}
}

// isOutOfResources says whether this host lacked resources: that may be all that is wrong.
func isOutOfResources(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) ||
		errors.Is(err, syscall.ENOBUFS)
}

// resolveAddrs returns the addresses and the port of host:port, alternating between families (RFC
// 8305 section 4).
func resolveAddrs(ctx context.Context, network, address string) ([]netip.AddrPort, error) {
	family, ok := map[string]string{"sctp": "ip", "sctp4": "ip4", "sctp6": "ip6"}[network]
	if !ok {
		return nil, net.UnknownNetworkError(network)
	}
	addrs, err := hostaddr.Resolve(ctx, family, address)
	if err != nil {
		return nil, err
	}
	var by [2][]netip.AddrPort // of the family of the first, of the other
	for _, a := range addrs {
		i := 0
		if a.Addr().Is4() != addrs[0].Addr().Is4() {
			i = 1
		}
		by[i] = append(by[i], a)
	}
	var list []netip.AddrPort
	for i := range max(len(by[0]), len(by[1])) {
		for _, b := range by {
			if i < len(b) {
				list = append(list, b[i])
			}
		}
	}
	return list, nil
}

// ListenConfig is Listen with options. The zero value has the defaults.
type ListenConfig struct {
	// Config is that of the associations. Its LocalAddrs go before the host of the address.
	Config Config

	links *sharedLinks // nil: those of the process
}

// Listen accepts associations on an SCTP port, over the links of Dial. The network is "sctp". The
// address is host:port, and port 0 picks a free port. Without a host, or with an unspecified
// address, it is every address of this host, of either family. Only one program of a host has UDP
// port 9899; another takes some other UDP port. Dial finds it there from this host. Other hosts
// reach it only by [Config] EncapPort or raw IP.
func Listen(network, address string) (*Listener, error) {
	return new(ListenConfig).Listen(context.Background(), network, address)
}

// maxListenTries is how often to look for a port that is free over all links.
const maxListenTries = 16

// Listen is the function Listen with the options of c. The context is for the look-up of names.
func (c *ListenConfig) Listen(ctx context.Context, network, address string) (*Listener, error) {
	links, cfg := c.links, c.Config
	if links == nil {
		links = processLinks
	}
	fail := func(err error) (*Listener, error) { return nil, &net.OpError{Op: "listen", Net: network, Err: err} }
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return fail(err)
	}
	if host == "" {
		address = net.JoinHostPort("0.0.0.0", service)
	}
	local, err := resolveAddrs(ctx, network, address)
	if err != nil {
		return fail(err)
	}
	if a := local[0].Addr(); !a.IsUnspecified() && len(cfg.LocalAddrs) == 0 {
		cfg.LocalAddrs = []netip.Addr{a}
	}
	ts, _, err := links.usableTransports(true)
	if err != nil {
		return fail(err)
	}
	for try := 1; ; try++ {
		l, err := listenAll(ts, local[0].Port(), &cfg)
		switch {
		case err == nil:
			return l, nil
		case local[0].Port() != 0 || try == maxListenTries || !errors.Is(err, rawio.ErrPortInUse):
			return fail(err)
		}
	}
}

// listenAll listens on one port of several transports, for one Accept.
func listenAll(ts []*Transport, port uint16, cfg *Config) (*Listener, error) {
	l, err := ts[0].listenWithQueue(port, cfg, newAcceptQueue(cfg))
	if err != nil {
		return nil, err
	}
	for _, t := range ts[1:] {
		m, err := t.listenWithQueue(l.port, cfg, l.acceptQueue)
		if err != nil {
			l.Close()
			return nil, err
		}
		l.siblings = append(l.siblings, m)
	}
	for _, m := range append([]*Listener{l}, l.siblings...) {
		if err := m.registerLocally(); err != nil {
			l.Close()
			return nil, err
		}
	}
	return l, nil
}
