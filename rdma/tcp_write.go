package rdma

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rawio"
)

// inlineMost is how many octets a goroutine writes itself when it gives the connection lock up. To
// wake another one for less would cost more.
const inlineMost = 16 << 10

// emssEvery is how often TCP is asked for its EMSS: the path MTU may change.
const emssEvery = time.Second

// unlockAt does what has become due, writes a little, and gives the lock up.
func (t *tcpConn) unlockAt(now rawio.Time) {
	for t.settle(now) {
		act, pieces := t.core.Next(now, inlineMost)
		if act == mpa.ActFinish {
			t.finishSending(now)
			continue
		}
		if act == mpa.ActNone {
			break
		}
		all := 0
		for _, p := range pieces {
			all += len(p)
		}
		t.mu.Unlock()
		n, err := t.socket.tryWrite(pieces)
		t.mu.Lock()
		t.takeWritten(now, n, err)
		t.wasWritten.Broadcast()
		if n < all {
			t.wakeWriter()
		}
	}
	t.mu.Unlock()
	t.Settled()
}

// settle does what has become due under the lock. It reports whether the caller is to write.
func (t *tcpConn) settle(now rawio.Time) (write bool) {
	t.runQPWork()
	t.handleEvents()
	if t.core.State() == mpa.Ended {
		t.closeSocket()
	}
	t.armDeadline()
	if t.writesLater || !t.core.HasOutput() {
		return false
	}
	if now.Sub(t.emssAsked) > emssEvery {
		t.emssAsked = now
		t.askEMSS()
	}
	if t.socket == nil || t.core.NextLen() > inlineMost {
		t.wakeWriter()
		return false
	}
	return true
}

// askEMSS takes what TCP says of its segments.
func (t *tcpConn) askEMSS() {
	if emss := t.socket.emss(); emss > 0 {
		t.core.SetEMSS(emss)
	}
}

// finishSending closes this half of the TCP connection.
func (t *tcpConn) finishSending(now rawio.Time) {
	if c, ok := t.nc.(interface{ CloseWrite() error }); ok {
		c.CloseWrite() // an error shows when something is read
	}
	t.core.Finished(now)
}

// takeWritten takes what TCP has taken.
func (t *tcpConn) takeWritten(now rawio.Time, n int, err error) {
	t.now = now
	t.core.Written(now, n)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.core.Lost(err)
	}
}

// wakeWriter leaves the rest to the writing goroutine. Under the connection lock.
func (t *tcpConn) wakeWriter() {
	if t.writesLater || t.isOver {
		return
	}
	t.writesLater = true
	select {
	case t.writeWake <- struct{}{}:
	default:
	}
}

// interruptWrite has the writing goroutine leave its system call. Under the connection lock.
func (t *tcpConn) interruptWrite() {
	if t.isWriting && !t.interrupted {
		t.interrupted = true
		t.nc.SetWriteDeadline(longAgo)
	}
}

// writeLater is the writing goroutine: it waits for TCP to have room.
func (t *tcpConn) writeLater() {
	for {
		select {
		case <-t.writeWake:
		case <-t.ended:
			return
		}
		for t.writeBatch() {
		}
	}
}

// writeBatch writes what there is, and reports whether there was anything.
func (t *tcpConn) writeBatch() bool {
	now := t.lock()
	t.runQPWork()
	t.handleEvents()
	act, pieces := t.core.Next(now, mpa.MaxBatch)
	switch act {
	case mpa.ActNone:
		t.writesLater = false
		t.unlockAt(now)
		return false
	case mpa.ActFinish:
		t.finishSending(now)
		t.unlockAt(now)
		return true
	}
	if t.interrupted {
		t.interrupted = false
		t.nc.SetWriteDeadline(time.Time{})
	}
	_, isTCP := t.nc.(*net.TCPConn)
	if !isTCP { // such as TLS: a write cannot be interrupted, and one long piece is as good
		t.joined = t.core.CopyOut(t.joined)
	}
	t.isWriting = isTCP
	t.mu.Unlock()
	n, err := t.write(pieces, isTCP)
	now = t.lock()
	t.isWriting = false
	t.takeWritten(now, n, err)
	t.wasWritten.Broadcast()
	t.unlockAt(now)
	return true
}

// write gives pieces to TCP and waits until it has taken them.
func (t *tcpConn) write(pieces [][]byte, isTCP bool) (int, error) {
	if !isTCP {
		return t.nc.Write(t.joined)
	}
	t.vec = append(t.vec[:0], pieces...)
	t.left = t.vec // WriteTo consumes it
	n, err := t.left.WriteTo(t.nc)
	t.left = nil
	clear(t.vec)
	return int(n), err
}
