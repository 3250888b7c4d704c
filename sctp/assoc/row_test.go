package assoc_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// rower is a lab.Placer for rows as well, and sees that they are what is promised.
type rower struct {
	lab.Placer
	testing.TB
	rows, packets int
	meet          func()
}

func (r *rower) PlaceRow(now rawio.Time, row assoc.Row) (n int) {
	must.That(r, row.Len() > 1 && row.Len() <= assoc.RowMost, "a row of %d", row.Len())
	var first wire.Data
	for i := range row.Len() {
		d, ok := row.At(i)
		must.That(r, ok || i > 0, "a row of nothing")
		if !ok {
			break
		}
		must.That(r, d.U() && d.B() && d.E() && !d.I(), "packet %d of a row: %x", i, d)
		if i == 0 {
			first = d
		}
		must.That(r, d.TSN() == first.TSN()+wire.TSN(i) && d.Stream() == first.Stream() && d.PPID() == first.PPID(), "packet %d of a row: %x", i, d)
		if !strings.HasPrefix(string(d.Payload()), "place") {
			break
		}
		r.Place(now, d, nil)
		n++
	}
	if r.meet != nil {
		r.meet()
	}
	r.rows++
	r.packets += n
	return n
}

// stranger is where a peer's address was not told.
var stranger = lab.IPv4[1]

// traffic makes packets of a peer that mostly sends segments of long messages, in order.
type traffic struct {
	*rand.Rand
	tag    uint32
	next   wire.TSN
	stream wire.StreamID
	held   []rawio.Packet // what comes late
	local  rawio.Packet   // what all have: where from, and where to
	second []rawio.Packet // the same by other ways
	n      int
	rough  bool // some are lost, or come again
	within bool // a message of two packets
}

// packet is the next.
func (w *traffic) packet() rawio.Packet {
	if len(w.held) > 0 && w.IntN(8) == 0 {
		p := w.held[0]
		w.held = w.held[1:]
		return p
	}
	w.n++
	p, flags, ppid, chunks, tag, port := w.local, uint8(wire.FlagB|wire.FlagE|wire.FlagU), uint32(7), [][]byte(nil), w.tag, uint16(lab.PortB)
	text, stream, lost := fmt.Sprint("place ", w.n, strings.Repeat("x", w.IntN(6))), w.stream, false
	tsn, whole := w.next, true
	chance := w.IntN(400)
	if !w.rough && chance >= 366 && chance < 376 {
		chance = 0
	}
	switch {
	case w.within:
		flags, text, w.within = wire.FlagE|wire.FlagU, "queue", false
	case chance < 300:
	case chance < 304:
		flags |= wire.FlagI
	case chance < 308:
		flags &^= wire.FlagU
	case chance < 310:
		flags, text, w.within = wire.FlagB|wire.FlagU, "queue "+text, true
	case chance < 314:
		text = "queue"
	case chance < 318:
		text = "drop"
	case chance < 321:
		stream = 77 // there is none
	case chance < 328:
		w.stream = wire.StreamID(w.IntN(3))
		stream = w.stream
	case chance < 334:
		ppid = 9
	case chance < 340:
		chunks = append(chunks, wire.AppendChunk(nil, wire.ChunkHeartbeat, 0, []byte("12345678")))
	case chance < 346:
		p.ECN = rawio.CE
	case chance < 350:
		p.ECN = rawio.ECT0
	case chance < 356:
		tag++
	case chance < 360:
		port++
	case chance < 366 && len(w.second) > 0:
		q := w.second[w.IntN(len(w.second))]
		if p.Local, p.Remote = q.Local, q.Remote; p.Remote != stranger && w.IntN(2) == 0 {
			w.local = q // from now on
		}
	case chance < 370:
		lost = true
	case chance < 374:
		tsn-- // again
	case chance < 376:
		tsn += 5000 // far ahead
	case chance < 380:
		p.Kind = rawio.KindHostUnreachable
	case chance < 384:
		text = ""
		flags = 0
		whole = false
	case chance < 388:
		whole = false
	case chance < 389 && w.n > 2000:
		text = "abort"
	}
	counts := text != "" && text != "drop" && tsn == w.next && tag == w.tag && port == lab.PortB && p.Kind == rawio.KindSCTP && p.Remote != stranger
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: tsn, Stream: stream, SSN: wire.SSN(w.n), PPID: ppid, PayloadLen: len(text)})
	b = append(b, text...)
	if two := counts && flags&wire.FlagE != 0 && w.IntN(60) == 0; two || whole {
		b = append(b, wire.Padding(len(text))...)
		if two {
			chunks = append(chunks, b)
			w.next++
			b = lab.DataChunk(w.next, stream, 0, "place second")
		}
	}
	if text == "" {
		b = wire.AppendChunk(nil, wire.ChunkPad, 0, nil)
	} else if counts {
		w.next++
	}
	p.Data = lab.Packet(lab.PortA, port, tag, append(chunks, b)...)
	if text == "" && w.IntN(2) == 0 {
		p.Data = p.Data[:w.IntN(wire.CommonHeaderLen)]
	}
	if lost {
		w.held = append(w.held, p)
		return w.packet()
	}
	return p
}

// What comes of packets that are handled in rows is what comes of each alone: what is placed, in which order, what is queued, counted, and sent.
func TestPacketsInRowsAreAsOneByOne(t *testing.T) {
	rows, packets := 0, 0
	for seed := range uint64(60) {
		var ends [2]*lab.Lab
		var placers [2]*rower
		for i := range ends {
			switch seed % 3 {
			case 0:
				ends[i] = lab.Passive(t, &assoc.Config{AutoClose: 2 * time.Second})
			case 1:
				ends[i] = lab.TwoPaths(t)
			case 2:
				ends[i] = marksLab(t)
			}
			placers[i] = &rower{TB: t}
		}
		one, many := ends[0], ends[1]
		one.A.SetUpper(&placers[0].Placer, nil)
		many.A.SetUpper(placers[1], nil)
		w := &traffic{Rand: rand.New(rand.NewPCG(9260, seed)), tag: one.Tag, rough: seed%4 == 3, next: one.TSN, local: rawio.Packet{Local: one.Host.Addr, Remote: one.Peer}}
		w.second = []rawio.Packet{{Local: one.Host.Addr, Remote: stranger}, {Local: lab.IPv4[1], Remote: one.Peer}, w.local,
			{Local: one.Host.Addr, Remote: netip.AddrPortFrom(one.Peer.Addr(), 9899)}} // by UDP
		if seed%3 == 1 {
			w.second = append(w.second, rawio.Packet{Local: one.Host.Addr, Remote: lab.Second})
		}
		for round := 0; round < 200 && one.A.State() != assoc.Closed; round++ {
			var batch []rawio.Packet
			for range 1 + w.IntN(24) {
				batch = append(batch, w.packet())
			}
			for i, l := range ends {
				ps := slices.Clone(batch)
				for k := range ps {
					b := rawio.NewBuf(slices.Clone(ps[k].Data))
					ps[k].Data, ps[k].Buf = b.B, b
				}
				for rest := ps; len(rest) > 0; {
					if i == 0 {
						l.A.HandlePacket(l.Now, &rest[0])
						rest = rest[1:]
						continue
					}
					n := l.A.HandlePackets(l.Now, rest)
					must.That(t, n > 0 && n <= len(rest), "%d of %d packets", n, len(rest))
					rest = rest[n:]
				}
				rawio.ReleaseAll(ps)
			}
			if round == 30 && seed%5 == 4 {
				one.A.Shutdown(one.Now)
				many.A.Shutdown(many.Now)
			}
			if w.IntN(4) == 0 {
				crowd := w.IntN(2) == 0
				one.A.Crowd(crowd)
				many.A.Crowd(crowd)
			}
			read, pass := w.IntN(3) == 0, time.Duration(w.IntN(3))*time.Duration(w.IntN(150))*time.Millisecond
			if w.IntN(100) == 0 {
				pass = 3 * time.Second
			}
			var sent, got [2]string
			for i, l := range ends {
				if read {
					got[i] = string(bytes.Join(lab.Drain(l.A), []byte("|")))
				}
				send := func() {
					l.Host.Poll(l.Now, func(_ *assoc.Assoc, p *rawio.Packet) {
						sent[i] += fmt.Sprintf("%v %v %x\n", p.Local, p.Remote, bytes.Join(p.Vec, nil))
					})
				}
				send()
				for end := l.Now.Add(pass); l.A.State() != assoc.Closed; send() {
					if l.Now = min(l.A.NextTimeout(), end); l.Now == end {
						break
					}
					l.A.HandleTimeout(l.Now)
				}
			}
			must.Equal(t, fmt.Sprintf("seed %d, round %d: sent", seed, round), sent[1], sent[0])
			must.Equal(t, "read", got[1], got[0])
			must.Equal(t, "next timeout", many.A.NextTimeout(), one.A.NextTimeout())
			must.Equal(t, "steps", many.A.Steps(), one.A.Steps())
			must.That(t, reflect.DeepEqual(many.A.Stats(), one.A.Stats()), "seed %d, round %d: %+v, want %+v", seed, round, many.A.Stats(), one.A.Stats())
			must.That(t, reflect.DeepEqual(lab.Paths(many.A), lab.Paths(one.A)), "seed %d, round %d: %+v, want %+v", seed, round, lab.Paths(many.A), lab.Paths(one.A))
		}
		check.Slice(t, "what the Placer saw", placers[1].Seen, placers[0].Seen)
		rows += placers[1].rows
		packets += placers[1].packets
	}
	check.That(t, rows > 1000 && packets > 3*rows, "%d packets in %d rows only", packets, rows)
}

// inRow is the script's next n packets, in a row.
func inRow(l *lab.Lab, n int) (ps []rawio.Packet) {
	for range n {
		ps = append(ps, rawio.Packet{Data: lab.Packet(lab.PortA, lab.PortB, l.Tag, l.Data("place")), Local: l.Host.Addr, Remote: l.Peer})
	}
	return ps
}

// A layer above that contradicts itself amid a row ends the association with it.
func TestRowIsTheLastOfABrokenAssociation(t *testing.T) {
	l := lab.Passive(t, nil)
	p := &rower{TB: t}
	l.A.SetUpper(p, nil)
	row := func() []rawio.Packet { return inRow(l, 4) }
	first := row()
	l.A.HandlePacket(l.Now, &first[0])
	check.Equal(t, "packets handled", l.A.HandlePackets(l.Now, first[1:]), 3)
	p.meet = func() { l.A.Break(&assoc.InternalError{}) }
	check.Equal(t, "packets handled", l.A.HandlePackets(l.Now, row()), 4)
	l.InState(assoc.Closed)
	check.Equal(t, "packets handled by one that has ended", l.A.HandlePackets(l.Now, row()), 1)
	check.Equal(t, "rows", p.rows, 2)

	l = lab.Passive(t, nil)
	l.A.SetUpper(p, nil)
	l.A.HandlePacket(l.Now, &row()[0])
	l.TSN -= 3
	l.A.Break(&assoc.InternalError{})
	check.Equal(t, "packets handled by one that is to end", l.A.HandlePackets(l.Now, row()), 1)
	check.Equal(t, "rows", p.rows, 2)
}

// rowOf has an association that has had its first DATA, and packets in a row, which next gives the TSNs that are next.
func rowOf(t testing.TB) (a *assoc.Assoc, now rawio.Time, ps []rawio.Packet, next func()) {
	l := lab.Passive(t, nil)
	l.A.SetUpper(allPlaced{}, nil)
	l.Send(l.Tag, l.Data("first"))
	tsn := l.TSN
	ps = inRow(l, assoc.RowMost)
	return l.A, l.Now, ps, func() {
		for i := range ps {
			binary.BigEndian.PutUint32(ps[i].Data[wire.CommonHeaderLen+wire.ChunkHeaderLen:], uint32(tsn))
			tsn++
		}
	}
}

// A row allocates nothing.
func TestRowAllocatesNothing(t *testing.T) {
	a, now, ps, next := rowOf(t)
	check.Equal(t, "allocations", testing.AllocsPerRun(100, func() {
		next()
		must.Equal(t, "packets handled", a.HandlePackets(now, ps), len(ps))
	}), 0.0)
}

// What a packet with one DATA chunk takes, alone and in a row, without its payload.
func BenchmarkPackets(b *testing.B) {
	for _, row := range []struct {
		name string
		most int
	}{{"alone", 1}, {"row", assoc.RowMost}} {
		b.Run(row.name, func(b *testing.B) {
			a, now, ps, next := rowOf(b)
			for i := 0; i < b.N; i += len(ps) {
				next()
				for rest := ps; len(rest) > 0; rest = rest[a.HandlePackets(now, rest[:min(row.most, len(rest))]):] {
				}
			}
		})
	}
}

// allPlaced takes everything.
type allPlaced struct{}

func (allPlaced) Place(rawio.Time, wire.Data, *rawio.Buf) assoc.Verdict { return assoc.Consumed }

func (allPlaced) PlaceRow(_ rawio.Time, row assoc.Row) (n int) {
	for ; n < row.Len(); n++ {
		if _, ok := row.At(n); !ok {
			break
		}
	}
	return n
}

// A peer that has just sent a row speaks SCTP, whatever an ICMP report says.
func TestRowIsHeard(t *testing.T) {
	l := lab.Passive(t, nil)
	l.A.SetUpper(allPlaced{}, nil)
	l.A.HandlePacket(l.Now, &inRow(l, 3)[0])
	l.TSN -= 2
	l.Now = l.Now.Add(time.Minute)
	must.Equal(t, "packets handled", l.A.HandlePackets(l.Now, inRow(l, 3)), 3)
	l.Report(rawio.KindProtoUnreachable, 0, lab.Packet(lab.PortB, lab.PortA, l.PeerTag))
	l.InState(assoc.Established)
	check.Equal(t, "reports contradicted", l.A.Stats().ICMPContradicted, 1)
}
