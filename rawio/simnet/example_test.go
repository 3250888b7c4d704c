package simnet_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// A world is a loop: go to the next event, hand out what arrived, send what that caused.
func Example() {
	a, b := netip.MustParseAddrPort("10.0.0.1:0"), netip.MustParseAddrPort("10.0.0.2:0")
	net := simnet.New(1)
	net.Connect(a.Addr(), b.Addr(), simnet.Params{Delay: 10 * time.Millisecond, Rate: 1e6})

	ping := make([]byte, 980) // 1000 octets with the IP header: 1 ms at 1 MB/s
	net.Send(0, &rawio.Packet{Vec: [][]byte{ping}, Local: a, Remote: b})

	for now := net.NextArrival(); now != rawio.Never; now = net.NextArrival() {
		for {
			to, p, ok := net.Deliver(now)
			if !ok {
				break
			}
			fmt.Println(time.Duration(now), len(p.Data), "octets to", to)
			if to == b.Addr() {
				pong := rawio.Packet{Vec: [][]byte{p.Data[:480]}, Local: p.Local, Remote: p.Remote}
				net.Send(now, &pong)
			}
			p.Release()
		}
	}
	fmt.Println(net.Outstanding(), "buffers left")
	// Output:
	// 11ms 980 octets to 10.0.0.2
	// 21.5ms 480 octets to 10.0.0.1
	// 0 buffers left
}
