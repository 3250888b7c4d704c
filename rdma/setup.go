package rdma

import (
	"errors"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Setup is what one end says of itself in a negotiated setup (RFC 6581 section 9).
//
//	type Setup struct {
//		// inbound RDMA Reads that the sender of the Setup serves at a time
//		IRD uint16
//		// outbound RDMA Reads that it wants to have pending, or will have at most
//		ORD        uint16
//		PeerToPeer bool // A: the initiator sends one of RTR ahead of all else
//		RTR        RTR  // B, C, D: Send, Write, Read; what the sender supports
//	}
//
//	func (own Setup) Answer(asked Setup) (reply Setup)
//	func (own Setup) Conclude(reply Setup) (ord uint16, first RTR, err error)
type Setup = llp.Setup

// NotNegotiated in place of an IRD or ORD of a Setup leaves it to the programs.
const NotNegotiated = llp.NotNegotiated

// wantsNegotiation: enhanced setup is only for a QP that wants something of it (RFC 6581 section
// 10).
func (q *QP) wantsNegotiation() bool { return q.negotiate || q.peerToPeer }

// negotiates reports whether the setup of the QP is an enhanced one. Over TCP it is by default:
// programs of others expect it, and the responder may not send first otherwise (RFC 5044 section
// 7.1.2).
func (q *QP) negotiates(isTCP bool) bool {
	return q.wantsNegotiation() || isTCP && !q.dev.cfg.TCP.Plain
}

func checkPrivateData(private []byte, enhanced bool) error {
	if len(private) > llp.MaxPrivateData || enhanced && len(private) > llp.MaxEnhancedPrivateData {
		return llp.ErrPrivateDataTooLong
	}
	return nil
}

// setupOffer is what Connect asks for when it negotiates.
func (q *QP) setupOffer() Setup {
	s := Setup{IRD: NotNegotiated, ORD: NotNegotiated, PeerToPeer: q.peerToPeer}
	if q.negotiate {
		s.IRD, s.ORD = uint16(q.core.IRD()), uint16(q.core.ORD())
	}
	s.RTR = llp.RTRSend | llp.RTRWrite
	if q.core.ORD() > 0 {
		s.RTR |= llp.RTRRead
	}
	return s
}

// setupAnswer is what Accept replies to a peer that negotiates. A Send as indication would take a
// receive of the program, which knows nothing of it.
func (q *QP) setupAnswer(asked Setup) Setup {
	own := Setup{IRD: uint16(q.core.IRD()), ORD: uint16(q.core.ORD()), RTR: llp.RTRWrite}
	if own.IRD > 0 {
		own.RTR |= llp.RTRRead
	}
	return own.Answer(asked)
}

// handleAccepted takes the peer's Accept. Under the connection lock.
func (q *QP) handleAccepted(private []byte, setup *Setup) {
	if q.isSetUp {
		return // its user has ended it meanwhile
	}
	q.acceptData = private
	var err error
	if setup != nil && q.core.State() == rdmap.StateInit {
		q.peerSetup = setup
		err = q.applySetup(*setup)
	}
	q.finishSetup(err)
}

// applySetup applies what was negotiated (RFC 6581 sections 9.1 and 9.2). Where that is impossible,
// a Terminate message tells the peer and ends the stream.
func (q *QP) applySetup(reply Setup) error {
	ord, first, err := q.setupOffer().Conclude(reply)
	if err == nil {
		err = q.core.LimitORD(int(ord))
	}
	if err == nil && first != 0 {
		err = q.core.StartRTR(rtrOpcodes[first])
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, llp.ErrInsufficientIRD):
		q.core.Refuse(rdmap.CodeInsufficientIRD, err)
	case errors.Is(err, llp.ErrNoRTR):
		q.core.Refuse(rdmap.CodeNoRTR, err)
	default:
		q.core.Refuse(rdmap.CodeSetupLocal, err)
	}
	return err
}

var rtrOpcodes = [...]rdmap.WROpcode{
	llp.RTRSend:  rdmap.WRSend,
	llp.RTRWrite: rdmap.WRWrite,
	llp.RTRRead:  rdmap.WRRead,
}

// IRD returns how many RDMA Reads and atomics the peer may have outstanding here (RFC 5040 section
// 6.1).
func (q *QP) IRD() int {
	p := q.lockCore()
	defer q.unlockCore(p)
	return q.core.IRD()
}

// ORD returns how many RDMA Reads and atomics of this QP may be outstanding at the peer (RFC 5040
// section 6.1). This is what QPConfig asked for, or less if setup was negotiated and the peer
// serves less.
func (q *QP) ORD() int {
	p := q.lockCore()
	defer q.unlockCore(p)
	return q.core.ORD()
}

// PeerSetup returns what the peer said of itself, if the setup was negotiated (RFC 6581 section 9).
func (q *QP) PeerSetup() (s Setup, ok bool) {
	p := q.lockCore()
	defer q.unlockCore(p)
	if q.peerSetup == nil {
		return s, false
	}
	return *q.peerSetup, true
}
