package rx

import (
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// smallMessagePeer is a peer that keeps to RFC 9260 and sends ever more short messages, of one
// octet, while nobody reads.
type smallMessagePeer struct {
	t   *testing.T
	r   *Receiver
	d   wire.Data
	of  func(i int) (stream, ssn int, flags uint8) // the i-th chunk
	got []bool                                     // chunks that have come
	cum int                                        // so many of them, without a gap
}

const floodTSN = 1<<32 - 100_000 // TSNs wrap too

func newFlood(t *testing.T, of func(i int) (stream, ssn int, flags uint8)) *smallMessagePeer {
	const buffer = 64 << 20
	r := NewReceiver(Config{PeerTSN: floodTSN, RecvBuffer: buffer, PMDCS: 1400, InStreams: 65_535})
	return &smallMessagePeer{t: t, r: r, d: dataChunk(0, 0, 0, "xxxx"), of: of}
}

// receiveChunk has chunk i arrive. It holds its number modulo 256.
func (f *smallMessagePeer) receiveChunk(i int) {
	f.t.Helper()
	stream, ssn, flags := f.of(i)
	wire.AppendDataHeader(f.d[:0], wire.DataFields{Flags: flags, TSN: wire.TSN(uint32(floodTSN + i)),
		Stream: wire.StreamID(stream),
		SSN:    wire.SSN(ssn), PPID: uint32(i), PayloadLen: 1})
	f.d.Payload()[0] = byte(i)
	must.That(f.t, f.r.Admit(f.d) == New, "chunk %d is not admitted", i)
	if err := f.r.Queue(f.d, nil); err != nil {
		f.t.Fatalf("chunk %d of a peer that keeps to RFC 9260: %v", i, err)
	}
	must.OK(f.t, f.r.PacketDone(0))
	for len(f.got) <= i {
		f.got = append(f.got, false)
	}
	for f.got[i] = true; f.cum < len(f.got) && f.got[f.cum]; f.cum++ {
	}
}

// readMessages takes n messages and compares each with the next of its stream.
func (f *smallMessagePeer) readMessages(n int, next map[int]int) {
	f.t.Helper()
	for range n {
		m, ok := f.r.Receive()
		must.That(f.t, ok, "silence, with %d messages of stream 3 and %d of stream 0 delivered", next[3], next[0])
		stream, ssn, _ := f.of(int(m.PPID))
		want := next[stream]
		if int(m.Stream) != stream || int(m.SSN) != want&0xffff || ssn&0xffff != want&0xffff ||
			int(uint16(m.SSN)) != want&0xffff || f.messageNumber(m) != want {
			f.t.Fatalf("message %d of stream %d, SSN %d, has come where number %d is due", m.PPID, m.Stream, m.SSN,
				want)
		}
		next[stream]++
		f.r.Release(m)
	}
}

// messageNumber is which message of its stream it is.
func (f *smallMessagePeer) messageNumber(m *Message) int {
	_, ssn, _ := f.of(int(m.PPID))
	return ssn
}

// More messages of a stream may wait to be read than there are SSNs, in whatever order they come:
// RFC 9260 lets a peer have 2^16-1 outstanding, and the window any number that arrived. They are
// delivered in order, each once, and nobody is taken for one that breaks the protocol.
func TestMoreMessagesWaitThanThereAreSSNs(t *testing.T) {
	// req 9260-1.6-4
	one := func(i int) (int, int, uint8) { return 3, i, be }
	for _, tt := range []struct {
		name string
		n    int
		of   func(i int) (stream, ssn int, flags uint8)
		gap  func(i int) bool // a chunk that comes only when the window beyond it is full, or all others have come
		any  bool             // the others of a window come in any order
	}{
		{"as many as there are SSNs", 65_536, one, func(i int) bool { return i == 0 }, false},
		{"the next SSN comes twice", 65_538, one, func(i int) bool { return i == 0 }, false},
		{"twice as many", 132_000, one, func(i int) bool { return i == 0 }, false},
		{"a gap in each window", 140_000, one, func(i int) bool { return i%65_535 == 0 }, false},
		{"every third missing", 66_000, one, func(i int) bool { return i%3 == 0 }, false},
		{"in any order", 140_000, one, func(i int) bool { return i%30_000 == 0 }, true},
		{"two streams in turn, in any order", 200_000, func(i int) (int, int, uint8) { return i % 2 * 3, i / 2, be }, func(i int) bool { return i%50_000 == 0 }, true},
		{"beside a stream that waits for nothing", 140_000, func(i int) (int, int, uint8) {
			if i%40_000 == 7 {
				return 0, i / 40_000, be
			}
			return 3, i - (i+39_992)/40_000, be
		}, func(i int) bool { return i == 0 || i == 70_000 }, true},
	} {
		if testing.Short() && tt.n > 70_000 && tt.n != 132_000 {
			continue
		}
		f := newFlood(t, tt.of)
		rnd := rand.New(rand.NewPCG(1, 2))
		var late, batch []int
		for i := 0; i < tt.n || f.cum < tt.n; {
			batch = batch[:0]
			for ; i < tt.n && i-f.cum < 65_535; i++ { // what the peer may have outstanding
				if tt.gap(i) {
					late = append(late, i)
				} else {
					batch = append(batch, i)
				}
			}
			if tt.any {
				rnd.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
			}
			for _, j := range batch {
				f.receiveChunk(j)
			}
			if len(late) > 0 {
				f.receiveChunk(late[0])
				late = late[1:]
			}
		}
		next := map[int]int{}
		f.readMessages(tt.n/2, next)
		must.OK(t, f.r.Audit(0))
		f.readMessages(tt.n-tt.n/2, next)
		_, ok := f.r.Receive()
		check.That(t, !ok && f.r.Buffered() == 0, "%s: %d octets left", tt.name, f.r.Buffered())
		f.receiveChunk(tt.n) // the stream goes on
		f.readMessages(1, next)
		must.OK(t, f.r.Audit(0))
		check.That(t, f.r.reassembly.outOfOrder.count == 0 && !f.r.reassembly.stateOfStream(3).hasWaiting,
			"%s: %d messages wait for ever", tt.name, f.r.reassembly.outOfOrder.count)
		f.r.Trim()
		check.That(t, f.r.reassembly.outOfOrder.queues.Held() == 0, "%s: a table of what waited is kept", tt.name)
	}
}

// A peer may give a message its TSN out of turn, as one that sends long messages of a stream beside
// short ones does. SSNs that are near each other decide then.
func TestMessagesWhoseTSNsAreOutOfTurn(t *testing.T) {
	turns := []int{0, 1, 2, 4, 5, 3, 6}
	swapped := func(i int) (int, int, uint8) { return 3, turns[i], be }
	for _, tt := range []struct {
		name string
		come []int
	}{
		{"a higher TSN, and a lower SSN", []int{4, 5, 0, 1, 2, 3, 6}},
		{"the same, where the one before it has come", []int{0, 1, 2, 4, 5, 3, 6}},
		{"a lower TSN, and a higher SSN", []int{5, 4, 3, 2, 1, 0, 6}},
	} {
		f := newFlood(t, swapped)
		for _, i := range tt.come {
			f.receiveChunk(i)
		}
		next := map[int]int{}
		f.readMessages(len(tt.come), next)
		_, ok := f.r.Receive()
		check.That(t, !ok && f.r.Buffered() == 0, "%s: %d octets left", tt.name, f.r.Buffered())
		must.OK(t, f.r.Audit(0))
	}
}

// While messages of one stream wait to be read, others may take any number of TSNs: those that wait
// say nothing of their order then.
func TestMessagesWaitWhileTSNsGoRound(t *testing.T) {
	for _, ahead := range []int{0, 1, 65_536, 1 << 30, 1<<31 - 10, 1<<31 + 10, 1<<32 - 100} {
		r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 20, PMDCS: 1400, InStreams: 9})
		mustPacket(t, r, 0, dataChunk(2, 1, be, "b"), dataChunk(3, 2, be, "c"))
		mustPacket(t, r, 0, dataChunk(1, 0, be, "a")) // all are due, and nobody reads
		for left := ahead; left > 0; left -= min(left, 1<<30) {
			r.tracker.AddInOrder(min(left, 1<<30)) // of other streams
			must.OK(t, r.reassembly.Check(r.tracker.Cum()))
		}
		mustPacket(t, r, 0, dataChunk(ahead+5, 4, be, "e"), dataChunk(ahead+4, 3, be, "d"))
		check.Equal(t, "received", drainText(r), "a|b|c|d|e|")
		must.OK(t, r.Audit(0))
	}
}

// A peer may give TSNs out of the order of the stream: SSNs say what comes first, as far as they
// can.
func TestMessagesOfAStreamWithTSNsOutOfOrder(t *testing.T) {
	for _, ssns := range [][]int{{2, 1, 0}, {1, 2, 0}, {3, 1, 2, 0}, {20_000, 1, 0}, {32_000, 10, 31_999, 0}} {
		r := newReceiver()
		for i, ssn := range ssns {
			mustPacket(t, r, 0, dataChunk(1+i, ssn, be, string(rune('a'+ssn%26))))
		}
		for want := range 3 {
			m, ok := r.Receive()
			if ssn, waits, _ := r.Stream(0); !ok && int(ssn) == want && waits == len(ssns)-want {
				break // for what has not come
			}
			must.That(t, ok && int(m.SSN) == want, "SSNs %v: where %d is due there is %+v", ssns, want, m)
			r.Release(m)
		}
		must.OK(t, r.Audit(0))
	}
}
