package rdma

import (
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// What programs see of SCTP.

// PathStats is what an association knows about one path to the peer.
//
//	type PathStats struct {
//		Local, Remote netip.AddrPort
//		State         PathState
//		Primary       bool
//		// active, but recently silent while another path answered: new data avoids it
//		Suspected bool
//		// largest IP packet, octets; over a link without IP, as if it had IPv4 or IPv6
//		MTU               int
//		MaxPacket         int           // largest SCTP packet, octets
//		SRTT, RTTVar, RTO time.Duration // SRTT 0 before the first measurement
//		Cwnd, Ssthresh    int           // octets
//		Flight            int           // octets outstanding
//		Errors            int           // consecutive errors
//		Controller        string        // of congestion: the name of its type
//		DataIn            uint64        // packets with DATA that came from there
//		Heartbeat         time.Duration // HB.interval, negative without HEARTBEATs
//		DSCP              uint8         // see Config
//		FlowLabel         uint32        // see Config
//	}
//
//	func (s PathStats) String() string
type PathStats = assoc.PathStats

// Paths returns the state of each path of the QP's association, which other QPs may share; none
// before the QP is connected.
func (q *QP) Paths() []PathStats {
	c := q.assoc()
	if c == nil {
		return nil
	}
	return c.c.Paths()
}

// Path returns the state of the primary path of the QP's association, which other QPs may share.
func (q *QP) Path() (s PathStats, ok bool) {
	c := q.assoc()
	if c == nil {
		return s, false
	}
	c.lock()
	defer c.unlock()
	return c.a.PathStats(c.a.Stats().Primary), true
}

// AssocStats are the counters of an SCTP association and its paths.
//
//	type Stats struct {
//		State                 State
//		OutStreams, InStreams int
//		Counters
//		RecvWindow  int       // octets of user data that the peer may still send
//		Buffered    int       // octets of user data received that the user has not taken
//		PeerWindow  int       // octets of user data that the peer still takes
//		Outstanding int       // octets of user data sent and not acknowledged
//		Unacked     int       // DATA chunks not acknowledged cumulatively
//		Queued      int       // octets of user data accepted by Send and not yet sent
//		Primary     int       // index of the primary path
//		Trips       Histogram // round trip times measured, over all paths
//		Keys        KeyStats  // of Config.Protected
//	}
type AssocStats = assoc.Stats

// Stats returns the counters of the QP's association, which other QPs may share.
func (q *QP) Stats() (s AssocStats, ok bool) {
	if c := q.assoc(); c != nil {
		return c.c.Stats(), true
	}
	return s, false
}

// assoc returns the association of the QP, nil before it is connected.
func (q *QP) assoc() *sctpConn {
	if p := q.peer.Load(); p != nil {
		return p.sctp()
	}
	return nil
}

// SessionStats counts what has become of the sessions of associations.
//
//	type Stats struct {
//		SegmentsIn, SegmentsOut uint64 // DDP Segments
//		// Initiates of the peer that were given to the upper layer
//		Requests   uint64
//		OutOfOrder uint64 // messages that waited for an earlier one
//		// What was refused, dropped, or left unacknowledged for the peer to send again.
//		// sessions terminated because the peer broke the sequence: the sum of Faults
//		Violations uint64
//		Faults     [numFaults]uint64 // the same by Fault; Faults[0] stays 0
//		// Initiates and strays answered by a Terminate of the stack itself
//		Refused uint64
//		// Initiates among them that found Config.MaxPending others waiting
//		PendingFull uint64
//		// those not even answered, as 256 Terminates were not acknowledged; sent again
//		RefusalsFull uint64
//		// messages that came early and found Config.MaxOutOfOrder others waiting; sent again
//		RecordsFull uint64
//		// messages of a stream's next session, before the last one ended; sent again
//		NextSession uint64
//		// messages of sessions that this side has ended, or the peer
//		AfterEnd uint64
//		// messages on streams without a way back, which end the association (section 8)
//		BadStreams uint64
//		Ignored    uint64 // Terminates of no session, which get no answer
//	}
type SessionStats = ddpadapt.Stats

// PeerStats counts what a peer has done to this Device. Those of the embedded ones that cost
// without ending a stream are OutOfOrder, Refused and Ignored.
type PeerStats struct {
	Sessions int // on the association now, including those that are ending
	ddpadapt.Stats
}

// Snapshot is what a Device is doing. It has no STags: to know one is to be able to use it.
type Snapshot struct {
	Associations []*sctp.Snapshot
	QPs          []QPSnapshot     // by number
	Regions      []RegionSnapshot // by protection domain, the larger ones first
}
