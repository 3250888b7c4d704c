package sctp

import (
	"bytes"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/internal/account"
)

// What waits for the owner of an association is bounded, in packets and in octets, each time anew;
// what does not fit goes back to its pool, and a long backlog leaves no memory behind.
func TestBacklogHasTwoBounds(t *testing.T) {
	for _, row := range []struct {
		name      string
		size, fit int
	}{
		{"packets", 100, maxBacklogPackets},
		{"octets", 1 << 16, maxBacklogOctets >> 16},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := backlog{account: new(account.Account)}
			data := make([]byte, row.size)
			for round := range 2 {
				for i := range row.fit {
					must.That(t, g.enqueue(&rawio.Packet{Data: data}) == enqueueOK,
						"round %d: packet %d of %d finds no room", round, i, row.fit)
				}
				buf := rawio.NewBuf(data)
				buf.Retain()
				check.That(t, g.enqueue(&rawio.Packet{Data: data, Buf: buf}) == enqueueFull,
					"round %d: room for more than %d", round, row.fit)
				check.That(t, g.enqueue(&rawio.Packet{Data: data[:1]}) == enqueueFull,
					"round %d: room for one octet more", round)
				check.That(t, buf.Refs() == 1, "round %d: a packet without room keeps its buffer", round)
				b := g.take()
				check.That(t, len(b) == row.fit && g.count.Load() == 0 && g.takenOctets == row.fit*row.size,
					"round %d: %d taken with %d octets, %d wait", round, len(b), g.takenOctets, g.count.Load())
				g.recycle(b)
			}
			check.That(t, cap(g.spareSlice) <= maxSparePackets, "room for %d packets is kept, want %d at most",
				cap(g.spareSlice), maxSparePackets)
		})
	}
}

// What waits counts as much as it keeps from other use: a whole buffer, once; and a short packet
// that lies alone in a long one its part of another buffer, as it is copied.
func TestBacklogCountsWhatItKeeps(t *testing.T) {
	g := backlog{arenaPool: rawio.NewPool(arenaOctets, 1), account: new(account.Account)}
	defer g.close()
	var buf *rawio.Buf
	var sum int
	for i, row := range []struct {
		data, octets, filled int // octets 0: in the buffer of the one before
		keeps                int
		copied               bool
	}{
		{100, 1000, 900, 1000, false}, // one of many
		{100, 0, 900, 0, false},
		{500, 1000, 0, 1000, false}, // half of it
		{499, 1000, 500, 1000, false},
		{499, 1000, 499, arenaOctets, true},
		{arenaOctets - 499, 4 * arenaOctets, 0, 0, true}, // to the last octet
		{1, 1000, 1, arenaOctets, true},
		{1, 1000, 1, 0, true},
		{600, -1, 0, 600, false}, // no buffer
	} {
		before := g.octets
		p := rawio.Packet{Data: make([]byte, row.data)}
		if row.octets > 0 {
			buf = rawio.NewBuf(make([]byte, row.octets))
			buf.Filled = row.filled
		} else if row.octets == 0 {
			buf.Retain()
		}
		if row.octets >= 0 {
			p.Buf, p.Data = buf, buf.B[:row.data]
		}
		for k := range p.Data {
			p.Data[k] = byte(i + 1)
		}
		refs := buf.Refs()
		want := slices.Repeat([]byte{byte(i + 1)}, row.data)
		check.That(t, g.enqueue(&p) == enqueueOK && p.Data == nil && g.octets-before == row.keeps &&
			row.copied == (buf.Refs() == refs-1),
			"packet %d: %d octets, %d references", i, g.octets-before, buf.Refs())
		clear(buf.B)
		check.That(t, !row.copied || bytes.Equal(g.packets[i].Data, want), "packet %d has been changed", i)
		sum += row.keeps
	}
	b := g.take()
	check.That(t, len(b) == 9 && g.takenOctets == sum && g.octets == 0 && g.arena == nil,
		"%d packets taken with %d octets, %d are left", len(b), g.takenOctets, g.octets)
	for i := range b {
		b[i].Release()
	}
	for n, want := range map[int]bool{maxSparePackets: true, maxSparePackets + 1: false} {
		g.spareSlice = nil
		g.recycle(make([]rawio.Packet, 0, n))
		check.That(t, (g.spareSlice != nil) == want && g.takenOctets == 0, "room for %d packets is kept: %v", n, !want)
	}
}

// While memory is short nothing more of an association that has more than its share is to wait;
// once it is not, it is again.
func TestBacklogWhileMemoryIsShort(t *testing.T) {
	total, host := account.NewTotal(1<<20), netip.MustParseAddr("10.0.1.1")
	var owner, other account.Account
	g := backlog{assocAccount: &owner, account: new(account.Account)}
	defer g.close()
	total.Open(&owner, account.Peer{Addr: host})
	total.Open(&other, account.Peer{Addr: host})
	owner.Share(g.account)
	owner.Charge(2 * account.Quantum)
	for i, step := range []struct {
		others, octets int
		want           bool
	}{
		{4, 64 << 10, true},  // with that it is short
		{4, 100, false},      // and stays so
		{3, 100, true},       // not any more
		{4, 100, true},       // what changes nothing for others does not ask them
		{4, 128 << 10, true}, // but this does
		{4, 100, false},
	} {
		other.Trim(step.others * account.Quantum)
		check.That(t, (g.enqueue(&rawio.Packet{Data: make([]byte, step.octets)}) == enqueueOK) == step.want,
			"step %d: room %v", i, !step.want)
	}
}

// All memory of a backlog counts, until it is closed.
func TestBacklogCountsAllItsMemory(t *testing.T) {
	total := account.NewTotal(1 << 30)
	var owner account.Account
	g := backlog{assocAccount: &owner, account: new(account.Account)}
	total.Open(&owner, account.Peer{Addr: netip.MustParseAddr("10.0.1.1")})
	owner.Share(g.account)
	buf := rawio.NewBuf(make([]byte, 64<<10))
	post := func(times int) {
		for range times {
			g.enqueue(&rawio.Packet{Data: buf.B[:1]})
		}
		held := g.octets + g.takenOctets + (cap(g.packets)+cap(g.spareSlice))*packetOctets
		want := (held + account.Quantum - 1) / account.Quantum * account.Quantum
		check.That(t, g.account.Drawn() == int64(want), "%d octets are counted, not %d",
			g.account.Drawn(), want)
	}
	for range 4 {
		g.octets += 64 << 10 // as if a buffer waited
		post(1)
	}
	b := g.take()
	g.octets += 64 << 10
	post(1)
	g.recycle(b)
	post(3000)
	g.recycle(g.take())
	post(2500)
	for range 2 {
		buf.Retain()
		g.enqueue(&rawio.Packet{Data: buf.B, Buf: buf})
	}
	b = g.take()
	b[len(b)-1].Release()
	b[len(b)-2].Release()
	buf.Retain()
	g.enqueue(&rawio.Packet{Data: buf.B, Buf: buf})
	rawio.ReleaseAll(g.close())
	g.recycle(b)
	left := g.account.Drawn()
	check.That(t, left == 0 && g.packets == nil && g.count.Load() == 0 &&
		g.enqueue(&rawio.Packet{Data: buf.B}) == enqueueClosed && g.account.Drawn() == 0 &&
		buf.Refs() == 1, "%d octets are counted at the end, %d packets wait, %d refer to a buffer", left,
		g.count.Load(), buf.Refs())
}

// ceaseless is a link that leaves a packet in a backlog with each batch that it sends, so that
// there is ever more to answer. With the last of so many batches, and with the next, it blocks
// until that is over.
type ceaseless struct {
	*mem.Link
	c     *Conn // of the backlog; nil: an ordinary link
	p     rawio.Packet
	left  int
	takes time.Duration // a batch
	over  chan struct{}
}

// behindCeaseless is an association over such a link, with a packet in its backlog. Its owner is
// the caller.
func behindCeaseless(t *testing.T, left int, takes time.Duration) (*ceaseless, *Conn) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	link := &ceaseless{Link: lb, left: left, takes: takes, over: make(chan struct{})}
	_, s := joinPair(t, la, lb, la, link).connect(t, quiet, quiet)
	synctest.Wait()
	link.p = heartbeatTo(s, "x")
	s.lock()
	link.c = s
	first := link.p
	s.backlog.enqueue(&first)
	return link, s
}

func (l *ceaseless) WriteBatch(pkts []rawio.Packet) (int, error) {
	if l.c != nil {
		time.Sleep(l.takes)
	}
	switch {
	case l.c == nil:
	case l.left == 0:
		l.c = nil
		<-l.over
	default:
		if l.left--; l.left == 0 {
			<-l.over
		}
		q := l.p
		l.c.backlog.enqueue(&q)
	}
	return l.Link.WriteBatch(pkts)
}

// Prompt has the owner itself be in WriteBatch.
func (l *ceaseless) Prompt() rawio.Link { return l }

// However much there is to do, an API call does its share of it and no more.
func TestBulkDoesNotHoldACallCaptive(t *testing.T) {
	for _, row := range []struct {
		takes time.Duration
		turn  int // batches before others may have the gate
	}{{0, maxBatchesPerHold}, {maxSendTime / 3, 4}} {
		synctest.Test(t, func(t *testing.T) {
			link, s := behindCeaseless(t, (maxRoundsPerCaller+1)*row.turn, row.takes)
			returned := make(chan struct{})
			go func() { s.unlock(); close(returned) }()
			for _, want := range []bool{false, true} {
				time.Sleep(time.Second) // until the link blocks
				synctest.Wait()
				check.That(t, link.left == 0 && isClosed(returned) == want,
					"%d batches before the end of its share the call has returned: %v", link.left, !want)
				link.over <- struct{}{}
			}
			<-returned
		})
	}
}

// An owner sends some batches, for some time, before others may have the gate, and says whether
// there is more. The goroutine that gives the lock up sends that too.
func TestOwnerStopsAfterSomeBatches(t *testing.T) {
	for _, row := range []struct {
		left  int
		takes time.Duration
		sent  uint64
		more  bool
	}{{2 * maxBatchesPerHold, 0, maxBatchesPerHold, true}, {2 * maxBatchesPerHold, maxSendTime / 3, 4, true},
		{5, 0, 6, false}, {0, maxSendTime, 1, false}} {
		synctest.Test(t, func(t *testing.T) {
			link, s := behindCeaseless(t, row.left, row.takes)
			close(link.over)
			before := s.t.stats.txBatches.Load()
			more, sent := s.flushPending(s.t.now()), s.t.stats.txBatches.Load()-before
			check.That(t, more == row.more && sent == row.sent, "%d batches of %v, %d of them sent, more: %v",
				row.left, row.takes, sent, more)
			link.c = nil
			s.unlock()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		link, s := behindCeaseless(t, maxBatchesPerHold, 0)
		close(link.over)
		before := s.t.stats.txBatches.Load()
		s.unlock()
		check.That(t, s.t.stats.txBatches.Load() == before+maxBatchesPerHold+1, "%d batches sent of %d",
			s.t.stats.txBatches.Load()-before, maxBatchesPerHold+1)
	})
}

// A reader that finds that packets were handled whose message nobody has passed on, or that one
// has come meanwhile, goes on with it.
func TestReaderGoesOnWithWhatOthersHaveLeft(t *testing.T) {
	for _, handled := range []bool{true, false} {
		// nothing else comes
		p, msg, calm := newPair(t), []byte("what was left"), &Config{DisablePMTUD: true, HeartbeatInterval: -1}
		c, s := p.connect(t, calm, calm)
		_, now := s.lock()
		must.Do(c.WriteMsg(msg, SendInfo{}))(t)
		until(t, "the message comes", func() bool {
			s.backlog.mu.Lock()
			defer s.backlog.mu.Unlock()
			return slices.ContainsFunc(s.backlog.packets, func(p rawio.Packet) bool {
				return bytes.Contains(p.Data, msg)
			})
		})
		if handled {
			s.drainBacklog(now)
			s.t.transmitBatch(now, &s.core) // the SACK
		}
		s.unlockAfterRead(now)
		s.lock()
		check.That(t, s.recv.inbox.first() != nil, "handled %v: the message is not passed on", handled)
		s.unlock()
	}
}

// Where packets come in bulk over a link of the kernel, who waits for the owner of an association
// cedes the processor some times before it sleeps, and goes on as soon as it can.
func TestWaitsForTheGateAwakeInBulk(t *testing.T) {
	needsAdaptive(t)
	kernels := func(l *batches) rawio.Link { return buffered{l} }
	others := func(l *batches) rawio.Link { return l }
	for _, row := range []struct {
		name    string
		linkOf  func(*batches) rawio.Link
		packets int // in a batch
		opens   int32
		cedes   int32
	}{
		{"bulk, soon open", kernels, 3, 1, 1},
		{"bulk, open in the end", kernels, 3, lockYieldTries, lockYieldTries},
		{"bulk, open later", kernels, 3, lockYieldTries + 1, lockYieldTries},
		{"one packet at a time", kernels, 1, 1, 0},
		{"another link", others, 3, 1, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link, c := newFed(t, row.linkOf)
				for range 100 {
					link.in <- slices.Repeat([]rawio.Packet{heartbeatTo(c, "x")}, row.packets)
				}
				synctest.Wait()
				var ceded atomic.Int32
				c.t.yieldCPU = func() {
					if ceded.Add(1) == row.opens {
						c.releaseLock()
					}
				}
				c.acquireLock()
				if row.opens > row.cedes {
					go func() {
						for ceded.Load() < row.cedes {
							runtime.Gosched()
						}
						c.releaseLock()
					}()
				}
				c.acquireLock()
				c.releaseLock()
				check.Equal(t, "times that it has ceded the processor", ceded.Load(), row.cedes)
			})
		})
	}
}
