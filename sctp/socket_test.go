package sctp

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// newSockets opens one on each side of a pair and returns them with the address of b's.
func newSockets(t *testing.T) (a, b *Socket, addr netip.AddrPort) {
	t.Helper()
	p := newPair(t)
	a = must.Get(p.a.OpenSocket(0, nil))(t)
	b = must.Get(p.b.OpenSocket(7, nil))(t)
	return a, b, netip.AddrPortFrom(p.bAddr, 7)
}

func TestSocketSetsAssociationsUpByItself(t *testing.T) {
	a, b, addr := newSockets(t)
	buf := make([]byte, 100)
	for i := range 3 {
		must.Do(a.WriteMsg(fmt.Appendf(nil, "question %d", i), addr, SendInfo{Stream: 2, PPID: uint32(i)}))(t)
		n, from, info, err := b.ReadMsg(buf)
		must.That(t, err == nil && string(buf[:n]) == fmt.Sprintf("question %d", i) && info.PPID == uint32(i) &&
			info.Stream == 2,
			"%q, %+v, %v", buf[:n], info, err)
		// The answer goes to the sender's address and port, over the same association.
		must.Do(b.WriteMsg([]byte("answer"), from.RemoteAddr().(Addr).AddrPort, SendInfo{}))(t)
		n, from, _, err = a.ReadMsg(buf)
		must.That(t, err == nil && string(buf[:n]) == "answer", "%q, %v", buf[:n], err)
		check.Equal(t, "answer from", from.RemoteAddr().(Addr).AddrPort, addr)
	}
	check.That(t, len(a.conns) == 1 && len(b.conns) == 1, "%d and %d associations, want one", len(a.conns),
		len(b.conns))
}

func TestSocketServesManyPeers(t *testing.T) {
	p := newPair(t)
	server := must.Get(p.b.OpenSocket(7, nil))(t)
	const peers, each = 10, 50
	for i := range peers {
		s := must.Get(p.a.OpenSocket(0, nil))(t)
		go func() {
			for j := range each {
				check.Do(s.WriteMsg(fmt.Appendf(nil, "%d %d", i, j), netip.AddrPortFrom(p.bAddr, 7), SendInfo{}))(t)
			}
		}()
	}
	var next [peers]int
	buf := make([]byte, 100)
	for range peers * each {
		n, _, _, err := server.ReadMsg(buf)
		must.OK(t, err)
		var i, j int
		_, err = fmt.Sscan(string(buf[:n]), &i, &j)
		must.That(t, err == nil && j == next[i], "%q, want message %d of peer %d", buf[:n], next[i], i)
		next[i]++
	}
}

// One goroutine that answers many peers is woken once for all that has come: as many answers are
// expected as if each had a goroutine of its own. Those to one peer go together in any case.
func TestAnswersOfASocketAreExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		s := must.Get(p.b.OpenSocket(7, nil))(t)
		var conns []*Conn
		for range 30 {
			conns = append(conns, must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 7), nil))(t))
		}
		r := newReceiver(p.b, p.b.link, false) // what comes next is its run
		expected := func() int32 {
			must.OK(t, r.finishRun(nil))
			return p.b.coalescer.flushThreshold.Load()
		}
		r.runPackets = 1
		expected()
		for _, n := range []int{1, 30, 5} {
			for i := range n {
				must.Do(conns[i].WriteMsg([]byte("question"), SendInfo{}))(t)
			}
			synctest.Wait()
			r.servesSeveral = true
			check.Equal(t, fmt.Sprintf("enough of the answers to %d", n), expected(), int32(n/expectedRepliesPart+1))
			for range n {
				_, _, _, err := s.ReadMsg(make([]byte, 100))
				must.OK(t, err)
			}
			check.Equal(t, fmt.Sprintf("once %d have been read", n), expected(), 1)
		}
		for range 30 {
			must.Do(conns[0].WriteMsg([]byte("question"), SendInfo{}))(t)
		}
		synctest.Wait()
		r.servesSeveral = false
		check.Equal(t, "enough of the answers to one", expected(), 1)
	})
}

// What a Socket dials shares its port as long as that is bound.
func TestAssociationsOfASocketShareItsPort(t *testing.T) {
	s, _, _ := newSockets(t)
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	cfg := &Config{socket: s, LocalPort: 4242}
	bound := func(what string, want uint16, fails error) {
		t.Helper()
		port, err := s.t.bindDialPort(cfg, nil, 0)
		check.That(t, port == want && errors.Is(err, fails), "%s: %d, %v", what, port, err)
		if err == nil {
			s.t.dropPortUser(port)
		}
	}
	bound("a port with two users", s.listener.port, nil)
	check.Equal(t, "users that are left", s.t.ports.users[s.listener.port], 1)
	s.t.closed = true
	bound("of a Transport that has closed", 0, ErrTransportClosed)
	s.t.closed = false
	s.t.dropPortUser(s.listener.port)
	bound("of a Socket that has closed", 4242, nil)
	must.OK(t, s.t.claimLinkPort(s.listener.port, nil))
	s.t.addPortUser(s.listener.port, nil)
}

func TestSocketReadsLongMessagesInPieces(t *testing.T) {
	a, b, addr := newSockets(t)
	want := patternOf(1, 20_000)
	must.Do(a.WriteMsg(want, addr, SendInfo{}))(t)
	var got []byte
	for more := true; more; {
		buf := make([]byte, 3000)
		n, _, info, err := b.ReadMsg(buf)
		must.OK(t, err)
		got, more = append(got, buf[:n]...), info.More
	}
	check.Slice(t, "octets received", got, want)
}

// Both sides write first at the same moment: the INITs collide and one association comes of it.
func TestSocketsCallEachOther(t *testing.T) {
	a, b, addr := newSockets(t)
	back := netip.AddrPortFrom(a.t.localAddr(), a.Port())
	var wg sync.WaitGroup
	wg.Go(func() {
		check.Do(a.WriteMsg([]byte("x"), addr, SendInfo{}))(t)
	})
	wg.Go(func() {
		check.Do(b.WriteMsg([]byte("y"), back, SendInfo{}))(t)
	})
	wg.Wait()
	buf := make([]byte, 10)
	n, _, _, err := a.ReadMsg(buf)
	check.That(t, err == nil && string(buf[:n]) == "y", "a read %q, %v", buf[:n], err)
	n, _, _, err = b.ReadMsg(buf)
	check.That(t, err == nil && string(buf[:n]) == "x", "b read %q, %v", buf[:n], err)
}

// Whoever comes while the association is being set up, by whichever side, waits for it.
func TestManyWritersShareOneSetup(t *testing.T) {
	a, b, addr := newSockets(t)
	const writers = 8
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			check.Do(a.WriteMsg([]byte{byte(i)}, addr, SendInfo{}))(t)
		})
	}
	wg.Wait()
	var got [writers]bool
	buf := make([]byte, 10)
	b.SetReadDeadline(time.Now().Add(30 * time.Second))
	for range writers {
		_, _, _, err := b.ReadMsg(buf)
		must.OK(t, err)
		got[buf[0]] = true
	}
	n := len(b.t.liveConns())
	check.That(t, n == 1 && got == [writers]bool{true, true, true, true, true, true, true, true},
		"%d associations, messages %v", n, got)
}

func TestSocketErrors(t *testing.T) {
	a, b, addr := newSockets(t)
	check.Fails(b.t.OpenSocket(7, nil))(t, "a second socket on the port", rawio.ErrPortInUse)
	a.SetReadDeadline(time.Now().Add(-time.Second))
	_, _, _, err := a.ReadMsg(nil)
	check.That(t, errors.Is(err, os.ErrDeadlineExceeded), "read past the deadline: %v", err)
	a.SetWriteDeadline(time.Now().Add(-time.Second))
	check.Fails(a.WriteMsg([]byte("x"), addr, SendInfo{}))(t, "setup past the deadline", os.ErrDeadlineExceeded)
	check.Equal(t, "packets sent for that", a.t.Stats().TxPackets, 0)
	a.SetWriteDeadline(time.Time{})
	var dial *DialError
	n, err := a.WriteMsg([]byte("x"), netip.AddrPortFrom(addr.Addr(), 9), SendInfo{})
	check.That(t, n == 0 && errors.As(err, &dial), "nobody there: %d octets, %v", n, err)
	must.Do(a.WriteMsg([]byte("unread"), addr, SendInfo{}))(t)
	c := must.Get(a.Conn(addr))(t)
	must.OK(t, c.probePeer())
	if err := b.Close(); err != nil { // with a message unread
		t.Errorf("close: %v", err)
	}
	<-c.Done()
	_, _, _, err = b.ReadMsg(nil)
	check.That(t, errors.Is(err, net.ErrClosed), "read of a closed socket: %v", err)
	check.Fails(b.WriteMsg([]byte("x"), addr, SendInfo{}))(t, "write to a closed socket", net.ErrClosed)
	check.Error(t, "second close", b.Close(), nil)
}

// A peer has one association with a Socket, however it is called.
func TestSocketMeetsAPeerOnce(t *testing.T) {
	a, b, _ := apiPair(t)
	s := must.Get(a.OpenSocket(0, nil))(t)
	must.Get(b.OpenSocket(7, &Config{LocalAddrs: []netip.Addr{addrsB[0].Addr(), addrsB[1].Addr()}}))(t)
	must.Do(s.WriteMsg([]byte("x"), netip.AddrPortFrom(addrsB[0].Addr(), 7), SendInfo{}))(t)
	check.Fails(s.WriteMsg([]byte("x"), netip.AddrPortFrom(addrsB[1].Addr(), 7), SendInfo{}))(t,
		"by its other address", endpoint.ErrExists)
	check.Equal(t, "ports of Dial", len(a.ports.dialUsers), 0)
}

// A caller that waits for a set-up, its own or that of another goroutine, hears at once why it is
// given up, or has failed.
func TestSocketSetupThatFails(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(s *Socket, peer *mempair.LossyLink)
		took time.Duration
		want error
	}{
		{"the deadline of writes", func(s *Socket, _ *mempair.LossyLink) { s.SetWriteDeadline(time.Now().Add(time.Second)) }, time.Second, os.ErrDeadlineExceeded},
		{"Close", func(s *Socket, _ *mempair.LossyLink) { s.Close() }, 0, net.ErrClosed},
		{"a peer that refuses", func(s *Socket, peer *mempair.LossyLink) { peer.Lose.Store(false) }, time.Second, syscall.ECONNREFUSED},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _, links := apiPair(t)
				s := must.Get(a.OpenSocket(0, nil))(t)
				s.SetReadDeadline(time.Now())
				links[1].Lose.Store(true)
				began := time.Now()
				var ends []<-chan error
				for range 2 {
					ends = append(ends, startBlocked(func() error {
						n, err := s.WriteMsg([]byte("x"), netip.AddrPortFrom(addrsB[0].Addr(), 7), SendInfo{})
						check.Equal(t, "octets written", n, 0)
						return err
					}))
				}
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				check.Fails(s.joinSetup(gone, netip.AddrPortFrom(addrsB[0].Addr(), 7)))(t,
					"of a caller that waits no longer", context.Canceled)
				row.end(s, links[1])
				for i, end := range ends {
					err := <-end
					check.That(t, errors.Is(err, row.want) && time.Since(began) == row.took, "call %d: %v after %v",
						i, err, time.Since(began))
				}
			})
		})
	}
}

// What an association that is ended for want of memory has left unread in a Socket goes, a message
// that was begun included, and that of others stays.
func TestSocketDropsWhatIsStarved(t *testing.T) {
	a, b, addr := newSockets(t)
	second := must.Get(a.t.OpenSocket(0, nil))(t)
	unread := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.queue.len()
	}
	for i, m := range []struct {
		s    *Socket
		text string
	}{{a, "first"}, {second, "second"}, {a, "third"}} {
		must.Do(m.s.WriteMsg([]byte(m.text), addr, SendInfo{}))(t)
		until(t, "its arrival", func() bool { return unread() == i+1 })
	}
	buf := make([]byte, 10)
	_, c, _, err := b.ReadMsg(buf[:2])
	must.OK(t, err)
	c.lock()
	c.abortForMemory(1)
	check.That(t, c.recv.unreadInSocket == 0 && c.core.Buffered() == 0, "%d messages are left, %d octets",
		c.recv.unreadInSocket,
		c.core.Buffered())
	c.unlock()
	n, _, _, err := b.ReadMsg(buf)
	check.That(t, string(buf[:n]) == "second" && err == nil && unread() == 0, "%q, %v, and %d more are left", buf[:n],
		err, unread())
	b.mu.Lock()
	left := slices.Collect(maps.Values(b.conns))
	b.mu.Unlock()
	must.That(t, len(left) == 1 && left[0] != c, "%d associations are left, or the one that has ended", len(left))
	must.OK(t, b.Close())
	until(t, "all memory to be given back", func() bool { return b.t.Memory().Used <= 8<<10 })
}

// A Socket that always has something unread takes no memory for what follows, and gives back what a
// great deal of it took.
func TestMessagesOfASocketLieWhereOthersLay(t *testing.T) {
	var q socketQueue
	next, read := 0, 0
	conns := make([]Conn, 100)
	push := func() { q.push(socketMessage{c: &conns[next%len(conns)]}); next++ }
	others := 0
	pop := func() {
		if q.list[q.head].c != &conns[read%len(conns)] {
			others++
		}
		q.pop()
		read++
	}
	for range 3 {
		push()
	}
	check.Equal(t, "allocations", testing.AllocsPerRun(1000, func() { push(); pop() }), 0)
	check.That(t, cap(q.list) <= 16, "room for %d messages, where three wait", cap(q.list))
	for q.len() > 0 {
		pop()
	}
	for q.len() <= maxSparePackets {
		push()
	}
	for q.len() > 0 {
		pop()
	}
	check.That(t, read == next && others == 0, "%d of %d messages were read, %d of them in the place of others", read,
		next, others)
	check.Equal(t, "room kept once all is read", cap(q.list), 0)
}

// What an association leaves unread goes with it, whatever has been read before, and the others'
// stays in order.
func TestWhatOneLeavesUnreadOthersDoNotMiss(t *testing.T) {
	p := newPair(t)
	s := must.Get(p.b.OpenSocket(7, nil))(t)
	c, d := must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 7), nil))(t),
		must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 7), nil))(t)
	read := func() string {
		b := make([]byte, 100)
		n, _, _, err := s.ReadMsg(b[:2]) // the first half
		must.OK(t, err)
		return string(b[:n])
	}
	write := func(c *Conn, list ...string) {
		for _, m := range list {
			must.Do(c.WriteMsg([]byte(m), SendInfo{SackNow: true}))(t)
		}
		for c.Stats().Outstanding > 0 {
			runtime.Gosched()
		}
	}
	write(c, "c0", "c1")
	write(d, "d0")
	write(c, "c2abc")
	write(d, "d1")
	check.Equal(t, "first", read(), "c0")
	s.mu.Lock()
	gone := s.queue.list[s.queue.head].c
	s.mu.Unlock()
	gone.lock()
	s.dropUnread(gone)
	gone.unlock()
	check.Equal(t, "then", read(), "d0")
	check.Equal(t, "and", read(), "d1")
	s.mu.Lock()
	defer s.mu.Unlock()
	check.That(t, s.queue.len() == 0 && gone.recv.unreadInSocket == 0, "%d messages are left, and %d are said to be",
		s.queue.len(), gone.recv.unreadInSocket)
}

// An association that has ended is a Socket's no more, also if its primary path has become another,
// or its end is told of before its beginning.
func TestSocketForgetsAssociationsThatHaveEnded(t *testing.T) {
	p, local, remote, _ := newHomes(t)
	a, b := must.Get(p.a.OpenSocket(0, quickTimers(local)))(t), must.Get(p.b.OpenSocket(7, quickTimers(remote)))(t)
	must.Do(a.WriteMsg([]byte("x"), netip.AddrPortFrom(p.bAddr, 7), SendInfo{}))(t)
	_, c, _, err := b.ReadMsg(make([]byte, 1))
	must.OK(t, err)
	has := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.conns)
	}
	must.Equal(t, "associations", has(), 1)
	was := c.RemoteAddr().(Addr).Addr()
	must.OK(t, c.SetPrimary(local[1]))
	must.That(t, c.RemoteAddr().(Addr).Addr() != was, "the primary path is the one of before")
	c.Abort("")
	<-c.Done()
	check.Equal(t, "associations once it has ended", has(), 0)
	b.addConn(c)
	check.Equal(t, "associations when its beginning was read long ago", has(), 0)
}
