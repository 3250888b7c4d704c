package sctp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/portregistry"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/udp"
)

// One program of a host has UDP port 9899. Others that listen take another one, and announce it to
// the programs of this host (internal/portregistry). A program that dials an address of this host
// asks there first.

// openListenUDP opens the link of a listener.
func openListenUDP() (rawio.Link, error) {
	l, err := udp.Open(udp.Config{})
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	by := portregistry.UDPOwner(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), udp.DefaultPort))
	l, err = udp.Open(udp.Config{Port: udp.AnyPort})
	if err == nil {
		slog.Warn("sctp: UDP port 9899 is taken, and another one is used: programs of this host find it, other "+
			"hosts by Config.EncapPort or raw IP alone",
			"by", by, "port", l.Port())
	}
	return l, err
}

const (
	registryFirstWait = 30 * time.Millisecond // how long Dial waits for the owner of a port before it also tries raw IP
	registryMaxWait   = 5 * time.Second       // how long it waits at all
)

// localRegistry is what Dial knows of the programs of this host that may serve an SCTP port.
type localRegistry struct {
	port     uint16
	question *portregistry.OwnerQuery // nil: no program has the port
	err      error                    // why that is not known
}

// askLocalRegistry asks for an SCTP port.
func askLocalRegistry(port uint16) *localRegistry {
	n := &localRegistry{port: port}
	n.question, n.err = portregistry.AskOwner(port)
	return n
}

func (n *localRegistry) close() {
	if n.question != nil {
		n.question.Close()
	}
}

// localRoute is how an address of this host is reached by UDP.
type localRoute struct {
	encapPort   uint16 // the UDP port of the program that listens there; 0: none is known
	rawOnly     bool   // the program there listens by raw IP alone
	noAnswerYet bool   // the owner of the port has not answered yet
	err         error  // why UDP is no way
}

// routeTo returns the way to an address, as it is known by then.
func (n *localRegistry) routeTo(a netip.Addr, by time.Time) (w localRoute) {
	if n.err != nil {
		return localRoute{err: n.err}
	}
	if n.question != nil {
		list, err := n.question.AwaitAnswer(by)
		if err != nil {
			return localRoute{err: err, noAnswerYet: errors.Is(err, os.ErrDeadlineExceeded)}
		}
		for _, at := range list {
			switch {
			case !at.ServesAddr(a):
			case at.Encap == 0:
				w.rawOnly = true
			default:
				return localRoute{encapPort: at.Encap, err: n.question.CheckPlace(at, a)}
			}
		}
		if w.rawOnly {
			w.err = fmt.Errorf("SCTP port %d is served by raw IP alone: %w", n.port, syscall.ECONNREFUSED)
			return w
		}
	}
	return localRoute{err: portregistry.CheckUDPOwner(n.port, netip.AddrPortFrom(a, udp.DefaultPort))}
}

// registerLocally announces a listener over UDP to the programs of this host. It fails with
// rawio.ErrPortInUse if another program has its port. Close withdraws the announcements made by
// then.
func (l *Listener) registerLocally() error {
	own, ok := l.t.link.(*udp.Link)
	if !ok {
		return nil
	}
	addrs := l.cfg.LocalAddrs
	if len(addrs) == 0 {
		addrs = []netip.Addr{{}}
	}
	for _, a := range addrs {
		release, err := portregistry.ClaimPort(l.port, portregistry.PlaceAt(a, own.Port()))
		if err != nil {
			return err
		}
		l.unregisterFuncs = append(l.unregisterFuncs, release)
	}
	return nil
}

// unregisterLocally undoes registerLocally.
func (l *Listener) unregisterLocally() {
	for _, f := range l.unregisterFuncs {
		f()
	}
	l.unregisterFuncs = nil
}
