package assoc

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// handleSealedRow is HandlePacket for the first of ps, and for those behind it that are sealed too
// and have come the same way. Each is opened where it lies. Then they are handled as packets that
// came in the clear, so that those with DATA in order make rows. It returns how many these are, 0
// if they are less than two.
func (a *Assoc) handleSealedRow(now rawio.Time, s *protection, ps []rawio.Packet) (n int) {
	if a.state != Established || !s.isEnforced || a.asconf() != nil || a.findPath(ps[0].Remote.Addr().Unmap()) == nil {
		return 0
	}
	for n < len(ps) && a.isLikeSealed(&ps[n], &ps[0]) {
		n++
	}
	if n < 2 {
		return 0
	}
	var whole [RowMost][]byte
	opened := 0
	for i := range n {
		p := &ps[i]
		d, _ := wire.LoneDTLS(p.Data)
		content, _, ok := a.openSealed(now, s, d)
		if !ok {
			n = i + 1 // which is dropped
			break
		}
		whole[i], p.Data = p.Data, openedPacket(p.Data, content)
		opened++
	}
	a.handleOpened(now, s, ps[:opened])
	for i := range opened {
		ps[i].Data = whole[i]
	}
	a.advanceKeys(now)
	return n
}

// isLikeSealed says whether a packet is sealed for this association, by no key of a restart, and
// has come the same way as another.
func (a *Assoc) isLikeSealed(p, other *rawio.Packet) bool {
	if p.Kind != rawio.KindSCTP || p.Local != other.Local || p.Remote != other.Remote ||
		len(p.Data) < wire.CommonHeaderLen || binary.BigEndian.Uint64(p.Data) != a.id.headerPrefix() {
		return false
	}
	d, ok := wire.LoneDTLS(p.Data)
	return ok && !d.Restart()
}

// handleOpened handles packets that were sealed. If one of them ends the association, those behind
// it are for nobody.
func (a *Assoc) handleOpened(now rawio.Time, s *protection, ps []rawio.Packet) {
	s.isOpen = true
	for len(ps) > 0 {
		n := 0
		if len(ps) > 1 {
			n = a.handleRow(now, ps)
		}
		if n == 0 {
			a.handlePacket(now, &ps[0])
			n = 1
		}
		ps = ps[n:]
	}
	s.isOpen = false
}
