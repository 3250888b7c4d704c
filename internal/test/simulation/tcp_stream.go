package simulation

import (
	"syscall"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// errReset is what the system says of a connection that was lost.
const errReset = syscall.ECONNRESET

// tcpStream is one direction of a TCP connection: octets arrive in order, in pieces of any length.
type tcpStream struct {
	t        *tcpWorld
	from, to *tcpConn
	queue    []byte // taken and not arrived
	isEnded  bool   // a FIN follows on the queue
	isReset  bool   // everything is lost
	hasEnded bool   // the FIN has arrived; a reset may follow
	isDead   bool   // the reset has arrived
	isDue    bool   // something will arrive

	rto         time.Duration // how long the system waits before it sends again; 0: all came through
	closedSince rawio.Time    // since when nothing does
}

// room is how many octets the system takes now.
func (s *tcpStream) room() int { return max(s.t.buffer-len(s.queue), 0) }

// take takes octets of the writer, as many as there is room for. Where nobody is any more, all are
// taken and lost.
func (s *tcpStream) take(b []byte) int {
	if s.isEnded || s.isReset {
		return len(b)
	}
	n := min(len(b), s.room())
	s.queue = append(s.queue, b[:n]...)
	s.schedule()
	return n
}

// finish ends the direction behind what was taken.
func (s *tcpStream) finish() {
	s.isEnded = true
	s.schedule()
}

// reset loses the connection.
func (s *tcpStream) reset() {
	s.isReset, s.queue = true, nil
	s.schedule()
}

func (s *tcpStream) schedule() {
	if s.isDue || s.isDead || len(s.queue) == 0 && (!s.isEnded || s.hasEnded) && !s.isReset {
		return
	}
	d, ok := s.takesTime()
	if !ok {
		s.sendAgain()
		return
	}
	s.isDue = true
	s.t.w.later.pushEvent(s.t.w.now.Add(d), s.deliver)
}

// deliver has some of the octets arrive, or the end.
func (s *tcpStream) deliver() {
	s.isDue = false
	if s.t.roads != nil {
		if _, ok := s.takesTime(); !ok {
			s.sendAgain()
			return
		}
		s.rto = 0
	}
	switch n := len(s.queue); {
	case s.isReset:
		s.isDead = true
		s.to.arriveEnd(true)
	case n > 0:
		if s.t.rand.IntN(3) == 0 {
			n = 1 + s.t.rand.IntN(n)
		}
		b := s.queue[:n:n]
		s.queue = s.queue[n:]
		s.to.arrive(b)
		s.wakeWriter()
	default:
		s.hasEnded = true
		s.to.arriveEnd(false)
	}
	s.schedule()
}

// wakeWriter has the writer go on that waits for room.
func (s *tcpStream) wakeWriter() {
	c := s.from
	if c.isWriting {
		c.endWrite(s.room())
	}
	c.Pump()
}
