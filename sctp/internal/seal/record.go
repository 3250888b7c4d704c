package seal

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
)

// A DTLS chunk is laid out like this. With content of 4k octets it has 3 octets of padding.
//
//	+-----------------+-------------+------------------+---------------------+------+-----+---------+
//	| chunk header: 4 | pre-padding | record header: 3 | content, at most    | type | tag | padding |
//	|                 | 1           |                  | 16384               | 1    | 16  | 0 to 3  |
//	+-----------------+-------------+------------------+---------------------+------+-----+---------+
//	                                                   |<----- encrypted_record ----->|
const (
	// recordHeaderLen is one octet of flags and epoch, and 16 bits of the sequence number. It is
	// what the record authenticates beside its content (RFC 9147 section 4).
	recordHeaderLen = 3
	// HeaderLen is the length of what stands in front of the content.
	HeaderLen = wire.DTLSHeaderLen + recordHeaderLen
	tagLen    = 16
	// MaxContent is the most octets of chunks that a record holds (section 3.1).
	MaxContent = 1 << 14
	// Overhead is how much longer than its content a chunk is, for content that is a multiple of 4.
	Overhead = HeaderLen + 1 + tagLen + 3

	// The least and the most that a record encrypts: the content type; content of which padding may
	// be a part (RFC 8446 section 5.4). Below 16 octets the sequence number cannot be read.
	minSealed = 1 + tagLen
	maxSealed = MaxContent + 1 + tagLen
)

// SealedLen returns the length of the chunk for content of n octets, padding included.
func SealedLen(n int) int { return wire.PaddedLen(HeaderLen + n + 1 + tagLen) }

// The first octet of the only record header: 001CSLEE without a connection ID, with a sequence
// number of 16 bits, without a length, and the last two bits of the epoch (section 4.2).
const (
	headerFlags = 0x28
	epochMask   = 0x03
)

// applicationData is the content type of the records (section 5.2).
const applicationData = 23

// appendRecordHeader appends the header of a record whose sequence number is not yet encrypted.
func appendRecordHeader(b []byte, epoch, number uint64) []byte {
	return binary.BigEndian.AppendUint16(append(b, headerFlags|byte(epoch&epochMask)), uint16(number))
}

// checkRecord looks at what can be known of a record without a key.
func checkRecord(record []byte) error {
	if n := len(record) - recordHeaderLen; n < minSealed || n > maxSealed {
		return ErrRecordLength
	}
	if record[0]&^epochMask != headerFlags {
		return ErrRecordHeader
	}
	return nil
}

// trimPadding returns the content of what a record has encrypted: zeros are padding, and the last
// octet before them is the content type (RFC 8446 section 5.4).
func trimPadding(inner []byte) ([]byte, error) {
	n := len(inner)
	for n > 0 && inner[n-1] == 0 {
		n--
	}
	if n == 0 || inner[n-1] != applicationData {
		return nil, ErrContentType
	}
	return inner[:n-1], nil
}

// reconstructNumber returns the sequence number whose last 16 bits are low, and which is closest to
// the one that is expected next (RFC 9147 section 4.2.2). For numbers that lie equally far apart
// that is the lower.
func reconstructNumber(low uint16, next uint64) uint64 {
	n := int64(next) + int64(int16(low-uint16(next)))
	if n < 0 {
		n += 1 << 16
	}
	return uint64(n)
}
