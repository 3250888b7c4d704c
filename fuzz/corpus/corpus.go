// Package corpus holds SCTP packets that were seen on real links: of associations between this
// stack and libusrsctp, and of sessions between its own tools. They seed the fuzz targets.
//
// Package extract makes them from captures.
package corpus

import (
	_ "embed"
	"encoding/hex"
	"strings"
)

//go:embed packets.txt
var packets string

// Packets returns the packets, common header first, with the checksums that they had.
func Packets() [][]byte {
	var list [][]byte
	for line := range strings.Lines(packets) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		b, err := hex.DecodeString(line)
		if err != nil {
			panic("corpus: packets.txt: " + err.Error())
		}
		list = append(list, b)
	}
	return list
}
