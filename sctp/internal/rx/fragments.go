package rx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// AddInterleaved takes an I-DATA chunk with a TSN not received before. The error is a
// *ViolationError or ErrMessageTooBig.
func (r *Reassembly) AddInterleaved(d wire.IData, buf *rawio.Buf) error {
	n := len(d.Payload())
	switch {
	case n == 0:
		return &ViolationError{d.TSN(), "I-DATA without user data"}
	case int(d.Stream()) >= r.inStreams:
		return &ViolationError{d.TSN(), "I-DATA for a stream that does not exist"}
	case n > r.maxMessage:
		return ErrMessageTooBig
	}
	mids := r.ext.interleaving.mids.Use(uint16(d.Stream()))
	if mids.isSkipped(d.MID(), d.U()) || !r.limitMIDSpan(d, mids) {
		if r.mayAbandon() || r.ext.interleaving.isOfRest(d) {
			return nil // the rest of a message that was given up, or cut by a reset of TSNs
		}
		return &ViolationError{d.TSN(), "a message of a stream with a MID of before"}
	}
	if d.B() && d.E() {
		return r.addWhole(d, buf, mids)
	}
	m, isNew, what := r.openMessage(d, mids)
	if what == "" {
		what = r.placeFragment(m, d, buf)
	}
	if what != "" {
		if isNew {
			r.removeOpen(m)
			r.store.recycleMessage(m)
		}
		return &ViolationError{d.TSN(), what}
	}
	isWhole := m.hasBegin && m.hasEnd
	if n := m.Offset + m.Size; n > r.maxMessage || !isWhole && n == r.maxMessage {
		r.removeOpen(m)
		r.releaseOpen(m)
		return ErrMessageTooBig
	}
	if isWhole {
		r.removeOpen(m)
		return r.deliverInterleaved(m)
	}
	if isNew {
		r.noteUnbegun(m)
	}
	r.notePieces(m)
	return nil
}

// addWhole takes a chunk that is a whole message.
func (r *Reassembly) addWhole(d wire.IData, buf *rawio.Buf, mids *nextMIDs) error {
	if o := r.ext.interleaving.streamOf(d.Stream()); o != nil {
		t := &o.messages[treeOf(d.U())]
		*r.workSteps += t.steps()
		if t.find(streamOrder(d.MID()), mids.base(d.U())) != nil {
			return &ViolationError{d.TSN(), "a message begins twice"}
		}
	}
	m := r.newOpenMessage(d)
	m.linkLast(r.keepFragment(m, d, buf))
	m.hasBegin, m.hasEnd, m.PPID = true, true, ppidOf(d)
	return r.deliverInterleaved(m)
}

// newOpenMessage returns the message of a chunk, without the chunk.
func (r *Reassembly) newOpenMessage(d wire.IData) *Message {
	m := r.store.newMessage()
	m.Stream, m.SSN, m.Unordered, m.firstTSN = d.Stream(), wire.SSN(d.MID()), d.U(), d.TSN()
	m.order, m.mayDrop = streamOrder(d.MID()), true
	return m
}

// limitMIDSpan keeps the MIDs of unordered messages in assembly close enough together to be told
// apart. It returns false if one of long ago is among them.
func (r *Reassembly) limitMIDSpan(d wire.IData, mids *nextMIDs) bool {
	if !d.U() || d.MID()-mids.unordered < maxMIDSpan {
		return true
	}
	lowest := d.MID() - maxMIDSpan
	if o := r.ext.interleaving.streamOf(d.Stream()); o != nil {
		if m := o.messages[treeOf(true)].first(); m != nil && m.MID()-mids.unordered < lowest-mids.unordered {
			return false
		}
	}
	mids.unordered = lowest
	return true
}

// openMessage returns the message of a chunk. It is new if it is the first that has come of the
// message. what says what is wrong, if anything is.
func (r *Reassembly) openMessage(d wire.IData, mids *nextMIDs) (m *Message, isNew bool, what string) {
	x, id := r.ext.interleaving, d.Stream()
	if m = x.last; m != nil && m.MID() == d.MID() && m.Stream == id && m.Unordered == d.U() {
		return m, false, ""
	}
	t := &x.openStreamOf(id).messages[treeOf(d.U())]
	order, base := streamOrder(d.MID()), mids.base(d.U())
	*r.workSteps += t.steps()
	if m = t.find(order, base); m == nil {
		if r.isWaiting(id, order, d.U()) {
			return nil, false, "a fragment of a message that is whole"
		}
		m = r.newOpenMessage(d)
		t.insert(m, base)
		x.numOpen++
		isNew = true
	}
	x.last = m
	return m, isNew, ""
}

// isWaiting says whether a whole message waits for its MID.
func (r *Reassembly) isWaiting(id wire.StreamID, order streamOrder, unordered bool) bool {
	if unordered || !r.stateOfStream(id).hasWaiting {
		return false
	}
	t := &r.ext.waiting.Use(uint16(id)).tree
	*r.workSteps += t.steps()
	return t.find(order, r.queueOf(id).nextOrder) != nil
}

// placeFragment puts a chunk to its message, or says what is wrong.
func (r *Reassembly) placeFragment(m *Message, d wire.IData, buf *rawio.Buf) (what string) {
	f, base := d.FSN(), streamOrder(m.nextFSN)
	ahead, t := streamOrder(f)-base, &m.fragments
	switch {
	case d.B() && m.hasBegin:
		return "a message begins twice"
	case ahead == 0 && !d.B() && !m.hasBegin:
		return "a first fragment without the B bit"
	case ahead >= 1<<31:
		return "two fragments of a message with the same FSN"
	}
	*r.workSteps += t.steps()
	run := m // the one that the chunk follows on, if any
	if ahead > 0 {
		run = t.floor(streamOrder(f), base)
		if run != nil && streamOrder(f)-run.order < streamOrder(run.nextFSN)-run.order {
			return "two fragments of a message with the same FSN"
		}
	}
	last := t.last()
	if run != nil && run.hasEnd || d.E() && last != nil && last.order-base > ahead {
		return "a fragment follows the end of a message"
	}
	p := r.keepFragment(m, d, buf)
	next := t.find(streamOrder(f)+1, base)
	switch {
	case run != nil && run.nextFSN == f:
		run.linkLast(p)
		run.hasEnd = d.E()
	case next != nil:
		next.linkFirst(p)
		return ""
	default:
		run = r.store.newMessage()
		run.order, run.hasEnd = streamOrder(f), d.E()
		run.linkLast(p)
		*r.workSteps += t.steps()
		t.insert(run, base)
		return ""
	}
	if run == m && d.B() {
		m.hasBegin, m.PPID, m.firstTSN = true, ppidOf(d), d.TSN()
	}
	if next != nil {
		*r.workSteps += t.steps()
		t.remove(next, base)
		run.linkRun(next)
		r.store.recycleMessage(next)
	}
	return ""
}

func ppidOf(d wire.IData) uint32 {
	ppid, _ := d.PPID()
	return ppid
}

// keepFragment keeps the user data of a chunk.
func (r *Reassembly) keepFragment(m *Message, d wire.IData, buf *rawio.Buf) *piece {
	n := len(d.Payload())
	r.heldOctets += n
	r.ext.interleaving.waitOctets += n
	m.Size += n
	p := r.store.keepData(d.Payload(), buf)
	p.owner, p.tsn, p.fsn = m, d.TSN(), d.FSN()
	if cum := r.byLastTSN.baseTSN; cum.Less(p.tsn) {
		r.ext.interleaving.index.add(p, cum)
	}
	return p
}

// linkLast puts p behind the pieces that there are.
func (m *Message) linkLast(p *piece) {
	if p.prev = m.tailPiece; p.prev != nil {
		p.prev.next = p
	} else {
		m.headPiece = p
	}
	m.tailPiece, m.nextFSN = p, p.fsn+1
}

// linkFirst puts p before the pieces that there are.
func (m *Message) linkFirst(p *piece) {
	p.next, m.headPiece.prev, m.headPiece = m.headPiece, p, p
	m.order = streamOrder(p.fsn)
}

// linkRun puts the pieces of a run behind those that there are.
func (m *Message) linkRun(run *Message) {
	m.tailPiece.next, run.headPiece.prev = run.headPiece, m.tailPiece
	m.tailPiece, m.nextFSN, m.hasEnd = run.tailPiece, run.nextFSN, run.hasEnd
}

// evictFragment is Evict for I-DATA.
func (r *Reassembly) evictFragment(t wire.TSN) (wire.TSN, bool) {
	x := r.ext.interleaving
	p, steps := x.index.highest(r.byLastTSN.baseTSN)
	*r.workSteps += uint64(steps)
	if p == nil || !t.Less(p.tsn) {
		return 0, false
	}
	m, gone, n := p.owner, p.tsn, len(p.data)
	x.index.take(gone)
	isOpen := true
	if m.hasBegin && m.hasEnd {
		isOpen = r.reopen(m)
	}
	r.unlinkPiece(m, p)
	r.heldOctets -= n
	x.waitOctets -= n
	m.Size -= n
	r.store.dropPiece(p)
	if m.headPiece == nil && m.fragments.root == nil && m.Offset == 0 || !isOpen {
		if isOpen {
			r.removeOpen(m)
		}
		r.releaseOpen(m)
	}
	return gone, true
}

// reopen puts a whole message that waits for its MID back to those in assembly. It returns false if
// the peer has given up what it lacks then.
func (r *Reassembly) reopen(m *Message) bool {
	r.takeWaiting(m)
	x := r.ext.interleaving
	mids := x.mids.Use(uint16(m.Stream))
	if mids.isSkipped(m.MID(), false) {
		return false
	}
	t := &x.openStreamOf(m.Stream).messages[treeOf(false)]
	*r.workSteps += t.steps()
	t.insert(m, mids.base(false))
	x.numOpen++
	return true
}

// unlinkPiece takes a piece out of its message. What lies behind it in its run becomes a run of its
// own.
func (r *Reassembly) unlinkPiece(m *Message, p *piece) {
	run, t := m, &m.fragments
	*r.workSteps += 2 * t.steps()
	if m.headPiece == nil || p.fsn-m.headPiece.fsn >= m.nextFSN-m.headPiece.fsn {
		run = t.floor(streamOrder(p.fsn), streamOrder(m.nextFSN))
	}
	var rest *Message
	if p.next != nil {
		rest = r.store.newMessage()
		rest.order, rest.headPiece, rest.tailPiece = streamOrder(p.fsn)+1, p.next, run.tailPiece
		rest.nextFSN, rest.hasEnd = run.nextFSN, run.hasEnd
		p.next.prev = nil
	}
	run.tailPiece, run.nextFSN, run.hasEnd = p.prev, p.fsn, false
	switch {
	case p.prev != nil:
		p.prev.next = nil
	case run == m:
		m.headPiece, m.hasBegin = nil, m.hasBegin && m.Offset > 0
	default:
		t.remove(run, streamOrder(m.nextFSN))
		run.headPiece = nil
		r.store.recycleMessage(run)
	}
	if rest != nil {
		t.insert(rest, streamOrder(m.nextFSN))
	}
}
