package compat

import (
	"sync"

	"github.com/rddp-go/rddp/sctp"
)

// partialReadOctets is how much of a message is read at once for a call that has less room.
const partialReadOctets = 2 << 10

// partialMessage serves programs that read a header first, and then as much as it says. The next
// call gets what did not fit, before any notification, as in the kernel. That call need not ask the
// association.
type partialMessage struct {
	mu         sync.Mutex    // held by a call until it returns; others then read from the association
	isUseful   bool          // guarded by mu: the program reads in this way
	midMessage bool          // guarded by mu: the message that was read last is not complete
	unread     []byte        // guarded by mu: of a message, without what the association still has of it
	info       sctp.RecvInfo // guarded by mu: of that message, as with its last part
	buf        []byte        // guarded by mu: memory of unread
}

// readMsg is ReadMsg of the association. Called with mu held.
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
	if n < len(b) && p.info.More && p.info.Size > 0 { // the message is complete
		var more int
		more, p.info, err = c.ReadMsg(b[n:])
		n += more
	}
	info = p.info
	info.More = info.More || len(p.unread) > 0
	return n, info, err
}
