package assoc

import (
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// HandleTooLong reports that the link has refused a packet of the last PollTransmit as too long
// (rawio.ErrTooLong). The MTU of the own interface has fallen, which takes effect at once (RFC 8899
// section 3). What the packet carried is not lost, as it was never sent: it goes out with the next
// PollTransmit. If a chunk has become too long it goes in IP fragments (section 6.9). Neither cwnd
// nor a timer takes notice. Call HandleTooLong before the batch is reset. It returns false if the
// packet would be refused again, so that it counts as lost.
func (a *Assoc) HandleTooLong(now rawio.Time, pkt *rawio.Packet) (again bool) {
	p := a.findPath(pkt.Remote.Addr().Unmap())
	if p == nil || a.state == Closed {
		return false
	}
	size := 0
	for _, v := range pkt.Vec {
		size += len(v)
	}
	if pkt.Fragment > 0 { // then they are too long
		size = min(size, pkt.Fragment-rawio.Overhead(pkt.Remote))
	}
	size -= a.cfg.sealOverhead()
	most := a.cfg.mtuLimits(a.env, p.Local, p.Remote, p.mtuSearch.encapGain).Max
	if a.cfg.searchesMTU(a.env) {
		p.mtuSearch.HandleLinkRefusal(now, size, most)
		a.setMTU(p, p.mtuSearch.Size())
	} else if most = min(most, size-1); most < p.MTU() {
		a.setMTU(p, most)
	}
	if p.MTU() >= size || a.sealer() != nil { // what was sealed is lost: only the peer can open it
		return false
	}
	a.rareCounters().PacketsRefused++
	cs := wire.Packet(slices.Concat(pkt.Vec...)).Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		switch c.Type() {
		case wire.ChunkData:
			if d, err := wire.AsData(c); err == nil {
				a.sender().OnSendRefused(&p.Path, d.TSN())
			}
		case wire.ChunkIData:
			if d, err := wire.AsIData(c); err == nil {
				a.sender().OnSendRefused(&p.Path, d.TSN())
			}
		case wire.ChunkSack:
			a.sender() // it rests no longer
			a.recv.DemandSack()
		}
	}
	return true
}
