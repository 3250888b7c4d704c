package compat

import (
	"io"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/grace"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
)

// Writes end as reads do: by the deadline, SO_SNDTIMEO, O_NONBLOCK, Close, and the end of the
// association.
func TestWritesThatEnd(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(t *testing.T, a, b *Socket)
		want error
	}{
		"a deadline": {func(t *testing.T, a, _ *Socket) {
			must.OK(t, a.SetReadDeadline(time.Now().Add(time.Hour)))
			must.OK(t, a.SetWriteDeadline(time.Now()))
		}, os.ErrDeadlineExceeded},
		"SO_SNDTIMEO": {func(t *testing.T, a,
			_ *Socket) {
			must.OK(t, a.SetTimeout(true, 10*time.Millisecond))
		}, syscall.EAGAIN},
		"O_NONBLOCK":            {func(t *testing.T, a, _ *Socket) { must.OK(t, a.SetNonblock(true)) }, syscall.EAGAIN},
		"an ABORT of the peer":  {func(t *testing.T, a, b *Socket) { b.conn.Abort("why") }, syscall.ECONNRESET},
		"an ABORT of this side": {func(t *testing.T, a, b *Socket) { a.conn.Abort("why") }, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t)
			must.OK(t, a.SetBuffer(true, 5000))
			must.OK(t, b.SetReadDeadline(time.Now())) // nobody reads
			row.end(t, a, b)
			var err error
			for i := 0; err == nil; i++ {
				_, err = a.Send(make([]byte, 5000), nil)
			}
			check.Equal(t, name, err, row.want)
			a.conn.Abort("")
			b.conn.Abort("")
		})
	}
	t.Run("a timeout of one call does not end another", func(t *testing.T) {
		a, b := newPair(t)
		must.OK(t, a.SetBuffer(true, 5000))
		must.OK(t, a.SetNonblock(true))
		for err := error(nil); err == nil; _, err = a.Send(make([]byte, 5000), nil) {
		}
		must.OK(t, a.SetNonblock(false))
		sent := make(chan error)
		go func() { _, err := a.Send(make([]byte, 5000), nil); sent <- err }()
		for range 100 { // news that is none for the writer
			a.writeWaits.setLookAgain(true)
			a.writeWaits.setLookAgain(false)
		}
		go func() { // makes room
			for readSocket(b, 5000).err == nil {
			}
		}()
		check.Equal(t, "a write that had to wait", <-sent, nil)
		a.conn.Abort("")
	})
	t.Run("a socket that is closed meanwhile", func(t *testing.T) {
		a, b := newPair(t)
		a.cancelClosedCtx() // as Close does
		must.OK(t, a.readWaits.setConnDeadline(pastTime))
		checkSame(t, readSocket(a, 9), recv{err: io.EOF})
		must.OK(t, a.writeWaits.setConnDeadline(pastTime))
		must.OK(t, a.SetBuffer(true, 5000))
		var err error
		for err == nil {
			_, err = a.Send(make([]byte, 5000), nil)
		}
		check.Equal(t, "a write", err, error(syscall.EPIPE))
		b.conn.Abort("")
		for a.conn.Err() == nil {
			_ = readSocket(a, 9)
		}
		checkSame(t, readSocket(a, 9), recv{err: io.EOF})
	})
}

// What a call hears of an association that has failed is why, once, and from then on another errno.
func TestAFailureIsHeardOnce(t *testing.T) {
	for name, row := range map[string]struct {
		why         error
		first, then syscall.Errno
	}{
		"an ABORT of the peer": {syscall.ECONNRESET, syscall.ECONNRESET, syscall.ENOTCONN},
		"no answer":            {syscall.ETIMEDOUT, syscall.ETIMEDOUT, syscall.ENOTCONN},
		"a shutdown":           {sctp.ErrShutdown, syscall.ENOTCONN, syscall.ENOTCONN},
	} {
		s := NewSocket(false, false)
		check.Equal(t, name, s.failureErrno(row.why, syscall.ENOTCONN), error(row.first))
		check.Equal(t, name+", then", s.failureErrno(row.why, syscall.ENOTCONN), error(row.then))
		check.Equal(t, name+", of a write", s.failureErrno(row.why, syscall.EPIPE),
			error(map[bool]syscall.Errno{true: syscall.EPIPE}[true]))
		must.OK(t, s.Close())
	}
	a, b := newPair(t)
	must.Get(a.Send([]byte("why"), &SndRcvInfo{Flags: flagAbort}))(t)
	check.Equal(t, "a read of the side that aborts", readSocket(a, 9).err, error(syscall.ENOTCONN))
	_, err := a.Send([]byte("x"), nil)
	check.Equal(t, "a write of the side that aborts", err, error(syscall.EPIPE))
	must.OK(t, b.Close())
}

// A socket that is closed fails every call by EBADF; its deadlines too.
func TestCallsOfAClosedSocket(t *testing.T) {
	s := NewSocket(false, false)
	must.OK(t, s.Close())
	_, peel := s.PeelOff(0)
	_, connect := s.Connect(nil)
	_, descriptor := s.Descriptor()
	_, buffer := s.Buffer(true)
	for name, err := range map[string]error{
		"read deadline": s.SetReadDeadline(time.Time{}), "write deadline": s.SetWriteDeadline(time.Time{}),
		"peel off": peel, "descriptor": descriptor, "buffer": buffer,
		"set a buffer": s.SetBuffer(true, 1), "close": s.Close(), "listen": s.Listen(),
		"timeout": s.SetTimeout(true, 1),
	} {
		check.Equal(t, name, err, error(syscall.EBADF))
	}
	l, _ := listenSocket(t)
	l.cancelClosedCtx() // as Close does, while Accept waits
	_, accept := l.acceptFrom(l.listener)
	check.Equal(t, "accept, closed meanwhile", accept, error(syscall.EINVAL))
	check.Equal(t, "connect to nothing", connect, error(syscall.EINVAL))
	fd, _ := s.Descriptor()
	check.Equal(t, "its descriptor", fd, -1)
	check.Equal(t, "closed", s.Closed(), true)
}

// Options in the caller's memory: what is no memory, too long, or of no length is refused.
func TestOptionsInMemory(t *testing.T) {
	s := NewSocket(false, false)
	defer s.Close()
	b, err := callerMemory(4095, 1)
	check.That(t, b == nil && err == syscall.EFAULT, "the page of nil: %v, %v", b, err)
	b, err = callerMemory(0, 0)
	check.That(t, b == nil && err == nil, "nothing at nil: %v, %v", b, err)
	b, err = callerMemory(4096, 7)
	check.That(t, len(b) == 7 && cap(b) == 7 && err == nil, "the first page: %d octets, %v", len(b), err)
	long := make([]byte, maxOptionLen+1)
	copy(long, sockaddrs(0, "127.0.0.1"))
	for n, want := range map[int]error{maxOptionLen: syscall.EINVAL, maxOptionLen + 1: syscall.EINVAL,
		-1: syscall.EINVAL, 16: nil} {
		check.Equal(t, "to bind", s.SetsockoptAt(optBindAdd, uintptr(unsafe.Pointer(&long[0])), uintptr(n)), want)
	}
	var v [8]byte
	for n, want := range map[int32]error{-1: syscall.EINVAL, 3: syscall.EINVAL, 4: nil, 8: nil, 1 << 30: nil} {
		length := n
		if n == 1<<30 { // what is beyond the longest option is not looked at
			check.Equal(t, "a length", s.GetsockoptAt(optNoDelay, uintptr(unsafe.Pointer(&long[0])),
				uintptr(unsafe.Pointer(&length))), want)
		} else {
			check.Equal(t, "a length", s.GetsockoptAt(optNoDelay, uintptr(unsafe.Pointer(&v[0])),
				uintptr(unsafe.Pointer(&length))), want)
		}
		if want == nil {
			check.Equal(t, "octets", length, int32(4))
		} else {
			check.Equal(t, "the length after an error", length, n)
		}
	}
	length := int32(4)
	check.Equal(t, "unknown", s.GetsockoptAt(99, uintptr(unsafe.Pointer(&v[0])), uintptr(unsafe.Pointer(&length))),
		error(syscall.ENOPROTOOPT))
}

// overMemory returns as many associations as asked for over links of memory, and the link of the
// clients, which marks no packets and may lose all.
func overMemory(t *testing.T, n int) (clients, servers []*Socket, out *mempair.LossyLink) {
	return overMemoryWith(t, n, sctp.Config{})
}

// overMemoryWith is overMemory with options of both sides.
func overMemoryWith(t *testing.T, n int, cfg sctp.Config) (clients, servers []*Socket, out *mempair.LossyLink) {
	la, lb := mempair.New(t, mem.Options{})
	out = &mempair.LossyLink{Link: la}
	ta := must.Get(sctp.NewTransport(struct{ rawio.Link }{out}, nil))(t)
	tb := must.Get(sctp.NewTransport(lb, nil))(t)
	l := must.Get(tb.Listen(0, &cfg))(t)
	cfg.Events = maxNotifications
	t.Cleanup(func() { l.Close(); ta.Close(); tb.Close() })
	for range n {
		c := must.Get(ta.Dial(t.Context(), netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), l.Port()), &cfg))(t)
		a, b := NewSocket(false, false), NewSocket(false, false)
		a.setConn(c)
		b.setConn(must.Get(l.Accept(t.Context()))(t))
		clients, servers = append(clients, a), append(servers, b)
	}
	return clients, servers, out
}

// Sockets whose peers are gone have one second for all of them, however they are closed; one that
// lingers has its own time, and takes none of theirs.
func TestClosingManyWhosePeersAreGone(t *testing.T) {
	const many = 50
	linger := func(d time.Duration) func(s *Socket) {
		return func(s *Socket) { s.opts.linger, s.opts.lingerTime = true, d }
	}
	oneByOne := func(all []*Socket) {
		for _, s := range all {
			_ = s.Close()
		}
	}
	atOnce := func(all []*Socket) {
		var w sync.WaitGroup
		for _, s := range all {
			w.Go(func() { _ = s.Close() })
		}
		w.Wait()
	}
	for name, row := range map[string]struct {
		n          int
		set        func(s *Socket)
		close      func(all []*Socket)
		here       bool // the peers are
		least, end time.Duration
	}{
		"one": {1, nil, oneByOne, false, time.Second, time.Second},
		"one after the other": {many, nil, oneByOne, false, time.Second,
			time.Second + many*5*time.Millisecond},
		"at once": {many, nil, atOnce, false, time.Second, time.Second},
		"that linger, one after the other": {3, linger(3 * time.Second), oneByOne, false, 9 * time.Second,
			9 * time.Second},
		"that linger, at once": {many, linger(3 * time.Second), atOnce, false, 3 * time.Second,
			3 * time.Second},
		"that do not linger, by SO_LINGER": {many, linger(0), oneByOne, false, 0, 0},
		"whose peers are there":            {many, nil, oneByOne, true, 0, many * 2 * time.Millisecond},
		"that linger and whose peers answer": {many, linger(3 * time.Second), oneByOne, true, 0,
			100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closeGrace = grace.Period{}
				all, _, out := overMemory(t, row.n)
				for _, s := range all {
					if row.set != nil {
						row.set(s)
					}
				}
				out.Lose.Store(!row.here)
				start := time.Now()
				row.close(all)
				took := time.Since(start)
				check.That(t, took >= row.least && took <= row.end, "closing %d takes %v, not %v to %v", row.n, took,
					row.least, row.end)
				for _, s := range all {
					s.conn.Abort("")
				}
			})
		})
	}
}

// A change that the link does not allow fails, and is not there afterwards either.
func TestOptionsThatTheLinkRefuses(t *testing.T) {
	all, _, _ := overMemory(t, 1)
	s := all[0]
	checkSame(t, s.Setsockopt(optPeerAddrParams, paramsOf(0, 0, 0, 0, sppDSCP, 0, 46<<2)), error(syscall.EOPNOTSUPP))
	got := make([]byte, 156)
	must.Get(s.Getsockopt(optPeerAddrParams, got))(t)
	check.Equal(t, "the DSCP", got[4+sockaddrStorageLen+22], 0)
	must.OK(t, s.Setsockopt(optNoDelay, uint32s(1))) // others go on
	s.opts.cfg.DSCP = 46                             // so that the next fails too
	var events [numEvents]byte
	events[eventSenderDry] = 1
	checkSame(t, s.Setsockopt(optEvents, events[:]), error(syscall.EOPNOTSUPP))
	list, last := takeNotifications(s)
	check.That(t, len(list)+len(last) == 0 && s.opts.events == [numEvents]byte{} && !s.notifications.hasWatcher,
		"it is subscribed to all the same: % x", list)
	s.conn.Abort("")
}
