package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestErrorHasItsOctetsAndFields(t *testing.T) {
	// req 9260-3.3.10-1
	b := wire.AppendError(nil)
	b = wire.AppendCause(b, wire.CauseUnrecognizedChunkType, parseHex(t, "fe000006 0102"))
	b = wire.AppendCause(b, wire.CauseInvalidParam, nil)
	b = wire.CloseChunk(b, 0)
	wantOctets(t, b, "09000014 0006000a fe000006 01020000 00070004")

	e := parseOne(t, wire.AsError, b)
	causes := e.Causes()
	for _, want := range []wire.CauseCode{wire.CauseUnrecognizedChunkType, wire.CauseInvalidParam} {
		c, ok := causes.Next()
		must.That(t, ok, "no %v: %v", want, causes.Err())
		check.Equal(t, "Code", c.Code(), want)
	}
}

// Causes in front of a malformed one are still seen.
func TestErrorWithMalformedCause(t *testing.T) {
	e := parseOne(t, wire.AsError, parseHex(t, "0900000c 00040004 000c0003"))
	causes := e.Causes()
	c, ok := causes.Next()
	must.That(t, ok && c.Code() == wire.CauseOutOfResource, "first cause %x", c)
	c, ok = causes.Next()
	check.That(t, !ok, "malformed cause %x", c)
	wantErr(t, causes.Err(), wire.ErrParamShort)
}
