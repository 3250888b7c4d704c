package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestChunksOfAPacket(t *testing.T) {
	const cookieAck = "0b000004"
	for _, c := range []struct {
		name   string
		chunks string
		want   []string // the chunks that are seen, header and value
		err    error
	}{
		{"no chunk", "", nil, nil},
		{"header only", cookieAck, []string{cookieAck}, nil},
		// req 9260-6.10-5
		{"two chunks, in packet order", cookieAck + "0a000008 01020304", []string{cookieAck, "0a000008 01020304"}, nil},
		{"padding is skipped", "0a000005 aa000000" + cookieAck, []string{"0a000005 aa", cookieAck}, nil},
		// req 9260-3.2-11
		{"odd padding contents are ignored", "0a000005 aaffffff" + cookieAck, []string{"0a000005 aa", cookieAck}, nil},
		// req 9260-3.2-8
		{"final padding may be missing", cookieAck + "0a000005 aa", []string{cookieAck, "0a000005 aa"}, nil},
		{"final padding may be cut", cookieAck + "0a000005 aa00", []string{cookieAck, "0a000005 aa"}, nil},
		{"final padding may be counted", "0a000008 aa000000", []string{"0a000008 aa000000"}, nil},

		{"1 octet left", cookieAck + "0b", []string{cookieAck}, wire.ErrChunkShort},
		{"3 octets left", cookieAck + "0b0000", []string{cookieAck}, wire.ErrChunkShort},
		// req 9260-6.10-7
		{"length 0", cookieAck + "0b000000" + cookieAck, []string{cookieAck}, wire.ErrChunkShort},
		{"length 1", cookieAck + "0b000001" + cookieAck, []string{cookieAck}, wire.ErrChunkShort},
		{"length 2", cookieAck + "0b000002" + cookieAck, []string{cookieAck}, wire.ErrChunkShort},
		{"length 3", cookieAck + "0b000003" + cookieAck, []string{cookieAck}, wire.ErrChunkShort},
		// req 9260-6.10-6
		{"one octet past the end", cookieAck + "0a000009 01020304", []string{cookieAck}, wire.ErrChunkPartial},
		{"65535 octets in a short packet", cookieAck + "0a00ffff 01020304", []string{cookieAck}, wire.ErrChunkPartial},
	} {
		t.Run(c.name, func(t *testing.T) {
			cs := parsePacket(t, parseHex(t, c.chunks)).Chunks()
			for i, want := range c.want {
				got, ok := cs.Next()
				must.That(t, ok, "chunk %d is missing: %v", i, cs.Err())
				wantOctets(t, got, want)
			}
			// A malformed rest stays dropped, however often it is asked for.
			for range 2 {
				got, ok := cs.Next()
				must.That(t, !ok, "extra chunk %x", got)
			}
			if c.err == nil {
				check.Equal(t, "Err", cs.Err(), nil)
			} else {
				wantErr(t, cs.Err(), c.err)
			}
		})
	}
}

func TestChunkFields(t *testing.T) {
	// req 9260-3.2-1
	c := onlyChunk(t, parseHex(t, "0a5a0006 0102 0000"))
	check.Equal(t, "Type", c.Type(), wire.ChunkCookieEcho)
	check.Equal(t, "Flags", c.Flags(), 0x5a)
	wantOctets(t, c.Value(), "0102")
}

// A view must not reach into the octets behind it, even by append.
func TestViewsEndWithTheirChunk(t *testing.T) {
	b := parseHex(t, "0a000005 aa000000 0b000004")
	cs := parsePacket(t, b).Chunks()
	c, _ := cs.Next()
	check.That(t, cap(c) == 5 && cap(c.Value()) == 1, "capacity of chunk %d and value %d, want 5 and 1", cap(c),
		cap(c.Value()))
}

func TestAppendChunk(t *testing.T) {
	// req 9260-3.2-9
	// req 9260-3.2-10
	for _, c := range []struct{ name, value, want string }{
		{"no value", "", "fe010004"},
		{"three octets of padding", "01", "fe010005 01000000"},
		{"two octets of padding", "0102", "fe010006 01020000"},
		{"one octet of padding", "010203", "fe010007 01020300"},
		{"no padding", "01020304", "fe010008 01020304"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantOctets(t, wire.AppendChunk(nil, 0xfe, 1, parseHex(t, c.value)), c.want)
		})
	}
	check.Equal(t, "length of a chunk that was cut",
		len(onlyChunk(t, wire.AppendChunk(nil, 0xfe, 0, make([]byte, 70000)))), wire.MaxChunkLen)
}

func TestPaddingIsZerosUpToFour(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 3, 2: 2, 3: 1, 4: 0, 5: 3, 65535: 1} {
		got := wire.Padding(n)
		check.That(t, len(got) == want && cap(got) == want && bytes.Equal(got, make([]byte, want)),
			"Padding(%d) = %x with capacity %d, want %d zeros", n, got, cap(got), want)
		check.Equal(t, "PaddedLen", wire.PaddedLen(n), n+want)
	}
}

// Chunk Length counts the padding of all parameters but the last.
func TestCloseChunk(t *testing.T) {
	// req 9260-3.2-7
	b := wire.AppendAbort([]byte{0xee}, false)
	b = wire.AppendCause(b, wire.CauseUserAbort, []byte("a"))
	b = wire.AppendCause(b, wire.CauseUserAbort, []byte("b"))
	b = wire.CloseChunk(b, 1)
	wantOctets(t, b, "ee 06000011 000c0005 61000000 000c0005 62000000")

	t.Run("parameters past the largest length are left out whole", func(t *testing.T) {
		b := wire.AppendError(nil)
		b = wire.AppendCause(b, wire.CauseUserAbort, make([]byte, 40000))
		whole := len(b)
		b = wire.AppendCause(b, wire.CauseProtocolViolation, make([]byte, 40000))
		check.Equal(t, "length", len(onlyChunk(t, wire.CloseChunk(b, 0))), whole)
	})
}

func TestUnknownChunkAction(t *testing.T) {
	for _, c := range []struct {
		name         string
		t            wire.ChunkType
		stop, report bool
	}{
		{"00: stop in silence", 0x3e, true, false},
		{"01: stop and report", 0x7e, true, true},
		{"10: skip in silence", 0xbe, false, false},
		{"11: skip and report", 0xfe, false, true},
		{"PAD is skipped", wire.ChunkPad, false, false},
		{"AUTH stops the packet", wire.ChunkAuth, true, false},
		{"ASCONF is reported", wire.ChunkAsconf, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			stop, report := c.t.UnknownAction()
			check.Equal(t, "stop", stop, c.stop)
			check.Equal(t, "report", report, c.report)
		})
	}
}

// The numbers that the RFCs assign. A name must be the RFC's, and known types must not share one.
func TestChunkTypes(t *testing.T) {
	// req 9260-3.2-1
	for number, name := range map[wire.ChunkType]string{
		0: "DATA", 1: "INIT", 2: "INIT ACK", 3: "SACK", 4: "HEARTBEAT", 5: "HEARTBEAT ACK", 6: "ABORT",
		7: "SHUTDOWN", 8: "SHUTDOWN ACK", 9: "ERROR", 10: "COOKIE ECHO", 11: "COOKIE ACK", 12: "ECNE",
		13: "CWR", 14: "SHUTDOWN COMPLETE", 0x0f: "AUTH", 64: "I-DATA", 0x80: "ASCONF-ACK",
		130: "RE-CONFIG", 0x84: "PAD", 192: "FORWARD-TSN", 0xc1: "ASCONF", 194: "I-FORWARD-TSN",
		63: "chunk type 63", 255: "chunk type 255",
	} {
		check.Equal(t, "name", number.String(), name)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for e := wire.ErrPacketShort; e <= wire.ErrReconfigCombination; e++ {
		s := e.Error()
		check.That(t, strings.HasPrefix(s, "wire: ") && strings.Contains(s, ";"),
			"error %d reads %q, want fault; remedy", e, s)
	}
	check.Equal(t, "an error of no name", wire.FormatError(0).Error(), "wire: format error 0")
	check.Equal(t, "an error past the last", wire.FormatError(200).Error(), "wire: format error 200")
}
