package tx

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// extensionsLab is a senderLab whose peer has agreed to PR-SCTP, or to I-DATA, or both.
type extensionsLab struct {
	*senderLab
}

func newExtensionsLab(t *testing.T, abandons, interleaves bool) *extensionsLab {
	l := &extensionsLab{senderLab: newLab(t, 1)}
	l.s.SetExtensions(abandons, interleaves)
	return l
}

// enqueue gives a message of size octets to the sender.
func (l *extensionsLab) enqueue(size int, m Message) uint64 {
	l.t.Helper()
	l.token++
	m.Token, m.Body[0] = l.token, bytes.Repeat([]byte{byte(l.token)}, size)
	must.OK(l.t, l.s.Enqueue(&m))
	return l.token
}

// sendPackets sends what may be sent, and tells of the packets: chunks as "TSN/stream#number", with
// flags, and FORWARD TSN as "F cum stream#number".
func (l *extensionsLab) sendPackets() string {
	l.t.Helper()
	l.b.Reset()
	l.s.StartBurst(l.now)
	var packets []string
	for range 1000 {
		p := l.s.Poll(l.now)
		if p == nil && !l.s.ForwardDue() {
			break
		}
		if p == nil {
			p = l.s.DataPath()
		}
		l.b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
		if l.s.ForwardDue() {
			l.b.Commit(l.s.AppendForwardTSN(l.now, l.b.Tail(), l.b.Room(), p))
		}
		if l.s.Fill(l.now, l.b, p); l.b.Empty() {
			l.b.Cancel()
			break
		}
		l.b.End()
		packets = append(packets, describePacket(l.t, l.b.Pkts[len(l.b.Pkts)-1]))
		before := len(l.b.Pkts)
		if l.s.FillMore(l.now, l.b, p); len(l.b.Pkts) > before {
			for _, more := range l.b.Pkts[before:] {
				packets = append(packets, describePacket(l.t, more))
			}
		}
	}
	l.check()
	return strings.Join(packets, " | ")
}

func describePacket(t *testing.T, p rawio.Packet) string {
	t.Helper()
	pkt := must.Get(wire.ParsePacket(bytes.Join(p.Vec, nil)))(t)
	var out []string
	it := pkt.Chunks()
	for c, ok := it.Next(); ok; c, ok = it.Next() {
		switch c.Type() {
		case wire.ChunkData:
			d := must.Get(wire.AsData(c))(t)
			out = append(out, fmt.Sprintf("%d/%d#%d%s", d.TSN(), d.Stream(), d.SSN(), describeFlags(d.Flags())))
		case wire.ChunkIData:
			d := must.Get(wire.AsIData(c))(t)
			out = append(out, fmt.Sprintf("%d/%d#%d.%d%s", d.TSN(), d.Stream(), d.MID(), d.FSN(),
				describeFlags(d.Flags())))
		case wire.ChunkForwardTSN:
			f := must.Get(wire.AsForwardTSN(c))(t)
			s := fmt.Sprintf("F %d", f.NewCumTSN())
			for i := range f.NumSkips() {
				s += fmt.Sprintf(" %d#%d", f.Skip(i).Stream, f.Skip(i).SSN)
			}
			out = append(out, s)
		case wire.ChunkIForwardTSN:
			f := must.Get(wire.AsIForwardTSN(c))(t)
			s := fmt.Sprintf("IF %d", f.NewCumTSN())
			for i := range f.NumSkips() {
				x := f.Skip(i)
				s += fmt.Sprintf(" %d#%d%s", x.Stream, x.MID, map[bool]string{true: "U"}[x.U])
			}
			out = append(out, s)
		default:
			t.Fatalf("chunk %v", c.Type())
		}
	}
	return strings.Join(out, " ")
}

// describeFlags leaves the I bit out.
func describeFlags(f uint8) (s string) {
	for _, x := range []struct {
		bit  uint8
		name string
	}{{wire.FlagU, "U"}, {wire.FlagB, "B"}, {wire.FlagE, "E"}} {
		if f&x.bit != 0 {
			s += x.name
		}
	}
	return s
}

// expectSent compares the packets that are sent now.
func (l *extensionsLab) expectSent(what, want string) {
	l.t.Helper()
	check.Equal(l.t, what, l.sendPackets(), want)
}

// expectAbandoned compares the tokens of the messages that were abandoned since the last call.
func (l *extensionsLab) expectAbandoned(what string, want ...uint64) {
	l.t.Helper()
	var got []uint64
	for _, f := range l.s.TakeAbandoned() {
		got = append(got, f.Token)
	}
	check.Slice(l.t, what+": abandoned", got, want)
}
