package sctp

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/account"
	"github.com/rddp-go/rddp/sctp/wire"
)

// muted is a link on which nothing comes by itself; it keeps what was written last to each address
// and port.
type muted struct {
	mu     sync.Mutex
	last   map[netip.AddrPort][]byte
	abort  []byte // the last packet with one
	encap  uint16 // the port of UDP that the last packet went to
	closed chan struct{}
}

func (l *muted) ReadBatch([]rawio.Packet) (int, error) { <-l.closed; return 0, net.ErrClosed }
func (l *muted) MTU(_, _ netip.Addr) int               { return 65535 }
func (l *muted) Close() error                          { close(l.closed); return nil }
func (l *muted) WriteBatch(pkts []rawio.Packet) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range pkts {
		p := slices.Concat(pkts[i].Vec...)
		l.encap = pkts[i].Remote.Port()
		l.last[netip.AddrPortFrom(pkts[i].Remote.Addr(), binary.BigEndian.Uint16(p[2:]))] = p
		if wire.Chunk(p[12:]).Type() == wire.ChunkAbort {
			l.abort = p
		}
	}
	return len(pkts), nil
}

// Prompt implements rawio.Prompter.
func (l *muted) Prompt() rawio.Link { return l }

// takeSent returns the last packet to somebody, once.
func (l *muted) takeSent(to netip.AddrPort) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.last[to]
	delete(l.last, to)
	return p
}

// besieged is a Transport that attackers made by hand talk to.
type besieged struct {
	*Transport
	link  *muted
	l     *Listener
	bufs  *rawio.Pool
	spare []byte // for one packet, where there is no pool: its Conn may be lost, and the packet with it
}

func newBesieged(t *testing.T, max int64, cfg *Config) *besieged {
	t.Helper()
	return newBesiegedLink(t, func(l *muted) rawio.Link { return l }, TransportConfig{MaxMemory: max}, cfg)
}

// newBesiegedLink is newBesieged over a link made of a muted one.
func newBesiegedLink(t *testing.T, wrap func(*muted) rawio.Link, tcfg TransportConfig, cfg *Config) *besieged {
	t.Helper()
	b := &besieged{link: &muted{last: make(map[netip.AddrPort][]byte), closed: make(chan struct{})},
		bufs: rawio.NewPool(64<<10, 4)}
	tcfg.MaxAnswers = -1
	b.Transport = must.Get(NewTransport(wrap(b.link), &tcfg))(t)
	t.Cleanup(func() { b.Close() })
	b.l = must.Get(b.Listen(5000, cfg))(t)
	return b
}

// attacker is one association, as the attacker sees it.
type attacker struct {
	b    *besieged
	from netip.Addr
	port uint16
	tag  uint32
	tsn  wire.TSN
	c    *Conn // at the other end
	held bool  // its gate is
}

// packetOf makes a packet that lies alone in a buffer of 64 KiB.
func (a *attacker) packetOf(chunks ...[]byte) rawio.Packet {
	buf := rawio.NewBuf(a.b.spare)
	if a.b.bufs != nil {
		buf = a.b.bufs.Get()
	}
	pkt := wire.AppendHeader(buf.B[:0], a.port, 5000, a.tag)
	for _, c := range chunks {
		pkt = append(pkt, c...)
	}
	wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
	local := netip.MustParseAddrPort("10.0.0.1:0")
	if a.from.Is6() {
		local = netip.MustParseAddrPort("[2001:db8:1::1]:0")
	}
	return rawio.Packet{Data: pkt, Buf: buf, Remote: netip.AddrPortFrom(a.from, 0), Local: local}
}

// sendChunks hands a packet over.
func (a *attacker) sendChunks(chunks ...[]byte) {
	r := newReceiver(a.b.Transport, nil, false)
	r.pkts = []rawio.Packet{a.packetOf(chunks...)}
	r.dispatchBatch(1)
	r.finishRun(nil)
}

// newAttacker sets up an association; nil when that is refused.
func (b *besieged) newAttacker(from netip.Addr, port uint16) *attacker {
	a := &attacker{b: b, from: from, port: port, tsn: 1}
	self := netip.AddrPortFrom(from, port)
	b.link.takeSent(self)
	a.sendChunks(wire.CloseChunk(wire.AppendInit(nil, wire.ChunkInit,
		wire.InitFields{Tag: 1, ARwnd: 1 << 20, OutStreams: 65535, InStreams: 65535, TSN: 1}), 0))
	answer := b.link.takeSent(self)
	if len(answer) < 32 {
		return nil
	}
	ack, err := wire.AsInit(wire.Chunk(answer[12:]))
	if err != nil {
		return nil
	}
	a.tag = ack.Tag()
	ps := ack.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		if p.Type() == wire.ParamStateCookie {
			a.sendChunks(wire.AppendCookieEcho(nil, p.Value()))
		}
	}
	if answer = b.link.takeSent(self); len(answer) == 0 || wire.Chunk(answer[12:]).Type() != wire.ChunkCookieAck {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a.c, _ = b.l.Accept(ctx)
	return a
}

// dataChunk is a DATA chunk with the next TSN but skip.
func (a *attacker) dataChunk(skip int, stream uint16, ssn wire.SSN, flags byte, n int) []byte {
	a.tsn += wire.TSN(skip)
	c := make([]byte, wire.DataHeaderLen+n, wire.DataHeaderLen+n+3)
	c[1] = flags
	binary.BigEndian.PutUint16(c[2:], uint16(len(c)))
	binary.BigEndian.PutUint32(c[4:], uint32(a.tsn))
	binary.BigEndian.PutUint16(c[8:], stream)
	binary.BigEndian.PutUint16(c[10:], uint16(ssn))
	a.tsn++
	return append(c, make([]byte, wire.PaddedLen(len(c))-len(c))...)
}

const whole, first, unordered = 3, 2, 4 // flags of DATA

// Whatever peers make a Transport hold is counted, by what it keeps from other use, and bounded:
// live memory is at most 1.25 times the account and 16 KiB for each association; all attackers
// together have at most MaxMemory, and a peer within its share is not disturbed. When they have
// gone everything is given back.
func TestMemoryIsAccounted(t *testing.T) {
	const hosts, each, maxMemory = 4, 8, 24 << 20
	for _, row := range []struct {
		name  string
		times int
		do    func(a *attacker, i int)
	}{
		{"associations that do nothing", 0, nil},
		{"messages that nobody reads", 70, func(a *attacker, i int) {
			a.sendChunks(a.dataChunk(0, 0, wire.SSN(i), whole, 60_000))
		}},
		{"one octet in a buffer of 64 KiB", 3000, func(a *attacker, i int) {
			a.sendChunks(a.dataChunk(0, 0, wire.SSN(i), whole, 1))
		}},
		{"gaps between all chunks", 1000, func(a *attacker, i int) {
			a.sendChunks(a.dataChunk(1, 0, wire.SSN(i), whole, 1000))
		}},
		{"SSNs that wait for one that does not come", 3000, func(a *attacker, i int) {
			a.sendChunks(a.dataChunk(0, uint16(i%200), wire.SSN(1+i/200), whole, 1))
		}},
		{"first fragments", 1000, func(a *attacker, i int) {
			a.sendChunks(a.dataChunk(1, uint16(i), 0, first, 500))
		}},
		{"the highest stream", 1, func(a *attacker, i int) {
			a.sendChunks(a.dataChunk(0, 65534, 0, whole, 1))
		}},
		{"a gate that is held", 3000, func(a *attacker, i int) {
			if i == 0 {
				a.c.lock()
				a.held = true
			}
			a.sendChunks(a.dataChunk(0, 0, wire.SSN(i), whole, 1))
		}},
		{"probes to answer behind a gate that is held", 1000, func(a *attacker, i int) {
			if i == 0 {
				a.c.lock()
				a.held = true
			}
			a.sendChunks(wire.AppendHeartbeat(nil, make([]byte, 30_000)))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBesieged(t, maxMemory, &Config{Backlog: 1000})
			before := liveHeap()
			honest := b.newAttacker(netip.MustParseAddr("10.0.2.1"), 1)
			var list []*attacker
			for h := range hosts {
				for i := range each {
					if a := b.newAttacker(netip.AddrFrom4([4]byte{10, 0, 1, byte(h)}), uint16(1+i)); a != nil {
						list = append(list, a)
					}
				}
			}
			must.That(t, len(list) >= hosts*each, "%d associations", len(list))
			times := row.times
			if race.Enabled {
				times = min(times, 300)
			}
			if race.Enabled && testing.Short() {
				times = min(times, 100)
			}
			for i := range times {
				for _, a := range list {
					row.do(a, i)
				}
			}
			until(t, "memory to be within its bound", func() bool { return b.Memory().Used <= maxMemory })
			if !race.Enabled {
				n := int64(liveHeap()) - int64(before) - int64(len(list)+1)<<14
				used := b.Memory().Used
				check.That(t, n <= used+used/4,
					"%d octets are alive besides 16 KiB an association, and %d are counted", n, used)
			}
			for i := range 10 { // within its share
				honest.sendChunks(honest.dataChunk(0, 0, wire.SSN(i), whole, 1000))
				n, _, err := honest.c.ReadMsg(make([]byte, 2000))
				must.That(t, err == nil && n == 1000, "the peer within its share: %d octets, %v", n, err)
			}
			for _, a := range list {
				if a.held {
					a.c.unlock()
				}
				a.c.Abort("")
			}
			honest.c.Abort("")
			until(t, "all to be given back", func() bool { return b.Memory().Used <= 16<<10 })
		})
	}
}

// What a flood of set-ups costs, data does not wait for: it needs no lock that they have.
func TestSetupsDoNotLockData(t *testing.T) {
	b := newBesieged(t, 0, nil)
	a := b.newAttacker(netip.MustParseAddr("10.0.1.1"), 1)
	b.setup.mu.Lock() // one is answered
	defer b.setup.mu.Unlock()
	b.mu.Lock() // and somebody changes the tables
	defer b.mu.Unlock()
	a.sendChunks(a.dataChunk(0, 0, 0, whole, 100))
	a.c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, _, err := a.c.ReadMsg(make([]byte, 200))
	check.That(t, n == 100 && err == nil, "%d octets, %v", n, err)
}

// An association that has more than its share while memory is short closes its window by itself,
// and keeps of what it has received only what is acknowledged for good. When others need memory,
// the greediest goes and no other.
func TestWhoGoesFirst(t *testing.T) {
	const first = 10_000
	b := newBesieged(t, 1<<20, &Config{Backlog: 10, SendBuffer: first}) // 512 KiB for one address
	b.memory.budget.reclaimer.isRunning.Store(true)                     // it has not got to it
	from := netip.MustParseAddr("10.0.1.1")
	modest, greedy := b.newAttacker(from, 1), b.newAttacker(from, 2)
	for i := range 2 {
		modest.sendChunks(modest.dataChunk(0, 0, wire.SSN(i), whole, 60_000))
	}
	greedy.sendChunks(greedy.dataChunk(1000, 0, 4, whole, 60_000)) // behind a gap
	greedy.tsn = 1
	for i := 0; i < 20 && !greedy.c.memory.underPressure.Load(); i++ {
		greedy.sendChunks(greedy.dataChunk(0, uint16(1+i), 0, whole, 60_000))
	}
	now, ever := b.memory.budget.numUnderPressure.Load(), b.Stats().Squeezed
	check.That(t, now == 1 && ever == 1, "%d are squeezed, %d were", now, ever)
	s := greedy.c.Stats()
	check.That(t, greedy.c.memory.underPressure.Load() && s.RecvWindow == 0 && s.Evicted != 0,
		"squeezed: %v, a window of %d, %d chunks taken back", greedy.c.memory.underPressure.Load(), s.RecvWindow,
		s.Evicted)
	core, at := greedy.c.lock() // it takes no more to send than at first
	must.OK(t, core.Reconfigure(at, func(c *assoc.Config) { c.SendBuffer = 4 * first }))
	greedy.c.send.buffer.switchRing(newRing(4 * first)) // as it would be if it had grown
	greedy.c.send.buffer.maxOctets = 4 * first
	greedy.c.unlock()
	greedy.c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	var err error
	for err == nil {
		_, err = greedy.c.WriteMsg(make([]byte, 1000), SendInfo{})
	}
	greedy.c.lock()
	used := greedy.c.send.buffer.usedOctets
	greedy.c.unlock()
	check.That(t, errors.Is(err, os.ErrDeadlineExceeded) && used == first, "%d octets wait to be sent, %v", used, err)
	for port := range uint16(2) {
		a := b.newAttacker(from, 10+port)
		a.sendChunks(a.dataChunk(0, 0, 0, whole, 60_000))
	}
	b.memory.budget.reclaimMemory()
	check.That(t, isClosed(greedy.c.Done()) && !isClosed(modest.c.Done()),
		"the greediest has gone: %v, the modest: %v", isClosed(greedy.c.Done()), isClosed(modest.c.Done()))
	n := int32(0)
	for _, c := range b.liveConns() {
		if c.memory.underPressure.Load() {
			n++
		}
	}
	check.That(t, b.memory.budget.numUnderPressure.Load() == n, "%d of %d squeezed ones have gone",
		b.memory.budget.numUnderPressure.Load()-n,
		b.memory.budget.numUnderPressure.Load())
}

// pressed is a Transport of 1 MiB, 512 KiB for one address, of which another association with that
// address has drawn some.
type pressed struct {
	*besieged
	from netip.Addr
	load account.Account
	log  lines
}

func newPressed(t *testing.T) *pressed {
	p := &pressed{besieged: newBesieged(t, 1<<20, &Config{Backlog: 10}), from: netip.MustParseAddr("10.0.1.1"),
		log: make(lines, 9)}
	p.eventLog = newEventLog(slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelWarn})), false)
	p.memory.budget.reclaimer.isRunning.Store(true) // it comes when it is called by hand
	p.memory.budget.reclaimer.runPause = time.Hour
	p.memory.budget.total.Open(&p.load, account.Peer{Addr: p.from})
	return p
}

// What the reclaimer does to an association that does nothing, by what others have: it closes the
// window of one that has more than its share, opens it when that is over, and ends it only when
// nothing is left.
func TestReclaimerSqueezesBeforeItEnds(t *testing.T) {
	const quantum = account.Quantum
	for _, row := range []struct {
		name            string
		own, gap        int // messages of 60,000 octets that it has, and that nobody may read yet
		load            int // quanta of the other one
		others          int // with the same address
		before          bool
		squeezed, ended bool
	}{
		{"calm", 4, 0, 2, 0, false, false, false},
		{"short, more than its share", 4, 0, 3, 0, false, true, false},
		{"short, within its share", 1, 0, 6, 0, false, false, false},
		{"calm again", 4, 0, 0, 0, true, false, false},
		{"short still, but it has little", 0, 0, 7, 0, true, false, false},
		{"short still, and its share is small", 0, 0, 7, 3, true, true, false},
		{"little left, more than its share", 4, 0, 6, 0, false, true, true},
		{"little left, but what nobody may read yet can go", 1, 5, 3, 0, false, false, false},
		{"little left, within its share", 0, 0, 9, 3, true, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newPressed(t)
			a := b.newAttacker(b.from, 1)
			for i := range row.own {
				a.sendChunks(a.dataChunk(0, 0, wire.SSN(i), whole, 60_000))
			}
			for i := range row.gap {
				a.sendChunks(a.dataChunk(9, 0, wire.SSN(90+i), whole, 60_000))
			}
			for i := range row.others {
				b.newAttacker(b.from, uint16(2+i))
			}
			if row.before {
				a.c.lock()
				a.c.setMemoryPressure(true)
				a.c.releaseLock()
			}
			b.load.Trim(row.load * quantum)
			b.memory.budget.reclaimMemory()
			check.That(t, (a.c.memory.underPressure.Load() == row.squeezed || row.ended) &&
				isClosed(a.c.Done()) == row.ended &&
				len(b.log) > 0 == row.ended &&
				a.c.Stats().Evicted > 0 == (row.gap > 0),
				"squeezed: %v, ended: %v, %d lines; drawn %d of %d", a.c.memory.underPressure.Load(),
				isClosed(a.c.Done()),
				len(b.log), a.c.drawnOctets(), b.Memory().Used)
			b.load.Trim(0)
		})
	}
}

// An association whose charge others share has the reclaimer called where memory is short, or some
// are squeezed, and opens its own window.
func TestReclaimerIsCalledWhenMemoryIsShort(t *testing.T) {
	synctest.Test(t, testReclaimer)
}

func testReclaimer(t *testing.T) {
	b := newPressed(t)
	a := b.newAttacker(b.from, 1)
	called := func(do func()) bool {
		b.memory.budget.reclaimer.isRunning.Store(false)
		do()
		defer b.memory.budget.reclaimer.timer.Stop()
		return b.memory.budget.reclaimer.isRunning.Swap(true)
	}
	port := uint16(10)
	for _, row := range []struct {
		load     int
		squeezed int32
		want     [2]bool // at a charge, and a new association
	}{{1, 0, [2]bool{}}, {1, 1, [2]bool{true, false}}, {7, 0, [2]bool{true, true}}, {9, 0, [2]bool{true, true}}} {
		b.load.Trim(row.load * account.Quantum)
		b.memory.budget.numUnderPressure.Store(row.squeezed)
		a.c.lock()
		got := [2]bool{called(func() { a.c.trimAccounts(0); a.c.chargeMemory() }), false}
		a.c.releaseLock()
		b.memory.budget.numUnderPressure.Store(0)
		got[1] = called(func() { b.newAttacker(b.from, port) })
		port++
		check.That(t, got == row.want, "%+v: called at a charge, and for a new association: %v", row, got)
	}
	a.c.lock()
	a.c.setMemoryPressure(true)
	a.c.releaseLock()
	for _, load := range []int{7, 0} { // short as it is with so many, and not any more
		b.load.Trim(load * account.Quantum)
		_, now := a.c.lock()
		a.c.unlockAfterRead(now)
		check.That(t, a.c.memory.underPressure.Load() == (load > 0), "squeezed: %v, where another one has %d quanta",
			a.c.memory.underPressure.Load(), load)
	}
	a.c.memory.underPressure.Store(true) // so it is looked at
	for _, slow := range []stepCounter{new(lazy), nil} {
		a.c.peekAssoc(func(*assoc.Assoc) { a.c.upper.stepCounter = slow })
		began := time.Now()
		b.memory.budget.reclaimer.runReclaim()
		took := time.Since(began)
		check.That(t, took > 0 == (slow != nil) && b.memory.budget.reclaimer.runPause == max(minReclaimPause, 9*took) &&
			!b.memory.budget.reclaimer.isRunning.Load(), "a run of %v, the next after %v", took, b.memory.budget.reclaimer.runPause)
	}
	b.memory.budget.reclaimer.timer.Reset(time.Hour)
	b.timers.timer.Reset(time.Hour)
	b.Close()
	check.That(t, !b.memory.budget.reclaimer.timer.Stop() && !b.timers.timer.Stop() && b.timers.closed,
		"a Transport that is closed has timers")
}

// Of two associations that have the same the younger goes, of others the one that has more.
func TestYoungerOfTwoGoes(t *testing.T) {
	for _, more := range []int{-1, 0, 1, 2} { // that has one message more
		b := newPressed(t)
		var list []*attacker
		for i := range 3 {
			a := b.newAttacker(b.from, uint16(1+i))
			a.sendChunks(a.dataChunk(0, 0, 0, whole, 60_000))
			if i == more {
				a.sendChunks(a.dataChunk(0, 0, 1, whole, 60_000))
			}
			list = append(list, a)
		}
		b.load.Trim((2 - min(more, 0)) * account.Quantum)
		b.memory.budget.reclaimMemory()
		for i, a := range list {
			goes := i == more || more-i == -3
			check.That(t, isClosed(a.c.Done()) == goes, "of three, the %d-th with more, the %d-th goes: %v", more, i,
				!goes)
		}
		b.load.Trim(0)
	}
}

// Events count with what they carry until they are read, and a send buffer with the rings that it
// has left while messages are in them.
func TestHeldByEventsAndSendBuffer(t *testing.T) {
	n := eventQueue{limit: 2}
	ev := Event{Message: make([]byte, 100),
		Err: &assoc.PeerError{Causes: []assoc.Cause{{Info: make([]byte, 10)}, {Info: make([]byte, 20)}}}}
	for i := range 3 {
		check.Equal(t, "room for one", n.push(ev), i < 2)
		check.Equal(t, "octets of events", n.queuedOctets, min(i+1, 2)*(eventStructOctets+100+10+20+2*64))
	}
	n.pop()
	n.pop()
	check.Equal(t, "octets of no events", n.queuedOctets, 0)
	s := sendBuf{maxOctets: 50_000}
	var tokens []uint64
	rings := 0
	for i, step := range []struct{ put, ring, old int }{{10_000, 16 << 10, 0}, {10_000, 32 << 10, 16 << 10},
		{20_000, 32 << 10, 16 << 10}, {20_000, 50_000, 48 << 10}, {30_000, 50_000, 48 << 10}} {
		_, token, ok := placeMessage(&s, make([]byte, step.put), SendInfo{})
		tokens = append(tokens, token)
		rings = step.old + step.ring
		check.That(t, ok && len(s.ring) == step.ring && s.heldOctets() == rings+
			cap(s.msgs)*int(unsafe.Sizeof(bufferedMessage{})), "message %d: a ring of %d octets, %d are held", i,
			len(s.ring), s.heldOctets())
	}
	_, _, ok := placeMessage(&s, make([]byte, 1), SendInfo{})
	check.That(t, !ok, "a message finds room in a full buffer")
	for i, token := range tokens[:3] {
		s.freeMessage(token)
		want := rings - i/2*48<<10 + cap(s.msgs)*int(unsafe.Sizeof(bufferedMessage{}))
		check.That(t, s.heldOctets() == want, "%d messages have gone: %d octets are held", i+1, s.heldOctets())
	}
}

// What an association holds is what is counted for it: each part, and once.
func TestHeldIsTheSumOfItsParts(t *testing.T) {
	b := newBesieged(t, 0, nil)
	a := b.newAttacker(netip.MustParseAddr("10.0.1.1"), 1)
	c := a.c
	c.lock()
	c.resizeSendBuffer() // for which it does not rest any longer
	held := c.heldOctets()
	for name, part := range map[string]func() int{
		"messages to be read": func() int { c.recv.inbox.queue = make([]*assoc.Received, 0, 1000); return 8000 },
		"events": func() int {
			c.observers.events = &eventQueue{queuedOctets: 5000}
			return 5000
		},
		"messages to be sent": func() int {
			placeMessage(&c.send.buffer, make([]byte, 9), SendInfo{})
			return c.send.buffer.heldOctets()
		},
	} {
		want := held + part()
		held = c.heldOctets()
		check.Equal(t, name+": octets", held, want)
	}
	before := c.drawnOctets()
	c.backlog.account.Charge(1 << 20)
	check.Equal(t, "what waits does not count", c.drawnOctets(), before+1<<20)
	c.backlog.account.Trim(0)
	for d, want := range map[int]bool{chargeStepOctets: true, chargeStepOctets - 1: false, -chargeStepOctets: true,
		1 - chargeStepOctets: false} {
		c.chargeMemory()
		check.That(t, !c.needsCharge() && c.memory.unchargedPackets == 0, "more has changed right after a charge")
		c.memory.chargedOctets -= d
		check.That(t, c.needsCharge() == want, "%d octets more are worth a charge: %v", d, !want)
	}
	c.observers.events.queuedOctets -= 5000
	c.unlock()
	a.sendChunks(a.dataChunk(8, 0, 8, whole, 60_000)) // behind a gap, alone
	check.That(t, b.Memory().Used >= 60_000, "one packet: %d octets are counted", b.Memory().Used)
	a.tsn = 1
	for i := range 8 {
		a.sendChunks(a.dataChunk(0, 0, wire.SSN(i), whole, 60_000))
	}
	for range 9 {
		must.Do(readAll(c))(t)
	}
	check.That(t, b.Memory().Used <= 5*account.Quantum, "%d octets are counted when all is read", b.Memory().Used)
	c.handleTimeout()
	check.That(t, b.Memory().Used <= 2*account.Quantum, "%d octets are counted after a while", b.Memory().Used)
	_, now := c.lock()
	for i := range 2*chargeEveryPackets + 1 { // within a batch
		before, p := b.Memory().Used, a.packetOf(a.dataChunk(0, 0, wire.SSN(9+i), whole, 60_000))
		c.processPackets(now, []rawio.Packet{p})
		p.Release()
		check.That(t, b.Memory().Used > before == (i > 0 && i%chargeEveryPackets == 0),
			"packet %d of a batch: %d octets are counted, %d before", i, b.Memory().Used, before)
	}
	last := a.packetOf(a.dataChunk(0, 0, 0, whole|unordered, 9))
	c.processPackets(now, []rawio.Packet{last})
	last.Release()
	c.abortForMemory(1)
	c.unlock()
	_, err := readAll(c)
	check.That(t, errors.As(err, new(*assoc.MemoryError)),
		"what had come to one that others need the memory of is read, %v", err)
	arena := b.memory.budget.arenaPool.Get()
	check.Equal(t, "octets of a buffer of short packets", len(arena.B), arenaOctets)
	arena.Release()
	check.Equal(t, "packets of a batch: four trains of 64 KiB", cap(txBatchPool.New().(*assoc.TxBatch).Pkts),
		4*44)
}

func readAll(c *Conn) (int, error) {
	n, _, err := c.ReadMsg(make([]byte, 1<<16))
	return n, err
}

// What a row of packets brings is charged as soon as what as many packets bring that come one by
// one.
func TestEachPacketOfARowIsCharged(t *testing.T) {
	b := newBesieged(t, 0, nil)
	a := b.newAttacker(netip.MustParseAddr("10.0.1.1"), 1)
	a.sendChunks(a.dataChunk(0, 0, 0, first, 1000))
	_, now := a.c.lock()
	defer a.c.unlock()
	rowOf := func(n int) {
		var ps []rawio.Packet
		for range n {
			ps = append(ps, a.packetOf(a.dataChunk(0, 0, 0, 0, 60_000)))
		}
		must.Equal(t, "packets handled at once", a.c.processPackets(now, ps), n)
		rawio.ReleaseAll(ps)
	}
	a.c.chargeMemory()
	for i, want := range []int{4, chargeEveryPackets, 1, 1 + 4} { // 4 + 4 are not too many yet
		n := []int{4, 4, 2, 4}[i]
		before := b.Memory().Used
		rowOf(n)
		check.Equal(t, "packets since the last charge", a.c.memory.unchargedPackets, int32(want))
		check.That(t, b.Memory().Used > before == (i == 2), "row %d: %d octets are counted, %d before", i,
			b.Memory().Used, before)
	}
}

// While memory is short a program cannot have an association that has its share hold more of what
// it sends: it waits for acknowledgements.
func TestSendBufferDoesNotGrowWhileMemoryIsShort(t *testing.T) {
	b := newBesieged(t, 1<<20, &Config{Backlog: 10})
	b.memory.budget.reclaimer.isRunning.Store(true) // it would end the greedy
	a := b.newAttacker(netip.MustParseAddr("10.0.1.1"), 1)
	other := b.newAttacker(netip.MustParseAddr("10.0.1.1"), 2)
	for i := range 7 {
		other.sendChunks(other.dataChunk(0, uint16(i), 0, whole, 60_000))
	}
	a.c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	var err error
	for err == nil {
		_, err = a.c.WriteMsg(make([]byte, 1000), SendInfo{})
	}
	n := len(a.c.send.buffer.ring)
	check.That(t, errors.Is(err, os.ErrDeadlineExceeded) && n > 0 && n <= 1<<19,
		"%d octets of what it sends are kept, %v", n, err)
	a.c.lock()
	check.That(t, !a.c.canAfford(1<<30), "there is memory for whatever more")
	a.c.unlock()
}

// When an address has its half, the greediest of its associations goes for one that wants its
// share: its reader hears why, with the peer's ABORT naming the cause; another association with
// that address is refused, whoever sets it up, and one with another is not.
func TestGreediestGoes(t *testing.T) {
	const maxMemory = 1 << 20
	b := newBesieged(t, maxMemory, &Config{Backlog: 100})
	from, other := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:0:1::1")
	log := make(lines, 1000)
	b.eventLog = newEventLog(slog.New(slog.NewTextHandler(log, nil)), false)
	greedy := b.newAttacker(from, 1)
	for i := range 7 { // 448 KiB of 512
		greedy.sendChunks(greedy.dataChunk(0, 0, wire.SSN(i), whole, 60_000))
	}
	modest := b.newAttacker(netip.MustParseAddr("2001:db8::2"), 1) // of the same host, as far as one can tell
	for i := range 3 {
		modest.sendChunks(modest.dataChunk(0, 0, wire.SSN(i), whole, 60_000))
	}
	select {
	case <-greedy.c.Done():
	case <-deadlineCtx(t).Done():
		t.Fatal("it does not go")
	}
	until(t, "a line about it", func() bool { return log.nextTellsOf(limitMemory) })
	check.Equal(t, "associations that go", b.Stats().MemoryAborted, 1)
	var short *assoc.MemoryError
	_, _, err := greedy.c.ReadMsg(make([]byte, 1<<16))
	check.That(t, errors.As(err, &short) && short.Held > short.Share && errors.Is(err, syscall.ENOMEM),
		"its reader gets %v", err)
	check.That(t, errors.As(greedy.c.Err(), &short) && short.Held > short.Share, "its end is %v", greedy.c.Err())
	a, err := wire.AsAbort(wire.Chunk(b.link.abort[12:]))
	check.That(t, err == nil && binary.BigEndian.Uint16(a[4:]) == uint16(wire.CauseOutOfResource),
		"its peer gets % x", b.link.abort[12:])
	n, _, err := modest.c.ReadMsg(make([]byte, 1<<16))
	check.That(t, n == 60_000 && err == nil, "who is within its share reads %d octets, %v", n, err)
	// the second time modest, which has more than others by now, has gone
	for port, refused := uint16(100), 0; refused < 2; port++ {
		if b.newAttacker(from, port) == nil {
			refused++
			until(t, "the address to be within its half", func() bool { return b.Memory().Used <= maxMemory/2+4096 })
		}
		must.That(t, port != 300, "it has no limit")
	}
	until(t, "the reclaimer to be at rest, as which it stays", func() bool {
		return !b.memory.budget.reclaimer.isRunning.Swap(true)
	})
	for port := uint16(300); b.newAttacker(from, port) != nil; port++ { // again until there is no room
	}
	_, err = b.Dial(deadlineCtx(t), netip.AddrPortFrom(from, 1), nil)
	check.That(t, errors.As(err, &short), "Dial to that address: %v", err)
	check.That(t, b.newAttacker(other, 1) != nil, "another address is refused")
}

// An association that has ended holds what its program has not read, until it has; and if nobody
// has the Conn any more, nothing.
func TestWhatIsUnreadCountsOn(t *testing.T) {
	b := newBesieged(t, 1<<20, nil)
	for i, size := range []int{60_000, 100, 60_000} {
		a := b.newAttacker(netip.MustParseAddr("10.0.1.1"), 1)
		read := func(p []byte) (int, error) { n, _, err := a.c.ReadMsg(p); return n, err }
		if i == 2 {
			read = a.c.Stream(0).Read
		}
		a.sendChunks(a.dataChunk(0, 0, 0, whole, size), wire.AppendAbort(nil, false))
		<-a.c.Done()
		check.That(t, b.Memory().Used >= int64(size), "%d octets are counted", b.Memory().Used)
		n, err := read(make([]byte, 1<<16))
		check.That(t, n == size && err == nil, "%d octets are read, %v", n, err)
		if n := b.Memory().Used; n > 4096 { // its tag is remembered
			t.Errorf("%d octets are counted when all is read", n)
		}
	}
	a := b.newAttacker(netip.MustParseAddr("10.0.1.1"), 1)
	b.bufs, b.spare = nil, make([]byte, 64<<10)
	a.sendChunks(a.dataChunk(0, 0, 0, whole, 60_000), wire.AppendAbort(nil, false))
	<-a.c.Done()
	a.c = nil
	until(t, "the memory of a Conn that nobody has", func() bool {
		runtime.GC()
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.Memory().Used == b.memory.own.Drawn() && b.memory.own.Drawn() > 0 && len(b.memory.orphans) == 0
	})
	b.bufs = rawio.NewPool(64<<10, 4)
	a = b.newAttacker(netip.MustParseAddr("10.0.1.1"), 1)
	n := a.c.memory.account.FairShare()
	check.That(t, n == 7<<16, "a share of %d octets, as if those were there", n)
	// Others need it: its reader hears why, and its end is what it was.
	a.sendChunks(a.dataChunk(0, 0, 0, whole, 60_000), wire.AppendAbort(nil, false))
	<-a.c.Done()
	b.memory.budget.reclaimer.isRunning.Store(true)
	var load account.Account
	b.memory.budget.total.Open(&load, account.Peer{Addr: netip.MustParseAddr("10.0.1.1")})
	for range 3 {
		b.memory.budget.total.Open(new(account.Account), account.Peer{Addr: netip.MustParseAddr("10.0.1.1")})
	}
	load.Charge(8 * account.Quantum)
	b.memory.budget.reclaimMemory()
	var short *assoc.MemoryError
	var aborted *assoc.AbortError
	_, err := readAll(a.c)
	check.That(t, errors.As(err, &short) && errors.As(a.c.Err(), &aborted), "its reader hears %v, its end was %v",
		err, a.c.Err())
}
