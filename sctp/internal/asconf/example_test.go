package asconf_test

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/sctp/internal/asconf"
	"github.com/rddp-go/rddp/sctp/wire"
)

// One side asks to add an address, the other has room for two.
func Example() {
	old, added := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	asks, answers := asconf.NewRequester(100), asconf.NewResponder(100)
	addrs := &addrList{list: []netip.Addr{old}, most: 2}
	for _, a := range []netip.Addr{added, netip.MustParseAddr("192.0.2.3")} {
		_ = asks.Ask(asconf.Request{Op: asconf.Add, Addr: a})
		asks.Begin(func([]asconf.Request) netip.Addr { return old })
		c, _ := wire.AsAsconf(asks.Chunk())
		ack, _ := wire.AsAsconfAck(answers.Handle(c, true, old, 1000, addrs))
		_, outcomes, _ := asks.HandleAck(ack)
		fmt.Println(addrs.list, outcomes[0].Err)
	}
	// Output:
	// [192.0.2.1 192.0.2.2] <nil>
	// [192.0.2.1 192.0.2.2] sctp: the peer has refused to change its addresses of this host: Operation Refused Due to Resource Shortage
}
