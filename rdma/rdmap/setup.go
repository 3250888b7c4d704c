package rdmap

// What the enhanced connection setup of RFC 6581 asks of a QP. The messages themselves are package
// ddpadapt's.

// ETypeMPA is the error type of MPA under LayerLLP. Setup errors have it also over SCTP (RFC 6581
// section 8).
const ETypeMPA EType = 0

// Error codes of LayerLLP with ETypeMPA (RFC 5044 section 8, RFC 6581 section 8).
const (
	CodeMPALost         = 0x01 // TCP connection closed, terminated, or lost
	CodeMPACRC          = 0x02
	CodeMPAMarker       = 0x03 // Marker and ULPDU Length fields do not agree
	CodeMPAFrame        = 0x04 // invalid Request or Reply Frame
	CodeSetupLocal      = 0x05 // local catastrophic error
	CodeInsufficientIRD = 0x06
	CodeNoRTR           = 0x07 // no matching Ready to Receive indication
)

// IRD returns how many RDMA Reads and atomics the peer may have pending here.
func (q *QP) IRD() int { return q.cfg.IRD }

// ORD returns how many RDMA Reads and atomics of this end may be pending at the peer.
func (q *QP) ORD() int { return len(q.sq.readRequests) }

// LimitORD lowers ORD to n, if it is higher, before Start: to what the peer undertakes to serve
// (RFC 6581 section 9.1). IRD needs no such call: it stays what the peer was promised. Error:
// ErrState after Start.
func (q *QP) LimitORD(n int) error {
	if q.state != StateInit {
		return ErrState
	}
	n = min(max(n, 0), q.ORD())
	q.sq.readRequests, q.sq.readHeaders = q.sq.readRequests[:n], q.sq.readHeaders[:2*n]
	return nil
}

// StartRTR is Start with a Ready to Receive indication ahead of all other messages. This is a
// zero-length Send (WRSend), RDMA Write (WRWrite) or RDMA Read (WRRead). It leaves no completion
// here; the Send takes a receive of the peer's user. Errors: ErrOpcode, ErrState, or ErrNoReads for
// a Read with an ORD of 0.
func (q *QP) StartRTR(op WROpcode) error {
	wr := SendWR{Op: op}
	switch {
	case q.state != StateInit:
		return ErrState
	case op == WRRead:
		wr.SGL = []SGE{{}}
	case op != WRSend && op != WRWrite:
		return ErrOpcode
	}
	if err := q.enqueueRequest(&wr, Unsignaled|hiddenRequest); err != nil {
		return err
	}
	q.sq.hiddenRequests++
	q.Start()
	return nil
}

// Refuse ends a stream whose setup has failed. It sends a Terminate with LayerLLP and one of the
// codes of RFC 6581 section 8. cause is kept for Err.
func (q *QP) Refuse(code uint8, cause error) {
	q.failStream(Terminate{Layer: LayerLLP, EType: ETypeMPA, Code: code}, cause)
}

func mpaCodeName(code uint8) string {
	switch code {
	case CodeMPALost:
		return "MPA, TCP connection closed, terminated, or lost"
	case CodeMPACRC:
		return "MPA, CRC error"
	case CodeMPAMarker:
		return "MPA, Marker and ULPDU Length field mismatch"
	case CodeMPAFrame:
		return "MPA, invalid Request or Reply Frame"
	case CodeSetupLocal:
		return "connection setup, local catastrophic error"
	case CodeInsufficientIRD:
		return "connection setup, insufficient IRD resources"
	case CodeNoRTR:
		return "connection setup, no matching RTR option"
	}
	return "connection setup, unknown code"
}
