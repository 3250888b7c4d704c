// Command extract writes the corpus: of all SCTP packets in captures it keeps the shortest one of
// each shape.
//
//	KEEP=1 test/interop/run.sh; KEEP=1 test/netns.sh; KEEP=messages.pcapng test/wireshark.sh
//	go run ./fuzz/corpus/extract CAPTURES... >fuzz/corpus/packets.txt
//
// A capture is a pcap or pcapng file.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rddp-go/rddp/sctp/wire"
)

// encapsulation is the UDP port of SCTP (RFC 6951).
const encapsulation = 9899

// Tcpdump's link type for "any" interface, 276, of which gopacket keeps one octet, and the length
// of its header.
const (
	linuxSLL2 = layers.LinkType(276 & 0xff)
	lenSLL2   = 20
)

// longest is the longest packet kept, in octets: a fuzzer makes little of much user data.
const longest = 700

func main() {
	shapes := map[string][]byte{}
	for _, path := range os.Args[1:] {
		if err := readCapture(path, shapes); err != nil {
			fmt.Fprintf(os.Stderr, "extract: %s: %v\n", path, err)
			os.Exit(1)
		}
	}
	var list [][]byte
	for _, b := range shapes {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b []byte) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(a, b))
	})
	fmt.Println("# SCTP packets of real links, one of each shape; see package extract.")
	for _, b := range list {
		fmt.Printf("%x\n", b)
	}
}

type source interface {
	gopacket.PacketDataSource
	LinkType() layers.LinkType
}

func openCapture(f io.Reader) (source, error) {
	b := bufio.NewReader(f)
	magic, err := b.Peek(4)
	if err != nil {
		return nil, err
	}
	if string(magic) == "\x0a\x0d\x0d\x0a" {
		return pcapgo.NewNgReader(b, pcapgo.DefaultNgReaderOptions)
	}
	return pcapgo.NewReader(b)
}

func readCapture(path string, shapes map[string][]byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	src, err := openCapture(f)
	if err != nil {
		return err
	}
	for {
		b, info, err := src.ReadPacketData()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // the program was killed
			return nil
		}
		if err != nil {
			return err
		}
		if info.CaptureLength < info.Length {
			continue
		}
		var first gopacket.Decoder = src.LinkType()
		if src.LinkType() == linuxSLL2 && len(b) > lenSLL2 {
			b, first = b[lenSLL2:], layers.LinkTypeRaw
		}
		if pkt := sctpPacketIn(gopacket.NewPacket(b, first, gopacket.DecodeOptions{Lazy: true})); pkt != nil {
			keepShortest(shapes, pkt)
		}
	}
}

// sctpPacketIn returns the SCTP packet in an IP packet, or nil.
func sctpPacketIn(p gopacket.Packet) []byte {
	if u, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP); ok {
		if u.SrcPort == encapsulation || u.DstPort == encapsulation {
			return u.Payload
		}
		return nil
	}
	if s, ok := p.Layer(layers.LayerTypeSCTP).(*layers.SCTP); ok {
		return append(slices.Clone(s.Contents), s.Payload...)
	}
	return nil
}

// keepShortest keeps a packet that is the shortest of its shape.
func keepShortest(shapes map[string][]byte, b []byte) {
	p, err := wire.ParsePacket(b)
	if err != nil || !p.ChecksumOK() || len(b) > longest {
		return
	}
	key := packetShape(p)
	if old, ok := shapes[key]; !ok || len(b) < len(old) {
		shapes[key] = slices.Clone(b)
	}
}

// packetShape says what is in a packet, apart from numbers and user data. Chunks of one kind that
// follow one another count as one.
func packetShape(p wire.Packet) (s string) {
	last := ""
	it := p.Chunks()
	for c, ok := it.Next(); ok; c, ok = it.Next() {
		if k := chunkKind(c); k != last {
			s, last = s+k+" ", k
		}
	}
	return s
}

func chunkKind(c wire.Chunk) string {
	k := fmt.Sprintf("%d/%x", c.Type(), c.Flags())
	if d, err := wire.AsData(c); err == nil {
		return k + contentShape(d)
	}
	if i, err := wire.AsInit(c); err == nil {
		ps := i.Params()
		for p, ok := ps.Next(); ok; p, ok = ps.Next() {
			k += fmt.Sprintf(",%x", p.Type())
		}
	}
	if s, err := wire.AsSack(c); err == nil {
		return fmt.Sprint(k, min(s.NumGaps(), 2), min(s.NumDups(), 2))
	}
	var causes wire.Causes
	if a, err := wire.AsAbort(c); err == nil {
		causes = a.Causes()
	} else if e, err := wire.AsError(c); err == nil {
		causes = e.Causes()
	}
	for e, ok := causes.Next(); ok; e, ok = causes.Next() {
		k += fmt.Sprintf(",%d", e.Code())
	}
	return k
}

// contentShape is what DDP has in its control octets or function code; another PPID says nothing.
func contentShape(d wire.Data) string {
	b := d.Payload()
	switch {
	case d.PPID() == 16 && len(b) >= 4:
		return fmt.Sprintf(" segment %x", b[2:4])
	case d.PPID() == 17 && len(b) >= 4:
		return fmt.Sprintf(" control %x", b[2:4])
	}
	return ""
}
