package rdmap_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func parseHex(t *testing.T, s string) []byte {
	t.Helper()
	return must.Get(hex.DecodeString(s))(t)
}

func TestControlField(t *testing.T) {
	// req 5040-4.1-2, 5040-4.1-4, 5040-4.1-5, 5040-4.1-7: RV 01, Rsv 00, opcode of Figure 4.
	for op, want := range map[rdmap.Opcode]uint8{
		rdmap.OpWrite: 0x40, rdmap.OpReadRequest: 0x41, rdmap.OpReadResponse: 0x42, rdmap.OpSend: 0x43,
		rdmap.OpSendInv: 0x44, rdmap.OpSendSE: 0x45, rdmap.OpSendSEInv: 0x46, rdmap.OpTerminate: 0x47,
	} {
		check.Equal(t, op.String()+": control", rdmap.Control(op), want)
	}
	// req 5040-4.1-8: Rsv bits are ignored.
	v, op := rdmap.SplitControl(0x73)
	check.That(t, v == 1 && op == rdmap.OpSend, "0x73 is version %d, %v", v, op)
	// req 5040-4.1-3, 5040-4.1-9: Invalidate STag big-endian, zero elsewhere.
	check.Equal(t, "RsvdULP", rdmap.UntaggedRsvd(rdmap.OpSendInv, 0x01020304), [5]byte{0x44, 1, 2, 3, 4})
	check.Equal(t, "RsvdULP", rdmap.UntaggedRsvd(rdmap.OpTerminate, 0), [5]byte{0x47})
}

func TestReadRequestHeader(t *testing.T) {
	// req 5040-4.4-1: SinkSTag, SinkTO, RDMARDSZ, SrcSTag, SrcTO, big-endian, 28 octets.
	r := rdmap.ReadRequest{SinkSTag: 0x01020304, SinkTO: 0x1112131415161718, Size: 0x21222324, SrcSTag: 0x31323334,
		SrcTO: 0x4142434445464748}
	var b [rdmap.ReadRequestLen]byte
	r.Put(&b)
	rdmaptest.Same(t, "header", b[:], parseHex(t, "01020304"+"1112131415161718"+"21222324"+"31323334"+
		"4142434445464748"))
	check.Equal(t, "what was parsed", rdmap.ParseReadRequest(&b), r)
	// req 5040-4.8-16: advanced by what was sent, STags unchanged.
	check.Equal(t, "after the advance", rdmap.Advance(r, 0x20000000),
		(rdmap.ReadRequest{r.SinkSTag, 0x1112131435161718, 0x01222324, r.SrcSTag, 0x4142434465464748}))
}

func TestTerminateCodec(t *testing.T) {
	tag := [ddp.UntaggedHeaderLen]byte{0xC1, 0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	unt := [ddp.UntaggedHeaderLen]byte{0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0}
	var rr [rdmap.ReadRequestLen]byte
	rdmaptest.Fill(rr[:], 0xA0)
	// req 5040-4.8-1, 5040-4.8-2, 5040-4.8-10, 5040-4.8-12, 5040-4.8-13, 5040-4.8-14
	for _, row := range []struct {
		name string
		t    rdmap.Terminate
		hex  string
	}{
		{"no quoted header: four octets", rdmap.Terminate{Layer: rdmap.LayerRDMA, EType: rdmap.LocalCatastrophic}, "00000000"},
		{"layer, type and code are 4, 4 and 8 bits", rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 2, Code: 5}, "12050000"},
		{"M alone: the length", rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 1, HasLength: true, SegLength: 0x1234}, "11008000" + "1234"},
		{"M and D: length and tagged header of 14 octets", rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 1, HasLength: true, HasDDP: true, SegLength: 0x1234, DDP: tag},
			"1100c000" + "1234" + "c1400102030405060708090a0b0c"},
		{"M, D and R: length, untagged header of 18 octets and Read Request", rdmap.Terminate{EType: rdmap.RemoteProtection, Code: rdmap.CodeAccess, HasLength: true, HasDDP: true, HasRDMA: true, SegLength: 46, DDP: unt, RDMA: rr},
			"0102e000" + "002e" + "414100000000000000010000000900000000" + hex.EncodeToString(rr[:])},
		{"the length field is there when only D is set", rdmap.Terminate{Layer: rdmap.LayerDDP, HasDDP: true, DDP: tag}, "10004000" + "0000" + "c1400102030405060708090a0b0c"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := row.t.Append(nil)
			rdmaptest.Same(t, "encoded", b, parseHex(t, row.hex))
			check.That(t, len(b) <= rdmap.MaxTerminateLen, "%d octets", len(b))
			got, err := rdmap.ParseTerminate(b)
			check.That(t, err == nil && got == row.t, "parsed %+v, %v", got, err)
			for n := range b { // req 5040-4.8-18
				_, err := rdmap.ParseTerminate(b[:n])
				check.That(t, errors.Is(err, rdmap.ErrBadTerminate), "%d of %d octets: %v", n, len(b), err)
			}
		})
	}
	// req 5040-4.8-11: reserved bits are ignored.
	got, err := rdmap.ParseTerminate(parseHex(t, "02051fff"))
	check.That(t, err == nil && got == (rdmap.Terminate{EType: rdmap.RemoteOperation, Code: rdmap.CodeInvalidVersion}),
		"reserved bits set: %+v, %v", got, err)
	// req 5040-7.1-2: header fields left in place as zeros do no harm.
	check.Do(rdmap.ParseTerminate(make([]byte, rdmap.MaxTerminateLen)))(t)
}

func TestTextOfEveryStatus(t *testing.T) {
	for s, want := range map[rdmap.Status]string{
		rdmap.StatusSuccess: "success", rdmap.StatusLocLenErr: "local length error",
		rdmap.StatusLocProtErr: "local protection error",
		rdmap.StatusWRFlushErr: "Work Request Flushed Error",
		rdmap.StatusMWBindErr:  "memory management operation error",
		rdmap.StatusBadRespErr: "bad response error", rdmap.StatusRemInvReqErr: "remote invalid request error",
		rdmap.StatusRemAccessErr: "remote access error", rdmap.StatusRemOpErr: "remote operation error",
		200: "unknown status 200",
	} {
		got := s.String()
		check.That(t, got == want, "status %d: %q, want %q", uint8(s), got, want)
	}
	for want, e := range map[string]*rdmap.StreamError{
		"rdmap: the peer terminated the stream: RDMA layer, remote protection error (0x1), access rights " +
			"violation (0x02)": {
			Remote: true, Terminate: &rdmap.Terminate{EType: rdmap.RemoteProtection, Code: rdmap.CodeAccess}},
		"rdmap: the peer terminated the stream: DDP: the message is too long for the receive buffer (0x2/0x05)": {
			Remote: true, Terminate: &rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 2, Code: ddp.CodeTooLong}},
		"rdmap: the peer terminated the stream: RDMA layer, remote operation error (0x2), catastrophic error, " +
			"global (0x08)": {
			Remote: true, Terminate: &rdmap.Terminate{EType: rdmap.RemoteOperation,
				Code: rdmap.CodeCatastrophicGlobal}},
		"rdmap: stream lost: ddp: stream closed": {Cause: ddp.ErrClosed},
	} {
		check.Equal(t, "text", e.Error(), want)
	}
}

func TestRemoteStatus(t *testing.T) {
	for _, row := range []struct {
		layer       rdmap.Layer
		etype, code uint8
		want        rdmap.Status
	}{
		{rdmap.LayerRDMA, 1, rdmap.CodeInvalidSTag, rdmap.StatusRemAccessErr},
		{rdmap.LayerRDMA, 1, rdmap.CodeCannotInvalidate, rdmap.StatusRemAccessErr},
		{rdmap.LayerRDMA, 2, rdmap.CodeCannotInvalidate, rdmap.StatusRemAccessErr}, // req 5040-4.8-9
		{rdmap.LayerRDMA, 2, rdmap.CodeInvalidVersion, rdmap.StatusRemInvReqErr},
		{rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, rdmap.StatusRemInvReqErr},
		{rdmap.LayerRDMA, 2, rdmap.CodeCatastrophic, rdmap.StatusRemOpErr},
		{rdmap.LayerRDMA, 0, 0, rdmap.StatusRemOpErr},
		{rdmap.LayerDDP, 0, 0, rdmap.StatusRemOpErr},
		{rdmap.LayerDDP, 1, ddp.CodeBaseBounds, rdmap.StatusRemAccessErr},
		{rdmap.LayerDDP, 1, ddp.CodeTaggedVersion, rdmap.StatusRemInvReqErr},
		{rdmap.LayerDDP, 2, ddp.CodeTooLong, rdmap.StatusRemInvReqErr},
		{rdmap.LayerLLP, 0, 0, rdmap.StatusRemOpErr},
	} {
		got := rdmap.RemoteStatus(&rdmap.Terminate{Layer: row.layer, EType: rdmap.EType(row.etype), Code: row.code})
		check.That(t, got == row.want, "layer %d type %d code %#x: %v, want %v", row.layer, row.etype, row.code, got,
			row.want)
	}
}

// Every type and code has words of its own; the numbers stand behind them.
func TestTextOfEveryTerminate(t *testing.T) {
	for etype, name := range map[rdmap.EType]string{rdmap.LocalCatastrophic: "local catastrophic error",
		rdmap.RemoteProtection: "remote protection error",
		rdmap.RemoteOperation:  "remote operation error", 7: "unknown error type"} {
		for code, what := range map[uint8]string{rdmap.CodeInvalidSTag: "invalid STag",
			rdmap.CodeBounds: "base or bounds violation", rdmap.CodeAccess: "access rights violation",
			rdmap.CodeNotAssociated: "STag not associated with the RDMAP stream", rdmap.CodeTOWrap: "TO wrap",
			rdmap.CodeInvalidVersion:     "invalid RDMAP version",
			rdmap.CodeUnexpectedOpcode:   "unexpected opcode",
			rdmap.CodeCatastrophic:       "catastrophic error, localized to the RDMAP stream",
			rdmap.CodeCatastrophicGlobal: "catastrophic error, global",
			rdmap.CodeCannotInvalidate:   "STag cannot be invalidated", rdmap.CodeUnspecified: "unspecified error",
			99: "unknown code"} {
			if etype == rdmap.LocalCatastrophic {
				what = "no code"
			}
			want := fmt.Sprintf("RDMA layer, %s (0x%x), %s (0x%02x)", name, uint8(etype), what, code)
			got := (&rdmap.Terminate{Layer: rdmap.LayerRDMA, EType: etype, Code: code}).String()
			check.That(t, got == want, "%q, want %q", got, want)
		}
	}
}
