package rx

import (
	"errors"
	"fmt"

	"github.com/rddp-go/rddp/sctp/wire"
)

// auditExtensions recounts what the extensions keep. wait is told of each message that waits, count
// of each other one.
func (r *Reassembly) auditExtensions(wait func(*Message), count func(*Message) error) error {
	var errs []error
	for id, w := range r.ext.waiting.All {
		if w.tree.root == nil {
			continue
		}
		q := r.queueOf(wire.StreamID(id))
		errs = append(errs, w.tree.audit(q.nextOrder))
		if s := r.stateOfStream(wire.StreamID(id)); q.nextOrder.isBefore(w.skipTo) && !s.isDue {
			errs = append(errs, fmt.Errorf("stream %d: what was given up is waited for", id))
		}
		w.tree.forEach(wait)
	}
	if r.interleaves() {
		errs = append(errs, r.auditInterleaving(count))
	}
	return errors.Join(errs...)
}

// audit checks that all messages lie in order, and that the levels balance the tree.
func (t *orderTree) audit(base streamOrder) error {
	var errs []error
	var last *Message
	t.forEach(func(m *Message) {
		left, right := m.children[before], m.children[after]
		if last != nil && m.order-base <= last.order-base || t.find(m.order, base) != m {
			errs = append(errs, fmt.Errorf("order %d is in the wrong place", m.order))
		}
		if levelOf(left)+1 != m.level || levelOf(right) > m.level || levelOf(right)+1 < m.level ||
			right != nil && levelOf(right.children[after]) >= m.level {
			errs = append(errs, fmt.Errorf("level %d is above %d and %d", m.level, levelOf(left), levelOf(right)))
		}
		last = m
	})
	return errors.Join(errs...)
}

// auditInterleaving recounts the messages of I-DATA in assembly.
func (r *Reassembly) auditInterleaving(count func(*Message) error) error {
	var errs []error
	x := r.ext.interleaving
	open, streams, popped, octets := 0, 0, 0, 0
	auditPieces := func(m *Message, run *Message) (n int) {
		f := run.nextFSN
		for p := run.tailPiece; p != nil; p = p.prev {
			n += len(p.data)
			if f--; p.fsn != f || p.owner != m || p.next == nil != (p == run.tailPiece) ||
				p.prev == nil != (p == run.headPiece) {
				errs = append(errs, fmt.Errorf("stream %d: fragment %d of MID %d is in the place of %d", m.Stream,
					p.fsn, m.order, f))
			}
			if r.byLastTSN.baseTSN.Less(p.tsn) && (!x.index.tsns.Has(p.tsn) || *x.index.pieces.At(uint16(p.tsn)) != p) {
				errs = append(errs, fmt.Errorf("TSN %d is not found", p.tsn))
			}
		}
		return n
	}
	for id, w := range r.ext.waiting.All {
		w.tree.forEach(func(m *Message) {
			octets += m.Size
			if auditPieces(m, m) != m.Size || !m.mayDrop || !m.hasBegin || !m.hasEnd {
				errs = append(errs, fmt.Errorf("stream %d: MID %d waits and is not whole", id, m.order))
			}
		})
	}
	for id, o := range x.all {
		if streams++; o.popped != nil {
			popped++
		}
		for i := range o.messages {
			mids := x.mids.Use(uint16(id))
			errs = append(errs, o.messages[i].audit(mids.base(i == 1)))
			o.messages[i].forEach(func(m *Message) {
				n := auditPieces(m, m)
				m.fragments.forEach(func(run *Message) {
					n += auditPieces(m, run)
					run.Size = auditSize(run) // only here
					errs = append(errs, count(run))
					run.Size = 0
					if run.order != streamOrder(run.headPiece.fsn) || run.order == streamOrder(m.nextFSN) {
						errs = append(errs, fmt.Errorf("stream %d: MID %d has fragment %d in the wrong place", id,
							m.order, run.order))
					}
				})
				errs = append(errs, m.fragments.audit(streamOrder(m.nextFSN)))
				if n != m.Size || !m.mayDrop || mids.isSkipped(m.MID(), i == 1) || m.hasBegin && m.hasEnd ||
					m.Stream != id || m.Unordered != (i == 1) || m.Offset > 0 && o.partial != m {
					errs = append(errs, fmt.Errorf("stream %d: MID %d of %d octets has %d", id, m.order, m.Size, n))
				}
				size := m.Size
				m.Size = auditSize(m)
				errs = append(errs, count(m))
				m.Size = size
				octets += size
				open++
			})
		}
		for m := o.readyAfter.first; m != nil; m = m.next {
			errs = append(errs, count(m))
		}
		if (o.readyAfter.first == nil) != (o.readyAfter.last == nil) || o.partial == nil && o.readyAfter.first != nil {
			errs = append(errs, fmt.Errorf("stream %d: messages wait for the end of none", id))
		}
	}
	if open != x.numOpen || streams != x.numStreams || popped != x.numPopped || octets != x.waitOctets {
		errs = append(errs, fmt.Errorf("%d messages of %d octets in assembly or waiting, %d streams, %d popped "+
			"in part; counted are %d, %d, %d and %d", x.numOpen, x.waitOctets, x.numStreams, x.numPopped, open,
			octets, streams, popped))
	}
	return errors.Join(errs...)
}

// auditSize is the octets in the pieces of m.
func auditSize(m *Message) (n int) {
	for p := m.headPiece; p != nil; p = p.next {
		n += len(p.data)
	}
	return n
}
