package compat

import (
	"sync"

	"github.com/rddp-go/rddp/sctp"
)

// partialReadOctets is how much of a message is taken at once for a call that has less room.
const partialReadOctets = 2 << 10

// partialMessage is for programs that read a header first, and then as much as it says. What does
// not fit a call is for the next, before any notification, as the kernel has it; and that one need
// not ask the association.
type partialMessage struct {
	mu         sync.Mutex    // held by a call until it returns: if there are several, the others read from the association
	isUseful   bool          // guarded by mu: this is such a program
	midMessage bool          // guarded by mu: the message that was read last goes on
	unread     []byte        // guarded by mu: of a message, but for what the association still has of it
	info       sctp.RecvInfo // guarded by mu: of that message, as its last part has it
	buf        []byte        // guarded by mu: that left lies in
}

// readMsg is ReadMsg. Called with mu held.
func (p *partialMessage) readMsg(c *sctp.Conn, b []byte) (n int, info sctp.RecvInfo, err error) {
	if len(p.unread) == 0 {
		if !p.isUseful || len(b) >= partialReadOctets {
			n, info, err = c.ReadMsg(b)
			p.isUseful = p.isUseful || info.More
			return n, info, err
		}
		if p.buf == nil {
			p.buf = make([]byte, partialReadOctets)
		}
		if n, p.info, err = c.ReadMsg(p.buf); err != nil {
			return 0, p.info, err
		}
		p.unread = p.buf[:n]
	}
	n = copy(b, p.unread)
	p.unread = p.unread[n:]
	if n < len(b) && p.info.More && p.info.Size > 0 { // all of it has come
		var more int
		more, p.info, err = c.ReadMsg(b[n:])
		n += more
	}
	info = p.info
	info.More = info.More || len(p.unread) > 0
	return n, info, err
}
