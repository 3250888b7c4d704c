package tlskeys

import (
	"cmp"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
)

// maxUnread bounds what the peer may send ahead of what TLS reads. Certificates may have 256 KiB.
const maxUnread = 512 << 10

var errTooMuch = errors.New("the peer sends more than a handshake needs")

// pipe is the net.Conn of a session. What is written is held until TLS waits for an answer, or
// until somebody takes it. So a flight is one message, and a client's last flight does not leave
// before its keys are there.
type pipe struct {
	pool   *Pool
	flush  func(records []byte) // called without the lock
	mu     sync.Mutex
	wake   sync.Cond
	unread []byte
	left   int // of the record that is being read
	held   []byte
	err    error // of reading, once unread is empty
	isIdle bool  // TLS waits for the peer
	isOver bool  // the session has ended
}

func newPipe(pool *Pool, flush func(records []byte)) *pipe {
	p := &pipe{pool: pool, flush: flush}
	p.wake.L = &p.mu
	return p
}

// Read waits for records of the peer, and sends what was written before it does. It gives no more
// than the rest of one record: so what TLS has not asked for stays unread.
func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.unread) == 0 && p.err == nil {
		if held := p.held; len(held) > 0 {
			p.held = nil
			p.mu.Unlock()
			p.flush(held)
			p.mu.Lock()
			continue
		}
		p.isIdle = true
		p.wake.Broadcast()
		p.pool.release()
		for len(p.unread) == 0 && p.err == nil {
			p.wake.Wait()
		}
		p.mu.Unlock()
		p.pool.acquire()
		p.mu.Lock()
	}
	if len(p.unread) == 0 {
		return 0, p.err
	}
	if p.left == 0 {
		p.left = cmp.Or(keymgmt.RecordLen(p.unread), len(p.unread)) // messages hold whole ones
	}
	n := copy(b, p.unread[:min(p.left, len(p.unread))])
	p.unread, p.left = p.unread[n:], p.left-n
	return n, nil
}

// unreadLen returns how many octets TLS has not read.
func (p *pipe) unreadLen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.unread)
}

// Write holds the records.
func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = append(p.held, b...)
	return len(b), nil
}

// takeHeld returns what was written since the last flush.
func (p *pipe) takeHeld() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.held
	p.held = nil
	return held
}

// feed gives TLS records of the peer. It does not wait.
func (p *pipe) feed(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
	case len(p.unread)+len(b) > maxUnread:
		p.failLocked(errTooMuch)
	default:
		p.unread, p.isIdle = append(p.unread, b...), false
		p.wake.Broadcast()
	}
}

// fail ends reading.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failLocked(err)
}

func (p *pipe) failLocked(err error) {
	if p.err == nil {
		p.err, p.unread, p.isIdle = err, nil, false
		p.wake.Broadcast()
	}
}

// end notes that the session has ended.
func (p *pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failLocked(io.EOF)
	p.isOver = true
	p.wake.Broadcast()
}

// waitIdle waits until TLS waits, or has ended.
func (p *pipe) waitIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.isIdle && !p.isOver {
		p.wake.Wait()
	}
}

// Close ends reading.
func (p *pipe) Close() error {
	p.fail(io.EOF)
	return nil
}

// The rest of a net.Conn. Deadlines are the owner's: he closes the session.
type pipeAddr struct{}

func (pipeAddr) Network() string { return "sctp" }
func (pipeAddr) String() string  { return "key management" }

func (p *pipe) LocalAddr() net.Addr              { return pipeAddr{} }
func (p *pipe) RemoteAddr() net.Addr             { return pipeAddr{} }
func (p *pipe) SetDeadline(time.Time) error      { return nil }
func (p *pipe) SetReadDeadline(time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
