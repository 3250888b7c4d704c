package compat

import (
	"encoding/binary"
	"time"
)

// These are the structures of RFC 6458, as Linux lays them out. Those with more than one user have
// a type. The rest is in options.go and *_options.go.

// SndRcvInfo is sctp_sndrcvinfo (section 5.3.2). PPID is in network byte order as it lies in
// memory.
type SndRcvInfo struct {
	Stream, SSN, Flags, _ uint16
	PPID, Context, TTL    uint32
	TSN, CumTSN           uint32
	AssocID               int32
}

// These are the values of SndRcvInfo.Flags on Linux. One more is what both packages call SCTP_EOF;
// on Linux that value is the flag of a TTL.
const (
	flagUnordered = 1 << iota
	flagAddrOver
	flagAbort
	flagSackNow
	flagTTL
	flagSendAll = 0x40 // without effect in this style, like flagAddrOver
	flagEOF     = 0x200
	flagNames   = flagUnordered | flagAddrOver | flagAbort | flagSackNow | flagTTL | flagSendAll | flagEOF
)

// These are the flags of Recv on Linux. MsgNotification marks a notification, and MsgEOR the end of
// a message or notification.
const (
	MsgEOR          = 0x80
	MsgNotification = 0x8000
)

// SndRcvInfoSize is the size of an SndRcvInfo in octets.
const SndRcvInfoSize = 32

var nativeOrder = binary.NativeEndian

// AppendTo appends the structure in the machine's byte order.
func (s *SndRcvInfo) AppendTo(b []byte) []byte {
	for _, v := range [...]uint16{s.Stream, s.SSN, s.Flags, 0} {
		b = nativeOrder.AppendUint16(b, v)
	}
	for _, v := range [...]uint32{s.PPID, s.Context, s.TTL, s.TSN, s.CumTSN, uint32(s.AssocID)} {
		b = nativeOrder.AppendUint32(b, v)
	}
	return b
}

// ParseSndRcvInfo reads the structure from SndRcvInfoSize octets.
func ParseSndRcvInfo(b []byte) (s SndRcvInfo) {
	s.Stream, s.SSN, s.Flags = nativeOrder.Uint16(b), nativeOrder.Uint16(b[2:]), nativeOrder.Uint16(b[4:])
	s.PPID, s.Context, s.TTL = nativeOrder.Uint32(b[8:]), nativeOrder.Uint32(b[12:]), nativeOrder.Uint32(b[16:])
	s.TSN, s.CumTSN, s.AssocID = nativeOrder.Uint32(b[20:]), nativeOrder.Uint32(b[24:]),
		int32(nativeOrder.Uint32(b[28:]))
	return s
}

// Swap converts a PPID from the machine's byte order to that of the network, or back.
func Swap(ppid uint32) uint32 {
	var b [4]byte
	nativeOrder.PutUint32(b[:], ppid)
	return binary.BigEndian.Uint32(b[:])
}

// structWriter writes a structure field by field.
type structWriter []byte

func (f *structWriter) appendUint16(v int) { *f = nativeOrder.AppendUint16(*f, uint16(v)) }
func (f *structWriter) appendUint32(v int) { *f = nativeOrder.AppendUint32(*f, uint32(v)) }
func (f *structWriter) appendMillis(d time.Duration) {
	f.appendUint32(int(d.Milliseconds()))
}

// padTo appends octets of zero up to a size.
func (f *structWriter) padTo(size int) { *f = append(*f, make([]byte, max(size-len(*f), 0))...) }

func parseMillis(b []byte) time.Duration {
	return time.Duration(nativeOrder.Uint32(b)) * time.Millisecond
}

// pickInt returns one of two values.
func pickInt(first bool, a, b int) int {
	if first {
		return a
	}
	return b
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
