package rdma

import "github.com/rddp-go/rddp/sctp/assoc"

// PathStats is what an association knows about one path to the peer.
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
	a, _ := p.conn.Gate().Lock()
	defer p.conn.Gate().Unlock()
	return a.PathStats(a.Stats().Primary), true
}
