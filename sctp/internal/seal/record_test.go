package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// foreignRecord is one that testdata/records.py made with code of others.
type foreignRecord struct {
	Suite          Suite
	Key, SNKey, IV string
	Epoch, Number  uint64
	Restart        bool
	Content        int
	Chunk, SHA256  string
}

func foreignRecords(t *testing.T) (list []foreignRecord) {
	must.OK(t, json.Unmarshal(must.Get(os.ReadFile("testdata/records.json"))(t), &list))
	must.That(t, len(list) == 21, "%d records", len(list))
	return list
}

// What is sealed here is, to the octet, what an independent program seals, and what that program
// has sealed is opened.
func TestRecordsAreThoseOfAnIndependentProgram(t *testing.T) {
	// req dtlschunk-5.2-5
	// req dtlschunk-5.2-4
	// req dtlschunk-4.2-12
	// req dtlschunk-3.1-11: the last of each suite
	for _, f := range foreignRecords(t) {
		t.Run(fmt.Sprintf("%v %d/%d", f.Suite, f.Epoch, f.Number), func(t *testing.T) {
			m := must.Get(NewMaterial(f.Suite, parseHex(t, f.Key), parseHex(t, f.SNKey), parseHex(t, f.IV)))(t)
			s := must.Get(NewSealer(now, &m, f.Epoch, f.Restart))(t)
			s.next = f.Number
			content := testContent(f.Content)
			b := must.Get(s.Append(nil, content[:f.Content/2], content[f.Content/2:]))(t)
			sum := sha256.Sum256(b)
			check.Equal(t, "SHA-256 of the chunk", hex.EncodeToString(sum[:]), f.SHA256)
			if f.Chunk != "" {
				must.Slice(t, "chunk", b, parseHex(t, f.Chunk))
			}
			o := must.Get(NewOpener(now, &m, f.Epoch, 0))(t)
			o.window.next, o.window.floor = f.Number, f.Number
			d := asChunk(t, b)
			check.Equal(t, "R bit", d.Restart(), f.Restart)
			check.Slice(t, "content", must.Get(o.Open(now, d.Record(), nil))(t), content)
		})
	}
}

// The first record of an epoch has number 0, and each has one more than the one before.
func TestNumbersOfAnEpochBeginAt0(t *testing.T) {
	// req dtlschunk-3.1-9
	f := foreignRecords(t)[0]
	m := must.Get(NewMaterial(f.Suite, parseHex(t, f.Key), parseHex(t, f.SNKey), parseHex(t, f.IV)))(t)
	s := must.Get(NewSealer(now, &m, f.Epoch, false))(t)
	check.Slice(t, "the first record", must.Get(s.Append(nil, testContent(f.Content)))(t), parseHex(t, f.Chunk))
	f = foreignRecords(t)[1] // of the same key, with number 1
	check.Slice(t, "the second", must.Get(s.Append(nil, testContent(f.Content)))(t), parseHex(t, f.Chunk))
}

func TestChunksAreLaidOutAsTheDraftSays(t *testing.T) {
	// req dtlschunk-4.2-1
	// req dtlschunk-4.2-2
	// req dtlschunk-4.2-4
	// req dtlschunk-4.2-5
	// req dtlschunk-4.2-6
	// req dtlschunk-4.2-9
	// req dtlschunk-4.2-10
	// req dtlschunk-4.2-12
	// req dtlschunk-4.2-13: content lies at a multiple of 4
	// req dtlschunk-3.1-4
	// req dtlschunk-3.1-5
	// req dtlschunk-3.1-6
	const overheadOf4k = 28
	for _, c := range []struct {
		name                     string
		content, length, padding int
		epoch                    uint64
		restart                  bool
	}{
		{"least", 4, 4 + 25, 3, 3, false},
		{"odd, which SCTP does not send", 5, 30, 2, 3, false},
		{"no padding", 7, 32, 0, 3, false},
		{"restart", 100, 125, 3, 4, true},
		{"fourth epoch", 1000, 1025, 3, 6, false},
		{"most", MaxContent, MaxContent + 25, 3, 1<<40 + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := must.Get(NewSealer(now, testMaterial(AES128GCM, 1), c.epoch, c.restart))(t)
			used := bytes.Repeat([]byte{0xff}, 20000) // of a packet before
			b := must.Get(s.Append(used[:0], testContent(c.content)))(t)
			must.Equal(t, "octets", len(b), c.length+c.padding)
			check.Equal(t, "octets, told before", SealedLen(c.content), len(b))
			var flags byte
			if c.restart {
				flags = 1
			}
			check.Slice(t, "chunk header and pre-padding", b[:5],
				[]byte{0x41, flags, byte(c.length >> 8), byte(c.length), 0})
			check.Equal(t, "flags of the record", b[5], 0b00101000|byte(c.epoch&3))
			check.Slice(t, "padding", b[c.length:], make([]byte, c.padding))
			o := must.Get(NewOpener(now, testMaterial(AES128GCM, 1), c.epoch, 0))(t)
			d := asChunk(t, b)
			got := must.Get(o.Open(now, d.Record(), nil))(t)
			check.Slice(t, "content", got, testContent(c.content))
			check.Equal(t, "where the content lies in the chunk", &got[0], &d[8])
			if c.content%4 == 0 {
				check.Equal(t, "overhead", len(b)-c.content, overheadOf4k)
				check.Equal(t, "overhead", len(b)-c.content, Overhead)
			}
		})
	}
}

func TestContentIsNeitherEmptyNorTooLong(t *testing.T) {
	s, _ := newPair(t, AES128GCM, 3)
	before := []byte{1, 2, 3}
	for _, n := range []int{0, MaxContent + 1} {
		b, err := s.Append(before, make([]byte, n))
		check.Error(t, "error", err, ErrContentLength)
		check.Slice(t, "what was there", b, before)
	}
	check.Equal(t, "records", s.Sealed(), 0)
	b := must.Get(s.Append(before, make([]byte, MaxContent)))(t)
	check.Slice(t, "what was there", b[:3], before)
}

func TestNumbersAreReconstructed(t *testing.T) {
	for _, c := range []struct {
		name string
		low  uint16
		next uint64
		want uint64
	}{
		{"first", 0, 0, 0},
		{"the next one", 5, 5, 5},
		{"the last one again", 4, 5, 4},
		{"ahead", 0x7fff, 0, 0x7fff},
		{"as far ahead as behind", 0x8001, 0x10001, 0x8001},
		{"farther ahead than behind", 0x8002, 0x10001, 0x8002},
		{"farther behind than ahead", 0x8000, 0x10001, 0x18000},
		{"before the first, so behind", 0xffff, 5, 0xffff},
		{"before a turn", 0xfff0, 0x20005, 0x1fff0},
		{"after a turn", 3, 0x1fff0, 0x20003},
		{"highest", 0xffff, maxNumber, maxNumber},
		{"past the highest", 1, maxNumber, maxNumber + 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Equal(t, "number", reconstructNumber(c.low, c.next), c.want)
		})
	}
}

// What no key is needed for is found without one.
func TestMalformedRecordsCostNoAttempt(t *testing.T) {
	// req dtlschunk-3.1-4
	// req dtlschunk-3.1-5
	// req dtlschunk-3.1-6
	s, o := newPair(t, AES128GCM, 3)
	good := bytes.Clone(mustSeal(t, s, testContent(40)).Record())
	for _, c := range []struct {
		name   string
		change func(b []byte) []byte
		want   error
	}{
		{"empty", func(b []byte) []byte { return nil }, ErrRecordLength},
		{"nothing but a header", func(b []byte) []byte { return b[:3] }, ErrRecordLength},
		{"15 octets, less than the sample", func(b []byte) []byte { return b[:3+15] }, ErrRecordLength},
		{"16 octets, no content type", func(b []byte) []byte { return b[:3+16] }, ErrRecordLength},
		{"too long", func(b []byte) []byte { return append(b, make([]byte, 16402-len(b)+3)...) }, ErrRecordLength},
		{"connection ID", func(b []byte) []byte { b[0] |= 0x10; return b }, ErrRecordHeader},
		{"8-bit number", func(b []byte) []byte { b[0] &^= 8; return b }, ErrRecordHeader},
		{"length", func(b []byte) []byte { b[0] |= 4; return b }, ErrRecordHeader},
		{"a plaintext record", func(b []byte) []byte { b[0] = 23; return b }, ErrRecordHeader},
		{"another epoch", func(b []byte) []byte { b[0] ^= 1; return b }, ErrNoKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := o.Open(now, c.change(bytes.Clone(good)), nil)
			check.Error(t, "error", err, c.want)
			check.Equal(t, "failed attempts", o.Failed(), 0)
		})
	}
	check.Do(o.Open(now, good, nil))(t)
}

// sealInner seals what is not of the form that Sealer gives it.
func sealInner(s *Sealer, inner []byte) []byte {
	record := appendRecordHeader(nil, s.epoch, s.next)
	sealed := s.aead.Seal(nil, s.nonceOf(s.next), inner, record)
	encryptNumber(record, s.maskOf(sealed))
	s.next++
	return append(record, sealed...)
}

// A peer may pad inside of the record, and everything but application data is dropped.
func TestContentTypeAndPaddingOfTheRecord(t *testing.T) {
	// req dtlschunk-5.2-4
	for _, c := range []struct {
		name  string
		inner []byte
		want  []byte
		err   error
	}{
		{"as usual", []byte{1, 2, 3, 23}, []byte{1, 2, 3}, nil},
		{"padded", []byte{1, 2, 3, 23, 0, 0, 0}, []byte{1, 2, 3}, nil},
		{"zeros at the end of the content", []byte{1, 0, 0, 23, 0}, []byte{1, 0, 0}, nil},
		{"no content", []byte{23}, []byte{}, nil},
		{"padding alone", []byte{0, 0, 0}, nil, ErrContentType},
		{"alert", []byte{1, 0, 21}, nil, ErrContentType},
		{"ACK", []byte{1, 2, 3, 4, 26}, nil, ErrContentType},
		{"as much as there may be", append(append(testContent(1000), 23), make([]byte, MaxContent-1000)...),
			testContent(1000), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, o := newPair(t, ChaCha20Poly1305, 3)
			record := sealInner(s, c.inner)
			again := bytes.Clone(record)
			got, err := o.Open(now, record, nil)
			check.Error(t, "error", err, c.err)
			check.Slice(t, "content", got, c.want)
			check.Equal(t, "records that were authentic", o.Opened(), 1)
			useSecondTries(o)
			_, err = o.Open(now, again, nil)
			check.Error(t, "the same again", err, ErrReplayed)
		})
	}
}

// The flags, the pre-padding and the padding are the network's to change, and nothing depends on
// them.
func TestReservedBitsAndPaddingAreIgnored(t *testing.T) {
	// req dtlschunk-4.2-3
	// req dtlschunk-4.2-7
	// req dtlschunk-4.2-11
	k := newRing(t, AES128GCM)
	for _, c := range []struct {
		name   string
		change func(b []byte)
	}{
		{"as it was sent", func(b []byte) {}},
		{"reserved flags", func(b []byte) { b[1] |= 0xfe }},
		{"pre-padding", func(b []byte) { b[4] = 0xff }},
		{"padding", func(b []byte) { copy(b[len(b)-3:], "abc") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := must.Get(k.a.Append(nil, testContent(40)))(t)
			c.change(b)
			got, _, err := k.b.Open(now, asChunk(t, b), nil)
			check.OK(t, err)
			check.Slice(t, "content", got, testContent(40))
		})
	}
}

// Each bit of what is authenticated makes the record fail, and the record opens after all that.
func TestEachBitOfARecordIsAuthenticated(t *testing.T) {
	for _, suite := range Suites() {
		t.Run(suite.String(), func(t *testing.T) {
			s, o := newPair(t, suite, 3)
			good := bytes.Clone(mustSeal(t, s, testContent(24)).Record())
			failed := uint64(0)
			for bit := range len(good) * 8 {
				bad := bytes.Clone(good)
				bad[bit/8] ^= 1 << (bit % 8)
				_, err := o.Open(now, bad, nil)
				must.That(t, err != nil, "bit %d is not authenticated", bit)
				if bit >= 8 {
					failed++
				}
			}
			check.Equal(t, "failed attempts", o.Failed(), failed)
			check.Equal(t, "records opened", o.Opened(), 0)
			check.Slice(t, "content", must.Get(o.Open(now, good, nil))(t), testContent(24))
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for e := ErrRecordLength; e < numErrors; e++ {
		check.That(t, len(e.Error()) > 20, "%d: %q", e, e)
	}
	check.Equal(t, "an error that there is not", (numErrors + 3).Error(), fmt.Sprintf("seal: error %d", numErrors+3))
	check.Equal(t, "no error", Error(0).Error(), "seal: error 0")
	check.Equal(t, "chunk type", wire.ChunkDTLS.String(), "DTLS")
}
