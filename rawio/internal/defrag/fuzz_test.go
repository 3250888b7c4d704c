package defrag

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/defrag/model"
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

func (c command) appendTo(b []byte) []byte {
	b = append(b, c.what, c.id)
	b = binary.BigEndian.AppendUint16(b, c.at)
	return append(binary.BigEndian.AppendUint16(b, c.length), c.wait)
}

// toPacket is what c says, as iphdr.Parse would have returned it.
func (c command) toPacket() (f iphdr.Packet, ok bool) {
	src := [4]netip.Addr{peer4, peer6, netip.MustParseAddr("198.51.100.3"),
		netip.MustParseAddr("2001:db8::3")}[c.what&3]
	f = fragmentOf(uint32(c.id), 0, 0, c.what>>4&1 == 0)
	f.Src, f.ECN, f.Offset = src, c.what>>2&3, int(c.at&0x1fff)*8
	n := int(c.length)
	if f.MoreFragments {
		n &^= 7
	}
	if n == 0 || f.Offset+n > 65535 || f.Offset == 0 && !f.MoreFragments {
		return f, false
	}
	f.Payload = patterns[c.what>>5&1][f.Offset:][:n]
	return f, true
}

var patterns = [2][]byte{patternOf(0, 1<<16), patternOf(1, 1<<16)}

// FuzzAssembler gives an Assembler any fragments, and compares what comes out and what is counted
// with a model that does the same in the plainest way; what waits keeps the limits.
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
			b = c.appendTo(b)
		}
		return b
	}
	asIs := func([]command) {}
	f.Add(train(2<<2, 1, 3000, 1232, asIs))
	f.Add(train(3<<2|1, 1, 65535, 8192, slices.Reverse[[]command]))
	f.Add(append(train(2<<2, 1, 3000, 1232, asIs), train(2<<2, 1, 3000, 1200, asIs)...))
	f.Add(slices.Concat(train(2<<2, 1, 2000, 1232, asIs)[:commandLen], train(1<<5, 1, 2000, 1232, asIs),
		train(0, 1, 2000, 600, asIs)))
	f.Add(train(1, 9, 2000, 8, asIs)) // more fragments than a packet may have
	var flood []byte
	for i := range 700 {
		flood = command{what: byte(i), id: byte(i >> 2), length: 8 + 60000*uint16(i/600)}.appendTo(flood)
	}
	f.Add(flood)
	f.Fuzz(func(t *testing.T, in []byte) {
		a, m := new(Assembler), &model.Model{Limits: model.Limits{MaxOctets: MaxOctets,
			MaxOctetsPerSource: MaxOctetsPerSource, FragmentCost: fragmentCost, MinPacketCost: minPacketCost,
			MaxFragments: maxFragments}}
		now := rawio.Time(0)
		for ; len(in) >= commandLen; in = in[commandLen:] {
			c := command{in[0], in[1], binary.BigEndian.Uint16(in[2:]), binary.BigEndian.Uint16(in[4:]), in[6]}
			f, ok := c.toPacket()
			if !ok {
				continue
			}
			now = now.Add(time.Duration(c.wait) * 250 * time.Millisecond)
			got, ok := a.Add(now, f)
			want, wanted := m.Add(now, f)
			must.That(t, ok == wanted && got.ECN == want.ECN && bytes.Equal(got.Payload, want.Payload),
				"%v %d octets, ECN %d; the model has %v %d octets, ECN %d", ok, len(got.Payload), got.ECN, wanted,
				len(want.Payload), want.ECN)
			must.That(t, a.Stats == Stats(m.Stats), "%+v, the model has %+v", a.Stats, m.Stats)
			checkBounded(t, a, f.Src)
		}
	})
}
