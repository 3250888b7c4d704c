package wait

import (
	"net"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// pipe is what the tests read from: a reader of single octets.
type pipe struct {
	*Reader
	fds   [2]int
	last  byte
	tries chan bool // what try was called with, as far as there is room
}

// states are the ways in which a reader waits.
var states = []struct {
	name string
	set  func(*Reader)
}{
	{"spinning", func(r *Reader) { r.poll = time.Hour }},
	{"spinning alone", func(r *Reader) { r.poll, r.one = time.Hour, true }},
	{"blocking", func(r *Reader) { r.poll, r.block = -1, time.Hour }},
	{"blocking alone", func(r *Reader) { r.one, r.block = true, time.Hour }},
	{"parked", func(r *Reader) { r.skip, r.block = 1<<30, 0 }},
	{"as it comes", func(*Reader) {}},
}

func newPipe(t *testing.T, set func(*Reader)) *pipe {
	t.Helper()
	p := &pipe{tries: make(chan bool, 1)}
	must.OK(t, unix.Pipe2(p.fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC))
	var err error
	p.Reader, err = NewReader(0, func(last bool) bool {
		select {
		case p.tries <- last:
		default:
		}
		var b [1]byte
		n, _ := unix.Read(p.fds[0], b[:])
		p.last = b[0]
		return n == 1
	}, p.fds[0])
	must.OK(t, err)
	set(p.Reader)
	t.Cleanup(func() {
		p.Close()
		unix.Close(p.fds[0])
		unix.Close(p.fds[1])
	})
	return p
}

func (p *pipe) write(t *testing.T, b byte) {
	t.Helper()
	if _, err := unix.Write(p.fds[1], []byte{b}); err != nil {
		t.Fatal(err)
	}
}

// read reads in the background, once the reader has found nothing.
func (p *pipe) read() <-chan error {
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
		t.Run(s.name, func(t *testing.T) { f(t, newPipe(t, s.set)) })
	}
}

// Whatever a reader does meanwhile, it reads what comes, again and again.
func TestReadsWhatComes(t *testing.T) {
	eachState(t, func(t *testing.T, p *pipe) {
		for i := range byte(100) {
			end := p.read()
			p.write(t, i)
			if err := <-end; err != nil || p.last != i {
				t.Fatalf("octet %d: %d, %v", i, p.last, err)
			}
		}
	})
}

// What is there before the reader comes is read at once, and none of it stays behind unnoticed.
func TestReadsWhatIsThere(t *testing.T) {
	eachState(t, func(t *testing.T, p *pipe) {
		for range 10 {
			for i := range byte(10) {
				p.write(t, i)
			}
			for i := range byte(10) {
				if err := p.Read(); err != nil || p.last != i {
					t.Fatalf("octet %d: %d, %v", i, p.last, err)
				}
			}
			end := p.read() // and then it waits
			p.write(t, 99)
			if err := <-end; err != nil || p.last != 99 {
				t.Fatal(p.last, err)
			}
		}
	})
}

// An interrupted reader comes back once, whether it waits or is yet to begin; what is there goes first.
func TestInterruptedReaderComesBackOnce(t *testing.T) {
	eachState(t, func(t *testing.T, p *pipe) {
		for range 10 {
			end := p.read()
			p.Interrupt()
			must.Equal(t, "error", <-end, rawio.ErrInterrupted)
			p.Interrupt()
			p.Interrupt()
			p.write(t, 1)
			if err := p.Read(); err != nil || p.last != 1 {
				t.Fatal(p.last, err)
			}
			must.Equal(t, "error", p.Read(), rawio.ErrInterrupted)
			end = p.read()
			p.write(t, 2)
			if err := <-end; err != nil || p.last != 2 {
				t.Fatal(p.last, err)
			}
		}
	})
}

// Close ends a reader that waits, and all that come later; an Interrupt then does nothing.
func TestCloseEndsEveryReader(t *testing.T) {
	eachState(t, func(t *testing.T, p *pipe) {
		end := p.read()
		p.Close()
		must.Equal(t, "error", <-end, net.ErrClosed)
		p.Interrupt()
		must.Equal(t, "error", p.Read(), net.ErrClosed)
	})
}

// A reader whose spins are in vain blocks at once most of the time, and spins again when that has become worth its while.
func TestSpinsAsLongAsItPays(t *testing.T) {
	p := newPipe(t, func(r *Reader) { r.block = time.Hour })
	p.one = false
	spun := 0
	for range 10 * rest {
		before := p.skip
		p.flag.Store(true) // a spin ends at once, in vain
		must.Equal(t, "error", p.Read(), rawio.ErrInterrupted)
		if before <= 0 {
			spun++
		}
	}
	if most := misses + 10; spun < misses || spun > most {
		t.Errorf("%d spins in vain, not %d to %d", spun, misses, most)
	}
	p.skip = 0
	for i := range 10 {
		p.tryTwice(t)
		if p.vain != 0 {
			t.Fatalf("after spin %d, which found something: %d in vain", i, p.vain)
		}
	}
}

// tryTwice has the first try of a read find nothing, and the second what has come since.
func (p *pipe) tryTwice(t *testing.T) {
	t.Helper()
	try, n := p.try, 0
	defer func() { p.try = try }()
	p.try = func(last bool) bool {
		if n++; n == 2 {
			p.write(t, 1)
		}
		return try(last)
	}
	p.poll = time.Hour
	must.OK(t, p.Read())
}

// The last try before a reader blocks is told so, and no other.
func TestLastTry(t *testing.T) {
	p := newPipe(t, func(r *Reader) { r.skip = 1 << 30 })
	end := p.read()
	p.Interrupt()
	<-end
	var got []bool
	p.try = func(last bool) bool { got = append(got, last); return len(got) == 2 }
	p.skip, p.one = 0, false
	must.OK(t, p.Read())
	if len(got) != 2 || got[0] || got[1] {
		t.Errorf("spinning: %v", got)
	}
	got, p.skip = nil, 1<<30
	p.flag.Store(true)
	if err := p.Read(); err != rawio.ErrInterrupted || len(got) != 1 || !got[0] {
		t.Errorf("before it blocks: %v, %v", got, err)
	}
}

// A writer's wait ends when there is room.
func TestWriterGoesOnWhenThereIsRoom(t *testing.T) {
	p := newPipe(t, func(*Reader) {})
	for {
		if _, err := unix.Write(p.fds[1], make([]byte, 4096)); err != nil {
			break
		}
	}
	if Writable(uintptr(p.fds[1])) {
		t.Error("a full pipe is said to be writable")
	}
	for p.tryRead() {
	}
	if !Writable(uintptr(p.fds[1])) {
		t.Error("an empty pipe is said to be full")
	}
}

func (p *pipe) tryRead() bool { return p.try(false) }
