package rddplayers

import (
	"testing"

	"github.com/google/gopacket"

	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/rddplayers"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzLayers decodes a message without the safety net of gopacket: nothing may panic, what the
// stack makes of the same octets is the same, and they are serialized again as they were.
//
//fuzz:covers ./rawio/rddplayers
func FuzzLayers(f *testing.F) {
	for op := range byte(16) {
		f.Add(uint32(segment), append([]byte{0, 1, 0xC1, 0x40 | op}, make([]byte, 20)...))
		f.Add(uint32(segment), append([]byte{0, 1, 0x41, 0x40 | op}, make([]byte, 80)...))
		f.Add(uint32(control), append([]byte{0, 1, 0, op}, make([]byte, 9)...))
	}
	term := rdmap.Terminate{HasLength: true, HasDDP: true, HasRDMA: true}
	f.Add(uint32(segment), append([]byte{0, 1, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0},
		term.Append(nil)...))
	for _, b := range corpus.Packets() {
		p := must.Get(wire.ParsePacket(b))(f)
		it := p.Chunks()
		for c, ok := it.Next(); ok; c, ok = it.Next() {
			if d, err := wire.AsData(c); err == nil && d.B() && d.E() &&
				(d.PPID() == uint32(segment) || d.PPID() == uint32(control)) {
				f.Add(d.PPID(), d.Payload())
			}
		}
	}
	f.Fuzz(func(t *testing.T, ppid uint32, message []byte) {
		first := rddplayers.LayerTypeSegmentChunk
		if ppid == control {
			first = rddplayers.LayerTypeControl
		}
		p := gopacket.NewPacket(message, first, gopacket.DecodeOptions{SkipDecodeRecovery: true})
		d, _ := p.Layer(rddplayers.LayerTypeDDP).(*rddplayers.DDP)
		if d != nil {
			sameDDP(t, d, message[2:])
		}
		if p.ErrorLayer() != nil {
			return
		}
		if d != nil {
			sameRDMAP(t, d, p.Layer(rddplayers.LayerTypeRDMAP).(*rddplayers.RDMAP))
		}
		var list []gopacket.SerializableLayer
		for _, l := range p.Layers() {
			list = append(list, l.(gopacket.SerializableLayer))
		}
		b := gopacket.NewSerializeBuffer()
		must.OK(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{}, list...))
		must.Slice(t, "serialized", b.Bytes(), message)
	})
}
