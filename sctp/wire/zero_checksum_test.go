package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestZeroChecksumAcceptable(t *testing.T) {
	// req 9653-4-1, 9653-4-2
	b := wire.AppendZeroChecksumAcceptable(nil, wire.ErrorDetectionDTLS)
	wantOctets(t, b, "80010008 00000001")
	p := onlyParam(t, b)
	check.Equal(t, "method", must.Get(p.ZeroChecksumMethod())(t), wire.ErrorDetectionDTLS)
	stop, report := p.Type().UnknownAction()
	check.That(t, !stop && !report, "who does not know the parameter stops %v, reports %v", stop, report)

	for name, raw := range map[string]string{
		"no method":             "80010004",
		"half a method":         "80010006 0000",
		"octets after a method": "8001000c 00000001 00000000",
	} {
		t.Run(name, func(t *testing.T) {
			check.Fails(onlyParam(t, parseHex(t, raw)).ZeroChecksumMethod())(t, "error", wire.ErrParamLength)
		})
	}
	check.Fails(onlyParam(t, parseHex(t, "80080008 00000001")).ZeroChecksumMethod())(t, "error", wire.ErrParamType)
}

func TestErrorDetectionMethodsHaveNames(t *testing.T) {
	for number, name := range map[wire.ErrorDetectionMethod]string{
		0: "none", 1: "SCTP over DTLS", 7: "error detection method 7",
	} {
		check.Equal(t, "name", number.String(), name)
	}
}
