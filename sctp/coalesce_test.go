package sctp

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What is combined is a copy, in order and whole: the owner of an association uses its memory again
// as soon as it has its gate. The goroutine that begins a batch sends it, or the one that makes it
// enough.
func TestPacketsOfSeveralAssociationsGoOutTogether(t *testing.T) {
	var sent []string
	write := func(pkts []rawio.Packet) {
		for _, p := range pkts {
			sent = append(sent, fmt.Sprintf("%s %d", p.Vec[0], p.ECN))
		}
		sent = append(sent, "|")
	}
	o := coalescer{writeLink: write}
	add := func(text string, ecn uint8) string {
		head, body := []byte(text[:1]), []byte(text[1:])
		pkts := []rawio.Packet{{Vec: [][]byte{head, body}, ECN: ecn}}
		number, yours := o.tryAdd(pkts, len(text))
		clear(head)
		clear(body)
		pkts[0] = rawio.Packet{}
		return fmt.Sprint(number > 0, yours)
	}
	o.expectReplies(6) // 3 are enough
	for i, want := range []string{"true true", "true false", "true true", "true true"} {
		check.Equal(t, fmt.Sprint("there is room, and the caller sends, at ", i),
			add(fmt.Sprint("packet", i), uint8(i)), want)
	}
	o.sendPending()
	o.sendPending()
	check.Equal(t, "a batch begins anew", add("next", 0), "true true")
	o.sendPending()
	o.expectReplies(1e6)
	check.Equal(t, "packets that are enough where more are awake than a batch is for", o.flushThreshold.Load(),
		maxBatchPackets/expectedRepliesPart+1)
	o.expectReplies(6)
	check.Equal(t, "sent", strings.Join(sent, " "), "packet0 0 packet1 1 packet2 2 packet3 3 | next 0 |")

	o.readerFlushes.Store(true)
	for i, want := range []string{"true false", "true false", "true true"} {
		check.Equal(t, fmt.Sprint("there is room, and the caller sends what the reader collects, at ", i),
			add("x", 0), want)
	}
	o.sendPending()
	o.readerFlushes.Store(false)

	for n := 0; n < maxBatchPackets; n++ {
		add("x", 0)
	}
	check.Equal(t, "beyond the most packets", add("x", 0), "false false")
	written := 0
	o.writeLink = func(pkts []rawio.Packet) {
		if written++; written == 1 { // while they are written others come, and who brings them does not wait
			add("later", 0)
			o.sendPending()
		}
		write(pkts)
	}
	o.sendPending()
	check.That(t, written == 2 && sent[len(sent)-2] == "later 0" && o.pendingPackets.Load() == 0,
		"what came meanwhile: %q, %d batches, %d packets wait", sent[len(sent)-2], written, o.pendingPackets.Load())
	long := make([]byte, maxBatchOctets/32)
	for range 32 {
		o.tryAdd([]rawio.Packet{{Vec: [][]byte{long}}}, len(long))
	}
	check.Equal(t, "beyond the most octets", add("x", 0), "false false")
}

// A goroutine that is to send lets those go on first that can: what they have goes along.
func TestWhoSendsWaitsForWhoIsAwake(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := newPair(t)
	pkts := []rawio.Packet{{Vec: [][]byte{[]byte("x")}, Remote: netip.AddrPortFrom(p.bAddr, 0)}}
	p.a.coalescer.expectReplies(9)
	together := 0
	for range 100 {
		p.a.coalescer.tryAdd(pkts, 1)
		go p.a.coalescer.tryAdd(pkts, 1)
		before := p.a.stats.txPackets.Load()
		if p.a.yieldAndSend(); p.a.stats.txPackets.Load() == before+2 {
			together++
		}
		until(t, "the other", func() bool { p.a.sendCoalesced(); return p.a.stats.txPackets.Load() == before+2 })
	}
	check.That(t, together > 50, "of 100 pairs of packets %d go together", together)
}

// slept is a link for its reader that has nothing, and writes down what has been sent when that
// waits.
type slept struct {
	rawio.Waiter
	t    *Transport
	told []string
	err  error
}

func (s *slept) Wait(p rawio.Pause) error {
	s.told = append(s.told, fmt.Sprint(p, " ", s.t.stats.txPackets.Load(), " ", s.t.coalescer.readerFlushes.Load()))
	return s.err
}

// The reader sends what there is before it waits, and who puts the first packet there does while
// the reader sleeps: nothing is left behind.
func TestReaderSendsBeforeItWaits(t *testing.T) {
	p := newPair(t)
	pkts := []rawio.Packet{{Vec: [][]byte{[]byte("x")}, Remote: netip.AddrPortFrom(p.bAddr, 0)}}
	p.a.coalescer.expectReplies(9)
	s := &slept{t: p.a}
	w := flushingWaiter{s, p.a}
	for _, pause := range []rawio.Pause{rawio.Park, rawio.Yield, rawio.Cede, rawio.Block, rawio.Sleep, rawio.Park} {
		p.a.coalescer.tryAdd(pkts, 1)
		must.OK(t, w.Wait(pause))
	}
	check.Equal(t, "pauses, what had been sent, and who sends next", fmt.Sprint(s.told),
		fmt.Sprintf("[%d 1 false %d 2 true %d 3 true %d 4 false %d 5 false %d 6 false]", rawio.Park, rawio.Yield,
			rawio.Cede, rawio.Block, rawio.Sleep, rawio.Park))
	check.That(t, p.a.coalescer.readerFlushes.Load(), "a reader that has slept is not to send")
	u := readerRole{}
	u.rx.t, u.rx.flushesOnWait, u.rx.policy = p.a, true, p.a.readerRole.rx.policy
	u.Init(nil, p.a.now)
	defer u.End()
	p.a.coalescer.tryAdd(pkts, 1)
	u.leaveRole(0)
	check.That(t, p.a.stats.txPackets.Load() == 7 && !p.a.coalescer.readerFlushes.Load(),
		"who gives the turn up has sent %d, and is to send: %v", p.a.stats.txPackets.Load(),
		p.a.coalescer.readerFlushes.Load())
	s.err = rawio.ErrInterrupted
	check.That(t, w.Wait(rawio.Yield) == s.err && !p.a.coalescer.readerFlushes.Load(),
		"who is to give the turn up is to send: %v", p.a.coalescer.readerFlushes.Load())
}

// Where there is always something to read the reader does not wait: it sends in between, and at
// once when it goes, or packets come one at a time.
func TestReaderThatDoesNotWaitSends(t *testing.T) {
	needsAdaptive(t)
	p := newPair(t)
	pkts := []rawio.Packet{{Vec: [][]byte{[]byte("x")}, Remote: netip.AddrPortFrom(p.bAddr, 0)}}
	p.a.coalescer.expectReplies(9)
	for _, tt := range []struct {
		name   string
		ready  func(r *receiver)
		run    func(r *receiver)
		sent   int // by which run
		goesOn bool
	}{
		{"a few short packets", nil, func(r *receiver) { r.runOctets = 100; r.updateReaderFlushes(true) }, maxRunsUnflushed, true},
		{"many octets", nil, func(r *receiver) { r.runOctets = shortWorkOctets + 1; r.updateReaderFlushes(true) }, 1, true},
		{"nothing", nil, func(r *receiver) { must.OK(t, r.runBatch(0, nil)) }, maxRunsUnflushed, true},
		{"the turn is wanted", nil, func(r *receiver) { must.OK(t, r.runBatch(0, rawio.ErrInterrupted)) }, 1, false},
		{"one packet at a time", func(r *receiver) {
			for r.adaptivePolicyOf().State() == pollpolicy.Concurrent {
				r.policy.RecordHandled(1, 100, 0, false)
			}
		}, func(r *receiver) { must.OK(t, r.runBatch(0, nil)) }, 1, false},
	} {
		r := newReceiver(p.a, p.a.link, false)
		if r.flushesOnWait = true; tt.ready != nil {
			tt.ready(&r)
		}
		for range 2 {
			p.a.coalescer.readerFlushes.Store(true)
			_, yours := p.a.coalescer.tryAdd(pkts, 1)
			must.That(t, !yours, "%s: who adds it is to send", tt.name)
			before, runs := p.a.stats.txPackets.Load(), 0
			for ; p.a.stats.txPackets.Load() == before && runs < 99; runs++ {
				tt.run(&r)
			}
			check.That(t, runs == tt.sent && p.a.coalescer.readerFlushes.Load() == tt.goesOn,
				"%s: sent in run %d, and goes on: %v", tt.name, runs, p.a.coalescer.readerFlushes.Load())
		}
	}
}

func TestWhatIsCombined(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, testCombined)
}

func testCombined(t *testing.T) {
	p := newPair(t)
	c, _ := p.connect(t, nil, nil)
	synctest.Wait()
	p.a.readerRole.rx.policy.RecordHandled(9, 900, 1, false)
	p.a.coalescer.expectReplies(9)
	p.a.coalescer.tryAdd([]rawio.Packet{{Vec: [][]byte{[]byte("x")}, Remote: netip.AddrPortFrom(p.bAddr, 0)}}, 1)
	before := p.a.Stats().TxPackets
	must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
	check.Equal(t, "packets sent by who has one behind another's", p.a.Stats().TxPackets-before, 0)
	// which goes out by itself, and not before these
	must.Do(c.WriteMsg(make([]byte, maxCoalescedOctets), SendInfo{}))(t)
	check.Equal(t, "packets sent, four of them for that", p.a.Stats().TxPackets-before, 6)
	synctest.Wait() // nothing comes any more
	a, now := c.lock()
	defer c.unlock()
	to := a.PathStats(0)
	for _, row := range []struct {
		name          string
		enough        int32
		packets, size int
		want          bool
	}{
		{"two of many", 2, 2, maxCoalescedOctets/2 - wire.CommonHeaderLen, true},
		{"behind others, which somebody else sends", 9, 2, 40, true},
		{"one more", 2, 3, 40, false},
		{"longer ones", 2, 2, maxCoalescedOctets/2 - wire.CommonHeaderLen + 4, false},
		{"nobody else was woken", 1, 2, 40, false},
		{"alone", 2, 2, 40, false},
		{"the last of an association", 2, 2, 40, false},
	} {
		p.a.readerRole.rx.policy.RecordHandled(9, 900, 1, false)
		for i := 0; i < 9 && row.name == "alone"; i++ {
			p.a.readerRole.rx.policy.RecordHandled(1, 100, 0, false)
		}
		if row.name == "the last of an association" {
			a.Abort(now, nil)
		}
		p.a.coalescer.flushThreshold.Store(row.enough)
		b := readyBatch(to, row.packets, row.size)
		c.coalescing.mustSend = false
		check.Equal(t, row.name, p.a.tryCoalesce(b, a), row.want)
		check.That(t, (len(b.Pkts) == 0) == row.want && c.coalescing.mustSend == (row.name == "two of many"),
			"%s: %d packets are left, the owner is to send: %v", row.name, len(b.Pkts), c.coalescing.mustSend)
	}
}

// readyBatch is what an association has ready for a path: packets with chunks of so many octets.
func readyBatch(to assoc.PathStats, packets, size int) *assoc.TxBatch {
	b := assoc.NewTxBatch(packets)
	for range packets {
		b.Begin(1, 2, 3, to.Local, to.Remote, 1400)
		b.Commit(wire.AppendPad(b.Tail(), size))
		b.End()
	}
	return b
}

// A batch that is full is sent by the goroutine that finds it so, while the one that is to send it
// has more to do first: else all that a long run brings would go packet by packet.
func TestFullBatchGoesOutForWhoFindsItSo(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, _ := p.connect(t, nil, nil)
		synctest.Wait()
		full := func() {
			for len(p.a.coalescer.batch.pkts) < maxBatchPackets {
				p.a.coalescer.tryAdd(
					[]rawio.Packet{{Vec: [][]byte{[]byte("x")}, Remote: netip.AddrPortFrom(p.bAddr, 0)}}, 1)
			}
		}
		a, _ := c.lock()
		to := a.PathStats(0)
		leave := func() bool {
			c.coalescing.withOthers = true
			return p.a.tryCoalesce(readyBatch(to, 1, 40), a)
		}
		full()
		before := p.a.Stats()
		check.That(t, leave() && p.a.coalescer.pendingPackets.Load() == 1, "a packet behind a full batch: %d wait",
			p.a.coalescer.pendingPackets.Load())
		after := p.a.Stats()
		check.That(t, after.TxPackets == before.TxPackets+maxBatchPackets && after.TxBatches == before.TxBatches+1,
			"sent: %d packets in %d batches",
			after.TxPackets-before.TxPackets, after.TxBatches-before.TxBatches)
		full()
		p.a.coalescer.sendMu.Lock()
		check.That(t, !leave() && p.a.coalescer.pendingPackets.Load() == maxBatchPackets,
			"behind a full batch, with another on its way: %d wait", p.a.coalescer.pendingPackets.Load())
		p.a.coalescer.sendMu.Unlock()
		c.unlock()
		p.a.sendCoalesced()
	})
}

// HEARTBEATs of many associations go out together, and so do their answers: a thread that is woken
// for each would cost more than all else of them.
func TestHeartbeatsGoTogether(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		const many = 100
		p := newPair(t)
		cfg, quiet := Config{}, Config{Backlog: many}
		cfg.HeartbeatInterval, quiet.HeartbeatInterval = time.Second, -1
		l := must.Get(p.b.Listen(0, &quiet))(t)
		for range many {
			must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), &cfg))(t)
		}
		time.Sleep(time.Minute) // the search for the MTU is over
		before := [2]TransportStats{p.a.Stats(), p.b.Stats()}
		time.Sleep(20 * time.Second)
		for i, s := range []TransportStats{p.a.Stats(), p.b.Stats()} {
			packets, batches := s.TxPackets-before[i].TxPackets, s.TxBatches-before[i].TxBatches
			check.That(t, packets >= 9*many && packets > 20*batches, "host %d has sent %d packets in %d batches", i,
				packets, batches)
		}
		for _, c := range p.a.liveConns() {
			c.lock()
			check.That(t, !c.coalescing.withOthers, "what an association sends by itself later is left to others")
			c.unlock()
		}
	})
}
