package rx

import (
	"errors"
	"fmt"

	"github.com/rddp-go/rddp/sctp/wire"
)

// auditExtensions recounts what the extensions keep. count is told of each message that waits.
func (r *Reassembly) auditExtensions(count func(*Message)) error {
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
		w.tree.forEach(count)
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
