package ddpadapt

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzHostilePeer lets a peer send what it likes while the user does what it likes: no panic, what
// leaves obeys RFC 5043, deliveries are in order and without gap, and nothing is left at the end.
//
//fuzz:covers ./ddpadapt
func FuzzHostilePeer(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 4, 0, 0, 6, 1, 0, 1, 1, 0, 1, 2, 0, 1, 3, 4, 0, 2, 5, 6})
	f.Add([]byte{3, 0, 5, 6, 0, 0, 2, 0, 1, 0, 1, 0, 2, 4, 0, 4, 5, 1, 0, 2, 5, 6, 0, 0, 4, 1, 6})
	f.Add([]byte{2, 0, 17, 4, 5, 0, 1, 0, 1, 'x', 2, 1, 99, 0, 2, 1, 1, 5, 6, 7})
	f.Add([]byte{0xA0, 0, 5, 0, 1, 2, 3, 4, 5, 4, 0, 0, 5, 6, 0, 0, 4, 1, 6, 3, 2, 3, 2, 3, 2, 5, 6, 0xA0, 1, 6, 0, 1,
		2, 3, 4, 5})
	f.Add([]byte{0, 1, 1, 0, 1, 1, 9, 0, 1, 4, 3, 4, 0, 0, 5, 6, 8})
	f.Fuzz(func(t *testing.T, in []byte) {
		e := newEnd(t, ddpadapt.Config{Initiator: len(in)%2 == 0, MaxPending: 3, MaxEarly: 64, MaxOutOfOrder: 8})
		inject := func(id byte, ppid uint32, flags uint8, b []byte) {
			d := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, Stream: wire.StreamID(id % (streams + 1)),
				PPID: ppid, PayloadLen: len(b)})
			e.m.Place(0, wire.Data(append(d, b...)), nil)
		}
		const whole = wire.FlagB | wire.FlagE
		for r := fuzzinput.Script(in); len(r) > 0; e.takeEvents() {
			switch op := r.Byte(); op % 10 {
			case 0: // a control message
				id, fn, ssn := r.Byte(), r.Byte(), r.Byte()
				inject(id, ddpadapt.PPIDControl, whole|wire.FlagU,
					append([]byte{0, ssn, 0, fn % 9}, r.Take(int(op>>5))...))
			case 1: // a segment
				id, ssn := r.Byte(), r.Byte()
				var h [ddp.MaxHeaderLen]byte
				n := ddp.Tagged{Last: true, STag: 1, TO: uint64(ssn)}.Put(h[:])
				inject(id, ddpadapt.PPIDSegment, whole|wire.FlagU, append([]byte{0, ssn}, h[:n]...))
			case 2: // anything
				id, ppid, flags := r.Byte(), r.Byte(), r.Byte()
				inject(id, uint32(ppid), flags, r.Take(int(r.Byte())))
			case 3:
				e.openSession(int(r.Byte()%(streams+2)) - 1)
			case 4:
				e.doUserCall(r.Byte(), r.Byte())
			case 5:
				if p := e.pullMessage(); p != nil {
					p.arrived = true
				}
			case 6:
				e.ackArrived()
			case 7:
				e.a.payload = 100 + 8*int(r.Byte())
				e.injectEvent(assoc.EventMTUChanged, nil)
			case 8:
				e.flight, e.out = nil, [streams]outgoing{} // the association has forgotten them
				e.a.life++
				e.injectEvent(assoc.EventRestart, nil)
			case 9:
				for p := e.pullMessage(); p != nil; p = e.pullMessage() {
					p.arrived = true
				}
				e.ackArrived()
			}
		}
		e.down = true
		e.injectEvent(assoc.EventDown, errors.New("end of the test"))
		must.That(t, e.m.Sessions() == 0 && e.pullMessage() == nil, "%d sessions left", e.m.Sessions())
	})
}

// FuzzConforming joins two conforming ends by a network that reorders at will: neither side ever
// sees a violation or a stray, and when all users have terminated nothing is left.
//
//fuzz:covers ./ddpadapt
func FuzzConforming(f *testing.F) {
	f.Add([]byte{0, 0, 2, 0, 3, 0, 5, 0, 4, 1, 0, 0, 0, 2, 1, 0, 3, 0, 5, 1, 4, 0, 0, 4, 4, 0, 0, 4, 2, 0, 2, 0, 2, 0,
		3, 2, 3, 0})
	f.Add([]byte{0, 0, 2, 0, 4, 0, 0, 3, 3, 0, 4, 1, 0, 1, 2, 1, 3, 0, 5, 0})
	f.Add([]byte{0, 0, 1, 0, 0, 1, 2, 0, 2, 1, 3, 0, 3, 0, 4, 1, 0, 0, 4, 1, 0, 4, 4, 1, 0, 2, 2, 1, 2, 1, 3, 1, 3, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 2000 {
			return
		}
		ends := [2]*end{newEnd(t, ddpadapt.Config{Initiator: true}), newEnd(t, ddpadapt.Config{})}
		var wires [2][]*packet // under way to the other end
		deliver := func(from int, which byte) {
			if w := wires[from]; len(w) > 0 {
				i := int(which) % len(w)
				p := w[i]
				wires[from] = append(w[:i:i], w[i+1:]...)
				if v := ends[1-from].m.Place(0, p.data, nil); v == assoc.DropUnacked {
					wires[from] = append(wires[from], p) // sent again
				} else {
					p.arrived = true
				}
				ends[1-from].takeEvents()
			}
		}
		for r := fuzzinput.Script(in); len(r) > 0; {
			op, side := r.Byte(), int(r.Byte()&1)
			e := ends[side]
			switch op % 6 {
			case 0, 1:
				e.openSession(2*int(op>>1&1) + side) // each side has its own streams, so that none cross
			case 2:
				if p := e.pullMessage(); p != nil {
					wires[side] = append(wires[side], p)
				}
			case 3:
				deliver(side, r.Byte())
			case 4:
				e.doUserCall(r.Byte(), r.Byte())
			case 5:
				e.ackArrived()
			}
			e.takeEvents()
		}
		for range 100 { // everybody ends its sessions
			for side, e := range ends {
				for _, u := range e.users {
					if s := u.session; s != nil && s.State() == ddpadapt.Pending {
						s.Reject(0, nil)
					} else if s != nil && s.Terminate(0) == llp.ErrState {
						s.Abort()
					}
				}
				for p := e.pullMessage(); p != nil; p = e.pullMessage() {
					wires[side] = append(wires[side], p)
				}
				for range len(wires[side]) {
					deliver(side, 0)
				}
				e.ackArrived()
				e.takeEvents()
			}
		}
		for side, e := range ends {
			n, st := e.m.Sessions(), e.m.Stats()
			must.That(t, n == 0 && st.Violations+st.Refused+st.Ignored == 0, "side %d: %d sessions left, %+v", side,
				n, st)
		}
	})
}
