package netconn

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// packetWriter is the queue towards the Carrier. WriteBatch copies packets to its end. A goroutine
// writes them, which lives while packets wait: of ten thousand links hardly any has one.
type packetWriter struct {
	l       *Link
	batched BatchWriter // nil: the Carrier is none

	mu        sync.Mutex
	waiting   *packetQueue  // guarded by mu: what the goroutine takes next; nil: nothing
	isRunning bool          // guarded by mu: there is such a goroutine
	isClosed  bool          // guarded by mu: nothing more is taken
	idle      chan struct{} // guarded by mu: closed when the goroutine ends; nil: nobody waits
	err       error         // guarded by mu: the Carrier has ended
}

// packetQueue is packets one behind the other, in memory that links share.
type packetQueue struct {
	octets []byte
	ends   []int
	views  [][]byte // for WritePackets
}

// queuePool has queues that no link needs.
var queuePool = sync.Pool{New: func() any { return new(packetQueue) }}

// maxPooledOctets is the longest queue that is kept for others.
const maxPooledOctets = 512 << 10

func putQueue(q *packetQueue) {
	if cap(q.octets) > maxPooledOctets {
		return
	}
	clear(q.views)
	q.octets, q.ends, q.views = q.octets[:0], q.ends[:0], q.views[:0]
	queuePool.Put(q)
}

func (w *packetWriter) init(l *Link) {
	w.l = l
	w.batched, _ = l.carrier.(BatchWriter)
}

// WriteBatch implements rawio.Link. It never blocks. A packet for which the queue has no room is
// refused with rawio.ErrFull, one above the MTU with rawio.ErrTooLong, one to any other address
// than PeerAddr with a *net.AddrError.
func (l *Link) WriteBatch(pkts []rawio.Packet) (n int, err error) {
	w := &l.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	for n < len(pkts) && err == nil {
		if err = w.enqueue(&pkts[n]); err == nil {
			n++
		}
	}
	if w.waiting != nil && !w.isRunning {
		w.isRunning = true
		go w.writeWaiting()
	}
	return n, err
}

// enqueue copies a packet to the end of the queue. Called with mu held.
func (w *packetWriter) enqueue(p *rawio.Packet) error {
	switch {
	case w.isClosed:
		return net.ErrClosed
	case w.err != nil:
		return w.err
	case p.Remote.Addr() != PeerAddr:
		return &net.AddrError{Err: "not the peer of this link, which is " + PeerAddr.String(), Addr: p.Remote.String()}
	case p.Len() > w.l.cfg.MaxMTU:
		w.l.stats.txTooLong.Add(1)
		return rawio.ErrTooLong
	case w.waiting == nil:
		w.waiting = queuePool.Get().(*packetQueue)
	case len(w.waiting.ends) >= w.l.cfg.Queue:
		w.l.stats.txFull.Add(1)
		return rawio.ErrFull
	}
	q := w.waiting
	for _, v := range p.Vec {
		q.octets = append(q.octets, v...)
	}
	q.ends = append(q.ends, len(q.octets))
	return nil
}

// writeWaiting writes what waits, until nothing does.
func (w *packetWriter) writeWaiting() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.waiting != nil && w.err == nil {
		q := w.waiting
		w.waiting = nil
		w.mu.Unlock()
		err := w.writeQueue(q)
		putQueue(q)
		if err != nil {
			_ = w.l.carrierClose() // or a Read might wait for ever
		}
		w.mu.Lock()
		w.err = err
	}
	if w.waiting != nil {
		putQueue(w.waiting)
		w.waiting = nil
	}
	w.isRunning = false
	if w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// writeQueue writes packets. What the Carrier refuses is lost, unless it has ended: then writeQueue
// returns why.
func (w *packetWriter) writeQueue(q *packetQueue) error {
	start := 0
	for _, end := range q.ends {
		q.views = append(q.views, q.octets[start:end:end])
		start = end
	}
	for left := q.views; len(left) > 0; {
		n, err := w.writePackets(left)
		w.l.stats.txPackets.Add(uint64(n))
		if left = left[n:]; err == nil {
			continue
		}
		if hasEnded(err) {
			return endOf(err)
		}
		w.l.stats.txErrors.Add(1)
		if isTimeout(err) { // a deadline that somebody has left behind
			if c, ok := w.l.carrier.(interface{ SetWriteDeadline(time.Time) error }); ok {
				_ = c.SetWriteDeadline(time.Time{})
			}
		}
		if len(left) > 0 {
			left = left[1:]
		}
	}
	return nil
}

// writePackets sends packets in order, and returns how many were sent, and why no more.
func (w *packetWriter) writePackets(pkts [][]byte) (n int, err error) {
	if w.batched != nil {
		n, err = w.batched.WritePackets(pkts)
		if n < len(pkts) && err == nil {
			err = errNoReason
		}
		return n, err
	}
	for _, p := range pkts {
		_, err := w.l.carrier.Write(p)
		if errors.Is(err, syscall.ECONNREFUSED) { // about an earlier packet
			_, err = w.l.carrier.Write(p)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// errNoReason is that of a BatchWriter that sends less than all, and does not say why.
var errNoReason = errors.New("the connection did not take a packet")

// close ends the queue, and gives what waits there a moment to leave.
func (w *packetWriter) close(patience time.Duration) {
	w.mu.Lock()
	w.isClosed = true
	if !w.isRunning {
		w.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	w.idle = idle
	w.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}
