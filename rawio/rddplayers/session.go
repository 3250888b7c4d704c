package rddplayers

import (
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// SegmentChunk is what a DDP segment travels in (RFC 5043 section 5.2.2); its payload is the
// segment.
type SegmentChunk struct {
	layers.BaseLayer
	SSN uint16 // DDP-SSN: the place of the message among those of its session and direction
}

// LayerType returns LayerTypeSegmentChunk.
func (*SegmentChunk) LayerType() gopacket.LayerType { return LayerTypeSegmentChunk }

func decodeSegmentChunk(b []byte, p gopacket.PacketBuilder) error {
	if len(b) < 2 {
		return errShort
	}
	p.AddLayer(&SegmentChunk{layers.BaseLayer{Contents: b[:2], Payload: b[2:]}, binary.BigEndian.Uint16(b)})
	return LayerTypeDDP.Decode(b[2:], p)
}

// SerializeTo is for gopacket.SerializableLayer.
func (c *SegmentChunk) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	h, err := b.PrependBytes(2)
	if err == nil {
		binary.BigEndian.PutUint16(h, c.SSN)
	}
	return err
}

// Function is the function code of a session control message.
type Function uint16

// Functions of RFC 5043 section 5.2.3, and the enhanced ones of RFC 6581 section 7.
const (
	FnInitiate         Function = 1
	FnAccept           Function = 2
	FnReject           Function = 3
	FnTerminate        Function = 4
	FnEnhancedInitiate Function = 5
	FnEnhancedAccept   Function = 6
	FnEnhancedReject   Function = 7
)

var functionNames = [...]string{"", "Initiate", "Accept", "Reject", "Terminate", "EnhancedInitiate", "EnhancedAccept",
	"EnhancedReject"}

func (f Function) String() string {
	if f >= FnInitiate && f <= FnEnhancedReject {
		return functionNames[f]
	}
	return fmt.Sprintf("Function(%d)", uint16(f))
}

// Setup is the connection data of an enhanced message (RFC 6581 section 9).
type Setup struct {
	PeerToPeer bool   // A
	RTRSend    bool   // B: zero-length Send as Ready to Receive indication
	RTRWrite   bool   // C: zero-length RDMA Write
	RTRRead    bool   // D: zero-length RDMA Read
	IRD, ORD   uint16 // 14 bits each
}

// Control is a DDP stream session control message (RFC 5043 section 5.2.3). It has no payload.
type Control struct {
	layers.BaseLayer
	SSN         uint16 // DDP-SSN
	Function    Function
	Setup       *Setup // of an enhanced message; nil if it is too short for one
	PrivateData []byte // behind the Setup, if there is one
}

// LayerType returns LayerTypeControl.
func (*Control) LayerType() gopacket.LayerType { return LayerTypeControl }

const controlLen, setupLen = 4, 4

func decodeControl(b []byte, p gopacket.PacketBuilder) error {
	if len(b) < controlLen {
		return errShort
	}
	c := &Control{BaseLayer: layers.BaseLayer{Contents: b}, SSN: binary.BigEndian.Uint16(b),
		Function: Function(binary.BigEndian.Uint16(b[2:])), PrivateData: b[controlLen:]}
	if c.Function >= FnEnhancedInitiate && c.Function <= FnEnhancedReject && len(c.PrivateData) >= setupLen {
		ird, ord := binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:])
		c.Setup = &Setup{ird>>15 != 0, ird>>14&1 != 0, ord>>15 != 0, ord>>14&1 != 0, ird & 0x3FFF, ord & 0x3FFF}
		c.PrivateData = c.PrivateData[setupLen:]
	}
	p.AddLayer(c)
	return nil
}

// SerializeTo is for gopacket.SerializableLayer.
func (c *Control) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	n := controlLen
	if c.Setup != nil {
		n += setupLen
	}
	h, err := b.PrependBytes(n + len(c.PrivateData))
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint16(h, c.SSN)
	binary.BigEndian.PutUint16(h[2:], uint16(c.Function))
	if s := c.Setup; s != nil {
		binary.BigEndian.PutUint16(h[4:], bitAt(s.PeerToPeer, 15)|bitAt(s.RTRSend, 14)|s.IRD&0x3FFF)
		binary.BigEndian.PutUint16(h[6:], bitAt(s.RTRWrite, 15)|bitAt(s.RTRRead, 14)|s.ORD&0x3FFF)
	}
	copy(h[n:], c.PrivateData)
	return nil
}

func bitAt(b bool, at int) uint16 {
	if b {
		return 1 << at
	}
	return 0
}
