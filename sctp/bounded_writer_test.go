package sctp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
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
)

// outletTo returns an outlet to a link that is only a WriteBatch, and what tells how a call of its
// ends.
func outletTo(write func([]rawio.Packet) (int, error)) (o *boundedWriter,
	send func(to ...netip.AddrPort) (n int, took time.Duration, err error)) {
	o = newBoundedWriter(write, func(error) {})
	return o, func(to ...netip.AddrPort) (int, time.Duration, error) {
		var pkts []rawio.Packet
		for _, ap := range to {
			pkts = append(pkts, rawio.Packet{Vec: [][]byte{{1}, {2, 3}}, Remote: ap})
		}
		began := time.Now()
		n, err := o.WriteBatch(pkts)
		return n, time.Since(began), err
	}
}

// Where the packets to some addresses block, those to others pass, with whatever they have gone,
// and nobody waits twice for one that blocks.
func TestLinkThatBlocksForOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hosts [3]netip.AddrPort
		for i := range hosts {
			hosts[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 0)
		}
		a, b, c := hosts[0], hosts[1], hosts[2]
		var mu sync.Mutex
		passed, shut := map[netip.AddrPort]int{}, make(chan struct{})
		o, send := outletTo(func(pkts []rawio.Packet) (int, error) {
			for _, p := range pkts {
				if p.Remote != b {
					<-shut
				}
				mu.Lock()
				passed[p.Remote]++
				mu.Unlock()
			}
			return len(pkts), nil
		})
		for i, row := range []struct {
			to   []netip.AddrPort
			n    int
			took time.Duration
			err  error
		}{
			{[]netip.AddrPort{b, a, a, b}, 4, writeTimeout, nil}, // the first that blocks
			{[]netip.AddrPort{b, a, b}, 1, 0, rawio.ErrFull},     // nobody waits for that address again
			{[]netip.AddrPort{b, b}, 2, 0, nil},
			{[]netip.AddrPort{c, b}, 2, lateWriteTimeout, nil}, // the next one is soon known
			{[]netip.AddrPort{c}, 0, 0, rawio.ErrFull},
			{[]netip.AddrPort{b}, 1, 0, nil},
		} {
			n, took, err := send(row.to...)
			check.That(t, n == row.n && took == row.took && err == row.err, "row %d: %d packets in %v, %v", i, n,
				took, err)
		}
		check.That(t, passed[a] == 0 && passed[b] == 2+1+2+1+1 && passed[c] == 0, "passed: %v", passed)
		close(shut)
		synctest.Wait()
		check.That(t, passed[a] == 2 && passed[b] == 7 && passed[c] == 1, "passed when it blocks no more: %v", passed)
		n, took, err := send(a, b)
		check.That(t, n == 2 && took == 0 && err == nil, "when it blocks no more: %d packets in %v, %v", n, took, err)
		o.awaitCalls()
	})
}

// So many calls block at most, to whatever addresses, also where more have begun at a time.
func TestCallsThatBlockAreBounded(t *testing.T) {
	for _, row := range []struct {
		name   string
		atOnce bool
		took   time.Duration
	}{
		{"one after the other", false, writeTimeout + (maxWriteCalls-1)*lateWriteTimeout},
		{"all at once", true, writeTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int32
			shut := make(chan struct{})
			o, send := outletTo(func(pkts []rawio.Packet) (int, error) { calls.Add(1); <-shut; return len(pkts), nil })
			began := time.Now()
			var all sync.WaitGroup
			for i := range 3 * maxWriteCalls {
				all.Go(func() { send(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 0)) })
				if !row.atOnce {
					all.Wait()
				}
			}
			all.Wait()
			took := time.Since(began)
			check.That(t, calls.Load() == maxWriteCalls && took == row.took, "%s: %d calls, in %v", row.name,
				calls.Load(), took)
			close(shut)
			o.awaitCalls() // returns, since none is left
			synctest.Wait()
			check.Equal(t, "calls that are late when none is left", len(o.lateCalls), 0)
		})
	}
}

// What the link says of a call is heard where the caller has waited for it. That the link has ended
// is heard in any case.
func TestWhatTheLinkSaysIsHeard(t *testing.T) {
	for _, row := range []struct {
		name string
		late bool
		err  error // of packet 2 of 5
		n    int
		want error
		ends bool
	}{
		{"refused at once", false, rawio.ErrTooLong, 2, rawio.ErrTooLong, false},
		{"refused late", true, rawio.ErrTooLong, 5, nil, false},
		{"ended at once", false, net.ErrClosed, 2, net.ErrClosed, true},
		{"ended late", true, net.ErrClosed, 5, nil, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			out, ends := "", false
			o := newBoundedWriter(func(pkts []rawio.Packet) (int, error) {
				if row.late {
					time.Sleep(time.Second)
				}
				for _, p := range pkts {
					b := p.Vec[0][0]
					if b == '2' {
						break
					}
					out += string(rune(b))
				}
				return len(out), row.err
			}, func(error) { ends = true })
			memory := []byte("01234")
			var pkts []rawio.Packet
			for i := range memory {
				pkts = append(pkts, rawio.Packet{Vec: [][]byte{memory[i : i+1]}})
			}
			n, err := o.WriteBatch(pkts)
			clear(memory) // it is the caller's again
			o.awaitCalls()
			check.That(t, n == row.n && err == row.want && out == "01" && ends == row.ends,
				"%s: %d packets, %v; written %q, the link has ended: %v", row.name, n, err, out, ends)
		})
	}
}

// slow is a link whose WriteBatch takes its time.
type slow struct{ *mem.Link }

func (l slow) WriteBatch(pkts []rawio.Packet) (int, error) {
	time.Sleep(3 * writeTimeout)
	return l.Link.WriteBatch(pkts)
}

// Close of a Transport lets ABORTs go out that are late.
func TestCloseWaitsForLateCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		p := joinPair(t, la, lb, slow{la}, lb)
		_, peer := p.connect(t, quiet, quiet)
		synctest.Wait()
		p.a.Close()
		<-peer.Done()
		var e *AbortError
		check.That(t, errors.As(peer.Err(), &e) && e.ByPeer, "the peer's association ends by %v", peer.Err())
	})
}

// A prompt link is written to by the callers themselves; a type that has embedded one is not taken
// for one.
func TestPromptLinksHaveNoOutlet(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	p := joinPair(t, la, lb, &dam{Link: la}, lb)
	check.That(t, p.a.writer.bounded != nil && p.b.writer.bounded == nil, "outlets: %v and %v",
		p.a.writer.bounded != nil, p.b.writer.bounded != nil)
}

// An outlet allocates once for a batch, for the goroutine, and nothing for a packet.
func TestOutletAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("a sync.Pool forgets at random then")
	}
	o := newBoundedWriter(func(pkts []rawio.Packet) (int, error) { return len(pkts), nil }, func(error) {})
	pkts := []rawio.Packet{{Vec: [][]byte{{1}, {2}}}, {Vec: [][]byte{{3}}}}
	o.WriteBatch(pkts)
	check.Equal(t, "allocations", testing.AllocsPerRun(100, func() { o.WriteBatch(pkts) }), 1)
}

// dam is a link whose WriteBatch blocks while it is shut.
type dam struct {
	*mem.Link
	mu   sync.Mutex
	shut chan struct{} // guarded by mu; nil: it is open
}

func (d *dam) WriteBatch(pkts []rawio.Packet) (int, error) {
	d.mu.Lock()
	shut := d.shut
	d.mu.Unlock()
	if shut != nil {
		<-shut
	}
	return d.Link.WriteBatch(pkts)
}

func (d *dam) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = make(chan struct{})
}

func (d *dam) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut != nil {
		close(d.shut)
		d.shut = nil
	}
}

func (d *dam) Close() error {
	d.open()
	return d.Link.Close()
}

// A link whose WriteBatch blocks for ever keeps no call for long, whether another call blocks
// already or this one is the first: deadlines hold, the association ends, and those who look see
// it. When the link goes on, what was written arrives.
func TestLinkThatBlocksKeepsNoCall(t *testing.T) {
	soon := 200 * time.Millisecond
	var written atomic.Int64 // octets
	write := func(c *Conn) error {
		n, err := c.WriteMsg(make([]byte, 100), SendInfo{})
		written.Add(int64(n))
		return err
	}
	late := func(err error) error {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("ends by %v, not by its deadline", err)
		}
		return nil
	}
	for _, row := range []struct {
		name string
		call func(p *pair, c *Conn) error
		ends bool // the association ends by it
		in   time.Duration
	}{
		{"WriteMsg", func(_ *pair, c *Conn) error { return write(c) }, false, soon},
		{"WriteMsg until its deadline", func(_ *pair, c *Conn) error {
			c.SetWriteDeadline(time.Now().Add(time.Second))
			for {
				if err := write(c); err != nil {
					return late(err)
				}
			}
		}, false, time.Second + soon},
		{"Write of a stream until its deadline", func(_ *pair, c *Conn) error {
			s := c.Stream(1)
			s.SetDeadline(time.Now().Add(time.Second))
			for {
				n, err := s.Write(make([]byte, 100_000))
				if written.Add(int64(n)); err != nil {
					return late(err)
				}
			}
		}, false, time.Second + soon},
		{"ReadMsg until its deadline", func(_ *pair, c *Conn) error {
			c.SetReadDeadline(time.Now().Add(time.Second))
			_, _, err := c.ReadMsg(make([]byte, 10))
			return late(err)
		}, false, time.Second + soon},
		{"a deadline that is moved into the past", func(_ *pair, c *Conn) error {
			time.AfterFunc(time.Second, func() { c.SetDeadline(time.Unix(1, 0)) })
			_, _, err := c.ReadMsg(make([]byte, 10))
			return late(err)
		}, false, time.Second + soon},
		{"Abort", func(_ *pair, c *Conn) error { c.Abort("enough"); return nil }, true, soon},
		{"Close", func(_ *pair, c *Conn) error { return late(c.Close()) }, true, 10*time.Second + 2*soon},
		{"Stats", func(_ *pair, c *Conn) error { c.Stats(); c.Paths(); c.LocalAddr(); c.RemoteAddr(); return nil }, false, soon},
		{"SetPrimary", func(p *pair, c *Conn) error { return c.SetPrimary(p.bAddr) }, false, soon},
		{"RequestHeartbeat", func(p *pair, c *Conn) error { return c.RequestHeartbeat(p.bAddr) }, false, soon},
		{"Stats of the Transport", func(p *pair, _ *Conn) error { p.a.Stats(); p.a.Totals(); p.a.Trips(); return nil }, false, soon},
		{"Snapshot of the Transport", func(p *pair, _ *Conn) error { p.a.Snapshot(); return nil }, false, soon},
		{"Dial until its context ends", func(p *pair, _ *Conn) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if _, err := p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, 9), quiet); !errors.Is(err,
				context.DeadlineExceeded) {
				return fmt.Errorf("ends by %v", err)
			}
			return nil
		}, false, time.Second + soon},
		{"Close of the Transport", func(p *pair, _ *Conn) error { return p.a.Close() }, true, abortTimeout + soon},
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the first call: %v", row.name, first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					la, lb := mempair.New(t, mem.Options{MTU: 1500})
					d := &dam{Link: la}
					defer d.open()
					p := joinPair(t, la, lb, d, lb)
					c, peer := p.connect(t, quiet, quiet)
					p.connect(t, quiet, quiet)
					synctest.Wait()
					written.Store(0)
					d.close()
					if !first {
						must.OK(t, write(c))
					}
					began := time.Now()
					check.OK(t, row.call(p, c))
					took := time.Since(began)
					check.That(t, took <= row.in, "it takes %v, want %v at most", took, row.in)
					check.Equal(t, "the association has ended", isClosed(c.Done()), row.ends)
					d.open()
					if row.ends {
						return
					}
					c.SetDeadline(time.Time{})
					must.OK(t, write(c))
					for left := int(written.Load()); left > 0; {
						n, _, err := peer.ReadMsg(make([]byte, 1<<17))
						must.OK(t, err)
						left -= n
					}
				})
			})
		}
	}
}
