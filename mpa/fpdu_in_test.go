package mpa

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/crc32c"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// The FPDUs that RFC 5044 has as examples (Figures 5 and 6), the second behind one of 492 octets.
var (
	figure5 = unhex("00000000 002a4143 00000000 00000000 00000001 00000000" + strings.Repeat("00", 24) + "52239983")
	figure6 = unhex("002a4143 00000000 00000000 00000002 00000000 00000014" + strings.Repeat("00", 24) + "84925898")
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// scan returns all ULPDUs of a stream that arrives in pieces of these sizes, over and over, and
// what is left of it.
func scan(d Deframer, stream []byte, sizes ...int) (ulpdus [][]byte, left int, err error) {
	stream = bytes.Clone(stream)
	at, come := 0, 0 // taken, received
	for i := 0; ; i++ {
		for at < come {
			u, n, err := d.Next(stream[at:come:come])
			if err != nil {
				return ulpdus, come - at, err
			}
			if n == 0 {
				break
			}
			ulpdus = append(ulpdus, bytes.Clone(u))
			at += n
		}
		if come == len(stream) {
			return ulpdus, come - at, nil
		}
		come += min(len(stream)-come, sizes[i%len(sizes)])
	}
}

func TestExamplesOfTheRFC(t *testing.T) {
	// req 5044-4.1-1, 5044-4.4-11, 5044-4.4-13, 5044-4.3-8, 5044-7.1.2-19: the first FPDU begins
	// with a Marker of zeros.
	d := Deframer{HasMarkers: true, ChecksCRC: true}
	u, n, err := d.Next(bytes.Clone(figure5))
	check.That(t, err == nil && n == len(figure5) && bytes.Equal(u, figure5[6:48]), "figure 5: %x, %d, %v", u, n, err)
	// req 5044-4.2-1, 5044-4.2-4, 5044-4.3-4: a Marker within points back 0x14 octets.
	d = Deframer{HasMarkers: true, ChecksCRC: true, nextMarker: 0x200 - 0x1ec}
	want := slices.Concat(figure6[2:20], make([]byte, 24))
	u, n, err = d.Next(bytes.Clone(figure6))
	check.That(t, err == nil && n == len(figure6) && bytes.Equal(u, want), "figure 6: %x, %d, %v", u, n, err)
	check.Equal(t, "octets to the next Marker", d.nextMarker, 0x400-0x1ec-len(figure6))
}

func TestULPDUsAreFoundWhateverTheirLengths(t *testing.T) {
	for _, row := range []struct {
		name string
		n    int
	}{
		{"nothing", 0}, {"one octet", 1}, {"pad of 3", 3}, {"pad of 2", 4}, {"pad of 1", 5}, {"no pad", 6},
		{"up to the first Marker", 508 - 6}, {"beyond it", 508 - 2}, {"a Marker between pad and CRC", 508 - 2 - 4},
		{"two Markers", 1100}, {"the longest of a sender", MaxMULPDU},
	} {
		// req 5044-4.1-2, 5044-4.1-5, 5044-3-1, 5044-3-8, 5044-4.3-11, 5044-4.3-12, 5044-5.2-1,
		// 5044-4.4-15, 5044-5.1-6, 5044-A.4-1, 5044-6-2, 5044-6-3: however the stream is cut,
		// ULPDUs come as they were, with their lengths and nothing else.
		list := [][]byte{patternOf(row.n), []byte("between"), patternOf(row.n), patternOf(11)}
		var plain []byte
		for _, u := range list {
			plain = append(plain, fpdu(u)...)
			check.Equal(t, row.name+": FPDU modulo 4", len(fpdu(u))%4, 0)
		}
		marked, _ := withMarkers(list...)
		for name, d := range map[string]Deframer{"plain": {ChecksCRC: true}, "with Markers": {ChecksCRC: true,
			HasMarkers: true}} {
			stream := plain
			if d.HasMarkers {
				stream = marked
			}
			for _, size := range []int{len(stream), 1, 7, 512} {
				if size == 1 && len(stream) > 10000 {
					size = 1000
				}
				got, left, err := scan(d, stream, size)
				must.That(t, err == nil && left == 0 && slices.EqualFunc(got, list, bytes.Equal),
					"%s, %s, in pieces of %d: %d ULPDUs, %d octets left, %v", row.name, name, size, len(got), left, err)
			}
		}
	}
}

// The ULPDUs are in the buffer that was given: nothing was copied.
func TestULPDUsAreSlicesOfTheBuffer(t *testing.T) {
	b := slices.Concat(fpdu(patternOf(100)), fpdu(patternOf(33)), fpdu(patternOf(2))[:7])
	d := Deframer{ChecksCRC: true}
	at := 0
	for _, want := range []int{100, 33} {
		u, n, err := d.Next(b[at:])
		must.That(t, err == nil && len(u) == want && cap(u) == want && &u[0] == &b[at+2], "%d octets, %v", len(u), err)
		at += n
	}
	_, n, err := d.Next(b[at:])
	check.That(t, n == 0 && err == nil && d.Need(b[at:]) == 8 && d.Need(b[at:at+1]) == 2,
		"half an FPDU: %d, %v, needs %d",
		n, err, d.Need(b[at:]))
}

// The longest FPDU needs a buffer of its length, and tells that from its first octets.
func TestLongestFPDU(t *testing.T) {
	// req 5044-A.5.2-1
	for _, n := range []int{130, MaxMULPDU, 65535} {
		b := fpdu(patternOf(n))
		d := Deframer{ChecksCRC: true}
		check.Equal(t, "octets that are needed", d.Need(b[:2]), len(b))
		u, k, err := d.Next(b)
		check.That(t, len(u) == n && k == len(b) && err == nil, "%d octets: %d, %v", n, len(u), err)
	}
	// req 5044-3-5: DDP gives none that is longer than a sender may have.
	a, b := pair(t, Config{EMSS: 65535}, Config{})
	a.write(b, 0, patternOf(MaxMULPDU+100))
	_, pieces := a.Next(0, MaxBatch)
	first := joined(pieces)
	check.Equal(t, "octets of the first ULPDU", int(binary.BigEndian.Uint16(first)), MaxMULPDU)
}

func TestWhatAReceiverIgnores(t *testing.T) {
	// resum makes the CRC right again.
	resum := func(b []byte) { binary.LittleEndian.PutUint32(b[len(b)-4:], crc32c.Update(0, b[:len(b)-4])) }
	u := patternOf(600)
	for _, row := range []struct {
		name   string
		d      Deframer
		change func(b []byte)
	}{
		// req 5044-4.1-4
		{"the pad", Deframer{ChecksCRC: true, HasMarkers: true}, func(b []byte) { b[len(b)-5] = 1; b[len(b)-6] = 2; resum(b) }},
		// req 5044-4.2-3
		{"RESERVED of the first Marker", Deframer{ChecksCRC: true, HasMarkers: true}, func(b []byte) { b[0], b[1] = 0xFF, 0xFF; resum(b) }},
		{"RESERVED of another Marker", Deframer{ChecksCRC: true, HasMarkers: true}, func(b []byte) { b[512], b[513] = 0xFF, 0xFF; resum(b) }},
		// req 5044-4.2-6
		{"the low bits of FPDUPTR", Deframer{ChecksCRC: true, HasMarkers: true}, func(b []byte) { b[515] |= 3; resum(b) }},
		{"the low bits of an FPDUPTR of zero", Deframer{ChecksCRC: true, HasMarkers: true}, func(b []byte) { b[3] = 3; resum(b) }},
		// req 5044-4.1-8, 5044-7.1.1-10
		{"the CRC where there is none", Deframer{HasMarkers: true}, func(b []byte) { b[len(b)-1] ^= 1 }},
		{"the octets where there is no CRC", Deframer{HasMarkers: true}, func(b []byte) { copy(b[len(b)-4:], "none") }},
	} {
		b, _ := withMarkers(u)
		row.change(b)
		got, n, err := row.d.Next(b)
		check.That(t, err == nil && n == len(b) && bytes.Equal(got, u), "%s: %d octets, %v", row.name, n, err)
	}
}

func TestInvalidFPDUs(t *testing.T) {
	resum := func(b []byte) { binary.LittleEndian.PutUint32(b[len(b)-4:], crc32c.Update(0, b[:len(b)-4])) }
	both := Deframer{ChecksCRC: true, HasMarkers: true}
	for _, row := range []struct {
		name   string
		d      Deframer
		change func(b []byte)
		code   uint8
	}{
		// req 5044-6-1, 5044-4.4-15, 5044-4.4-16, 5044-4.1-6, 5044-8-2: one bit anywhere
		{"a bit of the ULPDU", both, func(b []byte) { b[100] ^= 1 }, CodeCRC},
		{"a bit of the CRC", both, func(b []byte) { b[len(b)-1] ^= 1 }, CodeCRC},
		{"a bit of the pad", both, func(b []byte) { b[len(b)-5] ^= 1 }, CodeCRC},
		{"a bit of the DDP header", both, func(b []byte) { b[6] ^= 1 }, CodeCRC},
		// req 5044-4.3-1, 5044-4.3-7
		{"a bit of a Marker", both, func(b []byte) { b[512] ^= 1 }, CodeCRC},
		{"a bit of the Marker ahead", both, func(b []byte) { b[0] ^= 1 }, CodeCRC},
		{"no CRC at all", both, func(b []byte) { copy(b[len(b)-4:], "\x00\x00\x00\x00") }, CodeCRC},
		{"the CRC in network order", both, func(b []byte) { slices.Reverse(b[len(b)-4:]) }, CodeCRC},
		// req 5044-8-3, 5044-8-6: the CRC is right, the place is not
		{"a Marker too far back", both, func(b []byte) { b[515] += 4; resum(b) }, CodeMarker},
		{"a Marker not far enough", both, func(b []byte) { b[515] -= 4; resum(b) }, CodeMarker},
		{"a Marker of zero within", both, func(b []byte) { b[514], b[515] = 0, 0; resum(b) }, CodeMarker},
		{"the second Marker", both, func(b []byte) { b[1027] += 4; resum(b) }, CodeMarker},
		{"a Marker ahead that is not zero", both, func(b []byte) { b[3] = 4; resum(b) }, CodeMarker},
		{"a Marker, where there are no CRCs", Deframer{HasMarkers: true}, func(b []byte) { b[515] += 4 }, CodeMarker},
	} {
		b, _ := withMarkers(patternOf(1100))
		row.change(b)
		u, n, err := row.d.Next(b)
		var e *Error
		check.That(t, u == nil && n == 0 && errors.As(err, &e) && e.Code == row.code, "%s: %d octets, %v", row.name, n,
			err)
	}
	// Whatever bit of an FPDU is wrong.
	b := fpdu(patternOf(29))
	for i := range 8 * len(b) {
		wrong := bytes.Clone(b)
		wrong[i/8] ^= 1 << (i % 8)
		d := Deframer{ChecksCRC: true}
		_, n, err := d.Next(append(wrong, make([]byte, 1<<16)...))
		check.That(t, n == 0 && err != nil, "bit %d: %d octets, %v", i, n, err)
	}
}

// A sender that goes on beyond 2^32 octets has its Markers where they were before, as sequence
// numbers that wrap have.
func TestMarkersBeyond4GiB(t *testing.T) {
	if testing.Short() {
		t.Skip("4 GiB are framed")
	}
	// req 5044-4.3-5
	body := patternOf(MaxMULPDU - 14)
	f, d := Framer{MakesMarkers: true}, Deframer{HasMarkers: true}
	var b Batch
	var at uint64
	var stream []byte
	for at < 1<<32+1<<20 {
		b.Reset()
		must.That(t, f.HasRoom(&b, MaxMULPDU), "no room")
		f.Append(&b, taggedSegment(0, body))
		if at > 1<<32-1<<17 {
			if stream == nil { // the deframer is there too now
				d.nextMarker = int(-at & (markerInterval - 1))
				stream = []byte{}
			}
			stream = append(stream, bytes.Join(b.Pieces(), nil)...)
		}
		at += uint64(b.Octets())
	}
	got, left, err := scan(d, stream, len(stream))
	must.That(t, err == nil && left == 0 && len(got) > 10, "%d ULPDUs, %d octets left, %v", len(got), left, err)
	for _, u := range got {
		must.That(t, bytes.Equal(u[14:], body), "a ULPDU is not what was sent")
	}
}
