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

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// rower is a sctptest.Placer for rows as well, and sees that they are what is promised.
type rower struct {
	sctptest.Placer
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
		must.That(r, d.TSN() == first.TSN()+wire.TSN(i) && d.Stream() == first.Stream() && d.PPID() == first.PPID(),
			"packet %d of a row: %x", i, d)
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
var stranger = sctptest.IPv4[1]

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

// latePacket returns one of those that come late, now and then.
func (w *traffic) latePacket() (p rawio.Packet, ok bool) {
	if len(w.held) == 0 || w.IntN(8) > 0 {
		return p, false
	}
	p, w.held = w.held[0], w.held[1:]
	return p, true
}

// takeDetour has a packet go another way.
func (w *traffic) takeDetour(p *rawio.Packet) {
	q := w.second[w.IntN(len(w.second))]
	if p.Local, p.Remote = q.Local, q.Remote; p.Remote != stranger && w.IntN(2) == 0 {
		w.local = q // from now on
	}
}

// nextPacket is the next.
func (w *traffic) nextPacket() rawio.Packet {
	if p, ok := w.latePacket(); ok {
		return p
	}
	w.n++
	p, flags, ppid, chunks, tag, port := w.local, uint8(wire.FlagB|wire.FlagE|wire.FlagU), uint32(7), [][]byte(nil),
		w.tag, uint16(sctptest.PortB)
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
		w.takeDetour(&p)
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
	counts := text != "" && text != "drop" && tsn == w.next && tag == w.tag && port == sctptest.PortB &&
		p.Kind == rawio.KindSCTP && p.Remote != stranger
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: tsn, Stream: stream, SSN: wire.SSN(w.n),
		PPID: ppid, PayloadLen: len(text)})
	b = append(b, text...)
	if two := counts && flags&wire.FlagE != 0 && w.IntN(60) == 0; two || whole {
		b = append(b, wire.Padding(len(text))...)
		if two {
			chunks = append(chunks, b)
			w.next++
			b = sctptest.DataChunk(w.next, stream, 0, "place second")
		}
	}
	if text == "" {
		b = wire.AppendChunk(nil, wire.ChunkPad, 0, nil)
	} else if counts {
		w.next++
	}
	p.Data = sctptest.Packet(sctptest.PortA, port, tag, append(chunks, b)...)
	if text == "" && w.IntN(2) == 0 {
		p.Data = p.Data[:w.IntN(wire.CommonHeaderLen)]
	}
	if lost {
		w.held = append(w.held, p)
		return w.nextPacket()
	}
	return p
}

// packetWays are those that packets may come by, or seem to, the first of a stranger.
func packetWays(l *sctptest.Lab, two bool) []rawio.Packet {
	w := []rawio.Packet{{Local: l.Host.Addr, Remote: stranger}, {Local: sctptest.IPv4[1], Remote: l.Peer},
		{Local: l.Host.Addr, Remote: l.Peer},
		{Local: l.Host.Addr, Remote: netip.AddrPortFrom(l.Peer.Addr(), 9899)}} // by UDP
	if two {
		w = append(w, rawio.Packet{Local: l.Host.Addr, Remote: sctptest.Second})
	}
	return w
}

// inStep gives packets to two associations, to the second of them in rows, and sees that all that
// comes of them is the same. It returns how many came in how many rows.
func inStep(t *testing.T, seed uint64, ends [2]*sctptest.Lab, rnd *rand.Rand, next func() rawio.Packet) (rows,
	packets int) {
	t.Helper()
	one, many := ends[0], ends[1]
	for round := 0; round < 200 && one.A.State() != assoc.Closed; round++ {
		var batch []rawio.Packet
		for range 1 + rnd.IntN(24) {
			batch = append(batch, next())
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
				if n == 0 && l.A.State() == assoc.Closed {
					break
				}
				must.That(t, n > 0 && n <= len(rest), "%d of %d packets", n, len(rest))
				if n > 1 {
					rows++
					packets += n
				}
				rest = rest[n:]
			}
			rawio.ReleaseAll(ps)
		}
		if round == 30 && seed%5 == 4 {
			one.A.Shutdown(one.Now)
			many.A.Shutdown(many.Now)
		}
		if rnd.IntN(4) == 0 {
			crowd := rnd.IntN(2) == 0
			one.A.SetCrowded(crowd)
			many.A.SetCrowded(crowd)
		}
		read, pass := rnd.IntN(3) == 0, time.Duration(rnd.IntN(3))*time.Duration(rnd.IntN(150))*time.Millisecond
		if rnd.IntN(100) == 0 {
			pass = 3 * time.Second
		}
		var sent, got [2]string
		for i, l := range ends {
			if read {
				got[i] = string(bytes.Join(sctptest.Drain(l.A), []byte("|")))
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
		must.That(t, reflect.DeepEqual(many.A.Stats(), one.A.Stats()), "seed %d, round %d: %+v, want %+v", seed,
			round, many.A.Stats(), one.A.Stats())
		must.That(t, reflect.DeepEqual(sctptest.Paths(many.A), sctptest.Paths(one.A)),
			"seed %d, round %d: %+v, want %+v", seed, round, sctptest.Paths(many.A), sctptest.Paths(one.A))
	}
	return rows, packets
}

// rowSeeds is how many random peers are tried: each kind of peer and of traffic comes up among
// twelve.
func rowSeeds() int {
	if testing.Short() {
		return 12
	}
	return 60
}

// What comes of packets that are handled in rows is what comes of each alone: what is placed, in
// which order, what is queued, counted, and sent.
func TestPacketsInRowsAreAsOneByOne(t *testing.T) {
	rows, packets, seeds := 0, 0, rowSeeds()
	for seed := range uint64(seeds) {
		var ends [2]*sctptest.Lab
		var placers [2]*rower
		for i := range ends {
			switch seed % 3 {
			case 0:
				ends[i] = sctptest.Passive(t, &assoc.Config{AutoClose: 2 * time.Second})
			case 1:
				ends[i] = sctptest.TwoPaths(t)
			case 2:
				ends[i] = marksLab(t)
			}
			placers[i] = &rower{TB: t}
		}
		one, many := ends[0], ends[1]
		one.A.SetUpper(&placers[0].Placer, nil)
		many.A.SetUpper(placers[1], nil)
		w := &traffic{Rand: rand.New(rand.NewPCG(9260, seed)), tag: one.Tag, rough: seed%4 == 3, next: one.TSN,
			local: rawio.Packet{Local: one.Host.Addr, Remote: one.Peer}}
		w.second = packetWays(one, seed%3 == 1)
		inStep(t, seed, ends, w.Rand, w.nextPacket)
		check.Slice(t, "what the Placer saw", placers[1].Seen, placers[0].Seen)
		rows += placers[1].rows
		packets += placers[1].packets
	}
	check.That(t, rows > 16*seeds && packets > 3*rows, "%d packets in %d rows only", packets, rows)
}

// fragments makes packets of a peer that sends long messages in fragments.
type fragments struct {
	traffic
	ssn   [3]wire.SSN
	left  int // fragments of the message that are to come
	id    wire.StreamID
	flags uint8
	text  string
	ppid  uint32
}

func (w *fragments) nextPacket() rawio.Packet {
	if p, ok := w.latePacket(); ok {
		return p
	}
	w.n++
	if w.left == 0 {
		if w.flags&wire.FlagU == 0 {
			w.ssn[w.id]++ // that of before
		}
		w.left, w.id, w.text, w.ppid = 1+w.IntN(100), wire.StreamID(w.IntN(3)), strings.Repeat("y", 1+w.IntN(60)),
			7+uint32(w.IntN(2))
		w.flags = wire.FlagB | uint8(w.IntN(2))*wire.FlagU
	}
	p, flags, text, stream, ssn, ppid, tsn, tag, port, lost := w.local, w.flags, w.text, w.id, w.ssn[w.id], w.ppid,
		w.next, w.tag, uint16(sctptest.PortB), false
	if w.left == 1 {
		flags |= wire.FlagE
	}
	var more [][]byte
	chance := w.IntN(1000)
	if chance < 20 && (!w.rough || w.n%1600 > 300) {
		chance = 999
	}
	switch {
	case chance < 10:
		lost = true
	case chance < 15:
		tsn-- // again
	case chance < 17:
		tsn += 5000 // far ahead
	case chance < 30:
	case chance < 40:
		flags |= wire.FlagI
	case chance < 45:
		more = append(more, wire.AppendChunk(nil, wire.ChunkHeartbeat, 0, []byte("12345678")))
	case chance < 50:
		p.ECN = rawio.CE
	case chance < 55:
		p.ECN = rawio.ECT0
	case chance < 60:
		tag++
	case chance < 65:
		port++
	case chance < 70:
		p.Kind = rawio.KindHostUnreachable
	case chance < 80 && len(w.second) > 0:
		w.takeDetour(&p)
	case chance < 90:
		text = text[:1+w.IntN(len(text))]
	case chance < 95:
		w.text = strings.Repeat("z", 1+w.IntN(60))
	case chance < 105:
		ppid++
	case chance < 107 && w.n > 1000: // the last of it
		switch w.IntN(5) {
		case 0:
			ssn++
		case 1:
			stream = (stream + 1) % 3
		case 2:
			flags ^= wire.FlagU
		case 3:
			flags ^= wire.FlagB
		case 4:
			stream = 77 // there is none
		}
	}
	counts := tsn == w.next && tag == w.tag && port == sctptest.PortB && p.Kind == rawio.KindSCTP &&
		p.Remote != stranger
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: tsn, Stream: stream, SSN: ssn, PPID: ppid,
		PayloadLen: len(text)})
	b = append(append(b, text...), wire.Padding(len(text))...)
	p.Data = sctptest.Packet(sctptest.PortA, port, tag, append(more, b)...)
	if counts {
		w.next++
		w.left--
		w.flags &^= wire.FlagB
	}
	if lost {
		w.held = append(w.held, p)
		return w.nextPacket()
	}
	return p
}

// plainPlacer is a sctptest.Placer for no rows.
type plainPlacer struct{ sctptest.Placer }

// What comes of fragments that are queued in rows is what comes of each alone. There are rows where
// nothing is placed, and only there.
func TestFragmentsInRowsAreAsOneByOne(t *testing.T) {
	rows, packets, aborted, seeds := 0, 0, 0, rowSeeds()
	for seed := range uint64(seeds) {
		var ends [2]*sctptest.Lab
		for i := range ends {
			switch seed % 5 {
			case 0:
				ends[i] = sctptest.Passive(t, &assoc.Config{AutoClose: 2 * time.Second})
			case 1:
				ends[i] = sctptest.TwoPaths(t)
			case 2:
				ends[i] = marksLab(t)
			case 3:
				ends[i] = sctptest.Passive(t, &assoc.Config{RecvBuffer: 4000})
			case 4:
				ends[i] = sctptest.Passive(t, &assoc.Config{RecvBuffer: 8000, PartialDelivery: 900, MaxMessage: 5700})
			}
			switch seed % 7 {
			case 5:
				ends[i].A.SetUpper(new(plainPlacer), nil)
			case 6:
				ends[i].A.SetUpper(&rower{TB: t}, nil)
			}
		}
		l := ends[0]
		w := &fragments{traffic: traffic{Rand: rand.New(rand.NewPCG(6581, seed)), tag: l.Tag, rough: seed%4 == 3,
			next: l.TSN, local: rawio.Packet{Local: l.Host.Addr, Remote: l.Peer}}, flags: wire.FlagU}
		w.second = packetWays(l, seed%5 == 1)
		r, n := inStep(t, seed, ends, w.Rand, w.nextPacket)
		if seed%7 >= 5 {
			check.That(t, r == 0, "seed %d: %d rows of fragments to a Placer", seed, r)
		} else {
			check.Equal(t, "placed", ends[1].A.Stats().Placed, 0)
		}
		if ends[1].A.Stats().Violations > 0 {
			aborted++
		}
		rows += r
		packets += n
	}
	check.That(t, rows > 16*seeds && packets > 3*rows && aborted > seeds/12,
		"%d packets in %d rows only, %d associations aborted", packets, rows, aborted)
}

// inRow is the script's next n packets, in a row.
func inRow(l *sctptest.Lab, n int) (ps []rawio.Packet) {
	for range n {
		ps = append(ps, rawio.Packet{Data: sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, l.Data("place")),
			Local: l.Host.Addr, Remote: l.Peer})
	}
	return ps
}

// Fragments in the middle of a message, ordered or not, are queued in a row up to the last of them,
// each in its own buffer, and none counts as placed.
func TestFragmentsInARow(t *testing.T) {
	for _, flags := range []uint8{0, wire.FlagU} {
		l := sctptest.Passive(t, nil)
		begin := l.Data("begins ")
		begin[1] = wire.FlagB | flags
		l.Send(l.Tag, begin)
		ps := inRow(l, 5)
		for i := range ps {
			ps[i].Data[wire.CommonHeaderLen+1] = flags
			ps[i].Buf = rawio.NewBuf(make([]byte, 4*len("place"))) // so short that the payload stays in it
		}
		must.Equal(t, "packets handled", l.A.HandlePackets(l.Now, ps), len(ps))
		for i := range ps {
			check.Equal(t, fmt.Sprintf("references to buffer %d of what is queued", i), ps[i].Buf.Refs(), 2)
		}
		check.Equal(t, "placed", l.A.Stats().Placed, 0)
		end := l.Data(" ends")
		end[1] = wire.FlagE | flags
		l.Send(l.Tag, end)
		check.Equal(t, "read", string(bytes.Join(sctptest.Drain(l.A), []byte("|"))),
			"begins "+strings.Repeat("place", len(ps))+" ends")
		for i := range ps {
			check.Equal(t, fmt.Sprintf("references to buffer %d of what is read", i), ps[i].Buf.Refs(), 1)
		}
	}
}

// To a Placer that is none for rows each packet is given alone.
func TestNoRowForAPlacerOfPackets(t *testing.T) {
	l := sctptest.Passive(t, nil)
	p := new(plainPlacer)
	l.A.SetUpper(p, nil)
	l.Send(l.Tag, l.Data("place"))
	for rest := inRow(l, 3); len(rest) > 0; rest = rest[1:] {
		must.Equal(t, "packets handled", l.A.HandlePackets(l.Now, rest), 1)
	}
	check.Equal(t, "packets seen", len(p.Seen), 4)
}

// A layer above that contradicts itself within a row ends the association with it.
func TestRowIsTheLastOfABrokenAssociation(t *testing.T) {
	l := sctptest.Passive(t, nil)
	p := &rower{TB: t}
	l.A.SetUpper(p, nil)
	row := func() []rawio.Packet { return inRow(l, 4) }
	first := row()
	l.A.HandlePacket(l.Now, &first[0])
	check.Equal(t, "packets handled", l.A.HandlePackets(l.Now, first[1:]), 3)
	p.meet = func() { l.A.Break(&assoc.InternalError{}) }
	check.Equal(t, "packets handled", l.A.HandlePackets(l.Now, row()), 4)
	l.InState(assoc.Closed)
	check.Equal(t, "packets handled by one that has ended", l.A.HandlePackets(l.Now, row()), 0)
	check.Equal(t, "rows", p.rows, 2)

	l = sctptest.Passive(t, nil)
	l.A.SetUpper(p, nil)
	l.A.HandlePacket(l.Now, &row()[0])
	l.TSN -= 3
	l.A.Break(&assoc.InternalError{})
	check.Equal(t, "packets handled by one that is to end", l.A.HandlePackets(l.Now, row()), 1)
	check.Equal(t, "rows", p.rows, 2)
}

// rowOf has an association that has had its first DATA, and packets in a row, which next gives the
// TSNs that are next: whole messages that are placed, or fragments of one that are queued, and read
// when the last of them, which comes alone, makes a piece of the message.
func rowOf(t testing.TB, queued bool) (a *assoc.Assoc, now rawio.Time, ps []rawio.Packet, next func()) {
	const piece = len("place") * assoc.RowMost
	first, flags := uint8(wire.FlagB|wire.FlagE|wire.FlagU), uint8(wire.FlagB|wire.FlagE|wire.FlagU)
	l := sctptest.Passive(t, &assoc.Config{PartialDelivery: piece - 1})
	if queued {
		first, flags = wire.FlagB, 0
	} else {
		l.A.SetUpper(allPlaced{}, nil)
	}
	data := l.Data(strings.Repeat("x", piece))
	data[1] = first
	l.Send(l.Tag, data)
	tsn := l.TSN
	ps = inRow(l, assoc.RowMost)
	for i := range ps {
		ps[i].Data[wire.CommonHeaderLen+1] = flags
	}
	return l.A, l.Now, ps, func() {
		for m, ok := l.A.Receive(); ok; m, ok = l.A.Receive() {
			l.A.Release(m)
		}
		for i := range ps {
			binary.BigEndian.PutUint32(ps[i].Data[wire.CommonHeaderLen+wire.ChunkHeaderLen:], uint32(tsn))
			tsn++
		}
	}
}

// A row allocates nothing, but memory for what is queued, which is used again when that was read.
func TestRowAllocatesNothing(t *testing.T) {
	for _, queued := range []bool{false, true} {
		a, now, ps, next := rowOf(t, queued)
		want := len(ps)
		if queued {
			want--
		}
		handle := func() {
			next()
			must.Equal(t, "packets handled", a.HandlePackets(now, ps), want)
			for i := want; i < len(ps); i++ {
				a.HandlePacket(now, &ps[i])
			}
		}
		handle() // so that there is memory to be used again
		check.Equal(t, "allocations", testing.AllocsPerRun(100, handle), 0.0)
	}
}

// What a packet with one DATA chunk takes, alone and in a row, without its payload.
func BenchmarkPackets(b *testing.B) {
	for _, row := range []struct {
		name   string
		most   int
		queued bool
	}{{"alone", 1, false}, {"row", assoc.RowMost, false}, {"queued alone", 1, true},
		{"queued row", assoc.RowMost, true}} {
		b.Run(row.name, func(b *testing.B) {
			a, now, ps, next := rowOf(b, row.queued)
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
	l := sctptest.Passive(t, nil)
	l.A.SetUpper(allPlaced{}, nil)
	l.A.HandlePacket(l.Now, &inRow(l, 3)[0])
	l.TSN -= 2
	l.Now = l.Now.Add(time.Minute)
	must.Equal(t, "packets handled", l.A.HandlePackets(l.Now, inRow(l, 3)), 3)
	l.Report(rawio.KindProtoUnreachable, 0, sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag))
	l.InState(assoc.Established)
	check.Equal(t, "reports contradicted", l.A.Stats().ICMPContradicted, 1)
}

// The SACK that a row leaves to its timer waits for the round trip that is known when the row
// comes, as that of a single packet does.
func TestSackOfARowWaitsForARoundTripAtMost(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	begin := l.Data("begins ")
	begin[1] = wire.FlagB
	l.Send(l.Tag, begin) // no round trip is known
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{{1}}}))
	l.Flush()
	l.Now = l.Now.Add(3 * time.Millisecond)
	l.Send(l.Tag, l.Sack(l.HostTSN))
	ps := inRow(l, 2)
	for i := range ps {
		ps[i].Data[wire.CommonHeaderLen+1] = uint8(i) * wire.FlagE // the second is of no row
		ps[i].Buf = rawio.NewBuf(make([]byte, 4*len("place")))
	}
	must.Equal(t, "packets handled", l.A.HandlePackets(l.Now, ps), 1)
	l.Flush()
	early, late := l.Wait(25*time.Millisecond-1), l.Wait(1)
	l.Expect(early, "")
	l.Expect(late, "SACK")
}
