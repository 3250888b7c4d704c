package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// peerMessage is a message of the peer.
type peerMessage struct {
	stream    wire.StreamID
	unordered bool
	number    int      // among those of its stream that are ordered, or unordered, as this one
	parts     [][]byte // its fragments
	tsns      []wire.TSN
	abandoned bool // the peer has given it up
}

// peerChunk is what the peer has sent with a TSN.
type peerChunk struct{ message, part int }

// noPart stands for the fragments that a message lacked when the peer gave it up.
const noPart = -1

// forwardChunk is a FORWARD TSN, as octets, and as the model understands it.
type forwardChunk struct {
	octets []byte
	newCum wire.TSN
	skips  []forwardSkip
}

type forwardSkip struct {
	stream wire.StreamID
	number int // of the message
}

// run is fragments of a message in a row that the receiver holds.
type run struct{ message, from, to int }

// extensionModel is a peer that gives messages up, over a network that loses, doubles and reorders,
// and a reader. Beside them is a receiver that does in the plainest way what RFC 3758 says.
type extensionModel struct {
	t        *testing.T
	input    fuzzinput.Script
	log      *strings.Builder
	receiver *rx.Receiver
	limit    int

	// The peer.
	messages   []*peerMessage
	chunks     []peerChunk // by TSN
	sending    int         // the message that lacks chunks, or -1
	numbers    [fuzzStreams]int
	cumAck     wire.TSN
	gapAcked   map[wire.TSN]bool
	rwnd       int
	forwards   []forwardChunk
	fillsRest  bool // what is not sent of a message that was given up takes a TSN
	maxSkips   int  // streams in a FORWARD TSN
	withReader []*rx.Message

	// The plain receiver.
	cum       wire.TSN
	received  map[wire.TSN]bool // beyond cum
	held      map[int]map[int]bool
	next      [fuzzStreams]int
	waiting   [fuzzStreams][]int
	ready     [fuzzStreams][2][]int // messages to be read, ordered and unordered
	done      map[int]bool          // delivered
	dropped   map[int]bool          // given up after something of it had come
	evicted   uint64
	gone      uint64
	pieces    []byte // of the message that is read in pieces
	pieceOf   int
	now       rawio.Time
	sackIsDue bool
	hasEnded  bool // the association has
}

// PlayExtensions runs a script against a receiving half whose peer may give messages up.
func PlayExtensions(t *testing.T, in []byte, told *strings.Builder) {
	z := &extensionModel{t: t, log: told, input: in[1:], limit: []int{1 << 20, 20000, 4000}[in[0]%3], sending: -1,
		fillsRest: in[0]&4 != 0, gapAcked: map[wire.TSN]bool{}, maxSkips: int(in[0]>>3&3)*3 + 1, received: map[wire.TSN]bool{},
		held: map[int]map[int]bool{}, done: map[int]bool{}, dropped: map[int]bool{}, pieceOf: -1}
	cfg := rx.Config{PeerTSN: firstTSN, RecvBuffer: z.limit, PMDCS: maxFuzzChunk, InStreams: fuzzStreams,
		SackDelay: fuzzDelay, MayAbandon: true}
	if in[0]&0x40 != 0 {
		cfg.PartialPoint = 500
	}
	z.cum, z.cumAck, z.receiver, z.rwnd = firstTSN-1, firstTSN-1, rx.NewReceiver(cfg), z.limit
	for i := range z.numbers {
		z.receiver.SetNextSSN(wire.StreamID(i), firstSSN)
	}
	for len(z.input) > 0 {
		z.runStep(z.input.Next())
		z.checkState()
	}
	z.deliverRest()
	z.receiver.Close()
	if z.receiver.Buffered() != 0 || z.receiver.Internals().Memory != 0 {
		t.Fatalf("%d octets held at the end, %d octets of memory", z.receiver.Buffered(), z.receiver.Internals().Memory)
	}
}

func (z *extensionModel) tell(what ...any) {
	if z.log != nil {
		fmt.Fprintln(z.log, what...)
	}
}

func (z *extensionModel) runStep(op int) {
	switch op % 10 {
	case 0, 1:
		z.sendChunks(op>>4 + 1)
	case 2, 3, 4: // a packet: chunks from the first missing one on, or from any
		at := int(int32(z.cum + 1 - firstTSN))
		if op%10 == 4 {
			at += z.input.Next() % 32
		}
		for range op>>5 + 1 {
			z.arrive(at + z.input.Next()%3)
			at++
		}
		z.endPacket()
	case 5:
		if n := len(z.chunks); n > 0 {
			z.arrive(z.input.Next() * z.input.Next() % n)
			z.endPacket()
		}
	case 6:
		if n := len(z.messages); n > 0 {
			z.abandon(max(n-1-op>>4-z.input.Next()%4, 0))
		}
		z.makeForward()
	case 7:
		if n := len(z.forwards); n > 0 {
			i := n - 1
			if op&0x80 != 0 { // one of any time
				i = z.input.Next() % n
			}
			z.arriveForward(z.forwards[i])
			if op&0x10 != 0 {
				z.arrive(int(int32(z.cum + 1 - firstTSN)))
			}
			z.endPacket()
		}
	case 8:
		for range op>>4 + 1 {
			z.read()
		}
		for len(z.withReader) > 0 {
			z.release(0)
		}
	case 9:
		z.checkSack(op&0x10 == 0)
		z.now = z.now.Add(fuzzDelay / 3)
	}
}

// sendChunks makes the peer send chunks. Until they arrive they are under way, or lost.
func (z *extensionModel) sendChunks(n int) {
	for range n {
		if len(z.chunks) > 600 {
			return
		}
		if z.sending < 0 {
			b, cut := z.input.Next(), z.input.Next()
			m := &peerMessage{stream: wire.StreamID(b % fuzzStreams), unordered: b&0x18 == 0x18}
			if !m.unordered {
				m.number = z.numbers[m.stream]
				z.numbers[m.stream]++
			}
			for i := range cut%5 + 1 {
				m.parts = append(m.parts, bytes.Repeat([]byte{byte(len(z.messages)), byte(i)}, []int{1, 40, 120, 400}[cut>>6]))
			}
			z.sending = len(z.messages)
			z.messages = append(z.messages, m)
		}
		if !z.sendPart() {
			return
		}
	}
}

// sendPart sends the next fragment, if the window allows that (RFC 9260 section 6.1, A).
func (z *extensionModel) sendPart() bool {
	m := z.messages[z.sending]
	if n := z.inFlightOctets(); n > 0 && n+len(m.parts[len(m.tsns)]) > z.rwnd {
		return false
	}
	z.chunks = append(z.chunks, peerChunk{z.sending, len(m.tsns)})
	if m.tsns = append(m.tsns, firstTSN.Add(uint32(len(z.chunks)-1))); len(m.tsns) == len(m.parts) {
		z.sending = -1
	}
	return true
}

// inFlightOctets returns the octets that the peer has sent, has not given up, and no SACK has named.
func (z *extensionModel) inFlightOctets() (n int) {
	for i := int(int32(z.cumAck + 1 - firstTSN)); i < len(z.chunks); i++ {
		c := z.chunks[i]
		if m := z.messages[c.message]; c.part != noPart && !m.abandoned && !z.gapAcked[firstTSN.Add(uint32(i))] {
			n += len(m.parts[c.part])
		}
	}
	return n
}

// abandon makes the peer give a message up that is not acknowledged.
func (z *extensionModel) abandon(n int) {
	m := z.messages[n]
	if m.abandoned || len(m.tsns) == 0 || m.tsns[len(m.tsns)-1].LessEq(z.cumAck) && z.sending != n {
		return
	}
	m.abandoned = true
	z.tell("abandon", n)
	if z.sending == n {
		z.sending = -1
		if z.fillsRest {
			z.chunks = append(z.chunks, peerChunk{n, noPart})
			m.tsns = append(m.tsns, firstTSN.Add(uint32(len(z.chunks)-1)))
		}
	}
}

// makeForward makes a FORWARD TSN as section 3.5 says, if one is due.
func (z *extensionModel) makeForward() {
	f := forwardChunk{newCum: z.cumAck}
	for i := int(int32(z.cumAck + 1 - firstTSN)); i < len(z.chunks); i++ {
		n := z.chunks[i].message
		m := z.messages[n]
		if !m.abandoned {
			break
		}
		if !m.unordered {
			k := slices.IndexFunc(f.skips, func(s forwardSkip) bool { return s.stream == m.stream })
			if k < 0 && len(f.skips) == z.maxSkips {
				break
			}
			if k < 0 {
				f.skips = append(f.skips, forwardSkip{stream: m.stream})
				k = len(f.skips) - 1
			}
			f.skips[k].number = m.number
		}
		f.newCum = firstTSN.Add(uint32(i))
	}
	if f.newCum == z.cumAck {
		return
	}
	var list []wire.Skip
	for _, s := range f.skips {
		list = append(list, wire.Skip{Stream: s.stream, SSN: firstSSN + wire.SSN(s.number)})
	}
	f.octets = wire.AppendForwardTSN(nil, f.newCum, list)
	z.forwards = append(z.forwards, f)
}

// arrive hands over the chunk with the i-th TSN, if it was sent.
func (z *extensionModel) arrive(i int) {
	if i < 0 || i >= len(z.chunks) || z.chunks[i].part == noPart {
		return
	}
	c, t := z.chunks[i], firstTSN.Add(uint32(i))
	m := z.messages[c.message]
	f := wire.DataFields{TSN: t, Stream: m.stream, SSN: firstSSN + wire.SSN(m.number), PPID: uint32(c.message),
		PayloadLen: len(m.parts[c.part])}
	if m.unordered {
		f.Flags, f.SSN = wire.FlagU, 0
	}
	if c.part == 0 {
		f.Flags |= wire.FlagB
	}
	if c.part == len(m.parts)-1 {
		f.Flags |= wire.FlagE
	}
	d := wire.Data(append(wire.AppendDataHeader(nil, f), m.parts[c.part]...))
	again := t.LessEq(z.cum) || z.received[t]
	a := z.receiver.Admit(d)
	z.evictHighest()
	z.tell("arrive", t, c, a)
	if again != (a == rx.Duplicate) || a == rx.Dropped && z.receiver.Window() > 0 {
		z.t.Fatalf("TSN %d, which has come before: %v, is admitted as %d with a window of %d", t, again, a,
			z.receiver.Window())
	}
	if a != rx.New {
		return
	}
	if err := z.receiver.Queue(d, nil); err != nil {
		z.t.Fatalf("TSN %d: %v", t, err)
	}
	z.received[t] = true
	z.hold(c.message, c.part)
	z.advance()
	z.readIfSmall()
}

// arriveForward hands over a FORWARD TSN.
func (z *extensionModel) arriveForward(f forwardChunk) {
	isNews := z.cum.Less(f.newCum)
	z.tell("forward", f.newCum, f.skips, isNews)
	if got := z.receiver.ForwardTSN(wire.ForwardTSN(f.octets)); got != isNews {
		z.t.Fatalf("FORWARD TSN to %d, with %d received, is news: %v", f.newCum, z.cum, got)
	}
	if !isNews {
		z.sackIsDue = true
		return
	}
	for z.cum != f.newCum {
		z.cum++
		delete(z.received, z.cum)
	}
	z.advance()
	for _, s := range f.skips {
		if z.next[s.stream] <= s.number {
			z.skip(s.stream, s.number)
		}
	}
	z.deliverWaiting()
}

func (z *extensionModel) endPacket() {
	if err := z.receiver.PacketDone(z.now); err != nil {
		z.t.Fatal(err)
	}
	if z.sackIsDue && !z.receiver.SackDue(z.now) {
		z.t.Fatal("no SACK answers a FORWARD TSN that is out of date")
	}
	z.sackIsDue = false
	z.readIfSmall()
}

// readIfSmall reads all if the buffer is small. What is due, and was not read yet, may be dropped
// for other chunks; the plain receiver has none of that.
func (z *extensionModel) readIfSmall() {
	for z.limit < 1<<20 && z.read() {
	}
}

// hold puts a fragment to its message.
func (z *extensionModel) hold(n, part int) {
	if z.held[n] == nil {
		z.held[n] = map[int]bool{}
	}
	z.held[n][part] = true
	m := z.messages[n]
	if len(z.held[n]) < len(m.parts) {
		return
	}
	delete(z.held, n)
	if m.unordered {
		z.makeReady(n)
		return
	}
	z.waiting[m.stream] = append(z.waiting[m.stream], n)
	slices.SortFunc(z.waiting[m.stream], func(a, b int) int { return z.messages[a].number - z.messages[b].number })
	z.deliverWaiting()
}

// makeReady delivers a message.
func (z *extensionModel) makeReady(n int) {
	m := z.messages[n]
	if z.done[n] || z.dropped[n] {
		z.t.Fatalf("the model delivers message %d twice", n)
	}
	z.done[n] = true
	k := 0
	if m.unordered {
		k = 1
	}
	z.ready[m.stream][k] = append(z.ready[m.stream][k], n)
}

func (z *extensionModel) deliverWaiting() {
	for id := range z.waiting {
		for len(z.waiting[id]) > 0 && z.messages[z.waiting[id][0]].number == z.next[id] {
			z.makeReady(z.waiting[id][0])
			z.waiting[id] = z.waiting[id][1:]
			z.next[id]++
		}
	}
}

// skip delivers what waits up to a message that was given up.
func (z *extensionModel) skip(id wire.StreamID, number int) {
	for len(z.waiting[id]) > 0 && z.messages[z.waiting[id][0]].number <= number {
		z.makeReady(z.waiting[id][0])
		z.waiting[id] = z.waiting[id][1:]
	}
	z.next[id] = number + 1
}

// advance moves the cumulative TSN on. Fragments that lack one up to there are dropped.
func (z *extensionModel) advance() {
	for z.received[z.cum+1] {
		z.cum++
		delete(z.received, z.cum)
	}
	for n := range z.messages { // in the order of TSNs
		m := z.messages[n]
		for _, r := range z.runsOf(n) {
			lacksBegin, lacksEnd := r.from > 0, r.to < len(m.parts)-1
			if !(lacksBegin && m.tsns[r.from].LessEq(z.cum) || lacksEnd && m.tsns[r.to].Less(z.cum)) {
				continue
			}
			for i := r.from; i <= r.to; i++ {
				delete(z.held[n], i)
			}
			if z.gone++; !m.abandoned {
				z.t.Fatalf("the model drops message %d, which the peer has not given up", n)
			}
			if z.dropped[n] = true; !m.unordered && z.next[m.stream] <= m.number {
				z.skip(m.stream, m.number)
			}
		}
	}
	z.deliverWaiting()
}

// runsOf returns the fragments of a message that are held, in rows.
func (z *extensionModel) runsOf(n int) (list []run) {
	for i := range z.messages[n].parts {
		if !z.held[n][i] {
			continue
		}
		if k := len(list) - 1; k >= 0 && list[k].to == i-1 {
			list[k].to = i
		} else {
			list = append(list, run{n, i, i})
		}
	}
	return list
}

// evictHighest forgets as many of the highest chunks as the receiver says that it has dropped.
func (z *extensionModel) evictHighest() {
	for ; z.evicted < z.receiver.Evicted(); z.evicted++ {
		for i := len(z.chunks) - 1; ; i-- {
			if i < 0 {
				z.t.Fatal("a chunk was dropped, and none can be")
			}
			c, t := z.chunks[i], firstTSN.Add(uint32(i))
			m := z.messages[c.message]
			w := slices.Index(z.waiting[m.stream], c.message)
			if !z.received[t] || !z.held[c.message][c.part] && w < 0 {
				continue
			}
			if delete(z.received, t); w >= 0 {
				z.waiting[m.stream] = slices.Delete(z.waiting[m.stream], w, w+1)
				z.held[c.message] = map[int]bool{}
				for k := range m.parts {
					z.held[c.message][k] = true
				}
			}
			delete(z.held[c.message], c.part)
			break
		}
	}
}

// read takes the next message, or piece of one, and compares it with the plain receiver. It returns
// false when there is none.
func (z *extensionModel) read() bool {
	r, ok := z.receiver.Receive()
	if !ok {
		for id := range z.ready {
			if z.pieceOf < 0 && len(z.ready[id][0])+len(z.ready[id][1]) > 0 {
				z.t.Fatalf("stream %d: nothing to read, expected %v", id, z.ready[id])
			}
		}
		return false
	}
	z.withReader = append(z.withReader, r)
	n := int(r.PPID)
	m := z.messages[n]
	z.tell("read", n, r.Size, r.Offset, r.More, r.Cut)
	if r.Offset != len(z.pieces) || r.Offset > 0 && z.pieceOf != n || r.Stream != m.stream || r.Unordered != m.unordered {
		z.t.Fatalf("a piece of message %d at %d, %d octets of %d are there", n, r.Offset, len(z.pieces), z.pieceOf)
	}
	b := make([]byte, r.Size)
	r.CopyTo(b, 0)
	z.pieces, z.pieceOf = append(z.pieces, b...), n
	if !bytes.HasPrefix(bytes.Join(m.parts, nil), z.pieces) {
		z.t.Fatalf("message %d arrived changed", n)
	}
	if r.More {
		return true
	}
	whole := len(z.pieces)
	z.pieces, z.pieceOf = nil, -1
	if r.Cut {
		if !z.dropped[n] && !(z.hasEnded && m.abandoned) || r.Size > 0 {
			z.t.Fatalf("message %d is cut off, dropped: %v", n, z.dropped[n])
		}
		z.release(len(z.withReader) - 1)
		return true
	}
	k := 0
	if m.unordered {
		k = 1
	}
	list := z.ready[m.stream][k]
	i := slices.Index(list, n)
	if i < 0 || i > 0 && (!m.unordered || r.Offset == 0) || whole != len(bytes.Join(m.parts, nil)) {
		z.t.Fatalf("message %d is read with %d octets, expected of the stream are %v", n, whole, list)
	}
	z.ready[m.stream][k] = slices.Delete(list, i, i+1)
	return true
}

func (z *extensionModel) release(i int) {
	z.receiver.Release(z.withReader[i])
	z.withReader = slices.Delete(z.withReader, i, i+1)
}

// checkSack compares a SACK with what the plain receiver has, and gives it to the peer.
func (z *extensionModel) checkSack(arrives bool) {
	k := wire.Sack(z.receiver.AppendSack(nil, 8000))
	named := map[wire.TSN]bool{}
	for i := range k.NumGaps() {
		start, end := k.Gap(i)
		for o := int(start); o <= int(end); o++ {
			named[k.CumTSN().Add(uint32(o))] = true
		}
	}
	if k.CumTSN() != z.cum || len(named) != len(z.received) {
		z.t.Fatalf("SACK of %d and %d more, want %d and %d", k.CumTSN(), len(named), z.cum, len(z.received))
	}
	for t := range z.received {
		if !named[t] {
			z.t.Fatalf("SACK does not name TSN %d", t)
		}
	}
	if arrives {
		z.cumAck, z.gapAcked, z.rwnd = k.CumTSN(), named, int(k.ARwnd())
	}
}

// checkState compares the two receivers.
func (z *extensionModel) checkState() {
	lent := 0
	for _, r := range z.withReader {
		lent += r.Size
	}
	if err := z.receiver.Audit(lent); err != nil {
		z.t.Fatal(err)
	}
	if n := z.receiver.TakeAbandoned(); n > z.gone {
		z.t.Fatalf("%d messages were dropped, want %d", n, z.gone)
	} else {
		z.gone -= n
	}
	if z.receiver.CumTSN() != z.cum || z.receiver.HasGaps() != (len(z.received) > 0) {
		z.t.Fatalf("cumulative TSN %d, gaps %v, want %d and %d TSNs", z.receiver.CumTSN(), z.receiver.HasGaps(), z.cum,
			len(z.received))
	}
}

// deliverRest lets all arrive that the peer has not given up. Then nothing of that is missing.
func (z *extensionModel) deliverRest() {
	for rounds := 0; z.sending >= 0 || int(int32(z.cum+1-firstTSN)) < len(z.chunks); rounds++ {
		if rounds > 3*len(z.chunks) {
			z.t.Fatalf("stuck at TSN %d", z.cum)
		}
		for range z.messages {
			z.read()
		}
		for len(z.withReader) > 0 {
			z.release(0)
		}
		z.checkSack(true)
		i := int(int32(z.cum + 1 - firstTSN))
		if i == len(z.chunks) {
			z.sendPart()
		}
		if z.messages[z.chunks[i].message].abandoned {
			z.makeForward()
			z.arriveForward(z.forwards[len(z.forwards)-1])
		} else {
			z.arrive(i)
		}
		z.endPacket()
		z.checkState()
	}
	for range 2*len(z.messages) + 1 {
		z.read()
	}
	for len(z.withReader) > 0 {
		z.release(0)
	}
	open := 0 // fragments of a message whose end has no TSN
	for n := range z.held {
		open += len(z.held[n])
	}
	if z.receiver.HasMissing() != (open > 0) && z.pieceOf < 0 {
		z.t.Fatalf("missing: %v, %d fragments lack the rest", z.receiver.HasMissing(), open)
	}
	z.receiver.GiveUpMissing()
	z.hasEnded = true
	z.read()
	for n, m := range z.messages {
		if !m.abandoned && !z.done[n] {
			z.t.Fatalf("message %d was never delivered", n)
		}
	}
	if z.receiver.HasMissing() || z.gone != 0 || z.receiver.Window() != z.limit {
		z.t.Fatalf("missing: %v, %d messages less were dropped, window %d", z.receiver.HasMissing(), z.gone,
			z.receiver.Window())
	}
}
