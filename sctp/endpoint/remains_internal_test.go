package endpoint

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// What is left of associations is bounded, in number and in time.
func TestRemainsAreBounded(t *testing.T) {
	var table remainsTable
	key := func(n int) tagKey { return tagKey{tag: uint32(n)} }
	for n := range maxRemains + 10 {
		table.add(key(n), new(assoc.Remains), 1000)
	}
	check.Equal(t, "kept", len(table.byTag), maxRemains)
	check.That(t, table.byTag[key(9)] == nil && table.byTag[key(10)] != nil, "it is not the oldest that are forgotten")
	check.Equal(t, "memory", table.memorySize(), maxRemains*assoc.RemainsOctets)
	table.expire(999)
	check.Equal(t, "kept before their time is over", len(table.byTag), maxRemains)
	table.expire(1000)
	check.Equal(t, "kept afterwards", len(table.byTag)+table.memorySize(), 0)

	table.add(key(1), new(assoc.Remains), 10)
	table.add(key(1), new(assoc.Remains), 20) // the same tag again
	table.expire(10)
	check.That(t, table.byTag[key(1)] != nil, "the newer one has gone with the older")
}
