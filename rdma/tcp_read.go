package rdma

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rawio"
)

// Lengths of read buffers in octets. A connection begins with a small one, and has a larger one
// while so much comes that it is filled.
const (
	smallReadBuffer = 4 << 10
	largeReadBuffer = 256 << 10
)

// shrinkAfter is how long a connection keeps a larger read buffer while nothing comes.
const shrinkAfter = time.Second

// input is what the holder of the reader role has.
type input struct {
	buf     readBuffer
	need    int // octets that the next FPDU takes
	outcome readOutcome
}

// readOutcome says whether to read on.
type readOutcome uint8

const (
	readOn     readOutcome = iota
	readNoMore             // the peer has finished; only deadlines are left
	readOver               // the connection is at its end, or the program's
)

// readBuffer is what was received and not taken.
type readBuffer struct {
	b      []byte
	at, to int // b[at:to] is not taken
}

func (r *readBuffer) data() []byte { return r.b[r.at:r.to] }

// makeRoom returns room to read into, for need octets from at on. It moves what is there to the
// front where that gives more room, into a larger buffer if it must.
func (r *readBuffer) makeRoom(need int) []byte {
	switch have := r.to - r.at; {
	case have == 0:
		r.at, r.to = 0, 0
	case need > len(r.b):
		r.resize(need)
	case need > len(r.b)-r.at || r.to > len(r.b)-len(r.b)/4:
		r.at, r.to = 0, copy(r.b, r.data())
	}
	if need > len(r.b) {
		r.resize(need)
	}
	return r.b[r.to:]
}

// resize moves what is there to a buffer of another length.
func (r *readBuffer) resize(n int) {
	b := make([]byte, n)
	r.at, r.to, r.b = 0, copy(b, r.data()), b
}

// read is the reading goroutine. It reads unless a goroutine that waits for a completion does.
func (t *tcpConn) read() {
	defer close(t.readerDone)
	for t.in.outcome == readOn {
		if t.role.GrantRequest() {
			t.role.HandOver(nil)
			continue
		}
		t.readOnce(nil)
	}
	t.role.End()
	if t.in.outcome == readNoMore {
		t.waitForEnd()
	} else {
		t.giveBack()
	}
}

// readOnce reads what there is, and handles it. waiter, if it is not nil, is that of the reading
// goroutine, which is interrupted while it reads. The caller has the role.
func (t *tcpConn) readOnce(waiter *callerSignal) {
	buf := &t.in.buf
	room := buf.makeRoom(t.in.need)
	n, err := t.nc.Read(room)
	if waiter != nil {
		waiter.reads.Store(nil)
	}
	buf.to += n
	now := t.lock()
	t.now = now
	if t.readInterrupted {
		t.readInterrupted, t.armed = false, passed
	}
	if n > 0 {
		buf.at += t.core.Receive(now, buf.data())
		t.keepBufferUntil(now, buf)
	}
	t.in.need = t.core.Need(buf.data())
	if err != nil {
		t.takeReadError(now, err, buf)
	}
	grow := n == len(room) && t.mayGrow(buf)
	over := t.core.State() == mpa.Ended || t.core.State() == mpa.Left || t.isOver
	t.unlockAt(now)
	switch {
	case over:
		t.in.outcome = readOver
	case err == io.EOF:
		t.in.outcome = readNoMore
	case grow:
		buf.resize(min(4*len(buf.b), largeReadBuffer))
	}
	t.lends.Store(t.socket != nil && t.in.outcome == readOn && len(buf.b) == smallReadBuffer)
}

// takeReadError takes that a read has failed.
func (t *tcpConn) takeReadError(now rawio.Time, err error, buf *readBuffer) {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		t.armed = passed // nothing is read until it is set anew
		t.core.HandleTimeout(now)
		if !now.Before(t.shrinkAt) {
			t.shrinkAt = rawio.Never
			buf.resize(max(smallReadBuffer, len(buf.data())))
			t.dropReadCharge()
		}
	case err == io.EOF:
		t.core.PeerFinished(now, len(buf.data()))
		*buf = readBuffer{}
		t.dropReadCharge()
	default:
		t.core.Lost(t.asTLSError(err))
	}
}

// giveBack makes a connection that MPA has left what it was.
func (t *tcpConn) giveBack() {
	if t.keeps {
		<-t.ended // what has had this goroutine leave its system call is done
		t.nc.SetReadDeadline(time.Time{})
	}
}

// waitForEnd sees to the deadlines of a connection of which nothing is read any more.
func (t *tcpConn) waitForEnd() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-t.ended:
			return
		case <-tick.C:
			now := t.lock()
			t.core.HandleTimeout(now)
			t.unlockAt(now)
		}
	}
}

// mayGrow reports whether the read buffer may be a larger one. The largest is for those that there
// is memory for.
func (t *tcpConn) mayGrow(buf *readBuffer) bool {
	if len(buf.b) >= largeReadBuffer {
		return false
	}
	if 4*len(buf.b) < largeReadBuffer || t.readCharge > 0 {
		return true
	}
	if !t.dev.tcp.readMemory.TryAcquire(t.remoteAddr().Addr(), largeReadBuffer) {
		return false
	}
	t.readCharge = largeReadBuffer
	return true
}

// dropReadCharge gives back what a large read buffer was charged.
func (t *tcpConn) dropReadCharge() {
	if t.readCharge > 0 {
		t.dev.tcp.readMemory.Release(t.remoteAddr().Addr(), t.readCharge)
		t.readCharge = 0
	}
}

// keepBufferUntil has a large buffer given up when nothing comes for a while. The deadline moves at
// most twice in that time.
func (t *tcpConn) keepBufferUntil(now rawio.Time, buf *readBuffer) {
	if len(buf.b) > smallReadBuffer && (t.shrinkAt == rawio.Never || t.shrinkAt.Sub(now) < shrinkAfter/2) {
		t.shrinkAt = now.Add(shrinkAfter)
	}
}
