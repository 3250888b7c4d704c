package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

// asAny has every view of a chunk, with the least and most octets of its fixed part.
var asAny = []struct {
	t           wire.ChunkType
	least, most int
	as          func(wire.Chunk) error
}{
	{wire.ChunkData, 16, 0, func(c wire.Chunk) error { _, err := wire.AsData(c); return err }},
	{wire.ChunkInit, 20, 0, func(c wire.Chunk) error { _, err := wire.AsInit(c); return err }},
	{wire.ChunkInitAck, 20, 0, func(c wire.Chunk) error { _, err := wire.AsInit(c); return err }},
	{wire.ChunkSack, 16, 16, func(c wire.Chunk) error { _, err := wire.AsSack(c); return err }},
	{wire.ChunkShutdown, 8, 8, func(c wire.Chunk) error { _, err := wire.AsShutdown(c); return err }},
	{wire.ChunkShutdownAck, 4, 4, func(c wire.Chunk) error { _, err := wire.AsShutdownAck(c); return err }},
	{wire.ChunkError, 4, 0, func(c wire.Chunk) error { _, err := wire.AsError(c); return err }},
	{wire.ChunkCookieEcho, 4, 0, func(c wire.Chunk) error { _, err := wire.AsCookieEcho(c); return err }},
	{wire.ChunkCookieAck, 4, 4, func(c wire.Chunk) error { _, err := wire.AsCookieAck(c); return err }},
	{wire.ChunkECNE, 8, 0, func(c wire.Chunk) error { _, err := wire.AsECNE(c); return err }},
	{wire.ChunkCWR, 8, 8, func(c wire.Chunk) error { _, err := wire.AsCWR(c); return err }},
	{wire.ChunkShutdownComplete, 4, 4, func(c wire.Chunk) error { _, err := wire.AsShutdownComplete(c); return err }},
	{wire.ChunkAuth, 8, 0, func(c wire.Chunk) error { _, err := wire.AsAuth(c); return err }},
	{wire.ChunkIData, 20, 0, func(c wire.Chunk) error { _, err := wire.AsIData(c); return err }},
	{wire.ChunkAsconfAck, 8, 0, func(c wire.Chunk) error { _, err := wire.AsAsconfAck(c); return err }},
	{wire.ChunkPad, 4, 0, func(c wire.Chunk) error { _, err := wire.AsPad(c); return err }},
	{wire.ChunkForwardTSN, 8, 0, func(c wire.Chunk) error { _, err := wire.AsForwardTSN(c); return err }},
	{wire.ChunkIForwardTSN, 8, 0, func(c wire.Chunk) error { _, err := wire.AsIForwardTSN(c); return err }},

	// These also check the parameters they cannot do without; see their own tests.
	{wire.ChunkHeartbeat, -1, 0, func(c wire.Chunk) error { _, err := wire.AsHeartbeat(c); return err }},
	{wire.ChunkHeartbeatAck, -1, 0, func(c wire.Chunk) error { _, err := wire.AsHeartbeat(c); return err }},
	{wire.ChunkAbort, 4, 0, func(c wire.Chunk) error { _, err := wire.AsAbort(c); return err }},
	{wire.ChunkReconfig, -1, 0, func(c wire.Chunk) error { _, err := wire.AsReconfig(c); return err }},
	{wire.ChunkAsconf, -1, 0, func(c wire.Chunk) error { _, err := wire.AsAsconf(c); return err }},
}

// Each view takes its own chunk type only, exactly from its fixed length on, and all of a wrong
// length or type come back as an error.
func TestViewsRejectWhatIsNotTheirs(t *testing.T) {
	for _, c := range asAny {
		t.Run(c.t.String(), func(t *testing.T) {
			if c.least >= 0 {
				check.Equal(t, "fixed part alone",
					c.as(onlyChunk(t, wire.AppendChunk(nil, c.t, 0, make([]byte, c.least-4)))), nil)
				for n := 4; n < c.least; n++ {
					wantErr(t, c.as(onlyChunk(t, wire.AppendChunk(nil, c.t, 0, make([]byte, n-4)))),
						wire.ErrChunkLength)
				}
			}
			if c.most > 0 {
				for n := c.most + 1; n < c.most+9; n++ {
					wantErr(t, c.as(onlyChunk(t, wire.AppendChunk(nil, c.t, 0, make([]byte, n-4)))),
						wire.ErrChunkLength)
				}
			}
			long := make(wire.Chunk, wire.MaxChunkLen+1)
			long[0] = byte(c.t)
			wantErr(t, c.as(long), wire.ErrChunkLength)
			for _, other := range asAny {
				if viewOf(other.t) == viewOf(c.t) {
					continue
				}
				wantErr(t, c.as(onlyChunk(t, wire.AppendChunk(nil, other.t, 0, make([]byte, 64)))), wire.ErrChunkType)
			}
			for n := range wire.ChunkHeaderLen {
				wantErr(t, c.as(make(wire.Chunk, n)), wire.ErrChunkShort)
			}
		})
	}
}

// viewOf returns one chunk type for the types that share a view.
func viewOf(t wire.ChunkType) wire.ChunkType {
	switch t {
	case wire.ChunkInitAck:
		return wire.ChunkInit
	case wire.ChunkHeartbeatAck:
		return wire.ChunkHeartbeat
	}
	return t
}

// Views of parameters and causes likewise take less than a header.
func TestViewsOfLessThanAHeader(t *testing.T) {
	for n := range 4 {
		p, c := make(wire.Param, n), make(wire.Cause, n)
		for name, err := range map[string]error{
			"Addr":                 errorOf(p.Addr()),
			"CookieIncrement":      errorOf(p.CookieIncrement()),
			"SupportsAddrType":     errorOf(p.SupportsAddrType(wire.ParamIPv4)),
			"AdaptationIndication": errorOf(p.AdaptationIndication()),
			"ListsChunk":           errorOf(p.ListsChunk(wire.ChunkAuth)),
			"HMACIDs":              errorOf(p.HMACIDs()),
			"TSNResetSeq":          errorOf(p.TSNResetSeq()),
			"AsAddrRequest":        errorOf(wire.AsAddrRequest(p)),
			"AsAddrResponse":       errorOf(wire.AsAddrResponse(p)),
			"AsOutgoingReset":      errorOf(wire.AsOutgoingReset(p)),
			"AsIncomingReset":      errorOf(wire.AsIncomingReset(p)),
			"AsAddStreams":         errorOf(wire.AsAddStreams(p)),
			"AsReconfigResponse":   errorOf(wire.AsReconfigResponse(p)),
			"InvalidStream":        errorOf(c.InvalidStream()),
			"MissingParams":        errorOf(c.MissingParams()),
			"Staleness":            errorOf(c.Staleness()),
			"NoUserData":           errorOf(c.NoUserData()),
			"UnrecognizedChunk":    errorOf(c.UnrecognizedChunk()),
			"UnsupportedHMAC":      errorOf(c.UnsupportedHMAC()),
		} {
			check.That(t, err == error(wire.ErrParamShort), "%s of %d octets: %v, want %v", name, n, err,
				wire.ErrParamShort)
		}
	}
}

// What is longer than a length field tells is no parameter.
func TestViewsOfTooMuch(t *testing.T) {
	for pt, view := range map[wire.ParamType]func(wire.Param) error{
		wire.ParamHMACAlgo:           func(p wire.Param) error { return errorOf(p.HMACIDs()) },
		wire.ParamSupportedAddrTypes: func(p wire.Param) error { return errorOf(p.SupportsAddrType(0)) },
		wire.ParamOutgoingReset:      func(p wire.Param) error { return errorOf(wire.AsOutgoingReset(p)) },
		wire.ParamIncomingReset:      func(p wire.Param) error { return errorOf(wire.AsIncomingReset(p)) },
	} {
		for n, want := range map[int]error{wire.MaxParamLen - 1: nil, wire.MaxParamLen + 1: wire.ErrParamLength} {
			p := make(wire.Param, n)
			p[0], p[1] = byte(pt>>8), byte(pt)
			err := view(p)
			check.That(t, err == want, "%v of %d octets: %v, want %v", pt, n, err, want)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }
