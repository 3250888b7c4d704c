package mpa

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestOctetsOfFrames(t *testing.T) {
	long := strings.Repeat("x", 512)
	for _, row := range []struct {
		name string
		f    Frame
		want string // behind the key
	}{
		// req 5044-7.1.1-1, 5044-7.1.1-3, 5044-7.1.1-5, 5044-7.1.1-13, 5044-7.1.1-19, 5044-7.1.1-20
		{"plain", Frame{Revision: 1}, "\x00\x01\x00\x00"},
		{"with private data", Frame{Revision: 1, Private: []byte("hello")}, "\x00\x01\x00\x05hello"},
		{"M", Frame{Revision: 1, Markers: true}, "\x80\x01\x00\x00"},
		{"C", Frame{Revision: 1, CRC: true}, "\x40\x01\x00\x00"},
		// req 5044-7.1.1-12
		{"R", Frame{IsReply: true, Revision: 1, Rejected: true}, "\x20\x01\x00\x00"},
		// req 5044-7.1.1-23
		{"512 octets", Frame{Revision: 1, Private: []byte(long)}, "\x00\x01\x02\x00" + long},
		// req 6581-6-1: S, and the connection data first
		{"S", Frame{Revision: 2, Setup: &llp.Setup{IRD: 1, ORD: 2}}, "\x10\x02\x00\x04\x00\x01\x00\x02"},
		{"S with private data", Frame{Revision: 2, CRC: true, Setup: &llp.Setup{IRD: 0x1234, ORD: 0x2345},
			Private: []byte("hi")}, "\x50\x02\x00\x06\x12\x34\x23\x45hi"},
		{"all", Frame{IsReply: true, Revision: 2, CRC: true, Markers: true, Rejected: true, Setup: &llp.Setup{PeerToPeer: true,
			RTR: llp.RTRWrite}, Private: []byte("hi")}, "\xf0\x02\x00\x06\x80\x00\x80\x00hi"},
	} {
		key := "MPA ID Req Frame"
		if row.f.IsReply {
			key = "MPA ID Rep Frame"
		}
		got := row.f.Append(nil)
		check.Equal(t, row.name, string(got), key+row.want)
		back, n, err := ParseFrame(got, row.f.IsReply)
		must.That(t, err == nil && n == len(got), "%s: %d octets, %v", row.name, n, err)
		check.That(t, bytes.Equal(back.Append(nil), got), "%s: %+v", row.name, back)
		for i := range got {
			_, n, err := ParseFrame(got[:i], row.f.IsReply)
			check.That(t, n == 0 && err == nil, "%s: %d octets: %d, %v", row.name, i, n, err)
		}
		// req 5044-7.1.2-24: what follows is not of the frame.
		more, n, err := ParseFrame(append(bytes.Clone(got), "more"...), row.f.IsReply)
		check.That(t, err == nil && n == len(got) && bytes.Equal(more.Private, back.Private), "%s, and more: %q",
			row.name,
			more.Private)
	}
}

func TestFieldsOfFramesThatAreNotChecked(t *testing.T) {
	for _, row := range []struct {
		name  string
		octet byte
		rev   byte
		reply bool
	}{
		// req 5044-7.1.1-14
		{"Res", 0x0F, 1, false},
		{"Res of a Reply", 0x0F, 1, true},
		{"Res of revision 2", 0x0F, 2, true},
		{"S, which is of Res in revision 1", bitS, 1, false},
		{"the same in a Reply", bitS, 1, true},
		// req 5044-7.1.1-11
		{"R of a Request", bitR, 1, false},
	} {
		b := (&Frame{IsReply: row.reply, Revision: row.rev}).Append(nil)
		b[keyLen] |= row.octet
		f, n, err := ParseFrame(b, row.reply)
		check.That(t, n == len(b) && err == nil && f.Setup == nil && !f.Rejected, "%s: %+v, %d, %v", row.name, f, n,
			err)
	}
}

// malformed are start-up frames with one thing wrong. Each is told as soon as it shows.
var malformed = []struct {
	name  string
	wrong func(b []byte) []byte // of a frame with 5 octets of private data
	fault FrameFault
	at    int // octets that tell
}{
	{"first octet of the key", func(b []byte) []byte { b[0] = 'm'; return b }, FaultKey, 1},
	{"last octet of the key", func(b []byte) []byte { b[15] = 'E'; return b }, FaultKey, 16},
	{"another protocol", func([]byte) []byte { return []byte("GET / HTTP/1.1\r\n\r\n") }, FaultKey, 1},
	{"the other key", func(b []byte) []byte { b[9] ^= 'q' ^ 'p'; return b }, FaultCrossed, 16},
	{"revision 0, of the RDMA Consortium", func(b []byte) []byte { b[17] = 0; return b }, FaultRevision, 20},
	{"revision 3", func(b []byte) []byte { b[17] = 3; return b }, FaultRevision, 20},
	{"revision 255", func(b []byte) []byte { b[17] = 255; return b }, FaultRevision, 20},
	{"PD_Length of 513", func(b []byte) []byte { b[18], b[19] = 2, 1; return b }, FaultPrivateData, 20},
	{"PD_Length of 65535", func(b []byte) []byte { b[18], b[19] = 255, 255; return b }, FaultPrivateData, 20},
	{"S with 3 octets", func(b []byte) []byte { b[16] |= bitS; b[17], b[19] = 2, 3; return b[:23] }, FaultSetup, 20},
	{"S with none", func(b []byte) []byte { b[16] |= bitS; b[17], b[19] = 2, 0; return b[:20] }, FaultSetup, 20},
}

func TestMalformedFrames(t *testing.T) {
	// req 5044-7.1.1-2, 5044-7.1.1-4: the key
	// req 5044-7.1.2-20: the key of the other frame
	// req 5044-7.1.1-16, 5044-C.2.2-1: the revision
	// req 5044-7.1.1-21, 5044-7.1.2-22, 5044-7.1.2-25: PD_Length
	for _, isReply := range []bool{false, true} {
		for _, row := range malformed {
			b := request("hello")
			if isReply {
				b = reply("hello")
			}
			b = row.wrong(b)
			for i := range len(b) + 1 {
				_, n, err := ParseFrame(b[:i], isReply)
				var f *FrameError
				if i < row.at {
					check.That(t, n == 0 && err == nil, "%s, %d octets: %d, %v", row.name, i, n, err)
					continue
				}
				check.That(t, n == 0 && errors.As(err, &f) && f.Fault == row.fault, "%s, %d octets: %d, %v", row.name,
					i, n,
					err)
			}
		}
	}
}

// FuzzFrame takes start-up frames apart. What is one is written again octet by octet, but for bits
// that nobody looks at.
func FuzzFrame(f *testing.F) {
	f.Add(request("hello"), false)
	f.Add(reply(""), true)
	f.Add((&Frame{Revision: 2, Markers: true, Setup: &llp.Setup{IRD: 3, ORD: 4}, Private: []byte("x")}).Append(nil),
		false)
	f.Add([]byte("MPA ID Rep Frame\xff\x02\x00\x03abc"), true)
	f.Fuzz(func(t *testing.T, b []byte, isReply bool) {
		frame, n, err := ParseFrame(b, isReply)
		must.That(t, n >= 0 && n <= len(b) && n <= MaxFrameLen && (err == nil || n == 0), "%d octets, %v", n, err)
		for i := range min(len(b), MaxFrameLen+1) { // no beginning says otherwise
			_, k, e := ParseFrame(b[:i], isReply)
			must.That(t, (k == 0 || k == n) && (e == nil || err != nil && e.Error() == err.Error()),
				"%d of %d octets: %d, %v",
				i, len(b), k, e)
		}
		if n == 0 {
			return
		}
		unseen := byte(0x0F)
		if frame.Revision == 1 {
			unseen |= bitS
		}
		if !isReply {
			unseen |= bitR
		}
		want := bytes.Clone(b[:n])
		want[keyLen] &^= unseen
		if frame.Setup != nil && !frame.Setup.PeerToPeer { // B, C and D are not looked at
			want[FrameHeaderLen] &= 0x3F
			want[FrameHeaderLen+2] &= 0x3F
		}
		must.That(t, bytes.Equal(frame.Append(nil), want), "%x became %x", b[:n], frame.Append(nil))
	})
}
