package assoc

import (
	"errors"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/wire"
)

// lastSeals is how many packets an association may still seal when it has ended. Those that answer
// afterwards have higher numbers.
const lastSeals = 2 * maxOutboxPackets

// Remains is what is kept of an association that sealed its packets. Its last packet may be lost.
// The peer then repeats what it has sent, and believes no answer in the clear (RFC 9260 section
// 8.4). Remains are of one owner, who need not be the association's.
type Remains struct {
	id        associationID
	keys      *seal.Keyring
	peers     []netip.Addr
	lasts     time.Duration
	isAborted bool // by this side: any packet is answered
}

// leaveRemains keeps the keys, if the peer may not have heard of the end.
func (a *Assoc) leaveRemains(by trigger, err error) {
	s := a.protection()
	if s == nil || !s.isEnforced || s.manager == nil {
		return
	}
	var abort *AbortError
	if by == onComplete || errors.As(err, &abort) && abort.ByPeer {
		return
	}
	keys, sealErr := s.keys.Bequeath(lastSeals)
	if sealErr != nil {
		return // they are used up
	}
	r := &Remains{id: a.id, keys: keys, lasts: a.cfg.failureTime(), isAborted: by != onShutdownAck}
	for _, p := range a.paths {
		r.peers = append(r.peers, p.Remote.Addr())
	}
	s.remains = r
}

// Remains returns, once, what is to be kept for Remains.Lasts after EventDown, nil for nothing.
func (a *Assoc) Remains() (r *Remains) {
	if s := a.protection(); s != nil {
		r, s.remains = s.remains, nil
	}
	return r
}

// Lasts returns how long the peer may go on sending, as it hears of nothing.
func (r *Remains) Lasts() time.Duration { return r.lasts }

// RemainsOctets is the memory of Remains: those, and the ciphers of two keys.
const RemainsOctets = int(unsafe.Sizeof(Remains{})) + MaxPaths*int(unsafe.Sizeof(netip.Addr{})) + 4<<10

// Answer opens a packet that came for the association, and says whether it is the peer's and gets
// an answer. A SHUTDOWN ACK is answered by SHUTDOWN COMPLETE, or all else by ABORT if this side has
// aborted. What does not open costs one attempt. The packet is opened where it lies.
func (r *Remains) Answer(now rawio.Time, o *Outbox, p *rawio.Packet) bool {
	cs := wire.Packet(p.Data).Chunks()
	c, _ := cs.Next()
	d, err := wire.AsDTLS(c)
	if _, more := cs.Next(); err != nil || more || !slices.Contains(r.peers, p.Remote.Addr().Unmap()) {
		return false
	}
	content, _, err := r.keys.Open(now, d, nil)
	if err != nil {
		return false
	}
	var g chunkSummary
	g.scanChunks(openedPacket(p.Data, content))
	b, ok := o.openPacket()
	switch {
	case !ok || g.hasAbort || g.firstType == wire.ChunkShutdownComplete:
		return false
	case g.hasShutdownAck:
		b = wire.AppendShutdownComplete(b, false)
	case r.isAborted && g.numChunks > 0:
		b = wire.AppendAbort(b, false)
	default:
		return false
	}
	o.queuePacket(outPacket{src: r.id.localPort, dst: r.id.peerPort, tag: r.id.peerTag, local: p.Local,
		remote: p.Remote, sealer: r.keys}, b)
	return true
}
