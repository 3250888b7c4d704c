package wire_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// parseHex turns hexadecimal text into octets. White space is free.
func parseHex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	must.Error(t, "bad hexadecimal in the test", err, nil)
	return b
}

func wantOctets(t *testing.T, got []byte, text string) {
	t.Helper()
	want := parseHex(t, text)
	must.That(t, bytes.Equal(got, want), "octets\n got %.128x\nwant %.128x", got, want)
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	check.Error(t, "error", got, want)
}

// onlyChunk puts chunks behind a common header and returns the one chunk that a receiver sees.
func onlyChunk(t testing.TB, chunks []byte) wire.Chunk {
	t.Helper()
	cs := parsePacket(t, chunks).Chunks()
	c, ok := cs.Next()
	must.That(t, ok, "no chunk in %.64x: %v", chunks, cs.Err())
	extra, ok := cs.Next()
	must.That(t, !ok && cs.Err() == nil, "after the chunk: %x, %v", extra, cs.Err())
	return c
}

// parseOne returns the one chunk in chunks, parsed.
func parseOne[C any](t testing.TB, parse func(wire.Chunk) (C, error), chunks []byte) C {
	t.Helper()
	return must.Get(parse(onlyChunk(t, chunks)))(t)
}

func parsePacket(t testing.TB, chunks []byte) wire.Packet {
	t.Helper()
	return must.Get(wire.ParsePacket(append(wire.AppendHeader(nil, 5000, 6000, 1), chunks...)))(t)
}

// onlyParam returns the one parameter in b.
func onlyParam(t testing.TB, b []byte) wire.Param {
	t.Helper()
	ps := paramsOf(t, b)
	p, ok := ps.Next()
	must.That(t, ok, "no parameter in %.64x: %v", b, ps.Err())
	extra, ok := ps.Next()
	must.That(t, !ok && ps.Err() == nil, "after the parameter: %x, %v", extra, ps.Err())
	return p
}

// onlyCause returns the one error cause in b.
func onlyCause(t testing.TB, b []byte) wire.Cause {
	t.Helper()
	cs := causesOf(t, b)
	c, ok := cs.Next()
	must.That(t, ok, "no cause in %.64x: %v", b, cs.Err())
	extra, ok := cs.Next()
	must.That(t, !ok && cs.Err() == nil, "after the cause: %x, %v", extra, cs.Err())
	return c
}

// paramsOf walks b as the parameters of an INIT chunk.
func paramsOf(t testing.TB, b []byte) wire.Params {
	t.Helper()
	i := parseOne(t, wire.AsInit, wire.AppendChunk(nil, wire.ChunkInit, 0, append(make([]byte, 16), b...)))
	return i.Params()
}

// causesOf walks b as the error causes of an ERROR chunk.
func causesOf(t testing.TB, b []byte) wire.Causes {
	t.Helper()
	e := parseOne(t, wire.AsError, wire.AppendChunk(nil, wire.ChunkError, 0, b))
	return e.Causes()
}
