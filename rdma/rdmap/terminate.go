package rdmap

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rddp-go/rddp/ddp"
)

// Layer names the layer that met an error (section 4.8, Figure 9).
type Layer uint8

// Layers.
const (
	LayerRDMA Layer = 0
	LayerDDP  Layer = 1
	LayerLLP  Layer = 2 // MPA; over SCTP only when enhanced setup fails (RFC 6581 section 8)
)

// EType is the error type of a Terminate. The values below are those of LayerRDMA; with LayerDDP it
// is a ddp.ErrorType.
type EType uint8

// Error types of LayerRDMA (Figure 9).
const (
	LocalCatastrophic EType = 0 // any code
	RemoteProtection  EType = 1
	RemoteOperation   EType = 2
)

// Error codes of LayerRDMA (Figure 9). CodeCannotInvalidate and CodeUnspecified exist under both
// RemoteProtection and RemoteOperation.
const (
	CodeInvalidSTag        = 0x00 // RemoteProtection
	CodeBounds             = 0x01 // RemoteProtection
	CodeAccess             = 0x02 // RemoteProtection
	CodeNotAssociated      = 0x03 // RemoteProtection: another stream's or Protection Domain's STag
	CodeTOWrap             = 0x04 // RemoteProtection
	CodeInvalidVersion     = 0x05 // RemoteOperation
	CodeUnexpectedOpcode   = 0x06 // RemoteOperation
	CodeCatastrophic       = 0x07 // RemoteOperation: localized to the RDMAP stream
	CodeCatastrophicGlobal = 0x08 // RemoteOperation
	CodeCannotInvalidate   = 0x09
	CodeUnspecified        = 0xFF
)

// Lengths of the Terminate Message in octets.
const (
	terminateControlLen = 4
	terminateSegLen     = 2
	taggedHeaderLen     = 14
	untaggedHeaderLen   = 18
	// MaxTerminateLen is the longest Terminate: control, segment length, untagged DDP header, RDMA
	// header.
	MaxTerminateLen = terminateControlLen + terminateSegLen + untaggedHeaderLen + ReadRequestLen
)

// Header control bits (HdrCt): M, D and R of Figure 8, bits 16 to 18 of the first word.
const (
	bitM = 1 << 15
	bitD = 1 << 14
	bitR = 1 << 13
)

// Terminate is the Terminate Header (section 4.8, Figures 7 and 8):
//
//	| Layer 4 | EType 4 | Error Code 8 | M D R | Reserved 13 |
//	| DDP Segment Length 16 | Terminated DDP Header 14 or 18 octets | Terminated RDMA Header 28 |
type Terminate struct {
	Layer Layer
	EType EType
	Code  uint8

	HasLength bool   // M: SegmentLength is valid
	HasDDP    bool   // D: DDP holds the header of the offending segment
	HasRDMA   bool   // R: RDMA holds the Read Request Header, advanced by what was sent
	SegLength uint16 // length of the offending DDP segment in octets, header included

	DDP  [untaggedHeaderLen]byte // 14 octets are used when its T bit is set
	RDMA [ReadRequestLen]byte
}

// ErrBadTerminate says that a received Terminate is shorter than its M, D and R bits announce.
var ErrBadTerminate = errors.New("rdmap: Terminate message is shorter than its header bits announce")

// ddpHeaderLen is the length of the quoted DDP header. Its T bit gives it.
func (t *Terminate) ddpHeaderLen() int {
	if t.DDP[0]&0x80 != 0 {
		return taggedHeaderLen
	}
	return untaggedHeaderLen
}

// Append appends the encoded message to b.
func (t *Terminate) Append(b []byte) []byte {
	w := uint32(t.Layer&0xF)<<28 | uint32(t.EType&0xF)<<24 | uint32(t.Code)<<16
	if t.HasLength {
		w |= bitM
	}
	if t.HasDDP {
		w |= bitD
	}
	if t.HasRDMA {
		w |= bitR
	}
	b = binary.BigEndian.AppendUint32(b, w)
	if t.HasLength || t.HasDDP {
		b = binary.BigEndian.AppendUint16(b, t.SegLength)
	}
	if t.HasDDP {
		b = append(b, t.DDP[:t.ddpHeaderLen()]...)
	}
	if t.HasRDMA {
		b = append(b, t.RDMA[:]...)
	}
	return b
}

// ParseTerminate decodes a received Terminate. What follows the fields that M, D and R announce is
// ignored: section 7.1 lets a sender leave zeroed header fields in place.
func ParseTerminate(b []byte) (t Terminate, err error) {
	if len(b) < terminateControlLen {
		return t, ErrBadTerminate
	}
	w := binary.BigEndian.Uint32(b)
	b = b[terminateControlLen:]
	t.Layer, t.EType, t.Code = Layer(w>>28), EType(w>>24&0xF), uint8(w>>16)
	t.HasLength, t.HasDDP, t.HasRDMA = w&bitM != 0, w&bitD != 0, w&bitR != 0
	if t.HasLength || t.HasDDP {
		if len(b) < terminateSegLen {
			return t, ErrBadTerminate
		}
		t.SegLength = binary.BigEndian.Uint16(b)
		b = b[terminateSegLen:]
	}
	if t.HasDDP {
		if len(b) < 1 {
			return t, ErrBadTerminate
		}
		t.DDP[0] = b[0]
		n := t.ddpHeaderLen()
		if len(b) < n {
			return t, ErrBadTerminate
		}
		copy(t.DDP[:n], b)
		b = b[n:]
	}
	if t.HasRDMA {
		if len(b) < ReadRequestLen {
			return t, ErrBadTerminate
		}
		copy(t.RDMA[:], b)
	}
	return t, nil
}

// String is a plain sentence part that names layer, type and code.
func (t *Terminate) String() string {
	switch t.Layer {
	case LayerRDMA:
		return fmt.Sprintf("RDMA layer, %s (0x%x), %s (0x%02x)", rdmaTypeName(t.EType), uint8(t.EType),
			rdmaCodeName(t.EType, t.Code), t.Code)
	case LayerDDP:
		return fmt.Sprintf("%v (0x%x/0x%02x)", &ddp.Error{Type: ddp.ErrorType(t.EType), Code: t.Code}, uint8(t.EType),
			t.Code)
	case LayerLLP:
		if t.EType == ETypeMPA {
			return fmt.Sprintf("%s (0x%02x)", mpaCodeName(t.Code), t.Code)
		}
	}
	return fmt.Sprintf("layer %d, type 0x%x, code 0x%02x", uint8(t.Layer), uint8(t.EType), t.Code)
}

func rdmaTypeName(t EType) string {
	switch t {
	case LocalCatastrophic:
		return "local catastrophic error"
	case RemoteProtection:
		return "remote protection error"
	case RemoteOperation:
		return "remote operation error"
	}
	return "unknown error type"
}

func rdmaCodeName(t EType, code uint8) string {
	if t == LocalCatastrophic {
		return "no code"
	}
	switch code {
	case CodeInvalidSTag:
		return "invalid STag"
	case CodeBounds:
		return "base or bounds violation"
	case CodeAccess:
		return "access rights violation"
	case CodeNotAssociated:
		return "STag not associated with the RDMAP stream"
	case CodeTOWrap:
		return "TO wrap"
	case CodeInvalidVersion:
		return "invalid RDMAP version"
	case CodeUnexpectedOpcode:
		return "unexpected opcode"
	case CodeCatastrophic:
		return "catastrophic error, localized to the RDMAP stream"
	case CodeCatastrophicGlobal:
		return "catastrophic error, global"
	case CodeCannotInvalidate:
		return "STag cannot be invalidated"
	case CodeUnspecified:
		return "unspecified error"
	}
	return "unknown code"
}
