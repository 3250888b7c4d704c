package sctp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/rddp-go/rddp/internal/hostaddr"
	"github.com/rddp-go/rddp/internal/kernelsctp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/tun"
	"github.com/rddp-go/rddp/rawio/udp"
)

// sharedLinks are the links that Dial and Listen of this package use. Each is opened when it is
// first needed, and shared by the whole process from then on.
type sharedLinks struct {
	allowedKinds func() ([]linkKind, error) // those that may be used, the best first

	mu           sync.Mutex
	transports   map[linkKind]*Transport // guarded by mu
	rawErr       error                   // guarded by mu: why there is no raw link
	lastAnswered map[netip.Addr]linkKind // guarded by mu: by what link a host was last reached
}

// linkKind is a kind of link, as RDDP_LINK names it, or the UDP of a program that only dials.
type linkKind string

const (
	rawLink   linkKind = "raw"
	udpLink   linkKind = "udp"
	tunLink   linkKind = "tun" // with the addresses of RDDP_TUN, and only where it is asked for
	udpClient linkKind = "udp, any port"

	maxRememberedHosts = 4096 // hosts remembered
)

// processLinks are those of this process.
var processLinks = &sharedLinks{allowedKinds: linksFromEnv}

// linksFromEnv are the links that the environment variable RDDP_LINK allows.
func linksFromEnv() ([]linkKind, error) {
	switch k := linkKind(os.Getenv("RDDP_LINK")); k {
	case "":
		return []linkKind{rawLink, udpLink}, nil
	case rawLink, udpLink, tunLink:
		return []linkKind{k}, nil
	default:
		return nil, fmt.Errorf("sctp: RDDP_LINK is %q; it may be raw, udp or tun", string(k))
	}
}

// ErrKernelSCTP is why Dial and Listen do without raw IP on a kernel that has an SCTP of its own.
// RDDP_LINK may ask for raw IP all the same. They also log it once, by slog.Default.
var ErrKernelSCTP = errors.New("sctp: " + kernelsctp.Advice)

// openLink opens a link; alone says that it is the only kind asked for.
func openLink(k linkKind, alone bool) (rawio.Link, error) {
	switch k {
	case udpLink:
		return openListenUDP()
	case udpClient:
		return udp.Open(udp.Config{Port: udp.AnyPort})
	case tunLink:
		own, err := hostaddr.TunAddrs()
		if err != nil {
			return nil, fmt.Errorf("sctp: %w", err)
		}
		return tun.Open(tun.Config{Addrs: own})
	}
	link, err := raw.Open(raw.Config{})
	if err != nil || !raw.KernelSCTP() {
		return link, err
	}
	slog.Warn(ErrKernelSCTP.Error())
	if alone {
		return link, nil
	}
	link.Close()
	return nil, ErrKernelSCTP
}

// usableTransports returns those to use, the best first, and why there is none. A program that only
// dials leaves UDP port 9899 to programs that listen.
func (l *sharedLinks) usableTransports(listen bool) (list []*Transport, kinds []linkKind, err error) {
	use, err := l.allowedKinds()
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range use {
		as := k
		if k == udpLink && !listen && l.transports[udpLink] == nil {
			as = udpClient
		}
		t, e := l.transportFor(as, len(use) == 1)
		if e != nil {
			err = e // the last one's is about what needs no privilege
			continue
		}
		list, kinds = append(list, t), append(kinds, k)
	}
	if len(list) > 0 {
		err = nil
	}
	return list, kinds, err
}

// transportFor returns the Transport over a link, see openLink. Called with mu held.
func (l *sharedLinks) transportFor(k linkKind, alone bool) (*Transport, error) {
	if t := l.transports[k]; t != nil {
		if t.linkErr() == nil {
			return t, nil
		}
		t.Close() // its link has failed, and another may not
		delete(l.transports, k)
	}
	if k == rawLink && l.rawErr != nil {
		return nil, l.rawErr
	}
	link, err := openLink(k, alone)
	if err != nil {
		if k == rawLink {
			l.rawErr = err
		}
		return nil, err
	}
	t, err := NewTransport(link, nil)
	if err != nil {
		link.Close()
		return nil, err
	}
	if l.transports == nil {
		l.transports, l.lastAnswered = make(map[linkKind]*Transport), make(map[netip.Addr]linkKind)
	}
	l.transports[k] = t
	return t, nil
}

// rememberAnswer notes by what link a host has answered.
func (l *sharedLinks) rememberAnswer(host netip.Addr, k linkKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lastAnswered) >= maxRememberedHosts {
		clear(l.lastAnswered)
	}
	l.lastAnswered[host] = k
}

// preferredIndex returns which of some links to try first. It is UDP to a program of this host that
// listens by it. There packets of several associations go together, and raw ones do not. Otherwise
// it is the link that the host has last answered by, and else the best.
func (l *sharedLinks) preferredIndex(host netip.Addr, kinds []linkKind, neighbour bool) int {
	k := udpLink
	if !neighbour {
		l.mu.Lock()
		k = l.lastAnswered[host]
		l.mu.Unlock()
	}
	return max(slices.Index(kinds, k), 0)
}

// close closes the links, for tests.
func (l *sharedLinks) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.transports {
		t.Close()
	}
	l.transports = nil
}
