package seal

import (
	"encoding/hex"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

const now rawio.Time = 1e9

func parseHex(t testing.TB, text string) []byte {
	t.Helper()
	return must.Get(hex.DecodeString(text))(t)
}

// testMaterial returns material of a suite; what differs in seed differs in all of it.
func testMaterial(s Suite, seed byte) *Material {
	m := Material{Suite: s}
	for i := range s.KeyLen() {
		m.Key[i], m.SNKey[i] = seed+byte(i), seed^byte(3*i+1)
	}
	for i := range m.IV {
		m.IV[i] = seed + byte(5*i)
	}
	return &m
}

// testContent returns n octets, as records.py makes them.
func testContent(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(7*i + n)
	}
	return b
}

// newPair returns the two ends of one key.
func newPair(t testing.TB, s Suite, epoch uint64) (*Sealer, *Opener) {
	t.Helper()
	m := testMaterial(s, byte(s))
	return must.Get(NewSealer(now, m, epoch, false))(t), must.Get(NewOpener(now, m, epoch, MaxReplayWindow))(t)
}

// mustSeal returns a chunk without its padding.
func mustSeal(t testing.TB, s *Sealer, pieces ...[]byte) wire.DTLS {
	t.Helper()
	return asChunk(t, must.Get(s.Append(nil, pieces...))(t))
}

// asChunk returns the one chunk in b.
func asChunk(t testing.TB, b []byte) wire.DTLS {
	t.Helper()
	pkt := must.Get(wire.ParsePacket(append(wire.AppendHeader(nil, 1, 2, 3), b...)))(t)
	cs := pkt.Chunks()
	c, ok := cs.Next()
	must.That(t, ok, "no chunk in %x", b)
	_, ok = cs.Next()
	must.That(t, !ok && cs.Err() == nil, "there is more than one chunk in %x", b)
	return must.Get(wire.AsDTLS(c))(t)
}
