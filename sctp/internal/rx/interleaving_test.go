package rx

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

const (
	bFlag = wire.FlagB
	eFlag = wire.FlagE
	uFlag = wire.FlagU
)

// interleaved is a receiver of I-DATA with a window of 1000 octets. It expects TSN 1.
func interleaved() *Receiver { return interleavedWith(Config{}) }

func interleavedWith(cfg Config) *Receiver {
	cfg.PeerTSN, cfg.PMDCS, cfg.InStreams, cfg.Interleaved = 1, 200, max(cfg.InStreams, 16), true
	cfg.SackDelay = 200 * time.Millisecond
	if cfg.RecvBuffer == 0 {
		cfg.RecvBuffer = 1000
	}
	return NewReceiver(cfg)
}

// part makes an I-DATA chunk. Its PPID, if it has one, is that of no other message of its stream.
func part(tsn, stream int, mid uint32, fsn uint32, flags uint8, payload string) wire.IData {
	b := wire.AppendIDataHeader(nil, wire.IDataFields{Flags: flags, TSN: wire.TSN(tsn), Stream: wire.StreamID(stream),
		MID: wire.MID(mid), FSN: wire.FSN(fsn), PPID: 1000 + mid, PayloadLen: len(payload)})
	return wire.IData(append(b, payload...))
}

// feedParts feeds chunks as one packet. It returns the first error.
func feedParts(r *Receiver, chunks ...wire.IData) error {
	for _, d := range chunks {
		if r.AdmitInterleaved(d) == New {
			if err := r.QueueInterleaved(d, nil); err != nil {
				return err
			}
		}
	}
	return r.PacketDone(0)
}

// iForward makes an I-FORWARD-TSN.
func iForward(newCum int, skips ...wire.ISkip) wire.IForwardTSN {
	return wire.IForwardTSN(wire.AppendIForwardTSN(nil, wire.TSN(newCum), skips))
}

// mustIForward feeds an I-FORWARD-TSN as a packet, and returns whether it was news.
func mustIForward(t *testing.T, r *Receiver, newCum int, skips ...wire.ISkip) bool {
	t.Helper()
	isNews := r.IForwardTSN(iForward(newCum, skips...))
	must.OK(t, r.PacketDone(0))
	return isNews
}

// wantEmpty checks that r holds nothing.
func wantEmpty(t *testing.T, name string, r *Receiver) {
	t.Helper()
	check.OK(t, r.Audit(0))
	check.That(t, r.Buffered() == 0 && r.reassembly.store.usedMemory == 0 && !r.HasMissing(),
		"%s: %d octets, %d of memory are left, missing: %v", name, r.Buffered(), r.reassembly.store.usedMemory,
		r.HasMissing())
}

func TestFragmentsFindEachOther(t *testing.T) {
	// req 8260-2.2.3-1
	// req 8260-2.1-5
	const top = 1<<32 - 1
	for _, tt := range []struct {
		name   string
		first  uint32 // the MID that each stream begins with
		chunks []wire.IData
		want   string
	}{
		{"messages of two streams in turn", 0, []wire.IData{part(1, 1, 0, 0, bFlag, "a"), part(2, 2, 0, 0, bFlag, "x"),
			part(3, 1, 0, 1, 0, "b"), part(4, 2, 0, 1, eFlag, "y"), part(5, 1, 0, 2, eFlag, "c")}, "xy|abc|"},
		{"ordered and unordered ones of a stream with the same MID", 0, []wire.IData{part(1, 1, 0, 0, bFlag, "a"),
			part(2, 1, 0, 0, bFlag|uFlag, "x"), part(3, 1, 0, 1, eFlag, "b"), part(4, 1, 0, 1, eFlag|uFlag, "y")}, "ab|xy|"},
		{"unordered ones with other MIDs", 0, []wire.IData{part(1, 1, 7, 0, bFlag|uFlag, "a"), part(2, 1, 3, 0, bFlag|uFlag, "x"),
			part(3, 1, 7, 1, eFlag|uFlag, "b"), part(4, 1, 3, 1, eFlag|uFlag, "y")}, "ab|xy|"},
		{"TSNs against the order of fragments", 0, []wire.IData{part(1, 0, 0, 3, eFlag, "d"), part(2, 0, 0, 2, 0, "c"),
			part(3, 0, 0, 1, 0, "b"), part(4, 0, 0, 0, bFlag, "a")}, "abcd|"},
		{"the first fragment last, after the second message", 0, []wire.IData{part(1, 0, 0, 1, eFlag, "b"), part(2, 0, 1, 0, be, "c"),
			part(3, 0, 0, 0, bFlag, "a")}, "ab|c|"},
		{"every second first", 0, []wire.IData{part(1, 0, 0, 1, 0, "b"), part(2, 0, 0, 3, 0, "d"), part(3, 0, 0, 5, eFlag, "f"),
			part(4, 0, 0, 4, 0, "e"), part(5, 0, 0, 0, bFlag, "a"), part(6, 0, 0, 2, 0, "c")}, "abcdef|"},
		{"MIDs across the wrap", top - 1, []wire.IData{part(1, 0, 1, 0, be, "d"), part(2, 0, top, 1, eFlag, "B"),
			part(3, 0, 0, 0, bFlag, "c"), part(4, 0, top, 0, bFlag, "b"), part(5, 0, 0, 1, eFlag, "C"), part(6, 0, top-1, 0, be, "a")},
			"a|bB|cC|d|"},
		{"unordered MIDs across the wrap", top, []wire.IData{part(1, 0, 0, 1, eFlag|uFlag, "B"), part(2, 0, top, 0, bFlag|uFlag, "a"),
			part(3, 0, 0, 0, bFlag|uFlag, "b"), part(4, 0, top, 1, eFlag|uFlag, "A")}, "bB|aA|"},
		{"a message 2^31-1 ahead waits", 0, []wire.IData{part(1, 0, 1<<31-1, 0, be, "z"), part(2, 0, 0, 0, be, "a")}, "a|"},
	} {
		for _, backwards := range []bool{false, true} {
			r := interleaved()
			for id := range 3 {
				r.SetNextMID(wire.StreamID(id), wire.MID(tt.first))
			}
			chunks := tt.chunks
			if backwards { // what is delivered is the same; in which order may differ between streams
				chunks = nil
				for _, d := range tt.chunks {
					chunks = append([]wire.IData{d}, chunks...)
				}
			}
			got := ""
			for _, d := range chunks {
				must.OK(t, feedParts(r, d))
				check.OK(t, r.Audit(0))
				got += drainText(r)
			}
			if backwards {
				check.Equal(t, tt.name+", backwards: messages", sortedText(got), sortedText(tt.want))
			} else {
				check.Equal(t, tt.name, got, tt.want)
			}
			if !strings.HasSuffix(tt.name, "waits") {
				wantEmpty(t, tt.name, r)
			}
			r.Close()
			check.Equal(t, tt.name+": octets after Close", r.reassembly.store.usedMemory, 0)
		}
	}
}

// sortedText is the messages in some order.
func sortedText(s string) string {
	var list []string
	for m := range strings.SplitSeq(s, "|") {
		at := 0
		for at < len(list) && list[at] < m {
			at++
		}
		list = append(list[:at], append([]string{m}, list[at:]...)...)
	}
	return strings.Join(list, "|")
}

// FSNs wrap in a message that is long enough.
func TestFSNsWrap(t *testing.T) {
	// req 8260-2.1-5
	r := interleavedWith(Config{PartialPoint: 1})
	must.OK(t, feedParts(r, part(1, 0, 0, 0, bFlag, "begin")))
	check.Equal(t, "pieces", drainPieces(r), "0:0+5..")
	r.reassembly.ext.interleaving.last.nextFSN = 1<<32 - 2 // as if so many had come
	must.OK(t, feedParts(r, part(2, 0, 0, 1, eFlag, "D"), part(3, 0, 0, 1<<32-1, 0, "B"), part(4, 0, 0, 0, 0, "C")))
	check.Equal(t, "octets held", r.Buffered(), 3)
	must.OK(t, feedParts(r, part(5, 0, 0, 1<<32-2, 0, "A")))
	check.Equal(t, "the rest", drainText(r), "ABCD|")
	wantEmpty(t, "the end", r)
}

// A message has the fields of its first fragment, whenever that comes.
func TestMessageOfIDataHasItsFields(t *testing.T) {
	r := interleaved()
	must.OK(t, feedParts(r, part(1, 3, 70_000, 1, eFlag|uFlag, "b"), part(2, 3, 70_000, 0, bFlag|uFlag, "a")))
	m := mustReceive(t, r)
	check.That(t, m.Stream == 3 && m.MID() == 70_000 && m.PPID == 71_000 && m.Unordered && m.TSN() == 2 && m.Size == 2,
		"%+v", m)
	// req 8260-4.1-1
	check.Equal(t, "SSN", m.SSN, 70_000&0xffff)
	r.Release(m)
}

// What no peer that follows RFC 8260 sends ends the association.
func TestViolationsOfIData(t *testing.T) {
	for _, tt := range []struct {
		name   string
		chunks []wire.IData
	}{
		{"no user data", []wire.IData{part(1, 0, 0, 0, be, "")}},
		{"a stream that there is not", []wire.IData{part(1, 16, 0, 0, be, "a")}},
		{"two first fragments", []wire.IData{part(1, 0, 0, 0, bFlag, "a"), part(2, 0, 0, 0, bFlag, "a")}},
		{"a fragment 0 without B", []wire.IData{part(1, 0, 0, 0, 0, "a")}},
		{"an FSN twice, in order", []wire.IData{part(1, 0, 0, 0, bFlag, "a"), part(2, 0, 0, 1, 0, "b"), part(3, 0, 0, 1, 0, "b")}},
		{"an FSN twice, beyond a gap", []wire.IData{part(1, 0, 0, 5, 0, "a"), part(2, 0, 0, 6, 0, "b"), part(3, 0, 0, 6, 0, "b")}},
		{"FSN 0 again, in the middle", []wire.IData{part(1, 0, 0, 0, bFlag, "a"), part(2, 0, 0, 0, eFlag, "b")}},
		{"a fragment behind the end", []wire.IData{part(1, 0, 0, 3, eFlag, "d"), part(2, 0, 0, 4, 0, "e")}},
		{"a fragment far behind the end", []wire.IData{part(1, 0, 0, 3, eFlag, "d"), part(2, 0, 0, 40, 0, "e")}},
		{"an end before a fragment", []wire.IData{part(1, 0, 0, 4, 0, "e"), part(2, 0, 0, 3, eFlag, "d")}},
		{"two ends", []wire.IData{part(1, 0, 0, 4, eFlag, "e"), part(2, 0, 0, 6, eFlag, "d")}},
		{"a fragment of a message that was delivered", []wire.IData{part(1, 0, 0, 0, be, "a"), part(2, 0, 0, 1, eFlag, "b")}},
		{"a message again that was delivered", []wire.IData{part(1, 0, 0, 0, be, "a"), part(2, 0, 0, 0, be, "a")}},
		{"a MID 2^31 ahead, which is behind", []wire.IData{part(1, 0, 1<<31, 0, be, "a")}},
		{"a message twice that waits", []wire.IData{part(1, 0, 1, 0, be, "a"), part(2, 0, 1, 0, be, "a")}},
		{"a fragment of one that waits", []wire.IData{part(1, 0, 1, 0, be, "a"), part(2, 0, 1, 3, 0, "b")}},
		{"a whole message in the place of one in assembly", []wire.IData{part(1, 0, 1, 0, bFlag, "a"), part(2, 0, 1, 0, be, "a")}},
		{"unordered ones too far apart", []wire.IData{part(1, 0, 0, 0, bFlag|uFlag, "a"), part(2, 0, 1<<30+1, 0, be|uFlag, "b")}},
	} {
		r := interleaved()
		var err error
		for _, d := range tt.chunks {
			if err != nil {
				t.Errorf("%s: %v, before the end", tt.name, err)
			}
			err = feedParts(r, d)
		}
		var v *ViolationError
		check.That(t, errors.As(err, &v) && v.TSN == tt.chunks[len(tt.chunks)-1].TSN(), "%s: %v", tt.name, err)
		check.OK(t, r.Audit(0))
		r.Close()
		check.That(t, r.Buffered() == 0 && r.reassembly.store.usedMemory == 0, "%s: %d octets are left, %d of memory",
			tt.name, r.Buffered(), r.reassembly.store.usedMemory)
	}
}

func TestLongestMessageOfIData(t *testing.T) {
	ten := strings.Repeat("x", 10)
	for _, tt := range []struct {
		name   string
		chunks []wire.IData
		bad    bool
	}{
		{"as long, whole", []wire.IData{part(1, 0, 0, 0, be, ten+ten)}, false},
		{"longer, whole", []wire.IData{part(1, 0, 0, 0, be, ten+ten+"x")}, true},
		{"as long, in fragments", []wire.IData{part(1, 0, 0, 1, eFlag, ten), part(2, 0, 0, 0, bFlag, ten)}, false},
		{"longer, in fragments", []wire.IData{part(1, 0, 0, 1, eFlag, ten), part(2, 0, 0, 0, bFlag, ten+"x")}, true},
		{"as long, and it goes on", []wire.IData{part(1, 0, 0, 0, bFlag, ten), part(2, 0, 0, 2, 0, ten)}, true},
		{"two of two streams are together longer", []wire.IData{part(1, 0, 0, 0, bFlag, ten+"x"), part(2, 1, 0, 0, bFlag, ten)}, false},
	} {
		r := interleavedWith(Config{MaxMessage: 20})
		err := feedParts(r, tt.chunks...)
		check.That(t, (err == ErrMessageTooBig) == tt.bad && (err == nil) != tt.bad, "%s: %v", tt.name, err)
		check.OK(t, r.Audit(0))
	}
}

func TestIForwardTSNDropsMessages(t *testing.T) {
	skip := func(id int, u bool, mid uint32) wire.ISkip {
		return wire.ISkip{Stream: wire.StreamID(id), U: u, MID: wire.MID(mid)}
	}
	for _, tt := range []struct {
		name    string
		chunks  []wire.IData
		forward wire.IForwardTSN
		gone    uint64
		later   []wire.IData
		want    string
	}{
		{"in assembly, and what waits is read", []wire.IData{part(1, 0, 0, 0, bFlag, "a"), part(3, 0, 1, 0, be, "b")},
			iForward(2, skip(0, false, 0)), 1, nil, "b|"},
		{"nothing of which has come", []wire.IData{part(3, 0, 2, 0, be, "c")}, iForward(2, skip(0, false, 1)), 0, nil, "c|"},
		{"several of a stream, with a whole one among them", []wire.IData{part(2, 0, 0, 1, 0, "a"), part(3, 0, 1, 0, be, "b"),
			part(4, 0, 2, 0, bFlag, "c"), part(6, 0, 3, 0, be, "d")}, iForward(5, skip(0, false, 2)), 2, nil, "b|d|"},
		{"unordered ones alone", []wire.IData{part(1, 0, 0, 0, bFlag|uFlag, "a"), part(2, 0, 0, 0, bFlag, "b")},
			iForward(3, skip(0, true, 0)), 1, []wire.IData{part(4, 0, 0, 1, eFlag, "c")}, "bc|"},
		{"unordered ones up to a MID", []wire.IData{part(1, 0, 4, 0, bFlag|uFlag, "a"), part(2, 0, 5, 0, bFlag|uFlag, "b"), part(3, 0, 6, 0, bFlag|uFlag, "c")},
			iForward(4, skip(0, true, 5)), 2, []wire.IData{part(5, 0, 6, 1, eFlag|uFlag, "d")}, "cd|"},
		{"of several streams", []wire.IData{part(1, 1, 0, 0, bFlag, "a"), part(2, 2, 0, 0, bFlag, "b"), part(3, 3, 0, 0, bFlag, "c")},
			iForward(4, skip(1, false, 0), skip(2, false, 0)), 2, []wire.IData{part(5, 3, 0, 1, eFlag, "d")}, "cd|"},
		{"a fragment that comes after all", []wire.IData{part(1, 0, 0, 0, bFlag, "a")}, iForward(2, skip(0, false, 0)), 1,
			[]wire.IData{part(3, 0, 0, 2, eFlag, "late"), part(4, 0, 1, 0, be, "b")}, "b|"},
		{"an unordered one too", nil, iForward(2, skip(0, true, 0)), 0,
			[]wire.IData{part(3, 0, 0, 2, eFlag|uFlag, "late"), part(4, 0, 1, 0, be|uFlag, "b")}, "b|"},
		{"nothing where the MID was delivered", []wire.IData{part(1, 0, 0, 0, be, "a"), part(2, 0, 1, 0, be, "b")},
			iForward(3, skip(0, false, 0)), 0, []wire.IData{part(4, 0, 2, 0, be, "c")}, "a|b|c|"},
		{"nothing of streams that there are not", []wire.IData{part(2, 0, 0, 0, be, "a")},
			iForward(1, skip(16, false, 0), skip(65535, true, 9)), 0, nil, "a|"},
		{"and names none: only TSNs count", []wire.IData{part(1, 0, 0, 0, bFlag, "a")}, iForward(2), 0,
			[]wire.IData{part(3, 0, 0, 1, eFlag, "b")}, "ab|"},
	} {
		r := interleavedWith(Config{MayAbandon: true})
		must.OK(t, feedParts(r, tt.chunks...))
		must.That(t, r.IForwardTSN(tt.forward), "%s: out of date", tt.name)
		must.OK(t, r.PacketDone(0))
		check.OK(t, r.Audit(0))
		check.Equal(t, tt.name+": messages dropped", r.TakeAbandoned(), tt.gone)
		must.OK(t, feedParts(r, tt.later...))
		check.Equal(t, tt.name, drainText(r), tt.want)
		wantEmpty(t, tt.name, r)
		check.That(t, !mustIForward(t, r, 1, skip(0, false, 100)), "%s: out of date, and taken", tt.name)
	}
}

// MIDs that are skipped wrap.
func TestIForwardTSNAcrossTheWrapOfMIDs(t *testing.T) {
	r := interleavedWith(Config{MayAbandon: true})
	r.SetNextMID(0, 1<<32-2)
	must.OK(t, feedParts(r, part(2, 0, 1<<32-1, 0, bFlag, "a"), part(4, 0, 1, 0, be, "b"), part(5, 0, 1<<32-1, 1, bFlag|uFlag, "c")))
	must.That(t, mustIForward(t, r, 3, wire.ISkip{MID: 0}, wire.ISkip{U: true, MID: 3}), "out of date")
	check.Equal(t, "received", drainText(r), "b|")
	check.Equal(t, "dropped", r.TakeAbandoned(), 2)
	wantEmpty(t, "the end", r)
}

// Messages of a stream that only have to be read come before the pieces of an unordered one. They
// would wait for its end, and take the room of what it lacks.
func TestPiecesComeBehindWhatIsDue(t *testing.T) {
	for _, point := range []int{0, 350} {
		r := interleavedWith(Config{PartialPoint: point})
		text := func(s string) string { return strings.Repeat(s, 200) }
		must.OK(t, feedParts(r, part(2, 1, 1, 0, be, text("b")), part(3, 1, 2, 0, be, text("c"))))
		must.OK(t, feedParts(r, part(1, 1, 0, 0, be, "a")))
		unordered := func(tsn int, fsn uint32, flags uint8) wire.IData {
			return part(tsn, 1, 0, fsn, flags|uFlag, text(fmt.Sprint(fsn)))
		}
		must.OK(t, feedParts(r, unordered(4, 0, bFlag), unordered(5, 1, 0)))
		must.OK(t, feedParts(r, unordered(6, 2, 0)))
		read := ""
		for fsn := uint32(3); fsn < 9; fsn++ {
			m := mustDrain(t, r)
			read += m
			check.That(t, r.Window() > 0, "there is no room for fragment %d when %q was read", fsn, m)
			must.OK(t, feedParts(r, unordered(4+int(fsn), fsn, map[bool]uint8{true: eFlag}[fsn == 8])))
		}
		read += mustDrain(t, r)
		want := "a" + text("b") + text("c")
		for fsn := range 9 {
			want += text(fmt.Sprint(fsn))
		}
		check.Equal(t, "messages", strings.NewReplacer("|", "", "+", "").Replace(read), want)
		wantEmpty(t, "in the end", r)
	}
}

func TestPartialDeliveryOfSeveralStreams(t *testing.T) {
	x := strings.Repeat("x", 300)
	for _, tt := range []struct {
		name  string
		cfg   Config
		story func(r *Receiver) error
		want  string
	}{
		{"messages that fill the buffer together come in pieces", Config{}, func(r *Receiver) error {
			return feedParts(r, part(1, 1, 0, 0, bFlag, x), part(2, 2, 0, 0, bFlag, x), part(3, 3, 0, 0, bFlag, "y"))
		}, "1:0+300.. 2:0+300.. 3:0+1.."},
		{"however short they may be", Config{MaxMessage: 500}, func(r *Receiver) error {
			return feedParts(r, part(1, 1, 0, 0, bFlag, x), part(2, 2, 0, 0, bFlag, x), part(3, 3, 0, 0, bFlag, "y"))
		}, "1:0+300.. 2:0+300.. 3:0+1.."},
		{"not what still has room", Config{}, func(r *Receiver) error {
			return feedParts(r, part(1, 1, 0, 0, bFlag, x), part(2, 2, 0, 0, bFlag, x))
		}, ""},
		{"not what lacks its first fragment, or waits for its turn", Config{}, func(r *Receiver) error {
			return feedParts(r, part(1, 1, 0, 1, 0, x), part(2, 2, 1, 0, bFlag, x), part(3, 3, 0, 0, bFlag, "y"))
		}, "3:0+1.."},
		{"not while a TSN before it is missing", Config{}, func(r *Receiver) error {
			must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, x), part(3, 2, 0, 0, bFlag, x), part(4, 3, 0, 0, bFlag, "y")))
			check.Equal(t, "pieces before TSN 2", drainPieces(r), "1:0+300..")
			must.OK(t, feedParts(r, part(5, 4, 0, 0, bFlag, x)))
			check.Equal(t, "pieces before TSN 2", drainPieces(r), "")
			return feedParts(r, part(2, 2, 0, 0, be|uFlag, "u"))
		}, "2:0+1 2:0+300.. 3:0+1.. 4:0+300.."},
		{"the point of partial delivery is that of each message", Config{PartialPoint: 100}, func(r *Receiver) error {
			return feedParts(r, part(1, 1, 0, 0, bFlag, x[:101]), part(2, 2, 0, 0, bFlag, x[:100]))
		}, "1:0+101.."},
		{"pieces go on and end, in turn", Config{PartialPoint: 1}, func(r *Receiver) error {
			must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, x), part(2, 2, 0, 0, bFlag, x)))
			must.OK(t, feedParts(r, part(3, 1, 0, 1, 0, "more")))
			return feedParts(r, part(4, 2, 0, 1, eFlag, "end"), part(5, 1, 0, 2, eFlag, "end"))
		}, "1:0+300.. 2:0+300.. 1:300+4.. 2:300+3 1:304+3"},
		{"what follows in the stream waits for the end, in others it does not", Config{PartialPoint: 1}, func(r *Receiver) error {
			must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, x)))
			return feedParts(r, part(2, 1, 0, 0, be|uFlag, "u"), part(3, 1, 1, 0, be, "b"), part(4, 2, 0, 0, be, "c"),
				part(5, 1, 0, 1, eFlag, "end"))
		}, "1:0+300.. 2:0+1 1:300+3 1:0+1 1:0+1"},
		{"the next message of the stream comes in pieces after it", Config{PartialPoint: 1}, func(r *Receiver) error {
			must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, x)))
			must.OK(t, feedParts(r, part(2, 1, 1, 0, bFlag, "long")))
			return feedParts(r, part(3, 1, 0, 1, eFlag, "end"))
		}, "1:0+300.. 1:300+3 1:0+4.."},
		// req 3758-3.6-6
		{"a message that is given up is cut off", Config{PartialPoint: 1, MayAbandon: true}, func(r *Receiver) error {
			must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, x), part(2, 2, 0, 0, bFlag, x)))
			must.OK(t, feedParts(r, part(4, 1, 1, 0, be, "b")))
			r.IForwardTSN(iForward(3, wire.ISkip{Stream: 1, MID: 0}))
			return r.PacketDone(0)
		}, "1:0+300.. 2:0+300.. 1:300+0cut 1:0+1"},
		{"all are cut off at the end of the association", Config{PartialPoint: 1}, func(r *Receiver) error {
			must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, x), part(2, 2, 0, 0, bFlag, x)))
			must.OK(t, feedParts(r, part(3, 2, 1, 0, be|uFlag, "b")))
			r.CutOff()
			return nil
		}, "1:0+300.. 2:0+300.. 1:300+0cut 2:300+0cut 2:0+1"},
	} {
		r := interleavedWith(tt.cfg)
		must.OK(t, tt.story(r))
		check.OK(t, r.Audit(0))
		check.Equal(t, tt.name, drainPieces(r), tt.want)
		check.OK(t, r.Audit(0))
		r.Close()
		check.That(t, r.Buffered() == 0 && r.reassembly.store.usedMemory == 0, "%s: %d octets are left", tt.name, r.Buffered())
	}
}

// A restart ends what is read in pieces, of each stream.
func TestRestartCutsOffEachStream(t *testing.T) {
	r := interleavedWith(Config{PartialPoint: 1})
	must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, "read"), part(2, 2, 0, 0, bFlag, "read"), part(3, 3, 0, 0, bFlag, "too")))
	check.Equal(t, "pieces", drainPieces(r), "1:0+4.. 2:0+4.. 3:0+3..")
	must.OK(t, feedParts(r, part(4, 3, 0, 1, eFlag, "end"), part(5, 2, 0, 1, 0, "unread")))
	m := mustReceive(t, r)
	check.That(t, m.Stream == 3 && !m.More, "%+v", m)
	r.Release(m)
	r.Restart(Config{PeerTSN: 5000, RecvBuffer: 1000, PMDCS: 200, InStreams: 4, Interleaved: true})
	check.Equal(t, "after a restart", drainPieces(r), "1:4+0cut 2:4+0cut")
	must.OK(t, feedParts(r, part(5000, 1, 0, 0, be, "anew")))
	check.Equal(t, "then", drainText(r), "anew|")
	wantEmpty(t, "the end", r)
}

// A peer may open a message with each chunk and never end one. The window bounds the octets, and
// what they take in memory.
func TestManyFirstFragmentsAreBounded(t *testing.T) {
	const buffer = 64 << 10
	for _, tt := range []struct {
		name  string
		chunk func(i int) wire.IData
	}{
		{"on one stream, ordered", func(i int) wire.IData { return part(1+i, 0, uint32(i), 0, bFlag, "x") }},
		{"on one stream, unordered", func(i int) wire.IData { return part(1+i, 0, uint32(i), 0, bFlag|uFlag, "x") }},
		{"on every stream", func(i int) wire.IData { return part(1+i, i%65_535, uint32(i/65_535), 0, bFlag, "x") }},
		{"without the first", func(i int) wire.IData { return part(1+i, 0, uint32(i), 1, 0, "x") }},
		{"every second fragment of one", func(i int) wire.IData { return part(1+i, 0, 0, 1+2*uint32(i), 0, "x") }},
		{"far apart in TSN too", func(i int) wire.IData { return part(1+64*i, 0, uint32(i), 0, bFlag, "x") }},
	} {
		r := interleavedWith(Config{RecvBuffer: buffer, InStreams: 65_535})
		refused := 0
		for i := range 200_000 {
			d := tt.chunk(i)
			if r.AdmitInterleaved(d) != New {
				refused++
				continue
			}
			must.OK(t, r.QueueInterleaved(d, nil))
			must.OK(t, r.PacketDone(0))
		}
		check.That(t, refused > 100_000, "%s: only %d are refused", tt.name, refused)
		const tables = 1024*(64*(8+8+16+32)+8) + 65_535*openStreamCost // of every stream
		check.That(t, r.Held() <= 10*buffer+1<<16+tables+1<<20, "%s: %d octets held", tt.name, r.Held())
		check.OK(t, r.Audit(0))
		r.Close()
		check.Equal(t, tt.name+": octets after Close", r.reassembly.store.usedMemory, 0)
	}
}

// Whatever the order of MIDs and FSNs, a chunk costs no more steps than the depth of two trees.
func TestIDataBuysNoWork(t *testing.T) {
	const n = 20_000
	reverse := func(i int) uint32 { return bits.Reverse32(uint32(i)) >> 17 }
	for _, tt := range []struct {
		name  string
		chunk func(i int) wire.IData
	}{
		{"messages in order", func(i int) wire.IData { return part(1+i, 0, uint32(i), 0, bFlag, "x") }},
		{"messages backwards", func(i int) wire.IData { return part(1+i, 0, uint32(n-i), 0, bFlag, "x") }},
		{"messages here and there", func(i int) wire.IData { return part(1+i, 0, reverse(i), 0, bFlag|uFlag, "x") }},
		{"whole ones that wait", func(i int) wire.IData { return part(1+i, 0, 1+reverse(i), 0, be, "x") }},
		{"fragments backwards", func(i int) wire.IData { return part(1+i, 0, 0, uint32(n-i), 0, "x") }},
		{"every second fragment, here and there", func(i int) wire.IData { return part(1+i, 0, 0, 1+2*reverse(i), 0, "x") }},
		{"a message of each stream", func(i int) wire.IData { return part(1+i, i, 0, 0, bFlag, "x") }},
	} {
		r := interleavedWith(Config{RecvBuffer: 4 << 20, InStreams: 65_535})
		most := uint64(0)
		for i := range n {
			before := r.Steps()
			must.OK(t, feedParts(r, tt.chunk(i)))
			most = max(most, r.Steps()-before)
		}
		check.That(t, most <= 8*2*16, "%s: %d steps for a chunk", tt.name, most)
	}
	// What fills the buffer becomes ready a stream at a time, and each has paid for it.
	r := interleavedWith(Config{RecvBuffer: 4 * n, InStreams: 65_535})
	for i := range n {
		must.OK(t, feedParts(r, part(1+i, i, 0, 0, bFlag, "xxxx")))
	}
	check.That(t, r.Steps() <= 16*n, "%d steps", r.Steps())
}

// The streams that an I-FORWARD-TSN names take no more memory than messages on them would, and
// those that there are not take none. Each costs a few steps.
func TestIForwardTSNBuysNothing(t *testing.T) {
	few := interleavedWith(Config{InStreams: 64, MayAbandon: true})
	held := few.Held()
	mustIForward(t, few, 10, wire.ISkip{}, wire.ISkip{Stream: 64}, wire.ISkip{Stream: 65_535, U: true})
	check.Equal(t, "octets held", few.Held(), held)
	r := interleavedWith(Config{RecvBuffer: 4 << 20, InStreams: 65_535, MayAbandon: true})
	empty := r.Held()
	for i := range 100 {
		var skips []wire.ISkip
		for k := range 8_000 {
			skips = append(skips, wire.ISkip{Stream: wire.StreamID((7*k + i) % 65_536), U: i%2 == 0, MID: wire.MID(1000 * i)})
		}
		before := r.Steps()
		mustIForward(t, r, 100_000*(1+i), skips...)
		must.That(t, r.Steps()-before <= 4*8_000, "%d steps for 8,000 streams", r.Steps()-before)
	}
	const page = 64 * (8 + 4)
	check.That(t, r.Held()-empty <= 1024*(page+2*8), "%d octets held", r.Held()-empty)
}

// With memory short all that is not acknowledged for good is dropped, and comes again.
func TestPressureDropsFragments(t *testing.T) {
	r := interleaved()
	chunks := []wire.IData{part(2, 0, 0, 1, 0, "b"), part(3, 1, 0, 0, be, "x"), part(4, 0, 0, 3, eFlag, "d"),
		part(6, 0, 2, 0, be, "f"), part(7, 2, 0, 0, bFlag|uFlag, "y"), part(5, 0, 1, 0, be, "e")}
	must.OK(t, feedParts(r, part(1, 0, 0, 0, bFlag, "a")))
	must.OK(t, feedParts(r, chunks[2:]...))
	r.SetMemoryPressure(true)
	check.OK(t, r.Audit(0))
	check.That(t, r.Buffered() == 1 && r.Evicted() == 4, "%d octets, %d evicted", r.Buffered(), r.Evicted())
	r.SetMemoryPressure(false)
	must.OK(t, feedParts(r, chunks...))
	must.OK(t, feedParts(r, part(9, 2, 0, 1, eFlag|uFlag, "z"), part(8, 0, 0, 2, 0, "c")))
	check.Equal(t, "received", drainText(r), "x|yz|abcd|e|f|")
	wantEmpty(t, "the end", r)
}

// Chunks in the middle of what has come make room for one that was missing.
func TestMissingFragmentFindsRoom(t *testing.T) {
	r := interleaved()
	x := strings.Repeat("x", 250)
	must.OK(t, feedParts(r, part(2, 1, 0, 1, 0, x), part(3, 2, 1, 0, be, x), part(4, 1, 0, 2, eFlag, x), part(5, 3, 0, 1, eFlag, x)))
	check.Equal(t, "window", r.Window(), 0)
	check.Equal(t, "beyond all", r.AdmitInterleaved(part(6, 0, 0, 0, be, "x")), Dropped)
	must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, "a")))
	check.OK(t, r.Audit(0))
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 4")
	check.Equal(t, "received", drainPieces(r), "1:0+501")
	must.OK(t, feedParts(r, part(5, 3, 0, 1, eFlag, "z"), part(6, 2, 0, 0, be, "a"), part(7, 3, 0, 0, bFlag, "y")))
	check.Equal(t, "received", drainPieces(r), "2:0+1 3:0+2 2:0+250")
	wantEmpty(t, "the end", r)
}

// An association that has become idle goes on with the MIDs of its streams.
func TestIdleReceiverKeepsMIDs(t *testing.T) {
	cfg := Config{MayAbandon: true}
	r := interleavedWith(cfg)
	must.OK(t, feedParts(r, part(1, 5, 0, 0, bFlag, "a"), part(2, 5, 0, 1, eFlag, "b"), part(3, 5, 0, 0, be|uFlag, "u")))
	mustIForward(t, r, 4, wire.ISkip{Stream: 5, U: true, MID: 8})
	check.That(t, !r.CanIdle(), "it can be idle with messages to be read")
	check.Equal(t, "received", drainText(r), "ab|u|")
	sackOf(r)
	must.OK(t, feedParts(r, part(5, 6, 0, 0, bFlag, "open")))
	sackOf(r)
	r.Trim()
	check.That(t, !r.CanIdle(), "it can be idle with a message in assembly")
	must.OK(t, feedParts(r, part(6, 6, 0, 1, eFlag, "ed")))
	check.Equal(t, "received", drainText(r), "opened|")
	sackOf(r)
	r.SetMemoryPressure(false)
	sackOf(r)
	r.Trim()
	must.That(t, r.CanIdle(), "it cannot be idle: %s", r.DumpState(0))
	idle, ext := r.IdleState(), r.IdleExtensions()
	check.That(t, ext.Held() > 0 && ext.Held() < 64*8+1024, "%d octets", ext.Held())
	next := new(Receiver)
	cfg = Config{PeerTSN: 1, RecvBuffer: 1000, PMDCS: 200, InStreams: 16, MayAbandon: true, Interleaved: true}
	next.Init(idle.Config(cfg))
	next.RestoreFrom(&idle)
	next.RestoreExtensions(ext)
	must.OK(t, feedParts(next, part(7, 5, 1, 0, be, "c"), part(8, 5, 8, 0, be|uFlag, "of before"), part(9, 5, 9, 0, be|uFlag, "d")))
	check.Equal(t, "received", drainText(next), "c|d|")
	wantEmpty(t, "the end", next)
	var none *IdleExtensions
	check.That(t, newReceiver().IdleExtensions() == nil && none.Held() == 0, "a receiver of DATA keeps MIDs")
}

// A chunk for a stream that there is not counts as received, and takes nothing.
func TestDiscardedIDataTakesNoWindow(t *testing.T) {
	r := interleaved()
	d := part(1, 99, 0, 0, be, "nowhere")
	must.Equal(t, "admission", r.AdmitInterleaved(d), New)
	r.Discard(d)
	must.OK(t, r.PacketDone(0))
	k := sackOf(r)
	check.That(t, k.CumTSN() == 1 && k.ARwnd() == 1000, "SACK of %d with %d", k.CumTSN(), k.ARwnd())
	r.SetBuffers(500, 0, 0)
	d = part(2, 99, 0, 0, be, strings.Repeat("x", 400))
	must.Equal(t, "admission", r.AdmitInterleaved(d), New)
	r.Discard(d)
	check.Equal(t, "a smaller buffer comes about", r.Window(), 600)
}

// An I-DATA chunk is never the middle of a row, and is not placed.
func TestIDataHasNoRows(t *testing.T) {
	r := interleavedWith(Config{RecvBuffer: 1 << 20})
	must.OK(t, feedParts(r, part(1, 0, 0, 0, bFlag, "a")))
	sackOf(r)
	must.OK(t, feedParts(r, part(2, 0, 0, 1, 0, "b")))
	sackOf(r)
	_, ok := r.MidMessage()
	check.That(t, !ok && !r.CanPlaceRow() && r.Deadline() == rawio.Never, "rows are taken")
}
