package assoc

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// RowMost is the most packets of a row.
const RowMost = 16

// HandlePackets does what HandlePacket does for the first of ps, and for those behind it that are alike and in order, as the segments of a long message are: what may
// differ is looked at in each, and what does not only once. It returns how many these are.
func (a *Assoc) HandlePackets(now rawio.Time, ps []rawio.Packet) int {
	if len(ps) > 1 {
		if n := a.handleRow(now, ps[:min(len(ps), RowMost)]); n > 0 {
			return n
		}
	}
	a.HandlePacket(now, &ps[0])
	return 1
}

// handleRow is HandlePacket for the first of ps if they are alike, and returns how many these are, else 0.
func (a *Assoc) handleRow(now rawio.Time, ps []rawio.Packet) int {
	placer, ok := a.placer.(RowPlacer)
	if !ok || a.state != Established || !a.sound() {
		return 0
	}
	tsn, ok := a.recv.Row()
	if !ok {
		return 0
	}
	n := a.row(tsn, ps)
	if n < 2 {
		return 0
	}
	path := a.pathOf(ps[0].Remote.Addr().Unmap())
	if path == nil {
		return 0
	}
	if n = placer.PlaceRow(now, ps[:n]); n == 0 {
		return 0
	}
	a.arrived(now, path, &ps[0])
	a.heard(now)
	a.count(ps[:n])
	a.recv.PlacedRow(now, n)
	path.dataIn += uint64(n)
	a.moved = now
	a.sackPath, a.sackLocal = path, ps[0].Local
	a.unsound()
	return n
}

// count counts packets of which each has one DATA chunk, which is placed.
func (a *Assoc) count(row []rawio.Packet) {
	n := uint64(len(row))
	a.stats.PacketsIn += n
	a.stats.DataIn += n
	a.stats.Placed += n
	a.steps += n
	for i := range row {
		a.stats.OctetsIn += uint64(len(row[i].Data))
		d, _ := wire.LoneData(row[i].Data)
		a.stats.DataOctetsIn += uint64(len(d.Payload()))
	}
}

// row returns how many of ps, from the first on, are alike and in order, the first with that TSN: of this association, without a mark of congestion, and with one whole unordered message each.
func (a *Assoc) row(tsn wire.TSN, ps []rawio.Packet) (n int) {
	const alone = wire.FlagB | wire.FlagE | wire.FlagU
	first := &ps[0]
	header := uint64(a.peerPort)<<48 | uint64(a.localPort)<<32 | uint64(a.localTag)
	var like wire.Data
	for ; n < len(ps); n++ {
		p := &ps[n]
		if p.Kind != rawio.KindSCTP || p.ECN == rawio.CE || len(p.Data) < wire.CommonHeaderLen || binary.BigEndian.Uint64(p.Data) != header {
			break
		}
		d, ok := wire.LoneData(p.Data)
		if !ok || d.Flags() != alone || d.TSN() != tsn+wire.TSN(n) {
			break
		}
		if n == 0 {
			if like = d; uint16(d.Stream()) >= a.inStreams {
				break
			}
		} else if p.Local != first.Local || p.Remote != first.Remote || d.Stream() != like.Stream() || d.PPID() != like.PPID() {
			break
		}
	}
	return n
}
