package reconfig

import (
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// peerRequests is the last chunk with requests that the peer has sent, and what they have led to.
// The peer has one in flight at most. So this is all that has to be remembered to answer a
// retransmission as before (section 5.2.1).
type peerRequests struct {
	first    uint32 // Request Sequence Number of the first
	n        int    // how many there are
	parts    [2]peerPart
	ownChunk []byte // the own request that is an answer too
	combined bool   // ownChunk has the responses to the other parts
}

// peerPart is a request parameter of it.
type peerPart struct {
	kind           wire.ParamType
	result         wire.ReconfigResult
	isOpen         bool // the result is In progress: it is looked at again when it comes again
	byOwn          bool // ownChunk is the response
	isUnanswered   bool // there is none yet
	next, expected wire.TSN
	hasTSNs        bool
}

// hasOpen says whether a request of a kind is in progress.
func (q *peerRequests) hasOpen(kind wire.ParamType) bool {
	return slices.ContainsFunc(q.parts[:q.n], func(p peerPart) bool { return p.kind == kind && p.isOpen })
}

// handleRequests takes the request parameters of a chunk.
func (m *Machine) handleRequests(now rawio.Time, list []parameter) {
	q := &m.peer
	isNew := list[0].seq == m.nextPeer
	isRepeated := !isNew && q.n == len(list) && list[0].seq == q.first
	if !isNew && !isRepeated || len(list) == 2 && list[1].seq != list[0].seq+1 {
		m.appendBadSeq(list)
		return
	}
	if isNew {
		m.cancelDeferral() // the peer is done with the one before
		if list[0].kind != wire.ParamTSNReset {
			m.dropTSNWait()
		}
		*q = peerRequests{first: list[0].seq, n: len(list)}
		m.nextPeer += uint32(len(list))
	}
	paired := m.isPair(list)
	for i := range list {
		p, r := &q.parts[i], &list[i]
		if !isNew && (!p.isOpen || p.kind != r.kind) {
			continue
		}
		*p = peerPart{kind: r.kind}
		m.evaluate(now, p, r, paired) // and p.byOwn, see noteAnsweredByOwn
		p.isOpen = p.result == wire.ReconfigInProgress && !p.byOwn
	}
	m.appendResponses(isRepeated)
}

// isPair says whether a chunk adds as many streams in one direction as in the other, and both may
// be had.
func (m *Machine) isPair(list []parameter) bool {
	out, in := m.host.Streams()
	return len(list) == 2 && list[0].count > 0 && list[0].count == list[1].count &&
		list[0].count <= min(m.cfg.MaxIn-in, m.cfg.MaxOut-out)
}

// evaluate performs a request, or finds the result that says why not.
func (m *Machine) evaluate(now rawio.Time, p *peerPart, r *parameter, paired bool) {
	switch r.kind {
	case wire.ParamOutgoingReset:
		p.result = m.takeOutgoingReset(now, r)
	case wire.ParamIncomingReset:
		p.result = m.takeIncomingReset(now, r)
	case wire.ParamTSNReset:
		p.result = m.takeTSNReset(now, p, r.seq)
	case wire.ParamAddOutStreams:
		p.result = m.takeAddOut(now, r, paired)
	default:
		p.result = m.takeAddIn(now, r, paired)
	}
}

// appendBadSeq answers requests that are neither the next nor the last.
func (m *Machine) appendBadSeq(list []parameter) {
	b := wire.AppendReconfig(nil)
	for _, r := range list {
		b = wire.AppendReconfigResponse(b, r.seq, wire.ReconfigBadSeq)
	}
	m.answer = append(m.answer, wire.CloseChunk(b, 0)...)
}

// appendResponses makes the chunk that is sent back. The own request that belongs to it goes by
// itself at first; to a repeated request it is sent again.
func (m *Machine) appendResponses(repeated bool) {
	q := &m.peer
	if params := q.responses(); len(params) > 0 && !q.combined {
		m.answer = append(m.answer, wire.CloseChunk(append(wire.AppendReconfig(nil), params...), 0)...)
	}
	if repeated && len(q.ownChunk) > 0 && !m.RequestDue() {
		m.answer = append(m.answer, q.ownChunk...)
	}
}

// responses returns the response parameters of all parts that are not answered by the own request.
func (q *peerRequests) responses() (b []byte) {
	for i, p := range q.parts[:q.n] {
		seq := q.first + uint32(i)
		switch {
		case p.byOwn || p.isUnanswered:
		case p.hasTSNs:
			b = wire.AppendTSNResetResponse(b, seq, p.result, p.next, p.expected)
		default:
			b = wire.AppendReconfigResponse(b, seq, p.result)
		}
	}
	return b
}

// answersBeside returns the responses that go in one chunk with the own request that answers
// request seq: "If multiple parameters have to be returned, they MUST be put into one RE-CONFIG
// chunk" (section 5.2.1).
func (m *Machine) answersBeside(seq uint32) []byte {
	if q := &m.peer; q.n == 2 && seq == q.first+1 && q.parts[1].kind == wire.ParamIncomingReset {
		only := peerRequests{first: q.first, n: 1, parts: q.parts}
		return only.responses()
	}
	return nil
}

// noteAnsweredByOwn notes that the own request, whose chunk is made, answers request seq. An Add
// Outgoing Streams Request goes beside a response.
func (m *Machine) noteAnsweredByOwn(seq uint32, combined bool) {
	q := &m.peer
	if i := seq - q.first; i < uint32(q.n) {
		if p := &q.parts[i]; p.kind == wire.ParamIncomingReset {
			p.byOwn, p.isOpen = true, false
		}
		q.ownChunk, q.combined = m.own.chunk, combined
	}
}
