package sctp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/claim"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/udp"
)

// One program of a host has UDP port 9899. Others that listen take another one, and tell the programs of this host where they are found (internal/claim). Whoever
// dials an address of this host asks there first.

// openUDP opens the link of a listener.
func openUDP() (rawio.Link, error) {
	l, err := udp.Open(udp.Config{})
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	by := claim.OwnerOf(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), udp.DefaultPort))
	l, err = udp.Open(udp.Config{Port: udp.AnyPort})
	if err == nil {
		slog.Warn("sctp: UDP port 9899 is taken, and another one is used: programs of this host find it, other hosts by Config.EncapPort or raw IP alone",
			"by", by, "port", l.Port())
	}
	return l, err
}

const (
	answersSoon = 30 * time.Millisecond // how long Dial waits for the owner of a port before it tries raw IP beside
	answersEver = 5 * time.Second       // how long it waits at all
)

// neighbours is what Dial knows of the programs of this host that may serve an SCTP port.
type neighbours struct {
	port uint16
	q    *claim.Question // nil: nobody has the port
	err  error           // why that is not known
}

// askNeighbours asks for an SCTP port.
func askNeighbours(port uint16) *neighbours {
	n := &neighbours{port: port}
	n.q, n.err = claim.Ask(port)
	return n
}

func (n *neighbours) close() {
	if n.q != nil {
		n.q.Close()
	}
}

// way is how an address of this host is reached by UDP.
type way struct {
	encap  uint16 // the UDP port of the program that listens there; 0: none has told of one
	raw    bool   // who listens there does so by raw IP alone
	silent bool   // the owner of the port has not answered yet
	err    error  // why UDP is no way
}

// to returns the way to an address, as it is known by then.
func (n *neighbours) to(a netip.Addr, by time.Time) (w way) {
	if n.err != nil {
		return way{err: n.err}
	}
	if n.q != nil {
		list, err := n.q.Answer(by)
		if err != nil {
			return way{err: err, silent: errors.Is(err, os.ErrDeadlineExceeded)}
		}
		for _, at := range list {
			switch {
			case !at.Serves(a):
			case at.Encap == 0:
				w.raw = true
			default:
				return way{encap: at.Encap, err: n.q.Check(at, a)}
			}
		}
		if w.raw {
			w.err = fmt.Errorf("SCTP port %d is served by raw IP alone: %w", n.port, syscall.ECONNREFUSED)
			return w
		}
	}
	return way{err: claim.CheckUDP(n.port, netip.AddrPortFrom(a, udp.DefaultPort))}
}

// announce tells the programs of this host of a listener over UDP. It fails with rawio.ErrPortInUse where another program has its port; Close takes back what it has
// told by then.
func (l *Listener) announce() error {
	own, ok := l.t.link.(*udp.Link)
	if !ok {
		return nil
	}
	addrs := l.cfg.LocalAddrs
	if len(addrs) == 0 {
		addrs = []netip.Addr{{}}
	}
	for _, a := range addrs {
		release, err := claim.Take(l.port, claim.At(a, own.Port()))
		if err != nil {
			return err
		}
		l.announced = append(l.announced, release)
	}
	return nil
}

// withdraw takes that back.
func (l *Listener) withdraw() {
	for _, f := range l.announced {
		f()
	}
	l.announced = nil
}
