package udp_test

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/udp"
)

// A client takes any free port; the peer answers to the port it sees.
func ExampleOpen() {
	loopback := netip.MustParseAddr("127.0.0.1")
	client, err := udp.Open(udp.Config{Local: loopback, Port: udp.AnyPort})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	server, err := udp.Open(udp.Config{Local: loopback, Port: udp.AnyPort}) // as a rule, port 9899
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	header := make([]byte, 12) // of an SCTP packet; the chunks would be a second element of Vec
	to := netip.AddrPortFrom(loopback, server.Port())
	if _, err := client.WriteBatch([]rawio.Packet{{Vec: [][]byte{header}, Remote: to}}); err != nil {
		fmt.Println(err)
		return
	}
	var in [32]rawio.Packet
	n, err := server.ReadBatch(in[:])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(n, "packet,", len(in[0].Data), "octets, from the client's port:", in[0].Remote.Port() == client.Port())
	in[0].Release()
	// Output: 1 packet, 12 octets, from the client's port: true
}
