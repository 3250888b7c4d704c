package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestParamsOfAChunk(t *testing.T) {
	const empty = "c0000004"
	for _, c := range []struct {
		name   string
		params string
		want   []string
		err    error
	}{
		{"none", "", nil, nil},
		{"one without a value", empty, []string{empty}, nil},
		{"padding between two is skipped", "00070005 aa000000" + empty, []string{"00070005 aa", empty}, nil},
		// req 9260-3.2.1-3
		{"odd padding contents are ignored", "00070005 aaffffff" + empty, []string{"00070005 aa", empty}, nil},
		{"final padding is not counted", empty + "00070005 aa", []string{empty, "00070005 aa"}, nil},
		{"final padding is counted", empty + "00070005 aa000000", []string{empty, "00070005 aa"}, nil},

		{"3 octets left", empty + "000700", []string{empty}, wire.ErrParamShort},
		{"length 0", empty + "00070000" + empty, []string{empty}, wire.ErrParamShort},
		{"length 3", empty + "00070003" + empty, []string{empty}, wire.ErrParamShort},
		{"one octet past the chunk", empty + "00070009 01020304", []string{empty}, wire.ErrParamPartial},
		{"65535 octets in a short chunk", empty + "0007ffff 01020304", []string{empty}, wire.ErrParamPartial},
	} {
		t.Run(c.name, func(t *testing.T) {
			ps := paramsOf(t, parseHex(t, c.params))
			for i, want := range c.want {
				got, ok := ps.Next()
				must.That(t, ok, "parameter %d is missing: %v", i, ps.Err())
				wantOctets(t, got, want)
			}
			for range 2 {
				got, ok := ps.Next()
				must.That(t, !ok, "extra parameter %x", got)
			}
			if c.err == nil {
				check.Equal(t, "Err", ps.Err(), nil)
			} else {
				wantErr(t, ps.Err(), c.err)
			}
		})
	}
}

// A parameter may not reach past its chunk into the chunk behind it.
func TestParamStaysInItsChunk(t *testing.T) {
	chunks := parseHex(t, "0900000c 000c000c 61616161 0b000004")
	cs := parsePacket(t, chunks).Chunks()
	c, _ := cs.Next()
	e := must.Get(wire.AsError(c))(t)
	causes := e.Causes()
	cause, ok := causes.Next()
	check.That(t, !ok, "cause %x reaches into the next chunk", cause)
	wantErr(t, causes.Err(), wire.ErrParamPartial)
}

func TestAppendParam(t *testing.T) {
	// req 9260-3.2.1-1
	// req 9260-3.2.1-2
	b := wire.AppendParam(nil, wire.ParamStateCookie, []byte{1, 2, 3, 4, 5})
	wantOctets(t, b, "00070009 01020304 05000000")
	p := onlyParam(t, b)
	check.Equal(t, "Type", p.Type(), wire.ParamStateCookie)
	wantOctets(t, p.Value(), "0102030405")

	b = wire.AppendParam(nil, wire.ParamUnrecognizedParam, parseHex(t, "fffe0005 aa"))
	wantOctets(t, b, "00080009 fffe0005 aa000000")

	b = wire.AppendParam(nil, wire.ParamStateCookie, make([]byte, 70000))
	wantOctets(t, b[:4], "0007ffff")
	check.Equal(t, "octets of a parameter that was cut", len(b), 65536)
}

func TestCloseParam(t *testing.T) {
	t.Run("length counts the padding of all but the last", func(t *testing.T) {
		b := wire.AppendCause([]byte{0xee}, wire.CauseUnrecognizedParams, nil)
		b = wire.AppendParam(b, 0xfffd, []byte{1})
		b = wire.AppendParam(b, 0xfffe, []byte{2})
		wantOctets(t, wire.CloseParam(b, 1), "ee 00080011 fffd0005 01000000 fffe0005 02000000")
	})
	t.Run("parameters past the largest length are left out whole", func(t *testing.T) {
		b := wire.AppendErrorIndication(nil, 7)
		b = wire.AppendCause(b, wire.CauseUserAbort, make([]byte, 40000))
		whole := len(b)
		b = wire.AppendCause(b, wire.CauseUserAbort, make([]byte, 40000))
		check.Equal(t, "length", len(wire.CloseParam(b, 0)), whole)
	})
}

func TestUnknownParamAction(t *testing.T) {
	for _, c := range []struct {
		name         string
		t            wire.ParamType
		stop, report bool
	}{
		{"00: stop in silence", 0x3fff, true, false},
		{"01: stop and report", 0x7ffe, true, true},
		{"10: skip in silence", 0xbfff, false, false},
		{"11: skip and report", 0xfffe, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			stop, report := c.t.UnknownAction()
			check.Equal(t, "stop", stop, c.stop)
			check.Equal(t, "report", report, c.report)
		})
	}
}

func TestParamTypes(t *testing.T) {
	for number, name := range map[wire.ParamType]string{
		1: "Heartbeat Info", 5: "IPv4 Address", 6: "IPv6 Address", 7: "State Cookie",
		8: "Unrecognized Parameter", 9: "Cookie Preservative", 11: "Host Name Address",
		12: "Supported Address Types", 13: "Outgoing SSN Reset Request", 14: "Incoming SSN Reset Request",
		15: "SSN/TSN Reset Request", 16: "Re-configuration Response", 17: "Add Outgoing Streams Request",
		18: "Add Incoming Streams Request", 0x8000: "ECN Capable", 0x8002: "RANDOM", 0x8003: "CHUNKS",
		0x8004: "HMAC-ALGO", 0x8005: "PAD", 0x8008: "Supported Extensions", 0xc000: "Forward-TSN-Supported",
		0xc001: "Add IP Address", 0xc002: "Delete IP Address", 0xc003: "Error Cause Indication",
		0xc004: "Set Primary Address", 0xc005: "Success Indication", 0xc006: "Adaptation Layer Indication",
		0xffff: "parameter type 0xffff",
	} {
		check.Equal(t, "name", number.String(), name)
	}
}
