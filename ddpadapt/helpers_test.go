package ddpadapt

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// fake is an association whose transport is in the hands of the test.
type fake struct {
	payload, out, in int
	indication       uint32
	life             uint64
	broken           *assoc.InternalError
	silent           bool // the peer announced no indication
	detached         []wire.StreamID
	parts            int // that Detach takes; 1 or less: all at once
}

func (f *fake) MaxPayload() int                { return f.payload }
func (f *fake) OutStreams() int                { return f.out }
func (f *fake) InStreams() int                 { return f.in }
func (f *fake) PeerAdaptation() (uint32, bool) { return f.indication, !f.silent }
func (f *fake) Incarnation() uint64            { return f.life }
func (f *fake) Break(err *assoc.InternalError) { f.broken = err }
func (f *fake) Detach(id wire.StreamID, _ []byte) bool {
	f.detached = append(f.detached, id)
	f.parts--
	return f.parts > 0
}
func (f *fake) Receive() (*assoc.Received, bool) { return nil, false }
func (f *fake) Release(*assoc.Received)          {}

// end is one end of an association: a Mux over a fake.
type end struct {
	testing.TB
	*Mux
	a      *fake
	tsn    wire.TSN
	flight []*packet // handed over and not acknowledged, in TSN order
	table  *ddp.Table
	ids    ddp.StreamID
}

// packet is a DATA chunk under way.
type packet struct {
	from    *end
	data    wire.Data
	token   uint64
	arrived bool
}

func newEnd(t testing.TB, a *fake, cfg Config) *end {
	e := &end{TB: t, a: a, Mux: NewMux(a, cfg), tsn: 1000, table: ddp.NewTable(entropy{})}
	e.HandleEvent(0, assoc.Event{Kind: assoc.EventUp})
	return e
}

type entropy struct{}

func (entropy) Read(b []byte) (int, error) { return len(b), nil }

func newFake() *fake { return &fake{payload: 1200, out: 8, in: 8, indication: AdaptationDDP} }

// newPair returns both ends of an established association.
func newPair(t testing.TB) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, newFake(), Config{Initiator: true}), newEnd(t, newFake(), Config{})
	a.expectEvents(EventUp)
	b.expectEvents(EventUp)
	return a, b
}

// pullPackets hands over all that e can send now.
func (e *end) pullPackets() []*packet {
	var list []*packet
	var msg assoc.Message
	for e.Next(0, e.a.payload, &msg) {
		if list = append(list, e.nextChunk(&msg)); len(list) > 100_000 {
			e.Fatal("there is no end of what is handed over")
		}
	}
	return list
}

func (e *end) nextChunk(msg *assoc.Message) *packet {
	if msg.Len() > max(e.a.payload, MinMULPDU+ssnLen) {
		e.Fatalf("message of %d octets handed over where %d fit", msg.Len(), e.a.payload)
	}
	flags := uint8(wire.FlagB | wire.FlagE)
	if msg.Unordered {
		flags |= wire.FlagU
	}
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: e.tsn, Stream: msg.Stream, PPID: msg.PPID,
		PayloadLen: msg.Len()})
	b = append(b, msg.Head[:msg.HeadLen]...)
	b = append(append(b, msg.Body[0]...), msg.Body[1]...)
	p := &packet{from: e, data: wire.Data(b), token: msg.Token}
	e.tsn++
	e.flight = append(e.flight, p)
	return p
}

// deliverPackets lets packets arrive at e in the order given.
func (e *end) deliverPackets(list ...*packet) {
	e.Helper()
	for _, p := range list {
		v := e.Place(0, p.data, nil)
		if v != assoc.Consumed {
			e.Fatalf("%s: verdict %d", p, v)
		}
		p.arrived = true
	}
}

// ackArrived lets the cumulative acknowledgement of what has arrived come back to e.
func (e *end) ackArrived() {
	for len(e.flight) > 0 && e.flight[0].arrived {
		p := e.flight[0]
		e.flight = e.flight[1:]
		e.Acked(0, p.data.Stream(), p.token)
	}
}

// exchangeAll runs both directions in order until nothing moves.
func exchangeAll(a, b *end) {
	a.Helper()
	for moved := true; moved; {
		moved = false
		for _, d := range [2][2]*end{{a, b}, {b, a}} {
			list := d[0].pullPackets()
			d[1].deliverPackets(list...)
			d[0].ackArrived()
			moved = moved || len(list) > 0
		}
	}
}

// injectMessage lets a message of an arbitrary peer arrive at e.
func (e *end) injectMessage(id wire.StreamID, ppid uint32, flags uint8, b []byte) assoc.Verdict {
	d := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags | wire.FlagB | wire.FlagE, Stream: id, PPID: ppid,
		PayloadLen: len(b)})
	return e.Place(0, wire.Data(append(d, b...)), nil)
}

// injectLines injects well-formed messages in text form: "1 terminate", "0 initiate hello", "3
// segment text". The segments are whole untagged messages on queue 0; MSN equals DDP-SSN.
func (e *end) injectLines(id wire.StreamID, lines ...string) {
	e.Helper()
	for _, line := range lines {
		ppid, b := encodeLine(line)
		if v := e.injectMessage(id, ppid, wire.FlagU, b); v != assoc.Consumed {
			e.Fatalf("%q: verdict %d", line, v)
		}
	}
}

func encodeLine(line string) (ppid uint32, b []byte) {
	var ssn uint16
	var kind, text string
	fmt.Sscanf(line, "%d %s %s", &ssn, &kind, &text)
	if kind == "segment" {
		var h [ddp.MaxHeaderLen]byte
		n := ddp.Untagged{Last: true, MSN: uint32(ssn)}.Put(h[:])
		b = append(binary.BigEndian.AppendUint16(b, ssn), h[:n]...)
		return PPIDSegment, append(b, text...)
	}
	b = make([]byte, controlLen)
	for fn, name := range functionNames {
		if strings.EqualFold(name, kind) {
			putControl(b, ssn, functionCode(fn))
		}
	}
	return PPIDControl, append(b, text...)
}

// String shows a packet as in peer, with the stream in front.
func (p *packet) String() string {
	msg := parseMessage(p.data.PPID(), p.data.U(), p.data.Payload())
	kind, text := "Segment", msg.payload
	if p.data.PPID() == PPIDControl {
		kind = msg.fn.String()
	} else if c := ddp.Control(text[0]); len(text) >= c.HeaderLen() {
		text = text[c.HeaderLen():]
	}
	return strings.TrimSpace(fmt.Sprintf("%d: %d %s %s", p.data.Stream(), msg.ssn, strings.ToLower(kind), text))
}

// expectSends checks what e hands over now, and returns it.
func (e *end) expectSends(want ...string) []*packet {
	e.Helper()
	list := e.pullPackets()
	var got []string
	for _, p := range list {
		got = append(got, p.String())
	}
	if !slices.Equal(got, want) {
		e.Fatalf("handed over %q, want %q", got, want)
	}
	return list
}

// expectEvents checks the kinds of the events that e has, and returns them.
func (e *end) expectEvents(kinds ...EventKind) []Event {
	e.Helper()
	var got []EventKind
	var list []Event
	for ev, ok := e.PollEvent(); ok; ev, ok = e.PollEvent() {
		got, list = append(got, ev.Kind), append(list, ev)
	}
	if !slices.Equal(got, kinds) {
		e.Fatalf("events %v, want %v", got, kinds)
	}
	return list
}

// user is the ULP of one DDP stream: it logs what it is told.
type user struct {
	*ddp.Stream
	log   []string
	queue *ddp.Queue
	sent  uint64
}

// newStream returns a new DDP stream with posted buffers on queue 0.
func (e *end) newStream(buffers int) *user {
	e.Helper()
	u := &user{queue: ddp.NewQueue(max(1, buffers))}
	e.ids++
	u.Stream = ddp.NewStream(ddp.StreamConfig{ID: e.ids, PD: 1, Table: e.table, ULP: u, Queues: 1})
	for range buffers {
		mem := make([]byte, 64)
		buf, err := ddp.MakeRecvBuffer(ddp.Gather{{Mem: ddp.Bytes(mem), Len: uint64(len(mem))}}, 0)
		if err == nil {
			err = u.queue.Post(buf)
		}
		if err != nil {
			e.Fatal(err)
		}
	}
	return u
}

func (u *user) sendText(text string) error {
	u.sent++
	mem := []byte(text)
	return u.SendUntagged(0, [5]byte{}, ddp.Gather{{Mem: ddp.Bytes(mem), Len: uint64(len(mem))}}, u.sent)
}

func (u *user) addLine(format string, args ...any) {
	u.log = append(u.log, fmt.Sprintf(format, args...))
}

func (u *user) AdmitTagged(uint8, *ddp.Region, ddp.STag, uint64, int) (ddp.Access, *ddp.Error) {
	return ddp.RemoteWrite, nil
}
func (u *user) Buffer(_, msn uint32, _ [5]byte) (*ddp.RecvBuffer, uint8) { return u.queue.Lookup(msn) }
func (u *user) DeliverTagged(_ uint8, _ ddp.STag, to, n uint64)          { u.addLine("tagged %d+%d", to, n) }
func (u *user) DeliverUntagged(_, _ uint32, _ [5]byte, n uint32, b *ddp.RecvBuffer) {
	u.addLine("%s", b.Pieces[0].Mem.RAM()[:n])
	u.queue.Pop()
}
func (u *user) Drained()                       {}
func (u *user) Completed(token uint64)         { u.addLine("completed %d", token) }
func (u *user) Failed(token uint64, err error) { u.addLine("failed %d", token) }
func (u *user) Fatal(err *ddp.Error)           { u.addLine("fatal %d/%d", err.Type, err.Code) }
func (u *user) PeerClosed()                    { u.addLine("peer closed") }

// checkLog checks what the user was told since the last time.
func (u *user) checkLog(t testing.TB, want ...string) {
	t.Helper()
	must.Slice(t, "what the user was told", u.log, want)
	u.log = nil
}

// connectSession opens a session from a to b and accepts it.
func connectSession(a, b *end) (sa, sb *Session, ua, ub *user) {
	a.Helper()
	ua, ub = a.newStream(8), b.newStream(8)
	sa, err := a.Open(0, -1, ua.Stream, nil)
	if err != nil {
		a.Fatal(err)
	}
	exchangeAll(a, b)
	sb = b.expectEvents(EventInitiate)[0].Session
	must.OK(b, sb.Accept(0, ub.Stream, nil))
	exchangeAll(a, b)
	a.expectEvents(EventAccepted)
	return sa, sb, ua, ub
}

func gatherOf(b []byte) ddp.Gather { return ddp.Gather{{Mem: ddp.Bytes(b), Len: uint64(len(b))}} }

// checkCounts compares what the Mux counts, and what Held goes by, with what is there.
func (e *end) checkCounts() {
	e.Helper()
	got := [...]int{e.numSessions, e.Pending(), e.unackedRefusals, e.earlyOctets, e.records.numPageTables,
		e.records.numPages}
	want := [...]int{5: len(e.records.freePages)}
	active, early := 0, 0
	for _, p := range e.Mux.sessions.All {
		s := *p
		if s == nil {
			continue
		}
		want[0]++
		if s.State() < Over {
			active++
		}
		switch s.state {
		case stateInitiateReceived:
			want[1]++
			want[3] += s.stateData.(*initiateReceivedData).earlyOctets
		case stateRejecting:
			want[2]++
		}
		if s.outOfOrder.pages != nil {
			want[4]++
			for _, p := range s.outOfOrder.pages {
				if p != nil {
					want[5]++
				}
			}
		}
	}
	for i := range e.records.slab {
		early += len(e.records.slab[i].earlyPayload)
	}
	if got != want || early != want[3] || active != e.Active() {
		e.Fatalf("sessions, pending, refused, octets that came early, windows and pages are %v, %d and %d "+
			"active; counted are %v, %d", got, early, e.Active(), want, active)
	}
	st := &e.records
	held := want[0]*int(unsafe.Sizeof(Session{})) + want[1]*llp.MaxPrivateData + want[3] + want[4]*256*8 +
		want[5]*int(unsafe.Sizeof(recordPage{})) +
		cap(st.slab)*int(unsafe.Sizeof(record{})) + cap(st.free)*2 + cap(st.freePages)*8 + cap(e.scratch) +
		cap(e.events.items)*int(unsafe.Sizeof(Event{}))
	if e.outRun != nil {
		held += int(unsafe.Sizeof(*e.outRun))
	}
	if held += int(unsafe.Sizeof(*e.Mux)) + e.Mux.sessions.Held(); e.Held() != held {
		e.Fatalf("%d octets held, counted are %d", e.Held(), held)
	}
}
