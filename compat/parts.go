package compat

import (
	"sync"

	"github.com/rddp-go/rddp/sctp"
)

// partsOctets is how much of a message is taken at once for a call that has less room.
const partsOctets = 2 << 10

// parts is for programs that read a header first, and then as much as it says. What does not fit a call is for the next, before any notification, as the kernel has it;
// and that one need not ask the association.
type parts struct {
	mu   sync.Mutex    // held by a call until it returns: if there are several, the others read from the association
	used bool          // guarded by mu: this is such a program
	amid bool          // guarded by mu: the message that was read last goes on
	left []byte        // guarded by mu: of a message, but for what the association still has of it
	info sctp.RecvInfo // guarded by mu: of that message, as its last part has it
	buf  []byte        // guarded by mu: that left lies in
}

// read is ReadMsg. Called with mu held.
func (p *parts) read(c *sctp.Conn, b []byte) (n int, info sctp.RecvInfo, err error) {
	if len(p.left) == 0 {
		if !p.used || len(b) >= partsOctets {
			n, info, err = c.ReadMsg(b)
			p.used = p.used || info.More
			return n, info, err
		}
		if p.buf == nil {
			p.buf = make([]byte, partsOctets)
		}
		if n, p.info, err = c.ReadMsg(p.buf); err != nil {
			return 0, p.info, err
		}
		p.left = p.buf[:n]
	}
	n = copy(b, p.left)
	p.left = p.left[n:]
	if n < len(b) && p.info.More && p.info.Size > 0 { // all of it has come
		var more int
		more, p.info, err = c.ReadMsg(b[n:])
		n += more
	}
	info = p.info
	info.More = info.More || len(p.left) > 0
	return n, info, err
}
