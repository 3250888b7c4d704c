package seal

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Sealer seals records with one key. Their numbers begin at 0 and are given once each.
type Sealer struct {
	recordCipher
	next        uint64 // the number of the next record
	end         uint64 // numbers from there on are not its own
	octets      uint64 // of content
	epoch       uint64
	installedAt rawio.Time
	isRestart   bool
}

// NewSealer returns a Sealer for an epoch, of restart keys or of primary ones.
func NewSealer(now rawio.Time, m *Material, epoch uint64, isRestart bool) (*Sealer, error) {
	c, err := newRecordCipher(m)
	if err != nil {
		return nil, err
	}
	return &Sealer{recordCipher: c, epoch: epoch, isRestart: isRestart, installedAt: now,
		end: m.Suite.maxSeals()}, nil
}

// split leaves so many numbers to s, and returns a Sealer with those behind them.
func (s *Sealer) split(left uint64) *Sealer {
	rest := *s
	s.end = s.next + left
	rest.next = s.end
	return &rest
}

// Append appends a DTLS chunk with its padding to b. The pieces are its content. They are copied
// once, and sealed where the copy lies. Nothing is allocated if b has room for SealedLen.
func (s *Sealer) Append(b []byte, pieces ...[]byte) ([]byte, error) {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	if n == 0 || n > MaxContent {
		return b, ErrContentLength
	}
	if s.Left() == 0 {
		return b, ErrKeyExhausted
	}
	start := len(b)
	b = slices.Grow(b, SealedLen(n))
	b = wire.AppendDTLSHeader(b, s.isRestart, recordHeaderLen+n+1+tagLen)
	b = appendRecordHeader(b, s.epoch, s.next)
	for _, p := range pieces {
		b = append(b, p...)
	}
	b = append(b, applicationData)
	header, inner := b[start+wire.DTLSHeaderLen:start+HeaderLen], b[start+HeaderLen:]
	sealed := s.aead.Seal(inner[:0], s.nonceOf(s.next), inner, header)
	encryptNumber(header, s.maskOf(sealed))
	s.next++
	s.octets += uint64(n)
	b = b[:start+HeaderLen+len(sealed)]
	return append(b, wire.Padding(len(b)-start)...), nil
}

// encryptNumber encrypts or decrypts the sequence number in a record header.
func encryptNumber(header []byte, mask uint16) {
	binary.BigEndian.PutUint16(header[1:], binary.BigEndian.Uint16(header[1:])^mask)
}

// Epoch returns the epoch.
func (s *Sealer) Epoch() uint64 { return s.epoch }

// IsRestart reports whether the key is one for restarts.
func (s *Sealer) IsRestart() bool { return s.isRestart }

// Sealed returns the number of records: also the number of the next one.
func (s *Sealer) Sealed() uint64 { return s.next }

// Left returns how many records the key may still seal.
func (s *Sealer) Left() uint64 { return s.end - s.next }

// Interval returns how far apart records are to be, so that the key lasts that long.
func (s *Sealer) Interval(lasting time.Duration) time.Duration {
	left := s.Left()
	if left == 0 {
		return lasting
	}
	return time.Duration((uint64(max(lasting, 0)) + left - 1) / left)
}
