package mempair

import (
	"net/netip"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// NetworkSwitch is a link whose networks can be pulled: packets to or from an address in a network
// that is out are lost, in both directions. Network i has the i-th addresses of both sides.
type NetworkSwitch struct {
	*mem.Link
	Out *[2]atomic.Bool
}

// WriteBatch sends what goes to a network that is in.
func (p NetworkSwitch) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		if p.Out[networkOf(pkts[i].Remote.Addr())].Load() {
			continue
		}
		if _, err := p.Link.WriteBatch(pkts[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(pkts), nil
}

// Prompt implements rawio.Prompter.
func (p NetworkSwitch) Prompt() rawio.Link { return p }

// networkOf is that of 10.1.0.0/16 or 10.2.0.0/16, and of fd00:1::/32 or fd00:2::/32.
func networkOf(a netip.Addr) int {
	if a.Is4() {
		return int(a.As4()[1]) - 1
	}
	return int(a.As16()[3]) - 1
}
