package assoc_test

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

var udp6 = [2]netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:9899"),
	netip.MustParseAddrPort("[2001:db8::2]:9899")}

// cutFrom6 is what the link over UDP says of IPv6 where the route takes 1500 octets: 1452 of SCTP
// go whole.
const cutFrom6 = 1456

// Over a link that cuts only what is longer than the route takes, a chunk that has its TSN when the
// MTU falls gets through all the same where that can be, without any word from the network; and
// where it cannot the end says why.
func TestMTUFallsWhereTheLinkDoesNotCutEveryPacket(t *testing.T) {
	for _, row := range []struct {
		name     string
		addrs    [2]netip.AddrPort
		link, to int
		cutFrom  int
		sizes    []int // of the messages under way
		quote    int
		arrives  bool
		within   time.Duration
	}{
		{"IPv6, a full packet", udp6, 1500, 1400, cutFrom6, []int{1400}, 0, true, 10 * time.Second},
		{"IPv6, a packet that is a little too long", udp6, 1500, 1400, cutFrom6, []int{1340}, 0, true, 10 * time.Second},
		{"IPv6, to the least that it carries", udp6, 1500, 1280, cutFrom6, []int{1400}, 0, true, 10 * time.Second},
		{"IPv6, a window of full packets", udp6, 1500, 1400, cutFrom6, []int{200_000}, 0, true, 30 * time.Second},
		{"IPv6, reported", udp6, 1500, 1400, cutFrom6, []int{20_000}, 64, true, 10 * time.Second},
		{"IPv6, the route takes 9000 octets", udp6, 9000, 1400, 8956, []int{1500, 1500, 8000}, 0, true, 20 * time.Second},
		{"IPv6, short messages beside it", udp6, 1500, 1400, cutFrom6, []int{1400, 100, 100, 1400, 100}, 0, true, 10 * time.Second},
		{"IPv6, nothing is cut", udp6, 1500, 1400, -1, []int{1400}, 0, false, time.Minute},
		{"IPv4, the limit is below IP", sctptest.UDP, 1500, 1400, -1, []int{1400}, 0, false, time.Minute},
		{"IPv4, a link that cuts anything", sctptest.IPv4, 1500, 1400, 0, []int{20_000}, 0, true, 10 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, row.addrs, row.link, simnet.Params{})
			r.Hosts[0].CutFrom = row.cutFrom
			a, _ := r.Join(nil, nil)
			want := r.Talk(0, 10, 30_000)
			r.Run(time.Second)
			r.WantMTU("before", 0, row.link)
			r.SetMTU(row.to, row.quote)
			n := len(r.Sent)
			for _, size := range row.sizes {
				want = append(want, r.Send(0, size)...)
			}
			all := func() bool { return r.Hosts[1].Received.Len() == len(want) }
			must.Equal(t, "all has arrived in time", r.RunUntil(r.Now.Add(row.within), all), row.arrives)
			if !row.arrives {
				err, down := r.Hosts[0].DownErr()
				var stuck *assoc.StuckError
				must.That(t, down && errors.As(err, &stuck), "down %v: %v", down, err)
				check.That(t, stuck.Path == row.addrs[1] && stuck.Packet == 12+16+1400 &&
					stuck.MTU == row.to-28-20*(row.addrs[0].Addr().BitLen()/128), "%+v", stuck)
				check.That(t, errors.Is(err, syscall.ETIMEDOUT) && errors.Is(err, syscall.EMSGSIZE) &&
					stuck.Timeout(), "%v", err)
				return
			}
			must.Slice(t, "octets", r.Hosts[1].Received.Bytes(), want)
			var last []sctptest.Capture
			for _, s := range r.Sent[n:] {
				if s.From != 0 || s.Fragment == 0 || row.cutFrom == 0 {
					continue
				}
				if k := len(last); k > 0 {
					check.That(t, s.At.Sub(last[k-1].At) >= time.Second, "two packets to be cut within %v",
						s.At.Sub(last[k-1].At))
				}
				check.That(t, s.Fragment == 1280 && len(s.Pkt) >= row.cutFrom, "%d octets to be cut to %d",
					len(s.Pkt), s.Fragment)
				last = append(last, s)
			}
			// What has got through in fragments says nothing of longer packets, and nothing of the
			// peer's: what comes now is as long as passes.
			r.Run(20 * time.Second)
			r.WantMTU("after", 0, min(row.link, row.to))
			k := len(r.Sent)
			want = append(want, r.Talk(0, 10, 30_000)...)
			r.Run(time.Second)
			must.Slice(t, "octets, with those behind it", r.Hosts[1].Received.Bytes(), want)
			for _, s := range r.Sent[k:] {
				check.That(t, s.Fragment == 0, "%v is cut although it was not sent before", sctptest.ChunkTypes(s.Pkt))
			}
			check.Equal(t, "state", a.State(), assoc.Established)
		})
	}
}

// A peer that answers no more is not said to be there, whatever the MTU was.
func TestSilentPeerIsNotStuck(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.UDP, 1500, simnet.Params{})
	r.Hosts[0].CutFrom = -1
	r.Join(nil, nil)
	r.Talk(0, 3, 30_000)
	r.SetMTU(1400, 0)
	r.Send(0, 1400)
	r.Run(5 * time.Second)
	r.WantMTU("after", 0, 1400)
	for i := range r.Hosts {
		r.Path(i, func(p *simnet.Params) { p.Loss = 1 })
	}
	r.Run(30 * time.Minute)
	err, down := r.Hosts[0].DownErr()
	check.That(t, down && err == assoc.ErrTimeout, "down %v: %v", down, err)
}

// A COOKIE ECHO that is too long for what a path is known to carry goes whole at first, and each
// second time so that the link cuts it.
func TestLongCookieGetsThroughALinkThatDoesNotCutEveryPacket(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Host.CutFrom = 1456
	l.Host.Reboot(7, rawio.DontFragment)
	l.Connect(quiet)
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
		sctptest.InitAckChunk(l.PeerTag, l.TSN, make([]byte, 1300))))
	for try := range 4 {
		l.Host.Batch.Reset()
		l.A.PollTransmit(l.Now, l.Host.Batch)
		p := l.Host.Batch.Pkts
		want, least := 12+4+1300, 1220
		if try%2 == 1 {
			want, least = 1456, 576
		}
		must.That(t, len(p) == 1 && p[0].Len() == want && p[0].Fragment == least, "try %d: %d packets, of %d octets",
			try, len(p), p[0].Len())
		types := sctptest.ChunkTypes(slices.Concat(p[0].Vec...))
		check.That(t, types[0] == wire.ChunkCookieEcho && len(types) == 1+try%2, "try %d: %v", try, types)
		l.Now = l.A.NextTimeout()
		l.A.HandleTimeout(l.Now)
	}
}
