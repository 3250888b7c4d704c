package ddpadapt

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// dataPacket is a packet with one DATA chunk.
func dataPacket(id wire.StreamID, ppid uint32, flags uint8, b []byte) rawio.Packet {
	p := wire.AppendHeader(nil, 5000, 6000, 1)
	p = wire.AppendDataHeader(p, wire.DataFields{Flags: flags | wire.FlagB | wire.FlagE, Stream: id, PPID: ppid,
		PayloadLen: len(b)})
	p = append(p, b...)
	return rawio.Packet{Data: append(p, wire.Padding(len(b))...)}
}

// withSSN is a user message with a DDP-SSN in front.
func withSSN(ssn uint16, b ...byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, ssn), b...)
}

// rowEnd is an end with two open sessions, and one that waits for an answer.
type rowEnd struct {
	*end
	peer     *end
	users    []*user
	sessions []*Session
	memory   []byte
	stag     ddp.STag
	verdicts []assoc.Verdict
}

func newRowEnd(t testing.TB) *rowEnd {
	r := &rowEnd{memory: make([]byte, 20_000)}
	r.peer, r.end = newPair(t)
	for range 2 {
		_, s, _, u := connectSession(r.peer, r.end)
		r.sessions, r.users = append(r.sessions, s), append(r.users, u)
	}
	r.stag = must.Get(r.table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(r.memory), Access: ddp.RemoteWrite}))(t).STag()
	must.Do(r.peer.Open(0, -1, r.peer.newStream(1).Stream, nil))(t)
	exchangeAll(r.peer, r.end)
	r.sessions = append(r.sessions, r.expectEvents(EventInitiate)[0].Session)
	r.users = append(r.users, r.newStream(8))
	return r
}

// placePacket gives one packet to Place.
func (r *rowEnd) placePacket(p rawio.Packet) {
	d, ok := wire.LoneData(p.Data)
	must.That(r, ok, "%x has no DATA chunk", p.Data)
	r.verdicts = append(r.verdicts, r.Place(0, d, nil))
}

// writeSegments are the segments of a message from the DDP-SSN on, of so many octets at to.
func (r *rowEnd) writeSegments(id wire.StreamID, ssn uint16, n, step int, to uint64) (list []rawio.Packet) {
	for i := range n {
		h := make([]byte, ddp.TaggedHeaderLen)
		ddp.Tagged{Last: i == n-1, STag: r.stag, TO: to + uint64(i*step)}.Put(h)
		body := bytes.Repeat([]byte{byte(ssn) + byte(i) + 1}, step)
		list = append(list, dataPacket(id, PPIDSegment, wire.FlagU, append(withSSN(ssn+uint16(i), h...), body...)))
	}
	return list
}

// compareWith compares two ends.
func (r *rowEnd) compareWith(other *rowEnd) {
	must.Equal(r, "counters", r.Stats(), other.Stats())
	must.Equal(r, "steps", r.Steps(), other.Steps())
	must.That(r, bytes.Equal(r.memory, other.memory), "the memory differs")
	for i, s := range r.sessions {
		o := other.sessions[i]
		must.Equal(r, "counters of a session", s.stats, o.stats)
		must.That(r, s.state == o.state && s.nextSSN == o.nextSSN && s.stopSSN == o.stopSSN &&
			s.lastSSN == o.lastSSN && s.outOfOrder.numRecords == o.outOfOrder.numRecords,
			"session %d is %v at %d, %d wait, want %v at %d, %d", i, s.state, s.nextSSN, s.outOfOrder.numRecords,
			o.state, o.nextSSN, o.outOfOrder.numRecords)
	}
}

// What PlaceRow does is what Place does for each packet, whatever comes.
func TestRowIsWhatPlaceDoes(t *testing.T) {
	rows := 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(5043, seed))
		one, many := newRowEnd(t), newRowEnd(t)
		must.Equal(t, "STag", many.stag, one.stag)
		wild := 20 << rnd.IntN(5)
		var lists [3][]rawio.Packet
		msn := [3]uint32{}
		for who := range lists {
			ssn, id := one.sessions[who].nextSSN, one.sessions[who].Stream()
			if rnd.IntN(4) == 0 { // the numbers are about to begin again
				ssn = -uint16(1 + rnd.IntN(40))
				one.sessions[who].nextSSN, many.sessions[who].nextSSN = ssn, ssn
			}
			for len(lists[who]) < 100 {
				var more []rawio.Packet
				switch rnd.IntN(12) {
				case 0:
					msn[who]++
					h := make([]byte, ddp.UntaggedHeaderLen)
					ddp.Untagged{Last: true, MSN: msn[who]}.Put(h)
					more = append(more, dataPacket(id, PPIDSegment, wire.FlagU, append(withSSN(ssn, h...), "text"...)))
				case 1:
					if rnd.IntN(20) == 0 {
						more = append(more, dataPacket(id, PPIDControl, wire.FlagU, withSSN(ssn, 0, byte(fnTerminate))))
					}
				default:
					more = one.writeSegments(id, ssn, 1+rnd.IntN(30), 20+rnd.IntN(100),
						uint64(rnd.IntN(len(one.memory)-4000)))
				}
				ssn += uint16(len(more))
				lists[who] = append(lists[who], more...)
			}
			list := lists[who]
			for i := 1; i < len(list); i++ {
				if rnd.IntN(wild) > 0 {
					continue
				}
				p := bytes.Clone(list[i].Data)
				d, _ := wire.LoneData(p)
				switch rnd.IntN(20) {
				case 0:
					p = dataPacket(id, 99, wire.FlagU, d.Payload()).Data
				case 1:
					p = dataPacket(id, PPIDControl, wire.FlagU, d.Payload()).Data
				case 2:
					p = dataPacket(id, PPIDSegment, 0, d.Payload()).Data
				case 3:
					p = dataPacket(id, PPIDSegment, wire.FlagU, d.Payload()[:1+rnd.IntN(3)]).Data
				case 4:
					d.Payload()[1]++
				case 5:
					d.Payload()[ssnLen]++ // the version
				case 6:
					p = dataPacket(wire.StreamID(rnd.IntN(10)), d.PPID(), wire.FlagU, d.Payload()).Data
				case 7:
					p = list[i-1].Data // twice
				case 8:
					if at := i + rnd.IntN(len(list)-i); at > i { // late
						late := list[i]
						copy(list[i:], list[i+1:at+1])
						list[at] = late
					}
					continue
				case 9:
					if at := i + rnd.IntN(len(list)-i); at > i { // early
						early := list[at]
						copy(list[i+1:at+1], list[i:at])
						list[i] = early
					}
					continue
				default:
					at := min(i+1+rnd.IntN(4), len(list)-1)
					list[i], list[at] = list[at], list[i]
					continue
				}
				list[i].Data = p
			}
		}
		for {
			who := rnd.IntN(len(lists))
			if len(lists[0])+len(lists[1])+len(lists[2]) == 0 {
				break
			}
			switch rnd.IntN(100) {
			case 0:
				for _, e := range []*rowEnd{one, many} {
					_ = e.sessions[2].Accept(0, e.users[2].Stream, nil)
				}
			case 1:
				if rnd.IntN(4) == 0 {
					for _, e := range []*rowEnd{one, many} {
						_ = e.sessions[who].Terminate(0)
					}
				}
			case 2:
				if rnd.IntN(10) == 0 {
					one.sessions[who].Abort()
					many.sessions[who].Abort()
				}
			}
			list := lists[who][:min(len(lists[who]), 1+rnd.IntN(20))]
			n := 0
			if len(list) > 1 {
				if n = many.PlaceRow(0, rowOf(list)); n > 0 {
					must.That(t, n > 1 && n <= min(len(list), assoc.RowMost), "seed %d: %d of a row of %d", seed, n,
						len(list))
					rows++
				}
			}
			if n == 0 && len(list) > 0 {
				n = 1
				many.placePacket(list[0])
			} else {
				for range n {
					many.verdicts = append(many.verdicts, assoc.Consumed)
				}
			}
			for _, p := range list[:n] {
				one.placePacket(p)
			}
			lists[who] = lists[who][n:]
			must.Equal(t, "whether there is more to do", many.HandleReceived(0), one.HandleReceived(0))
			many.compareWith(one)
		}
		must.Slice(t, "verdicts", many.verdicts, one.verdicts)
		for i, u := range one.users {
			must.Slice(t, "what a session's user hears", many.users[i].log, u.log)
		}
		for {
			got, ok := many.PollEvent()
			want, more := one.PollEvent()
			must.That(t, ok == more && got.Kind == want.Kind && (got.Err == nil) == (want.Err == nil),
				"seed %d: event %+v, want %+v", seed, got, want)
			if !ok {
				break
			}
			must.Equal(t, "stream of an event", got.Session.Stream(), want.Session.Stream())
		}
		many.checkCounts()
	}
	check.That(t, rows > 1000, "%d rows only", rows)
}

// There is no row where Place has something else to do, and it ends in front of what is not alike.
func TestWhereARowOfPacketsEnds(t *testing.T) {
	for _, row := range []struct {
		name  string
		story func(r *rowEnd, s *Session, list []rawio.Packet) []rawio.Packet
		want  int
	}{
		{"all", func(_ *rowEnd, _ *Session, list []rawio.Packet) []rawio.Packet { return list }, 10},
		{"more than a row has", func(r *rowEnd, s *Session, _ []rawio.Packet) []rawio.Packet {
			return r.writeSegments(s.Stream(), s.nextSSN, 40, 10, 0)
		}, assoc.RowMost},
		{"a row up to the last segment", func(r *rowEnd, s *Session, _ []rawio.Packet) []rawio.Packet {
			return r.writeSegments(s.Stream(), s.nextSSN, 5, 10, 0)
		}, 4},
		{"two", func(_ *rowEnd, _ *Session, list []rawio.Packet) []rawio.Packet { return list[:2] }, 2},
		{"one", func(_ *rowEnd, _ *Session, list []rawio.Packet) []rawio.Packet { return list[:1] }, 0},
		{"ahead", func(_ *rowEnd, _ *Session, list []rawio.Packet) []rawio.Packet { return list[1:] }, 0},
		{"a gap", func(_ *rowEnd, _ *Session, list []rawio.Packet) []rawio.Packet { return append(list[:3], list[4:]...) }, 3},
		{"twice", func(_ *rowEnd, _ *Session, list []rawio.Packet) []rawio.Packet { return append(list[:3], list[2:]...) }, 3},
		{"an empty packet", func(_ *rowEnd, _ *Session, list []rawio.Packet) []rawio.Packet {
			list[4].Data = list[4].Data[:wire.CommonHeaderLen]
			return list
		}, 4},
		{"an empty packet first", func(_ *rowEnd, _ *Session, list []rawio.Packet) []rawio.Packet {
			list[0].Data = list[0].Data[:wire.CommonHeaderLen]
			return list
		}, 0},
		{"one octet", func(_ *rowEnd, s *Session, list []rawio.Packet) []rawio.Packet {
			list[4] = dataPacket(s.Stream(), PPIDSegment, wire.FlagU, []byte{0})
			return list
		}, 4},
		{"a DDP-SSN alone", func(_ *rowEnd, s *Session, list []rawio.Packet) []rawio.Packet {
			list[4] = dataPacket(s.Stream(), PPIDSegment, wire.FlagU, withSSN(s.nextSSN+4))
			return list
		}, 4},
		{"control messages", func(_ *rowEnd, s *Session, list []rawio.Packet) []rawio.Packet {
			for i, p := range list {
				d, _ := wire.LoneData(p.Data)
				list[i] = dataPacket(s.Stream(), PPIDControl, wire.FlagU, d.Payload())
			}
			return list
		}, 0},
		{"no session", func(r *rowEnd, s *Session, _ []rawio.Packet) []rawio.Packet {
			return r.writeSegments(5, s.nextSSN, 10, 10, 0)
		}, 0},
		{"no such stream", func(r *rowEnd, s *Session, _ []rawio.Packet) []rawio.Packet {
			return r.writeSegments(5000, s.nextSSN, 10, 10, 0)
		}, 0},
		{"one that is not accepted", func(r *rowEnd, _ *Session, _ []rawio.Packet) []rawio.Packet {
			return r.writeSegments(r.sessions[2].Stream(), 1, 10, 10, 0)
		}, 0},
		{"aborted", func(_ *rowEnd, s *Session, list []rawio.Packet) []rawio.Packet { s.Abort(); return list }, 0},
		{"the peer has terminated", func(r *rowEnd, s *Session, _ []rawio.Packet) []rawio.Packet {
			r.placePacket(dataPacket(s.Stream(), PPIDControl, wire.FlagU, withSSN(s.nextSSN, 0, byte(fnTerminate))))
			return r.writeSegments(s.Stream(), s.nextSSN, 10, 10, 0)
		}, 0},
		{"this side terminates", func(_ *rowEnd, s *Session, list []rawio.Packet) []rawio.Packet {
			must.OK(t, s.Terminate(0))
			return list
		}, 10},
		{"the end is known", func(_ *rowEnd, s *Session, list []rawio.Packet) []rawio.Packet {
			s.stopSSN = int(s.nextSSN) + 5
			return list
		}, 0},
		{"one waits for its turn", func(r *rowEnd, s *Session, list []rawio.Packet) []rawio.Packet { r.placePacket(list[9]); return list }, 0},
		{"the session waits", func(r *rowEnd, s *Session, list []rawio.Packet) []rawio.Packet {
			r.deliverQueue.push(s)
			return list
		}, 0},
		{"the association has restarted", func(r *rowEnd, _ *Session, list []rawio.Packet) []rawio.Packet { r.a.life++; return list }, 0},
	} {
		r := newRowEnd(t)
		s := r.sessions[0]
		list := row.story(r, s, r.writeSegments(s.Stream(), s.nextSSN, 11, 10, 0)[:10])
		next, steps, all, in := s.nextSSN, r.Steps(), r.Stats().SegmentsIn, s.stats.In
		n := r.PlaceRow(0, rowOf(list))
		check.Equal(t, row.name, n, row.want)
		check.That(t, s.nextSSN-next == uint16(n) && r.Steps()-steps == uint64(n) &&
			r.Stats().SegmentsIn-all == uint64(n) && s.stats.In-in == uint64(n),
			"%s: from %d on to %d, %d counted", row.name, next, s.nextSSN, s.stats.In-in)
		check.That(t, bytes.Equal(r.memory[:10*n], bytes.Join(numberedPatches(byte(next)+1, n), nil)),
			"%s: the memory has %x", row.name, r.memory[:10*n])
	}
	a := &end{TB: t, a: newFake(), Mux: NewMux(newFake(), Config{})}
	check.Equal(t, "a row where DDP is not agreed",
		a.PlaceRow(0, rowOf([]rawio.Packet{dataPacket(0, PPIDSegment, wire.FlagU, withSSN(0, 1))})), 0)
}

// numberedPatches are n times ten octets, each ten with the next number.
func numberedPatches(from byte, n int) (list [][]byte) {
	for i := range n {
		list = append(list, bytes.Repeat([]byte{from + byte(i)}, 10))
	}
	return list
}

func TestRowOfPacketsAllocatesNothing(t *testing.T) {
	r := newRowEnd(t)
	s := r.sessions[0]
	row := rowOf(r.writeSegments(s.Stream(), s.nextSSN, 11, 1000, 0)[:10])
	check.Equal(t, "allocations", testing.AllocsPerRun(100, func() {
		if r.PlaceRow(0, row) != row.Len() {
			t.Fatal("no row")
		}
		s.nextSSN -= 10
	}), 0)
}

// rowOf is packets as an association hands them on.
func rowOf(ps []rawio.Packet) assoc.Row {
	ps = slices.Clone(ps)
	for i := range ps {
		p := &ps[i]
		if p.Data = slices.Clone(p.Data); len(p.Data) > wire.CommonHeaderLen {
			binary.BigEndian.PutUint32(p.Data[wire.CommonHeaderLen+wire.ChunkHeaderLen:], uint32(i))
		}
	}
	row, _ := assoc.MakeRow(ps)
	return row
}
