package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestAsconfAckHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendAsconfAck(nil, 0x01020304)
	wantOctets(t, b, "80000008 01020304")

	// The example of RFC 5061 section 4.3.1: a failed delete, after a success.
	refused := onlyParam(t, wire.AppendAddrRequest(nil, wire.ParamDeleteIP, 0x01023476, testAddr))
	b = wire.AppendSuccessIndication(b, 5)
	start := len(b)
	b = wire.AppendErrorIndication(b, 0x01023476)
	b = wire.AppendCause(b, wire.CauseDeleteLastAddr, refused)
	b = wire.CloseParam(b, start)
	b = wire.CloseChunk(b, 0)
	wantOctets(t, b, `8000002c 01020304
		c0050008 00000005
		c003001c 01023476 00a00014 c0020010 01023476 00050008 c0000201`)

	a := parseOne(t, wire.AsAsconfAck, b)
	check.Equal(t, "Seq", a.Seq(), 0x01020304)
	ps := a.Params()
	p, _ := ps.Next()
	ok := must.Get(wire.AsAddrResponse(p))(t)
	check.Equal(t, "Success", ok.Success(), true)
	check.Equal(t, "CorrelationID", ok.CorrelationID(), 5)

	p, _ = ps.Next()
	failed := must.Get(wire.AsAddrResponse(p))(t)
	check.Equal(t, "Success", failed.Success(), false)
	check.Equal(t, "CorrelationID", failed.CorrelationID(), 0x01023476)
	causes := failed.Causes()
	cause, _ := causes.Next()
	check.Equal(t, "Code", cause.Code(), wire.CauseDeleteLastAddr)
	quoted := cause.Params()
	p, _ = quoted.Next()
	check.Equal(t, "Addr", must.Get(wire.AsAddrRequest(p))(t).Addr(), testAddr)
}

func TestAddrResponseForms(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		err       error
	}{
		{"success with octets behind it", "c005000c 00000001 00000000", wire.ErrParamLength},
		{"success without correlation ID", "c0050004", wire.ErrParamLength},
		{"error without correlation ID", "c0030006 0000", wire.ErrParamLength},
		{"a request", "c0010010 00000001 00050008 c0000201", wire.ErrParamType},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Fails(wire.AsAddrResponse(onlyParam(t, parseHex(t, c.raw))))(t, "error", c.err)
		})
	}
}
