package rdma

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/rddp-go/rddp/internal/hostaddr"
)

// ErrNoLink: the Device has no link for SCTP.
var ErrNoLink = errors.New("rdma: the Device was made without a link: it knows TCP, and not SCTP")

// Networks of Dial and ListenOn. Those of TCP are the ones of package net.
const (
	networkSCTP = "sctp"
	networkTCP  = "tcp"
	networkTCP4 = "tcp4"
	networkTCP6 = "tcp6"
)

// UnknownNetworkError refuses a network that is none of "sctp", "tcp", "tcp4" and "tcp6".
type UnknownNetworkError string

func (e UnknownNetworkError) Error() string {
	return fmt.Sprintf("rdma: unknown network %q: it is one of sctp, tcp, tcp4, tcp6", string(e))
}

// defaultNetwork is the one of Connect and Listen: SCTP where there is a link for it.
func (d *Device) defaultNetwork() string {
	if d.sctp == nil {
		return networkTCP
	}
	return networkSCTP
}

// checkNetwork reports whether a network is one of TCP, and refuses what there is not.
func (d *Device) checkNetwork(network string) (isTCP bool, err error) {
	switch network {
	case networkTCP, networkTCP4, networkTCP6:
		return true, nil
	case networkSCTP:
		if d.sctp == nil {
			return false, ErrNoLink
		}
		return false, nil
	}
	return false, UnknownNetworkError(network)
}

// Listen takes requests on a port; 0 picks a free one. They come over SCTP, or over TCP at all
// addresses of this host if the Device has no link. It fails with rawio.ErrPortInUse when an SCTP
// port is taken.
func (d *Device) Listen(port uint16) (*Listener, error) {
	return d.ListenOn(d.defaultNetwork(), net.JoinHostPort("", strconv.Itoa(int(port))))
}

// ListenOn takes requests on an address, "host:port", of a network: "tcp", "tcp4" and "tcp6", as
// package net has them, or "sctp". With SCTP the host is left out: it is that of the link.
func (d *Device) ListenOn(network, address string) (*Listener, error) {
	isTCP, err := d.checkNetwork(network)
	if err != nil {
		return nil, err
	}
	l := d.newListener()
	if isTCP {
		l.lower, err = d.tcp.listen(l, network, address)
	} else {
		l.lower, err = d.sctp.listenOn(l, address)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Connect asks the peer at remote for a session, with private data of at most 512 octets, and waits
// for the answer. It returns the private data of the peer's Accept. The network is SCTP, or TCP if
// the Device has no link. A refusal is a *llp.RejectedError; whatever fails below is a
// *sctp.DialError, or over TCP a *net.OpError. After Close of the QP or the Device, and if that
// comes meanwhile, it is net.ErrClosed.
//
// When QPConfig asks to negotiate, and over TCP always, private data is 508 octets at most. A setup
// that the ends cannot agree on fails with llp.ErrInsufficientIRD or llp.ErrNoRTR.
func (q *QP) Connect(ctx context.Context, remote netip.AddrPort, private []byte) ([]byte, error) {
	return q.dial(ctx, q.dev.defaultNetwork(), private, func(ctx context.Context, isTCP bool) error {
		if isTCP {
			return q.dev.tcp.connect(ctx, q, networkTCP, remote.String(), private)
		}
		return q.dev.sctp.connect(ctx, q, remote, hostOf(remote.String()), private)
	})
}

// Dial is Connect to an address, "host:port", of a network: "tcp", "tcp4" and "tcp6", as package
// net has them, or "sctp".
func (q *QP) Dial(ctx context.Context, network, address string, private []byte) ([]byte, error) {
	return q.dial(ctx, network, private, func(ctx context.Context, isTCP bool) error {
		if isTCP {
			return q.dev.tcp.connect(ctx, q, network, address, private)
		}
		remotes, err := hostaddr.Resolve(ctx, "ip", address)
		if err != nil {
			return err
		}
		return q.dev.sctp.connect(ctx, q, remotes[0], hostOf(address), private)
	})
}

// hostOf returns whom an address names, which TLS looks for in the certificate.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return "localhost"
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().WithZone("").String()
	}
	return host
}

// dial reserves the QP, has it bound to a session by connect, and waits for the peer's answer. The
// context of connect ends with ctx, and when the QP or the Device is closed.
func (q *QP) dial(ctx context.Context, network string, private []byte,
	connect func(ctx context.Context, isTCP bool) error) ([]byte, error) {
	isTCP, err := q.dev.checkNetwork(network)
	if err != nil {
		return nil, err
	}
	if err := checkPrivateData(private, q.negotiates(isTCP)); err != nil {
		return nil, err
	}
	if err := q.reserveSession(); err != nil {
		return nil, err
	}
	within, stop := joinContexts(ctx, q.inUse)
	defer stop()
	if err := connect(within, isTCP); err != nil {
		q.cancelReservation()
		return nil, reasonOf(err, ctx, q.inUse)
	}
	select {
	case <-q.setupDone:
		if q.setupErr != nil {
			return q.acceptData, reasonOf(q.setupErr, ctx, q.dev.closing)
		}
		return q.acceptData, nil
	case <-ctx.Done():
		q.Close()
		return nil, ctx.Err()
	}
}

// ConnectOver is Connect over a connection that the program has: one that has carried something
// else before, or TLS. Both ends must have agreed on it, and the peer waits for the request
// (Device.RequestOver). The connection is the QP's from now on. If the peer's program rejects, it
// is the caller's again.
func (q *QP) ConnectOver(ctx context.Context, c net.Conn, private []byte) ([]byte, error) {
	var over *tcpConn
	reply, err := q.dial(ctx, networkTCP, private, func(ctx context.Context, _ bool) (err error) {
		if err = q.dev.tcp.encrypted(ctx, c); err == nil {
			over, err = q.dev.tcp.connectOver(q, c, true, private)
		}
		return err
	})
	if over != nil && err != nil {
		over.waitLeft()
	}
	return reply, err
}

// RequestOver waits for the request of the peer at the other end of a connection that the program
// has. See QP.ConnectOver. The connection is the Device's from now on. It is the program's again if
// it rejects the request, once Request.Reject has returned.
func (d *Device) RequestOver(ctx context.Context, c net.Conn) (*Request, error) {
	within, stop := joinContexts(ctx, d.closing)
	defer stop()
	if err := d.tcp.encrypted(within, c); err != nil {
		return nil, reasonOf(err, ctx, d.closing)
	}
	l := d.newListener()
	t, err := d.tcp.serve(l, c, true, nil)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.ready:
		if r := l.nextRequest(); r != nil {
			return r, nil
		}
		<-t.ended // it was withdrawn
		return nil, cmp.Or(t.err, net.ErrClosed)
	case <-t.ended:
		return nil, cmp.Or(t.err, net.ErrClosed)
	case <-ctx.Done():
		t.abortFor("")
		return nil, ctx.Err()
	}
}
