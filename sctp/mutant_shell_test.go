package sctp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/race"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// until waits for something that another goroutine does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !eventually(t, done) {
		t.Fatal(what, "does not happen")
	}
}

func eventually(t *testing.T, done func() bool) bool {
	for ctx := deadlineCtx(t); !done(); runtime.Gosched() {
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// together lets write happen while s is in use, so that what it sends waits in the backlog and is handled at
// once, n packets or more.
func together(t *testing.T, s *Conn, n int32, write func() error) {
	t.Helper()
	s.Lock()
	err := write()
	ok := err != nil || eventually(t, func() bool { return s.gate.waiting.Load() >= n })
	s.Unlock()
	if err != nil || !ok {
		t.Fatal("nothing arrives:", err)
	}
}

// Messages that arrive together wake as many readers as there are messages.
func TestMessagesThatComeTogetherWakeEveryReader(t *testing.T) {
	c, s := newPair(t).connect(t, nil, nil)
	s.SetReadDeadline(time.Now().Add(20 * time.Second))
	const readers = 3
	for range 50 {
		read := make(chan error, readers)
		for range readers {
			go func() {
				_, _, err := s.ReadMsg(make([]byte, 10))
				read <- err
			}()
		}
		for range 100 { // so that they wait for a message
			runtime.Gosched()
		}
		together(t, s, readers, func() (err error) {
			for i := 0; i < readers && err == nil; i++ {
				_, err = c.WriteMsg([]byte("x"), SendInfo{})
			}
			return err
		})
		for range readers {
			if err := <-read; err != nil {
				t.Fatal("a reader sleeps on:", err)
			}
		}
	}
}

// quiet keeps the associations of a test from sending anything by themselves.
var quiet = &Config{Config: assoc.Config{DisablePMTUD: true, HeartbeatInterval: -1}}

// heartbeat makes a HEARTBEAT of the peer of s. After it who set up s, or answered the peer, is no longer at it.
func heartbeat(s *Conn, info string) rawio.Packet {
	a, _ := s.Lock()
	defer s.Unlock()
	b := wire.AppendHeader(nil, a.PeerPort(), a.LocalPort(), a.LocalTag())
	b = wire.AppendHeartbeat(b, []byte(info))
	wire.PutChecksum(b, wire.ChecksumBytes(b))
	return rawio.Packet{Data: b, Local: a.LocalAddr(), Remote: a.PeerAddr()}
}

// A packet that comes while the association is in use is handled by who uses it, or by who brings it, if
// the other has just left.
func TestNoPacketIsLeftBehindInTheBacklog(t *testing.T) {
	_, s := newPair(t).connect(t, quiet, quiet)
	p := heartbeat(s, "x")
	rounds := int64(50_000)
	if race.Enabled {
		rounds = 1000
	}
	var begun, ended atomic.Int64
	spin := func(n int) { // varies who comes first
		for range n {
			begun.Load()
		}
	}
	go func() {
		for i := range rounds {
			for begun.Load() <= i {
				runtime.Gosched()
			}
			spin(int(i % 211))
			s.Lock()
			s.Unlock()
			ended.Add(1)
		}
	}()
	for i := range rounds {
		begun.Add(1)
		spin(int(i % 199))
		q := p
		if s.input(s.t.now(), &q, false) {
			s.Unlock()
		}
		for ended.Load() <= i {
			runtime.Gosched()
		}
		if n := s.gate.waiting.Load(); n != 0 {
			t.Fatalf("%d packets wait, and nobody comes", n)
		}
	}
}

// The same, step by step: the owner leaves after the packet has found the association in use and before it is in the
// backlog.
func TestWhoBringsAPacketHandlesItWhenTheOwnerHasLeft(t *testing.T) {
	_, s := newPair(t).connect(t, quiet, quiet)
	p := heartbeat(s, "x")
	s.gate.own.Lock()
	s.gate.mu.Lock() // holds the packet back
	owner := make(chan bool)
	go func() { owner <- s.input(s.t.now(), &p, false) }()
	stacks := make([]byte, 1<<20)
	until(t, "the packet", func() bool {
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*gate).post("))
	})
	s.gate.own.Unlock()
	s.gate.mu.Unlock()
	if <-owner {
		s.Unlock()
	}
	if n := s.gate.waiting.Load(); n != 0 {
		t.Errorf("%d packets wait, and nobody comes", n)
	}
}

// answers is a link that notes the info of the HEARTBEAT ACKs sent.
type answers struct {
	*mem.Link
	mu   sync.Mutex
	list []string
}

func (l *answers) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		cs := wire.Packet(slices.Concat(pkts[i].Vec...)).Chunks()
		for ch, ok := cs.Next(); ok; ch, ok = cs.Next() {
			h, err := wire.AsHeartbeat(ch)
			if err != nil || ch.Type() != wire.ChunkHeartbeatAck || len(h.Info()) > 8 { // those of probes are longer
				continue
			}
			l.mu.Lock()
			l.list = append(l.list, string(h.Info()))
			l.mu.Unlock()
		}
	}
	return l.Link.WriteBatch(pkts)
}

// Packets that wait in the backlog are handled ahead of one that comes later.
func TestBacklogIsNotOvertaken(t *testing.T) {
	la, lb, err := mem.Pair(mem.Options{MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	link := &answers{Link: lb}
	p := joinPair(t, la, lb, la, link)
	_, s := p.connect(t, quiet, quiet)
	first, second := heartbeat(s, "first"), heartbeat(s, "second")
	s.gate.post(&first)
	if !s.input(s.t.now(), &second, false) {
		t.Fatal("nobody else uses the association")
	}
	s.Unlock()
	link.mu.Lock()
	defer link.mu.Unlock()
	if want := []string{"first", "second"}; !slices.Equal(link.list, want) {
		t.Errorf("answered in the order %q", link.list)
	}
}

// Packets that have waited in the backlog give their buffers back.
func TestBacklogLeaksNoBuffers(t *testing.T) {
	p := newPair(t)
	c, s := p.connect(t, nil, nil)
	together(t, s, 1, func() (err error) {
		for i := 0; i < 10 && err == nil; i++ {
			_, err = c.WriteMsg(make([]byte, 1000), SendInfo{})
		}
		return err
	})
	for range 10 {
		if _, _, err := s.ReadMsg(make([]byte, 2000)); err != nil {
			t.Fatal(err)
		}
	}
	p.a.Close()
	p.b.Close()
	if n := p.links[0].Outstanding(); n != 0 {
		t.Errorf("%d buffers are still held", n)
	}
}

// What the peer has sent before it shut down can be read after that.
func TestMessagesOutliveTheAssociation(t *testing.T) {
	c, s := newPair(t).connect(t, nil, nil)
	for i := range 3 {
		if _, err := fmt.Fprint(c.Stream(0), i); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	buf := make([]byte, 10)
	for i := range 3 {
		if n, _, err := s.ReadMsg(buf); err != nil || string(buf[:n]) != fmt.Sprint(i) {
			t.Errorf("message %d: %q, %v", i, buf[:n], err)
		}
	}
	if _, _, err := s.ReadMsg(buf); err != io.EOF {
		t.Errorf("then %v", err)
	}
}

// A deadline that is earlier than all others is kept, whatever the timer waits for.
func TestTimerGoesOffForTheEarliestDeadline(t *testing.T) {
	start := time.Now()
	now := func() rawio.Time { return rawio.Time(time.Since(start)) }
	fired := make(chan *Conn, 2)
	h := newTimers(now, func(c *Conn) { fired <- c })
	defer h.close()
	late, soon := &Conn{heapIndex: -1}, &Conn{heapIndex: -1}
	late.due.Store(rawio.Never)
	soon.due.Store(rawio.Never)
	h.set(late, now().Add(time.Hour))
	h.set(soon, now().Add(time.Millisecond))
	select {
	case c := <-fired:
		if c != soon {
			t.Error("the later deadline came first")
		}
	case <-deadlineCtx(t).Done():
		t.Error("a deadline of a millisecond is missed")
	}
}

// picky is a link that refuses the first packet of one batch.
type picky struct {
	*mem.Link
	mu   sync.Mutex
	next []byte // what has to come next: the packet after the refused one
	fail string
	done bool
}

func (l *picky) WriteBatch(pkts []rawio.Packet) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	octets := func(i int) []byte { return bytes.Join(pkts[i].Vec, nil) }
	if l.next != nil {
		if !bytes.Equal(octets(0), l.next) {
			l.fail = "the packets behind a refused one were not sent"
		}
		l.next = nil
	}
	if !l.done && len(pkts) >= 3 {
		l.done, l.next = true, octets(1)
		return 0, rawio.ErrFull
	}
	return l.Link.WriteBatch(pkts)
}

// A packet that the link refuses is lost alone.
func TestRefusedPacketIsLostAlone(t *testing.T) {
	la, lb, err := mem.Pair(mem.Options{MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	link := &picky{Link: la}
	p := joinPair(t, la, lb, link, lb)
	c, s := p.connect(t, nil, nil)
	want := pattern(1, 100_000)
	if _, err := c.WriteMsg(want, SendInfo{}); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, _, err := s.ReadMsg(got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v", err)
	}
	link.mu.Lock()
	defer link.mu.Unlock()
	if !link.done || link.fail != "" || p.a.Stats().TxFailed != 1 {
		t.Errorf("refused %v, %d failed, %s", link.done, p.a.Stats().TxFailed, link.fail)
	}
}

// A peer that has restarted is known by its new tag, also from an address that it has not named.
func TestRestartedPeerIsFoundByItsNewTag(t *testing.T) {
	clients, b, server := newReborn(t)
	l, err := b.Listen(7, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := deadlineCtx(t)
	dial := func(i int) {
		t.Helper()
		if _, err := clients[i].Dial(ctx, netip.AddrPortFrom(server.LocalAddrs()[0].Addr(), 7), &Config{LocalPort: 5555}); err != nil {
			t.Fatal(err)
		}
	}
	dial(0)
	s, err := l.Accept(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	found := func() bool {
		p := heartbeat(s, "x")
		p.Remote = netip.MustParseAddrPort("10.9.9.9:0")
		b.mu.RLock()
		defer b.mu.RUnlock()
		a, _ := b.ep.Lookup(&p)
		return a != nil
	}
	a, _ := s.Lock()
	before := a.LocalTag()
	s.Unlock()
	until(t, "the first tag's entry", found)
	server.life.Store(1)
	dial(1)
	until(t, "the restart", func() bool {
		a, _ := s.Lock()
		defer s.Unlock()
		return a.LocalTag() != before
	})
	until(t, "the new tag's entry", found)
}

// A packet with a wrong checksum is not answered, whatever comes along with it.
func TestBadChecksumIsNotAnsweredBesideOtherPackets(t *testing.T) {
	// req 9260-6.8-3
	la, lb, err := mem.Pair(mem.Options{MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	defer la.Close()
	b, err := NewTransport(lb, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l, err := b.Listen(7, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	from := func(port uint16) rawio.Packet {
		pkt := wire.AppendInit(wire.AppendHeader(nil, port, 7, 0), wire.ChunkInit, wire.InitFields{Tag: 1, ARwnd: 1500, OutStreams: 1, InStreams: 1})
		wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
		return rawio.Packet{Data: pkt, Local: lb.LocalAddrs()[0], Remote: la.LocalAddrs()[0]}
	}
	pkts := []rawio.Packet{from(1), from(2), from(3)}
	pkts[0].Data[8]++
	pkts[2].Data[8]++
	r := receiver{t: b, pkts: pkts}
	r.handle(len(pkts))
	r.done()
	out := make([]rawio.Packet, 4)
	n, err := la.ReadBatch(out)
	if err != nil || n != 1 || wire.Packet(out[0].Data).DstPort() != 2 {
		t.Errorf("%d answers, %v", n, err)
	}
	for i := range n {
		out[i].Release()
	}
}

// An association that nobody has accepted ends with its Listener.
func TestListenerCloseAbortsWhatNobodyAccepted(t *testing.T) {
	p := newPair(t)
	l, err := p.b.Listen(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := deadlineCtx(t)
	c, err := p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), nil)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the COOKIE ECHO's arrival", func() bool { return len(l.ready) == 1 })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
		if err := c.Err(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("ended by %v", err)
		}
	case <-ctx.Done():
		t.Error("the association lives on")
	}
}
