package rddplayers_test

import (
	"encoding/hex"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rddp-go/rddp/rawio/rddplayers"
)

// An SCTP packet with an RDMA Write and the Send that tells of it.
func Example() {
	rddplayers.Enable()
	packet, err := hex.DecodeString("13b3c5010badcafe00000000" + // SCTP header
		"00070025000000010000000000000010" + "0004" + "c14000001234" + "0000000000001000" + "68656c6c6f" + "000000" +
		"00070024000000020000000000000010" + "0005" + "414300000000" + "000000000000000100000000")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := gopacket.NewPacket(packet, layers.LayerTypeSCTP, gopacket.Default)
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *rddplayers.SegmentChunk:
			fmt.Print("DDP-SSN ", l.SSN)
		case *rddplayers.DDP:
			if l.Tagged {
				fmt.Printf(", STag %#x, TO %#x", l.STag, l.TO)
			} else {
				fmt.Printf(", queue %d, MSN %d", l.QN, l.MSN)
			}
		case *rddplayers.RDMAP:
			fmt.Printf(", %v of %d octets\n", l.Opcode, len(l.Payload))
		}
	}
	// Output:
	// DDP-SSN 4, STag 0x1234, TO 0x1000, Write of 5 octets
	// DDP-SSN 5, queue 0, MSN 1, Send of 0 octets
}
