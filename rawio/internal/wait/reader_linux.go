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

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// maxBlockTime is how long a reader blocks in the kernel. Its thread keeps its place among
// GOMAXPROCS meanwhile, so it is no longer than a program can do without.
const maxBlockTime = 100 * time.Microsecond

// waitsPerMeasurement is after how many waits what a wake-up costs may be measured anew.
const waitsPerMeasurement = 1 << 14

// Reader waits for some nonblocking descriptors, on behalf of one goroutine at a time.
//
// The runtime's poller does not watch the descriptors themselves. It would see each packet that
// arrives, and each that leaves a socket's send buffer. Each time it would wake one of the
// process's threads, whether a reader waits or not. It watches an epoll instance in which they are
// armed for one event each time that the reader parks.
type Reader struct {
	OnPark func() // called before the reader parks or sleeps, unless nil

	fds       []unix.PollFd // the event, then what is read from
	blockTime time.Duration // in the kernel

	waitCount atomic.Uint32 // so far
	remeasure func()        // called behind waitsPerMeasurement of them

	interrupted atomic.Bool // interrupted
	isAsleep    atomic.Bool // the reader is, or is about to be and has yet to look at interrupted

	waitMu   sync.Mutex // held while the reader waits
	signalMu sync.Mutex // held while the event is signalled
	closed   atomic.Bool

	epfd       int // of epoll
	epoll      *os.File
	rc         syscall.RawConn
	armFunc    func(uintptr) bool // armDescriptors, made once
	isArmed    bool
	mayBeArmed bool // a descriptor may still be armed: events since were reported while no reader waited
}

// NewReader returns the reader of fds, which stay the caller's and open until Close.
func NewReader(fds ...int) (*Reader, error) {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	r := &Reader{blockTime: maxBlockTime, remeasure: pollpolicy.RemeasureWake,
		fds: []unix.PollFd{{Fd: int32(event), Events: unix.POLLIN}}}
	for _, fd := range fds {
		r.fds = append(r.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if err := r.openEpoll(); err != nil {
		unix.Close(event)
		return nil, err
	}
	r.armFunc = r.armDescriptors
	return r, nil
}

// openEpoll makes the epoll instance, in which the event alone is armed.
func (r *Reader) openEpoll() error {
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
		events := uint32(unix.EPOLLIN)
		if i > 0 {
			events = unix.EPOLLONESHOT
		}
		if err == nil {
			err = r.epollControl(unix.EPOLL_CTL_ADD, i, events)
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

func (r *Reader) epollControl(op, i int, events uint32) error {
	if errno := epollCtl(r.epfd, op, &unix.EpollEvent{Fd: r.fds[i].Fd, Events: events}); errno != 0 {
		return os.NewSyscallError("epoll_ctl", errno)
	}
	return nil
}

// Wait waits in the given manner. It returns nil, rawio.ErrInterrupted once for each Interrupt, or
// net.ErrClosed.
func (r *Reader) Wait(p rawio.Pause) error {
	if r.waitCount.Add(1)%waitsPerMeasurement == 0 {
		r.remeasure()
	}
	if p == rawio.Yield || p == rawio.Cede {
		if p == rawio.Cede {
			pollpolicy.YieldCPU()
		}
		runtime.Gosched()
		if !r.interrupted.Load() && !r.closed.Load() {
			return nil
		}
	}
	if p == rawio.Sleep {
		yieldTwice()
	}
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	r.isAsleep.Store(true)
	if !r.interrupted.Load() && !r.closed.Load() {
		switch {
		case p == rawio.Park, runtime.GOMAXPROCS(0) == 1: // blocking would stop all goroutines
			r.parkInPoller()
		case p == rawio.Sleep:
			r.notifyPark()
			r.blockInKernel(nil)
		default:
			d := unix.NsecToTimespec(int64(r.blockTime))
			r.blockInKernel(&d)
		}
	}
	r.isAsleep.Store(false)
	switch {
	case r.closed.Load():
		return net.ErrClosed
	case r.interrupted.Swap(false):
		return rawio.ErrInterrupted
	}
	return nil
}

// yieldTwice lets the goroutines that are ready here go first: all places but this one may be taken
// for long. Once is not enough. Once in 61 times the scheduler first takes a goroutine that waits
// for any place, which is the reader itself.
func yieldTwice() {
	runtime.Gosched()
	runtime.Gosched()
}

// notifyPark says that the reader waits for as long as nothing comes.
func (r *Reader) notifyPark() {
	if r.OnPark != nil {
		r.OnPark()
	}
}

// parkInPoller waits in the runtime's poller.
func (r *Reader) parkInPoller() {
	r.notifyPark()
	r.isArmed = false
	_ = r.rc.Read(r.armFunc)
	r.mayBeArmed = r.takeEvents() < len(r.fds)-1
}

// armDescriptors is what parks the reader: it reports whether that is not needed.
func (r *Reader) armDescriptors(uintptr) bool {
	if r.isArmed {
		return true
	}
	r.isArmed = true
	for i := 1; i < len(r.fds); i++ {
		if r.epollControl(unix.EPOLL_CTL_MOD, i, unix.EPOLLIN|unix.EPOLLONESHOT) != nil {
			return true
		}
	}
	// Report now what can be read, unless it was reported before. That is an interrupt, and what
	// has come to a descriptor that was still armed.
	return r.interrupted.Load() || r.closed.Load() || r.mayBeArmed && r.takeEvents() > 0
}

// takeEvents takes what has happened off the epoll instance, which is ready anew for what happens
// next. It returns how many of the descriptors that are read from are readable.
func (r *Reader) takeEvents() (readable int) {
	var evs [4]unix.EpollEvent
	n, _ := epollWaitNow(r.epfd, evs[:])
	for _, e := range evs[:max(n, 0)] {
		if e.Fd == r.fds[0].Fd {
			r.resetEvent()
		} else {
			readable++
		}
	}
	return readable
}

// blockInKernel waits for any of the descriptors in the kernel, for at most d. A reader that sleeps
// there sets no timer, which costs a twentieth of the wait. The runtime's monitor takes its place
// away where others want it.
func (r *Reader) blockInKernel(d *unix.Timespec) {
	if _, _ = unix.Ppoll(r.fds, d, nil); r.fds[0].Revents != 0 {
		r.resetEvent()
	}
}

// resetEvent resets the event.
func (r *Reader) resetEvent() {
	var b [8]byte
	eventfdRead(int(r.fds[0].Fd), &b)
}

// Interrupt implements rawio.Interrupter. A reader that is awake sees the flag.
func (r *Reader) Interrupt() {
	r.interrupted.Store(true)
	if r.isAsleep.Load() {
		r.signalEvent()
	}
}

func (r *Reader) signalEvent() {
	r.signalMu.Lock()
	defer r.signalMu.Unlock()
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	eventfdWrite(int(r.fds[0].Fd), &b)
}

// Close ends a Wait and all later ones. When it returns the descriptors are no longer used.
func (r *Reader) Close() {
	if r.closed.Swap(true) {
		return
	}
	r.signalEvent()
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	r.signalMu.Lock()
	defer r.signalMu.Unlock()
	r.epoll.Close()
	unix.Close(int(r.fds[0].Fd))
	r.fds[0].Fd = -1
}
