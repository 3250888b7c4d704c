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

// links are the links that Dial and Listen of this package use: each is opened when it is first needed, and shared by all of the process
// from then on.
type links struct {
	kinds func() ([]linkKind, error) // those that may be used, the best first

	mu       sync.Mutex
	open     map[linkKind]*Transport // guarded by mu
	failed   error                   // guarded by mu: why there is no raw link
	answered map[netip.Addr]linkKind // guarded by mu: by what link a host was last reached
}

// linkKind is a kind of link, as RDDP_LINK names it, or what UDP is opened as by who only dials.
type linkKind string

const (
	rawLink   linkKind = "raw"
	udpLink   linkKind = "udp"
	tunLink   linkKind = "tun" // with the addresses of RDDP_TUN, and only where it is asked for
	udpClient linkKind = "udp, any port"

	maxAnswered = 4096 // hosts remembered
)

// process are those of this process.
var process = &links{kinds: linksOf}

// linksOf are the links that the environment variable RDDP_LINK allows.
func linksOf() ([]linkKind, error) {
	switch k := linkKind(os.Getenv("RDDP_LINK")); k {
	case "":
		return []linkKind{rawLink, udpLink}, nil
	case rawLink, udpLink, tunLink:
		return []linkKind{k}, nil
	default:
		return nil, fmt.Errorf("sctp: RDDP_LINK is %q; it may be raw, udp or tun", string(k))
	}
}

// ErrKernelSCTP is why Dial and Listen do without raw IP where the kernel has an SCTP of its own, unless RDDP_LINK asks for raw IP. They
// also say so once, by slog.Default.
var ErrKernelSCTP = errors.New("sctp: " + kernelsctp.Advice)

// openLink opens a link; alone says that it is the only kind asked for.
func openLink(k linkKind, alone bool) (rawio.Link, error) {
	switch k {
	case udpLink:
		return openUDP()
	case udpClient:
		return udp.Open(udp.Config{Port: udp.AnyPort})
	case tunLink:
		own, err := hostaddr.Tun()
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

// transports returns those to use, the best first, and why there is none. Who only dials leaves UDP port 9899 to who listens.
func (l *links) transports(listen bool) (list []*Transport, kinds []linkKind, err error) {
	use, err := l.kinds()
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range use {
		as := k
		if k == udpLink && !listen && l.open[udpLink] == nil {
			as = udpClient
		}
		t, e := l.get(as, len(use) == 1)
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

// get returns the Transport over a link, see openLink. Called with mu held.
func (l *links) get(k linkKind, alone bool) (*Transport, error) {
	if t := l.open[k]; t != nil {
		if t.failed() == nil {
			return t, nil
		}
		t.Close() // its link has failed, and another may not
		delete(l.open, k)
	}
	if k == rawLink && l.failed != nil {
		return nil, l.failed
	}
	link, err := openLink(k, alone)
	if err != nil {
		if k == rawLink {
			l.failed = err
		}
		return nil, err
	}
	t, err := NewTransport(link, nil)
	if err != nil {
		link.Close()
		return nil, err
	}
	if l.open == nil {
		l.open, l.answered = make(map[linkKind]*Transport), make(map[netip.Addr]linkKind)
	}
	l.open[k] = t
	return t, nil
}

// remember notes by what link a host has answered.
func (l *links) remember(host netip.Addr, k linkKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.answered) >= maxAnswered {
		clear(l.answered)
	}
	l.answered[host] = k
}

// first returns which of some links to try first: UDP to a program of this host that listens by it, since packets of several associations go together there
// and raw ones do not; else what the host has last answered by; else the best.
func (l *links) first(host netip.Addr, kinds []linkKind, neighbour bool) int {
	k := udpLink
	if !neighbour {
		l.mu.Lock()
		k = l.answered[host]
		l.mu.Unlock()
	}
	return max(slices.Index(kinds, k), 0)
}

// close closes the links, for tests.
func (l *links) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.open {
		t.Close()
	}
	l.open = nil
}
