package tun

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/defrag"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

// Link is a rawio.Link over a TUN device. It also implements rawio.Addresser.
type Link struct {
	cfg    Config
	name   string
	queues []*queue // the first sends
	closed atomic.Bool
	stats  counters

	mu          sync.Mutex
	idleWriters []*packetWriter // guarded by mu: as many as goroutines ever wrote at a time

	openedAt  time.Time
	fragMu    sync.Mutex
	fragments defrag.Assembler // guarded by fragMu: of all queues
}

type counters struct {
	rxPackets, rxICMP, rxEcho, rxMalformed, rxNotOurs, rxOther, rxIgnored atomic.Uint64
	rxFragments, rxReassembled                                            atomic.Uint64
	txPackets, txFull, txTooLong, txErrors                                atomic.Uint64
}

// Name returns the device's name.
func (l *Link) Name() string { return l.name }

// MTU implements rawio.Link: the device's MTU without the IP header.
func (l *Link) MTU(_, remote netip.Addr) int {
	return iphdr.PayloadLimit(l.cfg.MTU, remote.Unmap().Is6())
}

// LocalAddrs implements rawio.Addresser: the stack's own addresses. There are no UDP ports here, so
// every port is 0.
func (l *Link) LocalAddrs() []netip.AddrPort {
	out := make([]netip.AddrPort, len(l.cfg.Addrs))
	for i, a := range l.cfg.Addrs {
		out[i] = netip.AddrPortFrom(a, 0)
	}
	return out
}

func (l *Link) ownsAddr(a netip.Addr) bool { return slices.Contains(l.cfg.Addrs, a) }

// sourceFor returns the stack's default address towards the family of dst.
func (l *Link) sourceFor(dst netip.Addr) (netip.Addr, bool) {
	for _, a := range l.cfg.Addrs {
		if a.Is4() == dst.Is4() {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Interrupt implements rawio.Interrupter.
func (l *Link) Interrupt() { l.queues[0].waiter.Interrupt() }

// Shards implements rawio.Sharder.
func (l *Link) Shards() []rawio.Shard {
	var out []rawio.Shard
	for _, q := range l.queues[1:] {
		out = append(out, q)
	}
	return out
}

// ReceiveBuffer implements rawio.Featurer: the device's queue is one of packets, not of octets.
func (l *Link) ReceiveBuffer() int { return 0 }

// Features implements rawio.Featurer.
func (l *Link) Features() rawio.Features {
	if len(l.queues) > 1 {
		// A goroutine that waits for a packet does not know which shard it comes by.
		return rawio.DontFragment | rawio.ECNField | rawio.Marking
	}
	return rawio.DontFragment | rawio.ECNField | rawio.Marking | rawio.Interruptible | rawio.Waitable
}

// Stats returns the link's counters.
func (l *Link) Stats() Stats {
	c := &l.stats
	l.fragMu.Lock()
	f := l.fragments.Stats
	l.fragMu.Unlock()
	return Stats{
		RxPackets: c.rxPackets.Load(), RxICMP: c.rxICMP.Load(), RxEcho: c.rxEcho.Load(),
		RxMalformed: c.rxMalformed.Load(), RxNotOurs: c.rxNotOurs.Load(), RxOther: c.rxOther.Load(),
		RxIgnored:   c.rxIgnored.Load(),
		RxFragments: c.rxFragments.Load(), RxReassembled: c.rxReassembled.Load(),
		RxFragmentsBad: f.Bad, RxFragmentsLate: f.Late, RxFragmentsFull: f.Full,
		TxPackets: c.txPackets.Load(), TxFull: c.txFull.Load(), TxTooLong: c.txTooLong.Load(),
		TxErrors: c.txErrors.Load(),
	}
}

// Close implements rawio.Link. A device that Open created disappears with its addresses and routes.
func (l *Link) Close() error {
	if l.closed.Swap(true) {
		return net.ErrClosed
	}
	var err error
	for _, q := range l.queues {
		err = errors.Join(err, q.close())
	}
	return err
}

var (
	_ rawio.Link      = (*Link)(nil)
	_ rawio.Addresser = (*Link)(nil)
	_ rawio.Featurer  = (*Link)(nil)

	_ rawio.Interrupter = (*Link)(nil)
	_ rawio.Sharder     = (*Link)(nil)
)
