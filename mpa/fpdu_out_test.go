package mpa

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// taggedSegment is a segment with a tagged header and up to two pieces of payload.
func taggedSegment(to uint64, bodies ...[]byte) *ddp.Segment {
	s := new(ddp.Segment)
	s.HeaderLen = ddp.Tagged{Last: true, STag: 1, TO: to}.Put(s.Header[:])
	copy(s.Body[:], bodies)
	return s
}

// octetsOf are those of a segment: the ULPDU.
func octetsOf(s *ddp.Segment) []byte {
	return slices.Concat(s.Header[:s.HeaderLen], s.Body[0], s.Body[1])
}

func TestFPDUsAreThoseOfTheModel(t *testing.T) {
	for _, row := range []struct {
		name   string
		bodies [][]byte
	}{
		{"nothing", nil},
		{"one octet", [][]byte{{1}}},
		{"a little, which is copied", [][]byte{patternOf(copiedBody)}},
		{"more", [][]byte{patternOf(copiedBody + 1)}},
		{"two pieces", [][]byte{patternOf(1000), patternOf(777)}},
		{"a long and a short piece", [][]byte{patternOf(1000), patternOf(3)}},
		{"a short and a long piece", [][]byte{patternOf(3), patternOf(1000)}},
		{"many Markers", [][]byte{patternOf(20000), patternOf(20000)}},
		{"a Marker between pad and CRC", [][]byte{patternOf(492)}},
		{"the longest", [][]byte{patternOf(MaxMULPDU - 14)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			seg := taggedSegment(5, row.bodies...)
			u := octetsOf(seg)
			for _, k := range []int{1, 2, 3} { // as often, one behind the other
				f, marked := Framer{MakesCRC: true}, Framer{MakesCRC: true, MakesMarkers: true}
				var b, bm Batch
				var plain []byte
				for range k {
					must.That(t, f.HasRoom(&b, MaxMULPDU) && (marked.HasRoom(&bm, MaxMULPDU) || bm.FPDUs() > 0),
						"no room")
					f.Append(&b, seg)
					plain = append(plain, fpdu(u)...)
					if marked.HasRoom(&bm, MaxMULPDU) {
						marked.Append(&bm, seg)
					}
				}
				// req 5044-3-1, 5044-4.1-1, 5044-4.1-2, 5044-4.1-3, 5044-4.1-5, 5044-4.4-1,
				// 5044-4.4-10, 5044-4.4-12, 5044-4.4-14, 5044-7.1.1-6
				check.That(t, bytes.Equal(bytes.Join(b.Pieces(), nil), plain) && b.Octets() == len(plain) &&
					b.FPDUs() == k,
					"%d times: not the octets of the model", k)
				// req 5044-4.2-2, 5044-4.2-5, 5044-4.3-2, 5044-4.3-3, 5044-4.3-4, 5044-4.3-6,
				// 5044-4.3-7, 5044-4.3-8, 5044-4.3-9, 5044-4.3-10, 5044-4.4-12, 5044-4.4-13,
				// 5044-7.1.1-7, 5044-7.1.2-19
				want, ends := withMarkers(slices.Repeat([][]byte{u}, bm.FPDUs())...)
				check.That(t, bytes.Equal(bytes.Join(bm.Pieces(), nil), want) && slices.Equal(bm.ends, ends),
					"%d times: not the Markers of the model", bm.FPDUs())
			}
		})
	}
}

func TestExamplesOfTheRFCAreMade(t *testing.T) {
	send := func(msn uint32) *ddp.Segment {
		s := new(ddp.Segment)
		s.HeaderLen = ddp.Untagged{Last: true, Rsvd: [5]byte{0x43}, MSN: msn}.Put(s.Header[:])
		s.Body[0] = make([]byte, 24)
		return s
	}
	// req 5044-4.4-11, 5044-4.2-1
	f, b := Framer{MakesCRC: true, MakesMarkers: true}, Batch{}
	b.Reset()
	f.Append(&b, send(1))
	check.Slice(t, "figure 5", bytes.Join(b.Pieces(), nil), figure5)
	f.nextMarker = 0x200 - 0x1ec
	b.Reset()
	f.Append(&b, send(2))
	check.Slice(t, "figure 6", bytes.Join(b.Pieces(), nil), figure6)
}

func TestFPDUsWithoutCRC(t *testing.T) {
	// req 5044-4.1-7, 5044-4.4-10
	f, b := Framer{}, Batch{}
	seg := taggedSegment(0, patternOf(9))
	b.Reset()
	f.Append(&b, seg)
	got, want := bytes.Join(b.Pieces(), nil), fpdu(octetsOf(seg))
	check.That(t, len(got) == len(want) && bytes.Equal(got[:len(got)-crcLen], want[:len(want)-crcLen]), "%x", got)
}

// Long pieces of the user's memory are named where they are, short ones are copied.
func TestLongPiecesAreNotCopied(t *testing.T) {
	long, short := patternOf(copiedBody+100), patternOf(copiedBody)
	f, b := Framer{MakesCRC: true}, Batch{}
	b.Reset()
	f.Append(&b, taggedSegment(0, long))
	f.Append(&b, taggedSegment(0, short))
	f.Append(&b, taggedSegment(0, long[:300], long[:299]))
	pieces := b.Pieces()
	// header; long; trailer, header, short, trailer, header; long[:300]; long[:299]; trailer
	must.Equal(t, "pieces", len(pieces), 6)
	check.That(t, &pieces[1][0] == &long[0] && len(pieces[1]) == len(long), "a long piece was copied")
}

// A batch is bounded in octets, in pieces, and in what is its own.
func TestBatchIsBounded(t *testing.T) {
	for _, row := range []struct {
		name    string
		f       Framer
		mulpdu  int
		bodies  [][]byte
		atLeast int // FPDUs in a batch that has grown
	}{
		{"long", Framer{}, MaxMULPDU, [][]byte{patternOf(60000)}, 4},
		{"of a packet", Framer{}, 1442, [][]byte{patternOf(1400)}, 150},
		{"copied", Framer{}, 1442, [][]byte{patternOf(200)}, 50},
		{"empty", Framer{}, 1442, nil, 200},
		{"with Markers", Framer{MakesMarkers: true}, MaxMULPDU, [][]byte{patternOf(30000), patternOf(30000)}, 1},
		{"short with Markers", Framer{MakesMarkers: true}, 1430, [][]byte{patternOf(1400)}, 50},
	} {
		var b Batch
		for range 10 {
			b.Reset()
			for row.f.HasRoom(&b, row.mulpdu) {
				row.f.Append(&b, taggedSegment(0, row.bodies...))
			}
			check.That(t, b.FPDUs() > 0 && len(b.Pieces()) <= maxPieces && len(b.own) <= cap(b.own) &&
				cap(b.own) <= maxOwn &&
				b.Octets() <= MaxBatch+MaxMULPDU+1000, "%s: %d FPDUs, %d pieces, %d octets", row.name, b.FPDUs(),
				len(b.pieces),
				b.Octets())
		}
		check.That(t, b.FPDUs() >= row.atLeast, "%s: %d FPDUs", row.name, b.FPDUs())
	}
}

// A long message is cut in runs, and leaves in the FPDUs that it would leave in segment by segment.
func TestRunsLeaveInTheSameFPDUs(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  Config
		most int
		runs bool
	}{
		{"too short to refer to", Config{EMSS: 200}, 100_000, false},
		{"short", Config{EMSS: 536}, 100_000, true},
		{"of a packet, and no multiple of 4", Config{EMSS: 1447}, 100_000, true},
		{"of a packet", Config{EMSS: 1448}, 100_000, true},
		{"of a packet without CRC", Config{EMSS: 1448, NoCRC: true}, 100_000, true},
		{"of a packet with Markers", Config{EMSS: 1448, Markers: true}, 100_000, false},
		{"of a long packet", Config{EMSS: 8961}, 100_000, true},
		{"padded, as only the longest are", Config{EMSS: 65483}, MaxBatch, true},
	} {
		for _, tagged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, tagged %v", row.name, tagged), func(t *testing.T) {
				testRuns(t, row.cfg, row.most, tagged, row.runs)
			})
		}
	}
}

func testRuns(t *testing.T, cfg Config, most int, tagged, runs bool) {
	const size = 300_000
	runner, single := newBulk(t, cfg, size), newBulk(t, cfg, size)
	memory := runner.gather[0].Mem.RAM()
	for i := range memory {
		memory[i] = byte(i ^ i>>8 ^ i>>16)
	}
	for _, k := range []*bulk{runner, single} {
		for range 2 {
			if tagged {
				must.OK(t, k.a.Conn.ds.SendTagged(7, 1<<40, 9, runner.gather, 1))
			} else {
				must.OK(t, k.a.Conn.ds.SendUntagged(0, [5]byte{1, 2, 3, 4, 5}, runner.gather, 1))
			}
		}
	}
	var got, want []byte
	for act, pieces := runner.a.Next(0, most); act == ActWrite; act, pieces = runner.a.Next(0, most) {
		b := bytes.Join(pieces, nil)
		must.That(t, len(pieces) <= maxPieces && len(b) < most+cfg.EMSS, "%d octets in %d pieces", len(b), len(pieces))
		got = append(got, b...)
		runner.a.Written(0, len(b))
	}
	var seg ddp.Segment
	var batch Batch
	f, n := Framer{MakesCRC: !cfg.NoCRC, MakesMarkers: cfg.Markers}, uint64(0)
	for ; single.a.Conn.ds.NextSegment(single.a.MULPDU(), &seg); n++ {
		for batch.Reset(); !f.HasRoom(&batch, single.a.MULPDU()); batch.Reset() {
		}
		f.Append(&batch, &seg)
		want = append(want, bytes.Join(batch.Pieces(), nil)...)
	}
	must.That(t, bytes.Equal(got, want) && runner.a.Stats().FPDUsOut == n,
		"%d octets in %d FPDUs, not %d in %d, or others", len(got), runner.a.Stats().FPDUsOut, len(want), n)
	must.Equal(t, "messages that are not acknowledged", runner.a.Conn.ds.Unfinished(), 0)
	must.Equal(t, "there were runs", runner.a.run.HeaderLen() > 0, runs)
}
