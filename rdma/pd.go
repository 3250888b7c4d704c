package rdma

import (
	"github.com/rddp-go/rddp/ddp"
)

// STag names a registered region to the peer (RFC 5040 section 2); verbs call it lkey and rkey.
type STag = ddp.STag

// Access is a set of rights to a memory region (RFC 5042 section 2.2.2).
type Access = ddp.Access

// Access rights. Local reading is always allowed.
const (
	LocalWrite   = ddp.LocalWrite   // receives and RDMA Read responses may be placed there
	RemoteRead   = ddp.RemoteRead   // the peer may RDMA Read
	RemoteWrite  = ddp.RemoteWrite  // the peer may RDMA Write
	RemoteAtomic = ddp.RemoteAtomic // the peer may do Atomic Operations; implies neither of the others
)

// PD is a protection domain: QPs reach only the regions of their own (RFC 5040 section 8.1.1).
type PD struct {
	dev *Device
	id  ddp.PD

	numQPs, numSRQs, numReads int  // guarded by Device.mu: its QPs and SRQs, and the sum of the QPs' IRD
	destroyed                 bool // destroyed; changed under Device.regionsMu and Device.mu
}

// AllocPD makes a protection domain (RFC 5041 section 8.2).
func (d *Device) AllocPD() *PD { return &PD{dev: d, id: ddp.PD(d.nextPD.Add(1))} }

// RegionOptions refine a registration. The zero value is the ordinary one.
type RegionOptions struct {
	// Base is the Tagged Offset of the first octet, 0 by default.
	Base uint64
	// QP limits the STag to this one QP (single-stream scope, RFC 5041 section 8.2). Only such an
	// STag, or one whose PD has a single QP, may be invalidated by the peer.
	QP *QP
}

// MR is a registered memory region. The same memory may be registered several times, and regions
// may overlap: each has its own STag, rights and end.
//
// An MR lives from Register to Deregister. Invalidate shuts the peers out and keeps the STag.
// Reregister makes the STag valid again, for other memory if need be. Deregister gives the STag up:
// the Device issues all other numbers before that one again.
type MR struct {
	pd     *PD
	region *ddp.Region
	ram    []byte // nil for a device; guarded by Device.regionsMu
}

// Register registers buf (RFC 5041 section 8.3). The peer may reach it as access allows, from now
// until Deregister or Invalidate returns; opts may be nil.
func (p *PD) Register(buf []byte, access Access, opts *RegionOptions) (*MR, error) {
	return p.registerMemory(ddp.Bytes(buf), access, opts)
}

// DeviceAt is an addressable store that is not memory, such as an *os.File.
type DeviceAt = ddp.DeviceAt

// RegisterDevice registers the first size octets of rw, such as a file (RFC 4296 section 2.1). What
// the peer writes goes to rw.WriteAt straight from the packet buffer, in any order.
func (p *PD) RegisterDevice(rw DeviceAt, size uint64, access Access, opts *RegionOptions) (*MR, error) {
	return p.registerMemory(ddp.Device(rw, size), access, opts)
}

func (p *PD) registerMemory(m ddp.Memory, access Access, opts *RegionOptions) (*MR, error) {
	spec := ddp.Spec{PD: p.id, Mem: m, Access: access}
	if opts != nil {
		spec.Base = opts.Base
		if opts.QP != nil {
			spec.Scope = opts.QP.id
		}
	}
	d := p.dev
	d.regionsMu.Lock()
	defer d.regionsMu.Unlock()
	if p.destroyed {
		return nil, ErrDestroyed
	}
	r, err := d.table.Register(spec)
	if err != nil {
		return nil, d.countRegionRefusal(err)
	}
	return &MR{pd: p, region: r, ram: m.RAM()}, nil
}

// STag returns the region's Steering Tag, to be advertised to the peer or named in an SGE.
func (m *MR) STag() STag { return m.region.STag() }

// Base returns the Tagged Offset of the first octet (RFC 5041 section 4.2).
func (m *MR) Base() uint64 {
	m.pd.dev.regionsMu.Lock()
	defer m.pd.dev.regionsMu.Unlock()
	return m.region.Base()
}

// Len returns the length in octets.
func (m *MR) Len() uint64 {
	m.pd.dev.regionsMu.Lock()
	defer m.pd.dev.regionsMu.Unlock()
	return m.region.Len()
}

// SGE returns a scatter/gather element for n octets from offset off of the region.
func (m *MR) SGE(off, n int) SGE {
	return SGE{LKey: m.STag(), Addr: m.Base() + uint64(off), Len: uint32(n)}
}

// Invalidate revokes the STag. It waits for a placement that is running. After it returns, nothing
// writes to the memory by this STag or by windows of the region, and no retransmission reads from
// it. Requests that name the STag fail from now on. The MR still counts against Limits.MaxRegions:
// Reregister or Deregister it.
func (m *MR) Invalidate() {
	m.region.Invalidate()
	d := m.pd.dev
	d.regionsMu.Lock()
	ram := m.ram
	d.regionsMu.Unlock()
	m.detachMemory(ram)
}

// Reregister gives the region other memory, rights and Tagged Offset of the first octet under the
// same STag. It makes the STag valid again if it was invalidated. A limit to one QP stays. When it
// returns, nothing writes to the old memory. Requests that named the STag before fail, as do the
// peer's that are under way, and the region's windows end.
//
// A peer that remembers the STag reaches the new memory as far as access allows. To be rid of such
// peers, Deregister and Register: the STag is a new one then. Errors: ddp.ErrRange,
// ddp.ErrNoSuchRegion.
func (m *MR) Reregister(buf []byte, access Access, base uint64) error {
	d := m.pd.dev
	d.regionsMu.Lock()
	old := m.ram
	err := d.table.Rebind(m.region, ddp.Bytes(buf), base, access)
	if err == nil {
		m.ram = buf
	}
	d.regionsMu.Unlock()
	if err == nil {
		m.detachMemory(old)
	}
	return err
}

// Deregister invalidates the region and gives its STag up for good (RFC 5042 section 6.1.1). It
// fails with ddp.ErrNoSuchRegion when that has been done.
func (m *MR) Deregister() error {
	d := m.pd.dev
	d.regionsMu.Lock()
	err := d.table.Deregister(m.region)
	ram := m.ram
	d.regionsMu.Unlock()
	m.detachMemory(ram)
	return err
}

// SetAccess changes the rights (RFC 5041 section 8.3.1), those of windows excepted. When it
// returns, no access that the new rights forbid is running. None will be made for a request that
// came before.
func (m *MR) SetAccess(a Access) error {
	d := m.pd.dev
	d.regionsMu.Lock()
	defer d.regionsMu.Unlock()
	return d.table.SetAccess(m.region, a)
}

// detachMemory makes every association of the device copy what it still holds of memory.
func (m *MR) detachMemory(memory []byte) {
	if len(memory) == 0 {
		return
	}
	for _, q := range m.pd.dev.qpsOf(m.pd) {
		q.detachMemory(memory)
	}
}
