package rddplayers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// Types of the layers.
var (
	LayerTypeSegmentChunk = gopacket.RegisterLayerType(504316,
		gopacket.LayerTypeMetadata{Name: "DDPSegmentChunk", Decoder: gopacket.DecodeFunc(decodeSegmentChunk)})
	LayerTypeControl = gopacket.RegisterLayerType(504317,
		gopacket.LayerTypeMetadata{Name: "DDPSessionControl", Decoder: gopacket.DecodeFunc(decodeControl)})
	LayerTypeDDP = gopacket.RegisterLayerType(504100,
		gopacket.LayerTypeMetadata{Name: "DDP", Decoder: gopacket.DecodeFunc(decodeDDP)})
	// LayerTypeRDMAP has no decoder: the RDMAP control field is part of the DDP header, see
	// RDMAP.DecodeFromDDP.
	LayerTypeRDMAP = gopacket.RegisterLayerType(504000, gopacket.LayerTypeMetadata{Name: "RDMAP"})
)

// errShort says that a message ends within its headers.
var errShort = errors.New("rddplayers: message shorter than its headers")

// ErrNotDDP is FromData's answer to a DATA chunk that holds no whole message of payload protocol 16
// or 17.
var ErrNotDDP = errors.New("rddplayers: not a whole message of payload protocol 16 or 17")

const dataHeaderLen = 16 // of a DATA chunk (RFC 9260 section 3.3.1), in octets

var enableOnce sync.Once

// Enable makes gopacket decode DATA chunks as the package comment says. Call it before the first
// packet is decoded: gopacket has no lock there.
func Enable() {
	enableOnce.Do(func() {
		layers.SCTPChunkTypeMetadata[layers.SCTPChunkTypeData].DecodeWith = gopacket.DecodeFunc(decodeData)
	})
}

// FromData decodes the message in a DATA layer, whether Enable was called or not. It returns
// ErrNotDDP where there is none. A message that cannot be decoded is a packet with an error layer.
func FromData(d *layers.SCTPData) (gopacket.Packet, error) {
	n := int(d.Length) - dataHeaderLen
	if n < 0 || n > len(d.Payload) || !isDDP(d) {
		return nil, ErrNotDDP
	}
	return Decode(d.PayloadProtocol, d.Payload[:n]), nil
}

// Decode decodes a whole user message of payload protocol 16 or 17. It refers to the octets of
// message.
func Decode(ppid layers.SCTPPayloadProtocol, message []byte) gopacket.Packet {
	return gopacket.NewPacket(message, decoderOf(ppid), gopacket.NoCopy)
}

func decoderOf(ppid layers.SCTPPayloadProtocol) gopacket.LayerType {
	if ppid == layers.SCTPPayloadDDPStream {
		return LayerTypeControl
	}
	return LayerTypeSegmentChunk
}

// isDDP tells whether the chunk is a whole message of DDP.
func isDDP(d *layers.SCTPData) bool {
	return (d.PayloadProtocol == layers.SCTPPayloadDDPSegment || d.PayloadProtocol == layers.SCTPPayloadDDPStream) &&
		d.BeginFragment && d.EndFragment
}

// decodeData decodes a DATA chunk, the layers of the message in it, and then the chunks behind it.
func decodeData(b []byte, p gopacket.PacketBuilder) error {
	if len(b) < dataHeaderLen {
		return errShort
	}
	length := int(binary.BigEndian.Uint16(b[2:]))
	if length < dataHeaderLen || length > len(b) {
		return fmt.Errorf("rddplayers: a DATA chunk of length %d in %d octets", length, len(b))
	}
	d := &layers.SCTPData{
		SCTPChunk: layers.SCTPChunk{
			BaseLayer: layers.BaseLayer{Contents: b[:dataHeaderLen], Payload: b[dataHeaderLen:length]},
			Type:      layers.SCTPChunkTypeData, Flags: b[1], Length: uint16(length), ActualLength: dataHeaderLen,
		},
		Unordered: b[1]&4 != 0, BeginFragment: b[1]&2 != 0, EndFragment: b[1]&1 != 0,
		TSN:             binary.BigEndian.Uint32(b[4:]),
		StreamId:        binary.BigEndian.Uint16(b[8:]),
		StreamSequence:  binary.BigEndian.Uint16(b[10:]),
		PayloadProtocol: layers.SCTPPayloadProtocol(binary.BigEndian.Uint32(b[12:])),
	}
	p.AddLayer(d)
	var err error
	if isDDP(d) {
		err = decoderOf(d.PayloadProtocol).Decode(d.Payload, p)
	} else if len(d.Payload) > 0 {
		err = gopacket.LayerTypePayload.Decode(d.Payload, p)
	}
	rest := b[min(len(b), (length+3)&^3):]
	if err != nil || len(rest) == 0 {
		return err
	}
	if len(rest) < 4 {
		return errShort
	}
	return layers.SCTPChunkType(rest[0]).Decode(rest, p)
}
