package raw_test

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
)

// A program that may run without privilege, or off Linux, takes the UDP link where there is no raw
// one. Both are a rawio.Link.
func ExampleOpen() {
	loopback := netip.MustParseAddr("127.0.0.1")
	var link rawio.Link
	link, err := raw.Open(raw.Config{Local: loopback, Ports: []uint16{47047}})
	if err != nil { // e.g. a *rawio.PermissionError or a *rawio.UnsupportedError
		link, err = udp.Open(udp.Config{Local: loopback, Port: udp.AnyPort})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer link.Close()

	// From SCTP port 47047 to SCTP port 47047 of the same link: a common header alone.
	header := []byte{0xb7, 0xc7, 0xb7, 0xc7, 0, 0, 0, 0, 0, 0, 0, 0}
	self := link.(rawio.Addresser).LocalAddrs()[0]
	if _, err := link.WriteBatch([]rawio.Packet{{Vec: [][]byte{header}, Remote: self}}); err != nil {
		fmt.Println(err)
		return
	}
	var in [8]rawio.Packet
	if _, err := link.ReadBatch(in[:]); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(in[0].Data), "octets from", in[0].Remote.Addr())
	in[0].Release()
	// Output: 12 octets from 127.0.0.1
}
