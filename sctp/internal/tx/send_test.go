package tx

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// fixedWindow is a controller whose cwnd the test sets.
type fixedWindow int

func newFixedWindow(n int) *fixedWindow { w := fixedWindow(n); return &w }

func (w *fixedWindow) Window() int                   { return int(*w) }
func (w *fixedWindow) Ssthresh() int                 { return int(*w) }
func (w *fixedWindow) OnSent(rawio.Time, int, int)   {}
func (w *fixedWindow) OnAck(rawio.Time, cc.Ack)      {}
func (w *fixedWindow) OnLoss(rawio.Time)             {}
func (w *fixedWindow) OnTimeout(rawio.Time)          {}
func (w *fixedWindow) OnIdle(_, _ rawio.Time, _ int) {}
func (w *fixedWindow) Undo(rawio.Time)               {}
func (w *fixedWindow) OnECN(rawio.Time)              {}
func (w *fixedWindow) SetPMDCS(int)                  {}
func (w *fixedWindow) Reset()                        {}

func ExampleSender() {
	s := NewSender(Config{TSN: 1, SendBuffer: 1 << 16})
	p := NewPath(netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:0"), 1480, labRTO, nil)
	p.State = Active
	if err := s.AddPath(p); err != nil {
		fmt.Println(err)
	}
	s.SetPeer(1<<16, 10)
	if err := s.Enqueue(&Message{Body: [2][]byte{[]byte("hello")}}); err != nil {
		fmt.Println(err)
	}
	b := pack.NewBatch(1)
	for p := s.Poll(0); p != nil; p = s.Poll(0) {
		b.Begin(5000, 5001, 1, p.Local, p.Remote, p.MTU())
		s.Fill(0, b, p)
		b.End()
	}
	fmt.Println(b.Pkts[0].Len(), "octets to", b.Pkts[0].Remote.Addr(), "and", s.Outstanding(), "chunk outstanding")
	// Output: 36 octets to 192.0.2.1 and 1 chunk outstanding
}

func TestChunksOfMessages(t *testing.T) {
	l := newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(1 << 20)
	head := Message{Stream: 3, PPID: 16, HeadLen: 10, Token: 1, SackNow: true}
	copy(head.Head[:], "0123456789")
	head.Body = [2][]byte{bytes.Repeat([]byte{'a'}, 1500), bytes.Repeat([]byte{'b'}, 703)}
	for _, m := range []*Message{
		&head,
		{Stream: 3, Unordered: true, Body: [2][]byte{bytes.Repeat([]byte{'u'}, full+9)}, Token: 2},
		{Stream: 3, Body: [2][]byte{[]byte("x"), []byte("yz")}, Token: 3},
		{Stream: 4, Body: [2][]byte{nil, []byte("other")}, Token: 4},
	} {
		must.OK(t, l.s.Enqueue(m))
	}
	var got []wire.Data
	var all []byte
	for _, p := range l.transmit() {
		all = append(all, bytes.Join(p.Vec, nil)...)
		// req 9260-6.10-1, 9260-3.3.1-10
		check.That(t, p.Len() <= labMTU && p.Len()%4 == 0, "packet of %d octets", p.Len())
		got = append(got, chunks(t, p)...)
	}
	want := []struct {
		flags  uint8
		stream wire.StreamID
		ssn    wire.SSN
		ppid   uint32
		n      int
	}{
		// req 9260-3.3.1-11, 9260-3.3.1-7, 9260-3.3.1-8, 9260-6-7, 9260-6.9-5
		{wire.FlagB, 3, 0, 16, full},
		{0, 3, 0, 16, full},
		{wire.FlagE | wire.FlagI, 3, 0, 16, 2213 - 2*full}, // req 9260-6.1-22
		// req 9260-6.5-5, 9260-3.3.1-5
		{wire.FlagB | wire.FlagU, 3, 0, 0, 672},
		{wire.FlagE | wire.FlagU, 3, 0, 0, 305},
		// req 9260-6.5-4
		{wire.FlagB | wire.FlagE, 3, 1, 0, 3},
		{wire.FlagB | wire.FlagE, 4, 0, 0, 5},
	}
	must.Equal(t, "chunks", len(got), len(want))
	var first []byte
	for i, w := range want {
		d := got[i]
		// req 9260-3.3.1-12, 9260-3.3.1-13
		check.That(t, d.TSN() == wire.TSN(1+i) && d.Flags() == w.flags && d.Stream() == w.stream &&
			d.SSN() == w.ssn && d.PPID() == w.ppid && len(d.Payload()) == w.n,
			"chunk %d: TSN %d flags %x stream %d SSN %d PPID %d, %d octets, want %+v", i, d.TSN(), d.Flags(),
			d.Stream(), d.SSN(), d.PPID(), len(d.Payload()), w)
		if i < 3 {
			first = append(first, d.Payload()...)
		}
	}
	check.Slice(t, "the fragments together", first,
		append(append([]byte("0123456789"), head.Body[0]...), head.Body[1]...))
	// req 9260-3.3.1-10
	check.That(t, string(got[5].Payload()) == "xyz" && string(got[6].Payload()) == "other" &&
		bytes.Contains(all, []byte("xyz\x00")), "user data damaged")
	l.sack(7)
	check.Equal(t, "acknowledged", fmt.Sprint(l.acked), "[1 2 3 4]")
}

func TestSSNWraps(t *testing.T) {
	// req 9260-6.5-4
	l := newLab(t, 1)
	*l.s.streams.nextSSN.Use(0) = 65535
	l.enqueueMany(2, 1)
	d := chunks(t, l.transmit()[0])
	check.That(t, d[0].SSN() == 65535 && d[1].SSN() == 0, "SSNs %d, %d", d[0].SSN(), d[1].SSN())
}

func TestEnqueueRefuses(t *testing.T) {
	l := newLab(t, 1)
	one := [2][]byte{make([]byte, 1)}
	for _, tt := range []struct {
		name string
		m    Message
		want error
	}{
		{"no user data", Message{}, ErrEmptyMessage},                                // req 9260-6.2-28, 9260-3.3.1-6
		{"a stream beyond those agreed", Message{Stream: 16, Body: one}, ErrStream}, // req 9260-6.5-1
		{"more than the send buffer", Message{Body: [2][]byte{make([]byte, 1<<20+1)}}, ErrMessageTooBig},
		{"a head that is too long", Message{HeadLen: HeadCap + 1}, ErrHeadLen},
	} {
		err := l.s.Enqueue(&tt.m)
		check.That(t, errors.Is(err, tt.want), "%s: %v", tt.name, err)
	}
	l.enqueueMany(1, 1<<20-10)
	err := l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, 11)}})
	check.That(t, errors.Is(err, ErrSendBufferFull), "%v", err)
	l.pathAt(0).cc = newFixedWindow(1 << 30)
	l.transmit()
	check.Error(t, "sent is not acknowledged", l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, 11)}}),
		ErrSendBufferFull)
	for l.s.Outstanding() > 0 || l.s.Queued() > 0 {
		l.sack(l.s.NextTSN() - 1)
		l.transmit()
	}
	l.enqueueMany(1, 1<<20)
}

func TestCwndLimits(t *testing.T) {
	for _, tt := range []struct {
		name string
		size int
		want int // packets
	}{
		// req 9260-6.1-7, 9260-6.1-8, 9260-6.1-9
		{"one packet may exceed cwnd: 4 * 984 < 4000", full, 5},
		{"none when cwnd is reached exactly: 4 * 1000", 984, 4},
	} {
		l := newLab(t, 1)
		if tt.size > full {
			l.pathAt(0).pmdcs += 16 // as if no room for a SACK were kept
			l.pathAt(0).mtu += 16
		}
		l.enqueueMany(20, tt.size)
		check.Equal(t, tt.name+": packets", len(l.transmit()), tt.want)
		f := l.pathAt(0).Flight()
		check.That(t, f < 4000+1000, "%s: flight %d", tt.name, f)
		l.expectTSNs("window full", "") // req 9260-6.1-16
	}
}

func TestSmallMessagesShareAPacket(t *testing.T) {
	// req 9260-6.1-14, 9260-6.10-3
	l := newLab(t, 1)
	l.enqueueMany(12, 84)
	l.expectTSNs("ten chunks of 100 octets fill 1000", "1 2 3 4 5 6 7 8 9 10 | 11 12")
}

func TestMaxBurst(t *testing.T) {
	// req 9260-6.1-11, 9260-6.1-13
	l := newLab(t, 1)
	l.s.cfg.MaxBurst = 2
	l.enqueueMany(20, full)
	l.expectTSNs("an opportunity", "1 | 2")
	l.b.Begin(1, 2, 3, l.pathAt(0).Local, l.pathAt(0).Remote, labMTU)
	check.Equal(t, "chunks beyond the burst in a packet of something else", l.s.Fill(l.now, l.b, l.pathAt(0)), 0)
	l.expectCwnd("unchanged", 4000)
	l.expectTSNs("the next", "3 | 4")
	l.expectTSNs("cwnd is full", "5")
	l = busyLab(t, 0, quick)
	l.s.cfg.MaxBurst, l.s.cfg.StrictRFC, l.pathAt(0).rttEst.srtt = 2, false, quick
	l.enqueueMany(200, full)
	check.Equal(t, "packets at once over a near path, unless the letter is kept: two trains", len(l.transmit()),
		2*65536/1000)
}

// A SACK for many packets is worth the opportunities of the SACKs that it stands for.
func TestMaxBurstForAStretchedSack(t *testing.T) {
	// req 9260-6.1-11
	l := newLab(t, 1)
	l.s.cfg.MaxBurst, l.s.cfg.NoDelay = 2, true
	l.enqueueMany(20, full)
	l.expectTSNs("an opportunity", "1 | 2")
	l.expectTSNs("the next", "3 | 4")
	l.expectTSNs("cwnd is full", "5")
	l.handleSack(makeSack(4, 1<<20))
	l.expectTSNs("two for four packets", "6 | 7 | 8 | 9")
	l.expectTSNs("one again, and cwnd is full", "10")
}

func TestRwndLimits(t *testing.T) {
	l := newLab(t, 1)
	l.s.window.largest = 0 // half of it would be too silly a window
	l.s.SetPeer(2*full-1, 16)
	l.enqueueMany(4, full)
	// req 9260-6.1-1, 9260-6.2.1-1
	l.expectTSNs("one octet less than two chunks need", "1")
	check.Equal(t, "rwnd", l.s.Rwnd(), full-1)
	l.s.SetPeer(2*full, 16)
	l.expectTSNs("what they need", "2")
	// req 9260-6.2.1-4
	l.handleSack(makeSack(1, 2000))
	check.Equal(t, "rwnd: a_rwnd less what is outstanding", l.s.Rwnd(), 2000-full)
	l.handleSack(makeSack(1, 500))
	check.Equal(t, "rwnd", l.s.Rwnd(), 0)
}

func TestZeroWindowProbe(t *testing.T) {
	l := newLab(t, 1)
	p := l.pathAt(0)
	l.enqueueMany(3, full)
	l.s.SetPeer(full, 16)
	l.expectTSNs("the window takes one", "1")
	l.now = 100 * ms
	l.handleSack(makeSack(1, 0))
	l.expectTSNs("closed", "")
	// req 9260-6.1-5
	must.Equal(t, "first probe, after one RTO, at", l.s.NextTimeout(), l.now.Add(p.RTO()))
	l.now += second - 1
	l.expectTSNs("not before", "")
	l.runNextTimeout()
	// req 9260-6.1-2, 9260-6.1-3
	l.expectTSNs("the probe, one chunk", "2")
	for i := range 3 {
		// req 9260-6.1-4
		l.handleSack(makeSack(1, 0)) // the peer has dropped it
		l.expectTSNs("nothing beside the probe", "")
		cwnd, sent, interval := p.cc.Window(), l.now, p.RTO()
		check.That(t, l.runNextTimeout() == 0, "probe %d raises an error although the peer answers", i)
		check.That(t, l.now.Sub(sent) == interval && p.RTO() == 2*interval,
			"probe %d after %v, RTO %v: no exponential interval", i, l.now.Sub(sent), p.RTO())
		l.expectCwnd("probing leaves cwnd alone", cwnd)
		l.expectTSNs("the probe again", "2")
	}
	check.That(t, l.runNextTimeout().Has(0), "no error for a probe that nothing answered")
	l.expectTSNs("the probe again", "2")
	l.handleSack(makeSack(1, 100000))
	l.expectTSNs("the window opens: the dropped probe first, at once", "2 | 3")
	l.sack(3)
	check.That(t, l.s.Idle(l.now) && l.s.NextTimeout() == rawio.Never, "not idle")
}

// A chunk had room in the window when it was sent. If the peer has dropped it and closes its
// window, it is a probe when it is sent again.
func TestChunkThatHasNoRoomAnyMoreIsAProbe(t *testing.T) {
	// req 9260-6.1-4
	l := newLab(t, 1)
	l.enqueueMany(2, full)
	l.s.SetPeer(full, 16)
	l.expectTSNs("the window takes one", "1")
	l.handleSack(makeSack(0, 0))
	check.That(t, l.runNextTimeout().Has(0), "no error for a chunk that is not acknowledged")
	l.expectTSNs("again", "1")
	for i := range 3 {
		l.handleSack(makeSack(0, 0))
		check.That(t, l.runNextTimeout() == 0, "probe %d raises an error although the peer answers", i)
		l.expectTSNs("the probe again", "1")
	}
	check.That(t, l.runNextTimeout().Has(0), "no error for a probe that nothing answered")
	l.expectTSNs("the probe again", "1")
	l.handleSack(makeSack(0, 100000))
	l.expectTSNs("the window opens: the dropped one, at once", "1")
	l.sack(1)
	l.expectTSNs("and the next", "2")
}

func TestProbeThatTheWindowTakes(t *testing.T) {
	l := newLab(t, 1)
	l.enqueueMany(3, full)
	l.s.SetPeer(100, 16)
	l.expectTSNs("100 octets of window are less than the chunk", "")
	l.runNextTimeout()
	l.expectTSNs("so it is a probe", "1")
	l.handleSack(makeSack(1, 5000))
	l.expectTSNs("accepted", "2 | 3")
	check.That(t, l.s.Stats().Probes == 1 && !l.s.window.probing, "%+v", l.s.Stats())
}

func TestSillyWindowAvoidance(t *testing.T) {
	// req 9260-6.1-6
	for _, tt := range []struct {
		name     string
		messages int // of 84 octets, after one in flight
		arwnd    uint32
		want     string
	}{
		{"a sliver of the window waits", 30, 84 + 200, ""},
		{"a full chunk goes", 30, 84 + full, "2 3 4 5 6 7 8 9 10 11"},
		{"all that is queued goes", 2, 84 + 168, "2 3"},
	} {
		l := newLab(t, 1)
		l.enqueueMany(1, 84)
		l.transmit()
		l.enqueueMany(tt.messages, 84)
		l.handleSack(makeSack(0, tt.arwnd))
		l.expectTSNs(tt.name, tt.want)
	}
	l := newLab(t, 1)
	l.s.window.largest = 400 // the largest window ever
	l.enqueueMany(1, 84)
	l.transmit()
	l.enqueueMany(30, 84)
	l.handleSack(makeSack(0, 84+199))
	l.expectTSNs("less than half of the largest window waits", "")
	l.b.Reset()
	l.b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, labMTU)
	check.Equal(t, "chunks in a packet that goes anyway", l.s.Fill(l.now, l.b, l.pathAt(0)), 0)
	l.handleSack(makeSack(0, 84+200))
	l.expectTSNs("half of it goes", "2 3")
}

func TestIdlePathSlowsDown(t *testing.T) {
	// req 9260-7.2.1-8
	for silence, part := range map[rawio.Time]int{second - 1: 1, second: 2, 2*second - 1: 2, 2 * second: 4} {
		l := newLab(t, 1)
		l.pathAt(0).rttEst.addSample(10 * time.Millisecond) // RTO 1 s
		for l.pathAt(0).cc.Window() < 20000 {
			l.enqueueMany(40, full)
			for l.transmit(); l.s.Outstanding() > 0; l.transmit() {
				l.sack(l.s.CumTSN() + 1)
			}
		}
		cwnd := l.pathAt(0).cc.Window()
		l.now += silence
		l.enqueueMany(1, 1)
		l.expectTSNs("a chunk", fmt.Sprint(l.s.NextTSN()))
		l.expectCwnd(fmt.Sprint("after ", time.Duration(silence)), cwnd/part)
	}
	l := newLab(t, 1)
	l.sendFull(5)
	for range 4 { // a peer that is slow is no silence
		l.now += second - ms
		l.sack(l.s.CumTSN() + 1)
	}
	cwnd := l.pathAt(0).cc.Window()
	l.enqueueMany(1, 1)
	l.expectTSNs("a chunk", "6")
	l.expectCwnd("with one in flight", cwnd)
}

// cutSource is a Source of messages of size octets that it cuts to what fits.
type cutSource struct{ size, left int }

func (c *cutSource) Next(_ rawio.Time, max int, m *Message) bool {
	if c.left == 0 {
		c.left = c.size
	}
	n := min(max, c.left)
	c.left -= n
	m.Body[0], m.Unordered = make([]byte, n), true
	return true
}
func (c *cutSource) Idle() bool                              { return false }
func (c *cutSource) Acked(rawio.Time, wire.StreamID, uint64) {}

// countedSource is a Source with n messages left, of size octets, whose token is n.
type countedSource struct {
	n, size, max int
	body         []byte
	acked        []uint64
}

func (u *countedSource) Next(_ rawio.Time, max int, m *Message) bool {
	u.max = max
	if u.n == 0 {
		return false
	}
	if len(u.body) < u.size {
		u.body = make([]byte, u.size)
	}
	*m = Message{Unordered: true, HeadLen: 4, Body: [2][]byte{u.body[:u.size-4]}, Token: uint64(u.n)}
	u.n--
	return true
}

func (u *countedSource) Idle() bool { return u.n == 0 }

func (u *countedSource) Acked(_ rawio.Time, _ wire.StreamID, token uint64) {
	u.acked = append(u.acked, token)
}

func TestSackNowSetsTheIBit(t *testing.T) {
	// req 9260-6.1-22
	l := newLab(t, 1)
	l.s.SetSackNow(true)
	l.enqueueMany(1, 10)
	check.That(t, chunks(t, l.transmit()[0])[0].I(), "no I bit")
}

// The chunk that fills a window asks for its SACK at once, so that the sender never waits for a
// delayed one: after a growth of the path MTU, cwnd may be less than a packet.
func TestChunkThatFillsAWindowIsNotToBeDelayed(t *testing.T) {
	// req 9260-6.1-22
	for _, tt := range []struct {
		name        string
		cwnd, rwnd  int
		queued      int
		sent, asked int // chunks, and the one with the I bit; 0 for none
	}{
		{"cwnd less than a packet", 500, 1 << 20, 3, 1, 1},
		{"cwnd of three and a bit", 3*counted + 1, 1 << 20, 10, 4, 4},
		{"cwnd of three exactly", 3 * counted, 1 << 20, 10, 3, 3},
		{"what leaves room in cwnd", 3*counted + 1, 1 << 20, 3, 3, 0},
		{"rwnd has no room for one more", 1 << 20, 3*full - 1, 10, 2, 2},
		{"what leaves room in rwnd", 1 << 20, 4 * full, 3, 3, 0},
	} {
		l := newLab(t, 1)
		l.pathAt(0).cc = newFixedWindow(tt.cwnd)
		l.s.SetPeer(uint32(tt.rwnd), 16)
		l.enqueueMany(tt.queued, full)
		n := 0
		for _, p := range l.transmit() {
			for _, d := range chunks(t, p) {
				n++
				check.That(t, d.I() == (n == tt.asked), "%s: chunk %d has I bit %v", tt.name, n, d.I())
			}
		}
		check.Equal(t, tt.name+": chunks", n, tt.sent)
	}
	l := newLab(t, 1)
	l.sendFull(1)
	l.runNextTimeout()
	check.That(t, chunks(t, l.transmit()[0])[0].I(), "T3-rtx has sent without the I bit")
}

func TestShrunkPMTU(t *testing.T) {
	// req 9260-6.9-4
	l := newLab(t, 1)
	l.enqueueMany(5, full)
	l.enqueueMany(1, 2*full)
	l.transmit()
	l.pathAt(0).SetMTU(612)
	must.Equal(t, "MaxPayload", l.s.MaxPayload(), 612-12-16-16)
	l.runNextTimeout()
	pk := l.transmit()
	check.That(t, len(pk) == 1 && pk[0].Len() == 12+counted, "the old chunk goes as it is, alone: %d packets", len(pk))
	// A packet that holds something already is not made larger.
	l.sack(1)
	p := l.s.Poll(l.now)
	l.b.Reset()
	l.b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
	l.b.Commit(wire.AppendCookieAck(l.b.Tail()))
	n := l.s.Fill(l.now, l.b, p)
	check.That(t, n == 0, "%d chunks beside a control chunk in %d octets", n, l.b.Len())
	l.sack(5)
	for _, pk := range l.transmit() {
		check.That(t, pk.Len() <= 612, "new DATA in a packet of %d octets", pk.Len())
	}
}

// sendMany gives the sender n messages of size octets, on streams below so many in turn.
func (l *senderLab) sendMany(n, streams int, unordered bool, size int) {
	l.t.Helper()
	body := [2][]byte{make([]byte, size)}
	for range n {
		l.token++
		must.OK(l.t,
			l.s.Enqueue(&Message{Body: body, Token: l.token, Stream: wire.StreamID(l.token % uint64(streams)),
				Unordered: unordered}))
	}
	for len(l.transmit()) > 0 {
	}
	l.check()
}

func TestSendWindowStopsAt65535TSNs(t *testing.T) {
	// req 9260-6.1-20
	l := newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(1 << 30)
	l.s.SetPeer(1<<30, 1)
	l.sendMany(70000, 1, true, 1)
	check.Equal(t, "outstanding", l.s.Outstanding(), 65535)
	l.sack(2, gap{4, 65535})
	l.expectTSNs("two more", "65536 65537")
	l.sack(65537)
	check.Equal(t, "messages acknowledged", len(l.acked), 65537)
}

// Of one stream no more ordered messages are outstanding than their SSNs can be told apart,
// whatever is acknowledged when; others are not held up before there are as many of theirs, or as
// many TSNs as there can be.
func TestMessagesOfAStreamOutstanding(t *testing.T) {
	// req 9260-6.1-21, 9260-1.6-4
	for _, tt := range []struct {
		name      string
		streams   int
		unordered bool
		first     int // its first SSN
		least     int // outstanding
		size      int // octets of a message
	}{
		{"ordered messages of one stream", 1, false, 0, 1<<15 - 1, 1},
		{"its SSNs wrap meanwhile", 1, false, 40_000, 1<<15 - ssnBlock, 1},
		{"each fills its packet", 1, false, 0, 1<<15 - 1, full},
		{"from the end of a block on", 1, false, ssnBlock - 1, 1<<15 - ssnBlock, 1},
		{"unordered ones have no SSN", 1, true, 0, 65535, 1},
		{"of two streams", 2, false, 0, 65534, 1},
		{"of three there are not as many TSNs", 3, false, 0, 65535, 1},
	} {
		l := newLab(t, 1)
		l.pathAt(0).cc = newFixedWindow(1 << 30)
		l.s.SetPeer(1<<30, 3)
		l.s.cfg.SendBuffer = 1 << 30
		*l.s.streams.nextSSN.Use(0) = wire.SSN(tt.first)
		l.sendMany(150_000, tt.streams, tt.unordered, tt.size)
		check.That(t, l.s.Outstanding() >= tt.least, "%s: no more than %d are outstanding", tt.name, l.s.Outstanding())
		for acked := wire.TSN(0); acked < 150_000; { // one by one at first, later many
			of := map[wire.StreamID]int{}
			for s := l.s.outstanding.firstUnacked; s != l.s.outstanding.nextTSN; s++ {
				if r := l.s.outstanding.recordOf(s); r.wireFlags&wire.FlagU == 0 {
					of[r.stream]++
				}
			}
			for id, n := range of {
				must.That(t, n < 1<<15, "%s: %d messages of stream %d are outstanding with TSN %d acknowledged",
					tt.name, n, id, acked)
			}
			must.That(t, l.s.Outstanding() > 0, "%s: nothing goes behind TSN %d", tt.name, acked)
			acked += min(1+acked/4, 9000, wire.TSN(l.s.Outstanding()))
			l.sack(acked)
			l.sendMany(0, 1, false, 0)
		}
		check.Equal(t, tt.name+": messages acknowledged", len(l.acked), 150_000)
		if tt.streams == 1 && !tt.unordered {
			held, blocks := l.s.Held(), l.s.streams.ssnBlockEnds
			l.s.streams.ssnBlockEnds = nil
			check.Equal(t, tt.name+": octets for it", held-l.s.Held(), int(unsafe.Sizeof(*blocks)))
			l.s.streams.ssnBlockEnds = blocks
		}
		l.s.Trim()
		check.That(t, l.s.streams.ssnBlockEnds == nil, "%s: what is known of SSNs outstanding is kept", tt.name)
	}
}

// A message is as long as the send buffer may be at most.
func TestSendBufferHoldsWhatItIsSetFor(t *testing.T) {
	l := newLab(t, 1)
	l.s.cfg.SendBuffer = FirstBuffer + 1
	must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, FirstBuffer+1)}}))
}

// The tables of a sender are counted, each once.
func TestHeldCountsEachTable(t *testing.T) {
	l := newLab(t, 2)
	want := int(unsafe.Sizeof(*l.s))
	for i, step := range []struct {
		do   func()
		more int
	}{
		{func() {}, 0},
		{func() { l.enqueueMany(1, 100) }, 0}, // the next one lies in the sender
		{func() { l.enqueueMany(1, 100) }, 8 * int(unsafe.Sizeof(Message{}))},
		{func() { l.transmit() }, 2*int(unsafe.Sizeof(chunkRecord{})) + l.s.streams.nextSSN.Held()},
		{func() { l.pathAt(0).flight.tsns.Grow(4096, 1, 2) }, 4096/8 + 16},
		{func() { l.runNextTimeout(); l.transmit() }, 64 * int(unsafe.Sizeof(transmission{}))},
		{func() { l.s.SetPrimary(0); l.sack(1) }, 0},
	} {
		step.do()
		if i == 3 {
			step.more += l.s.streams.nextSSN.Held() + l.s.streams.lastTSN.Held()
		}
		want += step.more
		check.That(t, l.s.Held() == want, "step %d: %d octets, want %d", i, l.s.Held(), want)
	}
}

func TestNextFailed(t *testing.T) {
	l := newLab(t, 1)
	src := &countedSource{n: 1, size: full}
	l.s.SetUpper(src, l)
	l.pathAt(0).cc = newFixedWindow(4 * counted)
	l.transmit()             // TSN 1 from the Source
	l.enqueueMany(1, 100)    // TSN 2
	l.enqueueMany(1, 3*full) // TSN 3, 4 and a rest
	l.enqueueMany(2, 10)
	l.transmit()
	var got []FailedMessage
	l.s.Stop()
	for f, ok := l.s.NextFailed(); ok; f, ok = l.s.NextFailed() {
		got = append(got, f)
	}
	src.n = 1 // more would be there
	_, ok := l.s.NextFailed()
	check.That(t, !ok && src.n != 0 && l.s.queue.bufferedOctets == 0 && l.s.Flight() == 0 &&
		l.pathAt(0).Flight() == 0 &&
		l.s.DataInFlight() == 0, "the Source was asked at the end: %v, %d octets held", ok, l.s.queue.bufferedOctets)
	want := []FailedMessage{{Token: 1, Sent: true, Pulled: true}, {Token: 1, Sent: true}, {Token: 2, Sent: true},
		{Token: 3}, {Token: 4}}
	check.Equal(t, "bounds", fmt.Sprint(got), fmt.Sprint(want))
	check.That(t, l.s.NextTimeout() == rawio.Never && l.s.Queued() == 0 && l.s.Outstanding() == 0, "something is left")
}
