package rx

// orderTree holds messages by their order, which counts on from a base. It is a balanced search
// tree (Andersson, "Balanced search trees made simple", 1993). So no way in it is longer than twice
// the logarithm of their number, whichever orders a peer chooses. The links are part of the
// messages.
type orderTree struct{ root *Message }

// The sides of a message in the tree.
const (
	before = 0
	after  = 1
)

// sideOf says on which side of p the order o lies, where both count on from base.
func sideOf(o, p, base streamOrder) int {
	if o-base < p-base {
		return before
	}
	return after
}

// steps bounds how many messages a search, an insertion or a removal looks at.
func (t *orderTree) steps() uint64 {
	if t.root == nil {
		return 1
	}
	return 2 * uint64(t.root.level)
}

// find returns the message with order o, or nil.
func (t *orderTree) find(o, base streamOrder) *Message {
	m := t.root
	for m != nil && m.order != o {
		m = m.children[sideOf(o, m.order, base)]
	}
	return m
}

// floor returns the message with the highest order up to o, or nil.
func (t *orderTree) floor(o, base streamOrder) (found *Message) {
	for m := t.root; m != nil; {
		if m.order == o {
			return m
		}
		side := sideOf(o, m.order, base)
		if side == after {
			found = m
		}
		m = m.children[side]
	}
	return found
}

// first returns the message with the lowest order, or nil.
func (t *orderTree) first() *Message { return t.outermost(before) }

// last returns the message with the highest order, or nil.
func (t *orderTree) last() *Message { return t.outermost(after) }

func (t *orderTree) outermost(side int) *Message {
	m := t.root
	for m != nil && m.children[side] != nil {
		m = m.children[side]
	}
	return m
}

// insert adds m, unless there is one with its order. All orders in the tree count on from base.
func (t *orderTree) insert(m *Message, base streamOrder) bool {
	if t.find(m.order, base) != nil {
		return false
	}
	m.level = 1
	t.root = insertBelow(t.root, m, base)
	return true
}

func insertBelow(at, m *Message, base streamOrder) *Message {
	if at == nil {
		return m
	}
	side := sideOf(m.order, at.order, base)
	at.children[side] = insertBelow(at.children[side], m, base)
	return split(skew(at))
}

// remove removes m, which is in the tree.
func (t *orderTree) remove(m *Message, base streamOrder) {
	t.root = removeBelow(t.root, m, base)
	m.children = [2]*Message{}
}

func removeBelow(at, m *Message, base streamOrder) *Message {
	if at != m {
		side := sideOf(m.order, at.order, base)
		at.children[side] = removeBelow(at.children[side], m, base)
		return rebalance(at)
	}
	next := m.children[after]
	if next == nil {
		return nil // the levels leave nothing before it either
	}
	for next.children[before] != nil {
		next = next.children[before]
	}
	rest := removeBelow(m.children[after], next, base)
	next.children, next.level = [2]*Message{m.children[before], rest}, m.level
	return rebalance(next)
}

// levelOf is 0 where there is no message.
func levelOf(m *Message) uint8 {
	if m == nil {
		return 0
	}
	return m.level
}

// skew turns a message of the same level from the side before to the side after.
func skew(m *Message) *Message {
	left := m.children[before]
	if left == nil || left.level != m.level {
		return m
	}
	m.children[before], left.children[after] = left.children[after], m
	return left
}

// split lifts the middle one of three messages of the same level.
func split(m *Message) *Message {
	right := m.children[after]
	if right == nil || levelOf(right.children[after]) != m.level {
		return m
	}
	m.children[after], right.children[before] = right.children[before], m
	right.level++
	return right
}

// rebalance restores the levels above a place that a message was removed from.
func rebalance(m *Message) *Message {
	most := min(levelOf(m.children[before]), levelOf(m.children[after])) + 1
	if most >= m.level {
		return m
	}
	if m.level = most; levelOf(m.children[after]) > most {
		m.children[after].level = most
	}
	m = skew(m)
	if right := m.children[after]; right != nil {
		right = skew(right)
		if right.children[after] != nil {
			right.children[after] = skew(right.children[after])
		}
		m.children[after] = right
	}
	if m = split(m); m.children[after] != nil {
		m.children[after] = split(m.children[after])
	}
	return m
}

// forEach goes through all messages in order. f may take them apart.
func (t *orderTree) forEach(f func(*Message)) {
	var walk func(*Message)
	walk = func(m *Message) {
		if m == nil {
			return
		}
		next := m.children[after]
		walk(m.children[before])
		f(m)
		walk(next)
	}
	walk(t.root)
}
