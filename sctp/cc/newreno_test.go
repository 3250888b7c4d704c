package cc

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc/model"
)

func ExampleRFC9260() {
	c := RFC9260(1444, false)
	fmt.Println("initial cwnd", c.Window())
	c.OnAck(0, Ack{Octets: 2888, Flight: 5000})
	fmt.Println("a SACK for two chunks in slow start", c.Window())
	c.OnTimeout(0)
	fmt.Println("T3-rtx expires", c.Window(), c.Ssthresh())
	// Output:
	// initial cwnd 4404
	// a SACK for two chunks in slow start 5848
	// T3-rtx expires 1444 5776
}

func TestInitialWindow(t *testing.T) {
	// req 9260-7.2.1-1
	for _, tt := range []struct {
		name  string
		pmdcs int
		ipv6  bool
		want  int
	}{
		{"small chunks: four of them", 500, false, 2000},
		{"IPv4 Ethernet: 4404 octets", 1468, false, 4404},
		{"IPv6 Ethernet: 4344 octets", 1448, true, 4344},
		{"jumbo: two chunks", 8900, false, 17800},
		{"IPv4, half of 4404 exactly", 2202, false, 4404},
		{"IPv6, just above half of 4344", 2173, true, 4346},
	} {
		check.Equal(t, tt.name, RFC9260(tt.pmdcs, tt.ipv6).Window(), tt.want)
	}
}

func TestBeginningGrowingAndIdlingAsTCP(t *testing.T) {
	for pmdcs, want := range map[int]int{500: 5000, 1460: 14600, 1461: 14600, 8900: 17800} {
		got := NewReno(pmdcs, true).Window()
		check.That(t, got == want, "packets of %d: begins with %d, want %d", pmdcs, got, want)
	}
	for _, tt := range []struct {
		name string
		ack  Ack
		want int
	}{
		{"all that a SACK acknowledges, where packets are spread", Ack{Octets: 7000, Flight: 5001, Spread: true}, 7000},
		{"not when half of cwnd was not used", Ack{Octets: 7000, Flight: 5000, Spread: true}, 0},
		{"else not when any of it was not used", Ack{Octets: 7000, Flight: 9999}, 0},
		{"what filled cwnd, though it does so no more", Ack{Octets: 7000, Full: 3000, Flight: 5000, Spread: true}, 3000},
		{"by a packet for two of that", Ack{Octets: 7000, Full: 4000, Flight: 9999}, 2000},
		{"else by a packet for two", Ack{Octets: 7000, Flight: 10000}, 3000},
		{"not in Fast Recovery", Ack{Octets: 7000, Flight: 10000, Spread: true, Recovery: true}, 0},
	} {
		c := NewReno(1000, false)
		c.OnAck(0, tt.ack)
		check.That(t, c.Window() == 10000+tt.want, "%s: grows by %d, want %d", tt.name, c.Window()-10000, tt.want)
	}
	r := NewReno(1000, false).(*newReno)
	r.cwnd, r.ssthresh = 49000, 40000
	r.OnAck(0, Ack{Octets: 49000, Full: 1, Flight: 48999}) // a window's worth, some of which filled it
	r.OnIdle(rawio.Time(cwndLifetime)+7, 7, 100)
	check.That(t, r.cwnd == 50000 && r.ssthresh == 40000, "a window of five minutes ago: %d, ssthresh %d", r.cwnd,
		r.ssthresh)
	r.OnIdle(rawio.Time(cwndLifetime)+8, 7, 0)
	check.Equal(t, "within an RTO, however long", r.cwnd, 50000)
	r.OnIdle(rawio.Time(cwndLifetime)+8, 7, 1)
	check.That(t, r.cwnd == 10000 && r.ssthresh == 50000, "an older one: %d, ssthresh %d", r.cwnd, r.ssthresh)
	r.cwnd = 2000
	r.OnIdle(rawio.Time(2*cwndLifetime), 7, 9)
	check.Equal(t, "silence has raised cwnd", r.cwnd, 2000)
}

func TestInitialSsthreshIsArbitrarilyHigh(t *testing.T) {
	// req 9260-7.2.1-3
	s := NewReno(1444, false).Ssthresh()
	check.That(t, s >= 1<<30, "%v", s)
}

func TestSlowStart(t *testing.T) {
	// req 9260-7.2.1-4, 9260-7.2.1-5, 9260-7.2.1-6
	for _, tt := range []struct {
		name string
		ack  Ack
		want int // growth
	}{
		{"grows by what was acknowledged", Ack{Octets: 500, Flight: 4000}, 500},
		{"by one PMDCS at most", Ack{Octets: 3000, Flight: 4000}, 1000},
		{"not when cwnd is not fully used, whatever was sent when", Ack{Octets: 1000, Full: 1000, Flight: 3999}, 0},
		{"not in Fast Recovery", Ack{Octets: 1000, Flight: 4000, Recovery: true}, 0},
		{"by one PMDCS at most, spread or not", Ack{Octets: 3000, Flight: 4000, Spread: true}, 1000},
		{"not for duplicates", Ack{Octets: 100, Dups: 5000, Flight: 4000}, 100},
	} {
		c := RFC9260(1000, false)
		must.That(t, c.Window() == 4000, "%v", c.Window())
		c.OnAck(0, tt.ack)
		check.Equal(t, tt.name+": grew by", c.Window()-4000, tt.want)
	}
}

// newAvoidingReno returns a controller in congestion avoidance with cwnd 6000, PMDCS 1000, partial
// 0.
func newAvoidingReno(t *testing.T) *newReno {
	t.Helper()
	r := RFC9260(1000, false).(*newReno)
	r.cwnd, r.ssthresh = 6000, 5000
	return r
}

func TestCongestionAvoidance(t *testing.T) {
	for _, tt := range []struct {
		name          string
		acks          []Ack
		cwnd, partial int
	}{
		// req 9260-7.2.2-3
		{"counts acknowledged octets", []Ack{{Octets: 1000, Flight: 6000}, {Octets: 2000, Flight: 6000}}, 6000, 3000},
		{"and duplicates", []Ack{{Octets: 1000, Dups: 500, Flight: 6000}}, 6000, 1500},
		// req 9260-7.2.2-1, 9260-7.2.2-5
		{"a window's worth grows cwnd by one PMDCS", []Ack{{Octets: 5500, Flight: 6000}, {Octets: 700, Flight: 6000}}, 7000, 200},
		// req 9260-7.2.2-2
		{"never by more than one for a SACK", []Ack{{Octets: 13000, Flight: 13000}}, 7000, 7000},
		// req 9260-7.2.2-4
		{"exactly a window's worth", []Ack{{Octets: 6000, Flight: 6000}}, 7000, 0},
		{"an unused window counts", []Ack{{Octets: 1000, Flight: 5999}}, 6000, 1000},
		{"an unused window does not save up", []Ack{{Octets: 5000, Full: 5000, Flight: 5999}, {Octets: 5000, Full: 5000, Flight: 5999}}, 6000, 6000},
		// req 9260-7.2.2-6
		{"everything acknowledged forgets the rest", []Ack{{Octets: 5000, Flight: 6000, AllAcked: true}}, 6000, 0},
		{"no growth in Fast Recovery", []Ack{{Octets: 6000, Flight: 6000, Recovery: true}}, 6000, 6000},
	} {
		r := newAvoidingReno(t)
		for _, a := range tt.acks {
			r.OnAck(0, a)
		}
		check.That(t, r.cwnd == tt.cwnd && r.partialBytesAcked == tt.partial,
			"%s: cwnd %d partial %d, want %d %d", tt.name, r.cwnd, r.partialBytesAcked, tt.cwnd, tt.partial)
	}
}

func TestBoundaryIsSlowStart(t *testing.T) {
	// req 9260-7.2-1
	r := newAvoidingReno(t)
	r.ssthresh = r.cwnd
	r.OnAck(0, Ack{Octets: 400, Flight: 6000})
	check.Equal(t, "cwnd == ssthresh: slow start's cwnd", r.cwnd, 6400)
	r.OnAck(0, Ack{Octets: 400, Flight: 6400})
	check.That(t, r.cwnd == 6400 && r.partialBytesAcked == 400, "cwnd > ssthresh: cwnd %d partial %d", r.cwnd,
		r.partialBytesAcked)
}

func TestLossHalvesCwndOrTakesItToOnePacket(t *testing.T) {
	for _, tt := range []struct {
		name           string
		cwnd           int
		event          func(*newReno)
		want, ssthresh int
	}{
		// req 9260-7.2.3-1
		{"a SACK's loss halves cwnd", 20000, func(r *newReno) { r.OnLoss(0) }, 10000, 10000},
		{"but not below four chunks", 6000, func(r *newReno) { r.OnLoss(0) }, 4000, 4000},
		// req 9260-7.2.3-2, 9260-7.2.1-2
		{"T3-rtx leaves one chunk", 20000, func(r *newReno) { r.OnTimeout(0) }, 1000, 10000},
		{"and four chunks of ssthresh", 3000, func(r *newReno) { r.OnTimeout(0) }, 1000, 4000},
	} {
		r := newAvoidingReno(t)
		r.cwnd, r.partialBytesAcked = tt.cwnd, 777
		tt.event(r)
		check.That(t, r.cwnd == tt.want && r.ssthresh == tt.ssthresh && r.partialBytesAcked == 0,
			"%s: cwnd %d ssthresh %d partial %d, want %d %d 0", tt.name, r.cwnd, r.ssthresh, r.partialBytesAcked,
			tt.want, tt.ssthresh)
	}
}

func TestIdleDecay(t *testing.T) {
	// req 9260-7.2.1-8, 9260-7.1-1
	r := newAvoidingReno(t)
	r.cwnd = 40000
	r.OnIdle(0, 0, 0)
	check.That(t, r.cwnd == 40000 && r.ssthresh == 5000, "less than an RTO: cwnd %d ssthresh %d", r.cwnd, r.ssthresh)
	r.OnIdle(0, 0, 2)
	check.That(t, r.cwnd == 10000 && r.ssthresh == 40000, "two RTOs: cwnd %d ssthresh %d", r.cwnd, r.ssthresh)
	r.cwnd = 20000
	r.OnIdle(0, 0, 1)
	check.That(t, r.cwnd == 10000 && r.ssthresh == 20000, "one RTO: cwnd %d ssthresh %d", r.cwnd, r.ssthresh)
	r.OnIdle(0, 0, 1<<40)
	check.Equal(t, "cwnd in the end, 4 chunks", r.cwnd, 4000)
	r.OnTimeout(0)
	r.OnIdle(0, 0, 3)
	check.Equal(t, "cwnd after idling behind a timeout", r.cwnd, 1000)
}

func TestResetIsTheInitialWindow(t *testing.T) {
	// req 9260-7.2.5-1
	r := newAvoidingReno(t)
	r.partialBytesAcked = 5
	r.SetPMDCS(1200)
	r.Reset()
	check.That(t, r.cwnd == 4404 && r.ssthresh >= 1<<30 && r.partialBytesAcked == 0, "cwnd %d ssthresh %d partial %d",
		r.cwnd, r.ssthresh, r.partialBytesAcked)
}

// In slow start a mark is as good as a loss. Behind it the queue that was marked is known to be
// short (RFC 8511).
func TestAMarkReducesAtMostLikeALossAndNeverRaises(t *testing.T) {
	for _, row := range []struct {
		name         string
		make         Factory
		early, later int // of 100000
	}{{"the letter", RFC9260, 50000, 50000}, {"NewReno", NewReno, 50000, 80000}, {"CUBIC", NewCubic, 70000, 85000}} {
		for ssthresh, want := range map[int]int{1 << 30: row.early, 100001: row.early, 100000: row.later,
			4000: row.later} {
			c := row.make(1000, false)
			r, _ := c.(*newReno)
			if r == nil {
				r = &c.(*cubic).newReno
			}
			r.cwnd, r.ssthresh = 100000, ssthresh
			c.OnECN(0)
			check.That(t, c.Window() == want && c.Ssthresh() == want,
				"%s, ssthresh %d: cwnd %d, ssthresh %d, want %d", row.name, ssthresh, c.Window(), c.Ssthresh(), want)
			c.OnTimeout(0)
			c.OnECN(0)
			check.That(t, c.Window() == 1000 && c.Ssthresh() == 4000,
				"%s: cwnd %d after a timeout and an echo, ssthresh %d", row.name, c.Window(), c.Ssthresh())
		}
	}
}

// cwnd grows by the packets acknowledged, however many SACKs the receiver says it in: a SACK for a
// whole batch counts like those for every second packet.
func TestSlowStartDoesNotDependOnTheNumberOfSACKs(t *testing.T) {
	grown := func(perSACK int) int {
		c := NewReno(1000, false)
		c.(*newReno).cwnd = 100_000
		for left := 64; left > 0; left -= perSACK {
			c.OnAck(0, Ack{Octets: perSACK * 1000, Flight: c.Window()})
		}
		return c.Window() - 100_000
	}
	every, all := grown(2), grown(64) // req 9260-7.2.1-4
	check.That(t, every == 32_000 && all == every,
		"64 packets in SACKs of 2 add %d octets to cwnd, in one SACK %d, want 32000", every, all)
}

func TestNewRenoIsNeverMoreAggressiveThanTheRFC(t *testing.T) {
	// req 9260-7.2-2
	for seed := range int64(50) {
		rnd := rand.New(rand.NewSource(seed))
		c := RFC9260(1000, false)
		m := model.Limit{Cwnd: 4000, Ssthresh: 1 << 30, PMDCS: 1000}
		for step := range 3000 {
			switch n := rnd.Intn(200); {
			case n == 0:
				c.OnTimeout(0)
				m.Loss(true)
			case n < 3:
				c.OnLoss(0)
				m.Loss(false)
			case n < 5:
				c.OnIdle(0, 0, rnd.Intn(3)) // section 7.2.1 lowers cwnd; it keeps what it had as ssthresh
			default:
				a := Ack{Octets: rnd.Intn(4000), Dups: rnd.Intn(10) / 9 * 500, Flight: c.Window() - 1500 +
					rnd.Intn(2500), Recovery: n < 20, AllAcked: n == 20}
				if rnd.Intn(2) == 0 {
					a.RTT = time.Duration(20+rnd.Intn(20)) * time.Millisecond
				}
				c.OnAck(0, a)
				m.Ack(a.Octets, a.Dups, a.Flight, a.Recovery, a.AllAcked)
			}
			must.That(t, c.Window() <= m.Cwnd && c.Window() >= 1000, "seed %d step %d: cwnd %d, allowed %d", seed,
				step, c.Window(), m.Cwnd)
			// From here on the model goes on from what the controller has, which is allowed.
			r := c.(*newReno)
			m = model.Limit{Cwnd: r.cwnd, Ssthresh: r.ssthresh, Partial: r.partialBytesAcked, PMDCS: 1000}
		}
	}
}

func TestReductionIsTakenBackOnceAndWhole(t *testing.T) {
	loss, mark, timeout, reset := Controller.OnLoss, Controller.OnECN, Controller.OnTimeout,
		func(c Controller, _ rawio.Time) { c.Reset() }
	more := func(c Controller, now rawio.Time) {
		for range 100 {
			c.OnAck(now, Ack{Octets: 50000, Flight: 1 << 20})
		}
	}
	for name, f := range map[string]Factory{"NewReno": NewReno, "CUBIC": NewCubic} {
		for what, tt := range map[string]struct {
			then []func(Controller, rawio.Time)
			back bool
		}{
			"a loss":                 {[]func(Controller, rawio.Time){loss}, true},
			"a timeout":              {[]func(Controller, rawio.Time){timeout}, true},
			"a loss after a mark":    {[]func(Controller, rawio.Time){mark, loss}, false},
			"a loss and a mark":      {[]func(Controller, rawio.Time){loss, mark}, false},
			"a loss and a timeout":   {[]func(Controller, rawio.Time){loss, timeout}, false},
			"a loss, and a new path": {[]func(Controller, rawio.Time){loss, reset}, false},
			"a loss, taken back once": {[]func(Controller, rawio.Time){loss, Controller.Undo, loss, Controller.Undo,
				mark, Controller.Undo}, false},
		} {
			c := f(1000, false)
			more(c, 0)
			was, threshold := c.Window(), c.Ssthresh()
			for _, then := range tt.then {
				then(c, 0)
			}
			c.Undo(0)
			check.That(t, (c.Window() == was && c.Ssthresh() == threshold) == tt.back,
				"%s, %s: %d and %d, was %d and %d", name, what, c.Window(), c.Ssthresh(), was, threshold)
		}
		c := f(1000, false)
		for i := range 3 { // slow start ends as it would have, had there been no loss in the round that judges it
			c.OnAck(0, Ack{RTT: 20 * time.Millisecond, Trip: time.Duration(20+100*(i/2)) * time.Millisecond,
				Flight: 1 << 20})
			if i == 1 {
				c.OnLoss(0)
				c.Undo(0)
			}
		}
		c.OnAck(0, Ack{RTT: 20 * time.Millisecond, Flight: 1 << 20})
		check.Equal(t, name+": the threshold", c.Ssthresh(), c.Window())
		c = f(1000, false)
		c.OnLoss(0)
		more(c, 0)
		was := c.Window()
		c.Undo(0)
		check.Equal(t, name+": the window, which has grown beyond", c.Window(), was)
	}
}
