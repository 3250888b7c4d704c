package rdma

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"weak"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp"
)

// defaultStreams is how many streams an association has if nobody says otherwise.
const defaultStreams = ddpadapt.DefaultStreams

// sctpTransport is SCTP over one link. The DDP sessions of QPs to the same peer share an
// association, each on a stream of its own.
type sctpTransport struct {
	*sctp.Transport
	dev *Device

	mu        sync.Mutex             // a leaf lock
	peerSlots map[peerName]*peerSlot // shared associations that this side set up
}

// peerName is whom an association was set up with. Under TLS the same address may be asked for by
// several names, and each has to be in the certificate.
type peerName struct {
	addr netip.AddrPort
	host string // empty without TLS
}

// peerSlot holds the shared association with one peer.
type peerSlot struct {
	busy chan struct{} // taken while it is looked at or set up
	// s belongs to the holder of busy. It is weak: it does not keep an ended association, and the
	// memory of its QPs, until the program connects to the same peer again.
	s weak.Pointer[sctpConn]
}

func newSCTPTransport(d *Device, link rawio.Link) (*sctpTransport, error) {
	d.cfg.applySCTPDefaults(link, d.limits.MaxStreams)
	t, err := sctp.NewTransport(link, &d.cfg.Transport)
	if err != nil {
		return nil, err
	}
	return &sctpTransport{Transport: t, dev: d, peerSlots: make(map[peerName]*peerSlot)}, nil
}

// Transport returns the SCTP transport below, for its statistics; nil if the Device has no link.
func (d *Device) Transport() *sctp.Transport {
	if d.sctp == nil {
		return nil
	}
	return d.sctp.Transport
}

// associations are the associations of the Device, as they are now.
func (d *Device) associations() []*sctp.Snapshot {
	if d.sctp == nil {
		return nil
	}
	return d.sctp.Snapshot()
}

// connect asks the peer at remote for a session, and binds q to it.
func (t *sctpTransport) connect(ctx context.Context, q *QP, remote netip.AddrPort, host string,
	private []byte) error {
	to := peerName{remote, host}
	if t.dev.cfg.TLS == nil {
		to.host = ""
	}
	s, err := t.connFor(ctx, to, q.ownAssoc)
	if err != nil {
		return err
	}
	now := s.lock()
	defer s.unlock()
	var session *ddpadapt.Session
	switch err = ctx.Err(); { // a caller that has given up meanwhile gets no session
	case err != nil:
	case q.wantsNegotiation():
		session, err = s.OpenEnhanced(now, -1, q.core.Stream(), q.setupOffer(), private)
	default:
		session, err = s.Open(now, -1, q.core.Stream(), private)
	}
	s.streamClaims--
	if err != nil {
		s.shutdownIfUnused(now)
		return err
	}
	q.bindSession(&s.peer, sctpSession{session})
	return nil
}

// connFor returns an established association with remote and a claim to one of its streams. It is a
// new one if own.
func (t *sctpTransport) connFor(ctx context.Context, to peerName, own bool) (*sctpConn, error) {
	if own {
		return t.dial(ctx, to)
	}
	slot := t.slotFor(to)
	select {
	case slot.busy <- struct{}{}: // one setup at a time for one peer
		defer func() { <-slot.busy }()
	case <-ctx.Done():
		return nil, &sctp.DialError{Remote: to.addr, Err: ctx.Err()}
	}
	if s := slot.s.Value(); s != nil && s.claimStream() {
		return s, nil
	}
	s, err := t.dial(ctx, to)
	if err == nil {
		slot.s = weak.Make(s)
	}
	return s, err
}

func (t *sctpTransport) dial(ctx context.Context, to peerName) (s *sctpConn, err error) {
	_, err = t.Transport.Dial(ctx, to.addr, t.config(to.host, nil, func(made *sctpConn) {
		s = made
		s.streamClaims = 1
	}))
	return s, err
}

func (t *sctpTransport) slotFor(to peerName) *peerSlot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.peerSlots[to]
	if s == nil {
		s = &peerSlot{busy: make(chan struct{}, 1)}
		t.peerSlots[to] = s
	}
	return s
}

// listenOn takes requests on a port of an address for l. The host is that of the link.
func (t *sctpTransport) listenOn(l *Listener, address string) (lowerListener, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if a, err := netip.ParseAddr(host); host != "" && (err != nil || !a.IsUnspecified()) {
		return nil, &net.AddrError{Err: "an SCTP listener has the addresses of its link", Addr: address}
	}
	port, err := net.LookupPort("tcp", service)
	if err != nil {
		return nil, err
	}
	sl, err := t.Transport.Listen(uint16(port), t.config("", l, nil))
	if err != nil {
		return nil, err
	}
	return sl, nil
}

func (t *sctpTransport) newSignal() signal { return t.Upper().NewSignal() }
