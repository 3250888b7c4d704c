package rdmapeer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

func TestSessionAttacks(t *testing.T) {
	unordered := func(ppid uint32) sctp.SendInfo { return sctp.SendInfo{PPID: ppid, Unordered: true} }
	runAttacks(t, []attack{
		// req 5043-6.1-4, 5043-4-2: in an open session
		{name: "a second Initiate ends the session", do: controlMessage(fnInitiate, 4), want: ended{ddpadapt.FaultControl}},
		{name: "an Accept from the active side ends the session", do: controlMessage(fnAccept, 0), want: ended{ddpadapt.FaultControl}},
		{name: "a Reject from the active side ends the session", do: controlMessage(fnReject, 0), want: ended{ddpadapt.FaultControl}},
		{name: "an enhanced Initiate in an open session ends it", do: controlMessage(fnEnhancedInitiate, 8), want: ended{ddpadapt.FaultControl}},
		// req 5043-5.2.3-3
		{name: "function code 0 ends the session", do: controlMessage(0, 0), want: ended{ddpadapt.FaultFunction}},
		{name: "function code 8 ends the session", do: controlMessage(8, 0), want: ended{ddpadapt.FaultFunction}},
		{name: "function code 0x0104 is no Terminate", do: controlMessage(0x0104, 0), want: ended{ddpadapt.FaultFunction}},
		{name: "function code 65535 ends the session", do: controlMessage(65535, 512), want: ended{ddpadapt.FaultFunction}},
		{name: "a control message of 3 octets ends the session",
			do:   func(x *target) { x.sendRaw(unordered(ddpadapt.PPIDControl), numbered(x.ssn, []byte{0})) },
			want: ended{ddpadapt.FaultShort}},
		// req 5043-5.2.3-7
		{name: "513 octets of private data end the session", do: controlMessage(fnInitiate, 513), want: ended{ddpadapt.FaultPrivateData}},
		{name: "60000 octets of private data end the session", do: controlMessage(fnInitiate, 60000), want: ended{ddpadapt.FaultPrivateData}},
		{name: "a Session Terminate with private data ends the session as malformed", do: controlMessage(fnTerminate, 1), want: ended{ddpadapt.FaultPrivateData}},
		// req 5043-5.2.2-2
		{name: "a segment of one octet ends the session",
			do:   func(x *target) { x.sendRaw(unordered(ddpadapt.PPIDSegment), []byte{0}) },
			want: ended{ddpadapt.FaultShort}},
		// req 5043-5.1-3, 5043-5.1-2
		{name: "a message of PPID 0 ends the session",
			do:   func(x *target) { x.sendRaw(unordered(0), numbered(x.ssn, goodWrite(x))) },
			want: ended{ddpadapt.FaultPPID}},
		{name: "a message of PPID 18 ends the session",
			do:   func(x *target) { x.sendRaw(unordered(18), numbered(x.ssn, goodWrite(x))) },
			want: ended{ddpadapt.FaultPPID}},
		{name: "PPID 16 in the other byte order ends the session",
			do:   func(x *target) { x.sendRaw(unordered(16<<24), numbered(x.ssn, goodWrite(x))) },
			want: ended{ddpadapt.FaultPPID}},
		// req 5043-10-2
		{name: "a segment in an ordered message is not placed",
			do: func(x *target) {
				x.sendRaw(sctp.SendInfo{PPID: ddpadapt.PPIDSegment}, numbered(x.ssn, goodWrite(x)))
			},
			want: ended{ddpadapt.FaultOrdered}},
		{name: "a Session Terminate in an ordered message is a fault",
			do: func(x *target) {
				x.sendRaw(sctp.SendInfo{PPID: ddpadapt.PPIDControl}, numbered(x.ssn, []byte{0, fnTerminate}))
			},
			want: ended{ddpadapt.FaultOrdered}},

		// req 5043-10-9, 5043-10-11, 5043-10-6
		{name: "a DDP-SSN used twice: what came first stays",
			do: func(x *target) {
				x.sendSegment(goodWrite(x))
				copy(x.want[pageRW*pageLen:], evil(64))
				x.segmentAs(x.ssn-1, write(x.rw.STag(), base, make([]byte, 64)))
			},
			want: ended{ddpadapt.FaultDuplicateSSN}},
		{name: "a DDP-SSN used twice while an earlier one is missing",
			do: func(x *target) {
				x.segmentAs(x.ssn+1, goodWrite(x))
				copy(x.want[pageRW*pageLen:], evil(64))
				x.segmentAs(x.ssn+1, write(x.rw.STag(), base, make([]byte, 64)))
			},
			want: ended{ddpadapt.FaultDuplicateSSN}},
		{name: "the DDP-SSN of the Initiate used again",
			do: func(x *target) { x.segmentAs(0, goodWrite(x)) }, want: ended{ddpadapt.FaultDuplicateSSN}},
		{name: "a DDP-SSN 32767 ahead cannot be explained",
			do: func(x *target) { x.segmentAs(x.ssn+32767, goodWrite(x)) }, want: ended{ddpadapt.FaultWindowSSN}},
		{name: "a DDP-SSN 32768 ahead is one from the past",
			do: func(x *target) { x.segmentAs(x.ssn+32768, goodWrite(x)) }, want: ended{ddpadapt.FaultDuplicateSSN}},
		{name: "a DDP-SSN 32766 ahead may come, and its gap may stay",
			do: func(x *target) {
				x.segmentAs(x.ssn+32766, goodWrite(x))
				copy(x.want[pageRW*pageLen:], evil(64))
			},
			want: unharmed{}},
		// req 5043-6.1-4, 5041-6.2.1-3
		{name: "a segment numbered after the Session Terminate is not placed",
			do: func(x *target) {
				x.controlAs(x.ssn, fnTerminate, nil)
				x.segmentAs(x.ssn+1, goodWrite(x))
				x.ssn += 2
			},
			want: closing{late: true}},
		{name: "a segment numbered after a Session Terminate that is still under way is not placed",
			do: func(x *target) {
				x.controlAs(x.ssn+1, fnTerminate, nil)
				x.segmentAs(x.ssn+2, goodWrite(x))
				x.segmentAs(x.ssn, write(x.rw.STag(), base+64, evil(64)))
				copy(x.want[pageRW*pageLen+64:], evil(64))
			},
			want: closing{}},

		// req 5043-6.6-2, 5043-6.1-4: on a stream without a session
		{name: "a segment before any Initiate is not placed",
			with: setup{state: closed},
			do:   func(x *target) { x.sendSegment(goodWrite(x)) }, want: refused{}},
		{name: "a segment before the Initiate that follows it is not placed",
			with: setup{state: closed},
			do:   func(x *target) { x.segmentAs(1, goodWrite(x)) }, want: refused{}},
		{name: "an Accept that answers nothing is refused", with: setup{state: closed}, do: controlMessage(fnAccept, 0), want: refused{}},
		{name: "a Reject that answers nothing is refused", with: setup{state: closed}, do: controlMessage(fnReject, 0), want: refused{}},
		{name: "an enhanced Accept that answers nothing is refused", with: setup{state: closed}, do: controlMessage(fnEnhancedAccept, 4), want: refused{}},
		{name: "an Initiate that is not the first message is refused",
			with: setup{state: closed},
			do:   func(x *target) { x.controlAs(1, fnInitiate, nil) }, want: refused{}},
		{name: "an Initiate with 513 octets of private data never reaches the program",
			with: setup{state: closed}, do: controlMessage(fnInitiate, 513), want: refused{}},
		// req 6581-7-17, 6581-7-6
		{name: "an enhanced Initiate without its connection data never reaches the program",
			with: setup{state: closed}, do: controlMessage(fnEnhancedInitiate, 3), want: refused{}},
		{name: "an enhanced Initiate with 513 octets never reaches the program",
			with: setup{state: closed}, do: controlMessage(fnEnhancedInitiate, 513), want: refused{}},
		{name: "an ordered Initiate never reaches the program",
			with: setup{state: closed},
			do: func(x *target) {
				x.sendRaw(sctp.SendInfo{PPID: ddpadapt.PPIDControl}, numbered(0, []byte{0, fnInitiate}))
			},
			want: refused{}},
		{name: "a message of another PPID on a free stream is refused",
			with: setup{state: closed},
			do:   func(x *target) { x.sendRaw(unordered(0), numbered(0, []byte{0, fnInitiate})) }, want: refused{}},

		// req 5043-6.1-4, 5043-6.2-1: before the program has answered
		{name: "segments before the Accept wait, and are judged behind it",
			with: setup{state: pending},
			do: func(x *target) {
				x.sendSegment(goodWrite(x))
				x.sendSegment(write(x.ro.STag(), base, evil(8)))
				x.acceptSession()
				copy(x.want[pageRW*pageLen:], evil(64))
			},
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "more segments before the Accept than are kept end the session, and none is placed",
			with: setup{state: pending},
			do: func(x *target) {
				for range 65 { // 64 KB and a bit; of what came behind nothing would be kept
					x.sendSegment(write(x.rw.STag(), base, evil(1000)))
				}
			},
			want: undecided{}},
		{name: "a second Initiate before the answer ends the session",
			with: setup{state: pending}, do: controlMessage(fnInitiate, 0), want: undecided{}},
		{name: "an Accept of the peer's own Initiate ends the session",
			with: setup{state: pending}, do: controlMessage(fnAccept, 0), want: undecided{}},
		{name: "a Session Terminate before the answer ends the session",
			with: setup{state: pending}, do: controlMessage(fnTerminate, 0), want: undecided{}},
		{name: "private data that is too long ends a session before the answer",
			with: setup{state: pending}, do: controlMessage(fnTerminate, 513), want: undecided{}},

		// req 5043-5.2.1-1: what has no number of the session's wedges neither it nor its stream
		{name: "a message of another PPID that takes a DDP-SSN leaves the stream usable",
			do: func(x *target) {
				x.sendRaw(unordered(99), numbered(x.ssn, goodWrite(x)))
				x.ssn++
				x.sendControl(fnTerminate, nil)
			},
			want: usable{fault: ddpadapt.FaultPPID}},
		{name: "one that takes none, among segments of a message, does too",
			do: func(x *target) {
				x.sendSegment(goodWrite(x))
				copy(x.want[pageRW*pageLen:], evil(64))
				x.sendRaw(unordered(99), evil(1))
				x.sendControl(fnTerminate, nil)
			},
			want: usable{fault: ddpadapt.FaultPPID}},
		{name: "a malformed Initiate behind it, with our Terminate on its way, is answered",
			do: func(x *target) {
				x.sendRaw(unordered(99), numbered(x.ssn, nil))
				x.controlAs(x.ssn+1, fnTerminate, nil)
				x.controlAs(0, fnInitiate, evil(513))
			},
			want: usable{fault: ddpadapt.FaultPPID, again: true}},
		{name: "a malformed Initiate behind a session that was rejected is answered",
			with: setup{state: pending},
			do: func(x *target) {
				if err := x.req.Reject(nil); err != nil {
					x.t.Fatal(err)
				}
				if x.controlAs(0, fnEnhancedInitiate, evil(3)); !x.victimMessage().isControl(fnReject) {
					x.t.Error("no Reject")
				}
			},
			want: usable{again: true}},
		{name: "a session may be opened again and again on one stream",
			// req 5043-6.6-5
			with: setup{state: closed},
			do: func(x *target) {
				for range 50 {
					x.ssn, x.in = 0, 0
					x.sendControl(fnInitiate, evil(5))
					if err := x.awaitRequest(x.t, evil(5)).Reject([]byte("no")); err != nil {
						x.t.Fatal(err)
					}
					if m := x.victimMessage(); !m.isControl(fnReject) || string(m.data[4:]) != "no" {
						x.t.Fatalf("the Initiate is answered by %v", m)
					}
				}
				x.ssn, x.in = 0, 0
				x.sendSegment(goodWrite(x))
			},
			want: refused{}},
	})
}

func TestOthersThanDDPPeersGetNoAssociation(t *testing.T) {
	// req 5043-11.1-3, 5043-11.1-5, 5043-7.1-3
	l := newLab(t)
	two := uint32(2)
	for name, cfg := range map[string]sctp.Config{
		"without an adaptation indication": {OutStreams: 4, InStreams: 4},
		"with another one":                 {OutStreams: 4, InStreams: 4, Adaptation: &two},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := l.a.Transport().Dial(deadlineCtx(t), l.addr, &cfg)
			if err == nil { // it was up for us; the victim has not
				<-conn.Done()
				err = conn.Err()
			}
			var e *assoc.AbortError
			if !errors.As(err, &e) || !e.ByPeer {
				t.Errorf("the association ended with %v", err)
			}
		})
	}
	l.checkUnhurt(t, l.pattern)
}

// A peer that takes fewer streams than it wants to open is given no more than it takes: there is no
// stream without one back.
func TestStreamsWithoutAWayBack(t *testing.T) {
	// req 5043-8-3, 5043-8-1
	l := newLab(t)
	c := must(l.dialVictim(t, sctp.Config{OutStreams: 20, InStreams: 2}, 1024))
	defer c.conn.Abort("")
	check.Equal(t, "outbound streams of the peer", c.conn.Stats().OutStreams, 2)
	_, err := c.conn.WriteMsg([]byte("no way back"), sctp.SendInfo{Stream: 2})
	check.Error(t, "a message on the third", err, sctp.ErrInvalidStream)
	l.checkUnhurt(t, l.pattern)
}

func TestInitiateFlood(t *testing.T) {
	// req 5043-6.4-2, 5043-5.2.3-12, 5043-6.3-3, 5042-6.4.1-1
	l := newLab(t)
	c := must(l.dialVictim(t, sctp.Config{}, 8))
	var flood []*session
	for i := range streams {
		s := c.freshSession(t)
		s.sendControl(fnInitiate, binary.BigEndian.AppendUint32([]byte("flood"), uint32(i)))
		flood = append(flood, s)
	}
	for i, s := range flood[limits:] {
		if m, ok := s.nextMessage(deadlineCtx(t)); !ok || !m.isControl(fnTerminate) || m.ddpSSN() != 0 {
			t.Fatalf("Initiate %d, beyond the limit, is answered by %v", limits+i, m)
		}
	}
	l.checkUnhurt(t, l.pattern)
	l.checkBounded(t)
	for i := range limits {
		req := must(l.l.Accept(deadlineCtx(t)))
		if want := fmt.Sprintf("flood\x00\x00\x00%c", i); string(req.PrivateData()) != want {
			t.Fatalf("request %d has private data %q", i, req.PrivateData())
		}
		if err := req.Reject(nil); err != nil {
			t.Fatal(err)
		}
		if m, ok := flood[i].nextMessage(deadlineCtx(t)); !ok || !m.isControl(fnReject) {
			t.Fatalf("request %d is answered by %v", i, m)
		}
	}
	none, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.l.Accept(none)
	check.That(t, errors.Is(err, context.Canceled), "one more request: %v", err)
	c.conn.Abort("")
	c = must(l.dialVictim(t, sctp.Config{}, 8))
	for range 3 * limits { // who asks and leaves takes no place for good
		s := c.freshSession(t)
		s.sendControl(fnInitiate, []byte("gone"))
		s.sendControl(fnTerminate, nil)
		if m, ok := s.nextMessage(deadlineCtx(t)); !ok || !m.isControl(fnTerminate) {
			t.Fatalf("it is answered by %v", m)
		}
	}
	l.checkUnhurt(t, l.pattern)
	// one may be on its way out
	for r, err := l.l.Accept(none); !errors.Is(err, context.Canceled); r, err = l.l.Accept(none) {
		if err != nil || r.Reject(nil) == nil {
			t.Fatalf("a request that is no more: %v", err)
		}
	}
	c.conn.Abort("")

	// The queue of requests is bounded as well, whatever the number of associations.
	const more = 20
	l.goroutines += more // each of ours has one that reads
	for range more {
		c := must(l.dialVictim(t, sctp.Config{}, 8))
		for range limits {
			c.freshSession(t).sendControl(fnInitiate, []byte("more"))
		}
		defer c.conn.Abort("")
	}
	l.checkUnhurt(t, l.pattern)
	l.checkBounded(t)
}

func TestOutOfOrderFlood(t *testing.T) {
	// req 5043-10-10, 5042-6.4.1-1, 5042-6.4.4-1
	runAttacks(t, []attack{
		{name: "sessions with gaps that never close take bounded memory",
			with: setup{own: &sctp.Config{}},
			do: func(x *target) {
				for i := range uint16(32766) {
					x.segmentAs(x.ssn+1+i, write(x.rw.STag(), base, nil))
				}
				x.near.goesOn(x.t)
				x.far.goesOn(x.t)
				x.checkBounded(x.t)
				x.segmentAs(x.ssn+32767, goodWrite(x))
			},
			want: ended{ddpadapt.FaultWindowSSN}},
		{name: "a segment longer than any packet is not placed",
			with: setup{own: &sctp.Config{}},
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base, evil(65536-2-ddp.TaggedHeaderLen))) },
			want: ended{ddpadapt.FaultTooLong}},
		{name: "a message longer than that is not even put together",
			with: setup{own: &sctp.Config{}},
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base, evil(65537-2-ddp.TaggedHeaderLen))) },
			want: lost{}},
		{name: "a segment in fragments is placed as any other",
			with: setup{own: &sctp.Config{}},
			do: func(x *target) {
				x.sendSegment(write(x.rw.STag(), base, evil(4000)))
				copy(x.want[pageRW*pageLen:], evil(4000))
			},
			want: unharmed{}},
		{name: "a segment in fragments that runs over the end places nothing",
			with: setup{own: &sctp.Config{}},
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base+200, evil(4000))) },
			want: taggedError(ddp.CodeBaseBounds)},
	})
}

func TestEarlyDataFlood(t *testing.T) {
	// req 5042-6.4.1-1, 5043-6.4-2
	l := newLab(t)
	const segments = 100
	c := must(l.dialVictim(t, sctp.Config{}, segments)) // what comes after the end of a session is refused each time
	defer c.conn.Abort("")
	seg := untagged(rdmap.OpSend, rdmap.QueueSend, 1, 0, evil(1200))
	for range limits {
		s := c.freshSession(t)
		s.sendControl(fnInitiate, []byte("early"))
		for range segments { // each session keeps 64 KB, all of them 1 MB
			s.sendSegment(seg)
		}
		if m, ok := s.nextMessage(deadlineCtx(t)); !ok || !m.isControl(fnTerminate) {
			t.Fatalf("the flood is answered by %v", m)
		}
	}
	l.checkUnhurt(t, l.pattern)
	l.checkBounded(t)
}
