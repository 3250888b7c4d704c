package sctp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/internal/readrole"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// echoAll answers messages on d until its end.
func echoAll(d *Conn) {
	b := make([]byte, 1500)
	for {
		n, info, err := d.ReadMsg(b)
		if err != nil {
			return
		}
		if _, err := d.WriteMsg(b[:n], SendInfo{Stream: info.Stream}); err != nil {
			return
		}
	}
}

// roundTrip sends a message and reads the answer.
func roundTrip(t *testing.T, c *Conn) {
	t.Helper()
	b := make([]byte, 1500)
	must.Do(c.WriteMsg(b[:64], SendInfo{}))(t)
	n, _, err := c.ReadMsg(b)
	must.That(t, err == nil && n == 64, "%d octets, %v", n, err)
}

// takeTurns has both ends take turns: as many messages as it takes to see that packets come one at
// a time.
func takeTurns(t *testing.T, c *Conn) {
	t.Helper()
	for range 40 {
		roundTrip(t, c)
	}
}

// warmPair is a pair whose ends take turns, and its association.
func warmPair(t *testing.T) (p *pair, c, d *Conn) {
	p = newPair(t)
	c, d = p.connect(t, nil, nil)
	go echoAll(d)
	takeTurns(t, c)
	return p, c, d
}

func (t *Transport) turnState() readrole.State { return t.readerRole.State() }

// startBlocked starts f, which is to block, and returns what its error will be sent on.
func startBlocked(f func() error) <-chan error {
	end := make(chan error, 1)
	go func() { end <- f() }()
	synctest.Wait()
	return end
}

func TestWhoWaitsReadsTheLink(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, d := p.connect(t, nil, nil)
		go echoAll(d)
		must.Equal(t, "state before anybody waits", p.a.turnState(), readrole.Receiver)
		takeTurns(t, c)
		synctest.Wait()
		s, r := p.b.turnState(), p.b.readerRole.readerSignal.Load()
		check.That(t, s == readrole.Caller && r == &d.recv.readable,
			"state %d while the server waits for the next message, reader %p", s, r)
		check.Equal(t, "state while the client does something else", p.a.turnState(), readrole.Free)
		began := time.Now()
		check.OK(t, p.a.Close())
		check.Equal(t, "what Close takes while nobody reads", time.Since(began), 0)
	})
}

// The reader of the link stops when what it waits for comes otherwise, and others who wait for the
// same hear of it too.
func TestReaderOfTheLinkIsInterrupted(t *testing.T) {
	needsAdaptive(t)
	read := func(c *Conn) error {
		_, _, err := c.ReadMsg(make([]byte, 1500))
		return err
	}
	for _, tt := range []struct {
		name string
		do   func(p *pair, c *Conn)
		want error
	}{
		{"deadline that passes", func(p *pair, c *Conn) { c.SetReadDeadline(time.Now().Add(time.Second)) }, os.ErrDeadlineExceeded},
		{"deadline that has passed", func(p *pair, c *Conn) { c.SetReadDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		{"deadline that has passed for a moment", func(p *pair, c *Conn) { c.SetReadDeadline(time.Now()); c.SetReadDeadline(time.Time{}) }, os.ErrDeadlineExceeded},
		{"Abort", func(p *pair, c *Conn) { c.Abort("enough") }, net.ErrClosed},
		{"an end that nobody has asked for", func(p *pair, c *Conn) {
			a, now := c.lock()
			a.Abort(now, nil)
			c.unlock()
		}, syscall.ECONNABORTED},
		{"Close of the transport", func(p *pair, c *Conn) { p.a.Close() }, net.ErrClosed},
		{"another goroutine's token", func(p *pair, c *Conn) {
			c.lock()
			c.end.closing = true // ReadMsg is to see it
			c.unlock()
			c.recv.readable.Set()
		}, net.ErrClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, c, _ := warmPair(t)
				call := func() error { return read(c) }
				ends := [...]<-chan error{startBlocked(call), startBlocked(call), startBlocked(call)}
				must.Equal(t, "whether the client reads the link", p.a.readerRole.readerSignal.Load(), &c.recv.readable)
				began := time.Now()
				tt.do(p, c)
				for _, end := range ends {
					check.Error(t, "of the reader", <-end, tt.want)
				}
				took := time.Since(began)
				check.That(t, took <= time.Second, "after %v", took)
			})
		})
	}
}

// Several goroutines wait; one of them reads the link for all.
func TestOneReadsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := warmPair(t)
		s := c.Stream(1)
		first := startBlocked(func() error { _, err := s.Read(make([]byte, 100)); return err })
		second := startBlocked(func() error { _, _, err := c.ReadMsg(make([]byte, 100)); return err })
		for _, stream := range []uint16{0, 1} {
			must.Do(c.WriteMsg([]byte("x"), SendInfo{Stream: stream}))(t)
			end := second
			if stream == 1 {
				end = first
			}
			check.OK(t, <-end)
		}
	})
}

// A program that does not come back leaves the link to the receive goroutine: after 10 ms when it
// has been quick before, and at once when it has not.
func TestSlowReaderLeavesTheLink(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, d := p.connect(t, nil, nil)
		serve := make(chan struct{})
		go func() {
			b := make([]byte, 1500)
			for {
				n, _, err := d.ReadMsg(b)
				if err != nil {
					return
				}
				if b[0] == 's' {
					<-serve
				}
				if _, err := d.WriteMsg(b[:n], SendInfo{}); err != nil {
					return
				}
			}
		}()
		takeTurns(t, c)
		for _, atMost := range []time.Duration{readrole.MaxLeftAlone, 0} {
			must.Do(c.WriteMsg([]byte("slow"), SendInfo{}))(t)
			synctest.Wait() // the server has read it
			began, sacks := time.Now(), d.Stats().SacksOut
			must.Do(c.WriteMsg([]byte("who acknowledges this?"), SendInfo{SackNow: true}))(t)
			for synctest.Wait(); d.Stats().SacksOut == sacks; synctest.Wait() {
				time.Sleep(time.Millisecond) // of virtual time
			}
			took := time.Since(began)
			check.That(t, took <= atMost, "acknowledged after %v, want %v at most", took, atMost)
			synctest.Wait()
			check.Equal(t, "state while the server does something else", p.b.turnState(), readrole.Receiver)
			serve <- struct{}{}
			for range 2 {
				readOne(t, c)
			}
			synctest.Wait()
		}
		takeTurns(t, c)
		synctest.Wait()
		check.Equal(t, "state when the server has become quick again", p.b.turnState(), readrole.Caller)
	})
}

// A reader that has lost the processor for a while goes on reading if it is quick else; one that is
// slow again and again does not.
func TestOnceSlowReaderReadsOn(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		p, c, _ := warmPair(t)
		slow := func() {
			time.Sleep(2 * p.a.readerRole.rx.adaptivePolicyOf().BaseSpinBudget()) // of virtual time
			roundTrip(t, c)
			synctest.Wait()
		}
		for range 20 {
			slow()
			check.Equal(t, "state when the client was slow once", p.a.turnState(), readrole.Free)
			for range readrole.SlowReturnCost {
				roundTrip(t, c)
			}
			synctest.Wait()
			check.Equal(t, "state when it was quick again", p.a.turnState(), readrole.Free)
		}
		for range readrole.MaxPromptScore / readrole.SlowReturnCost {
			slow()
		}
		slow()
		check.Equal(t, "state when it was always slow", p.a.turnState(), readrole.Receiver)
	})
}

// The timer that watches a link that is left alone goes off once in a while, whoever is away just
// then; the receive goroutine is called only if nobody has been there for so long.
func TestLinkIsLeftToWhoIsThereNowAndThen(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		p, c, _ := warmPair(t)
		for range 1000 {
			// of virtual time, less than readrole.MaxLeftAlone
			time.Sleep(p.a.readerRole.rx.adaptivePolicyOf().BaseSpinBudget() / 2)
			roundTrip(t, c)
			synctest.Wait()
			check.Equal(t, "state while the client is away for a moment", p.a.turnState(), readrole.Free)
		}
		time.Sleep(readrole.MaxLeftAlone - time.Microsecond)
		synctest.Wait()
		check.Equal(t, "state just before it has been away for long", p.a.turnState(), readrole.Free)
		time.Sleep(time.Microsecond)
		synctest.Wait()
		check.Equal(t, "state when it has been", p.a.turnState(), readrole.Receiver)
	})
}

// A caller that waits and does not get the turn, as it was not quick, does not wait for the timer
// either: it has the receive goroutine called at once if nobody reads.
func TestSlowWaiterCallsTheReceiver(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		p, c, _ := warmPair(t)
		must.Equal(t, "state while the client does something else", p.a.turnState(), readrole.Free)
		p.a.readerRole.PromptScore.Store(0)                                   // it mostly was not quick
		time.Sleep(2 * p.a.readerRole.rx.adaptivePolicyOf().BaseSpinBudget()) // of virtual time
		end := startBlocked(func() error { _, _, err := c.ReadMsg(make([]byte, 100)); return err })
		check.Equal(t, "state while the client waits", p.a.turnState(), readrole.Receiver)
		c.Abort("enough")
		check.Error(t, "of the caller that waits", <-end, net.ErrClosed)
	})
}

// reads counts the reads that say that the link is closed.
type reads struct {
	*mem.Link
	closed atomic.Int32
}

func (r *reads) ReadBatch(pkts []rawio.Packet) (int, error) {
	n, err := r.Link.ReadBatch(pkts)
	if err == net.ErrClosed {
		r.closed.Add(1)
	}
	return n, err
}

// A link learns its reader's end even if nobody reads it when it is closed: it has buffers to give
// back.
func TestClosedLinkIsReadOnce(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		p, link := &pair{bAddr: lb.LocalAddrs()[0].Addr()}, &reads{Link: la}
		p.a = must.Get(NewTransport(link, nil))(t)
		p.b = must.Get(NewTransport(lb, nil))(t)
		defer p.b.Close()
		c, d := p.connect(t, nil, nil)
		go echoAll(d)
		takeTurns(t, c)
		must.Equal(t, "state", p.a.turnState(), readrole.Free)
		p.a.Close()
		check.That(t, link.closed.Load() != 0, "nobody has read the link since it was closed")
	})
}

// broken is a link that fails when its reader is interrupted.
type broken struct{ *mem.Link }

func (l broken) ReadBatch(pkts []rawio.Packet) (int, error) {
	n, err := l.Link.ReadBatch(pkts)
	if err == rawio.ErrInterrupted {
		err = errors.New("a cable is out")
	}
	return n, err
}

// A link that fails ends all associations, and the journal says why.
func TestLinkThatFailsEndsAssociations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		p := joinPair(t, la, lb, broken{la}, lb)
		var log bytes.Buffer
		p.a.eventLog = newEventLog(slog.New(slog.NewTextHandler(&log, nil)), false)
		c, d := p.connect(t, nil, nil)
		synctest.Wait() // the receive goroutine reads; who asks for the turn then interrupts it
		check.That(t, !p.a.readerRole.takeRole(true, true) && p.a.turnState() == readrole.Ended, "it is read on")
		synctest.Wait()
		check.That(t, c.Err() != nil && d.Err() != nil && strings.Contains(d.Err().Error(), "a cable is out"),
			"%v, %v", c.Err(), d.Err())
		check.That(t, strings.Contains(log.String(), `level=ERROR msg="link failed" reason="a cable is out"`), "%s",
			log.String())
	})
}

// Several that wait for room, or for messages of several streams, hear of what ends the wait, one
// after the other.
func TestEveryWriterHearsOfTheEnd(t *testing.T) {
	for name, end := range map[string]func(c *Conn){
		"Abort": func(c *Conn) { c.Abort("enough") },
		"deadline": func(c *Conn) {
			c.SetWriteDeadline(time.Now())
			for s := range c.recv.streams.all() {
				s.SetReadDeadline(time.Now())
			}
		},
		"its end": func(c *Conn) { a, now := c.lock(); a.Abort(now, nil); c.unlock() },
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b, links := apiPair(t)
			c, _ := connectTransports(t, a, b, &Config{SendBuffer: 1000}, nil)
			links[0].Lose.Store(true)
			var ends []<-chan error
			for id := range uint16(8) {
				ends = append(ends, startBlocked(func() error { return secondOf(c.Stream(id).Read(make([]byte, 1))) }))
				ends = append(ends, startBlocked(func() error {
					return secondOf(c.WriteMsg(make([]byte, 1000), SendInfo{}))
				}))
			}
			end(c)
			synctest.Wait()
			for i, e := range ends {
				check.That(t, len(e) == 1, "%s: call %d waits on", name, i)
			}
			check.That(t, <-ends[15] != nil, "%s: there was room", name)
		})
	}
}

// Whoever reads a link that fails goes on to wait: for what comes otherwise.
func TestWhoReadsAFailingLinkWaitsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, _ := warmPair(t)
		s, set := p.a.newSignal(), false
		s.waitEndedAt.Store(p.a.now()) // it is quick to be back
		p.a.link.Close()
		end := startBlocked(func() error { set = s.Wait(nil, nil); return nil })
		s.Set()
		<-end
		check.That(t, set, "it has not waited")
	})
}

// A caller that waits goes on when either channel is closed, whether it reads the link or not.
func TestWhoWaitsHearsOfBothChannels(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		p, _, _ := warmPair(t)
		p.a.readerRole.PromptScore.Store(0)
		for i := range 4 {
			s, ends := p.a.newSignal(), [2]chan struct{}{}
			ends[i%2] = make(chan struct{})
			s.waitEndedAt.Store(p.a.now().Add(-time.Duration(i/2) * time.Hour)) // the first two are quick to be back
			end := startBlocked(func() error { s.Wait(ends[0], ends[1]); return nil })
			must.Equal(t, "whether it reads", p.a.readerRole.readerSignal.Load() == s, i < 2)
			close(ends[i%2])
			p.a.wakeLinkReader()
			synctest.Wait()
			check.That(t, len(end) == 1, "it does not hear of channel %d", i)
		}
	})
}

// Where packets come in numbers for one goroutine, which sends nothing back, that one reads the
// link.
func TestWhoTakesAllThatComesReadsTheLink(t *testing.T) {
	needsAdaptive(t)
	for _, answers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			c, d := p.connect(t, nil, nil)
			go func() {
				b := make([]byte, 20000)
				for err := error(nil); err == nil; {
					if _, _, err = d.ReadMsg(b); err == nil && answers {
						_, err = d.WriteMsg(b[:1], SendInfo{})
					}
				}
			}()
			for range 300 {
				must.Do(c.WriteMsg(make([]byte, 20000), SendInfo{}))(t)
				synctest.Wait()
			}
			want := readrole.Caller
			if answers {
				want = readrole.Receiver
			}
			s := p.b.readerRole.rx.adaptivePolicyOf().State()
			check.That(t, s == pollpolicy.Concurrent && p.b.turnState() == want,
				"packets come %v, turn %d, want %d (answers %v)", s, p.b.turnState(), want, answers)
		})
	}
}

// Where packets come in numbers, the receive goroutine handles them while the program handles what
// they bring.
func TestBulkIsLeftToTheReceiveGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, _ := warmPair(t)
		synctest.Wait() // all is quiet
		p.b.readerRole.rx.policy.RecordHandled(3, 300, 0, false)
		must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		synctest.Wait()
		check.Equal(t, "state", p.b.turnState(), readrole.Receiver)
	})
}

// batches is a link that receives the batches that it is given.
type batches struct {
	rawio.Link
	in chan []rawio.Packet
}

func (l *batches) ReadBatch(pkts []rawio.Packet) (int, error) {
	b, ok := <-l.in
	if !ok {
		return 0, net.ErrClosed
	}
	return copy(pkts, b), nil
}

func (l *batches) Close() error {
	close(l.in)
	return l.Link.Close()
}

// newFed returns an association over a link that receives the batches that it is given, and that
// linkOf makes something of.
func newFed(t *testing.T, linkOf func(*batches) rawio.Link) (*batches, *Conn) {
	t.Helper()
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	t.Cleanup(func() { lb.Close() })
	link := &batches{la, make(chan []rawio.Packet)}
	tr := must.Get(NewTransport(linkOf(link), nil))(t)
	t.Cleanup(func() { tr.Close() })
	c := must.Get(tr.startAssoc(netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), 1), &Config{}))(t)
	return link, c
}

// Packets come one at a time as long as no batch has many of them, or long ones.
func TestBulkIsToldByTheBatches(t *testing.T) {
	needsAdaptive(t)
	for _, tt := range []struct {
		name          string
		packets, size int
		lends         bool // after one such batch
		// and their headers
	}{{"one", 1, 100, true}, {"two", 2, 100, true}, {"three", 3, 100, false}, {"long ones", 2, 2 << 10, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link, c := newFed(t, func(l *batches) rawio.Link { return l })
				for range 20 {
					link.in <- []rawio.Packet{heartbeatTo(c, "x")}
				}
				synctest.Wait()
				must.That(t, c.t.readerRole.rx.policy.LendLimit() > 0, "not lent after one packet at a time")
				link.in <- slices.Repeat([]rawio.Packet{heartbeatTo(c, string(make([]byte, tt.size)))}, tt.packets)
				synctest.Wait()
				check.Equal(t, "lent", c.t.readerRole.rx.policy.LendLimit() > 0, tt.lends)
			})
		})
	}
}

// A link that cannot be interrupted is read by the receive goroutine alone.
func TestPlainLinkHasNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.b.readerRole.interrupter = nil
		c, d := p.connect(t, nil, nil)
		go echoAll(d)
		takeTurns(t, c)
		synctest.Wait()
		check.Equal(t, "state", p.b.turnState(), readrole.Receiver)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.b.wakeLinkReader() // finds nobody
		_, err := d.NextEvent(ctx)
		check.That(t, err != nil, "an event")
	})
}
