package netconn

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

const (
	// DefaultMTU is the longest SCTP packet by default, in octets. With DTLS, UDP and IPv6 in front
	// it fits the 1280 octets that every IPv6 link carries. RFC 8261 section 5 recommends no more
	// than 1200.
	DefaultMTU = 1191

	// MinMTU is the shortest that an SCTP packet may be limited to.
	MinMTU = rawio.MinMTU - ipv4HeaderLen

	defaultQueue  = 256
	ipv4HeaderLen = 20
)

// LocalAddr and PeerAddr are what the two ends are called, on either side. They are documentation
// addresses (RFC 5737) and mean nothing to the peer: see rawio.PointToPoint.
var (
	LocalAddr = netip.AddrFrom4([4]byte{192, 0, 2, 1})
	PeerAddr  = netip.AddrFrom4([4]byte{192, 0, 2, 2})
)

// Config says what the connection can do. The zero value suits any.
type Config struct {
	// MTU is the longest SCTP packet that the connection surely carries, in octets, at least
	// MinMTU. When longer packets than that no longer arrive, shorter ones are sent for a while.
	// Default DefaultMTU.
	MTU int

	// DontFragment says that the connection sends each packet whole, with DF set over IPv4, or not
	// at all. Only then is the path MTU searched for above MTU. IP would fragment a probe, and its
	// answer would prove nothing. Default false.
	DontFragment bool

	// MaxMTU is where that search ends, in octets of an SCTP packet. Default 1400 or MTU, whichever
	// is more.
	MaxMTU int

	// ErrorDetection says what the connection does about damaged packets: rawio.DTLSErrorDetection
	// for DTLS. Default none.
	ErrorDetection rawio.ErrorDetection

	// MaxPacket is the longest packet that can be received, in octets. A link begins with memory
	// for a packet of 2048 octets, or of MTU or MaxMTU if that is more. It takes more when longer
	// ones come, of which it loses the first. Default 16384, a record of DTLS.
	MaxPacket int

	// Queue is how many packets may wait while others are being written, of which there are as many
	// at most. Further ones are lost, as in a router. Default 256.
	Queue int
}

const (
	defaultMaxMTU    = 1400
	defaultMaxPacket = 16384
)

func (cfg *Config) validateAndDefault() error {
	if cfg.MTU == 0 {
		cfg.MTU = DefaultMTU
	}
	if cfg.MaxMTU == 0 || !cfg.DontFragment {
		cfg.MaxMTU = cfg.MTU
		if cfg.DontFragment {
			cfg.MaxMTU = max(cfg.MTU, defaultMaxMTU)
		}
	}
	if cfg.MaxPacket == 0 {
		cfg.MaxPacket = max(defaultMaxPacket, cfg.MaxMTU)
	}
	if cfg.Queue == 0 {
		cfg.Queue = defaultQueue
	}
	switch {
	case cfg.MTU < MinMTU:
		return &rawio.MTUError{MTU: cfg.MTU + ipv4HeaderLen}
	case cfg.MaxMTU < cfg.MTU || cfg.MaxMTU > rawio.MaxMTU-ipv4HeaderLen:
		return fmt.Errorf("netconn link: MaxMTU is %d; it is MTU to %d octets", cfg.MaxMTU, rawio.MaxMTU-ipv4HeaderLen)
	case cfg.MaxPacket < cfg.MTU || cfg.MaxPacket > rawio.MaxMTU:
		return fmt.Errorf("netconn link: MaxPacket is %d; it is MTU to %d octets", cfg.MaxPacket, rawio.MaxMTU)
	case cfg.Queue < 0:
		return errors.New("netconn link: Queue is negative")
	}
	return nil
}

// Carrier is what a link needs of a connection. Every net.Conn is one. Each Read returns one
// packet, and each Write sends one.
type Carrier interface {
	Read(p []byte) (n int, err error)
	Write(p []byte) (n int, err error)
	Close() error
}

// BatchReader is a Carrier that brings several packets at once.
type BatchReader interface {
	// ReadPackets fills bufs from the front with a packet each, puts their lengths into lens, and
	// returns how many came. It blocks for the first.
	ReadPackets(bufs [][]byte, lens []int) (n int, err error)
}

// BatchWriter is a Carrier that takes several packets at once.
type BatchWriter interface {
	// WritePackets sends packets in order, and returns how many were sent. If that is not all, err
	// says why the next one was not. It keeps none of them.
	WritePackets(pkts [][]byte) (n int, err error)
}

// Link is a rawio.Link over a Carrier. All its methods are safe for concurrent use, but for
// ReadBatch.
type Link struct {
	carrier Carrier
	cfg     Config
	reader  packetReader
	writer  packetWriter

	closing      sync.Once
	carrierClose func() error // Close of the Carrier, once
	closeErr     error
	isClosed     atomic.Bool
	stats        counters
}

// counters are Stats while they grow.
type counters struct {
	rxPackets, rxDropped, rxErrors         atomic.Uint64
	txPackets, txFull, txTooLong, txErrors atomic.Uint64
}

// Stats counts packets since New.
type Stats struct {
	RxPackets uint64 // handed up
	RxDropped uint64 // too short or too long for an SCTP packet, or from another address
	RxErrors  uint64 // errors of Read that were no end
	TxPackets uint64 // taken by the Carrier
	TxFull    uint64 // lost because the queue was full
	TxTooLong uint64 // refused with rawio.ErrTooLong
	TxErrors  uint64 // refused by the Carrier
}

var (
	_ rawio.Link          = (*Link)(nil)
	_ rawio.Addresser     = (*Link)(nil)
	_ rawio.Featurer      = (*Link)(nil)
	_ rawio.Prompter      = (*Link)(nil)
	_ rawio.Fragmenter    = (*Link)(nil)
	_ rawio.BaseSizer     = (*Link)(nil)
	_ rawio.Batcher       = (*Link)(nil)
	_ rawio.ErrorDetector = (*Link)(nil)
)

// New makes a link of a connection, which it owns from now on. The error is about cfg, which may be
// nil; the connection is still the caller's then.
func New(c Carrier, cfg *Config) (*Link, error) {
	l := &Link{carrier: c, carrierClose: sync.OnceValue(c.Close)}
	if cfg != nil {
		l.cfg = *cfg
	}
	if err := l.cfg.validateAndDefault(); err != nil {
		return nil, err
	}
	l.reader.init(l)
	l.writer.init(l)
	return l, nil
}

// NewPacket makes a link of a net.PacketConn and one peer. What comes from other addresses is
// dropped.
func NewPacket(c net.PacketConn, peer net.Addr, cfg *Config) (*Link, error) {
	if peer == nil {
		return nil, errors.New("netconn link: no peer")
	}
	p := &packetCarrier{PacketConn: c, peer: peer, peerName: peer.String()}
	l, err := New(p, cfg)
	if err == nil {
		p.dropped = &l.stats.rxDropped
	}
	return l, err
}

// MTU implements rawio.Link.
func (l *Link) MTU(_, _ netip.Addr) int { return l.cfg.MaxMTU }

// BaseMTU implements rawio.BaseSizer: Config.MTU.
func (l *Link) BaseMTU(_, _ netip.Addr) int { return l.cfg.MTU }

// CutFrom implements rawio.Fragmenter: with DF set no packet is fragmented. Without it IP does what
// is needed.
func (l *Link) CutFrom(_, _ netip.Addr) int {
	if l.cfg.DontFragment {
		return -1
	}
	return 0
}

// Features implements rawio.Featurer.
func (l *Link) Features() rawio.Features {
	if l.cfg.DontFragment {
		return rawio.PointToPoint | rawio.DontFragment
	}
	return rawio.PointToPoint
}

// ReceiveBuffer implements rawio.Featurer: what the connection holds is not known.
func (l *Link) ReceiveBuffer() int { return 0 }

// ErrorDetection implements rawio.ErrorDetector.
func (l *Link) ErrorDetection() rawio.ErrorDetection { return l.cfg.ErrorDetection }

// LocalAddrs implements rawio.Addresser.
func (l *Link) LocalAddrs() []netip.AddrPort { return []netip.AddrPort{local} }

var local, peer = netip.AddrPortFrom(LocalAddr, 0), netip.AddrPortFrom(PeerAddr, 0)

// Prompt implements rawio.Prompter.
func (l *Link) Prompt() rawio.Link { return l }

// Stats returns the link's counters.
func (l *Link) Stats() Stats {
	s := &l.stats
	return Stats{
		RxPackets: s.rxPackets.Load(), RxDropped: s.rxDropped.Load(), RxErrors: s.rxErrors.Load(),
		TxPackets: s.txPackets.Load(), TxFull: s.txFull.Load(), TxTooLong: s.txTooLong.Load(),
		TxErrors: s.txErrors.Load(),
	}
}

// closePatience is how long Close waits, for what is queued to leave and for the connection to
// close, each.
const closePatience = 100 * time.Millisecond

// Close closes the connection. What waits to be written has a moment to leave. Close does not wait
// for a connection that blocks, neither in Write nor in Close: a goroutine stays with it.
func (l *Link) Close() error {
	l.closing.Do(func() {
		l.writer.close(closePatience)
		l.isClosed.Store(true)
		done := make(chan error, 1)
		go func() { done <- l.carrierClose() }()
		timer := time.NewTimer(closePatience)
		defer timer.Stop()
		select {
		case err := <-done:
			if !errors.Is(err, net.ErrClosed) { // it has ended by itself
				l.closeErr = err
			}
		case <-timer.C:
		}
	})
	return l.closeErr
}
