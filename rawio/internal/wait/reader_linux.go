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

	"github.com/rddp-go/rddp/internal/pace"
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// maxBlock is how long a reader blocks in the kernel. Its thread keeps its place among GOMAXPROCS meanwhile, so it is no longer than a
// program can do without.
const maxBlock = 100 * time.Microsecond

// waitsBetween is after how many waits what a wake-up costs may be measured anew.
const waitsBetween = 1 << 14

// Reader waits for some nonblocking descriptors, on behalf of one goroutine at a time.
//
// The runtime's poller does not watch the descriptors themselves: it would hear of each packet that arrives, and of each that
// leaves a socket's send buffer, and wake one of the process's threads, whether anybody waits or not. It watches an epoll
// instance in which they are armed for one event each time that the reader parks.
type Reader struct {
	OnPark func() // called before the reader parks or sleeps, unless nil

	fds   []unix.PollFd // the event, then what is read from
	block time.Duration // in the kernel

	waits atomic.Uint32 // so far
	again func()        // called behind waitsBetween of them

	flag   atomic.Bool // interrupted
	asleep atomic.Bool // the reader is, or is about to be and has yet to look at flag

	waiting sync.Mutex // held while the reader waits
	ending  sync.Mutex // held while the event is signalled
	closed  atomic.Bool

	epfd  int // of epoll
	epoll *os.File
	rc    syscall.RawConn
	park  func(uintptr) bool // arm, made once
	armed bool
	stray bool // a descriptor may be armed still: what has come since was reported while nobody waited
}

// NewReader returns the reader of fds, which stay the caller's and open until Close.
func NewReader(fds ...int) (*Reader, error) {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	r := &Reader{block: maxBlock, again: pace.Again, fds: []unix.PollFd{{Fd: int32(event), Events: unix.POLLIN}}}
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
		events := uint32(unix.EPOLLIN)
		if i > 0 {
			events = unix.EPOLLONESHOT
		}
		if err == nil {
			err = r.control(unix.EPOLL_CTL_ADD, i, events)
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

func (r *Reader) control(op, i int, events uint32) error {
	if errno := epollCtl(r.epfd, op, &unix.EpollEvent{Fd: r.fds[i].Fd, Events: events}); errno != 0 {
		return os.NewSyscallError("epoll_ctl", errno)
	}
	return nil
}

// Wait waits as it is told and returns nil, rawio.ErrInterrupted once for each Interrupt, or net.ErrClosed.
func (r *Reader) Wait(p rawio.Pause) error {
	if r.waits.Add(1)%waitsBetween == 0 {
		r.again()
	}
	if p == rawio.Yield || p == rawio.Cede {
		if p == rawio.Cede {
			pace.Cede()
		}
		runtime.Gosched()
		if !r.flag.Load() && !r.closed.Load() {
			return nil
		}
	}
	if p == rawio.Sleep {
		giveWay()
	}
	r.waiting.Lock()
	defer r.waiting.Unlock()
	r.asleep.Store(true)
	if !r.flag.Load() && !r.closed.Load() {
		switch {
		case p == rawio.Park, runtime.GOMAXPROCS(0) == 1: // it would keep everybody waiting
			r.parks()
		case p == rawio.Sleep:
			r.parking()
			r.ready(nil)
		default:
			d := unix.NsecToTimespec(int64(r.block))
			r.ready(&d)
		}
	}
	r.asleep.Store(false)
	switch {
	case r.closed.Load():
		return net.ErrClosed
	case r.flag.Swap(false):
		return rawio.ErrInterrupted
	}
	return nil
}

// giveWay has the goroutines that are ready here go first: all places but this one may be taken for long. Once is not enough, as once in 61 times the scheduler takes
// first who waits for any place, which is the reader itself.
func giveWay() {
	runtime.Gosched()
	runtime.Gosched()
}

// parking says that the reader waits for as long as nothing comes.
func (r *Reader) parking() {
	if r.OnPark != nil {
		r.OnPark()
	}
}

// parks waits in the runtime's poller.
func (r *Reader) parks() {
	r.parking()
	r.armed = false
	_ = r.rc.Read(r.park)
	r.stray = r.harvest() < len(r.fds)-1
}

// arm is what parks the reader: it reports whether that is not needed.
func (r *Reader) arm(uintptr) bool {
	if r.armed {
		return true
	}
	r.armed = true
	for i := 1; i < len(r.fds); i++ {
		if r.control(unix.EPOLL_CTL_MOD, i, unix.EPOLLIN|unix.EPOLLONESHOT) != nil {
			return true
		}
	}
	// What can be read is reported now, unless it was before: an interrupt, and what has come to a descriptor that was armed still.
	return r.flag.Load() || r.closed.Load() || r.stray && r.harvest() > 0
}

// harvest takes what has happened off the epoll instance, which is ready anew for what happens next, and returns how many of the descriptors that are read from can be.
func (r *Reader) harvest() (readable int) {
	var evs [4]unix.EpollEvent
	n, _ := epollHas(r.epfd, evs[:])
	for _, e := range evs[:max(n, 0)] {
		if e.Fd == r.fds[0].Fd {
			r.drain()
		} else {
			readable++
		}
	}
	return readable
}

// ready waits for any of the descriptors in the kernel, for at most d. Who sleeps there sets no timer, which costs a twentieth of the wait: the runtime's monitor
// takes the place away where others want it.
func (r *Reader) ready(d *unix.Timespec) {
	if _, _ = unix.Ppoll(r.fds, d, nil); r.fds[0].Revents != 0 {
		r.drain()
	}
}

// drain resets the event.
func (r *Reader) drain() {
	var b [8]byte
	eventTake(int(r.fds[0].Fd), &b)
}

// Interrupt implements rawio.Interrupter. A reader that is awake sees the flag.
func (r *Reader) Interrupt() {
	r.flag.Store(true)
	if r.asleep.Load() {
		r.signal()
	}
}

func (r *Reader) signal() {
	r.ending.Lock()
	defer r.ending.Unlock()
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	eventAdd(int(r.fds[0].Fd), &b)
}

// Close ends a Wait and all later ones. When it returns the descriptors are no longer used.
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
