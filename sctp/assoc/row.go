package assoc

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/wire"
)

// RowMost is the most packets of a row.
const RowMost = 16

// HandlePackets is HandlePacket for the first of ps, and for those behind it that are alike and in
// order. The segments of a long message are an example. What may differ is looked at in each
// packet, the rest only once. HandlePackets returns how many these are. It returns 0 if the
// association has ended: the packets are for its successor between these ports, or for nobody.
func (a *Assoc) HandlePackets(now rawio.Time, ps []rawio.Packet) int {
	if a.state == Closed {
		return 0
	}
	if len(ps) > 1 {
		if n := a.handleSeveral(now, ps[:min(len(ps), RowMost)]); n > 0 {
			return n
		}
	}
	a.HandlePacket(now, &ps[0])
	return 1
}

// handleSeveral is HandlePackets for several packets. It returns 0 if the first is to be handled
// alone.
func (a *Assoc) handleSeveral(now rawio.Time, ps []rawio.Packet) int {
	if s := a.protection(); s != nil {
		return a.handleSealedRow(now, s, ps)
	}
	return a.handleRow(now, ps)
}

// Row is packets that came together and are alike as far as At says so. They go from one address to
// another with the same common header, without a mark of congestion. Each has one DATA chunk and
// nothing else, of one stream and PPID, in the order of their TSNs. To a Placer each is a whole
// unordered message.
type Row struct {
	packets      []rawio.Packet
	first        wire.Data
	headerPrefix uint64 // what their common headers begin with
	chunkFlags   uint8  // of their chunks
}

// MakeRow makes a row for a Placer of one packet or more. It returns false if the first is of
// another kind.
func MakeRow(ps []rawio.Packet) (r Row, ok bool) {
	return makeRow(ps, wire.FlagB|wire.FlagE|wire.FlagU)
}

func makeRow(ps []rawio.Packet, flags uint8) (r Row, ok bool) {
	r.packets, r.chunkFlags = ps, flags
	if len(ps[0].Data) < wire.CommonHeaderLen {
		return r, false
	}
	r.headerPrefix = binary.BigEndian.Uint64(ps[0].Data)
	r.first, ok = r.dataOf(&ps[0])
	return r, ok
}

// Len returns the largest number of packets that the row may have.
func (r Row) Len() int { return len(r.packets) }

// At returns the DATA of the i-th packet, and false if the row has ended with those before it.
func (r Row) At(i int) (wire.Data, bool) {
	p, to := &r.packets[i], &r.packets[0]
	d, ok := r.dataOf(p)
	return d, ok && d.TSN() == r.first.TSN()+wire.TSN(i) && d.Stream() == r.first.Stream() &&
		d.PPID() == r.first.PPID() && p.Local == to.Local && p.Remote == to.Remote
}

// dataOf returns the DATA of a packet if it may be in the row.
func (r *Row) dataOf(p *rawio.Packet) (wire.Data, bool) {
	if p.Kind != rawio.KindSCTP || p.ECN == rawio.CE || len(p.Data) < wire.CommonHeaderLen ||
		binary.BigEndian.Uint64(p.Data) != r.headerPrefix {
		return nil, false
	}
	d, ok := wire.LoneData(p.Data)
	return d, ok && d.Flags() == r.chunkFlags
}

// handleRow is HandlePacket for the first of ps if they are alike. It returns how many these are,
// else 0.
func (a *Assoc) handleRow(now rawio.Time, ps []rawio.Packet) int {
	if a.state != Established || a.interleaves() || !a.isConsistent() {
		return 0
	}
	a.sender() // it rests no longer
	row, to, ok := a.rowFor(ps)
	if !ok || row.headerPrefix != a.id.headerPrefix() ||
		row.first.TSN() != a.recv.CumTSN()+1 || uint16(row.first.Stream()) >= a.agreed.inStreams {
		return 0
	}
	path := a.findPath(ps[0].Remote.Addr().Unmap())
	if path == nil || row.first.PPID() == keymgmt.PPID && a.protection() != nil {
		return 0
	}
	n := a.takeRow(now, row, to)
	if n == 0 {
		return 0
	}
	a.noteArrival(now, path, &ps[0])
	a.notePeerAlive(now)
	a.countRow(ps[:n])
	path.dataPackets += uint64(n)
	a.lastDataAt = now
	a.sacks.path, a.sacks.local = path, ps[0].Local
	a.limitSackDelay(path)
	a.recv.RowDone(now, n)
	a.endIfInconsistent()
	return n
}

// rowFor makes a row of whole messages for a Placer. Without one, to is nil. The row is then of
// fragments in the middle of a message, if such may be taken as one.
func (a *Assoc) rowFor(ps []rawio.Packet) (r Row, to RowPlacer, ok bool) {
	if a.hooks.placer != nil {
		if to, ok = a.hooks.placer.(RowPlacer); ok && a.recv.CanPlaceRow() {
			r, ok = MakeRow(ps)
			return r, to, ok
		}
	} else if unordered, ok := a.recv.MidMessage(); ok {
		r, ok = makeRow(ps, flagU(unordered))
		return r, nil, ok
	}
	return r, nil, false
}

// takeRow places a row, or queues it, and returns how many packets of it.
func (a *Assoc) takeRow(now rawio.Time, row Row, to RowPlacer) (n int) {
	if to != nil {
		if n = to.PlaceRow(now, row); n > 0 {
			a.recv.PlacedRow(n)
			a.stats.Placed += uint64(n)
		}
		return n
	}
	for ; n < row.Len(); n++ {
		if d, ok := row.At(n); !ok || !a.recv.QueueMiddle(d, row.packets[n].Buf) {
			break
		}
	}
	return n
}

// flagU is the U bit of DATA.
func flagU(unordered bool) uint8 {
	if unordered {
		return wire.FlagU
	}
	return 0
}

// countRow counts packets of which each has one DATA chunk.
func (a *Assoc) countRow(ps []rawio.Packet) {
	n := uint64(len(ps))
	a.stats.PacketsIn += n
	a.stats.DataIn += n
	a.stats.workSteps += n
	for i := range ps {
		a.stats.OctetsIn += uint64(len(ps[i].Data))
		d, _ := wire.LoneData(ps[i].Data)
		a.stats.DataOctetsIn += uint64(len(d.Payload()))
	}
}
