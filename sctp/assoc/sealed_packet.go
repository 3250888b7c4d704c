package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/wire"
)

// handleByProtection handles a packet of an association that seals its packets. What does not open
// costs one attempt and a count; nothing else is learnt from it.
func (a *Assoc) handleByProtection(now rawio.Time, s *protection, p *rawio.Packet) {
	pkt, err := wire.ParsePacket(p.Data)
	if err != nil || pkt.DstPort() != a.id.localPort || pkt.SrcPort() != a.id.peerPort || a.state == Closed {
		return
	}
	cs := pkt.Chunks()
	first, _ := cs.Next()
	switch {
	case first != nil && first.Type() == wire.ChunkDTLS:
		if _, more := cs.Next(); more || cs.Err() != nil {
			a.rareCounters().Unprotected++ // it stands alone
			break
		}
		a.handleSealed(now, s, p, first)
	case s.isEnforced && a.isRestartRefused(s, pkt):
		a.restartAnew(s)
	case s.isEnforced && a.takeEchoInTheClear(now, s, p):
	case s.isEnforced && !isLoneInit(pkt), !s.isEnforced && !isBasic(pkt):
		a.rareCounters().Unprotected++
	default:
		a.handlePacket(now, p)
	}
	a.advanceKeys(now)
}

// handleSealed opens a DTLS chunk where it lies, and handles what is in it as if it had come in the
// packet.
func (a *Assoc) handleSealed(now rawio.Time, s *protection, p *rawio.Packet, c wire.Chunk) {
	d, err := wire.AsDTLS(c)
	switch {
	case err != nil || s.keys == nil:
		a.rareCounters().NotOpened++
		return
	case d.Restart() && !s.usesRestartKeys(): // it is the peer that uses them, with a tag of its own
		a.handleSealedRestart(now, s, p, d)
		return
	case wire.Packet(p.Data).VTag() != a.id.localTag:
		a.rareCounters().WrongTag++
		return
	}
	if a.findPath(p.Remote.Addr().Unmap()) == nil && !a.opensStranger(now) {
		a.rareCounters().ForeignSource++
		return
	}
	content, _, ok := a.openSealed(now, s, d)
	if !ok {
		return
	}
	whole := p.Data
	p.Data = openedPacket(whole, content)
	to := p.Local
	if own := to.Addr().Unmap(); a.isNoSource(own) { // answers leave from another address
		p.Local, s.wasToLeaving = netip.AddrPort{}, a.isLeaving(own)
	}
	s.isOpen = true
	a.handlePacket(now, p)
	s.isOpen, s.wasToLeaving = false, false
	p.Data, p.Local = whole, to
}

// openSealed opens a DTLS chunk, or counts it.
func (a *Assoc) openSealed(now rawio.Time, s *protection, d wire.DTLS) (content []byte, epoch uint64, ok bool) {
	if n := len(d); cap(s.scratch) < n {
		s.scratch = make([]byte, n)
	}
	content, epoch, err := s.keys.Open(now, d, s.scratch[:cap(s.scratch)])
	if err != nil || len(content) == 0 {
		a.rareCounters().NotOpened++
		return nil, 0, false
	}
	return content, epoch, true
}

// openedPacket returns the packet that a packet with a DTLS chunk stands for. Its content lies in
// the packet, and the common header is moved in front of that.
func openedPacket(whole, content []byte) wire.Packet {
	copy(whole[seal.HeaderLen:], whole[:wire.CommonHeaderLen])
	return whole[seal.HeaderLen : seal.HeaderLen+wire.CommonHeaderLen+len(content)]
}

// isLoneInit says whether a packet is an INIT with its tag of 0. It is answered without a change to
// the association (section 5.2 of RFC 9260). An INIT ACK answers nothing any more.
func isLoneInit(pkt wire.Packet) bool {
	cs := pkt.Chunks()
	c, ok := cs.Next()
	_, more := cs.Next()
	return ok && !more && c.Type() == wire.ChunkInit && pkt.VTag() == 0
}

// isBasic says whether a packet has chunks of RFC 9260 and PAD only. Extensions could move TSNs and
// streams before there are keys.
func isBasic(pkt wire.Packet) bool {
	cs := pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if c.Type() > wire.ChunkShutdownComplete && c.Type() != wire.ChunkPad {
			return false
		}
	}
	return true
}
