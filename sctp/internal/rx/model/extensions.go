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
	unordered bool     // of I-DATA these have numbers too
	number    int      // among those of its stream that are ordered, or unordered, as this one
	parts     [][]byte // its fragments
	tsns      []wire.TSN
	abandoned bool // the peer has given it up
}

// peerChunk is what the peer has sent with a TSN.
type peerChunk struct{ message, part int }

const firstMID = wire.MID(1<<32 - 3) // MIDs wrap

// noPart stands for the fragments that a message lacked when the peer gave it up.
const noPart = -1

// forwardChunk is a FORWARD TSN, as octets, and as the model understands it.
type forwardChunk struct {
	octets []byte
	newCum wire.TSN
	skips  []forwardSkip
}

type forwardSkip struct {
	stream    wire.StreamID
	unordered bool
	number    int // of the message
}

// partialRead is the message that is read in pieces.
type partialRead struct {
	octets  []byte
	message int // or -1
}

// run is fragments of a message in a row that the receiver holds.
type run struct{ message, from, to int }

// extensionModel is a peer that gives messages up, or interleaves them, over a network that loses,
// doubles and reorders, and a reader. Beside them is a receiver that does in the plainest way what
// RFC 3758 and RFC 8260 say.
type extensionModel struct {
	t        *testing.T
	input    fuzzinput.Script
	log      *strings.Builder
	receiver *rx.Receiver
	limit    int

	interleaves bool // the peer sends I-DATA

	// The peer.
	messages   []*peerMessage
	chunks     []peerChunk      // by TSN
	sending    [fuzzStreams]int // the message of each stream that lacks chunks, or -1
	numbers    [2][fuzzStreams]int
	cumAck     wire.TSN
	gapAcked   map[wire.TSN]bool
	rwnd       int
	forwards   []forwardChunk
	fillsRest  bool // what is not sent of a message that was given up takes a TSN
	maxSkips   int  // streams in a FORWARD TSN
	withReader []*rx.Message

	// The plain receiver.
	cum       wire.TSN
	received  map[wire.TSN]bool    // beyond cum
	held      map[int]map[int]bool // fragments of messages in assembly; true: they may be dropped
	next      [2][fuzzStreams]int  // ordered, and unordered, messages before it are delivered or given up
	waiting   [fuzzStreams][]int
	ready     [fuzzStreams][2][]int // messages to be read, ordered and unordered
	done      map[int]bool          // delivered
	dropped   map[int]bool          // given up after something of it had come
	evicted   uint64
	gone      uint64
	partials  [fuzzStreams]partialRead // of each stream; with DATA the first is that of all
	now       rawio.Time
	sackIsDue bool
	hasEnded  bool // the association has
}

// PlayExtensions runs a script against a receiving half whose peer may give messages up.
func PlayExtensions(t *testing.T, in []byte, told *strings.Builder) {
	z := &extensionModel{t: t, log: told, input: in[1:], limit: []int{1 << 20, 20000, 4000}[in[0]%3],
		interleaves: in[0]&0x80 != 0, fillsRest: in[0]&0x84 != 0, gapAcked: map[wire.TSN]bool{},
		maxSkips: int(in[0]>>3&3)*3 + 1, received: map[wire.TSN]bool{},
		held: map[int]map[int]bool{}, done: map[int]bool{}, dropped: map[int]bool{}}
	cfg := rx.Config{PeerTSN: firstTSN, RecvBuffer: z.limit, PMDCS: maxFuzzChunk, InStreams: fuzzStreams,
		SackDelay: fuzzDelay, MayAbandon: true, Interleaved: z.interleaves}
	if in[0]&0x40 != 0 {
		cfg.PartialPoint = 500
	}
	z.cum, z.cumAck, z.receiver, z.rwnd = firstTSN-1, firstTSN-1, rx.NewReceiver(cfg), z.limit
	for i := range z.sending {
		z.sending[i], z.partials[i].message = -1, -1
		if z.interleaves {
			z.receiver.SetNextMID(wire.StreamID(i), firstMID)
		} else {
			z.receiver.SetNextSSN(wire.StreamID(i), firstSSN)
		}
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
		at := z.sendingSlot(z.input.Next())
		if z.sending[at] < 0 {
			b, cut := z.input.Next(), z.input.Next()
			m := &peerMessage{stream: wire.StreamID(b % fuzzStreams), unordered: b&0x18 == 0x18}
			if z.interleaves {
				m.stream = wire.StreamID(at)
			}
			m.number = z.numbers[kindOf(m)][m.stream]
			z.numbers[kindOf(m)][m.stream]++
			for i := range cut%5 + 1 {
				m.parts = append(m.parts, bytes.Repeat([]byte{byte(len(z.messages)), byte(i)},
					[]int{1, 40, 120, 400}[cut>>6]))
			}
			z.sending[at] = len(z.messages)
			z.messages = append(z.messages, m)
		}
		if !z.sendPart(at) {
			return
		}
	}
}

// sendingSlot is the place in sending of a stream. With DATA one message is finished before the
// next of any stream.
func (z *extensionModel) sendingSlot(stream int) int {
	if z.interleaves {
		return stream % fuzzStreams
	}
	return 0
}

// kindOf is 1 for unordered messages.
func kindOf(m *peerMessage) int {
	if m.unordered {
		return 1
	}
	return 0
}

// sendPart sends the next fragment, if the window allows that (RFC 9260 section 6.1, A).
func (z *extensionModel) sendPart(at int) bool {
	m := z.messages[z.sending[at]]
	if n := z.inFlightOctets(); n > 0 && n+len(m.parts[len(m.tsns)]) > z.rwnd {
		return false
	}
	z.chunks = append(z.chunks, peerChunk{z.sending[at], len(m.tsns)})
	if m.tsns = append(m.tsns, firstTSN.Add(uint32(len(z.chunks)-1))); len(m.tsns) == len(m.parts) {
		z.sending[at] = -1
	}
	return true
}

// inFlightOctets returns the octets that the peer has sent, has not given up, and no SACK has
// named.
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
	at := z.sendingSlot(int(m.stream))
	if m.abandoned || len(m.tsns) == 0 || m.tsns[len(m.tsns)-1].LessEq(z.cumAck) && z.sending[at] != n {
		return
	}
	m.abandoned = true
	z.tell("abandon", n)
	if z.sending[at] == n {
		z.sending[at] = -1
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
		if !m.unordered || z.interleaves {
			k := slices.IndexFunc(f.skips, func(s forwardSkip) bool {
				return s.stream == m.stream && s.unordered == m.unordered
			})
			if k < 0 && len(f.skips) == z.maxSkips {
				break
			}
			if k < 0 {
				f.skips = append(f.skips, forwardSkip{stream: m.stream, unordered: m.unordered})
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
	var mids []wire.ISkip
	for _, s := range f.skips {
		list = append(list, wire.Skip{Stream: s.stream, SSN: firstSSN + wire.SSN(s.number)})
		mids = append(mids, wire.ISkip{Stream: s.stream, U: s.unordered, MID: firstMID + wire.MID(s.number)})
	}
	if f.octets = wire.AppendForwardTSN(nil, f.newCum, list); z.interleaves {
		f.octets = wire.AppendIForwardTSN(nil, f.newCum, mids)
	}
	z.forwards = append(z.forwards, f)
}

// arrive hands over the chunk with the i-th TSN, if it was sent.
func (z *extensionModel) arrive(i int) {
	if i < 0 || i >= len(z.chunks) || z.chunks[i].part == noPart {
		return
	}
	c, t := z.chunks[i], firstTSN.Add(uint32(i))
	m := z.messages[c.message]
	var flags uint8
	if m.unordered {
		flags |= wire.FlagU
	}
	if c.part == 0 {
		flags |= wire.FlagB
	}
	if c.part == len(m.parts)-1 {
		flags |= wire.FlagE
	}
	payload := m.parts[c.part]
	d := wire.Data(append(wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: t, Stream: m.stream,
		SSN: firstSSN + wire.SSN(m.number), PPID: uint32(c.message), PayloadLen: len(payload)}), payload...))
	id := wire.IData(append(wire.AppendIDataHeader(nil, wire.IDataFields{Flags: flags, TSN: t, Stream: m.stream,
		MID: firstMID + wire.MID(m.number), PPID: uint32(c.message), FSN: wire.FSN(c.part),
		PayloadLen: len(payload)}), payload...))
	again := t.LessEq(z.cum) || z.received[t]
	var a rx.Admission
	if z.interleaves {
		a = z.receiver.AdmitInterleaved(id)
	} else {
		a = z.receiver.Admit(d)
	}
	z.evictHighest()
	z.tell("arrive", t, c, a)
	if again != (a == rx.Duplicate) || a == rx.Dropped && z.receiver.Window() > 0 {
		z.t.Fatalf("TSN %d, which has come before: %v, is admitted as %d with a window of %d", t, again, a,
			z.receiver.Window())
	}
	if a != rx.New {
		return
	}
	var err error
	if z.interleaves {
		err = z.receiver.QueueInterleaved(id, nil)
	} else {
		err = z.receiver.Queue(d, nil)
	}
	if err != nil {
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
	got := false
	if z.interleaves {
		got = z.receiver.IForwardTSN(wire.IForwardTSN(f.octets))
	} else {
		got = z.receiver.ForwardTSN(wire.ForwardTSN(f.octets))
	}
	if got != isNews {
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
		if z.interleaves {
			z.dropOpen(s)
		}
		if s.unordered {
			z.next[1][s.stream] = max(z.next[1][s.stream], s.number+1)
		} else if z.next[0][s.stream] <= s.number {
			z.skip(s.stream, s.number)
		}
	}
	z.deliverWaiting()
}

// dropOpen drops the messages of I-DATA in assembly that are given up.
func (z *extensionModel) dropOpen(s forwardSkip) {
	for n, m := range z.messages {
		if m.stream == s.stream && m.unordered == s.unordered && m.number <= s.number && len(z.held[n]) > 0 {
			z.gone++
			z.dropped[n] = true
			delete(z.held, n)
		}
	}
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
	if m := z.messages[n]; z.interleaves && m.number < z.next[kindOf(m)][m.stream] {
		return // it was given up
	}
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
	k := kindOf(m)
	z.ready[m.stream][k] = append(z.ready[m.stream][k], n)
}

func (z *extensionModel) deliverWaiting() {
	for id := range z.waiting {
		for len(z.waiting[id]) > 0 && z.messages[z.waiting[id][0]].number == z.next[0][id] {
			z.makeReady(z.waiting[id][0])
			z.waiting[id] = z.waiting[id][1:]
			z.next[0][id]++
		}
	}
}

// skip delivers what waits up to a message that was given up.
func (z *extensionModel) skip(id wire.StreamID, number int) {
	for len(z.waiting[id]) > 0 && z.messages[z.waiting[id][0]].number <= number {
		z.makeReady(z.waiting[id][0])
		z.waiting[id] = z.waiting[id][1:]
	}
	z.next[0][id] = number + 1
}

// advance moves the cumulative TSN on. Fragments that lack one up to there are dropped.
func (z *extensionModel) advance() {
	for z.received[z.cum+1] {
		z.cum++
		delete(z.received, z.cum)
	}
	for n := range z.messages { // in the order of TSNs
		if z.interleaves {
			break // I-FORWARD-TSN names what is given up
		}
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
			if z.dropped[n] = true; !m.unordered && z.next[0][m.stream] <= m.number {
				z.skip(m.stream, m.number)
			}
		}
	}
	z.deliverWaiting()
}

// runsOf returns the fragments of a message that are held, in rows.
func (z *extensionModel) runsOf(n int) (list []run) {
	for i := range z.messages[n].parts {
		if _, ok := z.held[n][i]; !ok {
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
			if z.partialOf(id).message < 0 && len(z.ready[id][0])+len(z.ready[id][1]) > 0 {
				z.t.Fatalf("stream %d: nothing to read, expected %v", id, z.ready[id])
			}
		}
		return false
	}
	z.withReader = append(z.withReader, r)
	n := int(r.PPID)
	m := z.messages[n]
	z.tell("read", n, r.Size, r.Offset, r.More, r.Cut)
	q := z.partialOf(int(m.stream))
	if r.Offset != len(q.octets) || r.Offset > 0 && q.message != n || r.Stream != m.stream ||
		r.Unordered != m.unordered || z.interleaves && r.MID() != firstMID+wire.MID(m.number) {
		z.t.Fatalf("a piece of message %d at %d, %d octets of %d are there", n, r.Offset, len(q.octets), q.message)
	}
	b := make([]byte, r.Size)
	r.CopyTo(b, 0)
	q.octets, q.message = append(q.octets, b...), n
	if !bytes.HasPrefix(bytes.Join(m.parts, nil), q.octets) {
		z.t.Fatalf("message %d arrived changed", n)
	}
	if r.More {
		for i, read := 0, len(q.octets); read > 0; i++ {
			read -= len(m.parts[i])
			if z.held[n][i] {
				z.held[n][i] = false
			}
		}
		return true
	}
	whole := len(q.octets)
	*q = partialRead{message: -1}
	if r.Cut {
		if !z.dropped[n] && !(z.hasEnded && m.abandoned) || r.Size > 0 {
			z.t.Fatalf("message %d is cut off, dropped: %v", n, z.dropped[n])
		}
		z.release(len(z.withReader) - 1)
		return true
	}
	k := kindOf(m)
	list := z.ready[m.stream][k]
	i := slices.Index(list, n)
	if i < 0 || i > 0 && (!m.unordered || r.Offset == 0) || whole != len(bytes.Join(m.parts, nil)) {
		z.t.Fatalf("message %d is read with %d octets, expected of the stream are %v", n, whole, list)
	}
	z.ready[m.stream][k] = slices.Delete(list, i, i+1)
	return true
}

// partialOf is what is read in pieces of a stream.
func (z *extensionModel) partialOf(id int) *partialRead { return &z.partials[z.sendingSlot(id)] }

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
	if n := z.receiver.TakeAbandoned(); n != z.gone {
		z.t.Fatalf("%d messages were dropped, want %d", n, z.gone)
	}
	z.gone = 0
	if z.receiver.CumTSN() != z.cum || z.receiver.HasGaps() != (len(z.received) > 0) {
		z.t.Fatalf("cumulative TSN %d, gaps %v, want %d and %d TSNs", z.receiver.CumTSN(), z.receiver.HasGaps(), z.cum,
			len(z.received))
	}
}

// deliverRest lets all arrive that the peer has not given up. Then nothing of that is missing.
func (z *extensionModel) deliverRest() {
	for rounds := 0; ; rounds++ {
		at := slices.IndexFunc(z.sending[:], func(n int) bool { return n >= 0 })
		if at < 0 && int(int32(z.cum+1-firstTSN)) == len(z.chunks) {
			break
		}
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
			z.sendPart(at)
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
	if z.receiver.HasMissing() != (open > 0) && z.partials[0].message < 0 {
		z.t.Fatalf("missing: %v, %d fragments lack the rest", z.receiver.HasMissing(), open)
	}
	z.receiver.GiveUpMissing()
	z.hasEnded = true
	for z.read() {
	}
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
