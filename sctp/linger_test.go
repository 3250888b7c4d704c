package sctp

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// behindDoor is a pair whose first end is behind a doorkeeper.
func behindDoor(t *testing.T, lose wire.ChunkType) (*pair, *mempair.PortFilter) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	d := &mempair.PortFilter{Link: la, Open: make(map[uint16]bool), Unbound: make(chan uint16, 2*maxLingeringPorts),
		Lose: lose}
	return joinPair(t, la, lb, d, lb), d
}

// nothing is a chunk that is never sent.
const nothing = wire.ChunkType(0xff)

// shortTimers are timers of so much, with few retransmissions.
func shortTimers(rto time.Duration) *Config {
	c := &Config{}
	c.RTOInitial, c.RTOMin, c.RTOMax, c.AssocMaxRetrans = rto, rto, rto, 3
	return c
}

// The SHUTDOWN COMPLETE is lost: the peer repeats its SHUTDOWN ACK, which is out of the blue by
// then, and is answered.
func TestShutdownAckIsAnsweredAfterTheEnd(t *testing.T) {
	// req 9260-8.4-6
	p, d := behindDoor(t, wire.ChunkShutdownComplete)
	c, s := p.connect(t, shortTimers(200*time.Millisecond), shortTimers(20*time.Millisecond))
	must.OK(t, c.Close())
	<-s.Done()
	check.Equal(t, "the peer's end", s.Err(), assoc.ErrShutdown)
	check.Equal(t, "packets lost", d.Lost, 1)
}

// The same, and the peer's T2-shutdown, which has backed off, is many times the RTO that our end
// has measured.
func TestShutdownAckThatComesLateIsAnswered(t *testing.T) {
	// req 9260-8.4-6
	p, _ := behindDoor(t, wire.ChunkShutdownComplete)
	cfg := shortTimers(20 * time.Millisecond)
	cfg.RTOMax = 400 * time.Millisecond
	c, s := p.connect(t, cfg, shortTimers(cfg.RTOMax))
	must.OK(t, c.Close())
	<-s.Done()
	check.Equal(t, "the peer's end", s.Err(), assoc.ErrShutdown)
}

// The ABORT is lost: the peer's DATA is answered by another.
func TestDataIsAnsweredAfterAnAbort(t *testing.T) {
	p, d := behindDoor(t, wire.ChunkAbort)
	c, s := p.connect(t, shortTimers(200*time.Millisecond), shortTimers(20*time.Millisecond))
	c.Abort("test")
	var abort *assoc.AbortError
	_, err := s.WriteMsg([]byte("is anybody there?"), SendInfo{})
	must.That(t, err == nil || errors.As(err, &abort), "%v", err) // a probe of the path may have been answered before
	<-s.Done()
	check.That(t, errors.As(s.Err(), &abort), "the peer ended with %v, want an ABORT", s.Err())
	check.Equal(t, "packets lost", d.Lost, 1)
}

// A port that lingers is nobody's: this Transport may use it at once, and in the end it is given
// back.
func TestPortLingersForAWhile(t *testing.T) {
	p, d := behindDoor(t, nothing)
	cfg := shortTimers(20 * time.Millisecond)
	cfg.LocalPort = 5000
	for range 2 {
		c, s := p.connect(t, cfg, nil)
		must.OK(t, c.Close())
		<-s.Done()
	}
	check.Equal(t, "port that was given back", <-d.Unbound, 5000)
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	check.That(t, len(p.a.ports.lingering) == 0 && len(p.a.ports.users) == 0 && len(d.Unbound) == 0,
		"%d ports linger, %d are bound, %d were given back twice", len(p.a.ports.lingering), len(p.a.ports.users),
		len(d.Unbound))
}

// Whoever takes the port in the moment that it is to be given back keeps it.
func TestPortThatIsTakenAgainStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := behindDoor(t, nothing)
		p.a.mu.Lock()
		must.OK(t, p.a.bindFreePort(5000, nil))
		p.a.releasePort(5000, 0)
		must.Equal(t, "ports that linger for no time", len(p.a.ports.lingering), 0)
		<-d.Unbound
		must.OK(t, p.a.bindFreePort(5000, nil))
		p.a.releasePort(5000, time.Second)
		time.Sleep(time.Second) // of virtual time: who is to give it back waits for the lock
		check.OK(t, p.a.bindFreePort(5000, nil))
		p.a.mu.Unlock()
		synctest.Wait()
		n := p.a.ports.users[5000]
		check.That(t, n == 1 && len(d.Unbound) == 0, "the port has %d users, and was given back %d times", n,
			len(d.Unbound))
	})
}

func TestListenOnALingeringPort(t *testing.T) {
	p, _ := behindDoor(t, nothing)
	cfg := shortTimers(time.Minute)
	cfg.LocalPort = 5000
	c, _ := p.connect(t, cfg, nil)
	must.OK(t, c.Close())
	must.Equal(t, "lingering ports", len(p.a.ports.lingering), 1)
	l := must.Get(p.a.Listen(5000, nil))(t)
	check.Fails(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 1), cfg))(t, "dial from a port that listens",
		rawio.ErrPortInUse)
	l.Close()
}

func TestFewPortsLinger(t *testing.T) {
	p, d := behindDoor(t, nothing)
	p.a.mu.Lock()
	for port := range uint16(maxLingeringPorts + 10) {
		must.OK(t, p.a.bindFreePort(1000+port, nil))
		p.a.releasePort(1000+port, time.Hour)
	}
	must.OK(t, p.a.bindFreePort(7, nil))
	p.a.ports.users[7]++
	p.a.releasePort(7, time.Hour)
	check.That(t, p.a.ports.users[7] == 1 && p.a.ports.lingering[7] == nil, "a port that has another user lingers")
	p.a.dropPortUser(7)
	p.a.mu.Unlock()
	check.That(t, len(p.a.ports.lingering) == maxLingeringPorts && len(d.Open) == maxLingeringPorts,
		"%d linger, %d are bound, want %d", len(p.a.ports.lingering), len(d.Open), maxLingeringPorts)
	for port := range uint16(maxLingeringPorts + 10) { // the oldest make room
		check.That(t, d.Open[1000+port] == (port >= 10), "port %d of %d: bound %v", port, maxLingeringPorts+10,
			d.Open[1000+port])
	}
	p.connect(t, nil, nil) // whose port does not begin to linger
	p.a.Close()
	check.That(t, len(p.a.ports.lingering) == 0 && len(d.Unbound) == 12,
		"%d ports linger after Close, %d were given back before", len(p.a.ports.lingering), len(d.Unbound))
}

// A port that was listened on does not linger: it is free as soon as neither a Listener nor an
// association has it.
func TestPortOfAListenerDoesNotLinger(t *testing.T) {
	p, d := behindDoor(t, nothing)
	l := must.Get(p.a.Listen(5000, shortTimers(time.Minute)))(t)
	c := must.Get(p.b.Dial(deadlineCtx(t), netip.AddrPortFrom(d.Link.(rawio.Addresser).LocalAddrs()[0].Addr(), 5000),
		nil))(t)
	s := must.Get(l.Accept(deadlineCtx(t)))(t)
	l.Close()
	check.Equal(t, "ports given back while an association has them", len(d.Unbound), 0)
	must.OK(t, c.Close())
	<-s.Done()
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	check.That(t, len(p.a.ports.lingering) == 0 && len(p.a.ports.users) == 0 && len(d.Unbound) == 1,
		"%d ports linger, %d are bound, %d were given back", len(p.a.ports.lingering), len(p.a.ports.users),
		len(d.Unbound))
}

// A port lingers for as long as the peer may try again: by the timeout of now, or by the longest
// that there may be.
func TestPortLingersForSeveralTimeouts(t *testing.T) {
	for most, want := range map[time.Duration]time.Duration{time.Second: 4 * time.Second,
		3 * time.Second: 6 * time.Second, time.Hour: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := newPair(t).connect(t, &Config{RTOMax: most}, nil)
			c.lock()
			got := c.lingerTime()
			c.unlock()
			check.That(t, got == want, "with an RTO of %v at most: %v, want %v", most, got, want)
		})
	}
}
