package sctp

import (
	"bytes"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Messages that arrive together wake as many readers as there are messages.
func TestMessagesThatComeTogetherWakeEveryReader(t *testing.T) {
	c, s := newPair(t).connect(t, &Config{NoDelay: true}, nil) // a packet for each
	s.SetReadDeadline(time.Now().Add(20 * time.Second))
	const readers = 3
	for range 50 {
		read := make(chan error, readers)
		for range readers {
			go func() { _, _, err := s.ReadMsg(make([]byte, 10)); read <- err }()
		}
		for range 100 { // so that they wait for a message
			runtime.Gosched()
		}
		sendTogether(t, s, readers, func() (err error) {
			for i := 0; i < readers && err == nil; i++ {
				_, err = c.WriteMsg([]byte("x"), SendInfo{})
			}
			return err
		})
		for range readers {
			must.Error(t, "a reader sleeps on", <-read, nil)
		}
	}
}

// quiet keeps the associations of a test from sending anything by themselves.
var quiet = &Config{DisablePMTUD: true, HeartbeatInterval: -1}

// heartbeatTo makes a HEARTBEAT of the peer of s. After it who set up s, or answered the peer, is
// no longer at it.
func heartbeatTo(s *Conn, info string) rawio.Packet {
	a, _ := s.lock()
	defer s.unlock()
	b := wire.AppendHeader(nil, a.PeerPort(), a.LocalPort(), a.LocalTag())
	b = wire.AppendHeartbeat(b, []byte(info))
	wire.PutChecksum(b, wire.ChecksumBytes(b))
	return rawio.Packet{Data: b, Local: a.LocalAddr(), Remote: a.PeerAddr()}
}

// A packet that comes while the association is in use is handled by who uses it, or by who brings
// it, if the other has just left.
func TestNoPacketIsLeftBehindInTheBacklog(t *testing.T) {
	_, s := newPair(t).connect(t, quiet, quiet)
	p := heartbeatTo(s, "x")
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
			s.lock()
			s.unlock()
			ended.Add(1)
		}
	}()
	for i := range rounds {
		begun.Add(1)
		spin(int(i % 199))
		q := p
		if returnOwner(s.deliverOrQueue(s.t.now(), []rawio.Packet{q}, false)) {
			s.unlock()
		}
		for ended.Load() <= i {
			runtime.Gosched()
		}
		must.Equal(t, "packets that wait for nobody", s.backlog.count.Load(), 0)
	}
}

// The same, step by step: the owner leaves after the packet has found the association in use and
// before it is in the backlog.
func TestWhoBringsAPacketHandlesItWhenTheOwnerHasLeft(t *testing.T) {
	_, s := newPair(t).connect(t, quiet, quiet)
	p := heartbeatTo(s, "x")
	s.assocLock.mu.Lock()
	s.backlog.mu.Lock() // holds the packet back
	owner := make(chan bool)
	go func() { owner <- returnOwner(s.deliverOrQueue(s.t.now(), []rawio.Packet{p}, false)) }()
	stacks := make([]byte, 1<<20)
	until(t, "the packet", func() bool {
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*backlog).enqueue("))
	})
	s.assocLock.mu.Unlock()
	s.backlog.mu.Unlock()
	if <-owner {
		s.unlock()
	}
	check.Equal(t, "packets that wait for nobody", s.backlog.count.Load(), 0)
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

// Prompt implements rawio.Prompter.
func (l *answers) Prompt() rawio.Link { return l }

// Packets that wait in the backlog are handled ahead of one that comes later.
func TestBacklogIsNotOvertaken(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	link := &answers{Link: lb}
	p := joinPair(t, la, lb, la, link)
	_, s := p.connect(t, quiet, quiet)
	for _, late := range []bool{false, true} {
		first, second := heartbeatTo(s, "first"), heartbeatTo(s, "second")
		s.backlog.enqueue(&first)
		s.lock()
		if late { // its slice is over
			s.assocLock.slice = workSlice{stepsAtCheck: s.workSteps() - stepsPerClockCheck,
				beganAt: s.t.now().Add(-sliceTime)}
		}
		must.That(t, returnOwner(s.deliverOrQueue(s.t.now(), []rawio.Packet{second}, true)),
			"the owner owns it no more")
		s.unlock()
		link.mu.Lock()
		check.That(t, slices.Equal(link.list, []string{"first", "second"}), "answered in the order %q", link.list)
		link.list = nil
		link.mu.Unlock()
	}
	n := cap(s.backlog.spareSlice)
	check.That(t, n > 0 && !slices.ContainsFunc(s.backlog.spareSlice[:n],
		func(p rawio.Packet) bool { return p.Data != nil }), "no room for packets is kept, or it keeps packets: %d", n)
}

// Packets that have waited in the backlog give their buffers back.
func TestBacklogLeaksNoBuffers(t *testing.T) {
	p := newPair(t)
	c, s := p.connect(t, nil, nil)
	sendTogether(t, s, 1, func() (err error) {
		for i := 0; i < 10 && err == nil; i++ {
			_, err = c.WriteMsg(make([]byte, 1000), SendInfo{})
		}
		return err
	})
	for range 10 {
		readOne(t, s)
	}
	p.a.Close()
	p.b.Close()
	check.Equal(t, "buffers still held", p.links[0].Outstanding(), 0)
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

// Prompt implements rawio.Prompter.
func (l *picky) Prompt() rawio.Link { return l }

// A packet that the link refuses is lost alone.
func TestRefusedPacketIsLostAlone(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	link := &picky{Link: la}
	p := joinPair(t, la, lb, link, lb)
	c, s := p.connect(t, nil, nil)
	want := patternOf(1, 100_000)
	must.Do(c.WriteMsg(want, SendInfo{}))(t)
	got := make([]byte, len(want))
	_, _, err := s.ReadMsg(got)
	check.That(t, err == nil && bytes.Equal(got, want), "%v", err)
	link.mu.Lock()
	defer link.mu.Unlock()
	check.That(t, link.done && link.fail == "" && p.a.Stats().TxFailed == 1,
		"refused %v, %d failed, %s", link.done, p.a.Stats().TxFailed, link.fail)
}

// A packet with a wrong checksum is not answered, whatever comes along with it.
func TestBadChecksumIsNotAnsweredBesideOtherPackets(t *testing.T) {
	// req 9260-6.8-3
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	defer la.Close()
	b := must.Get(NewTransport(lb, nil))(t)
	defer b.Close()
	l := must.Get(b.Listen(7, nil))(t)
	defer l.Close()
	from := func(port uint16) rawio.Packet {
		pkt := wire.AppendInit(wire.AppendHeader(nil, port, 7, 0), wire.ChunkInit,
			wire.InitFields{Tag: 1, ARwnd: 1500, OutStreams: 1, InStreams: 1})
		wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
		return rawio.Packet{Data: pkt, Local: lb.LocalAddrs()[0], Remote: la.LocalAddrs()[0]}
	}
	pkts := []rawio.Packet{from(1), from(2), from(3)}
	pkts[0].Data[8]++
	pkts[2].Data[8]++
	r := newReceiver(b, nil, false)
	r.pkts = pkts
	r.dispatchBatch(len(pkts))
	r.finishRun(nil)
	out := make([]rawio.Packet, 4)
	n, err := la.ReadBatch(out)
	check.That(t, err == nil && n == 1 && wire.Packet(out[0].Data).DstPort() == 2, "%d answers, %v", n, err)
	for i := range n {
		out[i].Release()
	}
}

// A holder with much to handle lets others have the lock in between; nothing of what it left is
// lost, and nothing overtakes it.
func TestOwnerStopsAfterASlice(t *testing.T) {
	b := newBesieged(t, 0, nil)
	a := b.newAttacker(netip.MustParseAddr("10.0.1.1"), 1)
	const packets, each = 500, 70
	_, now := a.c.lock()
	for i := range packets {
		var list [][]byte
		for k := range each {
			list = append(list, a.dataChunk(0, 0, wire.SSN(i*each+k), whole, 1))
		}
		a.sendChunks(list...)
	}
	more := a.c.flushPending(now)
	check.That(t, more && len(a.c.backlog.rest()) != 0, "more: %v, %d packets are left", more, len(a.c.backlog.rest()))
	a.sendChunks(a.dataChunk(0, 0, packets*each, whole, 2))
	a.c.unlock()
	a.c.SetReadDeadline(time.Now().Add(10 * time.Second))
	for i := range packets*each + 1 {
		n, info, err := a.c.ReadMsg(make([]byte, 9))
		must.That(t, err == nil && int(info.SSN) == i && n == 1+i/(packets*each), "message %d: %d octets, %+v, %v", i,
			n, info, err)
	}
}

// A slice begins when enough has been done for a look at the clock, and is over for whoever has the
// gate after so much time and work.
func TestSliceIsOfTimeAndWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newPair(t).connect(t, quiet, quiet)
		w := new(above)
		c.lock()
		c.upper.stepCounter = w
		for i, row := range []struct {
			steps uint64
			wait  time.Duration
			want  bool
		}{{stepsPerClockCheck - 1, 2 * sliceTime, false}, {1, sliceTime - 1, false},
			{stepsPerClockCheck - 1, 0, false}, {1, 1, false}, {stepsPerClockCheck - 1, 0, false}, {1, 0, true},
			{0, 0, true}} {
			w.work += row.steps
			check.That(t, c.sliceIsOver(sliceTime) == row.want, "step %d: over %v", i, !row.want)
			time.Sleep(row.wait) // of virtual time
		}
		for _, own := range []func(){c.acquireLock, func() { c.tryLock() }} {
			c.releaseLock()
			own()
			check.That(t, !c.sliceIsOver(0), "the next owner has no slice")
			w.work += 2 * stepsPerClockCheck
			c.sliceIsOver(0)
			w.work += stepsPerClockCheck
		}
		c.unlock()
	})
}

// Packets get half of a slice, and messages all of it; what is left is not forgotten, and the end
// of the association is told behind it.
func TestPacketsGetHalfOfASlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newPair(t).connect(t, quiet, quiet)
		began := func(ago time.Duration) {
			s.assocLock.slice = workSlice{stepsAtCheck: s.workSteps() - stepsPerClockCheck,
				beganAt: s.t.now().Add(-ago)}
		}
		time.Sleep(time.Second)
		s.lock()
		must.Do(c.WriteMsg([]byte("message"), SendInfo{}))(t)
		until(t, "its arrival", func() bool { return s.backlog.count.Load() > 0 })
		began(sliceTime / 2)
		any := s.drainBacklog(s.t.now())
		check.That(t, any && len(s.backlog.rest()) == 1, "packets in the other half: %v, %d are left", any,
			len(s.backlog.rest()))
		began(sliceTime/2 - 1)
		any = s.drainBacklog(s.t.now())
		check.That(t, any && len(s.backlog.rest()) == 0 && s.backlog.taken == nil,
			"packets in their half: %v, %d are left, or their memory", any, len(s.backlog.rest()))
		began(sliceTime)
		more := s.flushPending(s.t.now())
		check.That(t, more && s.recv.inbox.first() == nil, "a message when the slice is over, more: %v", more)
		began(sliceTime - 1)
		left := s.distributeMessages()
		check.That(t, !left && s.recv.inbox.first() != nil, "no message before it is over, more: %v", left)
		must.Do(c.WriteMsg([]byte("the last"), SendInfo{}))(t)
		c.Abort("the end")
		until(t, "both", func() bool { return s.backlog.count.Load() > 1 })
		began(sliceTime/2 - 1)
		s.drainBacklog(s.t.now())
		began(sliceTime)
		more = s.flushPending(s.t.now())
		check.That(t, more && s.end.err == nil, "the end is told before the last message: %v", s.end.err)
		s.unlock()
		buf := make([]byte, 20)
		for _, want := range []string{"message", "the last"} {
			n, _, err := s.ReadMsg(buf)
			check.That(t, string(buf[:n]) == want, "%q, %v, want %q", buf[:n], err, want)
		}
		_, _, err := s.ReadMsg(buf)
		check.That(t, err != nil && err == s.Err(), "and then: %v", err)
	})
}

// lazy is a protocol whose work takes long.
type lazy struct{ above }

func (l *lazy) Steps() uint64 {
	time.Sleep(sliceTime) // of virtual time
	l.work += stepsPerClockCheck
	return l.work
}

// The reader of the link leaves an association that takes long to another goroutine, and turns to
// the packets of others.
func TestReaderDoesNotStayWithOneAssociation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		link := &answers{Link: lb}
		_, s := joinPair(t, la, lb, la, link).connect(t, quiet, quiet)
		r := newReceiver(s.t, nil, false)
		want := []string{"1", "2", "3", "4", "5"}
		for i, info := range want {
			r.pkts[i] = heartbeatTo(s, info)
		}
		s.lock()
		s.upper.stepCounter = new(lazy)
		s.unlock()
		r.dispatchBatch(len(want))
		check.That(t, r.lastConn == nil && !r.holdsLock && isAllZero(r.conns), "it stays")
		time.Sleep(time.Second)
		synctest.Wait()
		check.Slice(t, "answers", link.list, want)
		s.lock()
		// nobody sleeps with the gate any more: who waits for that meanwhile would keep time from
		// passing
		s.upper.stepCounter = nil
		s.unlock()
	})
}

// returnOwner is what Conn.deliverOrQueue says of its caller.
func returnOwner(_ int, owner bool) bool { return owner }
