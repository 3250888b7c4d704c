package tx

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The lab's path: PMDCS 1000, so that cwnd starts at 4000 and a full chunk counts 984 octets: 968
// of user data, with room for a SACK.
const (
	labMTU  = 1012
	full    = 968
	counted = full + wire.DataHeaderLen
	second  = rawio.Time(time.Second)
	ms      = rawio.Time(time.Millisecond)
)

var labRTO = RTOConfig{Initial: time.Second, Min: time.Second, Max: time.Minute}

// senderLab drives a Sender in virtual time, by the letter of RFC 9260. TSNs start at 1.
type senderLab struct {
	t             *testing.T
	s             *Sender
	b             *pack.Batch
	now           rawio.Time
	acked         []uint64 // tokens
	token         uint64
	transmitCount int              // that it had to transmit
	noFillMore    bool             // each packet is made by Poll and Fill
	traceOut      *strings.Builder // what happens, if it is to be told
}

func newLab(t *testing.T, paths int) *senderLab {
	l := &senderLab{t: t, s: NewSender(Config{TSN: 1, SendBuffer: 1 << 20, StrictRFC: true}), b: pack.NewBatch(1000)}
	for i := range paths {
		p := NewPath(netip.AddrPort{}, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)}), 0),
			labMTU, labRTO, cc.RFC9260)
		p.State = Active
		must.OK(t, l.s.AddPath(p))
	}
	l.s.SetPeer(1<<20, 16)
	l.s.SetUpper(nil, l)
	return l
}

func (l *senderLab) Acked(_ rawio.Time, _ wire.StreamID, token uint64) {
	l.acked = append(l.acked, token)
}

// enqueueMany gives n messages of size octets to the sender, with tokens 1, 2, ...
func (l *senderLab) enqueueMany(n, size int) {
	l.t.Helper()
	for range n {
		l.token++
		must.OK(l.t, l.s.Enqueue(&Message{Body: [2][]byte{bytes.Repeat([]byte{byte(l.token)}, size)}, Token: l.token}))
	}
}

// chunks returns the DATA chunks of a packet.
func chunks(t *testing.T, p rawio.Packet) (out []wire.Data) {
	t.Helper()
	pkt, err := wire.ParsePacket(bytes.Join(p.Vec, nil))
	if err != nil || !pkt.ChecksumOK() {
		t.Fatalf("bad packet: %v", err)
	}
	it := pkt.Chunks()
	for c, ok := it.Next(); ok; c, ok = it.Next() {
		out = append(out, must.Get(wire.AsData(c))(t))
	}
	must.OK(t, it.Err())
	return out
}

// transmit sends what may be sent in one opportunity.
func (l *senderLab) transmit() []rawio.Packet {
	l.t.Helper()
	if l.transmitCount++; l.transmitCount > 100_000 {
		l.t.Fatalf("no end of it: %+v", l.s.stats)
	}
	l.b.Reset()
	l.s.StartBurst(l.now)
	for !l.b.Full() {
		p := l.s.Poll(l.now)
		if p == nil {
			break
		}
		l.b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
		n := l.s.Fill(l.now, l.b, p)
		l.b.End()
		if got := len(chunks(l.t, l.b.Pkts[len(l.b.Pkts)-1])); n == 0 || got != n {
			l.t.Fatalf("Poll promised a chunk: Fill has appended %d, and says %d", got, n)
		}
		if before := len(l.b.Pkts); !l.noFillMore {
			l.s.FillMore(l.now, l.b, p)
			if l.traceOut != nil {
				fmt.Fprint(l.traceOut, " ", len(l.b.Pkts)-before)
			}
		}
	}
	for _, p := range l.b.Pkts {
		if l.traceOut != nil {
			fmt.Fprint(l.traceOut, p.Remote.Addr(), p.ECN, p.Fragment, crc32.ChecksumIEEE(bytes.Join(p.Vec, nil)))
		}
	}
	return l.b.Pkts
}

// traceEvent writes down what happens, if that is wanted, and what becomes of the Sender.
func (l *senderLab) traceEvent(what ...any) {
	if l.traceOut != nil {
		fmt.Fprintln(l.traceOut, what, l.now, len(l.acked), l.s.DumpState())
	}
}

// expectTSNs transmits and compares the TSNs of the packets, as in "1 | 2 3"; to a path other than
// the first as in "4>1".
func (l *senderLab) expectTSNs(what, want string) {
	l.t.Helper()
	var got []byte
	for i, p := range l.transmit() {
		if i > 0 {
			got = append(got, " | "...)
		}
		for k, d := range chunks(l.t, p) {
			if k > 0 {
				got = append(got, ' ')
			}
			got = fmt.Append(got, d.TSN())
		}
		if a := p.Remote.Addr().As4(); a[3] != 1 {
			got = fmt.Appendf(got, ">%d", a[3]-1)
		}
	}
	l.check()
	check.That(l.t, string(got) == want, "%s: sent [%s], want [%s]", what, got, want)
}

func makeSack(cum wire.TSN, arwnd uint32, gaps ...wire.GapBlock) wire.Sack {
	return wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: cum, ARwnd: arwnd, Gaps: gaps}))
}

// sack feeds a SACK with an open window; gaps are first and last TSN.
func (l *senderLab) sack(cum wire.TSN, gaps ...[2]wire.TSN) Result {
	l.t.Helper()
	var g []wire.GapBlock
	for _, b := range gaps {
		g = append(g, wire.GapBlock{Start: uint16(b[0] - cum), End: uint16(b[1] - cum)})
	}
	return l.handleSack(makeSack(cum, 1<<20, g...))
}

func (l *senderLab) handleSack(k wire.Sack) Result {
	l.t.Helper()
	r, err := l.s.HandleSack(l.now, k)
	must.OK(l.t, err)
	l.check()
	for parts := 0; l.s.HasMoreWork(); parts++ {
		l.s.ContinueWork(l.now)
		must.That(l.t, parts <= 4*maxOutstanding/maxSliceSteps, "a SACK is not through after %d parts", parts)
		l.check()
	}
	return r
}

// check compares every count with the sets and records it sums up.
func (l *senderLab) check() {
	l.t.Helper()
	must.OK(l.t, l.s.Audit())
}

func (l *senderLab) pathAt(i int) *Path { return l.s.paths[i] }

// runNextTimeout lets the next timer expire and returns the paths it says have failed.
func (l *senderLab) runNextTimeout() PathSet {
	l.t.Helper()
	l.now = l.s.NextTimeout()
	must.That(l.t, l.now != rawio.Never, "no timer runs")
	expired := l.s.HandleTimeout(l.now)
	for l.s.HasMoreWork() {
		l.s.ContinueWork(l.now)
	}
	l.check()
	return expired
}

func (l *senderLab) expectCwnd(what string, want int) {
	l.t.Helper()
	check.Equal(l.t, what+": cwnd", l.pathAt(0).cc.Window(), want)
}
