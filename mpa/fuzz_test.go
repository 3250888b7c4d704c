package mpa

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
)

// FuzzDeframer gives a stream to a deframer at once, and cut as the input says: it finds the same
// FPDUs, and the same fault. Of a stream that a model has made, it finds what was put in.
func FuzzDeframer(f *testing.F) {
	marked, _ := withMarkers(patternOf(700), patternOf(3), patternOf(500))
	f.Add(append(fpdu(patternOf(100)), fpdu(patternOf(3))...), byte(1), []byte{1, 2, 3})
	f.Add(marked, byte(3), []byte{255, 7})
	f.Add(marked[4:], byte(1), []byte{3})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0}, byte(0), []byte{1})
	f.Fuzz(func(t *testing.T, stream []byte, modes byte, cuts []byte) {
		if len(cuts) == 0 || len(cuts) > 100 || len(stream) > 1<<13 {
			return
		}
		d := Deframer{ChecksCRC: modes&1 != 0, HasMarkers: modes&2 != 0}
		sizes := make([]int, len(cuts))
		for i, c := range cuts {
			sizes[i] = 1 + int(c)
		}
		whole, left, err := scan(d, stream, len(stream)+1)
		cut, leftCut, errCut := scan(d, stream, sizes...)
		must.That(t, left == leftCut || err != nil, "%d octets left, cut %d", left, leftCut)
		must.That(t, (err == nil) == (errCut == nil) && len(whole) == len(cut), "%d ULPDUs, %v; cut %d, %v",
			len(whole), err,
			len(cut), errCut)
		for i := range whole {
			must.Slice(t, "a ULPDU", cut[i], whole[i])
		}
		// The stream as it is, in FPDUs of these lengths.
		var list [][]byte
		var plain []byte
		for in, i := stream, 0; len(in) > 0 && i < 100; i++ {
			n := min(len(in), 5*sizes[i%len(sizes)])
			list = append(list, in[:n])
			plain = append(plain, fpdu(in[:n])...)
			in = in[n:]
		}
		if d.HasMarkers {
			plain, _ = withMarkers(list...)
		}
		got, left, err := scan(d, plain, sizes...)
		must.That(t, err == nil && left == 0 && len(got) == len(list), "%d of %d ULPDUs, %d left, %v", len(got),
			len(list), left,
			err)
		for i := range list {
			must.Slice(t, "a ULPDU", got[i], list[i])
		}
	})
}

// FuzzConn lets a peer send what it likes, in pieces, while the user and TCP do what they like. No
// panic; nothing is taken that was not there; the connection ends, and its user hears of it once.
func FuzzConn(f *testing.F) {
	hello := append([]byte{40}, request("hello")...)
	f.Add(append(hello, 130, 0, 0, 140, 0))
	f.Add(append(append([]byte{24}, (&Frame{Revision: 2, Setup: &llp.Setup{IRD: 1}}).Append(nil)...), 130, 0, 131, 0,
		132, 0))
	f.Add(append(append([]byte{1, 20}, reply("")...), append([]byte{133, 9, 32}, fpdu(segment(1, "hello"))...)...))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 4000 {
			return
		}
		r := fuzzinput.Script(in)
		roles := r.Byte()
		e := responder(t, Config{NoCRC: roles&4 != 0, Markers: roles&8 != 0})
		if roles&1 != 0 {
			var setup *llp.Setup
			if roles&2 != 0 {
				setup = &llp.Setup{IRD: 1, ORD: 2}
			}
			e = initiator(t, Config{NoCRC: roles&4 != 0, Markers: roles&8 != 0}, setup, "hi")
		}
		attached, ended := e.IsInitiator(), 0
		var writing int // octets that TCP is at
		for steps := 0; len(r) > 0 && steps < 500; steps++ {
			switch op := r.Byte(); {
			case op < 128:
				held := len(e.toTake)
				e.feed(r.Take(int(op) + 1))
				must.That(t, len(e.toTake) < held+int(op)+2 && (len(e.toTake) < 1<<17), "%d octets are left",
					len(e.toTake))
			case op < 130:
				attached = e.Accept(e.ds, nil, r.Take(3)) == nil || attached
			case op == 130:
				attached = e.Accept(e.ds, &llp.Setup{IRD: 1, ORD: 1}, nil) == nil || attached
			case op == 131:
				_ = e.Reject(nil, r.Take(3))
			case op == 132 && attached:
				_ = e.ds.SendUntagged(0, [5]byte{}, nil, 1)
			case op == 133 && attached:
				_ = e.ds.SendTagged(1, 0, 0, gatherOf(patternOf(int(r.Byte())*20)), 2)
			case op == 134 && attached:
				e.ds.CloseSend()
			case op == 135 && r.Byte() > 200:
				e.ds.Abort()
			case op == 136:
				e.peerFin()
			case op == 137:
				e.now += 1e9
				e.HandleTimeout(e.now)
			case op == 138:
				e.Detach(nil)
			case op < 160 && writing > 0:
				n := min(writing, int(r.Byte())*8)
				e.Written(e.now, n)
				writing = 0
			case op < 240:
				act, pieces := e.Next(e.now, MaxBatch)
				if act == ActFinish {
					e.Finished(e.now)
				}
				for _, p := range pieces {
					writing += len(p)
				}
				must.That(t, act == ActWrite == (len(pieces) > 0), "action %v with %d pieces", act, len(pieces))
			}
			for ev, ok := e.PollEvent(); ok; ev, ok = e.PollEvent() {
				must.That(t, ended == 0, "event %v after the end", ev.Kind)
				if ev.Kind == EventEnded || ev.Kind == EventRejected || ev.Kind == EventLeft {
					ended++
				}
			}
		}
		e.Lost(errors.New("end of the test"))
		if writing > 0 {
			e.Written(e.now, 0)
		}
		for _, ok := e.PollEvent(); ok; _, ok = e.PollEvent() {
			ended++
		}
		must.That(t, ended == 1 && finalStates.has(e.State()) && e.ds.Unfinished() == 0,
			"%d ends, state %v, %d messages left",
			ended, e.State(), e.ds.Unfinished())
	})
}

// FuzzTransfer joins two ends by a stream that is cut as the input says: all that one says the
// other hears, in order, whatever was agreed.
func FuzzTransfer(f *testing.F) {
	f.Add([]byte{0, 1, 200, 3, 9, 2, 100, 1, 50, 3, 255})
	f.Add([]byte{15, 1, 200, 1, 100, 3, 9, 2, 100, 1, 50, 3, 255, 3, 1, 3, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 500 {
			return
		}
		r := fuzzinput.Script(in)
		modes := r.Byte()
		cfg := func(bits byte) Config {
			return Config{NoCRC: bits&1 != 0, Markers: bits&2 != 0, EMSS: 200 + 100*int(modes>>4)}
		}
		a, b := pair(t, cfg(modes), cfg(modes>>2))
		want := bytes.Clone(b.memory)
		var wire []byte // from a to b
		said := 0
		deliver := func(n int) {
			n = min(n, len(wire))
			b.feed(wire[:n])
			wire = wire[n:]
		}
		for len(r) > 0 {
			switch op := r.Byte(); op % 4 {
			case 0, 1:
				n, at := 13*int(r.Byte()), int(r.Byte())
				p := patternOf(n + 1)[said%2:]
				copy(want[at:], p)
				a.write(b, at, p)
				said++
			case 2:
				wire = append(wire, a.take()...)
			case 3:
				deliver(int(op) * int(r.Byte()))
			}
		}
		wire = append(wire, a.take()...)
		deliver(len(wire))
		must.That(t, bytes.Equal(b.memory, want) && len(b.u.log) == said && a.ds.Unfinished() == 0 &&
			len(b.toTake) == 0,
			"%d of %d messages; %v", len(b.u.log), said, b.u.log)
	})
}
