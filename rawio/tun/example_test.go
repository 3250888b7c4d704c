//go:build linux

package tun_test

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/tun"
)

// The host becomes 10.9.0.1, the stack 10.9.0.2. Too small an MTU is refused before anything else,
// which is all this example can show on a machine that grants no privilege.
func ExampleOpen() {
	cfg := tun.Config{
		Name:  "rddp0",
		Host:  []netip.Prefix{netip.MustParsePrefix("10.9.0.1/24")},
		Addrs: []netip.Addr{netip.MustParseAddr("10.9.0.2")},
		MTU:   512,
	}
	_, err := tun.Open(cfg)
	var small *rawio.MTUError
	fmt.Println(errors.As(err, &small), small.MTU, "<", rawio.MinMTU)
	// Output: true 512 < 576
}
