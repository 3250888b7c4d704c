package tx

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// stock is a Source of messages most of which fill a packet. What they are depends on how many there were, not on
// when they are asked for.
type stock struct {
	*lab
	seed  uint64
	given uint64
	left  int
}

func (k *stock) Next(_ rawio.Time, room int, m *Message) bool {
	if k.left == 0 {
		return false
	}
	k.left--
	k.given++
	r := rand.New(rand.NewPCG(k.seed, k.given))
	size := room
	switch r.IntN(20) {
	case 0:
		size = 1 + r.IntN(room)
	case 1:
		size = room + 1 + r.IntN(20)
	}
	*m = Message{Stream: wire.StreamID(r.IntN(4)), PPID: r.Uint32(), Unordered: r.IntN(3) > 0, SackNow: r.IntN(10) == 0, Token: k.given}
	b := bytes.Repeat([]byte{byte(k.given)}, size)
	m.HeadLen = uint8(copy(m.Head[:r.IntN(min(size, HeadCap+1))], b))
	b = b[m.HeadLen:]
	cut := r.IntN(len(b) + 1)
	m.Body = [2][]byte{b[:cut], b[cut:]}
	return true
}

// step does one of the things that may happen to a Sender; the same to each of two for the same r.
func (k *stock) step(r *rand.Rand) {
	k.now += rawio.Time(r.IntN(5)) * ms
	s := k.s
	switch r.IntN(12) {
	case 0:
		k.left = r.IntN(300)
	case 1:
		size := []int{1 + r.IntN(3000), full, full + 16}[r.IntN(3)]
		m := Message{Body: [2][]byte{make([]byte, size)}, Path: uint8(r.IntN(len(s.Paths()) + 1))}
		if err := s.Enqueue(&m); err != nil {
			k.t.Fatal(err)
		}
	case 2:
		s.SetSackNow(r.IntN(8) == 0)
	case 3:
		k.now += second
		s.HandleTimeout(k.now)
	case 4:
		p := s.Paths()[r.IntN(len(s.Paths()))]
		p.Least = r.IntN(2) * 600
	case 5:
		if p := s.Paths()[len(s.Paths())-1]; len(s.Paths()) > 1 {
			p.State = Active + PathState(r.IntN(2))
		}
	case 6:
		s.SetECN(r.IntN(2) == 0)
	case 7: // the window closes for a while
		k.sack(r, uint32(r.IntN(5000)))
	default:
		k.sack(r, uint32(1<<20))
	}
}

// sack acknowledges some of what is outstanding, at times with gaps.
func (k *stock) sack(r *rand.Rand, window uint32) {
	out := k.s.Outstanding()
	n := r.IntN(out + 1)
	var gaps []wire.GapBlock
	if left := out - n; left > 3 && r.IntN(4) == 0 {
		start := 2 + r.IntN(left-2)
		gaps = append(gaps, wire.GapBlock{Start: uint16(start), End: uint16(start + r.IntN(left-start+1))})
	}
	if _, err := k.s.HandleSack(k.now, makeSack(k.s.CumTSN().Add(uint32(n)), window, gaps...)); err != nil {
		k.t.Fatal(err)
	}
}

// slow is a pacer that lets a few packets go at once.
type slow struct{ cc.Controller }

func (slow) PacingRate(time.Duration) int64 { return 5_000_000 }

// Packets that are made many at a time are those that are made one by one.
func TestFillMoreMakesWhatFillMakes(t *testing.T) {
	made := 0
	for seed := range uint64(300) {
		paths, burst := 1+int(seed%2), []int{0, 4, 40}[seed%3]
		ends := [2]*stock{}
		for i := range ends {
			l := newLab(t, paths)
			l.single = i == 0
			l.s.cfg.MaxBurst = burst
			if seed%5 == 0 {
				for _, p := range l.s.Paths() {
					p.pacer = slow{p.cc}
				}
			}
			ends[i] = &stock{lab: l, seed: seed}
			l.s.SetUpper(ends[i], l)
		}
		rands := [2]*rand.Rand{rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))}
		for step := range 200 {
			var wrote [2][]string
			for i, k := range ends {
				k.step(rands[i])
				for _, p := range k.transmit() {
					wrote[i] = append(wrote[i], fmt.Sprint(p.Remote, p.ECN, p.Fragment, bytes.Join(p.Vec, nil)))
				}
				if err := k.s.Audit(); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
			one, more := ends[0].s, ends[1].s
			if a, b := fmt.Sprint(wrote[0]), fmt.Sprint(wrote[1]); a != b {
				t.Fatalf("seed %d, step %d: %d packets one by one, %d otherwise:\n%s\n%s", seed, step, len(wrote[0]), len(wrote[1]), a, b)
			}
			if one.Stats() != more.Stats() || one.rwnd != more.rwnd || one.burst != more.burst || one.NextTimeout() != more.NextTimeout() {
				t.Fatalf("seed %d, step %d: %+v and %+v", seed, step, one.Stats(), more.Stats())
			}
			made += len(wrote[1])
		}
	}
	if made < 50_000 {
		t.Errorf("only %d packets were made", made)
	}
}
