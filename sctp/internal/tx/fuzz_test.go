package tx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/script"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// firstTSN is so high that TSNs wrap.
const firstTSN wire.TSN = 1<<32 - 20

// fuzzer drives a Sender by a script and remembers, in the plainest way, what it did.
type fuzzer struct {
	*lab
	in      script.Script
	sizes   map[uint64]int // messages that are neither acknowledged nor dropped
	ends    []wire.TSN     // of messages sent whole, in order
	tokens  []uint64       // theirs
	current uint64         // the message being cut
	off     int            // octets of it that were sent
	sent    map[wire.TSN][]byte
	dry     bool              // the Source has nothing more
	got     map[wire.TSN]bool // by the peer, which loses some
	trip    rawio.Time        // of a packet and its SACK, at least
}

// Next makes the fuzzer a Source.
func (z *fuzzer) Next(_ rawio.Time, room int, m *Message) bool {
	if !reflect.ValueOf(*m).IsZero() {
		z.t.Fatalf("the Source is asked with what was there before: %+v", m)
	}
	b := z.in.Next()
	if b%4 == 0 || z.dry {
		return false
	}
	size := max(4, []int{10, room, min(room+100, 2000)}[b%4-1]-b%16)
	*m = Message{Stream: wire.StreamID(b % 16), Unordered: b%2 == 0}
	z.fill(m, size)
	return true
}

// fill gives a message its token and content, part of it in the head.
func (z *fuzzer) fill(m *Message, size int) {
	z.token++
	b := body(int(z.token), size)
	m.Token = z.token
	m.HeadLen = uint8(copy(m.Head[:min(z.in.Next()%40, size-1, HeadCap)], b))
	b = b[m.HeadLen:]
	k := z.in.Next() % (len(b) + 1)
	m.Body = [2][]byte{b[:k], b[k:]}
	z.sizes[z.token] = size
}

func (z *fuzzer) enqueue() {
	b := z.in.Next()
	m := Message{Stream: wire.StreamID(b % 16), Unordered: b&16 != 0, SackNow: b&32 != 0, NoBundle: b&64 != 0}
	if b&128 != 0 {
		m.Expires = z.now + rawio.Time(z.in.Next()+1)*ms
		m.Path = uint8(z.in.Next() % (len(z.s.paths) + 1))
	}
	z.fill(&m, 4+z.in.Next()*z.in.Next()/8)
	if err := z.s.Enqueue(&m); err != nil {
		z.t.Fatal(err)
	}
}

// message n is its number, then octets that follow from it.
func body(n, size int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n))
	return append(b, bytes.Repeat([]byte{byte(n)}, size-4)...)
}

// send transmits, and looks at each chunk: new ones go on where the last one ended, old ones are as they were.
func (z *fuzzer) send() {
	z.now += z.trip
	if b := z.in.Next(); b < 64 {
		z.beside = 4 + 16*(b%60)
	}
	for _, p := range z.transmit() {
		for _, d := range chunks(z.t, p) {
			z.chunk(d)
			z.got[d.TSN()] = z.got[d.TSN()] || z.in.Next()%4 > 0
		}
	}
	z.check()
}

func (z *fuzzer) chunk(d wire.Data) {
	t, b := d.TSN(), bytes.Clone(d)
	b[1] &^= wire.FlagI // which SetSackNow changes
	if old, ok := z.sent[t]; ok {
		if !bytes.Equal(old, b) {
			z.t.Fatalf("TSN %d was %x and is sent again as %x", t, old, b)
		}
		return
	}
	if n := firstTSN.Add(uint32(len(z.sent))); t != n {
		z.t.Fatalf("TSN %d is new, want %d", t, n)
	}
	z.sent[t] = b
	p := d.Payload()
	if d.B() != (z.off == 0) {
		z.t.Fatalf("TSN %d begins a message: %v, at octet %d", t, d.B(), z.off)
	}
	if d.B() {
		if d.U() && d.SSN() != 0 {
			z.t.Fatalf("TSN %d: unordered with SSN %d", t, d.SSN())
		}
		for z.current++; z.sizes[z.current] == 0; z.current++ { // expired ones
			if z.current > z.token {
				z.t.Fatalf("TSN %d belongs to no message", t)
			}
		}
	}
	whole := body(int(z.current), z.sizes[z.current])
	if n := z.off + len(p); n > len(whole) || !bytes.Equal(whole[z.off:n], p) || d.E() != (n == len(whole)) {
		z.t.Fatalf("TSN %d: message %d from octet %d is %x", t, z.current, z.off, p)
	}
	if z.off += len(p); d.E() {
		z.ends, z.tokens, z.off = append(z.ends, t), append(z.tokens, z.current), 0
	}
}

// sack acknowledges something: more or less of what was sent.
func (z *fuzzer) sack() {
	b := z.in.Next()
	cum := z.s.CumTSN().Add(uint32(b%16) - 2)
	k := wire.SackFields{CumTSN: cum, ARwnd: uint32(z.in.Next()) * uint32(z.in.Next())}
	highest := uint16(0)
	for range b >> 4 {
		g := wire.GapBlock{Start: uint16(z.in.Next()), End: uint16(z.in.Next())}
		switch z.in.Next() % 6 {
		case 0:
		case 1: // where the one before has ended
			g.Start, g.End = highest, highest+g.End%8
		default: // as it should be
			g.Start, g.End = highest+2+g.Start%8, highest+2+g.Start%8+g.End%8
		}
		highest = max(highest, g.End)
		k.Gaps = append(k.Gaps, g)
		k.Dups = append(k.Dups, cum.Add(uint32(g.Start)-3))
	}
	next, reneged := z.s.NextTSN(), z.s.Stats().Reneged
	unsent := !cum.Less(next)
	for _, g := range k.Gaps {
		unsent = unsent || g.Start <= g.End && !cum.Add(uint32(g.End)).Less(next)
	}
	stale := cum.Less(z.s.CumTSN())
	missed := z.missed()
	r, err := z.s.HandleSack(z.now, wire.Sack(wire.AppendSack(nil, k)))
	z.tell(r, err)
	if r.Stale != stale || !stale && (err != nil) != unsent {
		z.t.Fatalf("SACK %+v at %d to %d: stale %v, %v", k, z.s.CumTSN(), next, r.Stale, err)
	}
	if len(k.Gaps) == 0 && z.s.Stats().Reneged == reneged && z.missed() > missed {
		z.t.Fatalf("%d misses, %d before a SACK without gaps", z.missed(), missed)
	}
	if stale || err != nil {
		return
	}
	named := map[wire.TSN]bool{}
	highest = 0
	for _, g := range k.Gaps {
		for o := int(g.Start); g.Start > highest && o <= int(g.End); o++ {
			named[cum.Add(uint32(o))] = true
		}
		if g.Start > highest && g.Start <= g.End {
			highest = g.End
		}
	}
	for t := z.s.ring.base; t != z.s.ring.next; t++ {
		if gap := z.s.ring.gapped.Has(t); gap && !named[t] || !gap && named[t] && !z.s.ring.owed.Has(t) {
			z.t.Fatalf("TSN %d counts as arrived: %v, named by the SACK: %v: %+v", t, gap, named[t], k)
		}
	}
	z.settle()
}

// missed counts the miss indications.
func (z *fuzzer) missed() (n int) {
	for t := z.s.ring.base; t != z.s.ring.next; t++ {
		n += int(z.s.ring.rec(t).misses)
	}
	return n
}

// report acknowledges what has arrived.
func (z *fuzzer) report() {
	cum := z.s.CumTSN()
	for z.got[cum+1] {
		cum++
	}
	var gaps []wire.GapBlock
	for t := cum + 2; t.Less(z.s.NextTSN()); t++ {
		o := uint16(t - cum)
		if n := len(gaps); !z.got[t] {
			continue
		} else if n > 0 && gaps[n-1].End == o-1 {
			gaps[n-1].End = o
		} else {
			gaps = append(gaps, wire.GapBlock{Start: o, End: o})
		}
	}
	z.sackFor(makeSack(cum, uint32(z.in.Next())<<10, gaps...))
	z.settle()
}

// settle compares the acknowledged messages with those that end at or before the cumulative TSN.
func (z *fuzzer) settle() {
	z.check()
	n := 0
	for n < len(z.ends) && z.ends[n].LessEq(z.s.CumTSN()) {
		n++
	}
	if len(z.acked) != n {
		z.t.Fatalf("%d messages acknowledged, want %d", len(z.acked), n)
	}
	for i, token := range z.acked {
		if token != z.tokens[i] {
			z.t.Fatalf("message %d acknowledged in place of %d", token, z.tokens[i])
		}
	}
	z.ends, z.tokens, z.acked = z.ends[n:], z.tokens[n:], z.acked[:0]
}

func (z *fuzzer) step(op int) {
	switch op % 12 {
	case 0, 1:
		z.enqueue()
	case 2, 3:
		z.send()
	case 4:
		z.sack()
	case 5:
		z.report()
	case 6: // time passes
		if z.now += rawio.Time(z.in.Next()*z.in.Next()) * ms / 4; z.in.Next() < 8 && z.s.Outstanding() == 0 {
			z.now += 1100 * second // longer than stamps tell apart
		}
		z.expire()
	case 7: // SHUTDOWN's acknowledgement
		cum := z.s.CumTSN().Add(uint32(z.in.Next()%4) - 1)
		r, err := z.s.HandleCumAck(z.now, cum)
		z.tell(r, err)
		var unsent *UnsentTSNError
		if errors.As(err, &unsent) == cum.Less(z.s.NextTSN()) {
			z.t.Fatalf("cumulative TSN %d of %d: %v", cum, z.s.NextTSN(), err)
		}
		z.settle()
	case 8: // what the owner knows of a path
		b := z.in.Next()
		p := z.path(b % len(z.s.paths))
		switch b >> 4 {
		case 0:
			p.State = []PathState{Active, PotentiallyFailed, Inactive}[z.in.Next()%3]
		case 1:
			p.SetMTU(512 + z.in.Next()*8)
		case 2:
			z.s.SetPrimary(p.Index())
		case 3:
			p.ResetCongestion()
			p.Least = 600
		case 4:
			p.ObserveRTT(time.Duration(z.in.Next()*z.in.Next()) * time.Microsecond)
		case 5:
			p.pacer = slow{p.cc}
		case 6:
			p.ForgetHoles()
			p.pacer = nil
		case 7:
			p.Backoff()
			z.s.cfg.NoDelay = !z.s.cfg.NoDelay
		}
	case 9:
		z.s.HandleECNE(z.now, z.s.CumTSN().Add(uint32(z.in.Next())))
	case 10:
		if z.s.SetSackNow(z.in.Next()%2 == 0); z.in.Next()%4 == 0 {
			z.s.Trim()
		}
	case 11:
		b := z.in.Next()
		if b&16 != 0 {
			z.s.Refused(z.path(b%len(z.s.paths)), z.s.CumTSN().Add(uint32(z.in.Next()%32)))
			break
		}
		z.s.Detach(wire.StreamID(b%16), nil)
	}
	z.check()
	z.tell(op)
}

// expire runs the timers.
func (z *fuzzer) expire() {
	z.tell(z.s.HandleTimeout(z.now))
	for _, f := range z.s.Expire(z.now) {
		delete(z.sizes, f.Token)
		z.tell(f)
	}
}

// heal lets the peer take everything, and expects the end of it.
func (z *fuzzer) heal() {
	z.dry = true
	for _, p := range z.s.paths {
		p.State = Active
	}
	for rounds := 0; ; rounds++ {
		z.send()
		if _, err := z.s.HandleSack(z.now, makeSack(z.s.NextTSN()-1, 1<<20)); err != nil {
			z.t.Fatal(err)
		}
		z.settle()
		if z.s.Idle(z.now) {
			break
		}
		if rounds > 3000 {
			z.t.Fatalf("stalled with %d outstanding and %d octets queued", z.s.Outstanding(), z.s.Queued())
		}
		z.now += ms
		if next := z.s.NextTimeout(); next != rawio.Never {
			z.now = max(z.now, next)
		}
		z.expire()
	}
	z.s.Expire(rawio.Never - 1) // whatever could have expired was sent in time
	if s := z.s; s.Flight() != 0 || s.DataInFlight() != 0 || s.Queued() != 0 || s.held != 0 || s.NextTimeout() != rawio.Never {
		z.t.Fatalf("flight %d, data %d, queued %d, held %d, timer %d at the end", s.Flight(), s.DataInFlight(), s.Queued(), s.held, s.NextTimeout())
	}
}

// abandon ends the association: each message that was not acknowledged is reported once.
func (z *fuzzer) abandon() {
	left := map[uint64]bool{}
	for n := range z.sizes {
		left[n] = n > z.current || n == z.current && z.off > 0
	}
	for _, n := range z.tokens {
		left[n] = true
	}
	z.s.Stop()
	if s := z.s; s.NextTimeout() != rawio.Never || s.More() || s.Flight() != 0 || s.DataInFlight() != 0 {
		z.t.Fatalf("after its end: timer %d, more %v, flight %d, data %d", s.NextTimeout(), s.More(), s.Flight(), s.DataInFlight())
	}
	for f, ok := z.s.NextFailed(); ok; f, ok = z.s.NextFailed() {
		if !left[f.Token] {
			z.t.Fatalf("message %d failed, which was acknowledged or has failed", f.Token)
		}
		delete(left, f.Token)
		z.tell(f)
	}
	for n, waits := range left {
		if waits {
			z.t.Fatalf("nothing was heard of message %d", n)
		}
	}
}

// FuzzSender gives the sending half a list of commands. The books agree after each, what is sent is what was handed
// over, each message is acknowledged once and in order; and in the end a peer that takes everything gets it all, or
// each message fails once.
func FuzzSender(f *testing.F) {
	f.Add([]byte{1, 0, 3, 0, 0, 200, 90, 2, 4, 0x23, 200, 200, 1, 2, 3, 4, 5, 6, 2, 6, 100, 100, 2})
	f.Add([]byte{2, 0, 0x90, 20, 1, 0, 0, 255, 255, 2, 8, 1, 1, 6, 200, 200, 2, 4, 2, 50, 50, 2, 7, 2})
	f.Add([]byte{0x80, 2, 7, 1, 1, 11, 9, 9, 4, 0x42, 100, 100, 1, 1, 1, 2, 2, 1, 3, 3, 1, 4, 4, 1, 2, 2, 9, 3, 10, 0, 11, 7, 2})
	f.Add([]byte{0xC0, 0, 1, 0, 0, 0, 2, 6, 255, 255, 4, 2, 0, 0, 6, 255, 255, 2, 6, 255, 255, 2, 8, 0x10, 255})
	for seed := range 400 {
		f.Add(script.Random(seed, 1000))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 0 && len(in) <= 1000 {
			play(t, in, nil)
		}
	})
}

// What the sending half does in such lists of commands is written down to the octet, as a digest: so that nothing else changes unnoticed.
func TestCommandsByChanceDoWhatTheyDid(t *testing.T) {
	script.Told(t, "testdata/commands.txt", 300, func(seed int, told *strings.Builder) { play(t, script.Random(seed+1000, 1000), told) })
}

// play gives the sending half a list of commands, and tells what it does if there is something to write that to.
func play(t *testing.T, in []byte, told *strings.Builder) {
	z := &fuzzer{lab: newLabAt(t, 1+int(in[0]%3), firstTSN), in: in[1:], sizes: map[uint64]int{}, sent: map[wire.TSN][]byte{}, got: map[wire.TSN]bool{}}
	z.told, z.now = told, rawio.Time(in[0]>>6)*1000*second
	for _, p := range z.s.paths[1:] {
		p.State = Unconfirmed // the first is the one that has set up the association
	}
	var src Source
	if in[0]&0x80 != 0 {
		src = z
	}
	z.s.SetUpper(src, z)
	z.s.SetECN(in[0]&0x20 != 0)
	if z.s.cfg.Letter = bits.OnesCount8(in[0])%2 == 0; !z.s.cfg.Letter {
		for _, p := range z.s.paths {
			p.cc = cc.NewReno(p.pmdcs, false)
		}
	}
	z.trip = []rawio.Time{ms / 1000, ms / 3, 9 * ms, 60 * ms}[in[0]>>5&1+in[0]&2]
	z.s.cfg.MaxBurst = int(in[0] >> 2 & 7)
	z.s.SetPeer(1<<uint(10+in[0]>>3&3*4), 16)
	for len(z.in) > 0 {
		z.step(z.in.Next())
	}
	z.settle()
	if in[0]&0x40 != 0 {
		z.abandon()
	} else {
		z.heal()
	}
}
