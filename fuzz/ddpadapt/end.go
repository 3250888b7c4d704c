package ddpadapt

import (
	"encoding/binary"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

const streams = 4

// fake is an association whose transport is driven by the fuzzer.
type fake struct {
	payload int
	life    uint64
	broken  *assoc.InternalError
}

func (f *fake) MaxPayload() int { return f.payload }

func (f *fake) OutStreams() int { return streams }

func (f *fake) InStreams() int { return streams }

func (f *fake) PeerAdaptation() (uint32, bool) { return ddpadapt.AdaptationDDP, true }

func (f *fake) Incarnation() uint64 { return f.life }

func (f *fake) Break(err *assoc.InternalError) { f.broken = err }

func (f *fake) Detach(wire.StreamID, []byte) bool { return false }

func (f *fake) Receive() (*assoc.Received, bool) { return nil, false }

func (f *fake) Release(*assoc.Received) {}

type entropy struct{}

func (entropy) Read(b []byte) (int, error) { return len(b), nil }

// user is the ULP of one session. Well-formed segments of the targets are empty tagged messages
// whose TO is their DDP-SSN, so that deliveries show the order.
type user struct {
	*ddp.Stream
	t       *testing.T
	session *ddpadapt.Session
	sent    uint64
	last    uint64 // TO of the last delivery
	over    bool   // nothing may be delivered any more
	kinds   []ddpadapt.EventKind
}

func (u *user) AdmitTagged(uint8, *ddp.Region, ddp.STag, uint64, int) (ddp.Access, *ddp.Error) {
	return ddp.RemoteWrite, nil
}

func (u *user) Buffer(_, _ uint32, _ [5]byte) (*ddp.RecvBuffer, uint8) { return nil, ddp.CodeNoBuffer }

func (u *user) DeliverTagged(_ uint8, _ ddp.STag, to uint64, n uint64) {
	if u.over || to != u.last+1 {
		u.t.Fatalf("segment %d delivered behind %d, session over: %v", to, u.last, u.over)
	}
	u.last = to
}

func (u *user) DeliverUntagged(_, _ uint32, _ [5]byte, _ uint32, _ *ddp.RecvBuffer) {
	u.t.Fatal("delivered without a buffer")
}

func (u *user) Drained() {}

func (u *user) Completed(uint64) {}

func (u *user) Failed(uint64, error) {}

func (u *user) Fatal(*ddp.Error) { u.over = true }

func (u *user) PeerClosed() { u.over = true }

// outgoing is what a stream of one direction may carry next.
type outgoing struct {
	open       bool // a session has begun
	next       uint16
	unacked    int
	terminated bool
}

// end is one end, with the checks of everything that leaves it.
type end struct {
	t      *testing.T
	m      *ddpadapt.Mux
	a      fake
	table  *ddp.Table
	users  []*user
	ids    ddp.StreamID
	out    [streams]outgoing
	flight []*packet // in TSN order
	down   bool
}

type packet struct {
	data    wire.Data
	token   uint64
	arrived bool
}

func newEnd(t *testing.T, cfg ddpadapt.Config) *end {
	e := &end{t: t, a: fake{payload: 1200}, table: ddp.NewTable(entropy{})}
	e.m = ddpadapt.NewMux(&e.a, cfg)
	e.injectEvent(assoc.EventUp, nil)
	return e
}

func (e *end) injectEvent(k assoc.EventKind, err error) {
	e.m.HandleEvent(0, assoc.Event{Kind: k, Err: err})
	e.takeEvents()
}

func (e *end) newUser(s *ddpadapt.Session) *user {
	e.ids++
	u := &user{t: e.t, session: s}
	u.Stream = ddp.NewStream(ddp.StreamConfig{ID: e.ids, PD: 1, Table: e.table, ULP: u, Queues: 1})
	e.users = append(e.users, u)
	return u
}

// takeEvents takes the events in, and checks their order in each session.
func (e *end) takeEvents() {
	for ev, ok := e.m.PollEvent(); ok; ev, ok = e.m.PollEvent() {
		s := ev.Session
		if s == nil {
			continue
		}
		if ev.Kind == ddpadapt.EventInitiate {
			s.Owner = e.newUser(s)
		}
		u := s.Owner.(*user)
		for _, k := range u.kinds {
			if k == ev.Kind && k != ddpadapt.EventTerminated || k == ddpadapt.EventEnded || k == ddpadapt.EventDown {
				e.t.Fatalf("event %v behind %v", ev.Kind, u.kinds)
			}
		}
		if u.kinds = append(u.kinds, ev.Kind); len(u.kinds) > 4 {
			e.t.Fatalf("events %v", u.kinds)
		}
	}
	if n := e.m.Sessions(); n > streams {
		e.t.Fatalf("%d sessions on %d streams", n, streams)
	}
}

func (e *end) openSession(stream int) {
	u := e.newUser(nil)
	private := make([]byte, int(e.ids)%7)
	var s *ddpadapt.Session
	var err error
	if e.ids%3 == 0 {
		s, err = e.m.OpenEnhanced(0, stream, u.Stream, setupFrom(byte(e.ids)), private)
	} else {
		s, err = e.m.Open(0, stream, u.Stream, private)
	}
	if err == nil {
		u.session, s.Owner = s, u
	}
}

// setupFrom makes one of the many Setups.
func setupFrom(b byte) llp.Setup {
	return llp.Setup{IRD: uint16(b) << 6, ORD: uint16(b), PeerToPeer: b&1 != 0, RTR: llp.RTR(b & 7)}
}

// doUserCall does what a user can do with one of its sessions.
func (e *end) doUserCall(which, what byte) {
	if len(e.users) == 0 {
		return
	}
	u := e.users[int(which)%len(e.users)]
	if u.session == nil {
		return
	}
	switch what % 6 {
	case 0:
		if u.session.AcceptEnhanced(0, u.Stream, setupFrom(what), []byte{what}) != nil {
			u.session.Accept(0, u.Stream, []byte{what})
		}
	case 1:
		if what&8 != 0 || u.session.RejectEnhanced(0, setupFrom(what), []byte{what}) != nil {
			u.session.Reject(0, []byte{what})
		}
	case 2:
		u.session.Terminate(0)
	case 3:
		u.session.Abort()
		u.over = true
	default:
		if u.SendTagged(1, u.sent+1, 0, nil, 0) == nil {
			u.sent++
		}
	}
}

// pullMessage checks and returns the next message, nil if there is none.
func (e *end) pullMessage() *packet {
	var msg assoc.Message
	if !e.m.Next(0, e.a.payload, &msg) {
		return nil
	}
	n := msg.Len()
	if e.down || !msg.Unordered || msg.PPID != ddpadapt.PPIDSegment && msg.PPID != ddpadapt.PPIDControl ||
		int(msg.Stream) >= streams || n > max(e.a.payload, ddpadapt.MinMULPDU+2) {
		e.t.Fatalf("handed over %+v", msg)
	}
	o := &e.out[msg.Stream]
	ssn := binary.BigEndian.Uint16(msg.Head[:])
	fn := uint16(0)
	if msg.PPID == ddpadapt.PPIDControl {
		fn = binary.BigEndian.Uint16(msg.Head[2:])
	}
	if ssn == 0 && o.unacked == 0 && fn != 0 {
		*o = outgoing{open: true} // the first message of a session
	}
	if !o.open || o.terminated || ssn != o.next || fn == 0 && ssn == 0 || fn != 0 && fn != 4 && ssn != 0 {
		e.t.Fatalf("function %d with DDP-SSN %d after %+v", fn, ssn, *o)
	}
	if fn == 4 && ssn == 1 && o.unacked > 0 && !e.isInitiator(msg.Stream) {
		e.t.Fatal("Terminate may overtake the message before it")
	}
	o.next++
	o.unacked++
	o.terminated = fn == 4 || fn == 3 || fn == 7
	if o.unacked > ddpadapt.MaxInFlight {
		e.t.Fatalf("%d messages in flight", o.unacked)
	}
	d := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagU | wire.FlagB | wire.FlagE, Stream: msg.Stream,
		PPID: msg.PPID, PayloadLen: n})
	d = append(append(append(d, msg.Head[:msg.HeadLen]...), msg.Body[0]...), msg.Body[1]...)
	p := &packet{data: d, token: msg.Token}
	e.flight = append(e.flight, p)
	return p
}

// isInitiator tells whether this side sent the Initiate of the present session on a stream: then
// its Terminate follows the answer, which proves that the Initiate has arrived.
func (e *end) isInitiator(id wire.StreamID) bool {
	for _, u := range e.users {
		s := u.session
		if s != nil && s.Stream() == id && s.Active() && s.State() != ddpadapt.Ended {
			return true
		}
	}
	return false
}

func (e *end) ackArrived() {
	for len(e.flight) > 0 && e.flight[0].arrived {
		p := e.flight[0]
		e.flight = e.flight[1:]
		e.out[p.data.Stream()].unacked--
		e.m.Acked(0, p.data.Stream(), p.token)
	}
}
