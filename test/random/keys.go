package random

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Bits of Assoc.Keys. Both ends of an association are encrypted, or none is.
const (
	encrypted = 1 << iota
	restartsA // A keeps keys for a restart
	restartsB
	rekeys // either asks for new keys now and then

	maxKeys = 2*rekeys - 1
)

// keyStream is where messages of key management go. They have SSNs like others.
const keyStream = 0

// setKeys has a side encrypt, if the association is to be encrypted. What goes together with that
// stays of what it offers.
func setKeys(c *assoc.Config, keys, side int) {
	if keys == 0 {
		return
	}
	c.Protected, c.Restartable = true, keys&(restartsA<<side) != 0
	c.Interleaving, c.StreamReset = false, 0
}

// rekey asks for new keys now and then.
func (l *assocSide) rekey(d *drawer) {
	if l.e.t.spec.Keys&rekeys != 0 && d.n(100) == 0 {
		l.a.Rekey(l.e.h.node.Time())
	}
}

// sealedPacket looks at the number of a packet that is about to leave, if it is sealed.
func (r *run) sealedPacket(h *host, p *rawio.Packet) {
	if wrong := r.keys.Note(p); wrong != "" {
		r.recordViolation(SealedOnce, h.node.Name, "%s", wrong)
	}
}

// countKeys counts the handshakes of an association that has ended.
func (t *Tally) countKeys(a *assoc.Assoc) {
	if n := int(a.Stats().Keys.Handshakes); n > 0 {
		t.Encrypted++
		t.Rekeys += n - 1
	}
}
