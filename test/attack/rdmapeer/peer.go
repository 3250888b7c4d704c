package rdmapeer

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// What attacks are made of.
const (
	fnInitiate         = forge.Initiate
	fnAccept           = forge.Accept
	fnReject           = forge.Reject
	fnTerminate        = forge.Terminate
	fnEnhancedInitiate = forge.EnhancedInitiate
	fnEnhancedAccept   = forge.EnhancedAccept
)

var (
	numbered       = forge.Numbered
	tagged         = forge.Tagged
	write          = forge.Write
	untagged       = forge.Untagged
	invalidating   = forge.Invalidating
	readRequest    = forge.ReadRequest
	atomicRequest  = forge.AtomicRequest
	atomicResponse = forge.AtomicResponse
	more           = forge.More
	with           = forge.With
	evil           = forge.Evil
)

// message is one SCTP user message.
type message struct {
	stream    uint16
	ppid      uint32
	unordered bool
	data      []byte
}

// ddpSSN returns the DDP-SSN.
func (m message) ddpSSN() uint16 { return binary.BigEndian.Uint16(m.data) }

// isControl tells whether the message is a session control message with this function code.
func (m message) isControl(fn uint16) bool {
	return m.ppid == ddpadapt.PPIDControl && len(m.data) >= 4 && binary.BigEndian.Uint16(m.data[2:]) == fn
}

// isRefusal tells whether the message is the Session Terminate that answers what came on a stream
// without a session.
func (m message) isRefusal() bool {
	return m.isControl(fnTerminate) && m.ddpSSN() == 0 && len(m.data) == 4
}

func (m message) String() string {
	if m.ppid == ddpadapt.PPIDControl && len(m.data) >= 4 {
		return fmt.Sprintf("control message %d, DDP-SSN %d, %d octets", m.data[3], m.ddpSSN(), len(m.data))
	}
	return fmt.Sprintf("PPID %d, %x", m.ppid, m.data[:min(len(m.data), 32)])
}

// hostileAssoc is an association of the hostile host. SCTP carries what the attacks make by hand
// and adds nothing.
type hostileAssoc struct {
	conn  *sctp.Conn
	spy   func([]byte) // sees all that comes
	depth int          // messages of a stream that wait before no more are read

	mu    sync.Mutex
	boxes map[uint16]chan message
	used  uint16 // streams taken
}

const maxMessage = 1 << 16

func newCarrier(conn *sctp.Conn, depth int, spy func([]byte)) *hostileAssoc {
	c := &hostileAssoc{conn: conn, spy: spy, depth: depth, boxes: make(map[uint16]chan message)}
	go c.readLoop()
	return c
}

func (c *hostileAssoc) readLoop() {
	b := make([]byte, maxMessage)
	for {
		n, info, err := c.conn.ReadMsg(b)
		if err != nil {
			return
		}
		m := message{info.Stream, info.PPID, info.Unordered, append([]byte(nil), b[:n]...)}
		c.spy(m.data)
		select {
		case c.streamBox(m.stream) <- m:
		case <-c.conn.Done():
			return
		}
	}
}

func (c *hostileAssoc) streamBox(stream uint16) chan message {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.boxes[stream]
	if b == nil {
		b = make(chan message, c.depth)
		c.boxes[stream] = b
	}
	return b
}

// session is one use of a stream, seen from the hostile side. Its fields are what an honest peer
// would send next; an attack changes them at will.
type session struct {
	t      testing.TB
	c      *hostileAssoc
	stream uint16
	ssn    uint16    // DDP-SSN of the next message
	msn    [4]uint32 // of the next message to each queue
	last   []byte    // the last segment that was sent

	in    uint16 // DDP-SSN of the victim's next message
	early map[uint16]message
}

// freshSession returns a session on a stream that was never used.
func (c *hostileAssoc) freshSession(t testing.TB) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &session{t: t, c: c, stream: c.used, msn: [4]uint32{1, 1, 1, 1}, early: make(map[uint16]message)}
	c.used++
	return s
}

// sendRaw sends a message as it is.
func (s *session) sendRaw(info sctp.SendInfo, b []byte) {
	s.t.Helper()
	info.Stream = s.stream
	if _, err := s.c.conn.WriteMsg(b, info); err != nil {
		s.t.Fatal(err)
	}
}

// sendSegment sends a DDP segment in its turn.
func (s *session) sendSegment(seg []byte) {
	s.t.Helper()
	s.segmentAs(s.ssn, seg)
	s.ssn++
}

// segmentAs sends a DDP segment with a DDP-SSN of the caller's choice.
func (s *session) segmentAs(ssn uint16, seg []byte) {
	s.t.Helper()
	s.last = seg
	s.sendRaw(sctp.SendInfo{PPID: ddpadapt.PPIDSegment, Unordered: true}, numbered(ssn, seg))
}

// sendControl sends a session control message in its turn.
func (s *session) sendControl(fn uint16, private []byte) {
	s.t.Helper()
	s.controlAs(s.ssn, fn, private)
	s.ssn++
}

func (s *session) controlAs(ssn, fn uint16, private []byte) {
	s.t.Helper()
	s.sendRaw(sctp.SendInfo{PPID: ddpadapt.PPIDControl, Unordered: true},
		forge.Control(ssn, fn, private))
}

// nextMessage returns the victim's next message in the order of DDP-SSNs, each of which must be
// used once.
func (s *session) nextMessage(ctx context.Context) (message, bool) {
	s.t.Helper()
	for {
		if m, ok := s.early[s.in]; ok {
			delete(s.early, s.in)
			s.in++
			return m, true
		}
		select {
		case m := <-s.c.streamBox(s.stream):
			switch {
			case len(m.data) < 2 || !m.unordered || m.ppid != ddpadapt.PPIDSegment && m.ppid != ddpadapt.PPIDControl:
				s.t.Fatalf("the victim sent PPID %d, unordered %v, %x", m.ppid, m.unordered, m.data)
			case m.ddpSSN() < s.in || s.early[m.ddpSSN()].data != nil:
				s.t.Fatalf("the victim used DDP-SSN %d twice: %v", m.ddpSSN(), m)
			}
			s.early[m.ddpSSN()] = m
		case <-s.c.conn.Done():
			return message{}, false
		case <-ctx.Done():
			s.t.Fatalf("stream %d: no message %d from the victim", s.stream, s.in)
		}
	}
}

// unreadMessage gives the message that next returned last back to it.
func (s *session) unreadMessage(m message) {
	s.in--
	s.early[s.in] = m
}

// serveVictim has the victim connect to us, and makes the session that it opens the one of x.
func (l *attackLab) serveVictim(x *target) <-chan error {
	x.t.Helper()
	one := uint32(ddpadapt.AdaptationDDP)
	server := must(l.a.Transport().Listen(0, &sctp.Config{Adaptation: &one, OutStreams: streams, InStreams: streams}))
	x.t.Cleanup(func() { server.Close() })
	to := netip.AddrPortFrom(server.Addr().(sctp.Addr).Addr(), server.Port())
	connected := make(chan error, 1)
	go func() {
		_, err := x.qp.Connect(deadlineCtx(x.t), to, []byte("hello"))
		connected <- err
	}()
	conn := must(server.Accept(deadlineCtx(x.t)))
	x.t.Cleanup(func() { conn.Abort("") })
	x.session = newCarrier(conn, 64, l.findSecrets).freshSession(x.t)
	if m := x.victimMessage(); !m.isControl(fnInitiate) && !m.isControl(fnEnhancedInitiate) {
		x.t.Fatalf("the victim asks by %v", m)
	}
	return connected
}
