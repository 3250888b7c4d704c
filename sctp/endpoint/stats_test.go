package endpoint_test

import (
	"fmt"
	"math/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/endpointtest"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// An address may set up so many associations and no more; the next is refused by ABORT with Out of
// Resource until one of them ends, and others are not concerned.
func TestAssociationsOfOneSource(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{MaxPerSource: 2})
	must.OK(t, b.EP.Listen(localPort, nil))
	other := netip.MustParseAddrPort("10.0.0.10:0")
	first, second := b.Establish(peerAddr, 1), b.Establish(peerAddr, 2)
	b.EP.Refresh(second) // as on EventUp
	must.That(t, first != nil && second != nil && b.Establish(peerAddr, 3) == nil, "not two of them")
	check.That(t, b.Establish(other, 1) != nil, "another source was refused")
	b.EP.Remove(0, first)
	check.That(t, b.Establish(peerAddr, 3) != nil, "refused although one has ended")
	s := b.EP.Stats()
	check.That(t, s.AssocsRefused == 1 && s.AssocsAccepted == 4, "%d accepted, %d refused", s.AssocsAccepted,
		s.AssocsRefused)
}

// A network of IPv6 has room for a few hosts, not for as many as it has addresses.
func TestAssociationsOfOneNetwork(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{MaxPerSource: 2})
	must.OK(t, b.EP.Listen(localPort, nil))
	accepted := func(format string, hosts int) (n int) {
		for i := range hosts {
			if b.Establish(netip.MustParseAddrPort(fmt.Sprintf(format, i+1)), 1) != nil {
				n++
			}
		}
		return n
	}
	check.Equal(t, "of one /64", accepted("[2001:db8::%x]:0", 5), 2)
	check.Equal(t, "of its /56, two more", accepted("[2001:db8:0:%x::1]:0", 20), 2)
	check.Equal(t, "of its /48, two more", accepted("[2001:db8:0:%x00::1]:0", 20), 2)
	check.Equal(t, "of its /32, two more", accepted("[2001:db8:%x::1]:0", 20), 2)
	check.Equal(t, "of another", accepted("[2001:db9::%x]:0", 5), 2)
}

// A flood gets so many answers in a second, about, and no more: one address, or all together. Which
// of its packets get one is left to chance, so a host whose address others forge has its turn too,
// and what does not concern a limit has its answers.
func TestAnswersOfOneSource(t *testing.T) {
	const limit, flood, seconds = 160, 1600, 20
	for _, row := range []struct {
		name   string
		cfg    endpoint.Config
		others bool // have all their answers
		size   int  // octets of an INIT
		rest   bool // packets that set up nothing are part of it
		known  bool // there is an association with that address and port
		most   int
	}{
		{"of one address", endpoint.Config{MaxAnswers: limit}, true, 100, true, false, limit},
		{"of one address with an association", endpoint.Config{MaxAnswers: limit}, true, 100, false, true, limit},
		{"of all", endpoint.Config{MaxSetups: limit}, false, 100, true, false, limit},
		{"of all, INITs full of addresses", endpoint.Config{MaxSetups: limit}, false, 6000, false, false, limit / 24},
	} {
		rng := rand.New(rand.NewSource(5))
		draws := 0
		row.cfg.AnswerKey, row.cfg.Chance = 0x0123456789abcdef, func() uint64 { draws++; return rng.Uint64() }
		b := endpointtest.New(t, row.cfg)
		must.OK(t, b.EP.Listen(localPort, nil))
		other := netip.MustParseAddrPort("10.0.0.10:0")
		must.That(t, !row.known || b.Establish(peerAddr, peerPort) != nil, "no association")
		stale := b.Stale()
		var list []byte
		for i := 0; len(list) < row.size; i++ {
			list = wire.AppendAddressParam(list, netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}))
		}
		init := sctptest.Packet(peerPort, localPort, 0, sctptest.InitLike(wire.ChunkInit, goodInit, list))
		pkts := [][]byte{init, sctptest.Packet(peerPort, localPort, 7, wire.AppendHeartbeat(nil, []byte("x"))), stale}
		if !row.rest {
			pkts = pkts[:1]
		}
		answers, turns, others := 0, 0, 0
		for i := range flood * seconds {
			b.Now = b.Now.Add(time.Second / flood)
			list, a := b.ReceiveFrom(peerAddr, hostAddr, pkts[i%len(pkts)])
			if answers += len(list); a != nil { // which answers
				answers++
			}
			if i%(flood/2) == flood/4 { // the host that has the address
				list, _ = b.ReceiveFrom(peerAddr, hostAddr,
					sctptest.Packet(peerPort+1, localPort, 0, sctptest.InitLike(wire.ChunkInit, goodInit)))
				turns += len(list)
			}
			if i%(flood/4) == 0 {
				list, _ = b.ReceiveFrom(other, hostAddr, init)
				others += len(list)
			}
		}
		check.That(t, answers >= row.most*seconds*3/4 && answers <= row.most*seconds*3/2,
			"%s: %d answers in %d s, want about %d a second", row.name, answers, seconds, row.most)
		check.That(t, turns != 0 && turns != 2*seconds, "%s: the host itself has %d answers to %d INITs", row.name,
			turns, 2*seconds)
		check.That(t, (!row.others || others == 4*seconds) && draws != 0, "%s: others have %d answers, %d draws",
			row.name, others, draws)
	}
}
