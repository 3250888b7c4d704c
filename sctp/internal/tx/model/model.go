// Package model has what the sending half of SCTP meets, at random: a program, several paths, a
// peer that loses and acknowledges. It also has a model that says what is to come of that.
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

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

const (
	fuzzMTU    = 1012
	sendBuffer = 1 << 20
	second     = rawio.Time(time.Second)
	ms         = rawio.Time(time.Millisecond)
)

var rto = tx.RTOConfig{Initial: time.Second, Min: time.Second, Max: time.Minute}

// pacedController is a controller that asks for a rate, in octets a second; 0 for none.
type pacedController struct {
	cc.Controller
	rate *int64
}

func (p pacedController) PacingRate(time.Duration) int64 { return *p.rate }

func makeSack(cum wire.TSN, arwnd uint32, gaps ...wire.GapBlock) wire.Sack {
	return wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: cum, ARwnd: arwnd, Gaps: gaps}))
}

// firstTSN is so high that TSNs wrap.
const firstTSN wire.TSN = 1<<32 - 20

// fuzzer drives a Sender by a script and remembers, in the plainest way, what it did.
type fuzzer struct {
	t              *testing.T
	s              *tx.Sender
	b              *pack.Batch
	now            rawio.Time
	ackedTokens    []uint64         // tokens
	lastToken      uint64           // of the last message
	padOctets      int              // octets of another chunk, ahead of the next packet's DATA
	traceOut       *strings.Builder // what happens, if it is to be told
	input          fuzzinput.Script
	pendingSizes   map[uint64]int // messages that are neither acknowledged nor dropped
	messageEndTSNs []wire.TSN     // of messages sent whole, in order
	messageTokens  []uint64       // theirs
	currentToken   uint64         // the message being cut
	currentOffset  int            // octets of it that were sent
	sentChunks     map[wire.TSN][]byte
	sourceEmpty    bool              // the Source has nothing more
	firstUnsent    wire.TSN          // the first TSN that was not sent: behind one that is withheld there are others
	received       map[wire.TSN]bool // by the peer, which loses some
	unreportedDups []wire.TSN        // and has had some once more than it has said
	minRTT         rawio.Time        // of a packet and its SACK, at least
	maxBurst       int
	noDelay        bool
	pacingRate     int64 // of controllers that pace
}

// Acked makes the fuzzer a Sink.
func (z *fuzzer) Acked(_ rawio.Time, _ wire.StreamID, token uint64) {
	z.ackedTokens = append(z.ackedTokens, token)
}

// Next makes the fuzzer a Source.
func (z *fuzzer) Next(_ rawio.Time, room int, m *tx.Message) bool {
	if !reflect.ValueOf(*m).IsZero() {
		z.t.Fatalf("the Source is asked with what was there before: %+v", m)
	}
	b := z.input.Next()
	if b%4 == 0 || z.sourceEmpty {
		return false
	}
	size := max(4, []int{10, room, min(room+100, 2000)}[b%4-1]-b%16)
	*m = tx.Message{Stream: wire.StreamID(b % 16), Unordered: b%2 == 0}
	z.fillMessage(m, size)
	return true
}

// Idle is never so sure.
func (z *fuzzer) Idle() bool { return false }

// fillMessage gives a message its token and content, part of it in the head.
func (z *fuzzer) fillMessage(m *tx.Message, size int) {
	z.lastToken++
	b := messageBody(int(z.lastToken), size)
	m.Token = z.lastToken
	m.HeadLen = uint8(copy(m.Head[:min(z.input.Next()%40, size-1, tx.HeadCap)], b))
	b = b[m.HeadLen:]
	k := z.input.Next() % (len(b) + 1)
	m.Body = [2][]byte{b[:k], b[k:]}
	z.pendingSizes[z.lastToken] = size
}

func (z *fuzzer) enqueueMessage() {
	b := z.input.Next()
	m := tx.Message{Stream: wire.StreamID(b % 16), Unordered: b&16 != 0, SackNow: b&32 != 0, NoBundle: b&64 != 0}
	if b&128 != 0 {
		m.Expires = z.now + rawio.Time(z.input.Next()+1)*ms
		m.Path = uint8(z.input.Next() % (len(z.s.Paths()) + 1))
	}
	z.fillMessage(&m, 4+z.input.Next()*z.input.Next()/8)
	if err := z.s.Enqueue(&m); err != nil {
		z.t.Fatal(err)
	}
}

// message n is its number, then octets that follow from it.
func messageBody(n, size int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n))
	return append(b, bytes.Repeat([]byte{byte(n)}, size-4)...)
}

// checkAudit compares every count with the sets and records it sums up.
func (z *fuzzer) checkAudit() {
	z.t.Helper()
	must.OK(z.t, z.s.Audit())
}

// traceEvent writes down what happens, if that is wanted, and what becomes of the Sender.
func (z *fuzzer) traceEvent(what ...any) {
	if z.traceOut != nil {
		fmt.Fprintln(z.traceOut, what, z.now, len(z.ackedTokens), z.s.DumpState())
	}
}

// transmitBurst sends what may be sent in one opportunity, and returns the DATA chunks of the
// packets.
func (z *fuzzer) transmitBurst() (list []wire.Data) {
	z.b.Reset()
	z.s.StartBurst(z.now)
	for !z.b.Full() {
		p := z.s.Poll(z.now)
		if p == nil {
			break
		}
		z.b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
		beside := z.padOctets
		if z.padOctets = 0; beside > 0 {
			z.b.Commit(wire.AppendPad(z.b.Tail(), beside))
		}
		n := z.s.Fill(z.now, z.b, p)
		z.b.End()
		if got := len(z.dataChunks(z.b.Pkts[len(z.b.Pkts)-1])); n == 0 && beside == 0 || got != n {
			z.t.Fatalf("Poll promised a chunk: Fill has appended %d, and says %d", got, n)
		}
		before := len(z.b.Pkts)
		z.s.FillMore(z.now, z.b, p)
		if z.traceOut != nil {
			fmt.Fprint(z.traceOut, " ", len(z.b.Pkts)-before)
		}
	}
	for _, p := range z.b.Pkts {
		if z.traceOut != nil {
			fmt.Fprint(z.traceOut, p.Remote.Addr(), p.ECN, p.Fragment, crc32.ChecksumIEEE(bytes.Join(p.Vec, nil)))
		}
		list = append(list, z.dataChunks(p)...)
	}
	return list
}

// dataChunks returns the DATA chunks of a packet.
func (z *fuzzer) dataChunks(p rawio.Packet) (list []wire.Data) {
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

// sendAndCheck transmits, and looks at each chunk: new ones go on where the last one ended, old
// ones are as they were.
func (z *fuzzer) sendAndCheck() {
	z.now += z.minRTT
	if b := z.input.Next(); b < 64 {
		z.padOctets = 4 + 16*(b%60)
	}
	for _, d := range z.transmitBurst() {
		z.checkChunk(d)
		arrives := z.input.Next()%4 > 0
		if arrives && z.received[d.TSN()] && len(z.unreportedDups) < 20 {
			z.unreportedDups = append(z.unreportedDups, d.TSN())
		}
		z.received[d.TSN()] = z.received[d.TSN()] || arrives
	}
	z.checkAudit()
}

func (z *fuzzer) checkChunk(d wire.Data) {
	t, b := d.TSN(), bytes.Clone(d)
	b[1] &^= wire.FlagI // which SetSackNow changes
	if old, ok := z.sentChunks[t]; ok {
		if !bytes.Equal(old, b) {
			z.t.Fatalf("TSN %d was %x and is sent again as %x", t, old, b)
		}
		return
	}
	if z.sentChunks[t] = b; t.Less(z.firstUnsent) || (z.firstUnsent+1).Less(t) && z.sentChunks[t-1] == nil {
		z.t.Fatalf("TSN %d is new, and so is %d", t, z.firstUnsent)
	}
	for b := z.sentChunks[z.firstUnsent]; b != nil; b = z.sentChunks[z.firstUnsent] {
		z.checkNextChunk(wire.Data(b))
		z.firstUnsent++
	}
}

// checkNextChunk takes a chunk in the order of TSNs, which goes on where the last one ended.
func (z *fuzzer) checkNextChunk(d wire.Data) {
	t, p := d.TSN(), d.Payload()
	if d.B() != (z.currentOffset == 0) {
		z.t.Fatalf("TSN %d begins a message: %v, at octet %d", t, d.B(), z.currentOffset)
	}
	if d.B() {
		if d.U() && d.SSN() != 0 {
			z.t.Fatalf("TSN %d: unordered with SSN %d", t, d.SSN())
		}
		for z.currentToken++; z.pendingSizes[z.currentToken] == 0; z.currentToken++ { // expired ones
			if z.currentToken > z.lastToken {
				z.t.Fatalf("TSN %d belongs to no message", t)
			}
		}
	}
	whole := messageBody(int(z.currentToken), z.pendingSizes[z.currentToken])
	if n := z.currentOffset + len(p); n > len(whole) || !bytes.Equal(whole[z.currentOffset:n], p) ||
		d.E() != (n == len(whole)) {
		z.t.Fatalf("TSN %d: message %d from octet %d is %x", t, z.currentToken, z.currentOffset, p)
	}
	if z.currentOffset += len(p); d.E() {
		z.messageEndTSNs, z.messageTokens, z.currentOffset = append(z.messageEndTSNs, t),
			append(z.messageTokens, z.currentToken), 0
	}
}

// handleRandomSack acknowledges something: more or less of what was sent.
func (z *fuzzer) handleRandomSack() {
	b := z.input.Next()
	cum := z.s.CumTSN().Add(uint32(b%16) - 2)
	k := wire.SackFields{CumTSN: cum, ARwnd: uint32(z.input.Next()) * uint32(z.input.Next())}
	highest := uint16(0)
	for range b >> 4 {
		g := wire.GapBlock{Start: uint16(z.input.Next()), End: uint16(z.input.Next())}
		switch z.input.Next() % 6 {
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
	unsent := !cum.Less(next) || !cum.Less(z.firstUnsent)
	for _, g := range k.Gaps {
		unsent = unsent || g.Start <= g.End && (!cum.Add(uint32(g.End)).Less(next) ||
			z.firstUnsent.Less(next) && cum.Add(uint32(g.Start)).LessEq(z.firstUnsent) &&
				z.firstUnsent.LessEq(cum.Add(uint32(g.End))))
	}
	stale := cum.Less(z.s.CumTSN())
	missed := z.totalMisses()
	r, err := z.s.HandleSack(z.now, wire.Sack(wire.AppendSack(nil, k)))
	z.traceEvent(r, err)
	if r.Stale != stale || !stale && (err != nil) != unsent {
		z.t.Fatalf("SACK %+v at %d to %d: stale %v, %v", k, z.s.CumTSN(), next, r.Stale, err)
	}
	if len(k.Gaps) == 0 && z.s.Stats().Reneged == reneged && z.totalMisses() > missed {
		z.t.Fatalf("%d misses, %d before a SACK without gaps", z.totalMisses(), missed)
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
		if in := z.s.ChunkInfo(t); in.Arrived && !named[t] || !in.Arrived && named[t] && !in.Owed {
			z.t.Fatalf("TSN %d counts as arrived: %v, named by the SACK: %v: %+v", t, in.Arrived, named[t], k)
		}
	}
	z.checkAcked()
}

// totalMisses counts the miss indications.
func (z *fuzzer) totalMisses() (n int) {
	for t := z.s.CumTSN() + 1; t != z.s.NextTSN(); t++ {
		n += z.s.ChunkInfo(t).Misses
	}
	return n
}

// sackReceived acknowledges what has arrived.
func (z *fuzzer) sackReceived() {
	cum := z.s.CumTSN()
	for z.received[cum+1] {
		cum++
	}
	var gaps []wire.GapBlock
	for t := cum + 2; t.Less(z.s.NextTSN()); t++ {
		o := uint16(t - cum)
		if n := len(gaps); !z.received[t] {
			continue
		} else if n > 0 && gaps[n-1].End == o-1 {
			gaps[n-1].End = o
		} else {
			gaps = append(gaps, wire.GapBlock{Start: o, End: o})
		}
	}
	r, err := z.s.HandleSack(z.now,
		wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: cum, ARwnd: uint32(z.input.Next()) << 10, Gaps: gaps,
			Dups: z.unreportedDups})))
	must.OK(z.t, err)
	z.unreportedDups = z.unreportedDups[:0]
	z.traceEvent(r)
	z.checkAudit()
	for parts := 0; z.s.HasMoreWork(); parts++ {
		if z.s.ContinueWork(z.now); parts > 1000 {
			z.t.Fatalf("a SACK is not through after %d parts", parts)
		}
		z.checkAudit()
	}
	z.checkAcked()
}

// checkAcked compares the acknowledged messages with those that end at or before the cumulative
// TSN.
func (z *fuzzer) checkAcked() {
	z.checkAudit()
	n := 0
	for n < len(z.messageEndTSNs) && z.messageEndTSNs[n].LessEq(z.s.CumTSN()) {
		n++
	}
	if len(z.ackedTokens) != n {
		z.t.Fatalf("%d messages acknowledged, want %d", len(z.ackedTokens), n)
	}
	for i, token := range z.ackedTokens {
		if token != z.messageTokens[i] {
			z.t.Fatalf("message %d acknowledged in place of %d", token, z.messageTokens[i])
		}
	}
	z.messageEndTSNs, z.messageTokens, z.ackedTokens = z.messageEndTSNs[n:], z.messageTokens[n:], z.ackedTokens[:0]
}

func (z *fuzzer) runCommand(op int) {
	switch op % 12 {
	case 0, 1:
		z.enqueueMessage()
	case 2, 3:
		z.sendAndCheck()
	case 4:
		z.handleRandomSack()
	case 5:
		z.sackReceived()
	case 6: // time passes
		if next := z.s.NextTimeout(); z.input.Next()%2 == 0 && next < z.now+2*second {
			z.now = max(z.now, next)
		} else if z.now += rawio.Time(z.input.Next()*z.input.Next()) * ms / 4; z.input.Next() < 8 &&
			z.s.Outstanding() == 0 {
			z.now += 1100 * second // longer than stamps tell apart
		}
		z.runTimers()
	case 7: // SHUTDOWN's acknowledgement
		cum := z.s.CumTSN().Add(uint32(z.input.Next()%4) - 1)
		r, err := z.s.HandleCumAck(z.now, cum)
		z.traceEvent(r, err)
		var unsent *tx.UnsentTSNError
		if errors.As(err, &unsent) == cum.Less(z.firstUnsent) {
			z.t.Fatalf("cumulative TSN %d of %d: %v", cum, z.s.NextTSN(), err)
		}
		z.checkAcked()
	case 8: // what the owner knows of a path
		b := z.input.Next()
		p := z.s.Paths()[b%len(z.s.Paths())]
		switch b >> 4 {
		case 0:
			p.State = []tx.PathState{tx.Active, tx.PotentiallyFailed, tx.Inactive}[z.input.Next()%3]
		case 1:
			p.SetMTU(512 + z.input.Next()*8)
		case 2:
			z.s.SetPrimary(p.Index())
		case 3:
			p.ResetCongestion()
			p.BasePMTU = 600
		case 4:
			p.ObserveRTT(time.Duration(z.input.Next()*z.input.Next()) * time.Microsecond)
		case 5:
			z.pacingRate = 5_000_000
		case 6:
			p.ResetBlackHole()
			z.pacingRate = 0
		case 7:
			p.Backoff()
			z.noDelay = !z.noDelay
			z.s.Reconfigure(sendBuffer, z.maxBurst, z.noDelay, false, b%2*100)
		case 8:
			p.ConfirmReachable(z.now)
		case 9:
			p.State = tx.PotentiallyFailed
			p.MarkFailed(z.now)
		case 10:
			z.traceEvent(z.s.LeavePath(z.now, p))
		case 11:
			p.ObserveProvedRTT(time.Duration(z.input.Next()*z.input.Next()) * time.Microsecond)
		case 12:
			z.s.Expect(z.input.Next()%2 == 0)
		case 13, 14:
			p.HeartbeatsOnSuspicion = !p.HeartbeatsOnSuspicion
		case 15:
			p.ClearSuspicion(z.now)
		}
	case 9:
		z.s.HandleECNE(z.now, z.s.CumTSN().Add(uint32(z.input.Next())))
	case 10:
		if z.s.SetSackNow(z.input.Next()%2 == 0); z.input.Next()%4 == 0 {
			z.s.Trim()
		}
	case 11:
		b := z.input.Next()
		if b&16 != 0 {
			z.s.OnSendRefused(z.s.Paths()[b%len(z.s.Paths())], z.s.CumTSN().Add(uint32(z.input.Next()%32)))
			break
		}
		z.s.Detach(wire.StreamID(b%16), nil)
	}
	for _, p := range z.s.Paths() {
		if p.Suspected() && z.input.Next()%8 == 0 {
			p.ConfirmReachable(z.now)
		}
	}
	z.checkAudit()
	z.traceEvent(op)
}

// traceFailed tells of a message that has failed.
func (z *fuzzer) traceFailed(f tx.FailedMessage) {
	z.traceEvent(struct {
		stream       wire.StreamID
		token        uint64
		sent, pulled bool
	}{f.Stream, f.Token, f.Sent, f.Pulled})
}

// runTimers runs the timers.
func (z *fuzzer) runTimers() {
	z.traceEvent(z.s.HandleTimeout(z.now))
	for _, f := range z.s.Expire(z.now) {
		delete(z.pendingSizes, f.Token)
		z.traceFailed(f)
	}
}

// finishTransfer lets the peer take everything, and expects the end of it.
func (z *fuzzer) finishTransfer() {
	z.sourceEmpty = true
	for _, p := range z.s.Paths() {
		p.State = tx.Active
	}
	for rounds := 0; ; rounds++ {
		z.sendAndCheck()
		var gaps []wire.GapBlock
		if n := uint16(z.s.NextTSN() - z.firstUnsent); n > 1 { // all but what was withheld
			gaps = append(gaps, wire.GapBlock{Start: 2, End: n})
		}
		if _, err := z.s.HandleSack(z.now, makeSack(z.firstUnsent-1, 1<<20, gaps...)); err != nil {
			z.t.Fatal(err)
		}
		z.checkAcked()
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
		z.runTimers()
	}
	z.s.Expire(rawio.Never - 1) // whatever could have expired was sent in time
	if s := z.s; s.Flight() != 0 || s.DataInFlight() != 0 || s.Queued() != 0 || s.NextTimeout() != rawio.Never {
		z.t.Fatalf("flight %d, data %d, queued %d, timer %d at the end", s.Flight(), s.DataInFlight(), s.Queued(),
			s.NextTimeout())
	}
}

// stopAndCheck ends the association: each message that was not acknowledged is reported once.
func (z *fuzzer) stopAndCheck() {
	left := map[uint64]bool{}
	for n := range z.pendingSizes {
		left[n] = n > z.currentToken || n == z.currentToken && z.currentOffset > 0
	}
	for _, n := range z.messageTokens {
		left[n] = true
	}
	z.s.Stop()
	if s := z.s; s.NextTimeout() != rawio.Never || s.HasMoreWork() || s.Flight() != 0 || s.DataInFlight() != 0 {
		z.t.Fatalf("after its end: timer %d, more %v, flight %d, data %d", s.NextTimeout(), s.HasMoreWork(),
			s.Flight(), s.DataInFlight())
	}
	for f, ok := z.s.NextFailed(); ok; f, ok = z.s.NextFailed() {
		if !left[f.Token] {
			z.t.Fatalf("message %d failed, which was acknowledged or has failed", f.Token)
		}
		delete(left, f.Token)
		z.traceFailed(f)
	}
	for n, waits := range left {
		if waits {
			z.t.Fatalf("nothing was heard of message %d", n)
		}
	}
}

// RunCommands gives the sending half a list of commands, and tells what it does if there is
// something to write that to.
func RunCommands(t *testing.T, in []byte, told *strings.Builder) {
	z := &fuzzer{t: t, traceOut: told, input: in[1:], b: pack.NewBatch(1000),
		now: rawio.Time(in[0]>>6) * 1000 * second, maxBurst: int(in[0] >> 2 & 7),
		firstUnsent: firstTSN, pendingSizes: map[uint64]int{}, sentChunks: map[wire.TSN][]byte{},
		received: map[wire.TSN]bool{}}
	letter, control := bits.OnesCount8(in[0])%2 == 0, cc.NewReno
	if letter {
		control = cc.RFC9260
	}
	if in[0]&0x54 == 0x54 {
		control = cc.NewBBR
	} else if in[0]&0x14 == 0x14 {
		reno := control
		control = func(pmdcs int, v6 bool) cc.Controller { return pacedController{reno(pmdcs, v6), &z.pacingRate} }
	}
	z.s = tx.NewSender(tx.Config{TSN: firstTSN, SendBuffer: sendBuffer, MaxBurst: z.maxBurst, StrictRFC: letter,
		Rand: func() uint32 { return uint32(z.input.Next() % 64) }})
	for i := range 1 + in[0]%3 {
		p := tx.NewPath(netip.AddrPort{}, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1 + i}), 0), fuzzMTU,
			rto, control)
		if p.HeartbeatsOnSuspicion = in[0]&0x20 == 0; i == 0 || in[0]&8 != 0 { // the first has set up the association
			p.State = tx.Active
		}
		p.BasePMTU = int(in[0]&4) * 150
		must.OK(t, z.s.AddPath(p))
	}
	if in[0]&0x80 != 0 {
		z.s.SetUpper(z, z)
	} else {
		z.s.SetUpper(nil, z)
	}
	z.s.SetECN(in[0]&0x20 != 0)
	z.minRTT = []rawio.Time{ms / 1000, ms / 3, 9 * ms, 60 * ms}[in[0]>>5&1+in[0]&2]
	z.s.SetPeer(1<<uint(10+in[0]>>3&3*4), 16)
	for len(z.input) > 0 {
		z.runCommand(z.input.Next())
	}
	z.checkAcked()
	if in[0]&0x40 != 0 {
		z.stopAndCheck()
	} else {
		z.finishTransfer()
	}
}
