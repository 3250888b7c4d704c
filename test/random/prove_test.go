package random

import (
	"flag"
	"go/parser"
	"go/token"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "replay this one seed")
	seedsFlag = flag.Uint64("seeds", 0, "run this many seeds (0: 16, under the race detector 2), long worlds cut short")
)

// TestSeeds plays whole worlds. A violation prints its seed; -seed N replays it exactly.
func TestSeeds(t *testing.T) {
	first, n := uint64(1), *seedsFlag
	switch {
	case *seedFlag != 0:
		first, n = *seedFlag, 1
	case n == 0 && race.Enabled:
		n = 2
	case n == 0:
		n = 16
	}
	var next atomic.Uint64
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sum Tally
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
				s := Draw(first + i)
				if *seedFlag == 0 {
					s.Length = min(s.Length, 10*time.Minute)
				}
				res := s.Run()
				mu.Lock()
				sum.Add(&res.Tally)
				mu.Unlock()
				check.That(t, res.Violation == nil,
					"%v\n\treplay: go test ./test/random -run TestSeeds -seed %d -v", res.Violation, s.Seed)
			}
		})
	}
	wg.Wait()
	var b strings.Builder
	sum.Write(&b)
	t.Log(b.String())
	for what, n := range map[string]int{"sides of associations": sum.Assocs, "messages": sum.Heard,
		"sessions": sum.RDMA.Sessions + sum.OverTCP.Sessions, "acts": sum.Acts[Say] + sum.Acts[Loss]} {
		check.That(t, n != 0 || *seedFlag != 0, "no %s: the worlds prove nothing", what)
	}
	check.That(t, n < 16 || sum.RDMA.Sessions > 0 && sum.OverTCP.Sessions > 0, "%d sessions over SCTP, %d over TCP",
		sum.RDMA.Sessions, sum.OverTCP.Sessions)
}

// runSeeds lets n worlds live, and returns what has come to pass in them.
func runSeeds(t *testing.T, draw func(uint64) Schedule, first, n uint64) (sum Tally) {
	t.Helper()
	for seed := first; seed < first+n; seed++ {
		s := draw(seed)
		res := s.Run()
		sum.Add(&res.Tally)
		check.That(t, res.Violation == nil, "seed %d: %v", seed, res.Violation)
	}
	return sum
}

// Worlds in which every association has extensions.
func TestSeedsWithExtensions(t *testing.T) {
	n := uint64(8)
	if race.Enabled {
		n = 1
	}
	sum := runSeeds(t, DrawExtended, 1, n)
	check.That(t, sum.Heard > 0 && (sum.Resets > 0 || n == 1), "%d messages, %d resets: the worlds prove nothing", sum.Heard,
		sum.Resets)
}

// Worlds in which every association is encrypted.
func TestSeedsEncrypted(t *testing.T) {
	first, n := uint64(1), uint64(10)
	switch {
	case *seedFlag != 0:
		first, n = *seedFlag, 1
	case race.Enabled:
		n = 1
	}
	sum := runSeeds(t, DrawEncrypted, first, n)
	check.That(t, sum.Heard > 0 && sum.Encrypted > 0 && sum.Records > 1000 && (sum.Rekeys > 0 || n == 1),
		"the worlds prove nothing: %+v", sum)
}

// Worlds in which all is RDMA over TCP.
func TestSeedsOverTCP(t *testing.T) {
	n := uint64(16)
	if race.Enabled {
		n = 2
	}
	sum := runSeeds(t, DrawOverTCP, 1, n)
	r := &sum.OverTCP
	check.That(t, r.Sessions > 0 && (n < 16 || r.CutOff > 0 && r.Losses > 0 && r.Violated > 0 && r.Gracious > 0),
		"%+v: the worlds prove nothing", r)
}

// A schedule is played the same way twice, packet for packet.
func TestSchedulesReplayExactly(t *testing.T) {
	race.Costly(t)
	for seed := uint64(101); seed < 104; seed++ {
		s := Draw(seed)
		s.Length = min(s.Length, time.Minute)
		a, b := s.Run(), s.Run()
		check.That(t, a.Hash == b.Hash && reflect.DeepEqual(a.Tally, b.Tally),
			"seed %d: hash %x, then %x; %+v, then %+v", seed, a.Hash, b.Hash, a.Tally, b.Tally)
		check.That(t, !reflect.DeepEqual(s.Acts, Draw(seed+10).Acts), "different seeds draw the same acts")
	}
}

// Of a long schedule that fails for two of its acts together, these two are left, between two plain
// hosts.
func TestShrinkLeavesWhatIsNeeded(t *testing.T) {
	var s Schedule
	crash, say := -1, -1
	for seed := uint64(1); crash < 0 || say < 0; seed++ {
		s = Draw(seed)
		crash, say = -1, -1
		for i, a := range s.Acts {
			switch {
			case a.Kind == Crash && crash < 0:
				crash = i
			case a.Kind == Say && crash >= 0 && s.Acts[crash].A == s.Assocs[a.A].B && len(s.Acts) > 30 &&
				len(s.Hosts) > 4:
				say = i
			}
		}
	}
	runs := 0
	fails := func(s *Schedule) bool { // whoever crashes is spoken to later
		runs++
		for i, a := range s.Acts {
			for _, b := range s.Acts[i:] {
				if a.Kind == Crash && b.Kind == Say && s.Assocs[b.A].B == a.A {
					return true
				}
			}
		}
		return false
	}
	short := Shrink(s, 2000, fails)
	check.That(t, len(short.Acts) == 2 && len(short.Assocs) == 1 && len(short.Hosts) == 2 && fails(&short),
		"after %d tries:\n%s", runs, short.Test("Short"))
	check.That(t, short.Assocs[0].Config == 0 && short.Acts[1].N == 1 && short.Acts[0].For <= time.Millisecond &&
		short.Hosts[0].MTU == 0, "more than plain:\n%s", short.Test("Short"))
}

// A violation that only a run shows is shrunk by runs: here "no association is ever set up anew".
func TestShrinkByRunning(t *testing.T) {
	fails := func(s *Schedule) bool { return s.Run().Tally.Restarts > 0 }
	s := Schedule{Seed: 9, Length: 20 * time.Second, Hosts: []Host{{Nets: 1}, {Nets: 2}, {Nets: 1}},
		Assocs: []Assoc{{A: 1, B: 0}, {A: 2, B: 0, Config: 77}},
		Acts: []Act{
			{At: time.Second, Kind: Say, A: 0, N: 5}, {At: 2 * time.Second, Kind: Loss, A: 1, B: 0, N: 10, For: time.Second, Net: -1},
			{At: 3 * time.Second, Kind: Crash, A: 2, For: time.Second}, {At: 9 * time.Second, Kind: Say, A: 1, B: 1, N: 3},
		}}
	must.That(t, fails(&s), "no association is set up anew: the story is not told")
	short := Shrink(s, 100, fails)
	check.That(t, len(short.Acts) == 1 && short.Acts[0].Kind == Crash && len(short.Assocs) == 1 &&
		len(short.Hosts) == 2, "%s", short.Test("Short"))
}

// What is printed to paste is Go, with everything in it that is not zero.
func TestLiteralIsGo(t *testing.T) {
	s := Draw(3)
	src := "package x\n" + s.Test("Seed3")
	_, err := parser.ParseFile(token.NewFileSet(), "x.go", src, 0)
	must.That(t, err == nil, "%v\n%s", err, src)
	check.Equal(t, "acts", strings.Count(src, "At: "), len(s.Acts))
}

// Schedules that have found something, in the stack or in the oracle.
func TestSchedulesOfThePast(t *testing.T) {
	race.Costly(t)
	for name, s := range map[string]Schedule{
		"what is due in a stream takes no room from a message that is delivered in pieces": {Seed: 0x43b66f1,
			Length: 180000000000, Hosts: []Host{{Nets: 2}, {Nets: 2}},
			Assocs: []Assoc{{A: 1, Config: 0x65a28101, Extras: 173}, {A: 1, Config: 0x5da95ee9, Extras: 91}},
			Acts: []Act{{At: 73132038709, Kind: Hurl}, {At: 74349047245, Kind: Say, B: 1, For: 613879, N: 1},
				{At: 75011545193, Kind: Say, B: 1, For: 535912, N: 1497},
				{At: 94473152493, Kind: Isolate, A: 1, For: 8877367132}}},
		"an old SACK from a longer road takes back what the peer's program has": {Seed: 0x18e78a3, Length: 585937500,
			Hosts: []Host{{Nets: 1}, {Nets: 1}, {Nets: 1}, {Nets: 3}, {Nets: 1}, {Nets: 1}, {Nets: 2}, {Nets: 1}, {Nets: 1},
				{Nets: 1}},
			Assocs: []Assoc{{A: 9, B: 7, UDP: true, Extras: 159}, {A: 5, Extras: 95}, {A: 7, B: 8, Extras: 31},
				{A: 6, B: 3, Config: 0xe62deadd, Extras: 109}},
			Acts: []Act{{At: 573000000, Kind: Say, A: 3, For: 277197802, N: 487}}},
		"who begins its TSNs anew with a closed window is denied that, and reads on": {Seed: 0x7e9, Length: 510000000000,
			Hosts: []Host{{Nets: 1}, {Nets: 1}, {Nets: 1, NAT: true}, {Nets: 1, NAT: true}, {Nets: 1}, {Nets: 1, NAT: true},
				{Nets: 1}, {Nets: 1}, {Nets: 1, NAT: true}},
			Assocs: []Assoc{{A: 8, B: 1, UDP: true, Config: 0xeed60a3f, Extras: 153}},
			Acts: []Act{{At: 630000000, Kind: Say, B: 1, For: 396116973765, N: 1038},
				{At: 276861840924, Kind: Say, For: 55639940038, N: 286}}},
		"a peer that restarts before there are keys is heard under its new tag": {Seed: 0x4edf, Length: 585937500,
			Hosts: []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{Use: Both, A: 1, Keys: 1}},
			Acts: []Act{{At: 189363110, Kind: Crash, For: 867187}}},
		"messages of key management wait for no room in a small send buffer": {Seed: 0x13ed, Length: 527343750,
			Hosts:  []Host{{Nets: 1}, {Nets: 1, NAT: true}},
			Assocs: []Assoc{{A: 1, UDP: true, Config: 0x6072d71a, Extras: 135, Keys: 15}},
			Acts: []Act{{At: 315000000, Kind: Say, For: 506443, N: 162},
				{At: 370000000, Kind: Say, B: 1, For: 872209, N: 1}}},
		"a message given up by the timeout that ends its association has an end": {Seed: 0x663e05, Length: 600000000000,
			Hosts: []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{B: 1, Config: 0x3db50dc5, Extras: 63}},
			Acts: []Act{{At: 265000000, Kind: Say, N: 945}, {At: 986000000, Kind: Say, B: 1, N: 1},
				{At: 163022147684, Kind: Cut, B: 1, Net: -1, For: 208797075808},
				{At: 324651232892, Kind: Say, For: 181721204301, N: 273}}},
		"a SACK may come a minute after a reset of TSNs, to a host that was suspended": {Seed: 0xd6e1e,
			Length: 180000000000,
			Hosts:  []Host{{Nets: 1}, {Nets: 1, NAT: true}},
			Assocs: []Assoc{{A: 1, UDP: true, Extras: 31}},
			Acts: []Act{{At: 674000000, Kind: Say, B: 1, For: 960975, N: 15},
				{At: 8066542683, Kind: Say, B: 1, For: 62376653015, N: 91},
				{At: 56666243774, Kind: Late, A: 1, Net: -1, For: 113235255, N: 9},
				{At: 126469975036, Kind: Jump, For: 62953237946}}},
		"what a life has said is kept for a peer that hears of it only after its end": {Seed: 0x46b, Length: 937500000,
			Hosts: []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{B: 1, UDP: true}},
			Acts: []Act{{At: 42000000, Kind: Say, B: 1, For: 588189, N: 1}, {At: 209000000, Kind: Hurl, B: 1}}},
		"two that set up an association at once may each answer with another TSN": {Seed: 0x164, Length: 60000000000,
			Hosts: []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{Use: Both, A: 1, Config: 0x89780b17}, {A: 1}},
			Acts: []Act{{At: 33960463277, Kind: Say, For: 12219748724, N: 279}, {At: 36390431675, Kind: Hurl},
				{At: 44300709406, Kind: Hangup, B: 1}}},
		"what arrived before half an hour of silence makes nothing late that is sent after it": {Seed: 0xbdb36,
			Length: 5940000000000,
			Hosts:  []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{A: 1, Config: 0x40031676}},
			Acts: []Act{{At: 225000000, Kind: Say, B: 1, For: 1382672020306, N: 2},
				{At: 4652357159182, Kind: Say, B: 1, For: 897619, N: 1}}},
		"what was sent more than half an hour ago makes nothing late that is sent after it": {Seed: 0xd7022,
			Length: 300000000000,
			Hosts:  []Host{{Nets: 1}, {Nets: 1, NAT: true}}, Assocs: []Assoc{{A: 1, UDP: true}},
			Acts: []Act{{At: 203307490378, Kind: Say, For: 102190455258, N: 487},
				{At: 238427174603, Kind: Corrupt, A: 1, Net: -1, For: 21188797407, N: 10},
				{At: 256669036858, Kind: Jump, A: 1, For: 4281542237015}}},
		"a cookie brings about no second association when the first is given up": {Seed: 0x187da, Length: 150000000000,
			Hosts:  []Host{{Nets: 2}, {Nets: 1}, {Nets: 3}, {Nets: 1}},
			Assocs: []Assoc{{A: 3}, {A: 2}, {A: 1, B: 2}, {A: 2, Config: 0x6906f770}},
			Acts: []Act{
				{At: 5812185357, Kind: Cut, B: 2, Net: -1, For: 37034295482}, {At: 6276164255, Kind: Loss, B: 2, Net: -1, For: 117895794135, N: 51},
				{At: 15053777544, Kind: Say, A: 3, B: 1, For: 981048, N: 1}, {At: 44188898304, Kind: Say, A: 3, For: 31006711245, N: 3},
				{At: 53515055427, Kind: Say, A: 3, B: 1, For: 941969, N: 92}}},
		"a session that fails for a message without room ends": {Seed: 0x497bc, Length: 90000000000,
			Hosts: []Host{{Nets: 1}, {Nets: 1}, {Nets: 1, MTU: 576}, {Nets: 1}, {Nets: 1}, {Nets: 1, NAT: true},
				{Nets: 1, NAT: true}, {Nets: 1}, {Nets: 1, NAT: true}},
			Assocs: []Assoc{{A: 8, B: 4, UDP: true}, {A: 5, B: 4, UDP: true}, {Use: RDMA, A: 6, B: 4, UDP: true},
				{A: 5, B: 7, UDP: true},
				{A: 5, UDP: true}, {Use: RDMA, A: 5, B: 2, UDP: true}},
			Acts: []Act{{At: 69975070397, Kind: Work, A: 5, N: 68}}},
		"516 octets are whole at an MTU of 576, and a graceful end that wants for room promises nothing": {Seed: 0x4a0cd, Length: 270000000000,
			Hosts: []Host{{Nets: 1, MTU: 576}, {Nets: 1, NAT: true}, {Nets: 1, NAT: true}, {Nets: 1}, {Nets: 1}},
			Assocs: []Assoc{{Use: RDMA, A: 1, UDP: true}, {A: 3}, {A: 4}, {A: 1, B: 4, UDP: true}, {A: 4},
				{A: 2, UDP: true},
				{Use: RDMA, A: 4}, {Use: RDMA, A: 1, UDP: true}, {Use: RDMA, A: 3}},
			Acts: []Act{
				{At: 8408724862, Kind: Work, A: 8, B: 1, For: 110314195985, N: 560}, {At: 40212937271, Kind: Work, A: 8, B: 3, For: 923767, N: 3},
				{At: 86659726948, Kind: Work, A: 8, B: 1, For: 280662932209, N: 98}, {At: 104198112294, Kind: Work, A: 8, For: 65081964129, N: 85},
				{At: 121401150319, Kind: Work, A: 8, B: 2, N: 2}, {At: 142724797820, Kind: Hurl, A: 8, B: 1}}},
		"a shutdown may take too long for all that the peer has to send": {Seed: 0x4b36b, Length: 20760000000000,
			Hosts: []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{A: 1, Config: 0x2d40b0ed}},
			Acts: []Act{{At: 20392497282678, Kind: Say, B: 1, For: 537537, N: 1622},
				{At: 20620662026166, Kind: Hangup}}},
		"a shutdown may take too long for a side that asks for it and reads nothing": {Seed: 0x7a856,
			Length: 2100000000000,
			Hosts:  []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{A: 1, Config: 0x8d2d8d00}},
			Acts: []Act{{At: 1754684389509, Kind: Starve, B: 1, For: 91966640164},
				{At: 1777667726158, Kind: Say, For: 749229, N: 10},
				{At: 1782725174639, Kind: Hangup, B: 1}}},
		"late packets of an association that was given up do not get into another from the same cookie": {Seed: 0x230,
			Length: 840000000000,
			Hosts:  []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{Use: Both, A: 1}, {A: 1}},
			Acts: []Act{
				{At: 133000000, Kind: Say, B: 1, For: 271511276139, N: 54},
				{At: 615000000, Kind: Say, A: 1, B: 1, For: 720813313880, N: 50}, {At: 682000000, Kind: Say, For: 758401, N: 1},
				{At: 750000000, Kind: Say, B: 1, For: 519124, N: 202}, {At: 784000000, Kind: Say, B: 1, For: 929070, N: 16},
				{At: 866000000, Kind: Say, A: 1, For: 310122428867, N: 90}, {At: 5729118764, Kind: Hangup, A: 1, B: 1},
				{At: 20605199949, Kind: Say, For: 361601378304, N: 16},
				{At: 68923727913, Kind: Say, A: 1, B: 1, For: 150644982670, N: 40},
				{At: 115131692618, Kind: Route, A: 1, Net: -1, For: 2329567, N: 1}, {At: 131323234815, Kind: Jump, For: 84427264742},
				{At: 134036226766, Kind: Say, A: 1, For: 69735060991, N: 30},
				{At: 152584053256, Kind: Say, B: 1, For: 116527596498, N: 1},
				{At: 169435832702, Kind: Mute, B: 1, Net: -1, For: 116811969405},
				{At: 182783186453, Kind: Say, B: 1, For: 901974941, N: 10},
				{At: 210857030804, Kind: Say, B: 1, For: 503223192695, N: 27}, {At: 217649224783, Kind: Say, For: 82258867707, N: 7},
				{At: 230986756301, Kind: Say, For: 314873781174, N: 7},
				{At: 273876352818, Kind: Mute, B: 1, Net: -1, For: 242850304835},
				{At: 448563615719, Kind: Say, B: 1, For: 85826121502, N: 374},
				{At: 475347866896, Kind: Jitter, B: 1, Net: -1, For: 453490797421, N: 1},
				{At: 500597931617, Kind: Late, B: 1, Net: -1, For: 137524994670, N: 12},
				{At: 510459030075, Kind: Say, For: 10978602843, N: 49}, {At: 516812783267, Kind: Say, A: 1, For: 152744703971, N: 3},
				{At: 528077009048, Kind: Corrupt, B: 1, Net: -1, For: 653879625900, N: 19},
				{At: 539877883442, Kind: Starve, For: 2310067354}, {At: 540200071024, Kind: Hangup, A: 1, B: 1},
				{At: 602838415709, Kind: Say, For: 547580843465, N: 6}, {At: 608144502867, Kind: Hangup, B: 1},
				{At: 612880920596, Kind: Isolate, A: 1, For: 387295740}, {At: 625900592320, Kind: Hangup, A: 1},
				{At: 636397039517, Kind: Say, A: 1, B: 1, For: 804496722, N: 4},
				{At: 637395797934, Kind: Say, B: 1, For: 72409106595, N: 9},
				{At: 641071371186, Kind: Say, A: 1, B: 1, For: 176066529023, N: 30},
				{At: 656267526753, Kind: Say, A: 1, B: 1, For: 6140224918, N: 1}, {At: 662626021741, Kind: Say, For: 2903006656, N: 1},
				{At: 711125045723, Kind: MTU, A: 1, Net: -1, For: 106056289965, N: 576},
				{At: 713706642275, Kind: Say, B: 1, For: 5258660525, N: 1}, {At: 729247761855, Kind: Hurl, A: 1, B: 1},
				{At: 733772925262, Kind: Cut, B: 1, Net: -1, For: 21089662634},
				{At: 748054037403, Kind: Say, A: 1, For: 30139403369, N: 69},
				{At: 760473346674, Kind: Late, B: 1, Net: -1, For: 652465958429, N: 18}}},
		"a SACK that is a minute and a half older than a reset of TSNs": {Seed: 0xa3930, Length: 150000000000,
			Hosts: []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{A: 1, Extras: 31}},
			Acts: []Act{{At: 234000000, Kind: Say, For: 106194205382, N: 961}, {At: 522000000, Kind: Say, For: 500597, N: 125},
				{At: 57766652626, Kind: Late, B: 1, Net: -1, For: 511763542, N: 8}}},
		"what follows a message that the end of its association has cut off": {Seed: 0xdd660, Length: 300000000000,
			Hosts: []Host{{Nets: 1}, {Nets: 1}}, Assocs: []Assoc{{B: 1, Config: 0x834d416e}},
			Acts: []Act{
				{At: 168000000, Kind: Starve, B: 1, For: 1403230774}, {At: 196000000, Kind: Say, B: 1, For: 51244620897, N: 348},
				{At: 278000000, Kind: Say, For: 366166855, N: 4}, {At: 285000000, Kind: Say, For: 299430078, N: 6},
				{At: 295000000, Kind: Say, For: 5607692991, N: 469}, {At: 302000000, Kind: Say, B: 1, For: 100438558, N: 12},
				{At: 320000000, Kind: Say, For: 696439, N: 119}, {At: 326000000, Kind: Hangup},
				{At: 337000000, Kind: Say, B: 1, For: 605545, N: 26}, {At: 338000000, Kind: Say, B: 1, For: 782026, N: 2},
				{At: 353000000, Kind: Say, B: 1, For: 583597, N: 1}, {At: 455000000, Kind: Starve, B: 1, For: 1000000000},
				{At: 536000000, Kind: Say, B: 1, For: 688262, N: 1}, {At: 586000000, Kind: Say, B: 1, For: 272332544684, N: 241},
				{At: 622000000, Kind: Say, B: 1, For: 607603, N: 3}, {At: 729000000, Kind: Say, B: 1, For: 551035, N: 14},
				{At: 782000000, Kind: Say, B: 1, For: 985187, N: 458}, {At: 27275265918, Kind: Starve, B: 1, For: 1111558926},
				{At: 27961451679, Kind: Hangup}, {At: 41094320445, Kind: Starve, B: 1, For: 20205918108},
				{At: 41573154693, Kind: Mark, B: 1, Net: -1, For: 297832344641, N: 31},
				{At: 58384619561, Kind: Loss, A: 1, Net: -1, For: 6635985767, N: 21},
				{At: 74396305028, Kind: MTU, A: 1, Net: -1, For: 288231392, N: 1000},
				{At: 75216221923, Kind: Corrupt, B: 1, Net: -1, For: 137927904581, N: 14}, {At: 79479808140, Kind: Hangup, B: 1},
				{At: 145169367756, Kind: Starve, B: 1, For: 1000000000}, {At: 164726748224, Kind: Crash, For: 27014270356},
				{At: 196572010637, Kind: Jitter, B: 1, Net: -1, For: 5976801040, N: 256},
				{At: 202242655465, Kind: Starve, B: 1, For: 1000000000}, {At: 204642158658, Kind: Hurl, B: 1}}},
		"sources that take turns leave the path with the MTU that was found": {Seed: 0x49999, Length: 9660000000000,
			Hosts:  []Host{{Nets: 1}, {Nets: 1, NAT: true, MTU: 576}, {Nets: 1}, {Nets: 1}, {Nets: 3}},
			Assocs: []Assoc{{A: 1, B: 4, UDP: true, Config: 0x383620c0}},
			Acts: []Act{{At: 8413344853766, Kind: Isolate, A: 1, For: 629327096941},
				{At: 8864137623439, Kind: Say, B: 1, For: 551535, N: 3}}},
	} {
		v := s.Run().Violation
		check.That(t, v == nil, "%s: %v", name, v)
	}
}
