package rdma

import "github.com/rddp-go/rddp/sctp/assoc"

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
	p := q.peer.Load()
	if p == nil {
		return nil
	}
	return p.conn.Paths()
}

// Path returns the state of the primary path of the QP's association, which other QPs may share.
func (q *QP) Path() (s PathStats, ok bool) {
	p := q.peer.Load()
	if p == nil {
		return s, false
	}
	a, _ := p.conn.Upper().Lock()
	defer p.conn.Upper().Unlock()
	return a.PathStats(a.Stats().Primary), true
}
