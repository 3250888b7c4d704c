package assoc

import (
	"errors"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// errUpperRefused is the reason given to the peer when the Placer refuses a chunk.
var errUpperRefused = errors.New("the upper layer refused a DATA chunk")

// handleData takes one DATA chunk (section 6.2). It checks for duplicates and the window, then asks
// the Placer. Only then does the TSN count as received. It says whether to go on with the packet.
func (a *Assoc) handleData(now rawio.Time, in *inbound, c wire.Chunk) bool {
	if a.interleaves() {
		a.abortForViolation(errNotIData)
		return false
	}
	d, err := wire.AsData(c)
	if !a.expectsData(err) {
		return true
	}
	if len(d.Payload()) == 0 {
		a.abortForNoUserData(c)
		return false
	}
	if s := a.protection(); s != nil && (!s.isOpen || d.PPID() == keymgmt.PPID) {
		return a.handleKeyData(in, s, d)
	}
	a.beginData(in)
	if how := a.recv.Admit(d); how != rx.New {
		a.countRefusedData(how)
		return true
	}
	in.noteMark(d.TSN())
	if uint16(d.Stream()) >= a.agreed.inStreams {
		a.rareCounters().InvalidStream++
		a.recv.Placed(d) // acknowledged and discarded, section 6.5
		a.replyInvalidStream(in, d.Stream())
		return true
	}
	verdict := Queue
	if a.hooks.placer != nil {
		verdict = a.hooks.placer.Place(now, d, in.Buf)
	}
	switch verdict {
	case Consumed:
		a.stats.Placed++
		a.recv.Placed(d)
	case DropUnacked:
		a.rareCounters().LeftUnacked++
		a.recv.LeaveUnacked()
		return true
	case AbortAssoc:
		a.abortForViolation(errUpperRefused)
		return false
	default:
		if err := a.recv.Queue(d, in.Buf); err != nil {
			a.abortForViolation(err)
			return false
		}
	}
	a.stats.DataOctetsIn += uint64(len(d.Payload()))
	return true
}

// expectsData says whether a chunk that was read with err is well-formed, and comes in a state in
// which DATA is taken (section 6).
func (a *Assoc) expectsData(err error) bool {
	if err == nil && recvStates.has(a.state) {
		return true
	}
	a.countUnexpected(err)
	return false
}

func (a *Assoc) countUnexpected(err error) {
	if err != nil {
		a.rareCounters().Malformed++
		return
	}
	a.rareCounters().Unexpected++
}

// beginData begins with a chunk of user data.
func (a *Assoc) beginData(in *inbound) {
	a.sender() // it rests no longer
	in.hasData = true
	a.stats.DataIn++
}

// countRefusedData counts a chunk that was not admitted.
func (a *Assoc) countRefusedData(how rx.Admission) {
	if how == rx.Duplicate {
		a.rareCounters().DuplicatesIn++
		return
	}
	a.rareCounters().OutOfWindow++
}

// abortForNoUserData answers a chunk of a message that has none of its octets (section 6.2).
func (a *Assoc) abortForNoUserData(c wire.Chunk) {
	var info [4]byte
	a.rareCounters().Violations++
	a.abortWithCause(refusal{code: wire.CauseNoUserData, info: append(info[:0], c[4:8]...)})
}

// setSackPath makes SACKs go back the way that DATA has come. Duplicates suggest that the SACKs
// sent there last were lost, so the next one takes another path (section 6.4).
func (a *Assoc) setSackPath(in *inbound) {
	if a.recv.HasDups() && a.sacks.path == in.path {
		if q := a.paths[a.sender().Alternate(&in.path.Path).Index()]; q != in.path {
			a.sacks.path, a.sacks.local = q, netip.AddrPort{}
			return
		}
	}
	a.sacks.path, a.sacks.local = in.path, in.Local
}

// endDataPacket ends a packet that had DATA. It applies the acknowledgement policy of section 6.2,
// and in SHUTDOWN-SENT that of section 9.2.
func (a *Assoc) endDataPacket(now rawio.Time, in *inbound) {
	in.path.dataPackets++
	a.lastDataAt = now
	a.setSackPath(in)
	a.startECNEcho(in)
	a.limitSackDelay(in.path)
	if err := a.recv.PacketDone(now); err != nil {
		a.abortForViolation(err)
		return
	}
	if a.state == ShutdownSent {
		a.shutdownState().sendDue = true
		a.startT2(now)
	}
}
