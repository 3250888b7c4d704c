package pack

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// maxInlineOctets is the longest user data, in octets, that is copied into the arena instead of
// becoming a piece of its own. Below it the copy costs less than a vector entry. A 64 KB packet of
// small chunks so stays under the 1024 pieces that systems take.
const maxInlineOctets = 256

// maxBatchOctets is how much a batch takes before it is full. The checksum has brought its packets
// into the cache, where the link should still find them.
const maxBatchOctets = 256 << 10

// Batch is a reusable set of packets ready for rawio.Link.WriteBatch. Its packets are valid until
// Reset, and as long as the user memory that they reference. So a batch is written out before the
// owner of that memory learns that it is free.
type Batch struct {
	// Pkts are the finished packets: Vec, Local and Remote are set, the checksum is stored.
	Pkts []rawio.Packet

	maxPackets     int
	finishedOctets int      // of the finished packets
	arena          []byte   // when it has to grow, earlier packets keep the old one
	vecs           [][]byte // the pieces of all packets

	// The open packet.
	local, remote netip.AddrPort
	header        [wire.CommonHeaderLen]byte
	ecn           uint8
	mark          Mark
	zeroChecksum  bool
	sealer        Sealer // nil: it goes in the clear
	maxPacketLen  int    // octets it may have
	packetLen     int    // octets it has
	firstVec      int    // its first piece in vecs
	pieceStart    int    // where the piece that is being appended to begins in arena
	pieceIsOpen   bool   // that piece is the last of vecs
}

// NewBatch returns a batch for at most that many packets, at least one.
func NewBatch(packets int) *Batch {
	n := max(packets, 1)
	return &Batch{
		Pkts:       make([]rawio.Packet, 0, n),
		maxPackets: n,
		arena:      make([]byte, 0, 512*n),
		vecs:       make([][]byte, 0, 8*n),
	}
}

// Reset empties the batch and forgets the user memory that it referenced.
func (b *Batch) Reset() {
	clear(b.vecs)
	clear(b.Pkts)
	b.Pkts, b.vecs, b.arena = b.Pkts[:0], b.vecs[:0], b.arena[:0]
	b.finishedOctets = 0
}

// Full reports whether the batch holds all the packets it was made for, or maxBatchOctets.
func (b *Batch) Full() bool { return len(b.Pkts) >= b.maxPackets || b.finishedOctets >= maxBatchOctets }

// Left returns how many packets of so many octets it takes before it is full.
func (b *Batch) Left(octets int) int {
	return max(min(b.maxPackets-len(b.Pkts), (maxBatchOctets-b.finishedOctets+octets-1)/octets), 0)
}

// Octets returns the octets in the finished packets.
func (b *Batch) Octets() int { return b.finishedOctets }

// Begin opens a packet with its common header. It may have at most size octets, common header
// included. Room returns what is left of them; the caller must keep to it. A packet that comes out
// longer is sent as IP fragments of what a packet of size octets takes.
func (b *Batch) Begin(src, dst uint16, vtag uint32, local, remote netip.AddrPort, size int) {
	b.local, b.remote, b.maxPacketLen, b.ecn, b.mark = local, remote, size, rawio.NotECT, Mark{}
	b.zeroChecksum, b.sealer = false, nil
	wire.AppendHeader(b.header[:0], src, dst, vtag)
	b.BeginAgain()
}

// BeginAgain opens a packet with the common header, the addresses, the size and the marks of the
// last one.
func (b *Batch) BeginAgain() {
	b.packetLen, b.firstVec, b.pieceIsOpen = 0, len(b.vecs), false
	b.Commit(append(b.Tail(), b.header[:]...))
}

// Room returns how many octets the open packet still takes. It is negative in a packet that holds
// more than its size.
func (b *Batch) Room() int { return b.maxPacketLen - b.packetLen }

// Len returns the octets in the open packet, common header included.
func (b *Batch) Len() int { return b.packetLen }

// Empty reports whether the open packet has no chunk yet.
func (b *Batch) Empty() bool { return b.packetLen <= wire.CommonHeaderLen }

// Tail returns the arena for appending octets, whole chunks or a chunk's header, to the open
// packet:
//
//	b.Commit(wire.AppendCookieAck(b.Tail()))
func (b *Batch) Tail() []byte { return b.arena }

// Commit takes what was appended to Tail into the packet.
func (b *Batch) Commit(tail []byte) {
	n := len(tail) - len(b.arena)
	if n <= 0 {
		return
	}
	if !b.pieceIsOpen {
		b.pieceStart, b.pieceIsOpen = len(b.arena), true
		b.vecs = append(b.vecs, nil)
	}
	b.arena = tail
	b.packetLen += n
	// In a grown arena the whole piece has moved, and with it what the piece already held.
	b.vecs[len(b.vecs)-1] = tail[b.pieceStart:len(tail):len(tail)]
}

// Bytes appends user data to the open packet, by reference unless it is short.
func (b *Batch) Bytes(p []byte) { b.Commit(b.Append(b.arena, p)) }

// Append is Bytes after what was appended to Tail so far. It returns the tail to go on with, and to
// commit in the end.
func (b *Batch) Append(tail, p []byte) []byte {
	if len(p) <= maxInlineOctets {
		return append(tail, p...)
	}
	b.Commit(tail)
	b.vecs = append(b.vecs, p)
	b.packetLen += len(p)
	b.pieceIsOpen = false
	return tail
}

// SetECN sets the ECN field of the open packet, which is NotECT to begin with.
func (b *Batch) SetECN(ecn uint8) { b.ecn = ecn }

// Mark is how packets are marked, beside the ECN field: see rawio.Packet.
type Mark struct {
	DSCP      uint8
	FlowLabel uint32
}

// SetMark sets that of the open packet, which has none to begin with.
func (b *Batch) SetMark(m Mark) { b.mark = m }

// SetZeroChecksum leaves the checksum of the open packet 0 (RFC 9653).
func (b *Batch) SetZeroChecksum(is bool) { b.zeroChecksum = is }

// Sealer seals the chunks of a packet: it appends one chunk with the octets of pieces to b.
type Sealer interface {
	Append(b []byte, pieces ...[]byte) ([]byte, error)
}

// Seal has s seal the open packet, and those that BeginAgain and Add make like it; nil: nobody
// does. Room is then what is left for chunks that are yet to be sealed.
func (b *Batch) Seal(s Sealer) { b.sealer = s }

// IsSealed says whether somebody seals it.
func (b *Batch) IsSealed() bool { return b.sealer != nil }

// sealPacket replaces the chunks of the open packet by one. It returns how much longer the packet
// is then.
func (b *Batch) sealPacket() (gain int, err error) {
	pieces, start := b.vecs[b.firstVec:], len(b.arena)
	pieces[0] = pieces[0][wire.CommonHeaderLen:]
	tail, err := b.sealer.Append(append(b.arena, b.header[:]...), pieces...)
	if err != nil {
		return 0, err
	}
	clear(pieces)
	b.arena, b.pieceIsOpen = tail, false
	b.vecs = append(b.vecs[:b.firstVec], tail[start:len(tail):len(tail)])
	gain = len(tail) - start - b.packetLen
	b.packetLen += gain
	return gain, nil
}

// End finishes the open packet: it stores the checksum and adds the packet to Pkts. A packet that
// cannot be sealed is forgotten.
func (b *Batch) End() {
	most := b.maxPacketLen
	if b.sealer != nil {
		gain, err := b.sealPacket()
		if err != nil {
			b.Cancel()
			return
		}
		most += gain
	}
	vec := b.vecs[b.firstVec:len(b.vecs):len(b.vecs)]
	if !b.zeroChecksum { // as the common header has it
		wire.PutPacketChecksum(vec)
	}
	b.finishedOctets += b.packetLen
	n := len(b.Pkts)
	if n < cap(b.Pkts) {
		b.Pkts = b.Pkts[:n+1] // Reset has cleared it
	} else {
		b.Pkts = append(b.Pkts, rawio.Packet{})
	}
	p := &b.Pkts[n]
	p.Vec, p.Local, p.Remote, p.ECN = vec, b.local, b.remote, b.ecn
	p.DSCP, p.FlowLabel = b.mark.DSCP, b.mark.FlowLabel
	if b.packetLen > most {
		p.Fragment = most + rawio.Overhead(b.remote)
	}
}

// Header returns the common header of the last packet; that of Add begins with it.
func (b *Batch) Header() []byte { return b.header[:] }

// Add adds a packet with the addresses, the size and the marks of the last one: head is copied,
// body is longer user data that is referenced.
func (b *Batch) Add(head, body []byte) {
	at := len(b.arena)
	b.arena = append(b.arena, head...)
	b.firstVec, b.packetLen = len(b.vecs), len(head)+len(body)
	b.vecs = append(b.vecs, b.arena[at:len(b.arena):len(b.arena)], body)
	b.End()
}

// Cancel forgets the open packet.
func (b *Batch) Cancel() {
	clear(b.vecs[b.firstVec:])
	b.vecs = b.vecs[:b.firstVec]
}
