package rx

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Whatever order tiny messages come in, and whichever streams and SSNs they have, a chunk costs as
// many steps as a key has bits, and no chunk has thousands delivered at once. They close the window
// before they eat memory, Held says how much they do, and in the end all of it is given back.
func TestNoOrderOfArrivalBuysWork(t *testing.T) {
	race.Alone(t)
	const (
		limit = 1 << 20
		most  = 2*33 + 8 // steps for a chunk
	)
	for _, tt := range []struct {
		name  string
		chunk func(i int) (tsn, stream, ssn int, flags uint8) // the i-th; all but TSN 1, SSN 0 of its stream
	}{
		{"in order", func(i int) (int, int, int, uint8) { return 2 + i, 0, 1 + i, be }},
		{"SSNs descend", func(i int) (int, int, int, uint8) { return 2 + i, 0, 60_000 - i, be }},
		{"TSNs descend", func(i int) (int, int, int, uint8) { return 60_000 - i, 0, 1 + i, be }},
		{"both descend", func(i int) (int, int, int, uint8) { return 60_000 - i, 0, 60_000 - i, be }},
		{"every second TSN, downwards", func(i int) (int, int, int, uint8) { return 65_000 - 2*i, 0, 60_000 - i, be }},
		{"first fragments, downwards", func(i int) (int, int, int, uint8) { return 65_000 - 2*i, 0, 60_000 - i, wire.FlagB }},
		{"many streams, far apart", func(i int) (int, int, int, uint8) { return 2 + i, 65_534 - 7*i%60_000, 1 + i>>4, be }},
		{"SSNs of the longest way", func(i int) (int, int, int, uint8) {
			if i < 31 {
				k := 1 << (31 - i)
				return 2 + i, k >> 16, k & 0xffff, be
			}
			return 2 + i, 65_534, 65_535 - i, be
		}},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: limit, MaxMessage: limit, PMDCS: 1400, InStreams: 65_535})
		d := dataChunk(0, 0, 0, "x")
		n, worst := 0, uint64(0)
		for ; n < 60_000; n++ {
			tsn, stream, ssn, flags := tt.chunk(n)
			wire.AppendDataHeader(d[:0], wire.DataFields{Flags: flags, TSN: wire.TSN(tsn),
				Stream: wire.StreamID(stream), SSN: wire.SSN(ssn), PayloadLen: 1})
			begun := r.Steps()
			if r.Admit(d) != New {
				break
			}
			err := r.Queue(d, nil)
			must.That(t, err == nil, "%v, %v, %v", tt.name, n, err)
			err = r.PacketDone(0)
			must.That(t, err == nil, "%v, %v, %v", tt.name, n, err)
			worst = max(worst, r.Steps()-begun)
			if n%5_000 == 0 {
				err := r.Audit(0)
				must.That(t, err == nil, "%v, %v, %v", tt.name, n, err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		heap, held := int(after.HeapAlloc)-int(before.HeapAlloc), r.Held()
		check.That(t, n >= 20_000 && r.reassembly.store.usedMemory <= 8*limit+1<<16+1000,
			"%s: %d chunks taken, %d octets of memory", tt.name, n, r.reassembly.store.usedMemory)
		check.That(t, heap <= held*5/4+16<<10 && held <= heap*5/4+16<<10, "%s: %d octets held, %d by its own account",
			tt.name, heap, held)
		wire.AppendDataHeader(d[:0], wire.DataFields{Flags: be, TSN: 1, PayloadLen: 1})
		for range 3 { // the one that all wait for, then the reader, who gets that one first
			begun := r.Steps()
			if r.Admit(d) == New {
				err := r.Queue(d, nil)
				must.That(t, err == nil, "%v, %v", tt.name, err)
			} else {
				if m, ok := r.Receive(); ok {
					r.Release(m)
				}
			}
			worst = max(worst, (r.Steps()-begun)/deliverBatchSize)
			check.That(t, worst <= most, "%s: %d steps for a chunk", tt.name, worst)
		}
		for m, ok := r.Receive(); ok; m, ok = r.Receive() {
			r.Release(m)
		}
		err := r.Audit(0)
		check.That(t, err == nil && max(r.reassembly.store.numFreeMessages, r.reassembly.store.numFreePieces) <=
			max(minSpares,
				limit/octetsPerSpare), "%s: %v, with %d messages and %d pieces to use again", tt.name, err,
			r.reassembly.store.numFreeMessages, r.reassembly.store.numFreePieces)
		r.Trim()
		check.That(t, r.Held() <= 3<<10+r.reassembly.streams.table.Held() || r.HasGaps() || r.Buffered() != 0,
			"%s: %d octets are kept when all is read", tt.name, r.Held())
		r.Close()
		err = r.Audit(0)
		check.That(t, err == nil, "%v, %v", tt.name, err)
		held = r.Held()
		check.That(t, held <= 12<<10 && r.Buffered() == 0, "%s: %d octets held at the end, %d of user data", tt.name,
			held, r.Buffered())
		runtime.KeepAlive(r)
	}
	p, m, l := unsafe.Sizeof(piece{}), unsafe.Sizeof(Message{}), unsafe.Sizeof(bufferRef{})
	check.That(t, p <= pieceCost && m <= messageCost && l <= bufferRefCost,
		"%d, %d and %d octets in a piece, a Message and a loan", p, m, l)
}

// What is due to be delivered, and waits for its reader, keeps its place in the stream.
func TestWhatIsDueKeepsItsTurn(t *testing.T) {
	r := newReceiver()
	// what it is next to, if there is anything, the messages on its way, and its place
	for i, steps := range []uint64{1, 2, 4} {
		tsn := []int{2, 1, 3}[i]
		mustPacket(t, r, 0, dataChunk(tsn, tsn-1, be, string(rune('a'+tsn-1))))
		check.That(t, r.Steps() == steps, "%d steps for %d chunks, want %d", r.Steps(), i+1, steps)
	}
	got := drainText(r)
	check.That(t, got == "a|b|c|" && r.Steps() == 9, "%q, %d steps", got, r.Steps())
	mustPacket(t, r, 0, dataChunk(5, 4, be, "e"))
	mustPacket(t, r, 0, dataChunk(4, 3, be, "d"))
	_, err := feedPacket(r, 0, dataChunk(6, 4, be, "another"))
	check.That(t, err != nil, "two messages with the SSN that is due")
	r = newReceiver()
	for i := range deliverBatchSize + 2 { // all wait for the last of them
		mustPacket(t, r, 0, dataChunk(deliverBatchSize+2-i, deliverBatchSize+1-i, be, "x"))
	}
	mustReceive(t, r)
	mustReceive(t, r)
	check.Equal(t, "messages that still wait when one of many was asked for", r.reassembly.outOfOrder.count, 1)
}

// The tables of a receiver are counted, each once, and what is kept to be used again.
func TestHeldCountsEachTable(t *testing.T) {
	r := newReceiver()
	const set = 1024/8 + 2*8 // octets for as many TSNs
	want := int(unsafe.Sizeof(*r))
	for i, step := range []struct {
		do   func()
		more int
	}{
		{func() {}, 0},
		{func() { mustPacket(t, r, 0, dataChunk(1, 0, ube, "x")) }, 0}, // there is room for it in the Receiver
		{func() { drainText(r) }, 0},
		{func() { mustPacket(t, r, 0, dataChunk(3, 0, ube, "x")) }, 0},
		{func() { mustPacket(t, r, 0, dataChunk(5, 1, be, "y")) }, messageCost + pieceCost + 1<<minBlockBits + 2*set + 1024/64*8 + int(unsafe.Sizeof(slotPage{}))},
		{func() { mustPacket(t, r, 0, dataChunk(5, 1, be, "y"), dataChunk(3, 0, ube, "x")); sackOf(r) }, int(unsafe.Sizeof(sackReports{})) + 4*2 + 4*2},
		{func() { mustPacket(t, r, 0, dataChunk(4, 0, be, "z")) }, messageCost + pieceCost + 1<<minBlockBits + 4*2},
	} {
		step.do()
		want += step.more
		check.That(t, r.Held() == want, "step %d: %d octets, want %d", i, r.Held(), want)
	}
}

// A block lies with the piece that it was used with, and with none when the next data take one of
// another length: it is kept for the next that take it. So lengths that take turns need a block
// more at first, and then no other.
func TestBlocksOfEachLengthAreKept(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1200, InStreams: 1})
	tsn, s := 0, &r.reassembly.store
	come := func(octets ...int) {
		for _, n := range octets {
			tsn++
			mustPacket(t, r, 0, dataChunk(tsn, tsn-1, be, strings.Repeat("x", n)))
		}
		drainText(r)
		must.OK(t, r.Audit(0))
	}
	for _, tt := range []struct {
		octets                []int
		cached, lists, pieces int
	}{
		{[]int{129}, 256, 0, 1},
		{[]int{256}, 256, 0, 1},
		{[]int{257}, 256 + 512, listCost, 1},
		{[]int{129}, 256 + 512, 2 * listCost, 1},
		{[]int{257, 129}, 256 + 512, 2 * listCost, 2},
		{[]int{129, 257, 700}, 256 + 512 + 1024, 2 * listCost, 3},
		{[]int{700, 129, 257}, 2*256 + 512 + 1024, 2 * listCost, 3},
		{[]int{129, 700, 257}, 2*256 + 512 + 1024, 3 * listCost, 3},
	} {
		come(tt.octets...)
		check.That(t, s.freeBlockOctets == tt.cached && s.freeListOctets == tt.lists && int(s.numFreePieces) == tt.pieces,
			"after %v: %d octets in blocks, %d of lists, %d pieces", tt.octets, s.freeBlockOctets, s.freeListOctets,
			s.numFreePieces)
	}
}

// What is kept for reuse when all is read is bounded: messages, pieces, and octets of copies. One
// has its place in the Receiver.
func TestSpareMemoryIsBounded(t *testing.T) {
	for limit, spare := range map[int]int{1 << 10: minSpares, 300 << 10: 300} {
		r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: limit, InStreams: 1})
		for i := range 310 {
			mustPacket(t, r, 0, dataChunk(1+i, i, be, "x"))
		}
		drainText(r)
		s := &r.reassembly.store
		check.That(t, int(s.numFreeMessages) == spare && int(s.numFreePieces) == spare &&
			s.freeBlockOctets == min(2*limit,
				309<<minBlockBits), "%d messages, %d pieces, %d octets", r.reassembly.store.numFreeMessages,
			s.numFreePieces,
			s.freeBlockOctets)
	}
}

// One octet on the highest stream takes no more than a page and a directory of the table of
// streams.
func TestHighestStreamIsCheap(t *testing.T) {
	r := NewReceiver(Config{PeerTSN: 1, RecvBuffer: 1 << 20, PMDCS: 1400, InStreams: 65_535})
	mustPacket(t, r, 0, onStream(65_534, 1, 0, be, "x"))
	held := r.Held()
	r.Placed(onStream(65_535, 2, 0, be, "x"))
	check.That(t, held <= 10<<10 && r.Held() == held,
		"%d octets held, %d with a message of a stream that there is not", held, r.Held())
	mustPacket(t, r, 0, onStream(0, 3, 1, be, "x"), onStream(1<<15, 4, 1, be, "x"), onStream(1, 5, 1, be, "x"))
}
