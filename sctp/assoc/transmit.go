package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// headerRoom is the common header of a packet in octets.
const headerRoom = wire.CommonHeaderLen

// PollTransmit adds the packets that are to be sent now. more says that out was full, or that a
// large SACK is processed in parts, one a call. In both cases write out, reset it and call again,
// after others have had their turn. After EventDown there may still be a last packet.
func (a *Assoc) PollTransmit(now rawio.Time, out *TxBatch) (more bool) {
	if s := a.protection(); s != nil {
		return a.pollProtected(now, s, out)
	}
	return a.pollTransmit(now, out)
}

func (a *Assoc) pollTransmit(now rawio.Time, out *TxBatch) (more bool) {
	a.expireMessages(now)
	if !a.send.burstContinues {
		a.advanceStreamResets(now)
		a.runMTUSearches(now)
		if a.hasNothingPending(now) {
			if a.mayGoIdle(now) {
				a.GoIdle()
			}
			return false
		}
		if !a.IsIdle() || !a.hasNoDataPending(now) {
			a.sender().StartBurst(now) // a new opportunity for Max.Burst packets, section 6.1
		}
	}
	a.send.burstContinues = true
	if a.hasSackWork() && len(out.Pkts) == 0 && a.state != Closed { // else packets there are about what this gives back
		a.handleNewlyAcked(now, a.sender().ContinueWork(now))
		a.advanceShutdown(now)
	}
	a.endIfInconsistent()
	if a.outbox.PollTransmit(out) {
		return true
	}
	for a.state != Closed && !out.Full() {
		if !a.buildPacket(now, out) {
			a.send.burstContinues = false
			if a.endIfInconsistent() || a.hasSackWork() {
				return true
			}
			if a.mayGoIdle(now) {
				a.GoIdle()
			}
			return false
		}
	}
	return a.state != Closed
}

// hasNothingPending says that there is nothing to send, and nothing outstanding, as usual when an
// answer has come. It is quicker than looking for what to send.
func (a *Assoc) hasNothingPending(now rawio.Time) bool {
	return a.state == Established && a.hasNoDataPending(now) && len(a.control.entries) == 0 &&
		!a.send.probeDue && a.isConsistent() && a.outbox.isEmpty()
}

// hasSackWork says that a SACK is processed in parts.
func (a *Assoc) hasSackWork() bool { return !a.IsIdle() && a.sender().HasMoreWork() }

// hasNoDataPending says the same of DATA and SACKs alone.
func (a *Assoc) hasNoDataPending(now rawio.Time) bool {
	if a.IsIdle() {
		return a.hooks.source == nil || a.hooks.source.Idle()
	}
	return a.sender().HasNothingPending() && !a.recv.SackDue(now)
}

// buildPacket builds one packet: control chunks, then SACK, then DATA (section 6.10).
func (a *Assoc) buildPacket(now rawio.Time, out *TxBatch) bool {
	if s := a.setup(); s != nil && s.sendDue && !a.awaitsRestartKeys() {
		a.transmitSetup(now, out)
		return true
	}
	if a.send.probeDue && a.transmitProbe(now, out) {
		return true
	}
	var data *tx.Path
	forward := false
	if !a.IsIdle() && sendStates.has(a.state) {
		data = a.sender().Poll(now)
		forward = a.sender().ForwardDue()
	}
	s := a.shutdownState()
	closing := s != nil && s.sendDue
	var p *path
	var local netip.AddrPort // invalid: that of the path
	switch {
	case len(a.control.entries) > 0:
		p, local = a.control.entries[0].path, a.control.entries[0].local
	case closing:
		p = s.path
	case a.SackDue(now):
		p, local = a.sackDestination()
	case data != nil:
		p = a.paths[data.Index()]
	case forward:
		p = a.dataPath()
	default:
		return false
	}
	if !local.IsValid() {
		local = p.Local
	}
	a.openPacket(out, a.id.peerTag, local, p, p.MTU())
	if len(a.control.entries) > 0 {
		a.control.moveNextTo(out)
	}
	// A chunk that has a path of its own goes along if this is that path. That is never an
	// unconfirmed one.
	if closing && p == s.path {
		a.appendShutdown(now, out)
	}
	fill := data == &p.Path && local.Addr() == p.Local.Addr()
	if a.SackDue(now) || fill && a.recv.SackPending() {
		if q, _ := a.sackDestination(); p == q {
			a.growWindow(now, p)
			a.appendSack(out)
		}
	}
	if forward && p.State != tx.Unconfirmed {
		out.Commit(a.sender().AppendForwardTSN(now, out.Tail(), out.Room(), &p.Path))
	}
	if fill {
		a.sender().Fill(now, out, data)
		a.reportAbandoned()
	}
	if out.Empty() { // never: if it were, there would be no end of empty packets
		out.Cancel()
		return false
	}
	a.finishLongPacket(out, p)
	if fill {
		a.lastDataAt = now
		a.recv.NoteDataSent(now)
		a.addDataPackets(now, out, data)
	}
	return true
}

// openPacket opens a packet on a path.
func (a *Assoc) openPacket(out *TxBatch, tag uint32, local netip.AddrPort, p *path, size int) {
	out.Begin(a.id.localPort, a.id.peerPort, tag, local, p.Remote, size)
	out.SetMark(p.mark)
	out.SetZeroChecksum(a.sendsZeroChecksum())
	out.Seal(a.sealer())
}

// addDataPackets adds packets like the last one, with nothing but DATA.
func (a *Assoc) addDataPackets(now rawio.Time, out *TxBatch, data *tx.Path) {
	packets, octets := len(out.Pkts), out.Octets()
	a.sender().FillMore(now, out, data)
	a.stats.PacketsOut += uint64(len(out.Pkts) - packets)
	a.stats.OctetsOut += uint64(out.Octets() - octets)
}

// finishLongPacket is finishPacket for a packet that may hold a chunk that is too long for its
// path.
func (a *Assoc) finishLongPacket(out *TxBatch, p *path) {
	if out.Room() >= 0 || p.CutFrom <= 0 {
		a.finishPacket(out)
		return
	}
	fragment := a.padForFragments(out, p)
	if a.finishPacket(out) {
		out.Pkts[len(out.Pkts)-1].Fragment = fragment
	}
}

// finishPacket finishes the open packet and counts it. It returns false if the packet could not be
// sealed.
func (a *Assoc) finishPacket(out *TxBatch) bool {
	packets, octets := len(out.Pkts), out.Octets()
	out.End()
	if len(out.Pkts) == packets {
		return false
	}
	a.stats.PacketsOut++
	a.stats.OctetsOut += uint64(out.Octets() - octets)
	return true
}

// appendSack adds a SACK with as many gap blocks as fit the packet.
func (a *Assoc) appendSack(out *TxBatch) {
	a.appendECNE(out)
	before := out.Room()
	out.Commit(a.recv.AppendSack(out.Tail(), before))
	if out.Room() != before {
		a.stats.SacksOut++
	}
}

// sackDestination returns where SACKs go, and from which own address. They go back the way that the
// last DATA came (section 6.7), unless its source is unconfirmed.
func (a *Assoc) sackDestination() (p *path, local netip.AddrPort) {
	if a.sacks.path.State == tx.Unconfirmed {
		return a.dataPath(), netip.AddrPort{}
	}
	return a.sacks.path, a.sacks.local
}
