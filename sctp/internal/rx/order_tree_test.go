package rx

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// Whichever orders come, and go, the tree finds each, gives the first, and stays balanced.
func TestOrderTreeStaysBalanced(t *testing.T) {
	const base = streamOrder(1<<32 - 1000) // orders wrap
	random := rand.New(rand.NewPCG(1, 2))
	for _, row := range []struct {
		name string
		next func(i int) streamOrder
	}{
		{"ascending", func(i int) streamOrder { return streamOrder(i) }},
		{"descending", func(i int) streamOrder { return streamOrder(100_000 - i) }},
		{"powers of two", func(i int) streamOrder { return 1<<(i%32) + streamOrder(i/32) }},
		{"by chance", func(int) streamOrder { return streamOrder(random.Uint32()) }},
		{"by chance, close together", func(int) streamOrder { return streamOrder(random.IntN(3000)) }},
	} {
		var tree orderTree
		var list []*Message
		for i := range 6000 {
			m := &Message{order: base + row.next(i)}
			had := tree.find(m.order, base) != nil
			must.That(t, tree.insert(m, base) != had, "%s: order %d", row.name, m.order)
			if !had {
				list = append(list, m)
			}
			if i%3 == 2 {
				k := random.IntN(len(list))
				tree.remove(list[k], base)
				list[k] = list[len(list)-1]
				list = list[:len(list)-1]
			}
			if i%500 == 0 {
				must.OK(t, tree.audit(base))
			}
		}
		most := 2 * bits.Len(uint(len(list)+1))
		check.That(t, tree.steps() <= uint64(most), "%s: %d steps for %d messages", row.name, tree.steps(), len(list))
		n, last := 0, streamOrder(0)
		for m := tree.first(); m != nil; m = tree.first() {
			must.That(t, m.order-base >= last, "%s: order %d behind %d", row.name, m.order-base, last)
			last = m.order - base
			tree.remove(m, base)
			n++
		}
		check.Equal(t, row.name+": messages taken out", n, len(list))
	}
	var empty orderTree
	check.That(t, empty.first() == nil && empty.find(7, 0) == nil && empty.steps() == 1, "an empty tree has something")
}
