package endpoint

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
)

// peerKey identifies an association by what never changes while a peer address belongs to it.
type peerKey struct {
	addr        netip.Addr // the peer's
	local, peer uint16     // SCTP ports
}

// tagKey identifies it by the own Verification Tag, for packets from an address not yet known.
type tagKey struct {
	tag         uint32
	local, peer uint16
}

// hashSeed keeps peers, which choose their addresses and ports, from choosing many that share a
// chain.
var hashSeed = maphash.MakeSeed()

// Hash implements index.Key.
func (k peerKey) Hash() uint64 {
	var b [20]byte
	a := k.addr.As16()
	copy(b[:], a[:])
	binary.BigEndian.PutUint16(b[16:], k.local)
	binary.BigEndian.PutUint16(b[18:], k.peer)
	return maphash.Bytes(hashSeed, b[:])
}

// Hash implements index.Key.
func (k tagKey) Hash() uint64 {
	var b [8]byte
	binary.BigEndian.PutUint32(b[:], k.tag)
	binary.BigEndian.PutUint16(b[4:], k.local)
	binary.BigEndian.PutUint16(b[6:], k.peer)
	return maphash.Bytes(hashSeed, b[:])
}
