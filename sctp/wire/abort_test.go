package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestAbortWithFormatError(t *testing.T) {
	// req 9260-3.3.7-5
	for _, c := range []struct {
		name, raw string
		err       error
	}{
		{"cause length 0", "0600000c 00040004 000c0000", wire.ErrParamShort},
		{"cause past the chunk", "06000008 000c0009", wire.ErrParamPartial},
		{"half a cause header", "06000006 000c 0000", wire.ErrParamShort},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Fails(wire.AsAbort(onlyChunk(t, parseHex(t, c.raw))))(t, "error", c.err)
		})
	}
}

func TestAbortHasItsOctetsAndFields(t *testing.T) {
	// req 9260-3.3.7-6
	wantOctets(t, wire.AppendAbort(nil, false), "06000004")
	wantOctets(t, wire.AppendAbort(nil, true), "06010004")

	b := wire.AppendAbort(nil, true)
	b = wire.AppendCause(b, wire.CauseOutOfResource, nil)
	b = wire.AppendCause(b, wire.CauseUserAbort, []byte("bye"))
	b = wire.CloseChunk(b, 0)
	wantOctets(t, b, "0601000f 00040004 000c0007 62796500")

	a := parseOne(t, wire.AsAbort, b)
	check.Equal(t, "T", a.T(), true)
	causes := a.Causes()
	c, _ := causes.Next()
	check.Equal(t, "first cause", c.Code(), wire.CauseOutOfResource)
	c, _ = causes.Next()
	check.Equal(t, "second cause", c.Code(), wire.CauseUserAbort)
	check.Equal(t, "reason", string(c.Info()), "bye")
	c, ok := causes.Next()
	check.That(t, !ok && causes.Err() == nil, "then %x, %v", c, causes.Err())

	a = parseOne(t, wire.AsAbort, parseHex(t, "06fe0004"))
	check.Equal(t, "T with all reserved bits set", a.T(), false)
}
