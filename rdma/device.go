package rdma

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rawio"
)

// DefaultPort is the SCTP port of the tools and examples.
const DefaultPort = 5043

// Device is the software RNIC, and the Privileged Resource Manager (RFC 5042 section 2.1). It has
// the registered memory, and the QPs. Those over SCTP go over one link. Their DDP sessions to the
// same peer share an association, each on a stream of its own. A QP over TCP has a connection of
// its own.
type Device struct {
	sctp   *sctpTransport // nil without a link
	tcp    *tcpTransport
	cfg    Config
	limits Limits
	table  *ddp.Table

	regionsMu sync.Mutex // serialises changes of table and reads of what changes; taken after a connection lock
	nextPD    atomic.Uint32
	nextQP    atomic.Uint32

	events     eventQueue
	logLimiter quota.LogLimiter // of a Device without a link
	closing    context.Context  // ends when Close is called
	endUse     context.CancelFunc
	closed     context.Context // ends when Close has ended all that there was
	endWaits   context.CancelFunc
	closeOnce  sync.Once

	mu      sync.Mutex         // a leaf lock
	peers   map[*peer]struct{} // established connections
	qps     map[*QP]struct{}   // all QPs that are not closed
	stats   Stats              // but for live connections, and EventsLost
	latency Latency            // but for live connections
}

// NewDevice makes a Device over link, which it owns from now on. Without one (nil) it has no SCTP:
// QPs go over TCP, which they may do in any case (QP.Dial, Device.ListenOn). cfg may be nil.
func NewDevice(link rawio.Link, cfg *Config) (*Device, error) {
	d := &Device{peers: make(map[*peer]struct{}), qps: make(map[*QP]struct{})}
	d.closing, d.endUse = context.WithCancel(context.Background())
	d.closed, d.endWaits = context.WithCancel(context.Background())
	if cfg != nil {
		d.cfg = *cfg
	}
	if err := d.cfg.checkTLS(link != nil); err != nil {
		return nil, err
	}
	d.limits = d.cfg.Limits
	if err := d.limits.applyDefaults(); err != nil {
		return nil, err
	}
	d.events.init(d.limits.MaxEvents)
	if d.cfg.Rand == nil {
		d.cfg.Rand = rand.Reader
	}
	d.logLimiter.RateLimiter = quota.RateLimiter{All: 100, Each: 10}
	d.table = ddp.NewTable(d.cfg.Rand)
	d.table.MaxPerPD = d.limits.MaxRegions
	d.tcp = newTCPTransport(d)
	if link != nil {
		t, err := newSCTPTransport(d, link)
		if err != nil {
			return nil, err
		}
		d.sctp = t
	}
	if d.cfg.IdleTimeout > 0 {
		d.startIdleSweeps(d.cfg.IdleTimeout)
	}
	return d, nil
}

// Wait returns when no association and no TCP connection is left, or with the context's error. Call
// it between the last Disconnect and Close, so that the associations end gracefully too.
func (d *Device) Wait(ctx context.Context) error {
	if err := d.tcp.wait(ctx); err != nil || d.sctp == nil {
		return err
	}
	return d.sctp.Wait(ctx)
}

// Close ends every QP, association and TCP connection abortively and closes the link. Disconnect
// the QPs first for a graceful end. The peers get one ABORT for each association, not a Terminate
// on each stream (RFC 5043 section 11.3). Whoever waits for something of the Device gets
// net.ErrClosed, and first what there is. Closing again returns nil.
func (d *Device) Close() error {
	var err error
	d.closeOnce.Do(func() {
		d.endUse()
		d.tcp.close()
		if d.sctp != nil {
			err = d.sctp.Close()
		}
		d.endWaits()
	})
	return err
}

// newSignal returns a signal that is not set. A goroutine that waits for one may read the link
// meanwhile.
func (d *Device) newSignal() signal {
	if d.sctp == nil {
		return newCallerSignal()
	}
	return d.sctp.newSignal()
}

// rouse makes goroutines that wait for a signal look at their channels.
func (d *Device) rouse() {
	if d.sctp != nil { // else they do
		d.sctp.Upper().Rouse()
	}
}

// journal writes a line about a rare event to the Logger of the transport. The caller holds no
// connection lock.
func (d *Device) journal(level slog.Level, remote netip.AddrPort, msg string, attrs ...slog.Attr) {
	switch logger := d.cfg.Transport.Logger; {
	case d.sctp != nil:
		d.sctp.Upper().Journal(level, remote, msg, attrs...)
	case logger != nil:
		if remote.IsValid() {
			attrs = append([]slog.Attr{slog.Any("remote", remote)}, attrs...)
		}
		d.logLimiter.Log(logger, level, remote.Addr(), msg, attrs...)
	}
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
