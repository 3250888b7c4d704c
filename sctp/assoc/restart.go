package assoc

import (
	"slices"

	"github.com/rddp-go/rddp/rawio"
)

// endForSuccessor is action A in a shutdown: "the existing session is treated the same as if it
// received an ABORT chunk followed by a new COOKIE ECHO chunk". So the association ends, and the
// shutdown is not forgotten. The COOKIE ECHO is for the endpoint: see Successor.
func (a *Assoc) endForSuccessor(p *rawio.Packet) {
	a.rareCounters().Restarts++
	b := rawio.NewBuf(slices.Clone(p.Data))
	q := *p
	q.Data, q.Buf = b.B, b
	a.ensureRareState().successor = &q
	a.endAssoc(onEnd, ErrSucceeded)
}

// Successor returns, once, the packet that sets up the next association with the peer, nil if there
// is none. There is one if the peer restarted during the shutdown (section 5.2.4 action A). After
// EventDown and Endpoint.Remove, hand the packet to the endpoint like one that has just come. A
// listener on the port takes the association; without one an ABORT refuses it.
func (a *Assoc) Successor() *rawio.Packet {
	if a.rareState == nil {
		return nil
	}
	p := a.rareState.successor
	a.rareState.successor = nil
	return p
}

// restartAssoc is action A: the peer has lost the association and sets it up anew. Nothing of the
// old one is sent or accepted any more. "All the congestion control parameters (e.g., cwnd,
// ssthresh) related to this peer MUST be reset to their initial values".
func (a *Assoc) restartAssoc(now rawio.Time, in *inbound, ck *Cookie) {
	a.closeKeys()
	a.life.incarnation++
	a.rareCounters().Restarts++
	a.abandonStreamResets(ErrPeerRestarted)
	a.failMessages()
	a.adoptCookie(ck)
	a.life.localTieTag, a.life.peerTieTag, a.health.errorCount = 0, 0, 0
	a.control.clear()
	a.replaceSender()
	a.adoptPaths(ck, in.Packet, a.addrs.families)
	a.startData(ck.PeerRwnd, ck.PeerTSN)
	a.changeState(onRestart, nil)
	a.startHeartbeats(now)
	if a.protection() != nil { // the peer has restarted before there were keys, or by its restart keys
		a.startKeys(now)
		return
	}
	a.pushSetupEvents(now, EventRestart)
}
