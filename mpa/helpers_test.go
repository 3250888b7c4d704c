package mpa

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/crc32c"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// recorder is a ULP that keeps a log. Its tagged memory takes RDMA Writes, its queue 0 has buffers
// of 64 octets.
type recorder struct {
	log     []string
	queue   *ddp.Queue
	fault   *ddp.Error
	onFatal func()
	onMsg   func()
}

func (u *recorder) note(format string, args ...any) {
	u.log = append(u.log, fmt.Sprintf(format, args...))
}

func (u *recorder) AdmitTagged(uint8, *ddp.Region, ddp.STag, uint64, int) (ddp.Access, *ddp.Error) {
	return ddp.RemoteWrite, nil
}

func (u *recorder) Buffer(_, msn uint32, _ [5]byte) (*ddp.RecvBuffer, uint8) {
	return u.queue.Lookup(msn)
}

func (u *recorder) DeliverTagged(_ uint8, _ ddp.STag, to, n uint64) {
	u.note("tagged %d+%d", to, n)
	if u.onMsg != nil {
		u.onMsg()
	}
}

func (u *recorder) DeliverUntagged(_, _ uint32, _ [5]byte, n uint32, b *ddp.RecvBuffer) {
	u.note("untagged %q", b.Pieces[0].Mem.RAM()[:n])
	u.queue.Pop()
	if u.onMsg != nil {
		u.onMsg()
	}
}

func (u *recorder) Completed(token uint64)         { u.note("completed %d", token) }
func (u *recorder) Failed(token uint64, err error) { u.note("failed %d", token) }
func (u *recorder) Drained()                       {}
func (u *recorder) PeerClosed()                    { u.note("peer closed") }
func (u *recorder) Fatal(err *ddp.Error) {
	u.fault = err
	u.note("fatal %d/%d", err.Type, err.Code)
	if u.onFatal != nil {
		u.onFatal()
	}
}

type entropy struct{ n byte }

func (e *entropy) Read(p []byte) (int, error) {
	for i := range p {
		e.n += 7
		p[i] = e.n
	}
	return len(p), nil
}

// end is one end of a connection, with the DDP stream and its user, and what TCP has taken of it.
type end struct {
	*Conn
	t      testing.TB
	ds     *ddp.Stream
	u      *recorder
	now    rawio.Time
	memory []byte // open to RDMA Writes, as stag
	stag   ddp.STag
	fin    bool   // the half was closed
	toTake []byte // received, and not taken yet
}

func newEnd(t testing.TB) *end {
	e := &end{t: t, u: &recorder{queue: ddp.NewQueue(64)}, memory: make([]byte, 1<<17)}
	table := ddp.NewTable(new(entropy))
	e.stag = must.Get(table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(e.memory), Access: ddp.RemoteWrite}))(t).STag()
	e.ds = ddp.NewStream(ddp.StreamConfig{ID: 1, PD: 1, Table: table, ULP: e.u, Queues: 1})
	for range 64 {
		b := must.Get(ddp.MakeRecvBuffer(ddp.Gather{{Mem: ddp.Bytes(make([]byte, 64)), Len: 64}}, 0))(t)
		must.OK(t, e.u.queue.Post(b))
	}
	return e
}

// initiator returns an end that has asked.
func initiator(t testing.TB, cfg Config, setup *llp.Setup, private string) *end {
	e := newEnd(t)
	e.Conn = must.Get(NewInitiator(e.now, cfg, e.ds, setup, []byte(private)))(t)
	return e
}

// responder returns an end that waits to be asked.
func responder(t testing.TB, cfg Config) *end {
	e := newEnd(t)
	e.Conn = NewResponder(e.now, cfg)
	return e
}

// pair returns two ends of a connection in Full Operation.
func pair(t testing.TB, a, b Config) (x, y *end) {
	x, y = initiator(t, a, nil, ""), responder(t, b)
	exchange(x, y)
	must.OK(t, y.Accept(y.ds, nil, nil))
	exchange(x, y)
	x.takeEvents()
	y.takeEvents()
	must.That(t, x.State() == Open && y.State() == Open, "states %v and %v", x.State(), y.State())
	return x, y
}

// take returns all that the end has to write, as TCP takes it.
func (e *end) take() []byte {
	var all []byte
	for {
		act, pieces := e.Next(e.now, MaxBatch)
		switch act {
		case ActNone:
			return all
		case ActFinish:
			e.fin = true
			e.Finished(e.now)
		case ActWrite:
			b := bytes.Join(pieces, nil)
			all = append(all, b...)
			e.Written(e.now, len(b))
		}
	}
}

// feed lets octets arrive.
func (e *end) feed(b []byte) {
	e.toTake = append(e.toTake, b...)
	e.toTake = slices.Clone(e.toTake[e.Receive(e.now, e.toTake):])
}

// peerFin lets the FIN of the peer arrive.
func (e *end) peerFin() { e.PeerFinished(e.now, len(e.toTake)) }

// exchange lets both ends write until neither has anything to say.
func exchange(x, y *end) {
	for more := true; more; {
		more = false
		for _, p := range [][2]*end{{x, y}, {y, x}} {
			from, to, had := p[0], p[1], p[0].fin
			b := from.take()
			if len(b) > 0 {
				to.feed(b)
			}
			if from.fin && !had {
				to.peerFin()
			}
			more = more || len(b) > 0 || from.fin && !had
		}
	}
}

// takeEvents returns the names of the events, with private data and errors.
func (e *end) takeEvents() string {
	var list []string
	for ev, ok := e.PollEvent(); ok; ev, ok = e.PollEvent() {
		s := ev.Kind.String()
		if len(ev.Private) > 0 {
			s += " " + string(ev.Private)
		}
		if ev.Setup != nil {
			s += fmt.Sprintf(" %d/%d", ev.Setup.IRD, ev.Setup.ORD)
		}
		if ev.Err != nil {
			s += ": " + ev.Err.Error()
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

// heard returns what the user of the DDP stream was told since the last call.
func (e *end) heard() string {
	s := strings.Join(e.u.log, ", ")
	e.u.log = nil
	return s
}

// say sends a text to queue 0 of the peer.
func (e *end) say(text string) {
	must.OK(e.t, e.ds.SendUntagged(0, [5]byte{}, gatherOf([]byte(text)), 7))
}

// gatherOf is one piece of memory.
func gatherOf(b []byte) ddp.Gather { return ddp.Gather{{Mem: ddp.Bytes(b), Len: uint64(len(b))}} }

// write writes octets to the memory of the peer, from place to on.
func (e *end) write(peer *end, to int, b []byte) {
	must.OK(e.t, e.ds.SendTagged(peer.stag, uint64(to), 0, gatherOf(b), 8))
}

// patternOf returns n octets that differ from their neighbours.
func patternOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + 1)
	}
	return b
}

// request and reply are plain frames with CRC.
func request(private string) []byte {
	return (&Frame{CRC: true, Revision: 1, Private: []byte(private)}).Append(nil)
}

func reply(private string) []byte {
	return (&Frame{IsReply: true, CRC: true, Revision: 1, Private: []byte(private)}).Append(nil)
}

// segment is a DDP segment to queue 0: message msn, all of it.
func segment(msn uint32, payload string) []byte {
	b := make([]byte, ddp.UntaggedHeaderLen)
	ddp.Untagged{Last: true, MSN: msn}.Put(b)
	return append(b, payload...)
}

// fpdu is a plain model of an FPDU without Markers: ULPDU_Length, ULPDU, pad, CRC.
func fpdu(ulpdu []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(ulpdu)))
	b = append(b, ulpdu...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return binary.LittleEndian.AppendUint32(b, crc32c.Update(0, b))
}

// withMarkers is a plain model of a stream of FPDUs with Markers, octet by octet: one at each 512th
// octet, with the place of the FPDU that contains it.
func withMarkers(ulpdus ...[]byte) (stream []byte, ends []int) {
	for _, u := range ulpdus {
		from, start := len(stream), -1
		put := func(octets ...byte) {
			for _, o := range octets {
				if len(stream)%512 == 0 {
					back := 0
					if start >= 0 {
						back = len(stream) - start
					}
					stream = append(stream, 0, 0, byte(back>>8), byte(back))
				}
				if start < 0 {
					start = len(stream)
				}
				stream = append(stream, o)
			}
		}
		plain := fpdu(u)
		put(plain[:len(plain)-crcLen]...)
		if len(stream)%512 == 0 { // what follows the pad belongs to what the CRC covers
			back := len(stream) - start
			stream = append(stream, 0, 0, byte(back>>8), byte(back))
		}
		stream = binary.LittleEndian.AppendUint32(stream, crc32c.Update(0, stream[from:]))
		ends = append(ends, len(stream))
	}
	return stream, ends
}
