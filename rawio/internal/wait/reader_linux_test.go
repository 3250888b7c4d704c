package wait

import (
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// pipe is what the tests read from: a reader of single octets, which pauses as it is told.
type pipe struct {
	*Reader
	fds   [2]int
	last  byte
	tries chan struct{} // a token for a try, as far as there is room
	pause []rawio.Pause // one after the other, the last again and again
}

// states are the ways in which a reader waits.
var states = []struct {
	name  string
	pause []rawio.Pause
	procs int
}{
	{"yielding", []rawio.Pause{rawio.Yield}, 2},
	{"yielding alone", []rawio.Pause{rawio.Yield}, 1},
	{"blocking", []rawio.Pause{rawio.Block}, 2},
	{"blocking alone", []rawio.Pause{rawio.Block}, 1},
	{"parked", []rawio.Pause{rawio.Park}, 2},
	{"sleeping", []rawio.Pause{rawio.Sleep}, 2},
	{"sleeping alone", []rawio.Pause{rawio.Sleep}, 1},
	{"by turns", []rawio.Pause{rawio.Yield, rawio.Cede, rawio.Block, rawio.Sleep, rawio.Park}, 2},
}

func newPipe(t *testing.T, pause ...rawio.Pause) *pipe {
	t.Helper()
	p := &pipe{tries: make(chan struct{}, 1), pause: pause}
	must.OK(t, unix.Pipe2(p.fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC))
	p.Reader = must.Get(NewReader(p.fds[0]))(t)
	p.blockTime = time.Hour
	t.Cleanup(func() {
		p.Close()
		unix.Close(p.fds[0])
		unix.Close(p.fds[1])
	})
	return p
}

// tryRead reads an octet and reports whether there was one.
func (p *pipe) tryRead() bool {
	select {
	case p.tries <- struct{}{}:
	default:
	}
	var b [1]byte
	n, _ := unix.Read(p.fds[0], b[:])
	p.last = b[0]
	return n == 1
}

// Read reads the next octet, as the reader of a link does.
func (p *pipe) Read() error {
	for i := 0; !p.tryRead(); i++ {
		if err := p.Wait(p.pause[min(i, len(p.pause)-1)]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipe) writeByte(t *testing.T, b byte) {
	t.Helper()
	must.Do(unix.Write(p.fds[1], []byte{b}))(t)
}

// readAsync reads in the background, once the reader has found nothing.
func (p *pipe) readAsync() <-chan error {
	select {
	case <-p.tries:
	default:
	}
	end := make(chan error, 1)
	go func() { end <- p.Read() }()
	<-p.tries
	return end
}

func eachState(t *testing.T, f func(t *testing.T, p *pipe)) {
	for _, s := range states {
		t.Run(s.name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(s.procs))
			f(t, newPipe(t, s.pause...))
		})
	}
}

// An armed reader hears of what comes, once.
func TestArmedReaderHearsOfWhatComesOnce(t *testing.T) {
	p := newPipe(t)
	heard := func() bool {
		return must.Get(unix.Poll([]unix.PollFd{{Fd: int32(p.epfd), Events: unix.POLLIN}}, 0))(t) > 0
	}
	check.That(t, !p.armDescriptors(0) && !heard(), "nothing has come")
	p.writeByte(t, 1)
	check.That(t, heard() && p.takeEvents() == 1, "what comes is not heard of")
	p.writeByte(t, 2)
	check.That(t, !heard(), "what comes is heard of again")
	p.isArmed = false
	check.That(t, !p.armDescriptors(0) && heard(), "what has come is not heard of once it is asked for")
}

// What a wake-up costs is measured anew after so many waits, of whatever kind.
func TestWakeIsMeasuredAsLinksAreRead(t *testing.T) {
	p, times := newPipe(t), 0
	p.remeasure = func() { times++ }
	for range 3 * waitsPerMeasurement / 2 {
		must.OK(t, p.Wait(rawio.Yield))
	}
	for range 3 * waitsPerMeasurement / 2 {
		must.Do(unix.Write(p.fds[1], []byte("x")))(t)
		must.OK(t, p.Wait(rawio.Park))
	}
	check.Equal(t, "measurements", times, 3)
}

// Whatever a reader does meanwhile, it reads what comes, again and again.
func TestReadsWhatComes(t *testing.T) {
	eachState(t, func(t *testing.T, p *pipe) {
		for i := range byte(100) {
			end := p.readAsync()
			p.writeByte(t, i)
			err := <-end
			must.That(t, err == nil && p.last == i, "octet %d: %d, %v", i, p.last, err)
		}
	})
}

// What is there before the reader comes is read at once, and none of it stays behind unnoticed.
func TestReadsWhatIsThere(t *testing.T) {
	eachState(t, func(t *testing.T, p *pipe) {
		for range 10 {
			for i := range byte(10) {
				p.writeByte(t, i)
			}
			for i := range byte(10) {
				err := p.Read()
				must.That(t, err == nil && p.last == i, "octet %d: %d, %v", i, p.last, err)
			}
			end := p.readAsync() // and then it waits
			p.writeByte(t, 99)
			err := <-end
			must.That(t, err == nil && p.last == 99, "%v, %v", p.last, err)
		}
	})
}

// An interrupted reader comes back once, whether it waits or is yet to begin; what is there goes
// first.
func TestInterruptedReaderComesBackOnce(t *testing.T) {
	eachState(t, func(t *testing.T, p *pipe) {
		for range 10 {
			end := p.readAsync()
			p.Interrupt()
			must.Equal(t, "error", <-end, rawio.ErrInterrupted)
			p.Interrupt()
			p.Interrupt()
			p.writeByte(t, 1)
			err := p.Read()
			must.That(t, err == nil && p.last == 1, "%v, %v", p.last, err)
			must.Equal(t, "error", p.Read(), rawio.ErrInterrupted)
			end = p.readAsync()
			p.writeByte(t, 2)
			err = <-end
			must.That(t, err == nil && p.last == 2, "%v, %v", p.last, err)
		}
	})
}

// An interrupt that comes while the reader is on its way to sleep is not lost.
func TestInterruptOnTheWayToSleep(t *testing.T) {
	p := newPipe(t, rawio.Park)
	for i := range 2000 {
		end := make(chan error, 1)
		go func() { end <- p.Wait(rawio.Park) }()
		for range i % 200 {
			_ = p.isAsleep.Load()
		}
		p.Interrupt()
		must.Equal(t, "error", <-end, rawio.ErrInterrupted)
	}
	p.OnPark = p.Interrupt // between its first look and its last
	must.Equal(t, "error", p.Wait(rawio.Park), rawio.ErrInterrupted)
}

// What comes after a reader was interrupted, before it parks again, is not lost: the descriptor was
// armed still, and reported it to nobody.
func TestReadsWhatCameWhileArmed(t *testing.T) {
	p := newPipe(t, rawio.Park)
	in, out, err := os.Pipe()
	must.OK(t, err)
	defer out.Close()
	heard := make(chan bool)
	go func() {
		defer in.Close()
		for b := make([]byte, 1); ; heard <- true {
			if _, err := in.Read(b); err != nil {
				return
			}
		}
	}()
	for i := range byte(100) {
		p.OnPark = p.Interrupt // it is armed, and does not sleep
		must.Equal(t, "error", p.Wait(rawio.Park), rawio.ErrInterrupted)
		p.OnPark = func() {
			p.writeByte(t, i)
			must.Get(out.Write([]byte{0}))(t)
			<-heard // so the runtime has looked what is reported
		}
		must.OK(t, p.Wait(rawio.Park))
		must.That(t, p.tryRead() && p.last == i, "octet %d: %d", i, p.last)
	}
}

// A reader that is awake is interrupted by a flag alone, which it sees before it sleeps; the event
// is for one that sleeps.
func TestReaderThatIsAwakeNeedsNoEvent(t *testing.T) {
	p := newPipe(t)
	for range 3 {
		p.Interrupt()
		n := must.Get(unix.Poll(p.Reader.fds[:1], 0))(t)
		check.Equal(t, "events", n, 0)
		check.Equal(t, "error", p.Wait(rawio.Park), rawio.ErrInterrupted)
	}
}

// Close ends a reader that waits, and all that come later; an Interrupt then does nothing.
func TestCloseEndsEveryReader(t *testing.T) {
	eachState(t, func(t *testing.T, p *pipe) {
		end := p.readAsync()
		p.Close()
		must.Equal(t, "error", <-end, net.ErrClosed)
		p.Interrupt()
		must.Equal(t, "error", p.Read(), net.ErrClosed)
	})
}

// A reader that blocks in the kernel, or sleeps there, does so for a moment only, and comes back
// with nothing.
func TestBlocksForAMomentOnly(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	p := newPipe(t)
	p.blockTime = maxBlockTime
	must.OK(t, p.Wait(rawio.Block))
}

// Goroutines that are ready have their turn before the reader sleeps, whom the scheduler takes
// first as well.
func TestOthersHaveTheirTurnBeforeSleep(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // nobody else runs them
	p := newPipe(t)
	for range 1000 {
		var ran atomic.Bool
		go ran.Store(true)
		p.Interrupt()
		must.Equal(t, "error", p.Wait(rawio.Sleep), rawio.ErrInterrupted)
		must.That(t, ran.Load(), "the reader would have slept over one that is ready")
	}
}

// A reader hears that it is about to park or to sleep, each time, and not of other waits.
func TestHearsThatItParks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // with one it never blocks
	p := newPipe(t)
	parked := 0
	p.OnPark = func() { parked++ }
	for i, pause := range []rawio.Pause{rawio.Yield, rawio.Cede, rawio.Block, rawio.Sleep, rawio.Park, rawio.Park} {
		p.writeByte(t, 1)
		must.OK(t, p.Wait(pause))
		want := max(i-2, 0)
		check.That(t, parked == want, "pause %d: parked or slept %d times, want %d", i, parked, want)
		check.Equal(t, "it has been to the runtime's poller", p.isArmed, pause == rawio.Park)
	}
	p.Interrupt()
	check.Equal(t, "error", p.Wait(rawio.Park), rawio.ErrInterrupted)
	check.Equal(t, "times that it has parked or slept, interrupted before", parked, 3)
}

// What has woken a reader that waits does not do so again.
func TestIsWokenOnceBySignal(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, pause := range []rawio.Pause{rawio.Block, rawio.Sleep, rawio.Park} {
		p := newPipe(t)
		p.OnPark = p.Interrupt
		if pause == rawio.Block {
			p.signalEvent()
			must.OK(t, p.Wait(pause))
		} else {
			must.Equal(t, "error", p.Wait(pause), rawio.ErrInterrupted)
		}
		n, err := unix.Poll(p.Reader.fds[:1], 0)
		check.That(t, n == 0 && err == nil, "pause %d: the event is set: %d, %v", pause, n, err)
		mode := must.Get(unix.FcntlInt(uintptr(p.Reader.fds[0].Fd), unix.F_GETFL, 0))(t)
		child := must.Get(unix.FcntlInt(uintptr(p.Reader.fds[0].Fd), unix.F_GETFD, 0))(t)
		check.That(t, mode&unix.O_NONBLOCK != 0 && child == unix.FD_CLOEXEC,
			"it blocks, or children have it: %#x, %#x", mode, child)
	}
}

func TestDescriptorThatCannotBeWatchedIsAnError(t *testing.T) {
	check.Fails(NewReader(-1))(t, "a reader of nothing", unix.EBADF)
}

// A writer's wait ends when there is room.
func TestWriterGoesOnWhenThereIsRoom(t *testing.T) {
	p := newPipe(t)
	for {
		if _, err := unix.Write(p.fds[1], make([]byte, 4096)); err != nil {
			break
		}
	}
	check.That(t, !WaitWritable(uintptr(p.fds[1])), "a full pipe is said to be writable")
	for p.tryRead() {
	}
	check.That(t, WaitWritable(uintptr(p.fds[1])), "an empty pipe is said to be full")
}
