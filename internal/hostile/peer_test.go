package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// Function codes of session control messages (RFC 5043 section 5.2.3, RFC 6581 section 7).
const (
	fnInitiate         = 1
	fnAccept           = 2
	fnReject           = 3
	fnTerminate        = 4
	fnEnhancedInitiate = 5
	fnEnhancedAccept   = 6
)

// message is one SCTP user message.
type message struct {
	stream    uint16
	ppid      uint32
	unordered bool
	data      []byte
}

// ssn returns the DDP-SSN.
func (m message) ssn() uint16 { return binary.BigEndian.Uint16(m.data) }

// isControl tells whether the message is a session control message with this function code.
func (m message) isControl(fn uint16) bool {
	return m.ppid == ddpadapt.PPIDControl && len(m.data) >= 4 && binary.BigEndian.Uint16(m.data[2:]) == fn
}

func (m message) String() string {
	if m.ppid == ddpadapt.PPIDControl && len(m.data) >= 4 {
		return fmt.Sprintf("control message %d, DDP-SSN %d, %d octets", m.data[3], m.ssn(), len(m.data))
	}
	return fmt.Sprintf("PPID %d, %x", m.ppid, m.data[:min(len(m.data), 32)])
}

// carrier is an association of the hostile host. SCTP carries what the attacks make by hand and adds
// nothing.
type carrier struct {
	conn  *sctp.Conn
	spy   func([]byte) // sees all that comes
	depth int          // messages of a stream that wait before no more are read

	mu    sync.Mutex
	boxes map[uint16]chan message
	used  uint16 // streams taken
}

const maxMessage = 1 << 16

func newCarrier(conn *sctp.Conn, depth int, spy func([]byte)) *carrier {
	c := &carrier{conn: conn, spy: spy, depth: depth, boxes: make(map[uint16]chan message)}
	go c.read()
	return c
}

func (c *carrier) read() {
	b := make([]byte, maxMessage)
	for {
		n, info, err := c.conn.ReadMsg(b)
		if err != nil {
			return
		}
		m := message{info.Stream, info.PPID, info.Unordered, append([]byte(nil), b[:n]...)}
		c.spy(m.data)
		select {
		case c.box(m.stream) <- m:
		case <-c.conn.Done():
			return
		}
	}
}

func (c *carrier) box(stream uint16) chan message {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.boxes[stream]
	if b == nil {
		b = make(chan message, c.depth)
		c.boxes[stream] = b
	}
	return b
}

// session is one use of a stream, seen from the hostile side. Its fields are what an honest peer would
// send next; an attack changes them at will.
type session struct {
	t      testing.TB
	c      *carrier
	stream uint16
	ssn    uint16    // DDP-SSN of the next message
	msn    [4]uint32 // of the next message to each queue
	last   []byte    // the last segment that was sent

	in    uint16 // DDP-SSN of the victim's next message
	early map[uint16]message
}

// fresh returns a session on a stream that was never used.
func (c *carrier) fresh(t testing.TB) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &session{t: t, c: c, stream: c.used, msn: [4]uint32{1, 1, 1, 1}, early: make(map[uint16]message)}
	c.used++
	return s
}

// raw sends a message as it is.
func (s *session) raw(info sctp.SendInfo, b []byte) {
	s.t.Helper()
	info.Stream = s.stream
	if _, err := s.c.conn.WriteMsg(b, info); err != nil {
		s.t.Fatal(err)
	}
}

// numbered puts a DDP-SSN ahead of b.
func numbered(ssn uint16, b []byte) []byte {
	return append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(b)), ssn), b...)
}

// segment sends a DDP segment in its turn.
func (s *session) segment(seg []byte) {
	s.t.Helper()
	s.segmentAs(s.ssn, seg)
	s.ssn++
}

// segmentAs sends a DDP segment with a DDP-SSN of the caller's choice.
func (s *session) segmentAs(ssn uint16, seg []byte) {
	s.t.Helper()
	s.last = seg
	s.raw(sctp.SendInfo{PPID: ddpadapt.PPIDSegment, Unordered: true}, numbered(ssn, seg))
}

// control sends a session control message in its turn.
func (s *session) control(fn uint16, private []byte) {
	s.t.Helper()
	s.controlAs(s.ssn, fn, private)
	s.ssn++
}

func (s *session) controlAs(ssn, fn uint16, private []byte) {
	s.t.Helper()
	s.raw(sctp.SendInfo{PPID: ddpadapt.PPIDControl, Unordered: true},
		numbered(ssn, append(binary.BigEndian.AppendUint16(nil, fn), private...)))
}

// next returns the victim's next message in the order of DDP-SSNs, each of which must be used once.
func (s *session) next(ctx context.Context) (message, bool) {
	s.t.Helper()
	for {
		if m, ok := s.early[s.in]; ok {
			delete(s.early, s.in)
			s.in++
			return m, true
		}
		select {
		case m := <-s.c.box(s.stream):
			switch {
			case len(m.data) < 2 || !m.unordered || m.ppid != ddpadapt.PPIDSegment && m.ppid != ddpadapt.PPIDControl:
				s.t.Fatalf("the victim sent PPID %d, unordered %v, %x", m.ppid, m.unordered, m.data)
			case m.ssn() < s.in || s.early[m.ssn()].data != nil:
				s.t.Fatalf("the victim used DDP-SSN %d twice: %v", m.ssn(), m)
			}
			s.early[m.ssn()] = m
		case <-s.c.conn.Done():
			return message{}, false
		case <-ctx.Done():
			s.t.Fatalf("stream %d: no message %d from the victim", s.stream, s.in)
		}
	}
}

// unread gives the message that next returned last back to it.
func (s *session) unread(m message) {
	s.in--
	s.early[s.in] = m
}

// Segments. All have the L bit, DV and RV 1 and no reserved bit; an attack changes that.

func tagged(op rdmap.Opcode, stag ddp.STag, to uint64, payload []byte) []byte {
	b := make([]byte, ddp.TaggedHeaderLen, ddp.TaggedHeaderLen+len(payload))
	ddp.Tagged{Last: true, Rsvd: rdmap.Control(op), STag: stag, TO: to}.Put(b)
	return append(b, payload...)
}

func write(stag ddp.STag, to uint64, payload []byte) []byte {
	return tagged(rdmap.OpWrite, stag, to, payload)
}

func untagged(op rdmap.Opcode, qn, msn, mo uint32, payload []byte) []byte {
	b := make([]byte, ddp.UntaggedHeaderLen, ddp.UntaggedHeaderLen+len(payload))
	ddp.Untagged{Last: true, Rsvd: [5]byte{rdmap.Control(op)}, QN: qn, MSN: msn, MO: mo}.Put(b)
	return append(b, payload...)
}

// invalidating is a Send with Invalidate.
func invalidating(op rdmap.Opcode, msn uint32, stag ddp.STag) []byte {
	b := untagged(op, rdmap.QueueSend, msn, 0, nil)
	binary.BigEndian.PutUint32(b[2:], uint32(stag))
	return b
}

func readRequest(msn uint32, r rdmap.ReadRequest) []byte {
	var b [rdmap.ReadRequestLen]byte
	r.Put(&b)
	return untagged(rdmap.OpReadRequest, rdmap.QueueReadRequest, msn, 0, b[:])
}

func atomicRequest(msn uint32, r rdmap.AtomicRequest) []byte {
	var b [rdmap.AtomicRequestLen]byte
	r.Put(&b)
	return untagged(rdmap.OpAtomicRequest, rdmap.QueueReadRequest, msn, 0, b[:])
}

func atomicResponse(msn, id uint32) []byte {
	var b [rdmap.AtomicResponseLen]byte
	r := rdmap.AtomicResponse{ID: id, Original: 42}
	r.Put(&b)
	return untagged(rdmap.OpAtomicResponse, rdmap.QueueAtomicResponse, msn, 0, b[:])
}

// more clears the L bit.
func more(seg []byte) []byte { return with(seg, 0, seg[0]&^0x40) }

// with returns seg with another octet at i.
func with(seg []byte, i int, octet byte) []byte {
	seg = append([]byte(nil), seg...)
	seg[i] = octet
	return seg
}

// evil returns n octets that are nowhere in the victim's memory.
func evil(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xE0 | byte(i)&0xF
	}
	return b
}
