package sctp

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// A peer whose SHUTDOWN ACK got no SHUTDOWN COMPLETE sends it again, and so does one with DATA that did not hear our
// ABORT. The host that has forgotten the association answers (RFC 9260 section 8.4, rules 5 and 8), and the peer is
// done. A link that passes only packets for bound ports would never see them, and the peer would go on until it
// reaches Association.Max.Retrans. So the port of an association that we have set up stays bound for a while after
// its end. Whoever asks this Transport for it gets it nevertheless.

const (
	lingerRTOs = 4   // of the path: the peer's T2-shutdown or T3-rtx has then expired twice
	maxLinger  = 128 // ports; on a raw link each is a descriptor
)

// lingerFor is how long the port of an association that ends now stays bound; 0 when it needs not. Owner only.
func (c *Conn) lingerFor() time.Duration {
	if c.listener != nil || c.socket != nil {
		return 0
	}
	return lingerRTOs * c.a.PathStats(c.a.Stats().Primary).RTO
}

// release drops a user of a port, which stays bound for d if that was the last one. Called with mu held.
func (t *Transport) release(port uint16, d time.Duration) {
	_, binds := t.link.(rawio.PortBinder)
	if !binds || d <= 0 || t.ports[port] > 1 || t.closed || len(t.lingering) == maxLinger {
		t.unbind(port)
		return
	}
	var end *time.Timer
	end = time.AfterFunc(d, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.lingering[port] == end { // else somebody has it
			delete(t.lingering, port)
			t.unbind(port)
		}
	})
	t.lingering[port] = end
}

// resume takes a port that is only lingering into use. Called with mu held.
func (t *Transport) resume(port uint16) bool {
	end, ok := t.lingering[port]
	if ok {
		end.Stop()
		delete(t.lingering, port)
	}
	return ok
}

// stopLingering is part of Close, which makes the link give up all ports. Called with mu held.
func (t *Transport) stopLingering() {
	for port := range t.lingering {
		t.resume(port)
	}
}
