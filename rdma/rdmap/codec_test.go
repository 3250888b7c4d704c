package rdmap

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b := must.Get(hex.DecodeString(s))(t)
	return b
}

func TestControlField(t *testing.T) {
	// req 5040-4.1-2, 5040-4.1-4, 5040-4.1-5, 5040-4.1-7: RV 01, Rsv 00, opcode of Figure 4.
	for op, want := range map[Opcode]uint8{
		OpWrite: 0x40, OpReadRequest: 0x41, OpReadResponse: 0x42, OpSend: 0x43,
		OpSendInv: 0x44, OpSendSE: 0x45, OpSendSEInv: 0x46, OpTerminate: 0x47,
	} {
		check.Equal(t, op.String()+": control", Control(op), want)
	}
	// req 5040-4.1-8: Rsv bits are ignored.
	v, op := SplitControl(0x73)
	check.That(t, v == 1 && op == OpSend, "0x73 is version %d, %v", v, op)
	// req 5040-4.1-3, 5040-4.1-9: Invalidate STag big-endian, zero elsewhere.
	check.Equal(t, "RsvdULP", untaggedRsvd(OpSendInv, 0x01020304), [5]byte{0x44, 1, 2, 3, 4})
	check.Equal(t, "RsvdULP", untaggedRsvd(OpTerminate, 0), [5]byte{0x47})
}

func TestReadRequestHeader(t *testing.T) {
	// req 5040-4.4-1: SinkSTag, SinkTO, RDMARDSZ, SrcSTag, SrcTO, big-endian, 28 octets.
	r := ReadRequest{SinkSTag: 0x01020304, SinkTO: 0x1112131415161718, Size: 0x21222324, SrcSTag: 0x31323334, SrcTO: 0x4142434445464748}
	var b [ReadRequestLen]byte
	r.Put(&b)
	same(t, "header", b[:], unhex(t, "01020304"+"1112131415161718"+"21222324"+"31323334"+"4142434445464748"))
	check.Equal(t, "what was parsed", ParseReadRequest(&b), r)
	// req 5040-4.8-16: advanced by what was sent, STags unchanged.
	check.Equal(t, "after the advance", r.advance(0x20000000), (ReadRequest{r.SinkSTag, 0x1112131435161718, 0x01222324, r.SrcSTag, 0x4142434465464748}))
}

func TestTerminateCodec(t *testing.T) {
	tag := [untaggedHeaderLen]byte{0xC1, 0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	unt := [untaggedHeaderLen]byte{0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0}
	var rr [ReadRequestLen]byte
	fill(rr[:], 0xA0)
	// req 5040-4.8-1, 5040-4.8-2, 5040-4.8-10, 5040-4.8-12, 5040-4.8-13, 5040-4.8-14
	for _, row := range []struct {
		name string
		t    Terminate
		hex  string
	}{
		{"no quoted header: four octets", Terminate{Layer: LayerRDMA, EType: LocalCatastrophic}, "00000000"},
		{"layer, type and code are 4, 4 and 8 bits", Terminate{Layer: LayerDDP, EType: 2, Code: 5}, "12050000"},
		{"M alone: the length", Terminate{Layer: LayerDDP, EType: 1, HasLength: true, SegLength: 0x1234}, "11008000" + "1234"},
		{"M and D: length and tagged header of 14 octets", Terminate{Layer: LayerDDP, EType: 1, HasLength: true, HasDDP: true, SegLength: 0x1234, DDP: tag},
			"1100c000" + "1234" + "c1400102030405060708090a0b0c"},
		{"M, D and R: length, untagged header of 18 octets and Read Request", Terminate{EType: RemoteProtection, Code: CodeAccess, HasLength: true, HasDDP: true, HasRDMA: true, SegLength: 46, DDP: unt, RDMA: rr},
			"0102e000" + "002e" + "414100000000000000010000000900000000" + hex.EncodeToString(rr[:])},
		{"the length field is there when only D is set", Terminate{Layer: LayerDDP, HasDDP: true, DDP: tag}, "10004000" + "0000" + "c1400102030405060708090a0b0c"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := row.t.Append(nil)
			same(t, "encoded", b, unhex(t, row.hex))
			check.That(t, len(b) <= MaxTerminateLen, "%d octets", len(b))
			got, err := ParseTerminate(b)
			check.That(t, err == nil && got == row.t, "parsed %+v, %v", got, err)
			for n := range b { // req 5040-4.8-18
				_, err := ParseTerminate(b[:n])
				check.That(t, errors.Is(err, ErrBadTerminate), "%d of %d octets: %v", n, len(b), err)
			}
		})
	}
	// req 5040-4.8-11: reserved bits are ignored.
	got, err := ParseTerminate(unhex(t, "02051fff"))
	check.That(t, err == nil && got == (Terminate{EType: RemoteOperation, Code: CodeInvalidVersion}),
		"reserved bits set: %+v, %v", got, err)
	// req 5040-7.1-2: header fields left in place as zeros do no harm.
	check.Do(ParseTerminate(make([]byte, MaxTerminateLen)))(t)
}

func TestTextOfEveryStatus(t *testing.T) {
	for s, want := range map[Status]string{
		StatusSuccess: "success", StatusLocLenErr: "local length error", StatusLocProtErr: "local protection error",
		StatusWRFlushErr: "Work Request Flushed Error", StatusMWBindErr: "memory management operation error",
		StatusBadRespErr: "bad response error", StatusRemInvReqErr: "remote invalid request error",
		StatusRemAccessErr: "remote access error", StatusRemOpErr: "remote operation error", 200: "unknown status 200",
	} {
		got := s.String()
		check.That(t, got == want, "status %d: %q, want %q", uint8(s), got, want)
	}
	for want, e := range map[string]*StreamError{
		"rdmap: the peer terminated the stream: RDMA layer, remote protection error (0x1), access rights violation (0x02)": {
			Remote: true, Terminate: &Terminate{EType: RemoteProtection, Code: CodeAccess}},
		"rdmap: the peer terminated the stream: DDP: the message is too long for the receive buffer (0x2/0x05)": {
			Remote: true, Terminate: &Terminate{Layer: LayerDDP, EType: 2, Code: ddp.CodeTooLong}},
		"rdmap: the peer terminated the stream: RDMA layer, remote operation error (0x2), catastrophic error, global (0x08)": {
			Remote: true, Terminate: &Terminate{EType: RemoteOperation, Code: CodeCatastrophicGlobal}},
		"rdmap: stream lost: ddp: stream closed": {Cause: ddp.ErrClosed},
	} {
		check.Equal(t, "text", e.Error(), want)
	}
}

func TestRemoteStatus(t *testing.T) {
	for _, row := range []struct {
		layer       Layer
		etype, code uint8
		want        Status
	}{
		{LayerRDMA, 1, CodeInvalidSTag, StatusRemAccessErr},
		{LayerRDMA, 1, CodeCannotInvalidate, StatusRemAccessErr},
		{LayerRDMA, 2, CodeCannotInvalidate, StatusRemAccessErr}, // req 5040-4.8-9
		{LayerRDMA, 2, CodeInvalidVersion, StatusRemInvReqErr},
		{LayerRDMA, 2, CodeUnexpectedOpcode, StatusRemInvReqErr},
		{LayerRDMA, 2, CodeCatastrophic, StatusRemOpErr},
		{LayerRDMA, 0, 0, StatusRemOpErr},
		{LayerDDP, 0, 0, StatusRemOpErr},
		{LayerDDP, 1, ddp.CodeBaseBounds, StatusRemAccessErr},
		{LayerDDP, 1, ddp.CodeTaggedVersion, StatusRemInvReqErr},
		{LayerDDP, 2, ddp.CodeTooLong, StatusRemInvReqErr},
		{LayerLLP, 0, 0, StatusRemOpErr},
	} {
		got := remoteStatus(&Terminate{Layer: row.layer, EType: EType(row.etype), Code: row.code})
		check.That(t, got == row.want, "layer %d type %d code %#x: %v, want %v", row.layer, row.etype, row.code, got, row.want)
	}
}

// Every type and code has words of its own; the numbers stand behind them.
func TestTextOfEveryTerminate(t *testing.T) {
	for etype, name := range map[EType]string{LocalCatastrophic: "local catastrophic error", RemoteProtection: "remote protection error",
		RemoteOperation: "remote operation error", 7: "unknown error type"} {
		for code, what := range map[uint8]string{CodeInvalidSTag: "invalid STag", CodeBounds: "base or bounds violation", CodeAccess: "access rights violation",
			CodeNotAssociated: "STag not associated with the RDMAP stream", CodeTOWrap: "TO wrap", CodeInvalidVersion: "invalid RDMAP version",
			CodeUnexpectedOpcode: "unexpected opcode", CodeCatastrophic: "catastrophic error, localized to the RDMAP stream",
			CodeCatastrophicGlobal: "catastrophic error, global", CodeCannotInvalidate: "STag cannot be invalidated", CodeUnspecified: "unspecified error", 99: "unknown code"} {
			if etype == LocalCatastrophic {
				what = "no code"
			}
			want := fmt.Sprintf("RDMA layer, %s (0x%x), %s (0x%02x)", name, uint8(etype), what, code)
			got := (&Terminate{Layer: LayerRDMA, EType: etype, Code: code}).String()
			check.That(t, got == want, "%q, want %q", got, want)
		}
	}
}
