package sctp

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzHostilePeer plays a list of steps against a victim in one of its states. The first octet is the
// state; each step is an octet that says what to do, a length octet, and so many octets of data:
//
//	0..199  a packet; the next octet chooses its tag, the rest are its chunks
//	200..   time passes; the user reads, writes, shuts down or aborts; the good peer answers
func FuzzHostilePeer(f *testing.F) {
	step := func(op byte, data ...byte) []byte { return append([]byte{op, byte(len(data))}, data...) }
	data := func(flags byte, tsn wire.TSN, n int) []byte {
		b := wire.AppendDataHeader([]byte{0}, wire.DataFields{Flags: flags, TSN: tsn, PayloadLen: n})
		return append(b, make([]byte, wire.PaddedLen(n))...)
	}
	for state := range byte(8) {
		f.Add(append([]byte{state}, step(200, 200)...))
		f.Add(append([]byte{state}, step(0, data(3, 1, 10)...)...))
		f.Add(append([]byte{state}, step(0, append([]byte{0}, wire.AppendShutdown(nil, 5)...)...)...))
		f.Add(append([]byte{state}, step(0, append([]byte{2}, wire.AppendAbort(nil, true)...)...)...))
		f.Add(append([]byte{state}, step(0, append([]byte{3}, wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: 7, ARwnd: 9000, OutStreams: 1, InStreams: 1})...)...)...))
		f.Add(append([]byte{state}, step(0, append([]byte{0}, wire.AppendSack(nil, wire.SackFields{CumTSN: 1, ARwnd: 100})...)...)...))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 {
			return
		}
		l := newLab(t)
		l.reach(script[0])
		script = script[1:]
		for steps := 0; len(script) >= 2 && steps < 200; steps++ {
			op, n := script[0], min(int(script[1]), len(script)-2)
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
		if len(arg) == 0 {
			return
		}
		before := len(v.out)
		l.deliver(v, l.wrap(arg[0], arg[1:]))
		// One packet is answered by one packet of control chunks, beside the DATA it sets free.
		if n := len(v.out) - before; n > 64 {
			l.t.Fatalf("one packet was answered by %d", n)
		}
		return
	}
	wait := time.Duration(0)
	if len(arg) > 0 {
		wait = time.Duration(arg[0]) * 100 * time.Millisecond
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
		v.a.Send(l.now, &m) // refused in many states
	case op < 250:
		v.a.Shutdown(l.now)
	case op < 252:
		v.a.Abort(l.now, arg)
	default: // the good peer gets its say
		l.exchange(1)
	}
	l.pump(v)
}
