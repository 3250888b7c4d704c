package assoc_test

import (
	"fmt"
	"math/rand"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// multi is two hosts with several addresses each, joined by networks that fail and return: network i
// joins the i-th addresses of both. Host 0 connects to host 1.
type multi struct {
	t     *testing.T
	now   rawio.Time
	net   *simnet.Net
	hosts [2]*host
	addrs [2][]netip.Addr
	sent  []trip
	log   []happening
	alarm rawio.Time // something else is to happen then
}

// trip is a packet that a host sent, lost ones included.
type trip struct {
	at       rawio.Time
	from, to netip.Addr
	pkt      wire.Packet
}

// happening is an event of an association.
type happening struct {
	at   rawio.Time
	host int
	assoc.Event
}

// newMulti has n networks with the latency of the other tests, 10.1.0.0/24 being the first.
func newMulti(t *testing.T, n int) *multi {
	w := &multi{t: t, now: rawio.Time(time.Hour), net: simnet.New(1), alarm: rawio.Never}
	for i := range w.hosts {
		for k := range n {
			w.addrs[i] = append(w.addrs[i], netip.AddrFrom4([4]byte{10, byte(1 + k), 0, byte(1 + i)}))
		}
		h := &host{id: i, batch: assoc.NewTxBatch(4), ep: endpoint.New(endpoint.Config{
			Rand: rand.New(rand.NewSource(int64(i + 1))),
			MTU:  func(_, _ netip.Addr) int { return testMTU },
		})}
		h.onEvent = func(_ *assoc.Assoc, e assoc.Event) { w.log = append(w.log, happening{w.now, i, e}) }
		w.hosts[i] = h
	}
	for k := range n {
		w.net.Connect(w.addrs[0][k], w.addrs[1][k], simnet.Params{Delay: latency})
	}
	return w
}

// associate has both hosts use all their addresses and host 0 know the first of host 1 only. It returns
// when every address is confirmed.
func (w *multi) associate(ca, cb assoc.Config) (a, b *assoc.Assoc) {
	w.t.Helper()
	ca.LocalAddrs, cb.LocalAddrs = w.addrs[0], w.addrs[1]
	w.listen(&cb)
	a = w.connect(&ca, w.addrs[1][0])
	up := func() bool {
		for _, h := range w.hosts {
			if len(h.assocs) == 0 || h.assocs[0].State() != assoc.Established {
				return false
			}
			for _, p := range paths(h.assocs[0]) {
				if p.State != assoc.PathActive {
					return false
				}
			}
		}
		return true
	}
	if !w.runUntil(w.now.Add(time.Minute), up) {
		w.t.Fatalf("not all paths came up: %+v", paths(a))
	}
	return a, w.hosts[1].assocs[0]
}

func (w *multi) listen(cfg *assoc.Config) {
	w.t.Helper()
	if err := w.hosts[1].ep.Listen(portB, cfg); err != nil {
		w.t.Fatal(err)
	}
}

func (w *multi) connect(cfg *assoc.Config, to ...netip.Addr) *assoc.Assoc {
	w.t.Helper()
	var remotes []netip.AddrPort
	for _, r := range to {
		remotes = append(remotes, netip.AddrPortFrom(r, 0))
	}
	a, err := w.hosts[0].ep.Connect(w.now, cfg, portA, netip.AddrPort{}, remotes, portB)
	if err != nil {
		w.t.Fatal(err)
	}
	w.hosts[0].adopt(a)
	return a
}

// cut and heal end and restore a network.
func (w *multi) cut(k int)  { w.net.Partition(w.addrs[0][k], w.addrs[1][k]) }
func (w *multi) heal(k int) { w.net.Heal(w.addrs[0][k], w.addrs[1][k]) }

func (w *multi) run(d time.Duration) { w.runUntil(w.now.Add(d), func() bool { return false }) }

// runUntil runs until done says so or the time is up, and says whether done did.
func (w *multi) runUntil(end rawio.Time, done func() bool) bool {
	w.t.Helper()
	for range 1_000_000 {
		w.flush()
		if done() {
			return true
		}
		next := min(w.net.NextArrival(), w.alarm)
		for _, h := range w.hosts {
			for _, a := range h.assocs {
				next = min(next, a.NextTimeout())
			}
		}
		if next > end {
			w.now = end
			return false
		}
		w.now = max(w.now, next)
		for to, p, ok := w.net.Deliver(w.now); ok; to, p, ok = w.net.Deliver(w.now) {
			for i, h := range w.hosts {
				if slices.Contains(w.addrs[i], to) {
					h.receive(w.now, &p)
				}
			}
			p.Release()
		}
		for _, h := range w.hosts {
			for _, a := range h.assocs {
				if a.NextTimeout() <= w.now {
					a.HandleTimeout(w.now)
				}
			}
		}
	}
	w.t.Fatal("the world does not come to rest")
	return false
}

func (w *multi) flush() {
	for i, h := range w.hosts {
		take := func() {
			for k := range h.batch.Pkts {
				p := &h.batch.Pkts[k]
				if !p.Local.IsValid() {
					p.Local = netip.AddrPortFrom(w.addrs[i][0], 0)
				}
				w.sent = append(w.sent, trip{w.now, p.Local.Addr(), p.Remote.Addr(), slices.Concat(p.Vec...)})
				w.net.Send(w.now, p)
			}
			h.batch.Reset()
		}
		h.settle()
		for more := true; more; take() {
			more = h.ep.PollTransmit(w.now, h.batch)
		}
		for _, a := range h.assocs {
			for more := true; more; take() {
				more = a.PollTransmit(w.now, h.batch)
			}
		}
		h.settle()
	}
}

// seen returns the packets with a chunk of that type to an address since a time.
func (w *multi) seen(to netip.Addr, t wire.ChunkType, since rawio.Time) (list []trip) {
	for _, s := range w.sent {
		if s.to == to && s.at >= since && has(s.pkt, t) {
			list = append(list, s)
		}
	}
	return list
}

// when returns the time of the first event of that kind on a host since a time. addr may be invalid for
// any path.
func (w *multi) when(host int, k assoc.EventKind, addr netip.Addr, since rawio.Time) (at rawio.Time, ok bool) {
	for _, e := range w.log {
		if e.host == host && e.Kind == k && e.at >= since && (!addr.IsValid() || e.Path.Addr() == addr) {
			return e.at, true
		}
	}
	return 0, false
}

func paths(a *assoc.Assoc) (list []assoc.PathStats) {
	for i := range a.NumPaths() {
		list = append(list, a.PathStats(i))
	}
	return list
}

// pathTo returns the statistics of the path to an address.
func pathTo(t *testing.T, a *assoc.Assoc, addr netip.Addr) assoc.PathStats {
	t.Helper()
	for _, p := range paths(a) {
		if p.Remote.Addr() == addr {
			return p
		}
	}
	t.Fatalf("no path to %v", addr)
	return assoc.PathStats{}
}

// stream sends numbered messages in one direction, a new one each time that every has passed and the
// send queue is short, and checks that each arrives once and in order.
type stream struct {
	w        *multi
	a, b     *assoc.Assoc
	left     int
	every    time.Duration // 0: as fast as may be
	due      rawio.Time
	next     int // to be sent
	want     int // expected next
	arrivals []rawio.Time
}

const streamSize = 1000

// startStream is to send count messages from a to b; its done does it.
func (w *multi) startStream(a, b *assoc.Assoc, count int) *stream {
	return &stream{w: w, a: a, b: b, left: count}
}

// trickle is to send messages for as long as somebody looks.
func (w *multi) trickle(a, b *assoc.Assoc, every time.Duration) *stream {
	return &stream{w: w, a: a, b: b, left: 1 << 30, every: every, due: w.now}
}

// done sends and receives what can be now, and says whether every message has arrived.
func (s *stream) done() bool {
	s.w.t.Helper()
	for s.left > 0 && s.a.State() == assoc.Established && s.due <= s.w.now {
		if s.every > 0 {
			s.due = s.w.now.Add(s.every)
			s.w.alarm = s.due
		}
		if s.a.Stats().Queued >= 20*streamSize {
			break
		}
		body := make([]byte, streamSize)
		copy(body, fmt.Sprintf("message %d", s.next))
		m := assoc.Message{Body: [2][]byte{body}, Token: uint64(s.next)}
		if err := s.a.Send(s.w.now, &m); err != nil {
			s.w.t.Fatal(err)
		}
		s.next++
		s.left--
	}
	s.w.flush()
	for _, m := range drain(s.b) {
		if want := fmt.Sprintf("message %d", s.want); string(m[:len(want)]) != want || len(m) != streamSize {
			s.w.t.Fatalf("received %q, want %q", m[:20], want)
		}
		s.want++
		s.arrivals = append(s.arrivals, s.w.now)
	}
	return s.left == 0 && s.want == s.next
}

// pause returns the longest time without an arrival after since.
func (s *stream) pause(since rawio.Time) (longest time.Duration) {
	last := since
	for _, at := range s.arrivals {
		if at >= since {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return longest
}
