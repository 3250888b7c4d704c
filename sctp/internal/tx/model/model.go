// Package model has what the sending half of SCTP meets, by chance: a program, several paths, a peer that loses and acknowledges; and a model of it
// that says what is to come of that.
package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/internal/script"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

const (
	mtu        = 1012
	sendBuffer = 1 << 20
	second     = rawio.Time(time.Second)
	ms         = rawio.Time(time.Millisecond)
)

var rto = tx.RTOConfig{Initial: time.Second, Min: time.Second, Max: time.Minute}

// paced is a controller that asks for a rate, in octets a second; 0 for none.
type paced struct {
	cc.Controller
	rate *int64
}

func (p paced) PacingRate(time.Duration) int64 { return *p.rate }

func makeSack(cum wire.TSN, arwnd uint32, gaps ...wire.GapBlock) wire.Sack {
	return wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: cum, ARwnd: arwnd, Gaps: gaps}))
}

// firstTSN is so high that TSNs wrap.
const firstTSN wire.TSN = 1<<32 - 20

// fuzzer drives a Sender by a script and remembers, in the plainest way, what it did.
type fuzzer struct {
	t       *testing.T
	s       *tx.Sender
	b       *pack.Batch
	now     rawio.Time
	acked   []uint64         // tokens
	token   uint64           // of the last message
	beside  int              // octets of another chunk, ahead of the next packet's DATA
	told    *strings.Builder // what happens, if it is to be told
	in      script.Script
	sizes   map[uint64]int // messages that are neither acknowledged nor dropped
	ends    []wire.TSN     // of messages sent whole, in order
	tokens  []uint64       // theirs
	current uint64         // the message being cut
	off     int            // octets of it that were sent
	sent    map[wire.TSN][]byte
	dry     bool              // the Source has nothing more
	next    wire.TSN          // the first TSN that was not sent: behind one that is withheld there are others
	got     map[wire.TSN]bool // by the peer, which loses some
	twice   []wire.TSN        // and has had some once more than it has said
	trip    rawio.Time        // of a packet and its SACK, at least
	burst   int
	noDelay bool
	rate    int64 // of controllers that pace
}

// Acked makes the fuzzer a Sink.
func (z *fuzzer) Acked(_ rawio.Time, _ wire.StreamID, token uint64) { z.acked = append(z.acked, token) }

// Next makes the fuzzer a Source.
func (z *fuzzer) Next(_ rawio.Time, room int, m *tx.Message) bool {
	if !reflect.ValueOf(*m).IsZero() {
		z.t.Fatalf("the Source is asked with what was there before: %+v", m)
	}
	b := z.in.Next()
	if b%4 == 0 || z.dry {
		return false
	}
	size := max(4, []int{10, room, min(room+100, 2000)}[b%4-1]-b%16)
	*m = tx.Message{Stream: wire.StreamID(b % 16), Unordered: b%2 == 0}
	z.fill(m, size)
	return true
}

// Idle is never so sure.
func (z *fuzzer) Idle() bool { return false }

// fill gives a message its token and content, part of it in the head.
func (z *fuzzer) fill(m *tx.Message, size int) {
	z.token++
	b := body(int(z.token), size)
	m.Token = z.token
	m.HeadLen = uint8(copy(m.Head[:min(z.in.Next()%40, size-1, tx.HeadCap)], b))
	b = b[m.HeadLen:]
	k := z.in.Next() % (len(b) + 1)
	m.Body = [2][]byte{b[:k], b[k:]}
	z.sizes[z.token] = size
}

func (z *fuzzer) enqueue() {
	b := z.in.Next()
	m := tx.Message{Stream: wire.StreamID(b % 16), Unordered: b&16 != 0, SackNow: b&32 != 0, NoBundle: b&64 != 0}
	if b&128 != 0 {
		m.Expires = z.now + rawio.Time(z.in.Next()+1)*ms
		m.Path = uint8(z.in.Next() % (len(z.s.Paths()) + 1))
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

// check compares every count with the sets and records it sums up.
func (z *fuzzer) check() {
	z.t.Helper()
	must.OK(z.t, z.s.Audit())
}

// tell writes down what happens, if that is wanted, and what becomes of the Sender.
func (z *fuzzer) tell(what ...any) {
	if z.told != nil {
		fmt.Fprintln(z.told, what, z.now, len(z.acked), z.s.Tell())
	}
}

// transmit sends what may be sent in one opportunity, and returns the DATA chunks of the packets.
func (z *fuzzer) transmit() (list []wire.Data) {
	z.b.Reset()
	z.s.StartBurst(z.now)
	for !z.b.Full() {
		p := z.s.Poll(z.now)
		if p == nil {
			break
		}
		z.b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
		beside := z.beside
		if z.beside = 0; beside > 0 {
			z.b.Commit(wire.AppendPad(z.b.Tail(), beside))
		}
		n := z.s.Fill(z.now, z.b, p)
		z.b.End()
		if got := len(z.chunks(z.b.Pkts[len(z.b.Pkts)-1])); n == 0 && beside == 0 || got != n {
			z.t.Fatalf("Poll promised a chunk: Fill has appended %d, and says %d", got, n)
		}
		before := len(z.b.Pkts)
		z.s.FillMore(z.now, z.b, p)
		if z.told != nil {
			fmt.Fprint(z.told, " ", len(z.b.Pkts)-before)
		}
	}
	for _, p := range z.b.Pkts {
		if z.told != nil {
			fmt.Fprint(z.told, p.Remote.Addr(), p.ECN, p.Fragment, crc32.ChecksumIEEE(bytes.Join(p.Vec, nil)))
		}
		list = append(list, z.chunks(p)...)
	}
	return list
}

// chunks returns the DATA chunks of a packet.
func (z *fuzzer) chunks(p rawio.Packet) (list []wire.Data) {
	pkt, err := wire.ParsePacket(bytes.Join(p.Vec, nil))
	if err != nil || !pkt.ChecksumOK() {
		z.t.Fatalf("bad packet: %v", err)
	}
	it := pkt.Chunks()
	for c, ok := it.Next(); ok; c, ok = it.Next() {
		if c.Type() != wire.ChunkPad {
			list = append(list, must.Get(wire.AsData(c))(z.t))
		}
	}
	must.OK(z.t, it.Err())
	return list
}

// send transmits, and looks at each chunk: new ones go on where the last one ended, old ones are as they were.
func (z *fuzzer) send() {
	z.now += z.trip
	if b := z.in.Next(); b < 64 {
		z.beside = 4 + 16*(b%60)
	}
	for _, d := range z.transmit() {
		z.chunk(d)
		arrives := z.in.Next()%4 > 0
		if arrives && z.got[d.TSN()] && len(z.twice) < 20 {
			z.twice = append(z.twice, d.TSN())
		}
		z.got[d.TSN()] = z.got[d.TSN()] || arrives
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
	if z.sent[t] = b; t.Less(z.next) || (z.next+1).Less(t) && z.sent[t-1] == nil {
		z.t.Fatalf("TSN %d is new, and so is %d", t, z.next)
	}
	for b := z.sent[z.next]; b != nil; b = z.sent[z.next] {
		z.follows(wire.Data(b))
		z.next++
	}
}

// follows takes a chunk in the order of TSNs, which goes on where the last one ended.
func (z *fuzzer) follows(d wire.Data) {
	t, p := d.TSN(), d.Payload()
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
	unsent := !cum.Less(next) || !cum.Less(z.next)
	for _, g := range k.Gaps {
		unsent = unsent || g.Start <= g.End && (!cum.Add(uint32(g.End)).Less(next) ||
			z.next.Less(next) && cum.Add(uint32(g.Start)).LessEq(z.next) && z.next.LessEq(cum.Add(uint32(g.End))))
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
	for t := z.s.CumTSN() + 1; t != z.s.NextTSN(); t++ {
		if in := z.s.Inside(t); in.Arrived && !named[t] || !in.Arrived && named[t] && !in.Owed {
			z.t.Fatalf("TSN %d counts as arrived: %v, named by the SACK: %v: %+v", t, in.Arrived, named[t], k)
		}
	}
	z.settle()
}

// missed counts the miss indications.
func (z *fuzzer) missed() (n int) {
	for t := z.s.CumTSN() + 1; t != z.s.NextTSN(); t++ {
		n += z.s.Inside(t).Misses
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
	r, err := z.s.HandleSack(z.now, wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: cum, ARwnd: uint32(z.in.Next()) << 10, Gaps: gaps, Dups: z.twice})))
	must.OK(z.t, err)
	z.twice = z.twice[:0]
	z.tell(r)
	z.check()
	for parts := 0; z.s.More(); parts++ {
		if z.s.Continue(); parts > 1000 {
			z.t.Fatalf("a SACK is not through after %d parts", parts)
		}
		z.check()
	}
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
		if next := z.s.NextTimeout(); z.in.Next()%2 == 0 && next < z.now+2*second {
			z.now = max(z.now, next)
		} else if z.now += rawio.Time(z.in.Next()*z.in.Next()) * ms / 4; z.in.Next() < 8 && z.s.Outstanding() == 0 {
			z.now += 1100 * second // longer than stamps tell apart
		}
		z.expire()
	case 7: // SHUTDOWN's acknowledgement
		cum := z.s.CumTSN().Add(uint32(z.in.Next()%4) - 1)
		r, err := z.s.HandleCumAck(z.now, cum)
		z.tell(r, err)
		var unsent *tx.UnsentTSNError
		if errors.As(err, &unsent) == cum.Less(z.next) {
			z.t.Fatalf("cumulative TSN %d of %d: %v", cum, z.s.NextTSN(), err)
		}
		z.settle()
	case 8: // what the owner knows of a path
		b := z.in.Next()
		p := z.s.Paths()[b%len(z.s.Paths())]
		switch b >> 4 {
		case 0:
			p.State = []tx.PathState{tx.Active, tx.PotentiallyFailed, tx.Inactive}[z.in.Next()%3]
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
			z.rate = 5_000_000
		case 6:
			p.ForgetHoles()
			z.rate = 0
		case 7:
			p.Backoff()
			z.noDelay = !z.noDelay
			z.s.Reconfigure(sendBuffer, z.burst, z.noDelay, false, b%2*100)
		case 8:
			p.Answered(z.now)
		case 9:
			p.State = tx.PotentiallyFailed
			p.Failed(z.now)
		case 10:
			z.tell(z.s.Cut(z.now, p))
		case 11:
			p.Proved(time.Duration(z.in.Next()*z.in.Next()) * time.Microsecond)
		case 12:
			z.s.Expect(z.in.Next()%2 == 0)
		case 13, 14:
			p.Asks = !p.Asks
		case 15:
			p.Forgive(z.now)
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
			z.s.Refused(z.s.Paths()[b%len(z.s.Paths())], z.s.CumTSN().Add(uint32(z.in.Next()%32)))
			break
		}
		z.s.Detach(wire.StreamID(b%16), nil)
	}
	for _, p := range z.s.Paths() {
		if p.Suspected() && z.in.Next()%8 == 0 {
			p.Answered(z.now)
		}
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
	for _, p := range z.s.Paths() {
		p.State = tx.Active
	}
	for rounds := 0; ; rounds++ {
		z.send()
		var gaps []wire.GapBlock
		if n := uint16(z.s.NextTSN() - z.next); n > 1 { // all but what was withheld
			gaps = append(gaps, wire.GapBlock{Start: 2, End: n})
		}
		if _, err := z.s.HandleSack(z.now, makeSack(z.next-1, 1<<20, gaps...)); err != nil {
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
	if s := z.s; s.Flight() != 0 || s.DataInFlight() != 0 || s.Queued() != 0 || s.NextTimeout() != rawio.Never {
		z.t.Fatalf("flight %d, data %d, queued %d, timer %d at the end", s.Flight(), s.DataInFlight(), s.Queued(), s.NextTimeout())
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

// Play gives the sending half a list of commands, and tells what it does if there is something to write that to.
func Play(t *testing.T, in []byte, told *strings.Builder) {
	z := &fuzzer{t: t, told: told, in: in[1:], b: pack.NewBatch(1000), now: rawio.Time(in[0]>>6) * 1000 * second, burst: int(in[0] >> 2 & 7),
		next: firstTSN, sizes: map[uint64]int{}, sent: map[wire.TSN][]byte{}, got: map[wire.TSN]bool{}}
	letter, control := bits.OnesCount8(in[0])%2 == 0, cc.NewReno
	if letter {
		control = cc.RFC9260
	}
	if in[0]&0x54 == 0x54 {
		control = cc.NewBBR
	} else if in[0]&0x14 == 0x14 {
		reno := control
		control = func(pmdcs int, v6 bool) cc.Controller { return paced{reno(pmdcs, v6), &z.rate} }
	}
	z.s = tx.NewSender(tx.Config{TSN: firstTSN, SendBuffer: sendBuffer, MaxBurst: z.burst, Letter: letter, Draw: func() uint32 { return uint32(z.in.Next() % 64) }})
	for i := range 1 + in[0]%3 {
		p := tx.NewPath(netip.AddrPort{}, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1 + i}), 0), mtu, rto, control)
		if p.Asks = in[0]&0x20 == 0; i == 0 || in[0]&8 != 0 { // the first has set up the association
			p.State = tx.Active
		}
		p.Least = int(in[0]&4) * 150
		must.OK(t, z.s.AddPath(p))
	}
	if in[0]&0x80 != 0 {
		z.s.SetUpper(z, z)
	} else {
		z.s.SetUpper(nil, z)
	}
	z.s.SetECN(in[0]&0x20 != 0)
	z.trip = []rawio.Time{ms / 1000, ms / 3, 9 * ms, 60 * ms}[in[0]>>5&1+in[0]&2]
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
