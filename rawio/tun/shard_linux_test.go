package tun_test

import (
	"encoding/binary"
	"net"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/tun"
)

// A device of several queues spreads flows over them, and gives all packets of one to the queue by
// which those of the other direction leave; all queues end with the link.
func TestQueueOfAFlowIsTheSameInBothDirections(t *testing.T) {
	const shards, flows, each = 4, 16, 3
	ns := newRouter(t)
	a := openLink(t, ns, tun.Config{Host: host1[:1], Addrs: addr1[:1]})
	b := openLink(t, ns, tun.Config{Host: host2[:1], Addrs: addr2[:1], Shards: shards})
	must.Equal(t, "further queues", len(rawio.ShardsOf(b)), shards-1)
	for _, l := range []*tun.Link{b, openLink(t, ns, tun.Config{Addrs: addr1[1:], Shards: 2})} {
		must.Equal(t, "what it can: who waits does not know for which of them", l.Features(),
			rawio.DontFragment|rawio.ECNField|rawio.Marking)
	}
	packets, ends := linktest.ReadShards(b)
	used := map[int]bool{}
	for f := range flows {
		there, back := linktest.Pattern(40), linktest.Pattern(40)
		for i, p := range []uint16{uint16(1000 + f), 2000} {
			binary.BigEndian.PutUint16(there[2*i:], p)
			binary.BigEndian.PutUint16(back[2-2*i:], p)
		}
		linktest.WriteAll(t, b, rawio.Packet{Vec: [][]byte{back}, Remote: addrPortOf(addr1[0])})
		linktest.ReadPackets(t, a, 1)[0].Release()
		shard := -1
		for i := range each {
			linktest.WriteAll(t, a, rawio.Packet{Vec: [][]byte{there}, Remote: addrPortOf(addr2[0])})
			got := <-packets
			must.Equal(t, "the packet", string(got.Data), string(there))
			got.Release()
			check.That(t, i <= 0 || got.Shard == shard, "packets of flow %d come through shards %d and %d", f, shard,
				got.Shard)
			shard = got.Shard
			used[shard] = true
		}
	}
	check.That(t, len(used) == shards, "%d flows with consecutive ports come through shards %v", flows, used)
	b.Close()
	for range shards {
		check.Equal(t, "end of a shard", <-ends, net.ErrClosed)
	}
}
