package rdma

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// negotiate connects two QPs.
func (x *lab) negotiate(ca, cb func(*QPConfig)) (a, b *side, err error) {
	x.t.Helper()
	a, b = newSide(x.t, x.a, nil, ca), newSide(x.t, x.b, nil, cb)
	b.recv(99, 0, 10)
	_, err = x.connect(a.qp, nil, func(r *Request) error { return r.Accept(b.qp, nil) })
	return a, b, err
}

func depths(ird, ord int, negotiate, p2p bool) func(*QPConfig) {
	return func(c *QPConfig) { c.IRD, c.ORD, c.Negotiate, c.PeerToPeer = ird, ord, negotiate, p2p }
}

func TestNegotiatedDepths(t *testing.T) {
	for _, row := range []struct {
		name               string
		a, b               func(*QPConfig)
		ordA, ordB         int
		setup              bool
		setupOfA, setupOfB Setup // as the other side saw it
	}{
		// req 6581-10-3, 6581-10-2, 5043-6.5-3: nothing is negotiated unless it was asked for, and
		// nothing needs it.
		{"plain", depths(4, 30, false, false), depths(5, 40, false, false), 30, 40, false, Setup{}, Setup{}},
		{"Accept alone does not ask", depths(4, 30, false, false), depths(5, 40, true, true), 30, 40, false, Setup{}, Setup{}},
		// req 6581-9.1-1, 6581-9.1-2, 6581-9.1-3, 6581-9.1-4, 6581-9.1-9, 6581-10-1, 5040-6.1-6
		{"both are cut", depths(4, 30, true, false), depths(5, 40, false, false), 5, 4, true,
			Setup{IRD: 4, ORD: 30}, Setup{IRD: 5, ORD: 4}},
		{"neither is cut", depths(9, 3, true, false), depths(9, 2, false, false), 3, 2, true,
			Setup{IRD: 9, ORD: 3}, Setup{IRD: 9, ORD: 2}},
		{"no reads either way", depths(-1, 3, true, false), depths(-1, 2, false, false), 0, 0, true,
			Setup{IRD: 0, ORD: 3}, Setup{}},
		// req 6581-9.2-2, 6581-9.2-4, 6581-9.2-5, 6581-9.1-13, 6581-9.1-15: depths are left alone
		// when only the model is asked for.
		{"peer to peer alone", depths(4, 30, false, true), depths(5, 40, false, false), 30, 40, true,
			Setup{IRD: NotNegotiated, ORD: NotNegotiated, PeerToPeer: true,
				RTR: llp.RTRSend | llp.RTRWrite | llp.RTRRead},
			Setup{IRD: NotNegotiated, ORD: NotNegotiated, PeerToPeer: true, RTR: llp.RTRWrite | llp.RTRRead}},
		{"peer to peer without reads", depths(4, -1, true, true), depths(-1, 4, false, false), 0, 4, true,
			Setup{IRD: 4, ORD: 0, PeerToPeer: true, RTR: llp.RTRSend | llp.RTRWrite},
			Setup{IRD: 0, ORD: 4, PeerToPeer: true, RTR: llp.RTRWrite}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := must.Two(newLab(t, nil).negotiate(row.a, row.b))(t)
			check.That(t, a.qp.ORD() == row.ordA && b.qp.ORD() == row.ordB,
				"ORD %d and %d, want %d and %d", a.qp.ORD(), b.qp.ORD(), row.ordA, row.ordB)
			got, ok := a.qp.PeerSetup()
			check.That(t, ok == row.setup && got == row.setupOfB, "initiator learned %+v, %v", got, ok)
			got, ok = b.qp.PeerSetup()
			check.That(t, ok == row.setup && got == row.setupOfA, "responder learned %+v, %v", got, ok)
			if !row.setup {
				return
			}
			if row.setupOfB.IRD == NotNegotiated {
				return // the depths are the programs' own affair, and these two did not agree
			}
			// Neither end can overrun the other now.
			for _, d := range [][2]*side{{a, b}, {b, a}} {
				from, to := d[0], d[1]
				for i := range uint64(60) {
					if err := from.qp.PostSend(&SendWR{ID: i, Op: OpRead, SGL: []SGE{from.mr.SGE(0, 9)},
						RemoteSTag: to.mr.STag()}); err != nil {
						must.That(t, from.qp.ORD() == 0 && errors.Is(err, rdmap.ErrNoReads), "%v", err)
						return
					}
				}
				for i := range uint64(60) {
					wc := from.good()
					check.That(t, wc.ID == i, "completion %+v", wc)
				}
			}
		})
	}
}

func TestNegotiationFails(t *testing.T) {
	for _, row := range []struct {
		name  string
		ask   func(*QPConfig)
		reply Setup // of a peer that breaks the rules
		err   error
		code  uint8
	}{
		// req 6581-9.1-10, 6581-9.1-7, 6581-8-1, 6581-8-2
		{"the peer wants more than was offered", depths(4, 4, true, false), Setup{IRD: 9, ORD: 5}, llp.ErrInsufficientIRD, rdmap.CodeInsufficientIRD},
		// req 6581-9.2-9
		{"the peer takes an indication that cannot be given", depths(4, -1, true, true), Setup{RTR: llp.RTRRead}, llp.ErrNoRTR, rdmap.CodeNoRTR},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newLab(t, nil)
			a, b := newSide(t, x.a, nil, row.ask), newSide(t, x.b, nil, nil)
			must.Fails(x.connect(a.qp, nil, func(r *Request) error {
				s, ok := r.Setup()
				check.That(t, ok && s.PeerToPeer == (row.code == rdmap.CodeNoRTR), "request %+v, %v", s, ok)
				return b.demands(row.reply)(r)
			}))(t, "error", row.err)
			<-a.qp.Done()
			<-b.qp.Done()
			var se *rdmap.StreamError
			want := rdmap.Terminate{Layer: rdmap.LayerLLP, EType: rdmap.ETypeMPA, Code: row.code}
			check.That(t, errors.As(b.qp.Err(), &se) && se.Remote && *se.Terminate == want, "the peer learned %v",
				b.qp.Err())
			check.Error(t, "error", a.qp.Err(), row.err)
		})
	}
}

func TestRejectionNamesWhatIsNeeded(t *testing.T) {
	// req 6581-9.1-6, 6581-9.1-11
	x := newLab(t, nil)
	_, err := x.connect(newSide(t, x.a, nil, depths(8, 7, true, false)).qp, nil, func(r *Request) error {
		s, _ := r.Setup()
		return r.RejectSetup(Setup{IRD: s.ORD, ORD: 32}, []byte("more"))
	})
	var re *llp.RejectedError
	check.That(t, errors.As(err, &re) && re.Setup != nil && *re.Setup == (Setup{IRD: 7, ORD: 32}) &&
		string(re.Private) == "more",
		"error %v", err)
	_, err = x.connect(newSide(t, x.a, nil, nil).qp, nil, func(r *Request) error {
		check.Error(t, "RejectSetup of a plain request", r.RejectSetup(Setup{}, nil), llp.ErrState)
		return r.Reject(nil)
	})
	check.That(t, errors.As(err, &re) && re.Setup == nil, "error %v", err)
}

func TestReadyToReceive(t *testing.T) {
	// req 6581-5-1, 6581-9.2-8, 6581-9.2-10: an empty RDMA Write: the peer's program sees nothing
	// of it, ours neither.
	a, b := must.Two(newLab(t, nil).negotiate(depths(4, 4, true, true), depths(4, 4, false, false)))(t)
	a.post(SendWR{ID: 5, Inline: []byte("x")})
	wc := a.good()
	check.That(t, wc.ID == 5, "completion %+v", wc)
	wc = b.good()
	check.That(t, wc.ID == 99 && wc.ByteLen == 1, "received %+v", wc)
	st := b.qp.peer.Load().sctp()
	st.c.Upper().Lock()
	n := st.Mux.Stats().SegmentsIn
	st.c.Upper().Unlock()
	check.Equal(t, "segments: the indication and the Send", n, 2)
}

func TestPrivateDataOfNegotiatedSetup(t *testing.T) {
	// req 6581-7-6
	x := newLab(t, nil)
	a, b := newSide(t, x.a, nil, depths(4, 4, true, false)), newSide(t, x.b, nil, nil)
	big := make([]byte, llp.MaxEnhancedPrivateData+1)
	check.Fails(a.qp.Connect(ctx(t), x.addr, big))(t, "509 octets in Connect", llp.ErrPrivateDataTooLong)
	got, err := x.connect(a.qp, big[1:], func(req *Request) error {
		check.Equal(t, "octets of private data", len(req.PrivateData()), len(big)-1)
		check.Error(t, "509 octets in Accept", req.Accept(b.qp, big), llp.ErrPrivateDataTooLong)
		return req.Accept(b.qp, big[1:])
	})
	check.That(t, err == nil && len(got) == len(big)-1, "answer of %d octets, %v", len(got), err)
}

// Requests wait in their order, half of the places for one address; whoever waits for them is woken
// as long as there are any. One that is withdrawn leaves its place, and a Listener that is closed
// has none.
func TestRequestsWaitForAccept(t *testing.T) {
	l := newLab(t, &Config{Limits: Limits{MaxRequests: 6}}).l
	var r [5]*Request
	for i := range r {
		r[i] = &Request{fromAddr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i / 4)})}
		check.That(t, l.offerRequest(r[i]) == (i != 3), "request %d waits: %v", i, i == 3)
	}
	for range 2 {
		l.withdrawRequest(r[1])
	}
	for _, want := range []*Request{r[0], r[2], r[4], nil} {
		check.That(t, len(l.ready) == 1 || want == nil, "nobody is woken")
		for len(l.ready) > 0 {
			<-l.ready
		}
		check.Equal(t, "next", l.nextRequest(), want)
	}
	check.That(t, len(l.ready) == 0 && l.places.UsedUnits() == 0,
		"somebody is woken for nothing, or %d places are taken", l.places.UsedUnits())
	check.Fails(l.Accept(must.Ended()))(t, "Accept without time", context.Canceled)
	l.Close()
	check.That(t, !l.offerRequest(r[0]) && l.places.UsedUnits() == 0, "a closed Listener takes a request")
	check.Fails(l.Accept(t.Context()))(t, "Accept of a closed Listener", net.ErrClosed)
}

// A request is answered once, and only as long as its session is there; what cannot be answered
// leaves the QP as it was. What is accepted outlives its Listener, and what is not ends with it.
func TestRequestIsAnsweredOnce(t *testing.T) {
	x := newLab(t, nil)
	a, b := x.join(nil)
	ask := func(own bool) (*Request, <-chan error) {
		end := make(chan error, 1)
		qp := newSide(t, x.a, nil, func(c *QPConfig) { c.OwnAssociation = own }).qp
		go func() { _, err := qp.Connect(ctx(t), x.addr, nil); end <- err }()
		return must.Get(x.l.Accept(ctx(t)))(t), end
	}
	req, end := ask(true)
	Peer{req.p}.Abort("before there is an answer")
	check.That(t, <-end != nil, "the association is gone, and Connect has succeeded")
	late := newSide(t, x.b, nil, nil).qp
	err := req.Accept(late, nil)
	check.That(t, err != nil && (req.session.Err() == nil || err == req.session.Err()),
		"Accept of one who has left: %v", err)
	err = req.Reject(nil)
	check.That(t, err != nil && x.b.Stats().Rejected == 0, "Reject of one who has left: %v", err)
	req, end = ask(false)
	must.OK(t, req.Accept(late, nil))
	must.OK(t, <-end)
	p := late.lockCore()
	check.That(t, p.chargedOctets == late.chargedOctets+b.qp.chargedOctets && late.chargedOctets == late.heldOctets(),
		"%d octets are charged for two QPs of %d and %d", p.chargedOctets, late.chargedOctets, b.qp.chargedOctets)
	late.unlockCore(p)
	check.Equal(t, "Accept for the second time", req.Accept(newSide(t, x.b, nil, nil).qp, nil), llp.ErrState)
	req, end = ask(false)
	check.Equal(t, "Accept by a QP that is connected", req.Accept(late, nil), ErrInUse)
	check.That(t, x.l.offerRequest(req), "there is no place") // as if nobody had taken it
	must.OK(t, x.l.Close())
	if err := <-end; err == nil || a.qp.State() != StateRTS {
		t.Errorf("a request that nobody has accepted: %v; an old session is in %v", err, a.qp.State())
	}
}

// A peer that does not wait for the answer: its segments, and its end, are there when the program
// accepts.
func TestPeerThatDoesNotWait(t *testing.T) {
	x := newLab(t, nil)
	var cfg sctp.Config
	cfg.Upper().Change(ddpadapt.Configure)
	conn := must.Get(x.a.Transport().Dial(ctx(t), x.addr, &cfg))(t)
	send := func(ppid uint32, b string) {
		t.Helper()
		must.Do(conn.WriteMsg([]byte(b), sctp.SendInfo{PPID: ppid, Unordered: true}))(t)
	}
	send(17, "\x00\x00\x00\x01")                                                                      // Initiate
	send(16, "\x00\x01\x41\x43\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00early") // Send
	send(17, "\x00\x02\x00\x04")                                                                      // Terminate

	// a second Initiate, so that its coming tells that all that was before has come
	must.Do(conn.WriteMsg([]byte("\x00\x00\x00\x01"), sctp.SendInfo{PPID: 17, Unordered: true, Stream: 1}))(t)
	first := must.Get(x.l.Accept(ctx(t)))(t)
	must.Do(x.l.Accept(ctx(t)))(t)
	b := newSide(t, x.b, nil, nil)
	b.recv(1, 0, 10)
	b.cq.Arm(false)
	must.OK(t, first.Accept(b.qp, nil))
	wc := b.good()
	check.That(t, wc.ID == 1 && string(b.buf[:5]) == "early", "received %+v, %q", wc, b.buf[:5])
	<-b.cq.Ready()
	<-b.qp.Done()
	check.Error(t, "a graceful end", b.qp.Err(), nil)
}

// The side that has set an association up ends it with its last session; the other side does not,
// so that it cuts no peer off that is about to open its next session (RFC 5041 section 3).
func TestServerLeavesTheAssociationAlone(t *testing.T) {
	x := newLab(t, nil)
	var cfg sctp.Config
	cfg.Upper().Change(ddpadapt.Configure)
	conn := must.Get(x.a.Transport().Dial(ctx(t), x.addr, &cfg))(t)
	defer conn.Close()
	for round := range 3 {
		var b *side
		for _, m := range []string{"\x00\x00\x00\x01", "\x00\x01\x00\x04"} { // Initiate; Terminate
			_, err := conn.WriteMsg([]byte(m), sctp.SendInfo{PPID: 17, Unordered: true})
			must.That(t, err == nil, "round %d: %v", round, err)
			if m[1] > 0 {
				continue
			}
			req := must.Get(x.l.Accept(ctx(t)))(t)
			b = newSide(t, x.b, nil, nil)
			must.OK(t, req.Accept(b.qp, nil))
		}
		for _, want := range []string{"\x00\x00\x00\x02", "\x00\x01\x00\x04"} { // Accept; Terminate
			var b [16]byte
			n, _, err := conn.ReadMsg(b[:])
			must.That(t, err == nil && string(b[:n]) == want, "round %d: %x, %v, want %x", round, b[:n], err, want)
		}
		<-b.qp.Done() // there is no session now
	}
}

// A side that has not asked for requests gets none: a peer's Initiate on an association that this
// end has set up is refused.
func TestInitiateWithoutAListenerIsRefused(t *testing.T) {
	// req 5043-6.4-2
	x := newLab(t, nil)
	_, b := x.join(nil)
	second := newSide(t, x.b, nil, nil)
	p := b.qp.peer.Load().sctp()
	_, now := p.c.Upper().Lock()
	session, err := p.Open(now, -1, second.qp.core.Stream(), nil)
	if err == nil {
		second.qp.bindSession(&p.peer, sctpSession{session})
	}
	p.c.Upper().Unlock()
	must.OK(t, err)
	select {
	case <-second.qp.setupDone:
		check.That(t, errors.As(second.qp.setupErr, new(*llp.TerminatedError)) &&
			errors.Is(second.qp.Err(), second.qp.setupErr), "%v, then %v", second.qp.setupErr, second.qp.Err())
	case <-ctx(t).Done():
		t.Error("no answer")
	}
}
