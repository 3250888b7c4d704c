package rdmapeer

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// The victim's memory is an arena of pages. Some are registered; all of it is filled with octets
// that can be told from anything else.
const (
	pageLen = 4096
	pages   = 64

	pageRW      = 1  // the peer may read and write
	pageRO      = 3  // read only
	pageWO      = 5  // write only
	pageLocal   = 7  // no remote access: receives and read sinks
	pageAtomic  = 9  // atomics only
	pageTop     = 11 // read, write, atomics; the last Tagged Offsets there are
	pageForeign = 13 // everything, in another Protection Domain
	pageScoped  = 15 // everything, for another queue pair only
	pageMine    = 17 // everything, for the attacked queue pair only
	pageRevoked = 19 // everything, and then invalidated
	pageGone    = 21 // everything, and then deregistered
	pageBig     = 32 // read only, all pages from here on
)

// exposed are the pages that the attacked queue pair may read.
var exposed = []int{pageRW, pageRO, pageTop, pageMine}

const (
	base    = 0xA000_0000_0000
	topBase = 1<<64 - 1 - pageLen // registered memory cannot reach 2^64
	limits  = 64                  // sessions of an association that wait for the program
	streams = 1024                // of an association
	bound   = 64 << 20            // octets that both hosts may come to hold; the link keeps up to half of it for reuse
	spare   = 12                  // goroutines that may run beside those that always do
)

// deadlineCtx keeps a broken test from hanging; no test waits for it.
func deadlineCtx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return c
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// attackLab is the hostile host a, from which an honest program runs too, and the victim b.
type attackLab struct {
	ctx  context.Context
	a, b *rdma.Device
	l    *rdma.Listener
	addr netip.AddrPort
	c    *hostileAssoc // the association that most attacks come from

	arena, pattern []byte
	secrets        map[uint64]struct{} // all runs of 8 octets that no peer may see
	leaked         chan []byte

	near, far  *honestQP
	goroutines int
	heap       uint64
	requests   uint32

	faults    rdma.Faults    // counted by the victim so far
	unclaimed map[string]int // those that no check was about yet
}

func newLab(t *testing.T) *attackLab {
	t.Helper()
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	ctx, cancel := context.WithCancel(context.Background())
	cfg := &rdma.Config{Limits: rdma.Limits{MaxPending: limits, MaxStreams: streams}}
	l := &attackLab{ctx: ctx, a: must(rdma.NewDevice(la, cfg)), b: must(rdma.NewDevice(lb, cfg)),
		leaked: make(chan []byte, 1), unclaimed: make(map[string]int)}
	l.l = must(l.b.Listen(rdma.DefaultPort))
	l.addr = netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), rdma.DefaultPort)
	t.Cleanup(func() {
		cancel()
		l.a.Close()
		l.b.Close()
	})
	l.fillArena()
	l.c = must(l.dialVictim(t, sctp.Config{}, 1024))
	l.far = l.farBystander(t)
	l.near = l.nearBystander(t)
	l.goroutines, l.heap = runtime.NumGoroutine(), liveHeap()
	t.Cleanup(func() { l.checkBounded(t) })
	return l
}

// fillArena makes the arena and the list of its secrets.
func (l *attackLab) fillArena() {
	words := make([]uint64, pages*pageLen/8) // so that it is aligned for atomics
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range words {
		words[i] = rnd.Uint64()
	}
	l.pattern = make([]byte, 0, pages*pageLen)
	for _, w := range words {
		l.pattern = binary.NativeEndian.AppendUint64(l.pattern, w)
	}
	l.arena = bytes.Clone(l.pattern)
	open := make(map[int]bool)
	for _, p := range exposed {
		open[p] = true
	}
	l.secrets = make(map[uint64]struct{})
	for p := range pageBig {
		if open[p] {
			continue
		}
		for i := p * pageLen; i+8 <= (p+1)*pageLen; i++ {
			l.secrets[binary.BigEndian.Uint64(l.pattern[i:])] = struct{}{}
		}
	}
}

// findSecrets looks for secrets in what the victim sent.
func (l *attackLab) findSecrets(b []byte) {
	for i := 0; i+8 <= len(b); i++ {
		if _, ok := l.secrets[binary.BigEndian.Uint64(b[i:])]; ok {
			select {
			case l.leaked <- b:
			default:
			}
		}
	}
}

// dialVictim sets an association up with the victim. depth is how many messages of a stream are
// read ahead.
func (l *attackLab) dialVictim(t testing.TB, cfg sctp.Config, depth int) (*hostileAssoc, error) {
	t.Helper()
	if cfg.Adaptation == nil {
		ddp := uint32(ddpadapt.AdaptationDDP)
		cfg.Adaptation = &ddp
	}
	if cfg.OutStreams == 0 {
		cfg.OutStreams = streams
	}
	if cfg.InStreams == 0 {
		cfg.InStreams = streams
	}
	cfg.SackDelay = time.Millisecond
	conn, err := l.a.Transport().Dial(deadlineCtx(t), l.addr, &cfg)
	if err != nil {
		return nil, err
	}
	return newCarrier(conn, depth, l.findSecrets), nil
}

// arenaPage returns one page of the arena.
func (l *attackLab) arenaPage(i int) []byte { return l.arena[i*pageLen : (i+1)*pageLen] }

// checkUnhurt checks what must hold after each attack: the memory, and the other queue pairs.
func (l *attackLab) checkUnhurt(t testing.TB, want []byte) {
	t.Helper()
	for i := range want {
		if l.arena[i] != want[i] {
			t.Errorf("octet %d of page %d is %#x, want %#x", i%pageLen, i/pageLen, l.arena[i], want[i])
			break
		}
	}
	select {
	case b := <-l.leaked:
		t.Errorf("the victim sent what it never exposed: %x", b)
	default:
	}
	l.near.goesOn(t)
	l.far.goesOn(t)
	if n := runtime.NumGoroutine(); n > l.goroutines+spare {
		t.Errorf("%d goroutines, %d before", n, l.goroutines)
	}
}

// checkBounded checks that the attacks have not made the process grow. Both hosts are in it.
func (l *attackLab) checkBounded(t testing.TB) {
	t.Helper()
	if h := liveHeap(); h > l.heap+bound {
		t.Errorf("%d octets in use, %d before", h, l.heap)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// awaitRequest waits for the program to be asked for the session that carries this private data.
// Others that were asked for before, by associations that are gone, are skipped.
func (l *attackLab) awaitRequest(t testing.TB, private []byte) *rdma.Request {
	t.Helper()
	for {
		req, err := l.l.Accept(deadlineCtx(t))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(req.PrivateData(), private) {
			return req
		}
	}
}

// wasAborted tells whether an association was ended by the victim's ABORT.
func wasAborted(err error) bool {
	e, ok := err.(*assoc.AbortError)
	return ok && e.ByPeer
}
