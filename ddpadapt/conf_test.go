package ddpadapt

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func gather(b []byte) ddp.Gather { return ddp.Gather{{Mem: ddp.Bytes(b), Len: uint64(len(b))}} }

func TestASegmentIsTransferredOrReported(t *testing.T) {
	// req 5041-3-3
	a, b := newPair(t)
	_, _, ua, _ := connect(a, b)
	for _, text := range []string{"arrives", "is lost", "is never sent"} {
		ua.send(text)
	}
	list := a.pull()
	b.take(list[0])
	a.acks()
	ua.told(t, "completed 1")
	a.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: errors.New("gone")})
	ua.told(t, "fatal 3/0", "failed 2", "failed 3")
}

func TestTheTwoKindsOfEnd(t *testing.T) {
	// req 5041-3-11
	a, b := newPair(t)
	sa, _, _, ub := connect(a, b)
	if err := sa.Terminate(0); err != nil {
		t.Fatal(err)
	}
	exchange(a, b)
	var te *TerminatedError
	if ev := b.expect(EventTerminated)[0]; !errors.As(ev.Err, &te) || te.Cause != nil {
		t.Errorf("end of the stream: %+v", ev)
	}
	ub.told(t, "peer closed")
	b.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: assoc.ErrShutdown})
	list := b.expect(EventDown, EventDown)
	if ev := list[1]; ev.Session != nil || ev.Err != assoc.ErrShutdown {
		t.Errorf("end of the association: %+v", ev)
	}
}

func TestPostedSegmentsSurviveAChangeOfMULPDU(t *testing.T) {
	// req 5041-3-2
	a, b := newPair(t)
	_, _, ua, _ := connect(a, b)
	want := bytes.Repeat([]byte("0123456789"), 300)
	got := make([]byte, len(want))
	region, err := b.table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(got), Access: ddp.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	if err := ua.SendTagged(region.STag(), 0, 0, gather(want), 1); err != nil {
		t.Fatal(err)
	}
	var msg assoc.Message
	if !a.Next(0, a.a.payload, &msg) {
		t.Fatal("nothing to send")
	}
	posted := a.chunk(&msg)
	a.a.payload = 600 // the path MTU shrank
	a.HandleEvent(0, assoc.Event{Kind: assoc.EventMTUChanged})
	rest := a.pull()
	if n := len(posted.data.Payload()); n < 1100 || len(rest) < 3 {
		t.Errorf("the posted segment has %d octets, %d more were cut", n, len(rest))
	}
	b.take(posted) // as it was cut
	b.take(rest...)
	a.acks()
	if !bytes.Equal(got, want) {
		t.Error("the message did not arrive whole")
	}
	ua.told(t, "completed 1")
}

func TestDDPSSNsFollowSubmissionWithoutGaps(t *testing.T) {
	a, b := newPair(t)
	sa, _, ua, _ := connect(a, b)
	ua.send("a")
	ua.send("b")
	list := a.sends("0: 1 segment a", "0: 2 segment b") // req 5043-2-2
	ua.send("c")
	sa.Abort()                                        // what was not handed over never got a number
	list = append(list, a.sends("0: 3 terminate")...) // req 5043-6-2
	b.take(list...)
}

func TestThePassiveSideChoosesItsProtectionDomainAtAccept(t *testing.T) {
	// req 5043-6-4
	a, b := newPair(t)
	ua := a.stream(1)
	if _, err := a.Open(0, -1, ua.Stream, nil); err != nil {
		t.Fatal(err)
	}
	exchange(a, b)
	sb := b.expect(EventInitiate)[0].Session
	const later = 77
	mem := make([]byte, 8)
	region, err := b.table.Register(ddp.Spec{PD: later, Mem: ddp.Bytes(mem), Access: ddp.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	ub := b.stream(0)
	mine := ddp.NewStream(ddp.StreamConfig{ID: 50, PD: later, Table: b.table, ULP: ub, Queues: 1})
	if err := sb.Accept(0, mine, nil); err != nil {
		t.Fatal(err)
	}
	other := ddp.NewStream(ddp.StreamConfig{ID: 51, PD: 78, Table: b.table, ULP: ub, Queues: 1})
	if err := sb.Accept(0, other, nil); !errors.Is(err, ErrState) {
		t.Errorf("a second Protection Domain for the session: %v", err)
	}
	if err := ua.SendTagged(region.STag(), 0, 0, gather([]byte("in place")), 1); err != nil {
		t.Fatal(err)
	}
	exchange(a, b)
	if string(mem) != "in place" {
		t.Errorf("memory of the Protection Domain chosen holds %q", mem)
	}
}

func TestIndicationOneEnablesDDP(t *testing.T) {
	// req 5043-11.1-4
	f := newFake()
	f.indication = 1
	e := newEnd(t, f, Config{Initiator: true})
	e.expect(EventUp)
	if _, err := e.Open(0, -1, e.stream(0).Stream, nil); err != nil {
		t.Error(err)
	}
	e.sends("0: 0 initiate")
}

// lens notes the lengths of messages and takes one untagged message.
type lens struct {
	sink
	got   []uint64
	queue *ddp.Queue
}

func (l *lens) Buffer(_, msn uint32, _ [5]byte) (*ddp.RecvBuffer, uint8) { return l.queue.Lookup(msn) }
func (l *lens) DeliverTagged(_ uint8, _ ddp.STag, _, n uint64)           { l.got = append(l.got, n) }
func (l *lens) DeliverUntagged(_, _ uint32, _ [5]byte, n uint32, _ *ddp.RecvBuffer) {
	l.queue.Pop()
	l.got = append(l.got, uint64(n))
}

func TestWhatARealAssociationShows(t *testing.T) {
	w := newWorld(t, 1480, nil)
	w.event(0, EventUp)
	w.event(1, EventUp)
	ub := lens{queue: ddp.NewQueue(1)}
	if buf, err := ddp.MakeRecvBuffer(gather(make([]byte, 64)), 0); err != nil || ub.queue.Post(buf) != nil {
		t.Fatal(err)
	}
	da, db := w.hosts[0].stream(new(sink)), w.hosts[1].stream(&ub)
	if _, err := w.hosts[0].m.Open(w.now, -1, da, nil); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	if err := w.event(1, EventInitiate).Session.Accept(w.now, db, nil); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	region, err := w.hosts[1].table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(make([]byte, 1<<20)), Access: ddp.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	before := len(w.sent)
	if err := da.SendUntagged(0, [5]byte{}, gather([]byte("now")), 1); err != nil {
		t.Fatal(err)
	}
	if w.settle(); len(w.sent) == before { // req 5043-11.2-1
		t.Error("a small untagged segment waits for more")
	}
	want := []uint64{3}
	for n := range uint64(9) { // chunks with padding and without
		if err := da.SendTagged(region.STag(), 0, 0, gather(make([]byte, n)), n); err != nil {
			t.Fatal(err)
		}
		want = append(want, n)
	}
	w.run(time.Second)
	if !slices.Equal(ub.got, want) { // req 5041-3-8
		t.Errorf("lengths %v, want %v", ub.got, want)
	}
	if err := da.SendTagged(region.STag(), 0, 0, gather(make([]byte, 1<<20)), 99); err != nil {
		t.Fatal(err)
	}
	w.run(time.Minute)
	least := uint32(1<<32 - 1)
	for _, pkt := range w.sent {
		if !pkt.ChecksumOK() { // req 5041-3-7
			t.Fatal("a packet without a right CRC32c")
		}
		cs := pkt.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			if k, err := wire.AsSack(c); err == nil {
				least = min(least, k.ARwnd())
			}
			if in, err := wire.AsInit(c); err == nil {
				ps := in.Params()
				for p, ok := ps.Next(); ok; p, ok = ps.Next() {
					switch p.Type() {
					case wire.ParamIPv4, wire.ParamIPv6: // req 5043-7.2-2: one address unless asked for more
						t.Errorf("%v lists an address", c.Type())
					case 0x8001: // req 5041-3-7: zero checksums are acceptable
						t.Errorf("%v offers to do without the checksum", c.Type())
					}
				}
			}
		}
	}
	if least != 1<<20 { // req 5041-A-1, 5041-A-2: a_rwnd stays what it was through a megabyte of placed segments
		t.Errorf("a_rwnd fell to %d", least)
	}
	bad := wire.AppendHeader(nil, wirePort, wirePort+1, w.hosts[0].a.LocalTag())
	bad = wire.AppendShutdown(bad, 0) // checksum 0
	p := rawio.Packet{Data: bad, Buf: rawio.NewBuf(bad), Local: w.hosts[0].addr, Remote: w.hosts[1].addr}
	if w.hosts[0].receive(w.now, &p); w.hosts[0].a.State() != assoc.Established {
		t.Error("a packet with checksum 0 was accepted")
	}
}

// A short tagged segment shares its packet with the untagged one that the ULP posts behind it.
func TestShortSegmentsShareAPacket(t *testing.T) {
	// req 5043-11.2-1, 5043-11.2-2
	w := newWorld(t, 1480, nil)
	w.event(0, EventUp)
	w.event(1, EventUp)
	_, _, _, ub, da, _ := w.session(nil)
	count := func() (packets, chunks int) {
		for _, pkt := range w.sent {
			n := 0
			cs := pkt.Chunks()
			for c, ok := cs.Next(); ok; c, ok = cs.Next() {
				if c.Type() == wire.ChunkData {
					n++
				}
			}
			packets, chunks = packets+min(n, 1), chunks+n
		}
		w.sent = nil
		return packets, chunks
	}
	count()
	post := func() {
		t.Helper()
		for n, err := range []error{
			da.SendTagged(1, 0, 0, nil, 1), da.SendTagged(1, 0, 0, nil, 2), da.SendUntagged(0, [5]byte{}, nil, 3),
		} {
			if err != nil {
				t.Fatalf("%d: %v", n, err)
			}
		}
	}
	post()
	w.settle()
	if packets, chunks := count(); packets != 1 || chunks != 3 {
		t.Errorf("%d segments in %d packets, want 3 in 1", chunks, packets)
	}
	// Nothing is held back for it, not even when earlier segments are not acknowledged (no Nagle).
	post()
	w.settle()
	if packets, chunks := count(); packets != 1 || chunks != 3 {
		t.Errorf("behind unacknowledged ones: %d segments in %d packets, want 3 in 1", chunks, packets)
	}
	if w.run(time.Second); ub.delivered == 0 {
		t.Error("nothing was delivered")
	}
}

func TestSlowPathsAreCounted(t *testing.T) {
	// req 5042-6.4.4-1: messages that cost more than others and end no session are counted, session by session.
	b := newEnd(t, newFake(), Config{})
	b.peer(0, "0 initiate", "1 segment early", "2 segment early too")
	b.peer(1, "0 initiate")
	evs := b.expect(EventUp, EventInitiate, EventInitiate)
	s, other := evs[1].Session, evs[2].Session
	for _, x := range []*Session{s, other} {
		if err := x.Accept(0, b.stream(8).Stream, nil); err != nil {
			t.Fatal(err)
		}
	}
	b.peer(0, "4 segment waits", "3 segment comes", "5 segment in order")
	s.next = 0 // for the Received below, which is all zero
	b.reassembled(&assoc.Received{PPID: PPIDSegment, Unordered: true, Size: 30})
	b.pull()
	if got, want := s.Stats(), (SessionStats{In: 6, Out: 1, Early: 2, OutOfOrder: 2, Fragmented: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := other.Stats(), (SessionStats{Out: 1}); got != want {
		t.Errorf("the other session: %+v, want %+v", got, want)
	}
	if s.State() != Open || other.State() != Open {
		t.Errorf("states %v and %v", s.State(), other.State())
	}
}
