// Package model drives the receiving half of SCTP at random: a peer, the network between, and a
// reader. A model of the receiver says what must result.
package model

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/wire"
)

const (
	fuzzStreams = 4
	firstTSN    = wire.TSN(1<<32 - 10) // TSNs and SSNs wrap
	firstSSN    = wire.SSN(1<<16 - 3)
)

// sentMessage is what the peer sent, as the model keeps it.
type sentMessage struct {
	stream    wire.StreamID
	unordered bool
	data      []byte
	lastTSN   wire.TSN
	delivered bool // delivered, or placed
}

// receiverModel is a peer that sends as it should, over a network that loses, doubles and reorders,
// and a reader. Once a chunk was forged, little can be expected.
type receiverModel struct {
	t                *testing.T
	input            fuzzinput.Script
	receiver         *rx.Receiver
	limit            int
	pool             *rawio.Pool
	buf              *rawio.Buf  // of the packet in processing, or nil
	chunks           []wire.Data // by TSN
	messageOf        []int       // the messages they are of
	numSent          int         // how many of them the peer has sent at least once
	rwnd             int         // octets that it may still send
	acked            map[wire.TSN]bool
	sent             []*sentMessage
	ssn              [fuzzStreams]wire.SSN
	received         map[wire.TSN]bool // queued or placed; those that were evicted are not taken out
	wasFull          bool              // the window has been closed, so that there may have been evictions
	hasForged        bool
	underPressure    bool
	hasLoneDelay     bool // the delay of a lone packet's SACK is another
	limitsMessages   bool // longer messages than the receiver takes are sent
	forgesNothing    bool // nothing is forged
	pmdcs            int
	advertisedWindow int // the a_rwnd that the last SACK gave, less what has come in since
	sackModel        sackModel
	withReader       []*rx.Message // with the reader
	partialData      []byte        // of the message that is delivered in pieces
	partialMessage   *sentMessage
	now              rawio.Time
	log              *strings.Builder // what happens, if it is to be written down
}

// logState writes down what happens, if that is wanted, and what becomes of the rx.Receiver.
func (z *receiverModel) logState(what ...any) {
	if z.log != nil {
		fmt.Fprintln(z.log, what, z.now, z.receiver.DumpState(z.now), z.pool.Outstanding())
	}
}

// sackModel tells when a SACK is due (sections 6.2 and 6.7). It is due at once for the first
// packet, for a gap and what closes it, and for what is not taken. It is due for every second
// packet. It is also due at once where packets are that far apart and a SACK waited without DATA of
// ours. Otherwise it is due after a delay.
type sackModel struct {
	hasData, isUrgent, hadGaps, firstAcked, mustSend bool
	packetsSinceSack, lossBackoff                    int
	sackDueAt                                        rawio.Time
	strictRFC, delayExpired                          bool
	hasDuplicate, lastWaited                         bool
	loneDelay, delayLimit                            time.Duration
	lastDataAt                                       rawio.Time
}

const fuzzDelay = 200 * time.Millisecond

func (a *sackModel) endPacket(now rawio.Time, gaps bool) {
	if gaps {
		a.lossBackoff = rx.LossBackoffPackets
	}
	if a.hasData {
		a.packetsSinceSack++
		a.lossBackoff = max(a.lossBackoff-1, 0)
		if ago := now.Sub(a.lastDataAt); a.hasDuplicate && !a.strictRFC &&
			(a.lastWaited || a.sackDueAt != rawio.Never) && ago >= 10*time.Millisecond {
			a.delayLimit = min(a.delayLimit, ago/2)
		}
		a.hasDuplicate = false
		far := now.Sub(a.lastDataAt) > min(a.loneDelay, a.delayLimit)
		a.lastDataAt = now
		if a.isUrgent || gaps || a.hadGaps || !a.firstAcked || a.packetsSinceSack > 1 || a.delayExpired && far {
			a.mustSend = true
		} else {
			a.sackDueAt = now.Add(min(fuzzDelay, a.delayLimit))
		}
		a.firstAcked = true
	}
	a.hasData, a.isUrgent, a.hadGaps = false, false, gaps
}

// advanceTime does what is due by time alone.
func (a *sackModel) advanceTime(now rawio.Time) {
	if !now.Before(a.sackDueAt) {
		a.mustSend, a.delayExpired, a.lastWaited = true, !a.strictRFC, true
	}
}

// makeMessage makes a message of the peer's: one octet chooses the stream, the next how it is cut.
func (z *receiverModel) makeMessage() {
	b, cut := z.input.Next(), z.input.Next()
	m := &sentMessage{stream: wire.StreamID(b % fuzzStreams), unordered: b&8 != 0}
	n := len(z.sent)
	z.sent = append(z.sent, m)
	count, size := cut%6+1, []int{2, 63, 255, 900}[cut>>6]
	ssn := z.ssn[m.stream]
	if m.unordered {
		ssn = 0
	} else {
		z.ssn[m.stream]++
	}
	for i := range count {
		payload := bytes.Repeat([]byte{byte(n), byte(i)}, size)[:size+cut>>3%3]
		m.data = append(m.data, payload...)
		f := wire.DataFields{TSN: firstTSN.Add(uint32(len(z.chunks))), Stream: m.stream, SSN: ssn, PPID: uint32(n),
			PayloadLen: len(payload)}
		if m.unordered {
			f.Flags |= wire.FlagU
		}
		if i == 0 {
			f.Flags |= wire.FlagB
		}
		if i == count-1 {
			f.Flags |= wire.FlagE
		}
		m.lastTSN = f.TSN
		z.chunks = append(z.chunks, wire.Data(append(wire.AppendDataHeader(nil, f), payload...)))
		z.messageOf = append(z.messageOf, n)
	}
}

// sendUpTo makes the peer send chunks up to i for the first time, as far as the receiver's window
// goes (section 6.1, A). Those before i are then under way or lost.
func (z *receiverModel) sendUpTo(i int) bool {
	if i < 0 || i >= len(z.chunks) {
		return false
	}
	for z.numSent <= i {
		n := len(z.chunks[z.numSent].Payload())
		if n > z.rwnd && z.inFlightOctets() > 0 && !z.hasForged {
			return false
		}
		z.rwnd -= n
		z.numSent++
	}
	return true
}

// inFlightOctets returns the octets that the peer has sent and no SACK has named.
func (z *receiverModel) inFlightOctets() (n int) {
	for _, d := range z.chunks[:z.numSent] {
		if !z.acked[d.TSN()] {
			n += len(d.Payload())
		}
	}
	return n
}

// deliverChunk hands over a chunk, in a buffer with others of its packet if there is room. It
// returns false when the association is to be aborted.
func (z *receiverModel) deliverChunk(d wire.Data, place, refuse bool) bool {
	if z.buf == nil || len(d) > len(z.buf.B)-z.buf.Filled {
		z.releaseBuffer()
		z.buf = z.pool.Get()
	}
	buf := z.buf
	at := buf.Filled
	buf.Filled += copy(buf.B[at:], d)
	d = wire.Data(buf.B[at:buf.Filled])
	z.wasFull = z.wasFull || z.receiver.Window() == 0
	again := z.received[d.TSN()] && !z.wasFull
	// others wait for it
	wanted, roomy := z.receiver.HasGaps() && d.TSN() == z.receiver.CumTSN()+1, z.receiver.Internals().Room > 0
	a := z.receiver.Admit(d)
	z.logState(d.TSN(), a)
	if z.underPressure && (a == rx.New && !wanted || a != rx.New && wanted && roomy) {
		z.t.Fatalf("with memory short TSN %d is admitted as %d", d.TSN(), a)
	}
	if !z.hasForged && again != (a == rx.Duplicate) && (again || !z.wasFull) {
		z.t.Fatalf("TSN %d, received before: %v, is admitted as %d", d.TSN(), again, a)
	}
	if z.sackModel.hasData = true; a == rx.Duplicate {
		z.sackModel.lossBackoff, z.sackModel.hasDuplicate = rx.LossBackoffPackets, true
	}
	if a == rx.Duplicate && !z.receiver.HasDups() {
		z.t.Fatalf("TSN %d came twice, and no SACK is to say so", d.TSN())
	}
	if z.sackModel.isUrgent = z.sackModel.isUrgent || a != rx.New || d.I() || refuse; a != rx.New {
		return true
	}
	if refuse {
		z.receiver.LeaveUnacked()
		return true
	}
	z.received[d.TSN()] = true
	if place && d.B() && d.E() {
		z.receiver.Placed(d)
		if !z.hasForged {
			z.markDelivered(int(d.PPID()))
		}
		return true
	}
	z.advertisedWindow = max(z.advertisedWindow-len(d.Payload()), 0)
	return z.checkError(z.receiver.Queue(d, buf))
}

// releaseBuffer gives the packet's buffer back.
func (z *receiverModel) releaseBuffer() {
	if z.buf != nil {
		z.buf.Release()
		z.buf = nil
	}
}

func (z *receiverModel) endPacket() bool {
	z.releaseBuffer()
	err := z.receiver.PacketDone(z.now)
	z.sackModel.endPacket(z.now, z.receiver.HasGaps())
	return z.checkError(err)
}

// maxFuzzChunk is more than the octets of user data in any chunk.
const maxFuzzChunk = 1024

// checkError checks an error of the receiver: there is none without a forged chunk.
func (z *receiverModel) checkError(err error) bool {
	z.logState(err)
	var v *rx.ViolationError
	if err != nil && !(z.limitsMessages && err == rx.ErrMessageTooBig) &&
		(!z.hasForged || !errors.As(err, &v) && err != rx.ErrMessageTooBig) {
		z.t.Fatalf("a peer that does as it should: %v", err)
	}
	return err == nil
}

// markDelivered counts a message as delivered.
func (z *receiverModel) markDelivered(n int) {
	if z.sent[n].delivered {
		z.t.Fatalf("message %d twice", n)
	}
	z.sent[n].delivered = true
}

// readMessage takes the next message and compares it with what was sent.
func (z *receiverModel) readMessage() {
	m, ok := z.receiver.Receive()
	if !ok {
		return
	}
	z.withReader = append(z.withReader, m)
	z.logState(m.Stream, m.SSN, m.PPID, m.Unordered, m.Size, m.Offset, m.More, m.Cut)
	b := make([]byte, m.Size+1)
	if n := m.CopyTo(b, 0); n != m.Size || m.Size == 0 && !m.Cut {
		z.t.Fatalf("%d octets of %d", n, m.Size)
	}
	if z.hasForged {
		return
	}
	n := int(m.PPID)
	s := z.sent[n]
	if m.Offset != len(z.partialData) || m.Offset > 0 && z.partialMessage != s {
		z.t.Fatalf("a piece of message %d at %d, %d octets are there", n, m.Offset, len(z.partialData))
	}
	if m.Cut {
		z.partialData = nil
		return
	}
	z.partialData, z.partialMessage = append(z.partialData, b[:m.Size]...), s
	if m.Stream != s.stream || m.Unordered != s.unordered || !bytes.HasPrefix(s.data, z.partialData) ||
		m.More == (len(z.partialData) == len(s.data)) {
		z.t.Fatalf("message %d arrived changed: %x", n, z.partialData)
	}
	if m.More {
		return
	}
	z.partialData = nil
	z.markDelivered(n)
	if s.unordered {
		return
	}
	for _, e := range z.sent[:n] { // all before it in the stream
		if e.stream == s.stream && !e.unordered && !e.delivered {
			z.t.Fatalf("message %d overtakes another of its stream", n)
		}
	}
}

func (z *receiverModel) releaseMessage() {
	if n := len(z.withReader); n > 0 {
		i := z.input.Next() % n
		m := z.withReader[i]
		z.withReader[i] = z.withReader[n-1]
		z.withReader = z.withReader[:n-1]
		if z.receiver.Release(m); z.receiver.Window()-z.advertisedWindow >= z.limit/4 {
			z.sackModel.mustSend = true // the window has opened by much
		}
	}
}

// checkSack compares a SACK with what has arrived.
func (z *receiverModel) checkSack(room int) {
	b := z.receiver.AppendSack(nil, room)
	z.logState(b)
	if len(b) > room || len(b) == 0 != (room < wire.SackLen(0, 0)) {
		z.t.Fatalf("%d octets for a SACK in %d", len(b), room)
	}
	if len(b) == 0 {
		return
	}
	k := wire.Sack(b)
	if w := z.receiver.Window(); w < z.advertisedWindow || w >= z.advertisedWindow+min(z.limit/2, z.pmdcs) {
		z.advertisedWindow = w
	}
	if k.CumTSN() != z.receiver.CumTSN() || int(k.ARwnd()) != z.advertisedWindow {
		z.t.Fatalf("SACK of %d with a_rwnd %d, want %d with %d", k.CumTSN(), k.ARwnd(), z.receiver.CumTSN(),
			z.advertisedWindow)
	}
	if z.sackModel.packetsSinceSack == 1 && !z.sackModel.mustSend {
		z.sackModel.delayExpired = false
	}
	z.sackModel.lastWaited = z.sackModel.lastWaited && z.sackModel.sackDueAt != rawio.Never
	z.sackModel.packetsSinceSack, z.sackModel.mustSend, z.sackModel.sackDueAt = 0, false, rawio.Never
	named, high := map[wire.TSN]bool{}, wire.TSN(0)
	for i := range k.NumGaps() {
		start, end := k.Gap(i)
		if start > end || uint32(start) < uint32(high)+2 {
			z.t.Fatalf("gap block %d to %d behind %d", start, end, high)
		}
		for o := int(start); o <= int(end); o++ {
			named[k.CumTSN().Add(uint32(o))] = true
		}
		high = wire.TSN(end)
	}
	for i := range z.numSent {
		t := z.chunks[i].TSN()
		z.acked[t] = t.LessEq(k.CumTSN()) || named[t]
	}
	z.rwnd = int(k.ARwnd()) - z.inFlightOctets()
	if z.hasForged {
		return
	}
	for t := range named {
		if !z.received[t] {
			z.t.Fatalf("SACK names TSN %d, which never came", t)
		}
	}
	for t := firstTSN; t.LessEq(k.CumTSN()); t++ {
		if !z.received[t] {
			z.t.Fatalf("SACK covers TSN %d, which never came", t)
		}
	}
	for t := range z.received {
		if !z.wasFull && room > 2000 && k.CumTSN().Less(t) && !named[t] {
			z.t.Fatalf("SACK does not name TSN %d", t)
		}
	}
}

// forgeChunk changes a chunk that the peer would send, in any field, or takes one of long ago.
func (z *receiverModel) forgeChunk(d wire.Data) wire.Data {
	z.hasForged = true
	payload := d.Payload()
	if b := z.input.Next(); b&1 != 0 {
		payload = payload[:min(len(payload), b>>4)]
	}
	f := wire.DataFields{Flags: d.Flags(), TSN: d.TSN(), Stream: d.Stream(), SSN: d.SSN(), PPID: d.PPID(),
		PayloadLen: len(payload)}
	switch b := z.input.Next(); b % 5 {
	case 0:
		f.Flags = uint8(b >> 3)
	case 1:
		f.TSN = z.receiver.CumTSN().Add(uint32(z.input.Next()) - 128)
	case 2:
		f.TSN = z.receiver.CumTSN().Add(uint32(z.input.Next()<<8) - 300)
	case 3:
		f.Stream = wire.StreamID(b>>3) % (fuzzStreams + 1)
	case 4:
		f.SSN += wire.SSN(b>>3) - 5
	}
	return wire.Data(append(wire.AppendDataHeader(nil, f), payload...))
}

// runStep does one step. It returns false when the association is to be aborted.
func (z *receiverModel) runStep(op int) bool {
	switch op % 10 {
	case 0, 1:
		if len(z.chunks) < 500 {
			z.makeMessage()
		}
	case 2, 3, 4: // a packet: chunks from the first missing one on, or from any
		at := int(int32(z.receiver.CumTSN() + 1 - firstTSN))
		if op%10 == 4 {
			at += z.input.Next() % 32
		}
		for range op>>4 + 1 {
			i := at + z.input.Next()%4
			if at++; z.sendUpTo(i) && !z.deliverChunk(z.chunks[i], op&0x80 != 0, false) {
				return false
			}
		}
		return z.endPacket()
	case 5:
		n := z.numSent
		if n > 0 && op&0x80 != 0 && !z.forgesNothing {
			return z.deliverChunk(z.forgeChunk(z.chunks[z.input.Next()%n]), op&0x40 != 0, false) && z.endPacket()
		}
		if n > 0 { // one of any time
			return z.deliverChunk(z.chunks[z.input.Next()%n], false, op&0x20 != 0) && z.endPacket()
		}
	case 6:
		z.readMessage()
	case 7:
		z.releaseMessage()
	case 8:
		z.checkSack([]int{3000, 16, 40, 10}[op>>4&3])
	case 9:
		switch op >> 4 {
		case 1:
			z.setPressure(!z.underPressure)
		case 2:
			z.pmdcs = 100 + 8*z.input.Next()
			z.receiver.SetPMDCS(z.pmdcs)
		case 3:
			z.receiver.Trim()
		}
		z.now = z.now.Add(time.Duration(z.input.Next()) * time.Millisecond)
		z.sackModel.advanceTime(z.now)
		if z.receiver.SackDue(z.now) {
			z.checkSack(3000)
		}
	}
	return true
}

// setPressure turns memory pressure on or off. What may be taken back is dropped.
func (z *receiverModel) setPressure(on bool) {
	z.underPressure, z.wasFull, z.sackModel.mustSend = on, true, true
	dropped, had := z.receiver.Evicted(), z.receiver.Internals().AboveCumTSN
	z.receiver.SetMemoryPressure(on)
	in := z.receiver.Internals()
	if gone := had - in.AboveCumTSN; int(z.receiver.Evicted()-dropped) != gone || !on && gone != 0 {
		z.t.Fatalf("%d TSNs are dropped of %d, %d are left", z.receiver.Evicted()-dropped, had, in.AboveCumTSN)
	}
	if last := in.Highest; on && z.receiver.CumTSN().Less(last) {
		z.t.Fatalf("TSN %d is kept with memory short", last)
	}
}

func (z *receiverModel) checkState() {
	z.logState()
	lent := 0
	for _, m := range z.withReader {
		lent += m.Size
	}
	if err := z.receiver.Audit(lent); err != nil {
		z.t.Fatal(err)
	}
	// A window that is open takes a chunk, so the buffer runs over by less than one; chunks in
	// their place make the highest ones go.
	w, n, want := z.receiver.Window(), z.receiver.Buffered(), max(z.limit-z.receiver.Buffered(), 0)
	if z.underPressure || z.receiver.Internals().Memory > 8*z.limit+1<<16 {
		want = 0
	}
	if w != want || n > z.limit+maxFuzzChunk {
		z.t.Fatalf("window %d of %d, %d octets held", w, z.limit, n)
	}
	r, a := z.receiver, &z.sackModel
	if z.hasLoneDelay {
		a.sackDueAt = r.Deadline()
	}
	a.advanceTime(z.now)
	if due := r.SackDue(z.now); due != a.mustSend || r.SackPending() != (due || a.packetsSinceSack > 0) ||
		r.SackNow() != (due && a.lossBackoff > 0) || r.Deadline() != a.sackDueAt {
		z.t.Fatalf("SACK due %v, pending %v, now %v, at %d; want %+v", due, r.SackPending(), r.SackNow(),
			r.Deadline(), *a)
	}
}

// deliverRest sends everything that is missing and reads all of it.
func (z *receiverModel) deliverRest() {
	z.setPressure(false)
	for rounds := 0; ; rounds++ {
		for range z.chunks {
			z.readMessage()
		}
		for len(z.withReader) > 0 {
			z.releaseMessage()
		}
		i := int(int32(z.receiver.CumTSN() + 1 - firstTSN))
		if i == len(z.chunks) {
			break
		}
		if rounds > 2*len(z.chunks) {
			z.t.Fatalf("stuck at TSN %d of %d", z.receiver.CumTSN(), firstTSN.Add(uint32(len(z.chunks))))
		}
		z.checkSack(3000)
		if !z.sendUpTo(i) {
			z.t.Fatalf("the peer may not send TSN %d, with %d octets in flight", z.chunks[i].TSN(), z.inFlightOctets())
		}
		z.deliverChunk(z.chunks[i], false, false)
		z.endPacket()
	}
	for n, m := range z.sent {
		if !m.delivered {
			z.t.Fatalf("message %d was never delivered", n)
		}
	}
	// The receive buffer is as large as it was at first.
	if z.receiver.Window() != z.limit || z.receiver.Buffered() != 0 || z.receiver.HasGaps() {
		z.t.Fatalf("window %d of %d, %d octets held, gaps %v", z.receiver.Window(), z.limit, z.receiver.Buffered(),
			z.receiver.HasGaps())
	}
}

// checkCutOff ends the association here. The reader learns that a message which it has read in part
// is cut off.
func (z *receiverModel) checkCutOff() {
	z.receiver.CutOff()
	for n := -1; n < len(z.withReader); {
		n = len(z.withReader)
		z.readMessage()
	}
	if len(z.partialData) > 0 && !z.hasForged {
		z.t.Fatalf("%d octets of a message, and nothing says that there are no more", len(z.partialData))
	}
}

// Play runs a script against the receiving half. It writes down what happens if there is something
// to write to.
func Play(t *testing.T, in []byte, told *strings.Builder) {
	z := &receiverModel{t: t, log: told, input: in[1:], limit: []int{1 << 20, 3000, 1500}[in[0]%3],
		received: map[wire.TSN]bool{}, acked: map[wire.TSN]bool{}}
	z.pool, z.hasLoneDelay, z.limitsMessages = rawio.NewPool(2048<<(in[0]>>4&3), 8), in[0]&4 != 0, in[0]&0x18 == 0x18
	cfg := rx.Config{PeerTSN: firstTSN, RecvBuffer: z.limit, PMDCS: maxFuzzChunk, InStreams: fuzzStreams,
		SackDelay: fuzzDelay}
	z.sackModel.strictRFC, z.sackModel.loneDelay, z.sackModel.delayLimit = in[0]&8 != 0, fuzzDelay, fuzzDelay
	cfg.StrictRFC = z.sackModel.strictRFC
	if z.hasLoneDelay {
		cfg.LoneSackDelay = fuzzDelay / 4
		z.sackModel.loneDelay = cfg.LoneSackDelay
	}
	if z.limitsMessages {
		cfg.MaxMessage = 2 * z.limit / 3
	}
	z.rwnd, z.advertisedWindow, z.pmdcs, z.sackModel.sackDueAt, z.forgesNothing = z.limit, z.limit, maxFuzzChunk,
		rawio.Never, in[0]&0x40 != 0
	z.receiver = rx.NewReceiver(cfg)
	for i := range z.ssn {
		z.ssn[i] = firstSSN
		z.receiver.SetNextSSN(wire.StreamID(i), firstSSN)
	}
	alive := true
	for alive && len(z.input) > 0 {
		alive = z.runStep(z.input.Next())
		z.checkState()
	}
	z.releaseBuffer()
	if alive && !z.hasForged && in[0]&0x80 == 0 && !z.limitsMessages {
		z.deliverRest()
	} else {
		z.checkCutOff()
	}
	z.receiver.Close()
	for len(z.withReader) > 0 {
		z.releaseMessage()
	}
	if z.receiver.Buffered() != 0 || z.receiver.Internals().Memory != 0 || z.pool.Outstanding() != 0 {
		t.Fatalf("%d octets held at the end, %d octets of memory, %d packets", z.receiver.Buffered(),
			z.receiver.Internals().Memory, z.pool.Outstanding())
	}
}
