package keymgmt

import (
	"bytes"
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Of the messages of key management (section 4).
const (
	Method           = 192 // the number of the method
	PPID             = 4242
	Stream           = wire.StreamID(0)
	typeControl      = 0x80 // T: a control message, and no TLS records
	epochBits        = 0x7f
	ctrlEstablished  = 1
	recordHeaderLen  = 5
	maxRecordLen     = 1<<14 + 256 // what a TLS 1.3 record may hold
	typeHandshake    = 22
	msgClientHello   = 1
	msgServerHello   = 2
	helloRandomStart = recordHeaderLen + 4 + 2 // behind the headers and the version
)

// appendMessage appends a message that holds TLS records.
func appendMessage(b []byte, epoch uint64, records []byte) []byte {
	return append(append(b, byte(epoch&epochBits)), records...)
}

// establishedMessage is Protection Established (section 4.1.1).
func establishedMessage(epoch uint64) []byte {
	return []byte{typeControl | byte(epoch&epochBits), ctrlEstablished}
}

// message is a view of a message.
type message []byte

func (m message) isOf(epoch uint64) bool { return m[0]&epochBits == byte(epoch&epochBits) }
func (m message) isControl() bool        { return m[0]&typeControl != 0 }
func (m message) payload() []byte        { return m[1:] }

// isWellFormed reports whether the message has a control type, or one or more whole TLS records.
func (m message) isWellFormed() bool {
	if len(m) < 2 {
		return false
	}
	if m.isControl() {
		return true
	}
	for b := m.payload(); len(b) > 0; {
		n := RecordLen(b)
		if n == 0 || b[0] < 20 || b[0] > 23 || n > recordHeaderLen+maxRecordLen || n > len(b) {
			return false
		}
		b = b[n:]
	}
	return true
}

// RecordLen returns the length of the first of TLS records, its header included; 0 without a whole
// header.
func RecordLen(records []byte) int {
	if len(records) < recordHeaderLen {
		return 0
	}
	return recordHeaderLen + int(binary.BigEndian.Uint16(records[3:]))
}

// isHello reports whether records begin with a hello of that type, which is never encrypted.
func isHello(records []byte, msgType byte) bool {
	return len(records) > recordHeaderLen && records[0] == typeHandshake && records[recordHeaderLen] == msgType
}

// retryRandom is what a HelloRetryRequest has in place of a random number (RFC 8446 section 4.1.3).
var retryRandom = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// asksForRetry reports whether records begin with a HelloRetryRequest: another ClientHello follows.
func asksForRetry(records []byte) bool {
	return isHello(records, msgServerHello) && len(records) >= helloRandomStart+len(retryRandom) &&
		bytes.Equal(records[helloRandomStart:helloRandomStart+len(retryRandom)], retryRandom)
}
