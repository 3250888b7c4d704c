package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestHeartbeatHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendHeartbeat(nil, []byte("nonce"))
	wantOctets(t, b, "0400000d 00010009 6e6f6e63 65000000")
	h := parseOne(t, wire.AsHeartbeat, b)
	check.Equal(t, "Type", h.Type(), wire.ChunkHeartbeat)
	check.Equal(t, "Info", string(h.Info()), "nonce")

	b = wire.AppendHeartbeatAck(nil, h.Info())
	wantOctets(t, b, "0500000d 00010009 6e6f6e63 65000000")
	ack := parseOne(t, wire.AsHeartbeat, b)
	check.Equal(t, "Type", ack.Type(), wire.ChunkHeartbeatAck)
	check.Equal(t, "Info", string(ack.Info()), "nonce")
}

func TestHeartbeatForms(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		info      string
		err       error
	}{
		{"empty info", "04000008 00010004", "", nil},
		{"padding counted in the chunk length", "0400000c 00010005 61000000", "61", nil},
		{"more parameters follow", "04000010 00010008 61626364 80050004", "61626364", nil},
		{"no info", "04000004", "", wire.ErrParamMissing},
		{"another parameter", "04000008 80050004", "", wire.ErrParamMissing},
		{"half a parameter header", "04000006 0001", "", wire.ErrParamShort},
		{"info length 3", "04000008 00010003", "", wire.ErrParamShort},
		{"info past the chunk", "04000008 00010005", "", wire.ErrParamPartial},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := wire.AsHeartbeat(onlyChunk(t, parseHex(t, c.raw)))
			if c.err != nil {
				wantErr(t, err, c.err)
				return
			}
			must.OK(t, err)
			wantOctets(t, h.Info(), c.info)
			check.Equal(t, "capacity", cap(h.Info()), len(h.Info()))
		})
	}
}

func TestHeartbeatIsCutToFit(t *testing.T) {
	check.Equal(t, "octets of info",
		len(parseOne(t, wire.AsHeartbeat, wire.AppendHeartbeat(nil, make([]byte, 70000))).Info()),
		wire.MaxHeartbeatInfo)
}
