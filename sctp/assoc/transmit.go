package assoc

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// headerRoom is the common header of a packet in octets.
const headerRoom = wire.CommonHeaderLen

// PollTransmit adds the packets that are to be sent now. more says that out was full: write it, reset
// it and call again. After EventDown there may still be a last packet.
func (a *Assoc) PollTransmit(now rawio.Time, out *TxBatch) (more bool) {
	if !a.continues {
		a.sender.StartBurst() // a new opportunity for Max.Burst packets, section 6.1
	}
	a.continues = true
	if a.outbox.PollTransmit(out) {
		return true
	}
	for a.state != Closed && !out.Full() {
		if !a.transmit(now, out) {
			a.continues = false
			return false
		}
	}
	return a.state != Closed
}

// transmit builds one packet: control chunks, then SACK, then DATA (section 6.10).
func (a *Assoc) transmit(now rawio.Time, out *TxBatch) bool {
	if a.setup != nil && a.setup.due {
		a.transmitSetup(now, out)
		return true
	}
	var data *tx.Path
	if sendStates.has(a.state) {
		data = a.sender.Poll(now)
	}
	closing := a.closing != nil && a.closing.due
	var p *path
	switch {
	case len(a.control.entries) > 0:
		p = a.control.entries[0].path
	case closing:
		p = a.closingPath()
	case a.recv != nil && a.recv.SackDue(now):
		p = a.ackPath()
	case data != nil:
		p = a.paths[data.Index()]
	default:
		return false
	}
	out.Begin(a.localPort, a.peerPort, a.peerTag, p.Local, p.Remote, p.MTU())
	if len(a.control.entries) > 0 {
		a.control.next(out)
	}
	verified := p.State != tx.Unconfirmed // section 5.4: else HEARTBEAT and HEARTBEAT ACK only
	if closing && verified {
		a.appendClosing(now, out)
	}
	if a.recv != nil && verified && (a.recv.SackDue(now) || (data == p.Path && a.recv.SackPending())) {
		a.appendSack(out)
	}
	if data == p.Path {
		a.sender.Fill(now, out, data)
	}
	if out.Empty() {
		out.Cancel()
		return false
	}
	a.end(out)
	return true
}

// end finishes the open packet and counts it.
func (a *Assoc) end(out *TxBatch) {
	a.stats.PacketsOut++
	a.stats.OctetsOut += uint64(out.Len())
	out.End()
}

// appendSack adds a SACK with as many gap blocks as fit the packet.
func (a *Assoc) appendSack(out *TxBatch) {
	before := out.Room()
	out.Commit(a.recv.AppendSack(out.Tail(), before))
	if out.Room() != before {
		a.stats.SacksOut++
	}
}

// ackPath is where SACKs go: to the source of the last DATA (section 6.7).
func (a *Assoc) ackPath() *path {
	if a.sackPath == nil || a.sackPath.State == tx.Unconfirmed {
		return a.primary()
	}
	return a.sackPath
}
