package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/chacha20"
	"golang.org/x/crypto/chacha20poly1305"
)

// Suite is a cipher suite of TLS 1.3 by its number in IANA's registry.
type Suite uint16

// The cipher suites that records can be sealed with, the mandatory one first (section 3.1.1).
const (
	AES128GCM        Suite = 0x1301 // TLS_AES_128_GCM_SHA256
	AES256GCM        Suite = 0x1302 // TLS_AES_256_GCM_SHA384
	ChaCha20Poly1305 Suite = 0x1303 // TLS_CHACHA20_POLY1305_SHA256
)

// Suites lists the cipher suites (section 7.3).
func Suites() []Suite { return []Suite{AES128GCM, AES256GCM, ChaCha20Poly1305} }

// String returns the name in IANA's registry, or the number of a suite that is not offered.
func (s Suite) String() string {
	switch s {
	case AES128GCM:
		return "TLS_AES_128_GCM_SHA256"
	case AES256GCM:
		return "TLS_AES_256_GCM_SHA384"
	case ChaCha20Poly1305:
		return "TLS_CHACHA20_POLY1305_SHA256"
	}
	return fmt.Sprintf("cipher suite %#04x", uint16(s))
}

// KeyLen returns the length of a key, and of a sequence number key, 0 for a suite that is not
// offered (RFC 9147 section 4.2.3).
func (s Suite) KeyLen() int {
	switch s {
	case AES128GCM:
		return 16
	case AES256GCM, ChaCha20Poly1305:
		return 32
	}
	return 0
}

// IVLen is the length of the IV of all suites.
const IVLen = 12

// maxKeyLen is the length of the longest key.
const maxKeyLen = 32

// Limits of RFC 9147 section 4.5.3, and of the sequence number (section 4.2.1).
const (
	maxGCMSeals   = 23726566      // 2^24.5
	maxFailed     = 1 << 36       // for all suites here
	maxNumber     = 1<<48 - 1     // the highest sequence number
	maxOtherSeals = maxNumber + 1 // of a suite without a limit of its own
)

// maxSeals returns how many records a key of the suite may seal.
func (s Suite) maxSeals() uint64 {
	if s == ChaCha20Poly1305 {
		return maxOtherSeals
	}
	return maxGCMSeals
}

// Material is the key material of one direction of an epoch (section 2.1). Of the arrays only the
// first Suite.KeyLen octets count.
type Material struct {
	Suite Suite
	Key   [maxKeyLen]byte // seals the record
	SNKey [maxKeyLen]byte // encrypts the sequence number
	IV    [IVLen]byte
}

// NewMaterial returns the material in slices, whose lengths have to be those of the suite.
func NewMaterial(s Suite, key, snKey, iv []byte) (Material, error) {
	m := Material{Suite: s}
	if s.KeyLen() == 0 {
		return m, ErrSuite
	}
	if len(key) != s.KeyLen() || len(snKey) != s.KeyLen() || len(iv) != IVLen {
		return m, ErrKeyLength
	}
	copy(m.Key[:], key)
	copy(m.SNKey[:], snKey)
	copy(m.IV[:], iv)
	return m, nil
}

// recordCipher is what sealing and opening have in common. It has room for what the interfaces of
// the ciphers would otherwise take from the heap for each record.
type recordCipher struct {
	aead    cipher.AEAD
	snBlock cipher.Block // nil: ChaCha20 encrypts sequence numbers
	snKey   [maxKeyLen]byte
	iv      [IVLen]byte
	nonce   [IVLen]byte
	mask    [aes.BlockSize]byte
	suite   Suite
}

func newRecordCipher(m *Material) (c recordCipher, err error) {
	c = recordCipher{snKey: m.SNKey, iv: m.IV, suite: m.Suite}
	key, snKey := m.Key[:m.Suite.KeyLen()], m.SNKey[:m.Suite.KeyLen()]
	switch m.Suite {
	case AES128GCM, AES256GCM:
		var block cipher.Block
		if block, err = aes.NewCipher(key); err == nil {
			c.aead, err = cipher.NewGCM(block)
		}
		if err == nil {
			c.snBlock, err = aes.NewCipher(snKey)
		}
	case ChaCha20Poly1305:
		c.aead, err = chacha20poly1305.New(key)
	default:
		err = ErrSuite
	}
	return c, err
}

// nonceOf returns the nonce of a record: the IV, whose last 8 octets are combined with the number
// (RFC 8446 section 5.3). It is valid until the next call.
func (c *recordCipher) nonceOf(number uint64) []byte {
	c.nonce = c.iv
	low := c.nonce[IVLen-8:]
	binary.BigEndian.PutUint64(low, binary.BigEndian.Uint64(low)^number)
	return c.nonce[:]
}

// maskOf returns what a sequence number is encrypted with: a function of the first 16 octets of
// what the record encrypts (RFC 9147 section 4.2.3).
func (c *recordCipher) maskOf(sealed []byte) (mask uint16) {
	sample := sealed[:aes.BlockSize]
	if c.snBlock != nil {
		c.snBlock.Encrypt(c.mask[:], sample)
		return binary.BigEndian.Uint16(c.mask[:])
	}
	stream, err := chacha20.NewUnauthenticatedCipher(c.snKey[:], sample[4:])
	if err != nil { // never: the lengths are constants
		return 0
	}
	stream.SetCounter(binary.LittleEndian.Uint32(sample))
	var two [2]byte
	stream.XORKeyStream(two[:], two[:])
	return binary.BigEndian.Uint16(two[:])
}
