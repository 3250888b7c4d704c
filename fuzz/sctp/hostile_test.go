package sctp

import (
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzHostilePeer plays a list of steps against a victim in one of its states. The first octet is the
// situation and the kind of association; each step is an octet that says what to do, a quarter of a length, and so many octets of data:
//
//	0..199  a packet; the next octet says how it is wrapped, the rest are its chunks
//	200..   time passes; the user reads, writes, shuts down or aborts; the good peer answers
//
//fuzz:covers ./sctp/assoc ./sctp/endpoint ./sctp/internal/rx ./sctp/internal/tx
func FuzzHostilePeer(f *testing.F) {
	step := func(op byte, data ...byte) []byte {
		n := (len(data) + 3) / 4
		return append(append([]byte{op, byte(n)}, data...), make([]byte, 4*n-len(data))...)
	}
	data := func(flags byte, tsn wire.TSN, n int) []byte {
		b := wire.AppendDataHeader([]byte{4}, wire.DataFields{Flags: flags, TSN: tsn, PayloadLen: n})
		return append(b, make([]byte, wire.PaddedLen(n))...)
	}
	for i := range situations {
		s := []byte{byte(i)}
		f.Add(slices.Concat(s, step(200, 200)))
		f.Add(slices.Concat(s, step(0, data(3, 0, 10)...), step(0, data(2, 2, 10)...), step(0, data(1, 1, 10)...), step(230)))
		f.Add(slices.Concat(s, step(0, append([]byte{4}, wire.AppendShutdown(nil, 0)...)...), step(255)))
		f.Add(slices.Concat(s, step(0, append([]byte{2}, wire.AppendAbort(nil, true)...)...)))
		f.Add(slices.Concat(s, step(0, append([]byte{3}, wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: 7, ARwnd: 9000, OutStreams: 1, InStreams: 1})...)...),
			step(0, append([]byte{5}, wire.AppendCookieEcho(nil, nil)...)...), step(0, data(3, 0, 10)...), step(240, 1)))
		f.Add(slices.Concat(s, step(0, append([]byte{3}, wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: 7, ARwnd: 9000, OutStreams: 1, InStreams: 1})...)...),
			step(200, 255), step(0, append([]byte{5}, wire.AppendCookieEcho(nil, nil)...)...)))
		initAck := wire.AppendInit([]byte{0}, wire.ChunkInitAck, wire.InitFields{Tag: 7, ARwnd: 9000, OutStreams: 1, InStreams: 1})
		initAck = wire.AppendParam(wire.AppendParam(initAck, wire.ParamStateCookie, []byte("cookie")), 0xC0FF, []byte("who knows"))
		f.Add(slices.Concat(s, step(0, wire.CloseChunk(initAck, 1)...), step(0, append([]byte{0}, wire.AppendCookieAck(nil)...)...)))
		f.Add(slices.Concat(s, step(253, 3, 150, 0), step(253, 0, 0, 0), step(253, 0x12, 0, 0)))
		f.Add(slices.Concat(s, step(240, 1, 2, 3), step(0, append([]byte{4}, wire.AppendSack(nil, wire.SackFields{ARwnd: 100})...)...)))
	}
	for i, b := range corpus.Packets() {
		chunks := b[wire.CommonHeaderLen:]
		tag := byte(4)
		if wire.Chunk(chunks).Type() == wire.ChunkInit {
			tag = 7
		}
		f.Add(slices.Concat([]byte{byte(i * 5)}, step(0, append([]byte{tag}, chunks...)...), step(255), step(210, 50)))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 {
			return
		}
		l := newLab(t, script[0]/byte(len(situations)))
		l.reach(script[0])
		script = script[1:]
		for steps := 0; len(script) >= 2 && steps < 200; steps++ {
			op, n := script[0], min(4*int(script[1]), len(script)-2)
			arg := script[2 : 2+n]
			script = script[2+n:]
			l.step(op, arg)
			l.check()
		}
		l.end()
	})
}

// step does one thing to the victim.
func (l *lab) step(op byte, arg []byte) {
	v := l.victim
	if op < 200 {
		if len(arg) > 0 {
			l.attack(arg[0], arg[1:])
		}
		return
	}
	wait := time.Duration(0)
	if len(arg) > 0 {
		wait = time.Duration(arg[0]) * time.Duration(arg[0]) * 2 * time.Millisecond // up to two minutes
	}
	switch {
	case op < 220: // time passes
		l.now = l.now.Add(wait)
		for range 20 {
			if v.a == nil || v.down || v.a.NextTimeout() > l.now {
				break
			}
			v.a.HandleTimeout(l.now)
			l.pump(v)
		}
	case v.a == nil || v.down:
	case op < 235: // the user reads
		if r, ok := v.a.Receive(); ok {
			r.CopyTo(make([]byte, 100), 0)
			v.a.Release(r)
		}
	case op < 245: // and writes
		m := assoc.Message{Body: [2][]byte{make([]byte, 1+len(arg)*20)}, Unordered: len(arg)%2 == 0}
		if len(arg)%3 == 1 {
			m.Expires = l.now.Add(wait)
			m.Path, _ = v.a.PathTo(l.peer.addrs[len(l.peer.addrs)-1])
		}
		v.a.Send(l.now, &m) // refused in many states
	case op < 247: // and has a wish about a path; refused if there is none
		v.a.SetPrimary(l.peer.addrs[len(arg)%len(l.peer.addrs)])
		v.a.RequestHeartbeat(l.now, l.peer.addrs[len(arg)/2%len(l.peer.addrs)])
	case op < 250:
		v.a.Shutdown(l.now)
	case op < 252:
		v.a.Abort(l.now, arg)
	case op < 254 && len(arg) > 2:
		l.report(arg)
	default: // the good peer gets its say
		l.exchange(1)
	}
	l.pump(v)
}

// attack delivers a packet. With a tag that is not the association's it changes nothing (section 8.5), and ends
// nothing.
func (l *lab) attack(how byte, chunks []byte) {
	v := l.victim
	var before assoc.Stats
	a, up := v.a, v.a != nil && !v.down
	if up {
		before = a.Stats()
	}
	out := len(v.out)
	l.deliver(v, l.wrap(how, chunks))
	// One packet is answered by one packet of control chunks, beside the DATA it sets free.
	if n := len(v.out) - out; n > 64 {
		l.t.Fatalf("one packet was answered by %d", n)
	}
	if up && (how == wrongTag || how%4 == 3) {
		after := a.Stats()
		if v.down || after.State != before.State || after.Unacked < before.Unacked || after.Buffered != before.Buffered {
			l.t.Fatalf("a packet with a wrong tag made %+v of %+v", after, before)
		}
	}
}

// report delivers what an ICMP message says about a packet of the victim's: its beginning, perhaps with another octet.
func (l *lab) report(arg []byte) {
	v := l.victim
	pkt := letter{from: l.peer.addrs[int(arg[0]>>4)%len(l.peer.addrs)], to: v.addrs[0], kind: rawio.KindProtoUnreachable}
	if arg[0]&1 != 0 {
		pkt.kind, pkt.mtu = rawio.KindPacketTooBig, int(arg[1])*8
	}
	tag := uint32(0)
	if arg[0]&2 != 0 {
		tag = v.a.PeerTag()
	}
	pkt.data = wire.AppendHeader(nil, victimPort, peerPort, tag)
	pkt.data = append(pkt.data, wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: v.a.LocalTag()})...)
	if arg[0]&4 != 0 {
		pkt.data[int(arg[2])%len(pkt.data)] ^= arg[1]
	}
	pkt.data = pkt.data[:max(8, len(pkt.data)-int(arg[2]>>3))]
	l.deliver(v, pkt)
}
