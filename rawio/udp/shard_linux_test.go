//go:build !rawio_portable

package udp_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/udp"
	"golang.org/x/sys/unix"
)

// Every packet comes through one shard, those of a flow through the same, and all shards end with
// the link.
func TestShardOfAFlowIsAlwaysTheSame(t *testing.T) {
	const shards, peers, each = 4, 32, 3
	l := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort, Shards: shards})
	must.Equal(t, "further queues", len(rawio.ShardsOf(l)), shards-1)
	for _, l := range []*udp.Link{l, openLink(t, udp.Config{Local: v4, Port: udp.AnyPort, Shards: 2})} {
		check.Equal(t, "what a link of several queues can", rawio.FeaturesOf(l),
			rawio.DontFragment|rawio.ECNField|rawio.Marking)
	}
	packets, ends := linktest.ReadShards(l)
	used := map[int]bool{}
	for range peers {
		peer := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort})
		shard := -1
		for i := range each {
			linktest.WriteAll(t, peer, rawio.Packet{Vec: [][]byte{linktest.Pattern(40 + i)}, Remote: addrPortOf(v4, l)})
			a := <-packets
			must.That(t, len(a.Data) == 40+i && a.Remote == addrPortOf(v4, peer), "%d octets from %v", len(a.Data),
				a.Remote)
			a.Release()
			check.That(t, i <= 0 || a.Shard == shard, "packets of one flow come through shards %d and %d", shard,
				a.Shard)
			shard = a.Shard
		}
		used[shard] = true
	}
	check.That(t, len(used) >= 2, "%d flows come through shards %v", peers, used)
	s := l.Stats()
	check.That(t, s.RxPackets == peers*each && s.RxCalls > 0 && s.RxCalls <= s.RxPackets, "%+v", s)
	l.Close()
	for range shards {
		check.Equal(t, "end of a shard", <-ends, net.ErrClosed)
	}
}

// RxOverflow counts the packets that found no room in any shard.
func TestOverflowOfEveryShardCounts(t *testing.T) {
	const shards = 4
	full := func(l *udp.Link) uint64 {
		a := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort, NoOffload: true})
		out := make([]rawio.Packet, 64)
		for i := range out {
			out[i] = rawio.Packet{Vec: [][]byte{linktest.Pattern(32 << 10)}, Remote: addrPortOf(v4, l)}
		}
		before := l.Stats().RxOverflow
		// one flow, so one shard, and far more than it holds
		for left := 4 + l.ReceiveBuffer()/(256<<10); left > 0 && l.Stats().RxOverflow == before; left-- {
			linktest.WriteAll(t, a, out...)
		}
		return l.Stats().RxOverflow - before
	}
	for _, n := range []int{1, shards} {
		l := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort, Shards: n})
		for flow := range 3 * n {
			must.That(t, full(l) > 0, "%d shards: flow %d is more than a shard holds, and RxOverflow stays %d", n,
				flow, l.Stats().RxOverflow)
		}
	}
}

// The port of a link of several shards is as taken as any other's, on either side.
func TestShardsDoNotShareWithOthers(t *testing.T) {
	for _, shards := range [][2]int{{4, 1}, {4, 4}, {1, 4}} {
		l := openLink(t, udp.Config{Local: v4, Port: udp.AnyPort, Shards: shards[0]})
		other, err := udp.Open(udp.Config{Local: v4, Port: int(l.Port()), Shards: shards[1]})
		check.That(t, errors.Is(err, syscall.EADDRINUSE), "%d shards beside %d: %v, %v", shards[1], shards[0], other,
			err)
	}
}

// Another program of the same user may bind a socket to the port of a link of several shards. It
// gets no packet, and the shards get all, as before.
func TestForeignSocketGetsNothingOfShards(t *testing.T) {
	const shards, peers = 3, 64
	for _, local := range []netip.Addr{v4, netip.IPv6Loopback()} {
		l := openLink(t, udp.Config{Local: local, Port: udp.AnyPort, Shards: shards})
		packets, ends := linktest.ReadShards(l)
		cfg := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			return errors.Join(
				c.Control(func(fd uintptr) {
					err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT,
						1)
				}), err)
		}}
		foreign := must.Get(cfg.ListenPacket(t.Context(), "udp", netip.AddrPortFrom(local, l.Port()).String()))(t)
		defer foreign.Close()
		used := map[int]int{}
		for range peers {
			peer := openLink(t, udp.Config{Local: local, Port: udp.AnyPort})
			linktest.WriteAll(t, peer, rawio.Packet{Vec: [][]byte{linktest.Pattern(40)}, Remote: addrPortOf(local, l)})
			a := <-packets
			used[a.Shard]++
			a.Release()
		}
		foreign.SetReadDeadline(time.Unix(1, 0))
		n, _, err := foreign.ReadFrom(make([]byte, 100))
		check.That(t, n == 0 && errors.Is(err, os.ErrDeadlineExceeded), "%v: a foreign socket gets %d octets, %v",
			local, n, err)
		check.Equal(t, "shards that get packets", len(used), shards)
		l.Close()
		for range shards {
			<-ends
		}
	}
}

func TestShardLimits(t *testing.T) {
	for _, n := range []int{-1, rawio.MaxShards + 1} {
		_, err := udp.Open(udp.Config{Local: v4, Port: udp.AnyPort, Shards: n})
		check.That(t, err != nil, "%d shards are accepted", n)
	}
}
