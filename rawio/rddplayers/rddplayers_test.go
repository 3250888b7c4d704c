package rddplayers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
)

// taggedSegment and untagged are DDP segments in their chunks, made by the stack's encoders.
func taggedSegment(ssn uint16, op rdmap.Opcode, stag ddp.STag, to uint64, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, ssn)
	var h [ddp.TaggedHeaderLen]byte
	ddp.Tagged{Last: true, Rsvd: rdmap.Control(op), STag: stag, TO: to}.Put(h[:])
	return append(append(b, h[:]...), payload...)
}

func untaggedSegment(ssn uint16, op rdmap.Opcode, qn, msn, mo uint32, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, ssn)
	var h [ddp.UntaggedHeaderLen]byte
	ddp.Untagged{Last: true, Rsvd: [5]byte{rdmap.Control(op), 0, 0, 0x11, 0x22}, QN: qn, MSN: msn, MO: mo}.Put(h[:])
	return append(append(b, h[:]...), payload...)
}

func readRequest() []byte {
	var b [rdmap.ReadRequestLen]byte
	(&rdmap.ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 3, SrcSTag: 4, SrcTO: 5}).Put(&b)
	return b[:]
}

func atomicRequest(op rdmap.AtomicOp) []byte {
	var b [rdmap.AtomicRequestLen]byte
	(&rdmap.AtomicRequest{ID: 1, STag: 2, TO: 3, Op: op}).Put(&b)
	return b[:]
}

func atomicResponse() []byte {
	var b [rdmap.AtomicResponseLen]byte
	(&rdmap.AtomicResponse{ID: 1, Original: 2}).Put(&b)
	return b[:]
}

// wholeTerminate quotes a tagged header, or an untagged one and a Read Request.
func wholeTerminate(read bool) []byte {
	t := rdmap.Terminate{Layer: rdmap.LayerRDMA, EType: rdmap.RemoteProtection, Code: 4, HasLength: true,
		HasDDP: true, SegLength: 46}
	copy(t.DDP[:], taggedSegment(0, rdmap.OpWrite, 7, 8)[2:])
	if read {
		t.HasRDMA = true
		copy(t.DDP[:], untaggedSegment(0, rdmap.OpReadRequest, 1, 1, 0)[2:])
		copy(t.RDMA[:], readRequest())
	}
	return t.Append(nil)
}

const (
	segment = layers.SCTPPayloadProtocol(layers.SCTPPayloadDDPSegment)
	control = layers.SCTPPayloadProtocol(layers.SCTPPayloadDDPStream)
)

// TestLayersAreDecodedAndSerializedToTheSameOctets decodes what the stack encodes, and serializes
// it again to the same octets.
func TestLayersAreDecodedAndSerializedToTheSameOctets(t *testing.T) {
	v := uint64(0x1122334455667788)
	unt := func(op Opcode) *RDMAP { return &RDMAP{Version: 1, Opcode: op, InvalidateSTag: 0x1122} }
	header := func(op Opcode, set func(r *RDMAP)) *RDMAP {
		r := unt(op)
		set(r)
		return r
	}
	for _, tt := range []struct {
		name    string
		ppid    layers.SCTPPayloadProtocol
		message []byte
		want    []gopacket.Layer // without contents and payload
	}{
		{"RDMA Write", segment, taggedSegment(7, rdmap.OpWrite, 0xA1, 1<<40, 1, 2, 3), []gopacket.Layer{
			&SegmentChunk{SSN: 7}, &DDP{Tagged: true, Last: true, Version: 1, RsvdULP: []byte{0x40}, STag: 0xA1,
				TO: 1 << 40},
			&RDMAP{Version: 1, Opcode: OpWrite}}},
		{"RDMA Read Response without octets", segment, taggedSegment(65535, rdmap.OpReadResponse, 0xA1, 9),
			[]gopacket.Layer{
				&SegmentChunk{SSN: 65535}, &DDP{Tagged: true, Last: true, Version: 1, RsvdULP: []byte{0x42}, STag: 0xA1,
					TO: 9},
				&RDMAP{Version: 1, Opcode: OpReadResponse}}},
		{"Send with Invalidate", segment, untaggedSegment(1, rdmap.OpSendInv, 0, 5, 6, 9), []gopacket.Layer{
			&SegmentChunk{SSN: 1}, aDDP(0x44, 0, 5, 6), unt(OpSendInvalidate)}},
		{"reserved bits and versions are kept", segment, []byte{0, 1, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2},
			[]gopacket.Layer{
				&SegmentChunk{SSN: 1}, &DDP{Tagged: true, Last: true, Reserved: 15, Version: 3, RsvdULP: []byte{0xFF},
					STag: 1, TO: 2},
				&RDMAP{Version: 3, Reserved: 3, Opcode: 15}}},
		{"RDMA Read Request", segment, untaggedSegment(1, rdmap.OpReadRequest, 1, 5, 0, readRequest()...),
			[]gopacket.Layer{
				&SegmentChunk{SSN: 1}, aDDP(0x41, 1, 5, 0),
				header(OpReadRequest, func(r *RDMAP) { r.ReadRequest = &ReadRequest{1, 2, 3, 4, 5} })}},
		{"Immediate Data", segment, untaggedSegment(1, rdmap.OpImmediate, 0, 5, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
			0x77,
			0x88), []gopacket.Layer{
			&SegmentChunk{SSN: 1}, aDDP(0x48, 0, 5, 0), header(OpImmediate, func(r *RDMAP) { r.Immediate = &v })}},
		{"FetchAdd", segment, untaggedSegment(1, rdmap.OpAtomicRequest, 1, 5, 0, atomicRequest(rdmap.FetchAdd(9))...),
			[]gopacket.Layer{
				&SegmentChunk{SSN: 1}, aDDP(0x4A, 1, 5, 0),
				header(OpAtomicRequest, func(r *RDMAP) {
					r.AtomicRequest = &AtomicRequest{ID: 1, STag: 2, TO: 3, Data: 9, CompareMask: 1<<64 - 1}
				})}},
		{"CmpSwap", segment, untaggedSegment(1, rdmap.OpAtomicRequest, 1, 5, 0, atomicRequest(rdmap.CmpSwap(8, 9))...),
			[]gopacket.Layer{
				&SegmentChunk{SSN: 1}, aDDP(0x4A, 1, 5, 0),
				header(OpAtomicRequest, func(r *RDMAP) {
					r.AtomicRequest = &AtomicRequest{Operation: 2, ID: 1, STag: 2, TO: 3, Data: 9, Mask: 1<<64 - 1,
						Compare: 8, CompareMask: 1<<64 - 1}
				})}},
		{"Atomic Response", segment, untaggedSegment(1, rdmap.OpAtomicResponse, 3, 5, 0, atomicResponse()...),
			[]gopacket.Layer{
				&SegmentChunk{SSN: 1}, aDDP(0x4B, 3, 5, 0),
				header(OpAtomicResponse, func(r *RDMAP) { r.AtomicResponse = &AtomicResponse{1, 2} })}},
		{"Terminate that quotes an RDMA Write", segment,
			untaggedSegment(1, rdmap.OpTerminate, 2, 1, 0, wholeTerminate(false)...), []gopacket.Layer{
				&SegmentChunk{SSN: 1}, aDDP(0x47, 2, 1, 0),
				header(OpTerminate, func(r *RDMAP) {
					r.Terminate = &Terminate{Type: 1, Code: 4, HasLength: true, HasDDP: true, SegmentLength: 46,
						DDPHeader: taggedSegment(0, rdmap.OpWrite, 7, 8)[2:]}
				})}},
		{"Terminate that quotes a Read Request", segment,
			untaggedSegment(1, rdmap.OpTerminate, 2, 1, 0, wholeTerminate(true)...), []gopacket.Layer{
				&SegmentChunk{SSN: 1}, aDDP(0x47, 2, 1, 0),
				header(OpTerminate, func(r *RDMAP) {
					r.Terminate = &Terminate{Type: 1, Code: 4, HasLength: true, HasDDP: true, HasRDMA: true,
						SegmentLength: 46,
						DDPHeader:     untaggedSegment(0, rdmap.OpReadRequest, 1, 1, 0)[2:], RDMAPHeader: readRequest()}
				})}},
		{"Terminate of a layer that does not exist, with reserved bits", segment,
			untaggedSegment(1, rdmap.OpTerminate, 2, 1, 0, 0xFE, 0xDC, 0x1F, 0xFF), []gopacket.Layer{
				&SegmentChunk{SSN: 1}, aDDP(0x47, 2, 1, 0),
				header(OpTerminate, func(r *RDMAP) {
					r.Terminate = &Terminate{Layer: 15, Type: 14, Code: 0xDC, Reserved: 0x1FFF}
				})}},
		{"Session Initiate", control, []byte{0, 0, 0, 1, 'h', 'i'}, []gopacket.Layer{&Control{Function: FnInitiate, PrivateData: []byte("hi")}}},
		{"Session Terminate", control, []byte{1, 2, 0, 4}, []gopacket.Layer{&Control{SSN: 0x102, Function: FnTerminate, PrivateData: []byte{}}}},
		{"Enhanced Initiate", control, []byte{0, 0, 0, 5, 0xC0, 5, 0x80, 9, 'h', 'i'}, []gopacket.Layer{
			&Control{Function: FnEnhancedInitiate, PrivateData: []byte("hi"),
				Setup: &Setup{PeerToPeer: true, RTRSend: true, RTRWrite: true, IRD: 5, ORD: 9}}}},
		{"Enhanced Accept with all that is not in the one before", control,
			[]byte{0, 0, 0, 6, 0x3F, 0xFF, 0x7F, 0xFE}, []gopacket.Layer{
				&Control{Function: FnEnhancedAccept, PrivateData: []byte{},
					Setup: &Setup{RTRRead: true, IRD: 0x3FFF, ORD: 0x3FFE}}}},
		{"Enhanced Reject without connection data", control, []byte{0, 0, 0, 7, 1, 2, 3}, []gopacket.Layer{
			&Control{Function: FnEnhancedReject, PrivateData: []byte{1, 2, 3}}}},
		{"a function that does not exist", control, []byte{0, 0, 1, 0}, []gopacket.Layer{&Control{Function: 256, PrivateData: []byte{}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Decode(tt.ppid, tt.message)
			must.That(t, p.ErrorLayer() == nil, "%v", p.ErrorLayer())
			check.Slice(t, "serialized", serializeLayers(t, p), tt.message)
			for i, want := range tt.want {
				got := stripLayer(p.Layers()[i])
				check.That(t, reflect.DeepEqual(got, want), "got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func aDDP(ulp byte, qn, msn, mo uint32) *DDP {
	return &DDP{Last: true, Version: 1, RsvdULP: []byte{ulp, 0, 0, 0x11, 0x22}, QN: qn, MSN: msn, MO: mo}
}

// stripLayer returns a copy of a layer without contents and payload.
func stripLayer(l gopacket.Layer) gopacket.Layer {
	switch l := l.(type) {
	case *SegmentChunk:
		c := *l
		c.BaseLayer = layers.BaseLayer{}
		return &c
	case *Control:
		c := *l
		c.BaseLayer = layers.BaseLayer{}
		return &c
	case *DDP:
		c := *l
		c.BaseLayer = layers.BaseLayer{}
		return &c
	case *RDMAP:
		c := *l
		c.BaseLayer = layers.BaseLayer{}
		return &c
	}
	return l
}

// serializeLayers returns the octets of all layers of a packet.
func serializeLayers(t *testing.T, p gopacket.Packet) []byte {
	t.Helper()
	var list []gopacket.SerializableLayer
	for _, l := range p.Layers() {
		list = append(list, l.(gopacket.SerializableLayer))
	}
	b := gopacket.NewSerializeBuffer()
	must.OK(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{}, list...))
	return b.Bytes()
}

func TestShortMessages(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ppid    layers.SCTPPayloadProtocol
		message []byte
	}{
		{"half a DDP-SSN", segment, []byte{0}},
		{"no segment", segment, []byte{0, 0}},
		{"a tagged header cut short", segment, taggedSegment(0, rdmap.OpWrite, 1, 2)[:15]},
		{"an untagged header cut short", segment, untaggedSegment(0, rdmap.OpSend, 0, 1, 0)[:19]},
		{"a Read Request cut short", segment, untaggedSegment(0, rdmap.OpReadRequest, 1, 1, 0, make([]byte, 27)...)},
		{"an Atomic Request cut short", segment, untaggedSegment(0, rdmap.OpAtomicRequest, 1, 1, 0, make([]byte, 51)...)},
		{"an Atomic Response cut short", segment, untaggedSegment(0, rdmap.OpAtomicResponse, 3, 1, 0, make([]byte, 11)...)},
		{"Immediate Data cut short", segment, untaggedSegment(0, rdmap.OpImmediate, 0, 1, 0, make([]byte, 7)...)},
		{"a Terminate cut short", segment, untaggedSegment(0, rdmap.OpTerminate, 2, 1, 0, 0, 0, 0)},
		{"a Terminate without the length that it announces", segment, untaggedSegment(0, rdmap.OpTerminate, 2, 1, 0, 0, 0, 0x80, 0, 1)},
		{"a Terminate without the header that it announces", segment, untaggedSegment(0, rdmap.OpTerminate, 2, 1, 0, wholeTerminate(false)[:19]...)},
		{"a Terminate without the request that it announces", segment, untaggedSegment(0, rdmap.OpTerminate, 2, 1, 0, wholeTerminate(true)[:51]...)},
		{"a control message of three octets", control, []byte{0, 0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := Decode(tt.ppid, tt.message).ErrorLayer()
			check.That(t, e != nil && errors.Is(e.Error(), errShort), "error layer %v", e)
		})
	}
}

// samplePacket is an SCTP packet with a SACK, two messages of odd lengths, a fragment, and another
// SACK behind them.
func samplePacket() []byte {
	sack := wire.AppendSack(nil, wire.SackFields{CumTSN: 1, ARwnd: 100})
	b := append(wire.AppendHeader(nil, 5000, 5043, 7), sack...)
	data := func(flags uint8, tsn wire.TSN, ppid uint32, message []byte) {
		b = wire.AppendDataHeader(b, wire.DataFields{Flags: flags, TSN: tsn, Stream: 3, PPID: ppid,
			PayloadLen: len(message)})
		b = append(append(b, message...), wire.Padding(len(message))...)
	}
	const whole = wire.FlagU | wire.FlagB | wire.FlagE
	data(whole, 10, 16, taggedSegment(4, rdmap.OpWrite, 1, 2, 'a', 'b', 'c'))
	data(whole, 11, 17, []byte{0, 5, 0, 4})
	data(wire.FlagU|wire.FlagB, 12, 16, []byte{0, 6, 1})
	return append(b, sack...)
}

// plain is that packet as gopacket decodes it before any test calls Enable.
var plain = gopacket.NewPacket(samplePacket(), layers.LayerTypeSCTP, gopacket.Default)

func TestEnableAddsTheLayersToGopacket(t *testing.T) {
	t.Run("FromData cuts at the chunk's length", func(t *testing.T) {
		d, _ := plain.Layer(layers.LayerTypeSCTPData).(*layers.SCTPData)
		must.That(t, d != nil && len(d.Payload) != 19, "gopacket's decoder is not as it was: %v", d)
		m, err := FromData(d)
		check.That(t, err == nil && m.ErrorLayer() == nil &&
			bytes.Equal(m.Data(), taggedSegment(4, rdmap.OpWrite, 1, 2, 'a', 'b', 'c')),
			"%v, %v", m, err)
		for _, f := range []func(d *layers.SCTPData){
			func(d *layers.SCTPData) { d.PayloadProtocol = 18 },
			func(d *layers.SCTPData) { d.EndFragment = false },
			func(d *layers.SCTPData) { d.BeginFragment = false },
			func(d *layers.SCTPData) { d.Length = 15 },
			func(d *layers.SCTPData) { d.Length = 60000 },
		} {
			other := *d
			if f(&other); other.Length != d.Length || other.PayloadProtocol != d.PayloadProtocol ||
				!other.EndFragment || !other.BeginFragment {
				_, err := FromData(&other)
				check.That(t, errors.Is(err, ErrNotDDP), "%+v: %v", other, err)
			}
		}
	})
	Enable()
	Enable()
	want := []gopacket.LayerType{layers.LayerTypeSCTP, layers.LayerTypeSCTPSack,
		layers.LayerTypeSCTPData, LayerTypeSegmentChunk, LayerTypeDDP, LayerTypeRDMAP, gopacket.LayerTypePayload,
		layers.LayerTypeSCTPData, LayerTypeControl,
		layers.LayerTypeSCTPData, gopacket.LayerTypePayload, layers.LayerTypeSCTPSack}
	for name, opts := range map[string]gopacket.DecodeOptions{"eager": gopacket.Default, "lazy": gopacket.Lazy} {
		t.Run("all chunks, "+name, func(t *testing.T) {
			p := gopacket.NewPacket(samplePacket(), layers.LayerTypeSCTP, opts)
			var got []gopacket.LayerType
			for _, l := range p.Layers() {
				got = append(got, l.LayerType())
			}
			must.That(t, reflect.DeepEqual(got, want) && p.ErrorLayer() == nil, "layers %v\nwant   %v, %v", got, want,
				p.ErrorLayer())
			d := p.Layers()[2].(*layers.SCTPData)
			check.That(t, d.TSN == 10 && d.StreamId == 3 && d.Unordered && len(d.Payload) == 19, "DATA %+v", d)
			b := p.Layers()[6].LayerContents()
			check.That(t, string(b) == "abc", "payload %q", b)
		})
	}
	t.Run("cut off anywhere", func(t *testing.T) {
		whole := samplePacket()
		b := append(whole[:12:12], whole[28:len(whole)-16]...) // the DATA chunks alone: gopacket's own decoders panic
		for n := range b {
			p := gopacket.NewPacket(b[:n], layers.LayerTypeSCTP, gopacket.DecodeOptions{SkipDecodeRecovery: true})
			atEnd := n == 12 || n == 12+35 || n == 12+36 || n == 12+36+20 || n == 12+36+20+19
			check.That(t, (p.ErrorLayer() == nil) == atEnd, "%d octets: %v", n, p.ErrorLayer())
		}
	})
}

func TestNamesOfOpcodesAndFunctions(t *testing.T) {
	for got, want := range map[string]string{
		OpSendSolicited.String(): "SendSolicited", Opcode(12).String(): "Opcode(12)",
		FnEnhancedReject.String(): "EnhancedReject", Function(0).String(): "Function(0)",
		LayerTypeDDP.String(): "DDP",
	} {
		check.Equal(t, "text", got, want)
	}
}
