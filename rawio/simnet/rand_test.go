package simnet

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// The first numbers of the reference implementation of SplitMix64 for seed 1234567.
func TestRandIsSplitMix64(t *testing.T) {
	r := NewRand(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
		16408922859458223821} {
		got := r.Uint64()
		must.That(t, got == want, "number %d = %d, want %d", i, got, want)
	}
}

func TestRandRanges(t *testing.T) {
	r := NewRand(1)
	var seen [7]int
	sum := 0.0
	const draws = 70000
	for range draws {
		seen[r.IntN(7)]++
		f := r.Float64()
		must.That(t, f >= 0 && f < 1, "Float64 = %v", f)
		sum += f
	}
	for i, n := range seen {
		check.That(t, n >= draws/7*95/100 && n <= draws/7*105/100, "IntN(7) gave %d %d times of %d", i, n, draws)
	}
	mean := sum / draws
	check.That(t, math.Abs(mean-0.5) <= 0.01, "mean of Float64 = %v", mean)
}

func TestRandIntNRefusesAnEmptyRange(t *testing.T) {
	defer func() {
		must.That(t, recover() != nil, "no panic")
	}()
	NewRand(1).IntN(0)
}

func TestRandReadFillsAnyLength(t *testing.T) {
	for _, size := range []int{0, 1, 7, 8, 9, 64, 65} {
		a, b := make([]byte, size), make([]byte, size)
		n, err := NewRand(9).Read(a)
		must.That(t, n == size && err == nil, "Read of %d octets = %d, %v", size, n, err)
		NewRand(9).Read(b)
		check.That(t, bytes.Equal(a, b), "%d octets differ between runs of one seed", size)
		check.That(t, size < 7 || !bytes.HasSuffix(a, []byte{0, 0, 0, 0}), "%d octets: the end was not filled", size)
	}
}

// With Separate, what one link does to packets is the same whatever another carries; without, they
// share their luck.
func TestSeparateLinksDoNotDisturbOneAnother(t *testing.T) {
	arrivals := func(separate bool, others int) []arrival {
		n := New(7)
		if separate {
			n.Separate()
		}
		p := Params{Jitter: time.Second, Loss: 0.3}
		n.SetLink(hostA.Addr(), hostB.Addr(), p)
		n.SetLink(hostB.Addr(), hostA.Addr(), Params{Loss: 1})
		for i := range 50 {
			sendNumbered(n, rawio.Time(i), uint32(i), 100)
			for range others {
				n.Send(rawio.Time(i), &rawio.Packet{Vec: [][]byte{{1, 2, 3, 4}}, Local: hostB, Remote: hostA})
			}
		}
		return deliverUntil(n, rawio.Never-1)
	}
	a, b := arrivals(true, 0), arrivals(true, 3)
	check.That(t, len(a) >= 20 && slices.Equal(a, b), "%d packets arrive, %d where others are under way", len(a),
		len(b))
	a, b = arrivals(false, 0), arrivals(false, 3)
	check.That(t, !slices.Equal(a, b), "links of one generator do not disturb each other: nothing was tested")
}

// Played octets are the tops of numbers, what is below them and behind them is random, and secrets
// take none.
func TestRandPlaysATape(t *testing.T) {
	r := NewRand(9)
	r.Play([]byte{0, 128, 255})
	var secret, plain [32]byte
	r.Read(secret[:])
	NewRand(9).Read(plain[:])
	check.Equal(t, "what follows on the tape", secret, plain)
	a, b, c := r.Uint64(), r.IntN(256), r.Float64()
	check.That(t, a>>56 == 0 && a != 0 && b == 128 && c >= 0.996, "played %#x, %d, %v", a, b, c)
	all := uint64(0)
	for range 64 {
		r.Play([]byte{0})
		all |= r.Uint64()
	}
	check.That(t, all == 1<<56-1, "below a played octet, only the bits %#x are random", all)
	if a, b := r.Uint64(), r.Uint64(); a>>56 == b>>56 {
		t.Errorf("%#x and %#x behind the tape", a, b)
	}
}
