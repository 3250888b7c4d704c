package rawio_test

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
)

// A consumer that keeps payload beyond the packet's handling takes its own reference.
func ExampleBuf_Retain() {
	pool := rawio.NewPool(2048, 16)
	buf := pool.Get()
	p := rawio.Packet{Buf: buf, Data: buf.B[:copy(buf.B, "an SCTP packet")]}

	kept := p.Data[3:7]
	p.Buf.Retain()
	p.Release() // the packet is handled
	fmt.Printf("%s, %d buffer in use\n", kept, pool.Outstanding())

	buf.Release() // the payload is no longer needed
	fmt.Println(pool.Outstanding(), "buffers in use")
	// Output:
	// SCTP, 1 buffer in use
	// 0 buffers in use
}

func ExampleOverhead() {
	const mtu = 1500 // IP level
	fmt.Println(mtu - rawio.Overhead(netip.MustParseAddrPort("192.0.2.1:0")))
	fmt.Println(mtu - rawio.Overhead(netip.MustParseAddrPort("192.0.2.1:9899")))
	fmt.Println(mtu - rawio.Overhead(netip.MustParseAddrPort("[2001:db8::1]:0")))
	// Output:
	// 1480
	// 1472
	// 1460
}
