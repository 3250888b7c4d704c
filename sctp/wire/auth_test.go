package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestAuthHasItsOctetsAndFields(t *testing.T) {
	for _, c := range []struct {
		name string
		id   wire.HMACID
		want string
	}{
		{"SHA-1", wire.HMACSHA1, "0f00001c 0102 0001"},
		{"SHA-256", wire.HMACSHA256, "0f000028 0102 0003"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wire.AppendAuth(nil, 0x0102, c.id)
			wantOctets(t, b[:8], c.want)
			a := parseOne(t, wire.AsAuth, b)
			check.Equal(t, "KeyID", a.KeyID(), 0x0102)
			check.Equal(t, "HMACID", a.HMACID(), c.id)
			check.Slice(t, "HMAC: zeros to compute it over", a.HMAC(), make([]byte, c.id.Size()))
		})
	}
}

// The HMAC is stored through the view, in the packet itself.
func TestAuthIsSignedInPlace(t *testing.T) {
	b := wire.AppendAuth(nil, 0, wire.HMACSHA1)
	a := must.Get(wire.AsAuth(wire.Chunk(b)))(t)
	copy(a.HMAC(), bytes.Repeat([]byte{0xab}, 20))
	wantOctets(t, b, "0f00001c 00000001 abababab abababab abababab abababab abababab")
}

func TestAuthLengths(t *testing.T) {
	check.Fails(wire.AsAuth(onlyChunk(t, parseHex(t, "0f000006 0000 0000"))))(t, "error", wire.ErrChunkLength)
	check.Fails(wire.AsAuth(onlyChunk(t, parseHex(t, "0f00000c 0000 0001 00000000"))))(t, "error", wire.ErrChunkLength)

	// The receiver of an unknown algorithm must be able to name it in its ERROR.
	a := parseOne(t, wire.AsAuth, parseHex(t, "0f00000a 0000 0002 abcd 0000"))
	check.Equal(t, "HMACID", a.HMACID(), 2)
	wantOctets(t, a.HMAC(), "abcd")
}

func TestHMACAlgo(t *testing.T) {
	b := wire.AppendHMACAlgo(nil, wire.HMACSHA256, wire.HMACSHA1)
	wantOctets(t, b, "80040008 0003 0001")
	ids := must.Get(onlyParam(t, b).HMACIDs())(t)
	check.Equal(t, "count", ids.Len(), 2)
	check.Equal(t, "preferred", wire.HMACID(ids.At(0)), wire.HMACSHA256)
	check.Equal(t, "next", wire.HMACID(ids.At(1)), wire.HMACSHA1)

	wantOctets(t, wire.AppendHMACAlgo(nil, wire.HMACSHA1), "80040006 0001 0000")
	check.Fails(onlyParam(t, parseHex(t, "80040007 000100")).HMACIDs())(t, "error", wire.ErrParamLength)
	check.Fails(onlyParam(t, parseHex(t, "80050004")).HMACIDs())(t, "error", wire.ErrParamType)
}

func TestChunkList(t *testing.T) {
	b := wire.AppendChunkList(nil, wire.ChunkInit, wire.ChunkInitAck, wire.ChunkShutdownComplete, wire.ChunkAuth,
		wire.ChunkAsconf, wire.ChunkAsconfAck)
	wantOctets(t, b, "80030006 c180 0000")
	received := onlyParam(t, parseHex(t, "80030009 01020e0f c1"))
	for ct, want := range map[wire.ChunkType]bool{
		wire.ChunkInit: false, wire.ChunkInitAck: false, wire.ChunkShutdownComplete: false, wire.ChunkAuth: false,
		wire.ChunkAsconf: true, wire.ChunkData: false,
	} {
		check.Equal(t, ct.String(), must.Get(received.ListsChunk(ct))(t), want)
	}
}

// A buffer that held another packet must not leak into the field that the HMAC is computed over.
func TestAuthInAUsedBuffer(t *testing.T) {
	used := bytes.Repeat([]byte{0xff}, 64)
	wantOctets(t, wire.AppendAuth(used[:0], 0, wire.HMACSHA1), "0f00001c 00000001"+strings.Repeat("00", 20))
}
