package simulation

import (
	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// violation is an access that the peer must refuse, and the error that RFC 5041 section 7.2 or RFC
// 5040 section 4.8 has for it.
type violation struct {
	name  string
	layer rdmap.Layer
	etype uint8
	code  uint8
	wr    rdmap.SendWR
}

// possibleViolations lists what l can try against its peer with n octets of its own memory.
func (l *workload) possibleViolations() []violation {
	const n = 10
	// One piece each, so that a message is one segment: nothing of it may be placed.
	src := []rdmap.SGE{{LKey: l.srcR.STag(), Addr: l.srcR.Base(), Len: n}}
	sink := []rdmap.SGE{{LKey: l.sinkR.STag(), Addr: l.sinkR.Base(), Len: n}}
	p := l.peer
	write := func(r *ddp.Region, to uint64) rdmap.SendWR {
		return rdmap.SendWR{Op: rdmap.WRWrite, SGL: src, RemoteSTag: r.STag(), RemoteTO: to}
	}
	read := func(r *ddp.Region, to uint64) rdmap.SendWR {
		return rdmap.SendWR{Op: rdmap.WRRead, SGL: sink, RemoteSTag: r.STag(), RemoteTO: to}
	}
	const (
		tagged  = uint8(ddp.TypeTagged)
		protect = uint8(rdmap.RemoteProtection)
	)
	atomic := func(r *ddp.Region, to uint64) rdmap.SendWR {
		return rdmap.SendWR{Op: rdmap.WRAtomic, RemoteSTag: r.STag(), RemoteTO: to, Atomic: ddp.FetchAdd(1)}
	}
	end := func(r *ddp.Region) uint64 { return r.Base() + r.Len() - n + 1 }
	foreign := p.keepRegion(p.q.h.table.Register(ddp.Spec{PD: 2, Mem: ddp.Bytes(p.buffers.target.all.actualBytes()),
		Access: ddp.RemoteWrite | ddp.RemoteRead}))
	gone := p.registerArea(p.buffers.target.all, ddp.RemoteWrite|ddp.RemoteRead, 0, 0)
	if err := p.q.h.table.Deregister(gone); err != nil {
		panic(err)
	}
	list := []violation{
		{"write one octet past the end", rdmap.LayerDDP, tagged, ddp.CodeBaseBounds, write(p.targetR, end(p.targetR))},
		{"write one octet before the start", rdmap.LayerDDP, tagged, ddp.CodeBaseBounds, write(p.targetR, p.targetR.Base()-1)},
		{"write through another protection domain", rdmap.LayerDDP, tagged, ddp.CodeNotAssociated, write(foreign, 0)},
		{"write through a deregistered STag", rdmap.LayerDDP, tagged, ddp.CodeInvalidSTag, write(gone, 0)},
		{"write to a region open for reading only", rdmap.LayerDDP, tagged, ddp.CodeInvalidSTag, write(p.readableR, p.readableR.Base())},
	}
	if l.q.core.ORD() == 0 {
		return list
	}
	return append(list, []violation{
		{"read one octet past the end", rdmap.LayerRDMA, protect, rdmap.CodeBounds, read(p.readableR, end(p.readableR))},
		{"read through another protection domain", rdmap.LayerRDMA, protect, rdmap.CodeNotAssociated, read(foreign, 0)},
		{"read through a deregistered STag", rdmap.LayerRDMA, protect, rdmap.CodeInvalidSTag, read(gone, 0)},
		{"read from a region open for writing only", rdmap.LayerRDMA, protect, rdmap.CodeAccess, read(p.targetR, p.targetR.Base())},
		{"add past the end", rdmap.LayerRDMA, protect, rdmap.CodeBounds, atomic(p.words.r, p.words.r.Base()+p.words.r.Len()-7)},
		{"add in a region open for writing only", rdmap.LayerRDMA, protect, rdmap.CodeAccess, atomic(p.targetR, p.targetR.Base())},
		{"add at an odd address", rdmap.LayerRDMA, uint8(rdmap.RemoteOperation), rdmap.CodeCatastrophic, atomic(p.words.r, p.words.r.Base()+1)},
	}...)
}

// isAnsweredBy reports whether t is what the violation must be answered by.
func (v *violation) isAnsweredBy(t *rdmap.Terminate) bool {
	return t.Layer == v.layer && uint8(t.EType) == v.etype && t.Code == v.code
}

// breakRules has the QP break the rules.
func (l *workload) breakRules(v *violation) {
	l.end.violation = v
	l.seq++
	v.wr.ID = l.seq
	o := postedOp{opcode: rdmap.WCWrite, src: area{n: -1}}
	switch v.wr.Op {
	case rdmap.WRRead:
		o.opcode, o.sink = rdmap.WCRead, area{l.q.h.mem, l.buffers.sink.all.off, 0}
	case rdmap.WRAtomic:
		o.opcode = rdmap.WCAtomic
	case rdmap.WRSend:
		o.opcode = rdmap.WCSend
	}
	if !l.submitOp(&v.wr, o) {
		l.w.failf("%s: %s: refused locally", l.q.h.name, v.name)
	}
	l.q.conn.Pump()
}

// exhaustReceives has the QP use up all receives of the peer, whose user posts none any more, and
// send once more. It returns false, and does nothing, where there is no room for that.
func (l *workload) exhaustReceives() bool {
	p := l.peer
	if !l.hasRoomFor(p.credits+1) || len(l.buffers.src.free) < p.credits || len(p.cut) > 0 {
		return false
	}
	p.dry = true
	for p.credits > 0 {
		l.postSend(false)
	}
	sgl := []rdmap.SGE{{LKey: l.srcR.STag(), Addr: l.srcR.Base(), Len: 10}}
	l.breakRules(&violation{"send without a receive", rdmap.LayerDDP, uint8(ddp.TypeUntagged), ddp.CodeNoBuffer,
		rdmap.SendWR{Op: rdmap.WRSend, SGL: sgl}})
	l.w.coverage.Droughts++
	return true
}

// injectViolation has one QP break the rules, and waits until both ends know. Nothing but that QP
// may notice.
func (w *World) injectViolation() {
	if len(w.workloads) == 0 {
		return
	}
	l := w.workloads[w.rand.IntN(len(w.workloads))]
	if !l.isReady() || !l.peer.isReady() {
		return
	}
	all := l.possibleViolations()
	v := &all[w.rand.IntN(len(all))]
	l.breakRules(v)
	w.runUntil(v.name, func() bool { return l.q.over && l.peer.q.over })
	if w.err == nil && (l.fault == nil || l.peer.fault == nil) {
		w.failf("%s: %s: not both ends know of the failure", l.q.h.name, v.name)
	}
	for _, o := range w.workloads {
		if o.end != l.end && o.q.core.State() != rdmap.StateRTS {
			w.failf("%s: %s: another QP is in state %v", o.q.h.name, v.name, o.q.core.State())
		}
	}
}
