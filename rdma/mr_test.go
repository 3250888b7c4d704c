package rdma

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// write writes data to the peer's STag and waits until it is acknowledged, so placed.
func (s *side) write(tag STag, to uint64, data string) WC {
	s.t.Helper()
	s.post(SendWR{Op: OpWrite, Inline: []byte(data), RemoteSTag: tag, RemoteTO: to})
	return s.wc()
}

func TestReregister(t *testing.T) {
	// req 5040-8.1.1-4
	a, b := newLab(t, nil).join(nil)
	old, fresh := make([]byte, 16), make([]byte, 8)
	mr := must.Get(b.pd.Register(old, RemoteWrite|LocalWrite, nil))(t)
	tag := mr.STag()
	win := must.Get(mr.Bind(b.qp, 0, 16, RemoteWrite))(t)
	must.OK(t, mr.Reregister(fresh, RemoteRead|RemoteWrite, 100))
	check.That(t, mr.STag() == tag && mr.Base() == 100 && mr.Len() == 8 && !win.Valid(),
		"STag %#x, was %#x; %d octets from %d; window valid %v", mr.STag(), tag, mr.Len(), mr.Base(), win.Valid())
	wc := a.write(tag, 102, "new")
	check.That(t, wc.Status == StatusSuccess && string(fresh[2:5]) == "new", "%v, memory %q", wc.Status, fresh)
	check.Slice(t, "the old memory", old, make([]byte, 16))
	mr.Invalidate()
	must.OK(t, mr.Reregister(old, RemoteWrite, 0))
	wc = a.write(tag, 0, "valid again")
	check.That(t, wc.Status == StatusSuccess && string(old[:11]) == "valid again", "%v, memory %q", wc.Status, old)
	must.OK(t, mr.Deregister())
	check.Error(t, "after Deregister", mr.Reregister(old, 0, 0), ddp.ErrNoSuchRegion)
	check.Error(t, "a range that wraps", b.mr.Reregister(old, 0, ^uint64(0)), ddp.ErrRange)
}

// A receive that names a region fails when the region has got other memory: the message reaches
// neither.
func TestReregisterFailsWhatWasPosted(t *testing.T) {
	a, b := newLab(t, nil).join(nil)
	old, fresh := make([]byte, 8), make([]byte, 8)
	mr := must.Get(b.pd.Register(old, LocalWrite, nil))(t)
	must.OK(t, b.qp.PostRecv(&RecvWR{ID: 1, SGL: []SGE{mr.SGE(0, 8)}}))
	must.OK(t, mr.Reregister(fresh, LocalWrite, 0))
	a.post(SendWR{Op: OpSend, Inline: []byte("where to")})
	wc := b.wc()
	check.That(t, wc.ID == 1 && wc.Status == StatusLocProtErr, "%+v", wc)
	<-b.qp.Done()
	check.That(t, bytes.Equal(old, make([]byte, 8)) && bytes.Equal(fresh, old), "old %q, new %q", old, fresh)
}

func TestInvalidateKeepsTheSTagAndDeregisterDoesNot(t *testing.T) {
	x := newLab(t, &Config{Limits: Limits{MaxRegions: 1}})
	pd := x.a.AllocPD()
	mr := must.Get(pd.Register(make([]byte, 8), RemoteWrite, nil))(t)
	mr.Invalidate()
	mr.Invalidate()
	check.Fails(pd.Register(make([]byte, 8), 0, nil))(t, "an invalidated region counts no more", ddp.ErrTooManyRegions)
	check.Fails(mr.Atomic(0, FetchAdd(1)))(t, "used while invalid", ddp.ErrRevoked)
	must.OK(t, mr.Deregister())
	again, err := pd.Register(make([]byte, 8), 0, nil)
	check.That(t, err == nil && again.STag() != mr.STag(), "STag %#x after %#x, %v", again.STag(), mr.STag(), err)
}

func TestWindowReachesItsPartOfTheRegionOnly(t *testing.T) {
	x := newLab(t, nil)
	a, b := x.join(nil)
	buf := make([]byte, 100)
	mr := must.Get(b.pd.Register(buf, LocalWrite, nil))(t) // closed to peers
	w := must.Get(mr.Bind(b.qp, 10, 20, RemoteRead|RemoteWrite))(t)
	wc := a.write(w.STag(), 5, "window")
	check.That(t, wc.Status == StatusSuccess && string(buf[15:21]) == "window", "%v, memory %q", wc.Status, buf[:30])
	a.post(SendWR{Op: OpRead, SGL: []SGE{a.mr.SGE(0, 20)}, RemoteSTag: w.STag()})
	a.good()
	check.That(t, string(a.buf[5:11]) == "window", "read %q", a.buf[:20])
	// The peer ends what was opened to it, and no more. req 5040-8.1.1-2
	b.recv(1, 0, 10)
	a.post(SendWR{Op: OpSendInv, InvalidateSTag: w.STag()})
	wc = b.good()
	check.That(t, wc.Invalidated && wc.InvalidatedSTag == w.STag() && !w.Valid(), "%+v, window valid %v", wc, w.Valid())
	a.good()
	if _, err := mr.Atomic(0, FetchAdd(0)); err != nil && !errors.Is(err, ddp.ErrUnaligned) {
		t.Errorf("the region went with its window: %v", err)
	}
	w.Invalidate() // gives the STag up
	w2, err := mr.Bind(b.qp, 10, 20, RemoteWrite)
	check.That(t, err == nil && w2.STag() != w.STag(), "bound again: %v", err)
	w2.Invalidate()
	w2.Invalidate()
	a.post(SendWR{Op: OpWrite, Inline: []byte("too late"), RemoteSTag: w2.STag()})
	<-b.qp.Done()
	var e *rdmap.StreamError
	check.That(t, errors.As(b.qp.Err(), &e) && e.Terminate != nil && e.Terminate.Layer == rdmap.LayerDDP &&
		e.Terminate.Code == ddp.CodeInvalidSTag, "written through an ended window: %v", b.qp.Err())
	check.That(t, string(buf[10:18]) != "too late", "it was placed")
}

// A window belongs to one QP; neither its STag nor the right to invalidate it is of use to another
// peer.
func TestWindowIsNothingToOtherPeers(t *testing.T) {
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	a1, b1 := x.joinIn(nil, pd, nil)
	a2, b2 := x.joinIn(nil, pd, nil)
	w := must.Get(b1.mr.Bind(b1.qp, 0, 8, RemoteWrite))(t)
	b2.recv(1, 0, 8)
	a2.post(SendWR{Op: OpSendInv, InvalidateSTag: w.STag()}) // req 5042-6.1.1-4
	check.Equal(t, "status", b2.wc().Status, StatusMWBindErr)
	wc := a1.write(w.STag(), 0, "mine")
	check.That(t, wc.Status == StatusSuccess && w.Valid(), "%v, window valid %v", wc.Status, w.Valid())
}

func TestWindowsEndWithTheirQP(t *testing.T) {
	x := newLab(t, &Config{Limits: Limits{MaxRegions: 3}})
	a, b := x.join(nil)
	for range 2 {
		must.Do(b.mr.Bind(b.qp, 0, 8, RemoteWrite))(t)
	}
	check.Fails(b.mr.Bind(b.qp, 0, 8, 0))(t, "beyond the limit", ddp.ErrTooManyRegions)
	must.OK(t, a.qp.Disconnect(ctx(t)))
	<-b.qp.Done()
	check.Fails(b.mr.Bind(b.qp, 0, 8, 0))(t, "on a QP that has ended", rdmap.ErrState)
	for range 2 {
		_, err := b.pd.Register(make([]byte, 8), 0, nil)
		check.That(t, err == nil, "the windows have not gone: %v", err)
	}
}

func TestWindowRefused(t *testing.T) {
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	_, b1 := x.joinIn(nil, pd, nil)
	_, b2 := x.joinIn(nil, pd, nil)
	_, other := x.join(nil)
	closed := must.Get(pd.Register(make([]byte, 8), 0, nil))(t)
	scoped := must.Get(pd.Register(make([]byte, 8), LocalWrite, &RegionOptions{QP: b1.qp}))(t)
	newSide(t, x.b, nil, nil)
	q, r := x.b.Snapshot().QPs, x.b.Snapshot().Regions // by number; by domain, the larger ones first
	check.That(t, q[0].Num < q[1].Num && q[1].Num < q[2].Num && r[0].PD == uint32(pd.id) && r[1].Octets == 1<<20 &&
		r[2].Octets == 8 && r[4].PD == uint32(other.pd.id), "%+v, %+v", q, r)
	check.That(t, q[2].State == StateRTS.String() && q[2].SCTP >= 0 && q[3].State == rdmap.StateInit.String() &&
		q[3].SCTP == -1 && min(q[2].IRD, q[3].IRD, q[2].ORD, q[3].ORD) == 16, "%+v, and before it is connected %+v",
		q[2], q[3])
	for _, row := range []struct {
		name   string
		mr     *MR
		qp     *QP
		off, n int
		access Access
		want   error
	}{
		{"another protection domain", b1.mr, other.qp, 0, 8, 0, rdmap.ErrPD},
		{"a region scoped to another QP", scoped, b2.qp, 0, 8, 0, rdmap.ErrPD},
		{"writes without LocalWrite", closed, b1.qp, 0, 8, RemoteWrite, ddp.ErrRights},
		{"past the end", closed, b1.qp, 4, 5, 0, ddp.ErrRange},
		{"before the start", closed, b1.qp, -1, 1, 0, ddp.ErrRange},
	} {
		_, err := row.mr.Bind(row.qp, row.off, row.n, row.access)
		check.That(t, errors.Is(err, row.want), "%s: %v, want %v", row.name, err, row.want)
	}
	for _, access := range []Access{0, RemoteRead, RemoteRead | LocalWrite} {
		check.Do(closed.Bind(b1.qp, 0, 8, access))(t) // they need no LocalWrite
	}
}

func TestTextOfRights(t *testing.T) {
	for a, want := range map[Access]string{0: "-", LocalWrite: "l", RemoteRead | RemoteAtomic: "ra", RemoteWrite: "w",
		LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic: "lrwa"} {
		check.Equal(t, "rights", accessLetters(a), want)
	}
}

func TestRegionsAreMadeAndTakenBack(t *testing.T) {
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	buf := make([]byte, 100)
	// req 5040-8.1.1-4, 5040-3.2-11: memory, range, rights and the stream or domain; and the STag
	// alone to end it.
	mr := must.Get(pd.Register(buf, RemoteWrite, nil))(t)
	check.That(t, mr.STag() != 0 && mr.Len() == 100, "STag %#x, %d octets", mr.STag(), mr.Len())
	for _, access := range []Access{RemoteRead, RemoteWrite, RemoteRead | RemoteWrite, 0} { // req 5040-8.1.1-5
		err := mr.SetAccess(access)
		check.That(t, err == nil, "rights %v: %v", access, err)
	}
	check.OK(t, mr.Deregister())
	check.Error(t, "twice", mr.Deregister(), ddp.ErrNoSuchRegion)
}

// An STag that was registered for one QP is nothing to another one of the same protection domain.
func TestSTagOfOneQPIsForeignToOthers(t *testing.T) {
	// req 5041-8.2-2, 5040-8.1.1-2
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	a1, b1 := x.joinIn(nil, pd, nil)
	a2, _ := x.joinIn(nil, pd, nil)
	mr := must.Get(pd.Register(make([]byte, 100), RemoteWrite, &RegionOptions{QP: b1.qp}))(t)
	write := SendWR{Op: OpWrite, SGL: []SGE{a1.mr.SGE(0, 10)}, RemoteSTag: mr.STag()}
	a1.post(write)
	a1.post(SendWR{Op: OpRead, SGL: []SGE{a1.mr.SGE(0, 1)}, RemoteSTag: b1.mr.STag()})
	a1.good()
	a1.good() // the Read behind it: the Write was taken
	write.SGL = []SGE{a2.mr.SGE(0, 10)}
	a2.post(write)
	<-a2.qp.Done()
	var e *rdmap.StreamError
	err := a2.qp.Err()
	check.That(t, errors.As(err, &e) && e.Terminate != nil && e.Terminate.Layer == rdmap.LayerDDP &&
		e.Terminate.Code == ddp.CodeNotAssociated, "%v", err)
}
