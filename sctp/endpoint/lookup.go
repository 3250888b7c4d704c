package endpoint

import (
	"cmp"
	"encoding/binary"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Lookup finds the association of p. ok is false for a packet to drop: malformed, or with a wrong
// checksum (section 6.8). If ok is true and the association nil, pass p to HandleUnmatched. Lookup
// writes nothing but atomic counters, and never waits.
func (e *Endpoint) Lookup(p *rawio.Packet) (a *assoc.Assoc, ok bool) {
	return e.LookupNext(p, new(LookupState))
}

// LookupState is what LookupNext keeps of one packet for the next. Its zero value is for the first.
type LookupState struct {
	// Hash is what PrefetchLookup has found for the next packet, if it was called.
	Hash uint64
	// ByClaim says that the last association was found by an address that its peer has only named.
	// An association set up from there has the address.
	ByClaim bool

	headerSum wire.HeaderSum
	lastPeer  peerKey
	lastTag   uint32
	lastAssoc *assoc.Assoc
}

// LookupNext is Lookup for the next of several packets, which as a rule come from one peer.
func (e *Endpoint) LookupNext(p *rawio.Packet, b *LookupState) (a *assoc.Assoc, ok bool) {
	hash := b.Hash
	b.Hash, b.ByClaim = 0, false
	if p.Kind != rawio.KindSCTP {
		if a = e.lookupQuote(p); a == nil {
			e.strayReports.Add(1)
		}
		return a, a != nil
	}
	pkt, err := wire.ParsePacket(p.Data)
	if err != nil || pkt.SrcPort() == 0 || pkt.DstPort() == 0 {
		e.malformedPackets.Add(1)
		return nil, false
	}
	if e.cfg.ErrorDetection != rawio.NoErrorDetection && pkt.Checksum() == 0 {
		return e.lookupZeroChecksum(p, pkt, b)
	}
	if !b.headerSum.OK(pkt) {
		e.badChecksums.Add(1)
		return nil, false
	}
	return e.lookupChecked(p, pkt, hash, b)
}

// lookupZeroChecksum is LookupNext for a packet without a checksum over a link that detects errors.
// All associations there have announced that they take it (RFC 9653 section 5.3). None is to be
// sent before one is set up, nor to nobody.
func (e *Endpoint) lookupZeroChecksum(p *rawio.Packet, pkt wire.Packet, b *LookupState) (a *assoc.Assoc, ok bool) {
	if a, _ = e.lookupChecked(p, pkt, 0, b); a == nil && !pkt.ChecksumOK() {
		e.badChecksums.Add(1)
		return nil, false
	}
	e.zeroChecksums.Add(1)
	return a, true
}

// lookupChecked is LookupNext for a packet that has come as it was sent.
func (e *Endpoint) lookupChecked(p *rawio.Packet, pkt wire.Packet, hash uint64, b *LookupState) (a *assoc.Assoc,
	ok bool) {
	if isSetup(pkt) {
		return nil, true // there are limits for them, whomever they concern
	}
	k := newPeerKey(p, pkt)
	if k == b.lastPeer && pkt.VTag() == b.lastTag { // no port of k is 0, as they are at first
		return b.lastAssoc, true
	}
	if hash == 0 {
		hash = k.Hash()
	}
	if a = e.findByPeerOrTag(k, hash, pkt); a == nil {
		a = e.findByClaim(k, pkt)
		b.ByClaim = a != nil
		return a, true
	}
	b.lastPeer, b.lastTag, b.lastAssoc = k, pkt.VTag(), a
	return a, true
}

// PrefetchLookup fetches the memory that LookupNext looks at for each of several packets, and the
// Owner that it leads to. With many associations it is in no cache. PrefetchLookup leaves the hash
// of each packet in hashes, 0 for one that is no packet of SCTP.
func (e *Endpoint) PrefetchLookup(pkts []rawio.Packet, hashes []uint64) {
	for i := range pkts {
		hashes[i] = 0
		if k, ok := peerKeyOf(&pkts[i]); ok {
			hashes[i] = k.Hash()
			e.byPeer.Prefetch(hashes[i])
		}
	}
	for _, h := range hashes[:len(pkts)] {
		if h != 0 {
			e.byPeer.PrefetchNode(h)
		}
	}
	for _, h := range hashes[:len(pkts)] {
		if h != 0 {
			e.byPeer.PrefetchValue(h) // the Owner lies there, which callers look at
		}
	}
}

// newPeerKey returns the key of the peer that a packet says it comes from.
func newPeerKey(p *rawio.Packet, pkt wire.Packet) peerKey {
	return peerKey{p.Remote.Addr().Unmap(), pkt.DstPort(), pkt.SrcPort()}
}

// peerKeyOf returns the key that finds the association of a packet, if it is one of SCTP.
func peerKeyOf(p *rawio.Packet) (k peerKey, ok bool) {
	if p.Kind != rawio.KindSCTP || len(p.Data) < wire.CommonHeaderLen {
		return k, false
	}
	pkt := wire.Packet(p.Data)
	return newPeerKey(p, pkt), true
}

// findByPeerOrTag returns the association that a packet with a right checksum belongs to. It looks
// by an address of the peer or by the tag.
func (e *Endpoint) findByPeerOrTag(k peerKey, hash uint64, pkt wire.Packet) *assoc.Assoc {
	a, _ := e.byPeer.GetHashed(k, hash)
	if a == nil && pkt.VTag() != 0 {
		// An address of the peer that only its INIT ACK has named, or that could not be verified.
		a = getAssoc(&e.byTag, tagKey{pkt.VTag(), k.local, k.peer})
	}
	return a
}

// findByClaim returns the association whose peer has named the address of a packet. It is for
// packets that findByPeerOrTag does not know, such as the ABORT of a host without the association.
func (e *Endpoint) findByClaim(k peerKey, pkt wire.Packet) *assoc.Assoc {
	if pkt.VTag() == 0 || isSetup(pkt) {
		return nil
	}
	return getAssoc(&e.byClaim, k)
}

// isSetup says whether a packet begins or completes the set-up of an association. The association
// may have ended. The address may be unverified, and then does not say whose it is.
func isSetup(pkt wire.Packet) bool {
	const first = wire.CommonHeaderLen
	if len(pkt) == first {
		return false
	}
	t := wire.ChunkType(pkt[first])
	return t == wire.ChunkCookieEcho || t == wire.ChunkInit && pkt.VTag() == 0
}

// lookupQuote finds the association whose packet an ICMP report quotes (section 10, ICMP5).
func (e *Endpoint) lookupQuote(p *rawio.Packet) *assoc.Assoc {
	if len(p.Data) < 8 {
		return nil
	}
	src, dst := binary.BigEndian.Uint16(p.Data), binary.BigEndian.Uint16(p.Data[2:])
	k := peerKey{p.Remote.Addr().Unmap(), src, dst}
	return cmp.Or(getAssoc(&e.byPeer, k), getAssoc(&e.byClaim, k))
}
