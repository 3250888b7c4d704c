package wait

import (
	"encoding/binary"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

const (
	// maxSpin is how long a reader tries again before it blocks: twice what it takes to wake a processor. So it hears of an answer
	// from one that has to be woken, and goes on spinning until that one does too.
	maxSpin = 40 * time.Microsecond
	// After misses in a row, spins that were in vain, it blocks at once for the next rest times.
	misses = 4
	rest   = 64
	// maxBlock is how long a reader blocks in the kernel before it parks. Its thread keeps its place among
	// GOMAXPROCS meanwhile, so it is no longer than a program can do without.
	maxBlock = 100 * time.Microsecond
)

// Reader is one reader of some nonblocking descriptors.
//
// While packets come it blocks in ppoll, alone: of what the runtime's poller watches it hears of each packet that
// arrives, and of each that leaves a socket's send buffer, and wakes one of the process's threads, whether anybody waits or not. Only
// when nothing has come for a while the reader arms an epoll instance of its own, which the runtime's poller watches.
type Reader struct {
	OnPark func() // called before the reader parks, unless nil

	try   func(last bool) bool
	poll  time.Duration // to spin, always; 0 is for as long and as often as it pays, less for never
	one   bool          // GOMAXPROCS is 1: who spins or blocks keeps everybody waiting
	fds   []unix.PollFd // the event, then what is read from
	block time.Duration // in the kernel, before it parks

	flag atomic.Bool // interrupted
	vain int         // spins in a row
	skip int         // waits before the next spin

	waiting sync.Mutex // held while the reader waits
	ending  sync.Mutex // held while the event is signalled
	closed  atomic.Bool

	epfd  int // of epoll
	epoll *os.File
	rc    syscall.RawConn
	park  func(uintptr) bool // arm, made once
	armed bool
}

// NewReader returns the reader of fds, which stay the caller's and open until Close. try reads from them without
// blocking and reports whether that gave anything to return, if only an error; last is the last time before the
// reader blocks, which is poll after the first, or as soon as it seems best if poll is 0, or at once if it is less.
func NewReader(poll time.Duration, try func(last bool) bool, fds ...int) (*Reader, error) {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	r := &Reader{try: try, poll: poll, one: runtime.GOMAXPROCS(0) == 1, block: maxBlock, fds: []unix.PollFd{{Fd: int32(event), Events: unix.POLLIN}}}
	for _, fd := range fds {
		r.fds = append(r.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if err := r.watch(); err != nil {
		unix.Close(event)
		return nil, err
	}
	r.park = r.arm
	return r, nil
}

// watch makes the epoll instance, in which the event alone is armed.
func (r *Reader) watch() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	r.epfd, r.epoll = fd, os.NewFile(uintptr(fd), "epoll")
	for i := range r.fds {
		if err == nil {
			err = r.control(unix.EPOLL_CTL_ADD, i, i == 0)
		}
	}
	if err == nil {
		r.rc, err = r.epoll.SyscallConn()
	}
	if err != nil {
		r.epoll.Close()
	}
	return err
}

func (r *Reader) control(op, i int, on bool) error {
	ev := unix.EpollEvent{Fd: r.fds[i].Fd}
	if on {
		ev.Events = unix.EPOLLIN
	}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(r.epfd, op, int(r.fds[i].Fd), &ev))
}

// Read blocks until try succeeds. Else it fails with rawio.ErrInterrupted, once for each Interrupt, or net.ErrClosed.
func (r *Reader) Read() error {
	for !r.spin() && !r.try(true) {
		if err := r.wait(); err != nil {
			return err
		}
	}
	return nil
}

// spin tries for a while.
func (r *Reader) spin() bool {
	d := r.poll
	switch {
	case d > 0:
	case d < 0 || r.one:
		return false
	case r.skip > 0:
		r.skip--
		return false
	default:
		d = maxSpin
	}
	if r.try(false) {
		return true
	}
	for start := time.Now(); time.Since(start) < d && !r.flag.Load() && !r.closed.Load(); {
		if r.one {
			runtime.Gosched()
		}
		if r.try(false) {
			r.vain = 0
			return true
		}
	}
	if r.vain++; r.vain >= misses {
		r.skip = rest
	}
	return false
}

// wait blocks until a descriptor may be readable.
func (r *Reader) wait() error {
	r.waiting.Lock()
	defer r.waiting.Unlock()
	if !r.flag.Load() && !r.closed.Load() {
		if r.one {
			runtime.Gosched()
		}
		if !r.ready(r.block) {
			if r.OnPark != nil {
				r.OnPark()
			}
			r.armed = false
			_ = r.rc.Read(r.park)
			for i := 1; i < len(r.fds); i++ {
				_ = r.control(unix.EPOLL_CTL_MOD, i, false)
			}
			r.ready(0)
		}
		if r.fds[0].Revents != 0 {
			var b [8]byte
			_, _ = unix.Read(int(r.fds[0].Fd), b[:])
		}
	}
	switch {
	case r.closed.Load():
		return net.ErrClosed
	case r.flag.Swap(false):
		return rawio.ErrInterrupted
	}
	return nil
}

// arm is what parks the reader: it reports whether that is not needed.
func (r *Reader) arm(uintptr) bool {
	if r.armed {
		return true
	}
	r.armed = true
	for i := 1; i < len(r.fds); i++ {
		if r.control(unix.EPOLL_CTL_MOD, i, true) != nil {
			return true
		}
	}
	return r.ready(0) // what came before it was armed may go unreported
}

// ready waits for at most d and reports whether something is there.
func (r *Reader) ready(d time.Duration) bool {
	ts := unix.NsecToTimespec(int64(d))
	n, err := unix.Ppoll(r.fds, &ts, nil)
	return n > 0 || err != nil // an error is a signal
}

// Interrupt implements rawio.Interrupter.
func (r *Reader) Interrupt() {
	r.flag.Store(true)
	r.signal()
}

func (r *Reader) signal() {
	r.ending.Lock()
	defer r.ending.Unlock()
	if r.fds[0].Fd < 0 {
		return
	}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	_, _ = unix.Write(int(r.fds[0].Fd), b[:]) // fails when it has been set many times over
}

// Close ends a Read and all later ones. When it returns the descriptors are no longer used, but by try.
func (r *Reader) Close() {
	if r.closed.Swap(true) {
		return
	}
	r.signal()
	r.waiting.Lock()
	defer r.waiting.Unlock()
	r.ending.Lock()
	defer r.ending.Unlock()
	r.epoll.Close()
	unix.Close(int(r.fds[0].Fd))
	r.fds[0].Fd = -1
}
