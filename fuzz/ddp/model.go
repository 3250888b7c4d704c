// Package ddp fuzzes package ddp: placement of arbitrary segments checked octet by octet against a
// model, whole transfers, and the STag table under arbitrary commands.
package ddp

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
)

// area is a registered region as the model sees it.
type area struct {
	spec   ddp.Spec
	region *ddp.Region
	start  int // in the arena
	size   int
	valid  bool
}

// buffer is a posted receive buffer: the arena octets of its pieces, in order.
type buffer []int

// model says what Place and Deliver must do, in the plainest way: one octet at a time and with
// numbers that cannot wrap.
type model struct {
	arena  [1024]byte
	areas  []area
	posted map[uint32]buffer // by MSN, queue 0
	next   uint32            // MSN
	come   [256]bool         // octets of its message that were delivered, by MO
}

// placeSegment applies a segment and returns the error type and code it must meet, or ok.
func (m *model) placeSegment(seg []byte) (typ ddp.ErrorType, code uint8, ok bool) {
	if len(seg) == 0 || seg[0]&3 != 1 {
		if len(seg) > 0 && seg[0]&0x80 != 0 {
			return ddp.TypeTagged, ddp.CodeTaggedVersion, false
		}
		return ddp.TypeUntagged, ddp.CodeUntaggedVersion, false
	}
	if seg[0]&0x80 != 0 {
		code, ok = m.placeTagged(seg)
		return ddp.TypeTagged, code, ok
	}
	code, ok = m.placeUntagged(seg)
	return ddp.TypeUntagged, code, ok
}

func (m *model) placeTagged(seg []byte) (uint8, bool) {
	if len(seg) < 14 {
		return ddp.CodeInvalidSTag, false
	}
	tag, to, p := binary.BigEndian.Uint32(seg[2:]), binary.BigEndian.Uint64(seg[6:]), seg[14:]
	if len(p) == 0 {
		return 0, true
	}
	for _, a := range m.areas {
		if uint32(a.region.STag()) != tag || !a.valid {
			continue
		}
		if a.spec.PD != pd || a.spec.Scope != 0 && a.spec.Scope != streamID {
			return ddp.CodeNotAssociated, false
		}
		if a.spec.Access&ddp.RemoteWrite == 0 {
			return ddp.CodeInvalidSTag, false
		}
		if to > math.MaxUint64-uint64(len(p)) {
			return ddp.CodeTOWrap, false
		}
		for i := range p {
			if at := to + uint64(i); at < a.spec.Base || at >= a.spec.Base+uint64(a.size) {
				return ddp.CodeBaseBounds, false
			}
		}
		copy(m.arena[a.start+int(to-a.spec.Base):], p)
		return 0, true
	}
	return ddp.CodeInvalidSTag, false
}

func (m *model) placeUntagged(seg []byte) (uint8, bool) {
	if len(seg) < 18 {
		return ddp.CodeInvalidQN, false
	}
	qn, msn := binary.BigEndian.Uint32(seg[6:]), binary.BigEndian.Uint32(seg[10:])
	mo, p := uint64(binary.BigEndian.Uint32(seg[14:])), seg[18:]
	if qn > 1 {
		return ddp.CodeInvalidQN, false
	}
	next, buf, found := m.next, m.posted[msn], false
	if qn == 1 { // a queue that never has a buffer
		next = 1
	} else {
		_, found = m.posted[msn]
	}
	switch {
	case msn-next > math.MaxInt32:
		return ddp.CodeMSNRange, false
	case !found:
		return ddp.CodeNoBuffer, false
	case mo > uint64(len(buf)) || mo == uint64(len(buf)) && len(p) > 0:
		return ddp.CodeInvalidMO, false
	case mo+uint64(len(p)) > uint64(len(buf)):
		return ddp.CodeTooLong, false
	}
	for i, c := range p {
		m.arena[buf[mo+uint64(i)]] = c
	}
	return 0, true
}

// deliverSegment returns whether the delivery of a placed untagged segment is a fault.
func (m *model) deliverSegment(seg []byte) (fault bool) {
	if seg[0]&0x80 != 0 {
		return false
	}
	msn, last := binary.BigEndian.Uint32(seg[10:]), seg[0]&0x40 != 0
	mo, p := int(binary.BigEndian.Uint32(seg[14:])), seg[18:]
	if msn-m.next > math.MaxInt32 || last && msn != m.next {
		return true
	}
	if msn != m.next {
		return false
	}
	for i := range p {
		m.come[mo+i] = true
	}
	runs := 0
	for i := 1; i < len(m.come); i++ {
		if m.come[i] && !m.come[i-1] {
			runs++
		}
	}
	if runs > 8 {
		return true
	}
	if last {
		for _, there := range m.come[:mo+len(p)] {
			if !there {
				return true
			}
		}
		delete(m.posted, msn)
		m.next++
		m.come = [256]bool{}
	}
	return false
}

const (
	pd       ddp.PD       = 3
	streamID ddp.StreamID = 4
)

// streamUnderTest is the stream under test over the real arena, and its ULP.
type streamUnderTest struct {
	model
	real   [1024]byte
	stream *ddp.Stream
	queue  *ddp.Queue
	fault  *ddp.Error
}

func (w *streamUnderTest) AdmitTagged(uint8, *ddp.Region, ddp.STag, uint64, int) (ddp.Access, *ddp.Error) {
	return ddp.RemoteWrite, nil
}

func (w *streamUnderTest) Buffer(qn, msn uint32, _ [5]byte) (*ddp.RecvBuffer, uint8) {
	if qn == 1 {
		return nil, ddp.CodeNoBuffer
	}
	return w.queue.Lookup(msn)
}

func (w *streamUnderTest) DeliverTagged(uint8, ddp.STag, uint64, uint64) {}

func (w *streamUnderTest) DeliverUntagged(qn, msn uint32, rsvd [5]byte, length uint32, b *ddp.RecvBuffer) {
	w.queue.Pop()
}

func (w *streamUnderTest) Completed(uint64) {}

func (w *streamUnderTest) Failed(uint64, error) {}

func (w *streamUnderTest) Drained() {}

func (w *streamUnderTest) PeerClosed() {}

func (w *streamUnderTest) Fatal(err *ddp.Error) { w.fault = err }

type idleLower struct{}

func (idleLower) MULPDU() int { return 1500 }

func (idleLower) Ready() {}

func (idleLower) Finish() {}

func (idleLower) Abort() {}

func newWorld(t *testing.T) *streamUnderTest {
	w := &streamUnderTest{queue: ddp.NewQueue(4)}
	w.next, w.posted = 1, map[uint32]buffer{}
	table := ddp.NewTable(bytes.NewReader([]byte("sixteen octets!!")))
	start := 16
	for _, s := range []ddp.Spec{
		{PD: pd, Base: 1 << 32, Access: ddp.RemoteWrite},
		{PD: pd, Access: ddp.RemoteWrite | ddp.RemoteRead, Scope: streamID},
		{PD: pd, Base: math.MaxUint64 - 64, Access: ddp.RemoteWrite},
		{PD: pd, Base: 5, Access: ddp.RemoteRead | ddp.LocalWrite},
		{PD: pd + 1, Base: 5, Access: ddp.RemoteWrite},
		{PD: pd, Base: 5, Access: ddp.RemoteWrite, Scope: streamID + 1},
	} {
		const size = 64
		s.Mem = ddp.Bytes(w.real[start : start+size])
		r, err := table.Register(s)
		if err != nil {
			t.Fatal(err)
		}
		w.areas = append(w.areas, area{spec: s, region: r, start: start, size: size, valid: true})
		start += size + 16
	}
	for msn := uint32(1); msn <= 4; msn++ {
		var b buffer
		var g ddp.Gather
		for _, n := range []int{1, 30 - 5*int(msn), 0, 9} {
			g = append(g, ddp.Piece{Mem: ddp.Bytes(w.real[:]), Off: uint64(start), Len: uint64(n)})
			for i := range n {
				b = append(b, start+i)
			}
			start += n + 3
		}
		rb, err := ddp.MakeRecvBuffer(g, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.queue.Post(rb); err != nil {
			t.Fatal(err)
		}
		w.posted[msn] = b
	}
	w.stream = ddp.NewStream(ddp.StreamConfig{ID: streamID, PD: pd, Table: table, ULP: w, Queues: 2})
	w.stream.Attach(idleLower{})
	return w
}

// makeSegment makes a segment that is near to a valid one, or any octets at all.
func (w *streamUnderTest) makeSegment(s *fuzzinput.Script, serial byte) []byte {
	kind, control := s.Byte(), s.Byte()
	payload := bytes.Repeat([]byte{serial | 0x80}, int(s.Byte())%80)
	var b [ddp.MaxHeaderLen]byte
	switch kind % 4 {
	case 0, 1:
		a := w.areas[int(s.Byte())%len(w.areas)]
		h := ddp.Tagged{STag: a.region.STag(), TO: a.spec.Base + uint64(int16(s.Next16())>>6)}
		n := h.Put(b[:])
		b[0] ^= control &^ 0x80
		return append(b[:n], payload...)
	case 2:
		h := ddp.Untagged{QN: uint32(s.Byte()) % 3, MSN: w.model.next + uint32(int8(s.Byte())>>4),
			MO: uint32(s.Byte()) % 48}
		n := h.Put(b[:])
		b[0] ^= control &^ 0x80
		return append(b[:n], payload...)
	}
	raw := (*s)[:min(len(*s), int(control))]
	*s = (*s)[len(raw):]
	return raw
}
