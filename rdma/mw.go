package rdma

import (
	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// MW is a memory window (of type 2, as libibverbs calls it). It opens part of an MR to the peer of
// one QP, with an STag and rights of its own. To bind one is cheap beside a registration. So a
// program can advertise just the octets that the peer needs, for just as long (RFC 5042 sections
// 6.2.2, 6.3.3 and 6.3.4).
//
// A window ends by Invalidate, by a Send with Invalidate of the peer, with its MR (Invalidate,
// Deregister, Reregister), or with its QP.
type MW struct {
	mr     *MR
	qp     *QP
	region *ddp.Region
	ram    []byte // nil for a device
}

// Bind opens n octets from off of the region to the peer of qp. Tagged Offsets count from 0 at the
// window's first octet. access is remote rights only, and independent of those of the region. So a
// region with LocalWrite alone is open to peers only through its windows. When Bind returns, the
// peer may use the STag, so a Send posted then may advertise it. Windows may overlap.
//
// Errors: rdmap.ErrPD when qp is in another protection domain or the region is scoped to another
// QP. rdmap.ErrState when qp has ended. ddp.ErrRights when access would let the peer write without
// LocalWrite on the region. ddp.ErrRange, ddp.ErrRevoked, ddp.ErrNoSuchRegion,
// ddp.ErrTooManyRegions.
func (m *MR) Bind(qp *QP, off, n int, access Access) (*MW, error) {
	d := m.pd.dev
	if qp.pd != m.pd {
		return nil, rdmap.ErrPD
	}
	d.regionsMu.Lock()
	defer d.regionsMu.Unlock()
	if qp.windowsClosed {
		return nil, rdmap.ErrState
	}
	r, err := d.table.Bind(m.region, ddp.Window{PD: m.pd.id, Stream: qp.id, Off: uint64(off), Len: uint64(n),
		Access: access &^ LocalWrite})
	if err == ddp.ErrScope {
		err = rdmap.ErrPD
	}
	if err != nil {
		return nil, d.countRegionRefusal(err)
	}
	w := &MW{mr: m, qp: qp, region: r, ram: r.Memory().RAM()}
	qp.windows[w] = struct{}{}
	return w, nil
}

// STag returns the window's Steering Tag, to be advertised to the peer.
func (w *MW) STag() STag { return w.region.STag() }

// Valid reports whether the peer may use the window: false once it has ended, by whatever way.
func (w *MW) Valid() bool { return w.region.Valid() }

// Invalidate ends the window and gives up its STag; it may be called again. When it returns,
// nothing is written through the window any more, and no retransmission reads from it. Call it also
// for a window that the peer has invalidated: until then it counts against Limits.MaxRegions.
func (w *MW) Invalidate() {
	d := w.mr.pd.dev
	d.regionsMu.Lock()
	w.dropWindow()
	d.regionsMu.Unlock()
	if len(w.ram) > 0 {
		w.qp.detachMemory(w.ram)
	}
}

// dropWindow takes the window out of the tables; Device.regionsMu is held.
func (w *MW) dropWindow() {
	if _, ok := w.qp.windows[w]; ok {
		delete(w.qp.windows, w)
		_ = w.mr.pd.dev.table.Deregister(w.region) // it is registered: it was among the windows
	}
}

// dropWindows ends the windows of a QP that has ended.
func (d *Device) dropWindows(q *QP) {
	d.regionsMu.Lock()
	defer d.regionsMu.Unlock()
	q.windowsClosed = true
	for w := range q.windows {
		w.dropWindow()
	}
}
