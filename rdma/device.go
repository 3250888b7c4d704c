package rdma

import (
	"context"
	"crypto/rand"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/upper"
)

// defaultRecvWindow is the receive window in octets. Placed data does not occupy it. So it costs no
// memory and only bounds what is under way (RFC 5041 appendix A): 1 Gbit/s over a round trip of 130
// ms.
const defaultRecvWindow = 16 << 20

// minRecvWindow is the receive window where the link buffers less: a few packets of 64 KB.
const minRecvWindow = 256 << 10

// defaultLoneSackDelay is how long a lone segment may wait for its acknowledgement, and with it a
// request for its completion. The 200 ms of SCTP are for programs that see no completions. 1 ms
// leaves time for a SACK to travel with the answer (RFC 9260 section 6.2 allows up to 500 ms).
// While every segment is answered by one that takes the SACK along, the delay is defaultSackDelay.
// A timer that goes off every millisecond for nothing would cost a tenth of a round trip.
const (
	defaultLoneSackDelay = time.Millisecond
	defaultSackDelay     = 10 * time.Millisecond
)

// DefaultPort is the SCTP port of the tools and examples.
const DefaultPort = 5043

// Config says how a Device behaves. The zero value is what most programs want.
type Config struct {
	// SCTP refines the associations; its adaptation indication and stream numbers are set here.
	// Default those of sctp.Config.
	SCTP sctp.Config

	// Transport bounds what all associations together may use. Default those of
	// sctp.TransportConfig.
	Transport sctp.TransportConfig

	// Limits bound what programs and peers may make the Device hold. Default those of Limits.
	Limits Limits

	// NoAtomics makes a Device without the Atomic Operations of RFC 7306. A peer that uses one gets
	// its stream terminated. Default false.
	NoAtomics bool

	// NoImmediate makes a Device without the Immediate Data of RFC 7306. A peer that uses it gets
	// its stream terminated. Default false.
	NoImmediate bool

	// IdleTimeout ends, with ErrIdle, a QP on which nothing was sent or received for so long, and
	// an association that had no session. A peer then cannot hold resources for nothing (RFC 5042
	// section 6.4.2). A program that has nothing to say keeps its session by a Write of no octets
	// now and then. Default 0: never.
	IdleTimeout time.Duration

	// Rand is the source of STags. Default crypto/rand.
	Rand io.Reader
}

// Device is the software RNIC, and the Privileged Resource Manager (RFC 5042 section 2.1). It has
// one SCTP transport over one link, the registered memory, and the QPs. The DDP sessions of QPs to
// the same peer share an association, each on a stream of its own.
type Device struct {
	transport *sctp.Transport
	cfg       Config
	limits    Limits
	table     *ddp.Table

	regionsMu sync.Mutex // serialises changes of table and reads of what changes; taken after an association lock
	nextPD    atomic.Uint32
	nextQP    atomic.Uint32

	events    eventQueue
	closed    chan struct{} // by Close
	closeOnce sync.Once

	mu        sync.Mutex                   // a leaf lock
	peerSlots map[netip.AddrPort]*peerSlot // shared associations that this side set up
	peers     map[*peer]struct{}           // established associations
	qps       map[*QP]struct{}             // all QPs that are not closed
	stats     Stats                        // but for live associations, and EventsLost
	latency   Latency                      // but for live associations
}

// peerSlot holds the shared association with one peer.
type peerSlot struct {
	busy chan struct{} // taken while it is looked at or set up
	// p belongs to the holder of busy. It is weak: it does not keep an ended association, and the
	// memory of its QPs, until the program connects to the same peer again.
	p weak.Pointer[peer]
}

// NewDevice makes a Device over link, which it owns from now on. cfg may be nil.
func NewDevice(link rawio.Link, cfg *Config) (*Device, error) {
	d := &Device{peerSlots: make(map[netip.AddrPort]*peerSlot), peers: make(map[*peer]struct{}),
		qps:    make(map[*QP]struct{}),
		closed: make(chan struct{})}
	if cfg != nil {
		d.cfg = *cfg
	}
	d.limits = d.cfg.Limits
	if err := d.limits.applyDefaults(); err != nil {
		return nil, err
	}
	d.events.init(d.limits.MaxEvents)
	d.cfg.SCTP.OutStreams, d.cfg.SCTP.InStreams = uint16(d.limits.MaxStreams), uint16(d.limits.MaxStreams)
	d.cfg.SCTP.Upper().Change(ddpadapt.Configure)
	if d.cfg.SCTP.RecvBuffer == 0 {
		d.cfg.SCTP.RecvBuffer = defaultRecvWindow
		if n := rawio.ReceiveBufferOf(link); n > 0 {
			d.cfg.SCTP.RecvBuffer = max(min(defaultRecvWindow, n), minRecvWindow)
		}
	}
	if d.cfg.SCTP.SackDelay == 0 {
		d.cfg.SCTP.SackDelay = defaultSackDelay
		if d.cfg.SCTP.LoneSackDelay == 0 {
			d.cfg.SCTP.LoneSackDelay = defaultLoneSackDelay
		}
	}
	if d.cfg.Rand == nil {
		d.cfg.Rand = rand.Reader
	}
	d.table = ddp.NewTable(d.cfg.Rand)
	d.table.MaxPerPD = d.limits.MaxRegions
	t, err := sctp.NewTransport(link, &d.cfg.Transport)
	if err != nil {
		return nil, err
	}
	d.transport = t
	if d.cfg.IdleTimeout > 0 {
		d.startIdleSweeps(d.cfg.IdleTimeout)
	}
	return d, nil
}

// Transport returns the SCTP transport below, for its statistics.
func (d *Device) Transport() *sctp.Transport { return d.transport }

// Wait returns when no association is left, or with the context's error. Call it between the last
// Disconnect and Close, so that the associations end gracefully too.
func (d *Device) Wait(ctx context.Context) error { return d.transport.Wait(ctx) }

// Close ends every QP and association abortively and closes the link. Disconnect the QPs first for
// a graceful end. The peers get one ABORT for each association, not a Terminate on each stream (RFC
// 5043 section 11.3).
func (d *Device) Close() error {
	d.closeOnce.Do(func() { close(d.closed) })
	return d.transport.Close()
}

// sctpConfig is the configuration of one association under p, which is made when the association
// is.
func (d *Device) sctpConfig(initiator bool, l *Listener, made func(*peer)) *sctp.Config {
	c := d.cfg.SCTP
	c.NewUpper = func(conn *sctp.Conn, a *assoc.Assoc) upper.Protocol {
		p := newPeer(d, conn, a, initiator, l)
		if made != nil {
			made(p)
		}
		return p
	}
	return &c
}

// peerFor returns an established association with remote and a claim to one of its streams. It is a
// new one if own.
func (d *Device) peerFor(ctx context.Context, remote netip.AddrPort, own bool) (*peer, error) {
	if own {
		return d.dialPeer(ctx, remote)
	}
	slot := d.slotFor(remote)
	select {
	case slot.busy <- struct{}{}: // one setup at a time for one peer
		defer func() { <-slot.busy }()
	case <-ctx.Done():
		return nil, &sctp.DialError{Remote: remote, Err: ctx.Err()}
	}
	if p := slot.p.Value(); p != nil && p.claimStream() {
		return p, nil
	}
	p, err := d.dialPeer(ctx, remote)
	if err == nil {
		slot.p = weak.Make(p)
	}
	return p, err
}

func (d *Device) dialPeer(ctx context.Context, remote netip.AddrPort) (p *peer, err error) {
	_, err = d.transport.Dial(ctx, remote, d.sctpConfig(true, nil, func(made *peer) {
		p = made
		p.streamClaims = 1
	}))
	return p, err
}

func (d *Device) slotFor(remote netip.AddrPort) *peerSlot {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.peerSlots[remote]
	if s == nil {
		s = &peerSlot{busy: make(chan struct{}, 1)}
		d.peerSlots[remote] = s
	}
	return s
}

// qpsOf returns the QPs of a protection domain.
func (d *Device) qpsOf(pd *PD) []*QP {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*QP
	for q := range d.qps {
		if q.pd == pd {
			list = append(list, q)
		}
	}
	return list
}
