package rdma

import "github.com/rddp-go/rddp/sctp/assoc"

// PathStats is what an association knows about one path to the peer.
type PathStats = assoc.PathStats

// Path returns the state of the primary path of the QP's association, which other QPs may share.
func (q *QP) Path() (s PathStats, ok bool) {
	p := q.peer.Load()
	if p == nil {
		return s, false
	}
	a, _ := p.conn.Lock()
	defer p.conn.Unlock()
	return a.PathStats(a.Stats().Primary), true
}
