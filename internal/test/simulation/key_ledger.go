package simulation

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// numberLedger keeps the number of each record that was ever sealed, by its key. It opens records
// by code of its own. A number comes once, whatever is lost, rekeyed or restarted.
type numberLedger struct {
	keys    []*ledgerKey // the one that was used last first
	records int
}

// ledgerKey is a key of AES-128-GCM, and what it has sealed.
type ledgerKey struct {
	material [44]byte // key, sequence number key and IV
	aead     cipher.AEAD
	snBlock  cipher.Block
	next     uint64            // above the highest number
	seen     map[uint64]uint64 // 64 numbers a word
}

// add has the ledger know a key, once.
func (l *numberLedger) add(key, snKey, iv []byte) {
	k := &ledgerKey{material: [44]byte(bytes.Join([][]byte{key, snKey, iv}, nil)), seen: make(map[uint64]uint64)}
	for _, x := range l.keys {
		if x.material == k.material {
			return
		}
	}
	block, err := aes.NewCipher(key)
	if err == nil {
		k.aead, err = cipher.NewGCM(block)
	}
	if err == nil {
		k.snBlock, err = aes.NewCipher(snKey)
	}
	if err != nil {
		panic(err) // never: lengths are constants
	}
	l.keys = append([]*ledgerKey{k}, l.keys...)
}

// Layout of a packet with a DTLS chunk.
const (
	recordAt    = wire.CommonHeaderLen + wire.DTLSHeaderLen
	recordHead  = 3
	minSealed   = 16
	chunkLenAt  = wire.CommonHeaderLen + 2
	numberSpace = 1 << 16
)

// note takes a packet that is about to leave. It returns what is wrong, "" for nothing.
func (l *numberLedger) note(p *rawio.Packet) string {
	pkt := bytes.Join(p.Vec, nil)
	if len(pkt) < recordAt+recordHead+minSealed || wire.ChunkType(pkt[wire.CommonHeaderLen]) != wire.ChunkDTLS {
		return ""
	}
	l.records++
	record := pkt[recordAt : wire.CommonHeaderLen+int(binary.BigEndian.Uint16(pkt[chunkLenAt:]))]
	for i, k := range l.keys {
		number, ok := k.open(record)
		bit := uint64(1) << (number % 64)
		switch {
		case !ok:
		case k.seen[number/64]&bit != 0:
			return "a key seals a number for the second time"
		default:
			copy(l.keys[1:i+1], l.keys[:i])
			l.keys[0] = k
			k.seen[number/64] |= bit
			k.next = max(k.next, number+1)
			return ""
		}
	}
	return "a packet is sealed by no key, or under a number long past"
}

// open returns the number of a record, if the key has sealed it: the one closest to the next.
func (k *ledgerKey) open(record []byte) (number uint64, ok bool) {
	var mask [aes.BlockSize]byte
	sealed := record[recordHead:]
	k.snBlock.Encrypt(mask[:], sealed[:aes.BlockSize])
	header := []byte{record[0], record[1] ^ mask[0], record[2] ^ mask[1]}
	low := uint64(binary.BigEndian.Uint16(header[1:]))
	number = k.next&^(numberSpace-1) | low
	switch {
	case number+numberSpace/2 < k.next:
		number += numberSpace
	case number > k.next+numberSpace/2 && number >= numberSpace:
		number -= numberSpace
	}
	nonce := bytes.Clone(k.material[32:])
	binary.BigEndian.PutUint64(nonce[4:], binary.BigEndian.Uint64(nonce[4:])^number)
	_, err := k.aead.Open(nil, nonce, sealed, header)
	return number, err == nil
}
