package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestCookieEchoHasItsOctetsAndFields(t *testing.T) {
	// req 9260-3.3.11-3
	state := onlyParam(t, wire.AppendParam(nil, wire.ParamStateCookie, []byte{1, 2, 3, 4, 5}))
	b := wire.AppendCookieEcho(nil, state.Value())
	wantOctets(t, b, "0a000009 01020304 05000000")
	c := parseOne(t, wire.AsCookieEcho, b)
	wantOctets(t, c.Cookie(), "0102030405")
}

// The largest State Cookie that a parameter can hold comes back whole.
func TestLargestCookie(t *testing.T) {
	cookie := make([]byte, wire.MaxParamLen-4)
	check.Equal(t, "octets of cookie", len(parseOne(t, wire.AsCookieEcho, wire.AppendCookieEcho(nil, cookie)).Cookie()),
		len(cookie))
}
