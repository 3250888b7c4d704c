package rdma

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

func TestEachQPHasItsOwnStream(t *testing.T) {
	// req 5040-3.1-1, 5040-5.5-1: a stalled stream does not hold up another: no order between them.
	x := newLab(t, nil)
	a1, b1 := x.join(nil)
	a2, b2 := x.join(nil)
	s1, _ := a1.qp.Stats()
	s2, _ := a2.qp.Stats()
	check.That(t, s1.OutStreams >= 2 && s2.OutStreams == s1.OutStreams, "%d streams", s1.OutStreams)
	b2.recv(1, 0, 100)
	a1.post(SendWR{ID: 1, Op: OpSend, Inline: []byte("nobody waits for this")}) // ends the first stream
	a2.post(SendWR{ID: 2, Op: OpSend, Inline: []byte("this arrives")})
	wc := b2.good()
	check.That(t, wc.ID == 1 && string(b2.buf[:12]) == "this arrives", "%+v", wc)
	<-b1.qp.Done()
	check.Equal(t, "state of the second stream", a2.qp.State(), rdmap.StateRTS)
}

func TestQueuesAreSharedOnlyOnRequest(t *testing.T) {
	// req 5040-8.1.1-10, 5042-7.1-1, 5042-3-1, 5041-8.3.2-3, 5040-8.1.2-2: each QP reports where
	// its own configuration says.
	x := newLab(t, nil)
	a1, b1 := x.join(nil)
	a2, b2 := x.join(nil)
	b1.recv(1, 0, 10)
	b2.recv(2, 0, 10)
	a1.post(SendWR{ID: 11, Op: OpSend, Inline: []byte("x")})
	a2.post(SendWR{ID: 12, Op: OpSend, Inline: []byte("y")})
	for _, row := range []struct {
		s    *side
		want uint64
	}{{a1, 11}, {a2, 12}, {b1, 1}, {b2, 2}} {
		wc := row.s.good()
		check.That(t, wc.ID == row.want && wc.QPNum == row.s.qp.Num(), "%+v on the queue of QP %d", wc, row.s.qp.Num())
		var more [1]WC
		n, _ := row.s.cq.Poll(more[:])
		check.That(t, n == 0, "also %+v", more[0])
	}
	// Memory of one Protection Domain is nothing to a stream of another, which is what a QP gets
	// that is not told to share. req 5042-6.1.1-2
	before := bytes.Clone(b2.buf)
	a1.post(SendWR{ID: 13, Op: OpWrite, SGL: []SGE{a1.mr.SGE(0, 10)}, RemoteSTag: b2.mr.STag()})
	select {
	case <-b1.qp.Done():
	case <-time.After(4 * time.Second):
		t.Error("the stream goes on")
	}
	// req 5042-6.1.1-1
	check.That(t, bytes.Equal(b2.buf, before) && b2.qp.State() == rdmap.StateRTS,
		"the other stream noticed: state %v", b2.qp.State())
}

// A QP without a peer has no path and no association; one with a peer has that of its session.
func TestWhatAQPKnowsOfItsPath(t *testing.T) {
	x := newLab(t, nil)
	alone := newSide(t, x.a, nil, nil).qp
	_, path := alone.Path()
	_, stats := alone.Stats()
	check.That(t, !path && !stats && alone.Paths() == nil && alone.MULPDU() == 0 && !alone.RemoteAddr().IsValid() &&
		alone.Disconnect(ctx(t)) == nil,
		"path %v, association %v, MULPDU %d, peer %v", path, stats, alone.MULPDU(), alone.RemoteAddr())
	a, b := x.join(nil)
	p, ok := a.qp.Path()
	s, has := a.qp.Stats()
	check.That(t, ok && has && p.Primary && len(a.qp.Paths()) == 1 && a.qp.Paths()[0].Remote == p.Remote &&
		p.Remote.Addr() == x.addr.Addr() && s.State == assoc.Established && a.qp.RemoteAddr() == x.addr,
		"%+v, %+v, peer %v", p, s, a.qp.RemoteAddr())
	far := b.qp.lockCore() // it does not answer
	check.Equal(t, "Disconnect without time", a.qp.Disconnect(must.Ended()), context.Canceled)
	b.qp.unlockCore(far)
	must.OK(t, a.qp.Disconnect(ctx(t)))
	a, _ = x.join(nil)
	a.post(SendWR{Op: OpSend, Inline: []byte("no receive for it")})
	<-a.qp.Done()
	err := a.qp.Disconnect(ctx(t))
	check.That(t, errors.As(err, new(*rdmap.StreamError)), "Disconnect of a stream that has failed: %v", err)
}

// Queue pairs whose memory is to be given back take turns, and others are served in between; so do
// sessions that end at once.
func TestFlushesTakeTurns(t *testing.T) {
	a, _ := newLab(t, nil).join(nil)
	var others [eventsPerCall - 1]*QP
	for i := range others {
		others[i] = newSide(t, a.dev, nil, nil).qp
	}
	p := a.qp.peer.Load().sctp()
	_, now := p.c.Upper().Lock()
	defer p.c.Upper().Unlock()
	p.flushingQPs = []*QP{a.qp, a.qp}
	first, second := p.HandleReceived(now), p.HandleReceived(now)
	check.That(t, first && !second && len(p.flushingQPs) == 0, "there is more to do: %v, then %v", first, second)
	for _, q := range others {
		q.bindSession(&p.peer, sctpSession{must.Get(p.Open(now, -1, q.core.Stream(), nil))(t)})
	}
	p.Mux.HandleEvent(now, assoc.Event{Kind: assoc.EventDown, Err: assoc.ErrShutdown})
	first, up := p.HandleReceived(now), p.isUp
	second = p.HandleReceived(now)
	check.That(t, first && up && !second && !p.isUp,
		"there is more to do: %v, then %v, and the association is up: %v, then %v", first, second, up, p.isUp)
}

// An association has room for a session as long as it is established and not all its streams are
// taken, claims of those that are about to open one included; while there are claims it stays.
func TestClaimsOfStreams(t *testing.T) {
	x := newLab(t, nil)
	a, _ := x.join(nil)
	p := a.qp.peer.Load().sctp()
	set := func(claims int) {
		p.c.Upper().Lock()
		p.streamClaims = claims
		p.c.Upper().Unlock()
	}
	for claims, want := range map[int]bool{p.Streams() - 1: false, p.Streams() - 2: true} { // one is taken
		set(claims)
		must.That(t, p.claimStream() == want, "%d claims and a session, one more: %v", claims, !want)
	}
	set(0)
	check.That(t, p.claimStream(), "there is no room")
	must.OK(t, a.qp.Disconnect(ctx(t)))
	check.That(t, p.c.Stats().State == assoc.Established && p.streamClaims == 1,
		"%d claims keep an association in state %v", p.streamClaims, p.c.Stats().State)
	late, next := &watched{context.Background(), make(chan struct{}), 0, 0}, newSide(t, x.a, nil, nil).qp
	for claims, end := range []bool{1: false, 0: true} { // of others, while one has a claim that gives up
		set(1 - claims)
		_, err := next.Connect(late, x.addr, nil)
		check.That(t, err == context.Canceled && p.streamClaims == 1-claims &&
			(p.c.Stats().State != assoc.Established) == !end, "%v, %d claims, state %v", err, p.streamClaims,
			p.c.Stats().State)
	}
	check.That(t, !p.claimStream(), "there is room where it ends")
}

// A QP whose Connect has failed before there was a session can try again.
func TestQPCanConnectAgainAfterAFailure(t *testing.T) {
	x := newLab(t, nil)
	a, b := newSide(t, x.a, nil, nil), newSide(t, x.b, nil, nil)
	slot := x.a.sctp.slotFor(peerName{addr: x.addr})
	for range 2 { // while another one sets the association up, and when it may do so itself
		slot.busy <- struct{}{}
		_, err := a.qp.Connect(must.Ended(), x.addr, nil)
		var dial *sctp.DialError
		must.That(t, errors.As(err, &dial) && dial.Remote == x.addr && errors.Is(err, context.Canceled),
			"connected without time to: %v", err)
		<-slot.busy
	}
	must.Do(x.connect(a.qp, nil, func(r *Request) error { return r.Accept(b.qp, nil) }))(t)
}

// When the streams of an association are taken, the next session gets another association.
func TestFullAssociationIsNotShared(t *testing.T) {
	// which are not the program's
	x := newLab(t, &Config{Limits: Limits{MaxStreams: 2}, SCTP: sctp.Config{OutStreams: 9, InStreams: 9}})
	for i := range 5 {
		a, b := x.join(nil)
		b.recv(1, 0, 100)
		a.post(SendWR{Op: OpSend, SGL: []SGE{a.mr.SGE(0, 10)}})
		a.good()
		b.good()
		check.That(t, len(x.a.sctp.peerSlots) == 1 && len(x.a.peers) == i/2+1,
			"session %d: %d peers known, %d associations", i, len(x.a.sctp.peerSlots), len(x.a.peers))
	}
}

// A QP takes receives from an SRQ of its own protection domain only.
func TestSRQOfAnotherProtectionDomain(t *testing.T) {
	x := newLab(t, nil)
	cq := must.Get(x.a.CreateCQ(256))(t)
	srq := must.Get(x.a.AllocPD().CreateSRQ(16, 1))(t)
	_, err := x.a.CreateQP(&QPConfig{PD: x.a.AllocPD(), SendCQ: cq, RecvCQ: cq, SRQ: srq})
	check.That(t, errors.Is(err, rdmap.ErrPD), "%v", err)
}

// An association ends with its last session, also where its own side has ended nothing.
func TestAssociationEndsWithItsLastSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newLab(t, nil)
		_, b := x.join(nil)
		b.qp.Close()
		check.OK(t, x.a.Wait(ctx(t)))
	})
}
