package timeline

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// However long a run is, a few hundred points show all of it alike, the last one included.
func TestRecorderShowsAllOfTheTime(t *testing.T) {
	for _, n := range []int{0, 1, 5, 399, 400, 401, 5000, 300_000} {
		var r Recorder
		for i := range n {
			r.Add(Point{At: float64(i) / 1000, Out: uint64(i)})
		}
		points := r.Points()
		if n == 0 {
			check.Equal(t, "points of none", len(points), 0)
			continue
		}
		widest, least := 0.0, float64(n)
		for i := range points[1:] {
			gap := points[i+1].At - points[i].At
			widest = max(widest, gap)
			if i+2 < len(points) {
				least = min(least, gap)
			}
		}
		check.That(t, len(points) <= maxPoints && len(points) >= min(n, maxPoints/3) && points[0].At == 0 &&
			points[len(points)-1].Out == uint64(n-1) && (len(points) <= 2 || widest <= 2.1*least),
			"of %d points %d are kept, %v to %v, %v to %v s apart", n, len(points), points[0].At,
			points[len(points)-1].At, least, widest)
	}
}

// What a peer says of its associations is taken if it can be drawn.
func TestLineOfAPeerIsChecked(t *testing.T) {
	many := strings.Repeat(`{"at":1},`, maxPoints)
	for text, good := range map[string]bool{
		`{"points":[{"at":0.001,"out":5},{"at":0.002,"out":7}]}`: true, `{}`: true,
		`{"points":[{"at":1},{"at":1}]}`: false, `{"points":[{"at":2},{"at":1}]}`: false,
		`{"points":[{"at":-1}]}`: false, `{"points":[{"at":1e300}]}`: false, `{"points":[{"at":1,"rtt":-1}]}`: false,
		`{"points":[{"at":1,"rtt":1e300}]}`:                 false,
		`{"points":[{"at":1,"cwnd":18446744073709551615}]}`: false, `{"points":[{"at":1,"cwnd":-1}]}`: false,
		`{"points":[` + many + `{"at":2}]}`: false, `{"points":5}`: false,
		`{"points":[{"at":0}]}`: true, `{"points":[{"at":315360000}]}`: true, `{"points":[{"at":315360000.5}]}`: false, // ten years
		`{"points":[{"at":1,"rtt":315360000000}]}`: true, `{"points":[{"at":1,"rtt":315360000001}]}`: false,
		`{"points":[{"at":1,"out":9007199254740992}]}`: true, `{"points":[{"at":1,"out":9007199254740993}]}`: false,
		`{"points":[{"at":1,"in":9007199254740993}]}`: false, `{"points":[{"at":1,"flight":9007199254740993}]}`: false,
		`{"points":[{"at":1,"rwnd":9007199254740993}]}`: false, `{"points":[{"at":1,"window":9007199254740993}]}`: false,
		`{"points":[{"at":1,"queue":9007199254740993}]}`: false, `{"points":[{"at":1,"buffered":9007199254740993}]}`: false,
		`{"points":[{"at":1,"retransmits":9007199254740993}]}`: false,
	} {
		var l Line
		err := json.Unmarshal([]byte(text), &l)
		check.That(t, (err == nil) == good, "%.60s: %v", text, err)
	}
}

// A point of several associations has their sums, and the longest round trip.
func TestPointAddsAssociations(t *testing.T) {
	s := assoc.Stats{Outstanding: 4, PeerWindow: 5, RecvWindow: 6, Queued: 7, Buffered: 8}
	s.OctetsOut, s.DataOctetsIn, s.Retransmits = 1, 2, 9
	p := Point{At: 50}
	p.Add(&s, &assoc.PathStats{Cwnd: 3, SRTT: 1234567 * time.Nanosecond})
	want := Point{50, 1, 2, 3, 4, 5, 6, 7, 8, 1.235, 9}
	check.Equal(t, "one association", p, want)
	p.Add(&s, &assoc.PathStats{Cwnd: -3, SRTT: time.Millisecond})
	check.Equal(t, "two associations", p, Point{50, 2, 4, 3, 8, 10, 12, 14, 16, 1.235, 18})
	p.Add(new(assoc.Stats), &assoc.PathStats{SRTT: time.Minute})
	check.Equal(t, "the longest round trip", p.RTT, 60_000)
}

// Plots have the rate between points, in the unit that was asked for, and sizes in one that fits.
func TestFiguresSayWhatThePointsDo(t *testing.T) {
	l := Line{Name: "a", Points: []Point{{At: 0}, {At: 1, Out: 3 << 20, In: 100, Cwnd: 20 << 10, RTT: 5},
		{At: 2, Out: 4 << 20, In: 100, Cwnd: 40 << 10, RTT: 6, Retransmits: 2}}}
	var got []string
	for _, f := range Figures([]Line{l}, MiB) {
		for _, s := range f.Series {
			got = append(got, fmt.Sprintf("%s: %s [%s] %v", f.Title, s.Name, f.YLabel, s.Y))
		}
	}
	check.Slice(t, "figures", got, []string{"Throughput: a, sent [MiB/s] [3 3 1]",
		"Congestion window: a, cwnd [KiB] [0 20 40]", "Congestion window: a, in flight [KiB] [0 0 0]",
		"Round trip time: a [ms] [5 6]", "Receive window: a [bytes] [0 0 0]", "Queues: a, to send [bytes] [0 0 0]",
		"Queues: a, to take [bytes] [0 0 0]", "Retransmissions: a [chunks] [0 0 2]"})
	check.Equal(t, "MiB/s in Gb/s", fmt.Sprintf("%.6f", Figures([]Line{l}, Gbit)[0].Series[0].Y[1]), "0.025166")
}
