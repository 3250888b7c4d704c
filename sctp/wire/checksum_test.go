package wire_test

import (
	"math/bits"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// slowCRC32c divides bit by bit as RFC 9260 appendix A describes, with the reflected polynomial.
func slowCRC32c(b []byte) uint32 {
	poly := bits.Reverse32(0x1EDC6F41)
	r := ^uint32(0)
	for _, o := range b {
		r ^= uint32(o)
		for range 8 {
			if r&1 != 0 {
				r = r>>1 ^ poly
			} else {
				r >>= 1
			}
		}
	}
	return ^r
}

func TestReferenceCRC32c(t *testing.T) {
	check.Equal(t, "CRC of 123456789", slowCRC32c([]byte("123456789")), 0xE3069283)
}

func TestChecksumIsTheCRC32cOfTheRFC(t *testing.T) {
	// req 9260-6.8-1
	// req 9260-A-1
	b := wire.AppendHeader(nil, 5000, 6000, 0x12345678)
	b = wire.AppendSack(b, wire.SackFields{CumTSN: 12, ARwnd: 4660})
	b = append(b, wire.AppendChunk(nil, wire.ChunkCookieEcho, 0, []byte("cookie"))...)
	want := slowCRC32c(b) // the checksum field is still zero
	check.Equal(t, "ChecksumBytes", wire.ChecksumBytes(b), want)

	// req 9260-A-2
	wire.PutChecksum(b, want)
	for i := range 4 {
		check.Equal(t, "octet of the checksum field, least significant first", b[8+i], byte(want>>(8*i)))
	}
	p := wire.Packet(b)
	check.Equal(t, "Checksum", p.Checksum(), want)
	check.Equal(t, "ChecksumBytes with the field set", wire.ChecksumBytes(b), want)
	check.Equal(t, "ChecksumOK", p.ChecksumOK(), true)

	var sum wire.HeaderSum // remembers one packet for the next
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			must.That(t, !p.ChecksumOK() && !sum.OK(p), "bit %d of octet %d is not covered", bit, i)
			b[i] ^= 1 << bit
			first, again := sum.OK(p), sum.OK(p)
			must.That(t, first && again, "after a packet with another bit %d of octet %d", bit, i)
		}
	}

	// req 9260-6.8-1: ports and tag of nothing but zeros, as a first packet and as a further one
	none := wire.AppendHeader(nil, 0, 0, 0)
	wire.PutChecksum(none, slowCRC32c(none))
	check.Equal(t, "a header of zeros", sum.OK(none), true)
	sum = wire.HeaderSum{}
	check.Equal(t, "a header of zeros first", sum.OK(none), true)
}

// The octets of a known checksum, so that a wrong order cannot hide behind the same mistake on both
// sides: RFC 3720 appendix B.4 gives the CRC32c of 32 zero octets as aa 36 91 8a.
func TestChecksumOctetOrder(t *testing.T) {
	b := make([]byte, 32)
	wire.PutChecksum(b, wire.ChecksumBytes(b))
	wantOctets(t, b[8:12], "aa36918a")
}

// However a packet is cut into pieces, the checksum is that of the whole, and nothing is written.
func TestChecksumOfAVector(t *testing.T) {
	b := wire.AppendHeader(nil, 5000, 6000, 1)
	for i := range 100 {
		b = append(b, byte(i))
	}
	wire.PutChecksum(b, 0xdeadbeef)
	before := string(b)
	want := wire.ChecksumBytes(b)
	for first := wire.CommonHeaderLen; first <= len(b); first++ {
		for second := first; second <= len(b); second += 7 {
			vec := [][]byte{b[:first], nil, b[first:second], {}, b[second:]}
			got := wire.Checksum(vec)
			must.That(t, got == want, "cut at %d and %d: %#x, want %#x", first, second, got, want)
		}
	}
	check.Equal(t, "the packet was written to", string(b), before)
}

// The checksum that a packet is given is that of the whole, whatever was in its place.
func TestPutPacketChecksum(t *testing.T) {
	b := wire.AppendHeader(nil, 5000, 6000, 1)
	for i := range 100 {
		b = append(b, byte(i))
	}
	want := wire.ChecksumBytes(b)
	for cut := wire.CommonHeaderLen; cut <= len(b); cut++ {
		wire.PutChecksum(b, 0xdeadbeef)
		wire.PutPacketChecksum([][]byte{b[:cut], nil, b[cut:]})
		got := wire.Packet(b).Checksum()
		// req 9260-6.8-1
		must.That(t, got == want && wire.Packet(b).ChecksumOK(), "cut at %d: %#x, want %#x", cut, got, want)
	}
}
