package wire_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// walkedLone is LoneData by way of all chunks.
func walkedLone(p wire.Packet) (wire.Data, bool) {
	cs := p.Chunks()
	c, ok := cs.Next()
	if _, more := cs.Next(); !ok || more || cs.Err() != nil {
		return nil, false
	}
	d, err := wire.AsData(c)
	return d, err == nil && len(d.Payload()) > 0
}

// sameLone compares LoneData with that, and says whether the packet has such a chunk.
func sameLone(t *testing.T, p wire.Packet) bool {
	t.Helper()
	got, ok := wire.LoneData(p)
	want, lone := walkedLone(p)
	must.Equal(t, "a packet with one DATA chunk alone", ok, lone)
	if !ok {
		must.That(t, got == nil, "no DATA chunk alone, and yet there is %.64x", got)
		return false
	}
	must.That(t, bytes.Equal(got, want) && cap(got) == cap(want) && &got[0] == &want[0],
		"DATA alone\n got %.64x, cap %d\nwant %.64x, cap %d", got, cap(got), want, cap(want))
	return true
}

func TestLoneDataWithAnyPadding(t *testing.T) {
	for n := 1; n <= 9; n++ {
		b := append(wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagU, TSN: 7, Stream: 3, PPID: 16,
			PayloadLen: n}), "ABCDEFGHI"[:n]...)
		for pad := 0; pad <= -n&3; pad++ {
			p := parsePacket(t, append(bytes.Clone(b), make([]byte, pad)...))
			d, ok := wire.LoneData(p)
			must.That(t, ok, "%d octets of user data and %d of padding: not DATA alone", n, pad)
			check.Equal(t, "user data", string(d.Payload()), "ABCDEFGHI"[:n])
			check.Equal(t, "cap", cap(d), wire.DataHeaderLen+n)
			check.Equal(t, "TSN", d.TSN(), 7)
			check.That(t, sameLone(t, p), "the walk finds none")
		}
		check.That(t, !sameLone(t, parsePacket(t, append(b, make([]byte, -n&3+1)...))),
			"%d octets of user data, and one octet more than padding", n)
	}
}

func TestWhatIsNotLoneData(t *testing.T) {
	const whole = "00070011 00000001 00000000 00000010 41000000"
	for _, tt := range []struct{ name, chunks string }{
		{"no chunk", ""},
		{"a piece of a header", "000700"},
		{"two DATA chunks", whole + whole},
		{"DATA and the beginning of a chunk", whole + "00"},
		{"DATA and another chunk", whole + "0b000004"},
		{"another chunk and DATA", "0b000004" + whole},
		{"no user data", "00070010 00000001 00000000 00000010"},
		{"no user data, and octets behind the chunk", "00070010 00000001 00000000 00000010 41000000"},
		{"a length of 15", "0007000f 00000001 00000000 00000010 41000000"},
		{"a length of 0", "00070000 00000001 00000000 00000010 41000000"},
		{"a length of 65535", "0007ffff 00000001 00000000 00000010 41000000"},
		{"a length of one octet more than the packet", "00070015 00000001 00000000 00000010 41000000"},
		{"a length of one octet more than the packet, behind its header", "00070011 00000001 00000000 00000010"},
		{"I-DATA", "40070011 00000001 00000000 00000010 41000000"},
		{"SACK", "03000014 00000001 00000000 00000000 41000000"},
	} {
		check.That(t, !sameLone(t, parsePacket(t, parseHex(t, tt.chunks))), "%s: DATA alone", tt.name)
	}
	check.That(t, sameLone(t, parsePacket(t, parseHex(t, whole))), "whole DATA is not DATA alone")
}

// By chance, of few octets, with lengths near to what is right: LoneData says what a walk over the
// chunks says, and reads nothing beyond the packet.
func TestLoneDataIsWhatAWalkFinds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 0x10e))
	lone, others := 0, 0
	for range 100_000 {
		n := rnd.IntN(44)
		b := make([]byte, wire.CommonHeaderLen+n)
		c := b[wire.CommonHeaderLen:]
		for i := range c {
			c[i] = byte(rnd.IntN(256)) >> rnd.IntN(9)
		}
		if n >= wire.ChunkHeaderLen {
			if rnd.IntN(8) > 0 {
				c[0] = 0
			}
			if rnd.IntN(8) > 0 {
				binary.BigEndian.PutUint16(c[2:], uint16(n+4-rnd.IntN(10)))
			}
		}
		if sameLone(t, must.Get(wire.ParsePacket(b[:len(b):len(b)]))(t)) {
			lone++
		} else {
			others++
		}
	}
	check.That(t, lone > 10_000 && others > 10_000, "%d packets with DATA alone, %d others", lone, others)
}
