package netconn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

const (
	commonHeaderLen = 12   // octets of the SCTP common header (RFC 9260 section 3.1)
	smallPacket     = 2048 // octets: of a buffer for packets of an Ethernet
	maxIdleOctets   = 8 << 20

	maxReadBatch = 16 // packets that a BatchReader brings at once

	// An error that may pass is one of a streak if it comes within streakGap of the last. A streak
	// of maxErrorStreak is the end of the connection: its reader would go round for nothing.
	maxErrorStreak = 64
	streakGap      = 100 * time.Millisecond
)

// bufPools has a pool for each size of buffer. All links share them: between two packets a link
// holds the one buffer that its Read waits with.
var bufPools = struct {
	mu     sync.Mutex
	bySize map[int]*rawio.Pool // guarded by mu
}{bySize: make(map[int]*rawio.Pool)}

func poolOf(size int) *rawio.Pool {
	size = (size + smallPacket - 1) / smallPacket * smallPacket // of few sizes
	bufPools.mu.Lock()
	defer bufPools.mu.Unlock()
	p := bufPools.bySize[size]
	if p == nil {
		p = rawio.NewPool(size, maxIdleOctets/size)
		bufPools.bySize[size] = p
	}
	return p
}

// packetReader reads from the Carrier. Only the goroutine in ReadBatch uses it.
type packetReader struct {
	l       *Link
	batched BatchReader // nil: the Carrier is none
	bufLen  int         // octets of a buffer, up to Config.MaxPacket
	pool    *rawio.Pool // of these
	small   *rawio.Pool // where packets go that hold a long buffer for nothing; nil: no buffer is long

	streak      int       // errors in a row
	lastErrorAt time.Time // of them

	bufs  []*rawio.Buf // for ReadPackets
	views [][]byte
	lens  []int
}

func (r *packetReader) init(l *Link) {
	r.l = l
	r.batched, _ = l.carrier.(BatchReader)
	r.setBufLen(min(max(smallPacket, l.cfg.MaxMTU), l.cfg.MaxPacket))
	if r.batched != nil {
		r.bufs, r.views, r.lens = make([]*rawio.Buf, maxReadBatch), make([][]byte, maxReadBatch),
			make([]int, maxReadBatch)
	}
}

// setBufLen makes buffers for packets of so many octets.
func (r *packetReader) setBufLen(n int) {
	r.bufLen, r.pool = n, poolOf(n)
	if n == r.l.cfg.MaxPacket {
		r.pool = poolOf(n + 1) // which tells what is longer
	}
	if n > smallPacket {
		r.small = poolOf(smallPacket)
	}
}

// growBuffers makes longer buffers, if there may be any. A packet did not fit.
func (r *packetReader) growBuffers() {
	if r.bufLen < r.l.cfg.MaxPacket {
		r.setBufLen(min(2*r.bufLen, r.l.cfg.MaxPacket))
	}
}

// MaxBatch implements rawio.Batcher.
func (l *Link) MaxBatch() int {
	if l.reader.batched != nil {
		return maxReadBatch
	}
	return 1
}

// ReadBatch implements rawio.Link.
func (l *Link) ReadBatch(pkts []rawio.Packet) (n int, err error) {
	if len(pkts) == 0 {
		return 0, errors.New("ReadBatch needs room for a packet")
	}
	r := &l.reader
	for n == 0 {
		if r.batched != nil {
			n, err = r.readSeveral(pkts)
		} else {
			n, err = r.readOne(pkts)
		}
		switch {
		case l.isClosed.Load():
			rawio.ReleaseAll(pkts[:n])
			return 0, net.ErrClosed
		case n > 0: // an error that came with packets comes again
			r.streak = 0
		case err != nil && !r.mayPass(err):
			return 0, endOf(err)
		}
	}
	l.stats.rxPackets.Add(uint64(n))
	return n, nil
}

// readOne reads a packet. Without one, and without an error, what came was none.
func (r *packetReader) readOne(pkts []rawio.Packet) (int, error) {
	buf := r.pool.Get()
	n, err := r.l.carrier.Read(buf.B)
	if err != nil {
		n = 0
	}
	if n == len(buf.B) && r.bufLen < r.l.cfg.MaxPacket || errors.Is(err, io.ErrShortBuffer) || isTemporary(err) {
		r.growBuffers() // a socket cuts what is longer, and does not say so
	}
	return r.take(pkts, 0, buf, n, err == nil), err
}

// readSeveral reads as many packets as have come.
func (r *packetReader) readSeveral(pkts []rawio.Packet) (taken int, err error) {
	room := min(len(pkts), maxReadBatch)
	for i := range room {
		r.bufs[i] = r.pool.Get()
		r.views[i] = r.bufs[i].B
	}
	n, err := r.batched.ReadPackets(r.views[:room], r.lens[:room])
	for i := range room {
		k := 0
		if i < n {
			k = min(r.lens[i], len(r.bufs[i].B))
		}
		if k > 0 && k == len(r.bufs[i].B) {
			r.growBuffers()
		}
		taken += r.take(pkts, taken, r.bufs[i], k, i < n)
		r.bufs[i], r.views[i] = nil, nil
	}
	return taken, err
}

// take makes the i-th packet of the first n octets of a buffer, if they can be one. arrived says
// that they were read.
func (r *packetReader) take(pkts []rawio.Packet, i int, buf *rawio.Buf, n int, arrived bool) int {
	if n < commonHeaderLen || n > r.l.cfg.MaxPacket {
		if arrived {
			r.l.stats.rxDropped.Add(1)
		}
		buf.Release()
		return 0
	}
	if r.small != nil && n <= smallPacket {
		short := r.small.Get()
		copy(short.B, buf.B[:n])
		buf.Release()
		buf = short
	}
	pkts[i] = rawio.Packet{Data: buf.B[:n], Buf: buf, Local: local, Remote: peer}
	return 1
}

// mayPass says whether to read on after an error: it is about one packet, or about a peer that is
// not there yet.
func (r *packetReader) mayPass(err error) bool {
	if !isPassing(err) {
		return false
	}
	r.l.stats.rxErrors.Add(1)
	if isTimeout(err) { // a deadline that somebody has left behind
		if c, ok := r.l.carrier.(interface{ SetReadDeadline(time.Time) error }); ok {
			_ = c.SetReadDeadline(time.Time{})
		}
	}
	now := time.Now()
	if now.Sub(r.lastErrorAt) > streakGap {
		r.streak = 0
	}
	r.lastErrorAt = now
	r.streak++
	return r.streak < maxErrorStreak
}

// passingErrors are errors of sockets that are about one packet, or come of an ICMP message about
// an earlier one.
var passingErrors = []error{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EMSGSIZE,
	syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN, syscall.ENETDOWN, syscall.EPERM,
	syscall.ENOENT, // a Unix socket whose peer is not there yet
	io.ErrShortBuffer,
}

// isPassing says whether a Carrier may be good for more after an error.
func isPassing(err error) bool {
	if hasEnded(err) {
		return false
	}
	for _, p := range passingErrors {
		if errors.Is(err, p) {
			return true
		}
	}
	return isTimeout(err) || isTemporary(err)
}

// isTemporary says whether an error says so of itself, as that of DTLS about a packet that is too
// long does.
func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// hasEnded says whether an error says that a connection is closed.
func hasEnded(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.ENOTSOCK) ||
		errors.Is(err, syscall.EPIPE)
}

// endOf is the error that ends the link, from that of its Carrier.
func endOf(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) {
		return &EndError{err}
	}
	return err
}

// EndError says that the other end has closed the connection. It matches net.ErrClosed.
type EndError struct {
	Err error // of the connection
}

func (e *EndError) Error() string { return "the connection has ended: " + e.Err.Error() }

// Unwrap returns the error of the connection.
func (e *EndError) Unwrap() error { return e.Err }

// Is makes the error match net.ErrClosed.
func (e *EndError) Is(target error) bool { return target == net.ErrClosed }
