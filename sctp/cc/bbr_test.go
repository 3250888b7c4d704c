package cc

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/rawio"
)

// bbrPath is a path to a BBR with packets of 1000 octets: a megabyte a second, and round trips of
// 100 ms with one sample each.
type bbrPath struct {
	*bbr
	at        rawio.Time
	delivered uint64
	trips     int
	isSlowed  bool
}

// playScript plays a story: what happens, separated by semicolons, with what is otherwise than
// usual.
func (r *bbrPath) playScript(story string) {
	for _, what := range strings.Split(story, "; ") {
		w := append(strings.Fields(what), "", "")
		n, _ := strconv.Atoi(w[1])
		d, _ := time.ParseDuration(w[1])
		l := Lost{Octets: 1000, Delivered: r.delivered, TxInFlight: 100_000, Since: n, AppLimited: w[2] == "limited"}
		switch w[0] {
		case "trip":
			r.roundTrip(w[1:])
		case "until": // there is another state
			for r.trips = 0; !strings.HasSuffix(r.state.String(), w[1]) && r.trips < 1000; r.trips++ {
				if w[1] != "RTT" {
					r.rtt.probeMinStamp = r.at
				}
				r.OnSent(r.at, 1000, r.Window())
				r.roundTrip(w[2:])
			}
		case "lose": // a chunk, with which so much is lost since it left
			r.OnLost(r.at, &l)
		case "ranges": // so many of two chunks each
			r.OnLoss(r.at)
			for i := range 2 * n {
				l.Since, l.Adjacent = 1000, i%2 > 0
				r.OnLost(r.at, &l)
			}
		case "pause":
			r.at = r.at.Add(d)
			r.OnRestart(r.at)
		default:
			map[string]func(){"loss": func() { r.OnLoss(r.at) }, "mark": func() { r.OnECN(r.at) },
				"timeout": func() { r.OnTimeout(r.at) }, "undo": func() { r.Undo(r.at) },
				"route": r.Reset, "idle": func() { r.OnIdle(r.at.Add(d), r.at, 9) },
				"bound": func() { r.volume.inflightLongterm = int64(n) }, "near": func() { r.rtt.min = d },
				"mtu": func() { r.SetPMDCS(512 + n&^3) }, "sent": func() { r.OnSent(r.at, 1000, n) },
				"fill": func() { r.OnSent(r.at, 1000, r.Window()) }}[w[0]]()
		}
	}
}

func (r *bbrPath) roundTrip(otherwise []string) {
	s := Sample{Inflight: 100_000, SRTT: 100 * ms, NewlyAcked: 100_000, Valid: true, PriorDelivered: r.delivered,
		Volume: 100_000, Rate: 1e6, TxInFlight: 100_000, RTT: 100 * ms}
	takes, srtt, late := 100, 100, 0
	for _, o := range otherwise {
		what, value, _ := strings.Cut(o, "=")
		n, _ := strconv.Atoi(value)
		s.AppLimited, s.Recovery, s.Valid = s.AppLimited || what == "limited", s.Recovery || what == "repairing",
			s.Valid && what != "unknown"
		if what == "rate" {
			s.Rate = int64(n)
		} else if what == "rtt" {
			s.RTT = time.Duration(n) * ms
		} else if p := map[string]*int{"inflight": &s.Inflight, "acked": &s.NewlyAcked, "volume": &s.Volume,
			"lost": &s.Lost, "takes": &takes, "tx": &s.TxInFlight, "srtt": &srtt, "late": &late}[what]; p != nil {
			*p = n
		}
	}
	r.at = r.at.Add(time.Duration(takes) * ms)
	s.PriorDelivered -= min(uint64(late), r.delivered)
	r.delivered += uint64(s.NewlyAcked)
	s.Delivered, s.SRTT = r.delivered, time.Duration(srtt)*ms
	r.isSlowed = r.OnSample(r.at, &s)
}

// String is state, pace and window in thousands of octets, bounds if there are any.
func (r *bbrPath) String() string {
	s := fmt.Sprintf("%v %d %.1f", r.state, r.PacingRate(0)/1000, float64(r.Window())/1000) +
		map[bool]string{true: " slowed"}[r.isSlowed]
	if r.volume.inflightLongterm != unbounded {
		s += fmt.Sprintf(" long %.1f", float64(r.volume.inflightLongterm)/1000)
	}
	if r.rate.bwShortterm != unbounded {
		s += fmt.Sprintf(" short %d, %.1f", r.rate.bwShortterm/1000, float64(r.volume.inflightShortterm)/1000)
	}
	return s
}

func TestLeastRoundTripIsOne(t *testing.T) {
	b := NewBBR(1000, false).(*bbr)
	b.OnSample(0, &Sample{RTT: 1})
	check.Equal(t, "of a clock that has not moved", b.rtt.min, 1)
}

// Each story begins as soon as BBR is in a state; what it ends with is written down: state, pace
// and window in thousands of octets, bounds if there are any.
func TestBBRFollowsItsPath(t *testing.T) {
	for _, tt := range []struct{ name, from, story, want string }{
		{"the first trip sets the pace", "Startup", "trip takes=0 acked=0", "Startup 2742 110.0"},
		{"rates that grow by a quarter go on with Startup", "Startup", "trip rate=1250000; trip rate=1562500; trip rate=1953125; trip rate=2500000", "Startup 6855 510.0"},
		{"three that grow by less end it", "Startup", "trip rate=1249999; trip; trip inflight=300000", "Drain 618 350.0"},
		{"the pace only grows before", "Startup", "route; trip rate=50000", "Startup 277 110.0"},
		{"two do not", "Startup", "trip; trip", "Startup 2742 310.0"},
		{"nor those that the program limits", "Startup", "trip limited; trip limited; trip limited; trip limited", "Startup 2742 310.0"},
		{"losses of six ranges in a round trip end it", "Startup", "ranges 6; trip repairing lost=2001 inflight=300000", "Drain 495 210.0 long 100.0"},
		{"five do not", "Startup", "ranges 5; trip repairing lost=2001", "Startup 2742 210.0"},
		{"nor such as are not repaired", "Startup", "ranges 6; trip lost=2001", "Startup 2742 210.0"},
		{"nor 2 percent", "Startup", "ranges 6; trip repairing lost=2000", "Startup 2742 210.0"},
		{"they were none: Startup goes on", "Startup", "ranges 6; trip repairing lost=2001 inflight=300000; undo; trip", "Startup 2742 310.0"},
		{"a mark ends it", "Startup", "mark", "Drain 495 110.0 long 100.0"},
		{"which nothing takes back", "Startup", "mark; undo", "Drain 495 110.0 long 100.0"},
		{"Drain lasts while more than the BDP is in flight", "Drain", "trip inflight=100001", "Drain 495 300.0"},
		{"and no longer", "Drain", "trip", "ProbeBW_CRUISE 990 300.0"},
		{"or four round trips", "Drain", "until DOWN inflight=200000", "ProbeBW_DOWN 891 300.0 after 4"},
		{"DOWN lasts until there is headroom", "DOWN", "bound 110000; trip inflight=93501", "ProbeBW_DOWN 891 110.0 long 110.0"},
		{"and no longer", "DOWN", "bound 110000; trip inflight=93500", "ProbeBW_CRUISE 990 93.5 long 110.0"},
		{"or until it is time to probe", "DOWN", "until REFILL inflight=200000", "ProbeBW_REFILL 990 300.0 after 27"},
		{"CRUISE lasts two or three seconds", "CRUISE", "until REFILL", "ProbeBW_REFILL 990 300.0 after 23"},
		{"or as many trips as packets in flight", "CRUISE", "near 10ms; until REFILL takes=1", "ProbeBW_REFILL 990 399.0 after 10"},
		{"or 63", "CRUISE", "until REFILL takes=1", "ProbeBW_REFILL 990 6537.0 after 63"},
		{"REFILL lasts a round trip", "REFILL", "until UP", "ProbeBW_UP 1237 327.0 after 1"},
		{"UP lasts while rates grow, and three round trips", "UP", "trip rate=1250000; until DOWN rate=1250000 inflight=200000", "ProbeBW_DOWN 1113 350.0 after 3"},
		{"and two where only a queue grows", "UP", "trip; trip rtt=111 rate=1099999 inflight=200000", "ProbeBW_DOWN 980 320.0"},
		{"but no shorter one", "UP", "trip; trip rtt=109 inflight=200000", "ProbeBW_UP 1237 327.0"},
		{"nor where more is delivered", "UP", "trip; trip rtt=111 rate=1100001 inflight=200000", "ProbeBW_UP 1361 349.5"},
		{"losses of 2 percent do not end it", "UP", "lose 2000", "ProbeBW_UP 1237 327.0"},
		{"more do", "UP", "lose 2001", "ProbeBW_DOWN 1237 327.0 long 100.0"},
		{"whatever the program does", "UP", "lose 2001 limited", "ProbeBW_DOWN 1237 327.0"},
		{"they bound what is in flight, to seven tenths at least", "UP", "lose 99000", "ProbeBW_DOWN 1237 327.0 long 70.0"},
		{"once", "UP", "lose 2001; lose 9000", "ProbeBW_DOWN 1237 327.0 long 100.0"},
		{"they were none", "UP", "loss; lose 2001; undo", "ProbeBW_REFILL 1237 327.0"},
		{"nor what the timeout was for", "UP", "loss; lose 2001; timeout; undo", "ProbeBW_REFILL 1237 327.0"},
		{"a mark ends UP", "UP", "mark", "ProbeBW_DOWN 891 100.0 long 100.0"},
		{"and bounds REFILL", "REFILL", "mark", "ProbeBW_REFILL 990 100.0 long 100.0"},
		{"the next UP ends at the bound", "UP", "lose 2001; until UP; trip", "ProbeBW_DOWN 891 100.0 long 100.0 after 28"},
		{"and begins again at once if that was well", "UP", "lose 2001; until UP; trip; trip", "ProbeBW_REFILL 990 100.0 long 100.0 after 28"},
		{"and not if it lost too much", "UP", "lose 2001; until UP; trip; lose 2001; trip lost=6000", "ProbeBW_DOWN 891 100.0 long 100.0 short 1000, 100.0 after 28"},
		{"nor during ProbeRTT", "UP", "lose 2001; until UP; trip; trip unknown takes=6000; trip", "ProbeRTT 990 50.0 slowed long 100.0 after 28"},
		{"losses are of UP for a round trip on", "UP", "until DOWN inflight=200000; trip unknown inflight=200000; lose 2001", "ProbeBW_DOWN 891 300.0 long 100.0 after 3"},
		{"and no longer", "UP", "until DOWN inflight=200000; trip inflight=200000; lose 2001", "ProbeBW_DOWN 891 300.0 after 3"},
		{"a bound that is used grows by 1, 2 and 4 packets", "UP", "bound 150000; fill; trip acked=150000; fill; trip acked=150000; fill; trip acked=150000; fill; trip acked=150000", "ProbeBW_DOWN 891 167.0 long 167.0"},
		{"one that is not does not", "UP", "bound 150000; trip", "ProbeBW_UP 1237 150.0 long 150.0"},
		{"but to what was in flight", "CRUISE", "bound 90000; trip lost=2000", "ProbeBW_CRUISE 990 85.0 long 100.0"},
		{"unless more than 2 percent of that is lost", "CRUISE", "bound 90000; trip lost=2001", "ProbeBW_CRUISE 990 76.5 long 90.0"},
		{"CRUISE leaves room to others", "CRUISE", "bound 200000; trip", "ProbeBW_CRUISE 990 170.0 long 200.0"},
		{"losses of 2 percent in a round trip do not lower the pace", "CRUISE", "lose 2000; trip lost=6000 tx=300000; trip rate=900000; lose 2000; trip rate=900000 lost=6000 tx=300000", "ProbeBW_CRUISE 990 300.0"},
		{"nor fewer than six packets", "CRUISE", "lose 2000; trip lost=5999; trip rate=900000; lose 2000; trip rate=900000 lost=5999", "ProbeBW_CRUISE 990 300.0"},
		{"more lower it to what is delivered", "CRUISE", "lose 9000; trip lost=6000; trip rate=900000; lose 9000; trip rate=900000 lost=6000", "ProbeBW_CRUISE 891 147.0 short 900, 147.0"},
		{"to seven tenths at least", "CRUISE", "trip rate=100000; loss; trip rate=100000 volume=1 lost=6000", "ProbeBW_CRUISE 693 210.0 short 700, 210.0"},
		{"until REFILL", "CRUISE", "lose 9000; trip lost=6000; until REFILL", "ProbeBW_REFILL 990 300.0 after 22"},
		{"they were none", "CRUISE", "trip rate=100000; lose 1000; trip repairing rate=100000 volume=1 lost=6000; undo; trip", "ProbeBW_CRUISE 990 330.0"},
		{"a mark lowers it by itself", "CRUISE", "mark", "ProbeBW_CRUISE 841 255.0 short 850, 255.0"},
		{"which nothing repairs", "CRUISE", "mark; pause 3s; trip acked=0", "ProbeBW_REFILL 990 255.0"},
		{"a timeout leaves a packet", "CRUISE", "timeout", "ProbeBW_CRUISE 990 1.0"},
		{"then four", "CRUISE", "timeout; trip repairing acked=1000", "ProbeBW_REFILL 990 4.0"},
		{"and what there was, if all is repaired", "CRUISE", "timeout; trip repairing acked=1000; trip acked=0", "ProbeBW_UP 1237 300.0"},
		{"rates are forgotten after two cycles", "CRUISE", "until UP rate=500000; until CRUISE rate=500000; until UP rate=500000", "ProbeBW_UP 618 1364.5 after 24"},
		{"and not before", "CRUISE", "until UP rate=500000", "ProbeBW_UP 1237 327.0 after 24"},
		{"nor without another", "CRUISE", "until UP rate=500000; until CRUISE rate=500000; until UP rate=0", "ProbeBW_UP 1237 327.0 after 24"},
		{"one that the program limits is none", "CRUISE", "until DOWN rate=500000; until CRUISE rate=500000 limited; until UP rate=500000", "ProbeBW_UP 1237 327.0 after 24"},
		{"nor is ProbeRTT", "CRUISE", "until RTT limited; trip inflight=50000 rate=500000; trip rate=500000; trip rate=500000; trip rate=500000; trip rate=500000", "ProbeBW_CRUISE 990 300.0 after 50"},
		{"a rate that the program limits says nothing", "CRUISE", "trip rate=900000 limited", "ProbeBW_CRUISE 990 300.0"},
		{"unless it is higher", "CRUISE", "trip rate=1100000 limited", "ProbeBW_CRUISE 1089 320.0"},
		{"acknowledgements in heaps leave room for them", "CRUISE", "trip acked=150000", "ProbeBW_CRUISE 990 350.0"},
		{"the round trip is measured every five seconds", "CRUISE", "until RTT limited", "ProbeRTT 990 50.0 slowed after 50"},
		{"for 200 ms", "CRUISE", "until RTT limited; trip inflight=50000; trip; trip", "ProbeRTT 990 50.0 slowed after 50"},
		{"and a round trip", "CRUISE", "until RTT limited; trip inflight=50000; trip unknown takes=300", "ProbeRTT 990 50.0 slowed after 50"},
		{"and longer by a round trip", "CRUISE", "until RTT limited; trip inflight=50000; trip; trip; trip", "ProbeBW_CRUISE 990 300.0 slowed after 50"},
		{"that is not before half the BDP is in flight", "CRUISE", "until RTT limited; trip inflight=50001; trip; trip; trip", "ProbeRTT 990 50.0 slowed after 50"},
		{"a silence is as good", "CRUISE", "pause 6s; trip", "ProbeBW_REFILL 990 300.0"},
		{"in Startup too", "Startup", "until RTT limited; until Startup inflight=50000 limited", "Startup 2742 310.0 slowed after 4"},
		{"a longer one is believed after ten", "CRUISE", "until RTT rtt=120 limited; until CRUISE rtt=120 inflight=50000; until RTT rtt=120 limited", "ProbeRTT 990 60.0 slowed after 51"},
		{"after silence the pace is that of the path", "UP", "pause 1s", "ProbeBW_UP 990 327.0"},
		{"five minutes forget nothing", "UP", "idle 5m", "ProbeBW_UP 1237 327.0"},
		{"more do", "UP", "idle 300001ms", "Startup 27700 10.0"},
		{"another path forgets all", "UP", "route", "Startup 27700 10.0"},
	} {
		r := &bbrPath{bbr: NewBBR(1000, false).(*bbr), at: 1000}
		if r.playScript("trip"); tt.from == "Drain" || tt.from == "DOWN" {
			r.playScript("until " + tt.from + " inflight=200000")
		}
		r.playScript("until " + tt.from)
		r.trips = 0
		r.playScript(tt.story)
		got := r.String()
		if r.trips > 0 {
			got += fmt.Sprintf(" after %d", r.trips)
		}
		check.That(t, got == tt.want, "%s: %s, want %s", tt.name, got, tt.want)
	}
}

// What comes by chance has the consequences that it had: a digest of each story.
func TestBBRByChanceGoesAsItDid(t *testing.T) {
	fuzzinput.CheckRecording(t, "testdata/bbr.txt", 250, func(seed int, told *strings.Builder) {
		in := fuzzinput.Script(fuzzinput.Random(seed, 400))
		words := strings.Split("trip,trip,trip rate=# acked=#,fill,trip late=# rate=#,trip,trip rate=# "+
			"inflight=#,sent #,trip late=# acked=# takes=#,until UP,trip limited rate=#,lose #,until DOWN inflight=#,"+
			"trip rtt=# takes=#,until RTT limited,trip inflight=1000 late=#,pause #ms,trip repairing lost=# "+
			"tx=#,loss,undo,timeout,trip unknown acked=#,ranges 6,mark,until CRUISE,lose # limited,pause "+
			"6s,trip volume=#,mtu #,trip srtt=#,route,idle 6m", ",")
		sizes := []int{0, 1, 10, 90, 100, 101, 1000, 2001, 5000, 50_000, 99_000, 100_000, 300_000, 1e6, 2e6}
		r := &bbrPath{bbr: NewBBR([]int{500, 1000, 1460, 8960, 65532}[seed%5], false).(*bbr),
			at: rawio.Time(1000 + 1e9*seed)}
		for len(in) > 0 {
			line := in.Line(words, sizes)
			r.playScript(line)
			fmt.Fprintln(told, line, r, r.PacingRate(time.Duration(seed)), r.Window(), r.rate.bwShortterm,
				r.volume.inflightShortterm, r.volume.inflightLongterm)
		}
	})
}

// Chunks in a row that are lost are one event, also where the first follows on one that was lost in
// an earlier round.
func TestLossesInARowAreOneEvent(t *testing.T) {
	b := NewBBR(1200, false).(*bbr)
	for i, lost := range []struct {
		adjacent bool
		events   int
	}{{true, 1}, {true, 1}, {false, 2}, {true, 2}, {false, 3}} {
		b.OnLost(1, &Lost{Octets: 1200, TxInFlight: 120_000, Since: 1200, Adjacent: lost.adjacent})
		check.Equal(t, fmt.Sprint("events after loss ", i+1), int(b.signals.lossEvents), lost.events)
	}
}

func TestMaximumOfAWindow(t *testing.T) {
	var m maxFilter
	for _, tt := range [][4]uint64{ // value, largest, time, window
		{9, 9, 1, 3}, {5, 9, 1, 3}, {7, 9, 2, 3}, {3, 9, 3, 3}, {1, 7, 4, 3}, {1, 3, 5, 3}, {2, 2, 6, 3},
		{1, 1, 40, 10}, {4, 4, 41, 10}, {1, 4, 50, 10}, {1, 1, 51, 10}} {
		check.Equal(t, fmt.Sprint("largest at ", tt[2]), m.update(int64(tt[0]), tt[2], tt[3]), int64(tt[1]))
	}
}

// While a probe goes up, each round doubles what the volume grows by, thirty times at most: as many
// rounds without a loss need no number of more bits.
func TestGrowthOfAProbeIsBounded(t *testing.T) {
	b := NewBBR(1200, false).(*bbr)
	b.cwnd = 1 << 44
	for range 100 {
		b.raiseInflightLongtermSlope()
	}
	check.Equal(t, "octets to be acknowledged for each more", b.cycle.upAckedPerInc, 1<<14)
	b.cwnd = 1 << 20
	b.raiseInflightLongtermSlope()
	check.Equal(t, "and with a small window", b.cycle.upAckedPerInc, 1200)
}
