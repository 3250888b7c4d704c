package rdma

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

func TestIdleStreamsAreReclaimed(t *testing.T) {
	// req 5042-6.4.2-1
	x := newLab(t, nil)
	writes, busy := x.join(nil)
	reads, read := x.join(nil)
	_, idle := x.join(nil)
	unconnected := newSide(t, x.b, nil, nil)
	for range 2 * sweepsPerTimeout {
		x.b.sweepIdle()
		x.a.sweepIdle()
		writes.post(SendWR{Op: OpWrite, RemoteSTag: busy.mr.STag()}) // no octet, but a sign of life
		writes.good()
		reads.post(SendWR{Op: OpRead, SGL: []SGE{reads.mr.SGE(0, 1)}, RemoteSTag: read.mr.STag()})
		reads.good()
	}
	err := idle.qp.Err()
	check.That(t, errors.Is(err, ErrIdle) && idle.qp.State() == StateError, "the idle one: %v, %v", idle.qp.State(),
		err)
	ev := event(t, x.b, EventQPFatal)
	check.That(t, ev.QP == idle.qp && errors.Is(ev.Err, ErrIdle), "%+v", ev)
	<-idle.qp.Done()
	for _, s := range []*side{writes, busy, reads, read} {
		check.Equal(t, "a busy one", s.qp.State(), StateRTS)
	}
	left := x.b.QPs()
	check.That(t, slices.Contains(left, busy.qp) && slices.Contains(left, unconnected.qp) && len(left) == 3,
		"left are %d QPs", len(left))
	for _, took := range []Latency{x.a.Latency(), func() Latency { x.a.Close(); return x.a.Latency() }()} {
		w, r := took.Write.Total(), took.Read.Total()
		check.That(t, w == 2*sweepsPerTimeout && r == w && took.Send.Total()+took.Atomic.Total() == 0,
			"measured are %d Writes and %d Reads", w, r)
	}
}

func TestVacantAssociationsAreEnded(t *testing.T) {
	// req 5042-6.4.2-1
	x := newLab(t, nil)
	x.join(nil)
	x.vacant(t)
	left := x.b.Peers()
	check.That(t, len(left) == 1 && left[0].Stats().Sessions == 1, "left are %+v", left)
}

// plain is an association of a's, with a window, that no QP is on.
func (x *lab) plain(window int) *sctp.Conn {
	cfg := sctp.Config{RecvBuffer: window}
	cfg.Upper().Change(ddpadapt.Configure)
	return must.Get(x.a.Transport().Dial(ctx(x.t), x.addr, &cfg))(x.t)
}

// vacant has b end an association of a's that never has a session.
func (x *lab) vacant(t *testing.T) {
	t.Helper()
	before := len(x.b.Peers())
	conn := x.plain(0)
	knows := func(n int) { // one hears of it after the other
		for c := ctx(t); len(x.b.Peers()) != n; runtime.Gosched() {
			must.That(t, c.Err() == nil, "b has %d peers, not %d", len(x.b.Peers()), n)
		}
	}
	knows(before + 1)
	for range sweepsPerTimeout {
		x.b.sweepIdle()
	}
	must.That(t, !isClosed(conn.Done()) && conn.Stats().State == assoc.Established, "it was ended too early")
	x.b.sweepIdle()
	<-conn.Done()
	check.Equal(t, "end", conn.Err(), assoc.ErrShutdown)
	conn.Close()
	knows(before)
}

// A peer that acknowledges nothing any more does not keep what has ended here, neither sessions nor
// their association; nor does one that answers the probes of its window, for which SCTP would wait
// for ever.
func TestSilentPeerKeepsNoAssociation(t *testing.T) {
	// req 5042-6.4.2-1
	synctest.Test(t, func(t *testing.T) {
		x := newLab(t, &Config{IdleTimeout: 4 * time.Second})
		peer := x.plain(4 << 10)
		// an Initiate
		must.Do(peer.WriteMsg([]byte{0, 0, 0, 1}, sctp.SendInfo{PPID: ddpadapt.PPIDControl, Unordered: true}))(t)
		req := must.Get(x.l.Accept(ctx(t)))(t)
		b := newSide(t, x.b, nil, nil)
		must.OK(t, req.Accept(b.qp, nil))
		for range 16 { // more than the window
			b.post(SendWR{Op: OpSend, SGL: []SGE{b.mr.SGE(0, 1000)}})
		}
		synctest.Wait()
		conn := b.qp.peer.Load().sctp().c
		b.qp.Close()
		time.Sleep(9500 * time.Millisecond) // of the bubble's time
		check.That(t, !isClosed(conn.Done()) && peer.Stats().OutOfWindow >= 2,
			"it was ended too early, by %v, when the peer had answered %d probes", conn.Err(), peer.Stats().OutOfWindow)
		time.Sleep(time.Second)
		check.That(t, isClosed(conn.Done()) && x.b.Stats().VacantEnded == 1, "it is kept: %d peers", len(x.b.Peers()))
		peer.Close()
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestIdleTimeout(t *testing.T) {
	// req 5042-6.4.2-1
	for timeout, want := range map[time.Duration]time.Duration{time.Second: 1500 * time.Millisecond,
		time.Millisecond: 6 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			a, b := newLab(t, &Config{IdleTimeout: timeout}).join(nil)
			<-a.qp.Done()
			<-b.qp.Done()
			check.That(t, (errors.Is(a.qp.Err(), ErrIdle) || errors.Is(b.qp.Err(), ErrIdle)) &&
				time.Since(began) == want,
				"ended by %v and %v after %v, want %v", a.qp.Err(), b.qp.Err(), time.Since(began), want)
		})
	}
}

func TestPeersAreCountedAndAborted(t *testing.T) {
	// req 5042-6.4.4-1: what costs and ends no stream is counted, by peer and by stream, and the
	// administrator can end either.
	x := newLab(t, &Config{Limits: Limits{MaxPending: 1}})
	a, b := x.join(nil)
	// Requests beyond MaxPending are refused by the stack.
	var asking sync.WaitGroup
	for range 3 {
		s := newSide(t, x.a, nil, nil)
		asking.Go(func() {
			_, err := s.qp.Connect(ctx(t), x.addr, nil)
			check.That(t, err != nil, "connected, though nobody accepts")
		})
	}
	peers := x.b.Peers()
	must.That(t, len(peers) == 1 && peers[0].Remote() == b.qp.RemoteAddr(), "%d peers", len(peers))
	for peers[0].Stats().Refused < 2 {
		a.post(SendWR{Op: OpWrite, RemoteSTag: b.mr.STag()})
		a.good()
	}
	s, n := peers[0].Stats(), cap(x.a.sctp.slotFor(peerName{}).busy)
	check.That(t, s.Sessions >= 2 && n == 1, "%+v, %d may set up an association with one peer at once", s, n)
	p := b.qp.lockCore().sctp()
	n = p.Held() - int(unsafe.Sizeof(*p)) - p.Mux.Held() - p.chargedOctets
	check.That(t, n == p.Mux.Pending()*(requestOctets+llp.MaxPrivateData) && n != 0,
		"a request that waits counts as %d octets", n)
	b.qp.unchargePeer(&p.peer)
	check.That(t, p.chargedOctets == 0, "the peer is still charged %d octets for queues", p.chargedOctets)
	b.qp.unlockCore(&p.peer)
	before, ok := b.qp.StreamStats()
	a.post(SendWR{Op: OpWrite, RemoteSTag: b.mr.STag()})
	a.good()
	after, _ := b.qp.StreamStats()
	check.That(t, ok && after.In == before.In+1 && after.Out == before.Out && after.OutOfOrder+after.Fragmented == 0,
		"%+v, then %+v", before, after)
	_, ok = newSide(t, x.b, nil, nil).qp.StreamStats()
	check.That(t, !ok, "counters of a QP that is not connected")
	peers[0].Abort("too many requests")
	<-a.qp.Done()
	<-b.qp.Done()
	asking.Wait()
	event(t, x.b, EventAssocDown)
	check.Equal(t, "peers left", len(x.b.Peers()), 0)
}

func TestNoTerminatesBeforeAnAbort(t *testing.T) {
	// req 5043-11.3-2: the association goes, and its streams with it, without a word on each.
	x := newLab(t, nil)
	var as []*side
	for range 5 {
		a, _ := x.join(nil)
		as = append(as, a)
	}
	p := x.b.Peers()[0]
	before := p.Stats().SegmentsOut
	p.Abort("maintenance")
	for _, a := range as {
		<-a.qp.Done()
		var e *rdmap.StreamError
		check.That(t, errors.As(a.qp.Err(), &e) && e.Terminate == nil, "ended by %v", a.qp.Err())
	}
	check.Equal(t, "segments sent", p.Stats().SegmentsOut-before, 0)
}
