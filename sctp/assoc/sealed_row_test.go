package assoc_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
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

// sealedTwin is one of two worlds in which the same happens, until packets of host 0 are handed to
// the association of host 1 by the test.
type sealedTwin struct {
	*sctptest.World
	a, b   *assoc.Assoc
	placer *rower
	sent   [2][][]byte // packets that did not go, of host 0; and that did, of host 1
}

func newSealedTwin(t *testing.T, rows, places bool) *sealedTwin {
	w := &sealedTwin{placer: &rower{TB: t}}
	w.World, _, _ = keyWorld(t)
	switch {
	case places && rows:
		w.Hosts[1].Placer = w.placer
	case places:
		w.Hosts[1].Placer = &w.placer.Placer
	}
	w.a = w.Connect(protected)
	w.Run(time.Second)
	w.b = w.Peer()
	must.That(t, w.a.IsProtected() && w.b.IsProtected(), "no keys: %v", w.Hosts[0].Events)
	for range 12 { // rows come when no packet was lost for long, nor came twice
		for range 100 {
			w.say(places, 1000)
		}
		w.Run(time.Second)
		sctptest.Drain(w.b)
	}
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		w.sent[from] = append(w.sent[from], bytes.Clone(pkt))
		return from, 0
	}
	return w
}

// say has host 0 send a message, if there is room.
func (w *sealedTwin) say(places bool, size int) {
	_ = w.a.Send(w.Now, &assoc.Message{Stream: wire.StreamID(size % 3), Unordered: places, PPID: 7, NoBundle: true,
		Body: [2][]byte{[]byte("place "), []byte(strings.Repeat("x", size))}})
}

// arrive hands what host 0 has sent to the association of host 1, and checks that packets are
// handed back as they were. It returns how many calls have taken several.
func (w *sealedTwin) arrive(t *testing.T, inRows bool, disturb func([]rawio.Packet) []rawio.Packet) (several int) {
	var batch []rawio.Packet
	for _, pkt := range w.sent[0] {
		batch = append(batch, rawio.Packet{Data: pkt, Local: w.Hosts[1].Addr, Remote: w.Hosts[0].Addr})
	}
	w.sent[0] = nil
	batch = disturb(batch)
	for k := range batch {
		b := rawio.NewBuf(batch[k].Data)
		batch[k].Data, batch[k].Buf = b.B, b
	}
	for rest := batch; len(rest) > 0 && w.b.State() != assoc.Closed; {
		n := 1
		if !inRows {
			w.b.HandlePacket(w.Now, &rest[0])
		} else if n = w.b.HandlePackets(w.Now, rest); n > 1 {
			several++
		}
		must.That(t, n > 0 && n <= len(rest), "%d of %d packets", n, len(rest))
		for k, p := range rest[:n] {
			must.That(t, len(p.Data) == len(p.Buf.B) && (len(p.Data) == 0 || &p.Data[0] == &p.Buf.B[0]),
				"packet %d is handed back changed", k)
		}
		rest = rest[n:]
	}
	rawio.ReleaseAll(batch)
	return several
}

// disturb makes of packets what a network and an attacker make of them.
func disturb(rnd *rand.Rand, list []rawio.Packet) (out []rawio.Packet) {
	moved := rnd.IntN(20) == 0
	for i, p := range list {
		q := p
		q.Data = bytes.Clone(p.Data)
		if moved && i > 0 {
			q.Remote = stranger // many come from there at once
		}
		switch rnd.IntN(60) {
		case 0: // lost
			continue
		case 1: // and once more
			out = append(out, q)
			q.Data = bytes.Clone(p.Data)
		case 2:
			bit := rnd.IntN(8 * len(q.Data))
			q.Data[bit/8] ^= 1 << (bit % 8)
			q.Data = resum(q.Data)
		case 3:
			q.ECN = rawio.CE
		case 4:
			q.Remote = stranger
		case 5:
			q.Remote = netip.AddrPortFrom(q.Remote.Addr(), 9899)
		case 6:
			q.Kind = rawio.KindHostUnreachable
		case 7: // in the clear
			out = append(out, q)
			q.Data = resum(sctptest.Packet(sctptest.PortA, sctptest.PortB, wire.Packet(p.Data).VTag(), wire.AppendAbort(nil, false)))
		case 8:
			if n := len(out); n > 0 {
				out[n-1], q = q, out[n-1]
			}
		case 9:
			q.Data = q.Data[:rnd.IntN(20)]
		case 10:
			q.Data[4+rnd.IntN(4)]++ // of the tag
			q.Data = resum(q.Data)
		}
		out = append(out, q)
	}
	return out
}

// What comes of sealed packets that are handled in rows is what comes of each alone, whatever a
// network and an attacker make of them.
func TestSealedPacketsInRowsAreAsOneByOne(t *testing.T) {
	rows, packets, several, seeds := 0, 0, 0, rowSeeds()/3
	for seed := range uint64(seeds) {
		places := seed%2 == 0
		twins := [2]*sealedTwin{newSealedTwin(t, false, places), newSealedTwin(t, true, places)}
		rnd := rand.New(rand.NewPCG(9147, seed))
		for round := range 60 {
			n, size, hangUp := 1+rnd.IntN(30), 1+rnd.IntN(4000), round == 50 && seed%4 == 3
			if places {
				size = 750 + rnd.IntN(400)
			}
			way, crowd := [2]uint64{rnd.Uint64(), rnd.Uint64()}, rnd.IntN(2) == 0
			var got, sent [2]string
			for i, w := range twins {
				for k := range n {
					w.say(places, size+k/12)
				}
				if hangUp {
					must.OK(t, w.a.Shutdown(w.Now))
				}
				disturbed := rand.New(rand.NewPCG(way[0], way[1]))
				w.b.SetCrowded(crowd)
				for range 1 + round%7*4 {
					w.Flush()
					several += w.arrive(t, i == 1, func(list []rawio.Packet) []rawio.Packet {
						if round >= 30 || seed%3 == 2 { // a loss keeps rows of DATA away for long
							return disturb(disturbed, list)
						}
						return list
					})
					w.Run(5 * time.Millisecond)
				}
				got[i] = fmt.Sprintf("%q", sctptest.Drain(w.b))
				sent[i] = fmt.Sprintf("%x", w.sent[1])
				w.sent[1] = nil
			}
			one, many := twins[0].b, twins[1].b
			must.Equal(t, fmt.Sprintf("seed %d, round %d: sent", seed, round), sent[1], sent[0])
			must.Equal(t, "read", got[1], got[0])
			must.Equal(t, "next timeout", many.NextTimeout(), one.NextTimeout())
			must.Equal(t, "steps", many.Steps(), one.Steps())
			must.That(t, reflect.DeepEqual(many.Stats(), one.Stats()), "seed %d, round %d: %+v, want %+v", seed, round,
				many.Stats(), one.Stats())
			must.That(t, reflect.DeepEqual(sctptest.Paths(many), sctptest.Paths(one)), "seed %d, round %d: %+v, want %+v",
				seed, round, sctptest.Paths(many), sctptest.Paths(one))
			if one.State() == assoc.Closed {
				break
			}
		}
		check.Slice(t, fmt.Sprintf("seed %d: what the Placer saw", seed), twins[1].placer.Seen, twins[0].placer.Seen)
		rows += twins[1].placer.rows
		packets += twins[1].placer.packets
	}
	check.That(t, several > 5*seeds && rows > 3*seeds && packets > 2*rows, "%d calls for several packets, %d packets in %d rows only",
		several, packets, rows)
}
