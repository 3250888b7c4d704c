// Package model has what the receiving half of SCTP meets, by chance: a peer, the network between, a reader; and a model of it that says what is to
// come of that.
package model

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/script"
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
	last      wire.TSN
	done      bool // delivered, or placed
}

// fuzzer is a peer that sends as it should over a network that loses, doubles and reorders, and a reader. Once a chunk
// was forged, what may be expected is little.
type fuzzer struct {
	t        *testing.T
	in       script.Script
	r        *rx.Receiver
	limit    int
	pool     *rawio.Pool
	buf      *rawio.Buf  // of the packet in processing, or nil
	chunks   []wire.Data // by TSN
	whose    []int       // the messages they are of
	out      int         // so many of them the peer has sent at least once
	rwnd     int         // octets that it may still send
	acked    map[wire.TSN]bool
	sent     []*sentMessage
	ssn      [fuzzStreams]wire.SSN
	got      map[wire.TSN]bool // queued or placed; those that were evicted are not taken out
	full     bool              // the window has been closed, so that there may have been evictions
	forged   bool
	squeezed bool
	lone     bool // the delay of a lone packet's SACK is another
	small    bool // longer messages than the receiver takes are sent
	honest   bool // nothing is forged
	pmdcs    int
	credit   int // the a_rwnd that the last SACK gave, less what has come in since
	acks     acks
	held     []*rx.Message // with the reader
	part     []byte        // of the message that comes in pieces
	partOf   *sentMessage
	now      rawio.Time
	told     *strings.Builder // what happens, if it is to be told
}

// tell writes down what happens, if that is wanted, and what becomes of the rx.Receiver.
func (z *fuzzer) tell(what ...any) {
	if z.told != nil {
		fmt.Fprintln(z.told, what, z.now, z.r.Tell(z.now), z.pool.Outstanding())
	}
}

// acks tells when a SACK is due: at once for the first packet, for a gap and what closes it, and for what is not taken; for
// every second packet; where one waited in vain for DATA of ours, and packets are that far apart; else after a delay (sections 6.2 and 6.7).
type acks struct {
	data, urgent, gaps, begun, due bool
	packets, wary                  int
	deadline                       rawio.Time
	letter, vain                   bool
	again, waited                  bool
	lone, limit                    time.Duration
	last                           rawio.Time
}

const fuzzDelay = 200 * time.Millisecond

func (a *acks) packetDone(now rawio.Time, gaps bool) {
	if gaps {
		a.wary = rx.WaryPackets
	}
	if a.data {
		a.packets++
		a.wary = max(a.wary-1, 0)
		if ago := now.Sub(a.last); a.again && !a.letter && (a.waited || a.deadline != rawio.Never) && ago >= 10*time.Millisecond {
			a.limit = min(a.limit, ago/2)
		}
		a.again = false
		far := now.Sub(a.last) > min(a.lone, a.limit)
		a.last = now
		if a.urgent || gaps || a.gaps || !a.begun || a.packets > 1 || a.vain && far {
			a.due = true
		} else {
			a.deadline = now.Add(min(fuzzDelay, a.limit))
		}
		a.begun = true
	}
	a.data, a.urgent, a.gaps = false, false, gaps
}

// pass is what the time alone brings.
func (a *acks) pass(now rawio.Time) {
	if !now.Before(a.deadline) {
		a.due, a.vain, a.waited = true, !a.letter, true
	}
}

// send makes a message of the peer's: an octet says where to, the next how it is cut.
func (z *fuzzer) send() {
	b, cut := z.in.Next(), z.in.Next()
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
		f := wire.DataFields{TSN: firstTSN.Add(uint32(len(z.chunks))), Stream: m.stream, SSN: ssn, PPID: uint32(n), PayloadLen: len(payload)}
		if m.unordered {
			f.Flags |= wire.FlagU
		}
		if i == 0 {
			f.Flags |= wire.FlagB
		}
		if i == count-1 {
			f.Flags |= wire.FlagE
		}
		m.last = f.TSN
		z.chunks = append(z.chunks, wire.Data(append(wire.AppendDataHeader(nil, f), payload...)))
		z.whose = append(z.whose, n)
	}
}

// allowed has the peer send chunks up to i for the first time, as far as the receiver's window goes (section 6.1, A).
// Those before it are under way or lost then.
func (z *fuzzer) allowed(i int) bool {
	if i < 0 || i >= len(z.chunks) {
		return false
	}
	for z.out <= i {
		n := len(z.chunks[z.out].Payload())
		if n > z.rwnd && z.flight() > 0 && !z.forged {
			return false
		}
		z.rwnd -= n
		z.out++
	}
	return true
}

// flight returns the octets that the peer has sent and that no SACK has named.
func (z *fuzzer) flight() (n int) {
	for _, d := range z.chunks[:z.out] {
		if !z.acked[d.TSN()] {
			n += len(d.Payload())
		}
	}
	return n
}

// arrive hands over a chunk, in a buffer with others of its packet if there is room. It returns false when the association is to be aborted.
func (z *fuzzer) arrive(d wire.Data, place, refuse bool) bool {
	if z.buf == nil || len(d) > len(z.buf.B)-z.buf.Filled {
		z.done()
		z.buf = z.pool.Get()
	}
	buf := z.buf
	at := buf.Filled
	buf.Filled += copy(buf.B[at:], d)
	d = wire.Data(buf.B[at:buf.Filled])
	z.full = z.full || z.r.Window() == 0
	again := z.got[d.TSN()] && !z.full
	wanted, roomy := z.r.Gaps() && d.TSN() == z.r.CumTSN()+1, z.r.Inside().Room > 0 // others wait for it
	a := z.r.Admit(d)
	z.tell(d.TSN(), a)
	if z.squeezed && (a == rx.New && !wanted || a != rx.New && wanted && roomy) {
		z.t.Fatalf("with memory short TSN %d is admitted as %d", d.TSN(), a)
	}
	if !z.forged && again != (a == rx.Duplicate) && (again || !z.full) {
		z.t.Fatalf("TSN %d, received before: %v, is admitted as %d", d.TSN(), again, a)
	}
	if z.acks.data = true; a == rx.Duplicate {
		z.acks.wary, z.acks.again = rx.WaryPackets, true
	}
	if a == rx.Duplicate && !z.r.Dups() {
		z.t.Fatalf("TSN %d came twice, and no SACK is to say so", d.TSN())
	}
	if z.acks.urgent = z.acks.urgent || a != rx.New || d.I() || refuse; a != rx.New {
		return true
	}
	if refuse {
		z.r.Refuse()
		return true
	}
	z.got[d.TSN()] = true
	if place && d.B() && d.E() {
		z.r.Placed(d)
		if !z.forged {
			z.placed(int(d.PPID()))
		}
		return true
	}
	z.credit = max(z.credit-len(d.Payload()), 0)
	return z.judge(z.r.Queue(d, buf))
}

// done gives the packet's buffer back.
func (z *fuzzer) done() {
	if z.buf != nil {
		z.buf.Release()
		z.buf = nil
	}
}

func (z *fuzzer) packetDone() bool {
	z.done()
	err := z.r.PacketDone(z.now)
	z.acks.packetDone(z.now, z.r.Gaps())
	return z.judge(err)
}

// maxFuzzChunk is more than the octets of user data in any chunk.
const maxFuzzChunk = 1024

// judge takes a verdict of the receiver: there is no error without a forged chunk.
func (z *fuzzer) judge(err error) bool {
	z.tell(err)
	var v *rx.ViolationError
	if err != nil && !(z.small && err == rx.ErrMessageTooBig) && (!z.forged || !errors.As(err, &v) && err != rx.ErrMessageTooBig) {
		z.t.Fatalf("a peer that does as it should: %v", err)
	}
	return err == nil
}

// placed counts a message as delivered.
func (z *fuzzer) placed(n int) {
	if z.sent[n].done {
		z.t.Fatalf("message %d twice", n)
	}
	z.sent[n].done = true
}

// read takes the next message and compares it with what was sent.
func (z *fuzzer) read() {
	m, ok := z.r.Receive()
	if !ok {
		return
	}
	z.held = append(z.held, m)
	z.tell(m.Stream, m.SSN, m.PPID, m.Unordered, m.Size, m.Offset, m.More, m.Cut)
	b := make([]byte, m.Size+1)
	if n := m.CopyTo(b, 0); n != m.Size || m.Size == 0 && !m.Cut {
		z.t.Fatalf("%d octets of %d", n, m.Size)
	}
	if z.forged {
		return
	}
	n := int(m.PPID)
	s := z.sent[n]
	if m.Offset != len(z.part) || m.Offset > 0 && z.partOf != s {
		z.t.Fatalf("a piece of message %d at %d, %d octets are there", n, m.Offset, len(z.part))
	}
	if m.Cut {
		z.part = nil
		return
	}
	z.part, z.partOf = append(z.part, b[:m.Size]...), s
	if m.Stream != s.stream || m.Unordered != s.unordered || !bytes.HasPrefix(s.data, z.part) || m.More == (len(z.part) == len(s.data)) {
		z.t.Fatalf("message %d arrived changed: %x", n, z.part)
	}
	if m.More {
		return
	}
	z.part = nil
	z.placed(n)
	if s.unordered {
		return
	}
	for _, e := range z.sent[:n] { // all before it in the stream
		if e.stream == s.stream && !e.unordered && !e.done {
			z.t.Fatalf("message %d overtakes another of its stream", n)
		}
	}
}

func (z *fuzzer) release() {
	if n := len(z.held); n > 0 {
		i := z.in.Next() % n
		m := z.held[i]
		z.held[i] = z.held[n-1]
		z.held = z.held[:n-1]
		if z.r.Release(m); z.r.Window()-z.credit >= z.limit/4 {
			z.acks.due = true // the window has opened by much
		}
	}
}

// sack compares a SACK with what has arrived.
func (z *fuzzer) sack(room int) {
	b := z.r.AppendSack(nil, room)
	z.tell(b)
	if len(b) > room || len(b) == 0 != (room < wire.SackLen(0, 0)) {
		z.t.Fatalf("%d octets for a SACK in %d", len(b), room)
	}
	if len(b) == 0 {
		return
	}
	k := wire.Sack(b)
	if w := z.r.Window(); w < z.credit || w >= z.credit+min(z.limit/2, z.pmdcs) {
		z.credit = w
	}
	if k.CumTSN() != z.r.CumTSN() || int(k.ARwnd()) != z.credit {
		z.t.Fatalf("SACK of %d with a_rwnd %d, want %d with %d", k.CumTSN(), k.ARwnd(), z.r.CumTSN(), z.credit)
	}
	if z.acks.packets == 1 && !z.acks.due {
		z.acks.vain = false
	}
	z.acks.waited = z.acks.waited && z.acks.deadline != rawio.Never
	z.acks.packets, z.acks.due, z.acks.deadline = 0, false, rawio.Never
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
	for i := range z.out {
		t := z.chunks[i].TSN()
		z.acked[t] = t.LessEq(k.CumTSN()) || named[t]
	}
	z.rwnd = int(k.ARwnd()) - z.flight()
	if z.forged {
		return
	}
	for t := range named {
		if !z.got[t] {
			z.t.Fatalf("SACK names TSN %d, which never came", t)
		}
	}
	for t := firstTSN; t.LessEq(k.CumTSN()); t++ {
		if !z.got[t] {
			z.t.Fatalf("SACK covers TSN %d, which never came", t)
		}
	}
	for t := range z.got {
		if !z.full && room > 2000 && k.CumTSN().Less(t) && !named[t] {
			z.t.Fatalf("SACK does not name TSN %d", t)
		}
	}
}

// forge changes a chunk that the peer would send, in any field, or takes one of long ago.
func (z *fuzzer) forge(d wire.Data) wire.Data {
	z.forged = true
	payload := d.Payload()
	if b := z.in.Next(); b&1 != 0 {
		payload = payload[:min(len(payload), b>>4)]
	}
	f := wire.DataFields{Flags: d.Flags(), TSN: d.TSN(), Stream: d.Stream(), SSN: d.SSN(), PPID: d.PPID(), PayloadLen: len(payload)}
	switch b := z.in.Next(); b % 5 {
	case 0:
		f.Flags = uint8(b >> 3)
	case 1:
		f.TSN = z.r.CumTSN().Add(uint32(z.in.Next()) - 128)
	case 2:
		f.TSN = z.r.CumTSN().Add(uint32(z.in.Next()<<8) - 300)
	case 3:
		f.Stream = wire.StreamID(b>>3) % (fuzzStreams + 1)
	case 4:
		f.SSN += wire.SSN(b>>3) - 5
	}
	return wire.Data(append(wire.AppendDataHeader(nil, f), payload...))
}

// step does one thing. It returns false when the association is to be aborted.
func (z *fuzzer) step(op int) bool {
	switch op % 10 {
	case 0, 1:
		if len(z.chunks) < 500 {
			z.send()
		}
	case 2, 3, 4: // a packet: chunks from the first missing one on, or from any
		at := int(int32(z.r.CumTSN() + 1 - firstTSN))
		if op%10 == 4 {
			at += z.in.Next() % 32
		}
		for range op>>4 + 1 {
			i := at + z.in.Next()%4
			if at++; z.allowed(i) && !z.arrive(z.chunks[i], op&0x80 != 0, false) {
				return false
			}
		}
		return z.packetDone()
	case 5:
		n := z.out
		if n > 0 && op&0x80 != 0 && !z.honest {
			return z.arrive(z.forge(z.chunks[z.in.Next()%n]), op&0x40 != 0, false) && z.packetDone()
		}
		if n > 0 { // one of any time
			return z.arrive(z.chunks[z.in.Next()%n], false, op&0x20 != 0) && z.packetDone()
		}
	case 6:
		z.read()
	case 7:
		z.release()
	case 8:
		z.sack([]int{3000, 16, 40, 10}[op>>4&3])
	case 9:
		switch op >> 4 {
		case 1:
			z.squeeze(!z.squeezed)
		case 2:
			z.pmdcs = 100 + 8*z.in.Next()
			z.r.SetPMDCS(z.pmdcs)
		case 3:
			z.r.Trim()
		}
		z.now = z.now.Add(time.Duration(z.in.Next()) * time.Millisecond)
		z.acks.pass(z.now)
		if z.r.SackDue(z.now) {
			z.sack(3000)
		}
	}
	return true
}

// squeeze lets memory be short, or no more. What may be taken back is dropped.
func (z *fuzzer) squeeze(on bool) {
	z.squeezed, z.full, z.acks.due = on, true, true
	dropped, had := z.r.Evicted(), z.r.Inside().Beyond
	z.r.Squeeze(on)
	in := z.r.Inside()
	if gone := had - in.Beyond; int(z.r.Evicted()-dropped) != gone || !on && gone != 0 {
		z.t.Fatalf("%d TSNs are dropped of %d, %d are left", z.r.Evicted()-dropped, had, in.Beyond)
	}
	if last := in.Highest; on && z.r.CumTSN().Less(last) {
		z.t.Fatalf("TSN %d is kept with memory short", last)
	}
}

func (z *fuzzer) check() {
	z.tell()
	lent := 0
	for _, m := range z.held {
		lent += m.Size
	}
	if err := z.r.Audit(lent); err != nil {
		z.t.Fatal(err)
	}
	// A window that is open takes a chunk, so the buffer runs over by less than one; chunks in their place make the
	// highest ones go.
	w, n, want := z.r.Window(), z.r.Buffered(), max(z.limit-z.r.Buffered(), 0)
	if z.squeezed || z.r.Inside().Memory > 8*z.limit+1<<16 {
		want = 0
	}
	if w != want || n > z.limit+maxFuzzChunk {
		z.t.Fatalf("window %d of %d, %d octets held", w, z.limit, n)
	}
	r, a := z.r, &z.acks
	if z.lone {
		a.deadline = r.Deadline()
	}
	a.pass(z.now)
	if due := r.SackDue(z.now); due != a.due || r.SackPending() != (due || a.packets > 0) || r.SackNow() != (due && a.wary > 0) || r.Deadline() != a.deadline {
		z.t.Fatalf("SACK due %v, pending %v, now %v, at %d; want %+v", due, r.SackPending(), r.SackNow(), r.Deadline(), *a)
	}
}

// heal sends everything that is missing and reads all of it.
func (z *fuzzer) heal() {
	z.squeeze(false)
	for rounds := 0; ; rounds++ {
		for range z.chunks {
			z.read()
		}
		for len(z.held) > 0 {
			z.release()
		}
		i := int(int32(z.r.CumTSN() + 1 - firstTSN))
		if i == len(z.chunks) {
			break
		}
		if rounds > 2*len(z.chunks) {
			z.t.Fatalf("stuck at TSN %d of %d", z.r.CumTSN(), firstTSN.Add(uint32(len(z.chunks))))
		}
		z.sack(3000)
		if !z.allowed(i) {
			z.t.Fatalf("the peer may not send TSN %d, with %d octets in flight", z.chunks[i].TSN(), z.flight())
		}
		z.arrive(z.chunks[i], false, false)
		z.packetDone()
	}
	for n, m := range z.sent {
		if !m.done {
			z.t.Fatalf("message %d was never delivered", n)
		}
	}
	// The receive buffer is as large as it was at first.
	if z.r.Window() != z.limit || z.r.Buffered() != 0 || z.r.Gaps() {
		z.t.Fatalf("window %d of %d, %d octets held, gaps %v", z.r.Window(), z.limit, z.r.Buffered(), z.r.Gaps())
	}
}

// end lets the association end here: of a message that was read in part the reader learns that it is cut off.
func (z *fuzzer) end() {
	z.r.CutOff()
	for n := -1; n < len(z.held); {
		n = len(z.held)
		z.read()
	}
	if len(z.part) > 0 && !z.forged {
		z.t.Fatalf("%d octets of a message, and nothing says that there are no more", len(z.part))
	}
}

// Play gives the receiving half what a script says, and tells what it does if there is something to write that to.
func Play(t *testing.T, in []byte, told *strings.Builder) {
	z := &fuzzer{t: t, told: told, in: in[1:], limit: []int{1 << 20, 3000, 1500}[in[0]%3], got: map[wire.TSN]bool{}, acked: map[wire.TSN]bool{}}
	z.pool, z.lone, z.small = rawio.NewPool(2048<<(in[0]>>4&3), 8), in[0]&4 != 0, in[0]&0x18 == 0x18
	cfg := rx.Config{PeerTSN: firstTSN, RecvBuffer: z.limit, PMDCS: maxFuzzChunk, InStreams: fuzzStreams, SackDelay: fuzzDelay}
	z.acks.letter, z.acks.lone, z.acks.limit = in[0]&8 != 0, fuzzDelay, fuzzDelay
	cfg.Letter = z.acks.letter
	if z.lone {
		cfg.LoneDelay = fuzzDelay / 4
		z.acks.lone = cfg.LoneDelay
	}
	if z.small {
		cfg.MaxMessage = 2 * z.limit / 3
	}
	z.rwnd, z.credit, z.pmdcs, z.acks.deadline, z.honest = z.limit, z.limit, maxFuzzChunk, rawio.Never, in[0]&0x40 != 0
	z.r = rx.NewReceiver(cfg)
	for i := range z.ssn {
		z.ssn[i] = firstSSN
		z.r.Begin(wire.StreamID(i), firstSSN)
	}
	alive := true
	for alive && len(z.in) > 0 {
		alive = z.step(z.in.Next())
		z.check()
	}
	z.done()
	if alive && !z.forged && in[0]&0x80 == 0 && !z.small {
		z.heal()
	} else {
		z.end()
	}
	z.r.Close()
	for len(z.held) > 0 {
		z.release()
	}
	if z.r.Buffered() != 0 || z.r.Inside().Memory != 0 || z.pool.Outstanding() != 0 {
		t.Fatalf("%d octets held at the end, %d octets of memory, %d packets", z.r.Buffered(), z.r.Inside().Memory, z.pool.Outstanding())
	}
}
