package defrag

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

// command is one fragment in FuzzAssembler, and how long after the one before it comes.
type command struct {
	what   byte // 2 bits source, 2 bits ECN, last, other octets
	id     byte
	at     uint16 // in units of 8 octets
	length uint16
	wait   byte // in units of 250 ms
}

const commandLen = 7

func (c command) put(b []byte) []byte {
	b = append(b, c.what, c.id)
	b = binary.BigEndian.AppendUint16(b, c.at)
	return append(binary.BigEndian.AppendUint16(b, c.length), c.wait)
}

// fragment is what c says, as iphdr.Parse would have returned it.
func (c command) fragment() (f iphdr.Packet, ok bool) {
	src := [4]netip.Addr{peer4, peer6, netip.MustParseAddr("198.51.100.3"), netip.MustParseAddr("2001:db8::3")}[c.what&3]
	f = part(uint32(c.id), 0, 0, c.what>>4&1 == 0)
	f.Src, f.ECN, f.Offset = src, c.what>>2&3, int(c.at&0x1fff)*8
	n := int(c.length)
	if f.More {
		n &^= 7
	}
	if n == 0 || f.Offset+n > 65535 || f.Offset == 0 && !f.More {
		return f, false
	}
	f.Payload = patterns[c.what>>5&1][f.Offset:][:n]
	return f, true
}

var patterns = [2][]byte{pattern(0, 1<<16), pattern(1, 1<<16)}

// FuzzAssembler gives an Assembler any fragments, and compares what comes out and what is counted with a model that does the
// same in the plainest way; what waits keeps the limits.
//
//fuzz:covers ./rawio/internal/defrag
func FuzzAssembler(f *testing.F) {
	train := func(what, id byte, size, step int, order func([]command)) (b []byte) {
		var list []command
		for at := 0; at < size; at += step {
			c := command{what, id, uint16(at / 8), uint16(min(step, size-at)), 1}
			if at+step >= size {
				c.what |= 1 << 4
			}
			list = append(list, c)
		}
		order(list)
		for _, c := range list {
			b = c.put(b)
		}
		return b
	}
	asIs := func([]command) {}
	f.Add(train(2<<2, 1, 3000, 1232, asIs))
	f.Add(train(3<<2|1, 1, 65535, 8192, slices.Reverse[[]command]))
	f.Add(append(train(2<<2, 1, 3000, 1232, asIs), train(2<<2, 1, 3000, 1200, asIs)...))
	f.Add(slices.Concat(train(2<<2, 1, 2000, 1232, asIs)[:commandLen], train(1<<5, 1, 2000, 1232, asIs), train(0, 1, 2000, 600, asIs)))
	f.Add(train(1, 9, 2000, 8, asIs)) // more fragments than a packet may have
	var flood []byte
	for i := range 700 {
		flood = command{what: byte(i), id: byte(i >> 2), length: 8 + 60000*uint16(i/600)}.put(flood)
	}
	f.Add(flood)
	f.Fuzz(func(t *testing.T, in []byte) {
		a, m := new(Assembler), new(model)
		now := rawio.Time(0)
		for ; len(in) >= commandLen; in = in[commandLen:] {
			c := command{in[0], in[1], binary.BigEndian.Uint16(in[2:]), binary.BigEndian.Uint16(in[4:]), in[6]}
			f, ok := c.fragment()
			if !ok {
				continue
			}
			now = now.Add(time.Duration(c.wait) * 250 * time.Millisecond)
			got, ok := a.Add(now, f)
			want, wanted := m.add(now, f)
			must.That(t, ok == wanted && got.ECN == want.ECN && bytes.Equal(got.Payload, want.Payload), "%v %d octets, ECN %d; the model has %v %d octets, ECN %d", ok, len(got.Payload), got.ECN, wanted, len(want.Payload), want.ECN)
			must.That(t, a.Stats == m.stats, "%+v, the model has %+v", a.Stats, m.stats)
			bounded(t, a, f.Src)
		}
	})
}

// model keeps the fragments of a packet as they came, and looks at all of them each time.
type model struct {
	stats Stats
	open  []*modelPacket // the oldest first
}

type modelKey struct {
	src, dst netip.Addr
	id       uint32
}

type modelPacket struct {
	key   modelKey
	since rawio.Time
	bad   bool
	frags []iphdr.Packet
}

func (m *model) add(now rawio.Time, f iphdr.Packet) (whole iphdr.Packet, ok bool) {
	for len(m.open) > 0 && now-m.open[0].since >= 60e9 {
		m.stats.Late += uint64(len(m.open[0].frags))
		m.open = m.open[1:]
	}
	key := modelKey{f.Src, f.Dst, f.ID}
	i := slices.IndexFunc(m.open, func(p *modelPacket) bool { return p.key == key })
	if i < 0 {
		i = len(m.open)
		m.open = append(m.open, &modelPacket{key: key, since: now})
	}
	p := m.open[i]
	for _, q := range p.frags {
		if q.Offset == f.Offset && q.More == f.More && bytes.Equal(q.Payload, f.Payload) {
			return whole, false
		}
	}
	p.frags = append(p.frags, f)
	if p.bad || p.contradicts() {
		m.stats.Bad += uint64(len(p.frags))
		p.bad, p.frags = true, nil
	} else if whole, ok = p.whole(); ok {
		m.open = slices.Delete(m.open, i, i+1)
	}
	for m.cost(netip.Addr{}) > MaxOctets {
		m.drop(0)
	}
	for m.cost(f.Src) > MaxSource {
		m.drop(slices.IndexFunc(m.open, func(p *modelPacket) bool { return p.key.src == f.Src }))
	}
	return whole, ok
}

func (m *model) drop(i int) {
	m.stats.Full += uint64(len(m.open[i].frags))
	m.open = slices.Delete(m.open, i, i+1)
}

func (m *model) cost(src netip.Addr) (n int) {
	for _, p := range m.open {
		c := 0
		for _, f := range p.frags {
			c += len(f.Payload) + pieceCost
		}
		if !src.IsValid() || p.key.src == src {
			n += max(c, leastCost)
		}
	}
	return n
}

// contradicts reports whether no packet can have had these fragments.
func (p *modelPacket) contradicts() bool {
	var ecn [4]bool
	for i, f := range p.frags {
		ecn[f.ECN] = true
		for k, g := range p.frags {
			if k != i && f.Offset < g.Offset+len(g.Payload) && g.Offset < f.Offset+len(f.Payload) {
				return true
			}
			if k != i && !f.More && g.Offset > f.Offset {
				return true
			}
		}
	}
	return len(p.frags) > maxPieces || ecn[rawio.NotECT] && ecn[rawio.CE]
}

func (p *modelPacket) whole() (w iphdr.Packet, ok bool) {
	there := make(map[int]iphdr.Packet)
	ce := false
	for _, f := range p.frags {
		there[f.Offset] = f
		ce = ce || f.ECN == rawio.CE
	}
	w.ECN = there[0].ECN
	if ce {
		w.ECN = rawio.CE
	}
	for {
		f, ok := there[len(w.Payload)]
		if !ok {
			return iphdr.Packet{}, false
		}
		w.Payload = append(w.Payload, f.Payload...)
		if !f.More {
			return w, true
		}
	}
}
