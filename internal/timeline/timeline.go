// Package timeline keeps what an association does over time, and chooses the plots of it. The
// reports and the traces of ddpbench have the same plots.
//
//   - In: samples with their time.
//   - Out: series for plots.
//   - Invariant: memory is bounded, however long it takes.
package timeline

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// Point is what associations are doing at one moment.
type Point struct {
	At          float64 `json:"at"`          // seconds since the beginning, to the microsecond
	Out         uint64  `json:"out"`         // octets of packets sent so far
	In          uint64  `json:"in"`          // octets of user data received so far
	Cwnd        uint64  `json:"cwnd"`        // octets, as all below
	Flight      uint64  `json:"flight"`      // sent and not acknowledged
	Rwnd        uint64  `json:"rwnd"`        // what the peer still takes
	Window      uint64  `json:"window"`      // what this side still takes
	Queue       uint64  `json:"queue"`       // waits to be sent
	Buffered    uint64  `json:"buffered"`    // waits to be read
	RTT         float64 `json:"rtt"`         // smoothed, milliseconds; 0: not measured
	Retransmits uint64  `json:"retransmits"` // DATA chunks sent again so far
}

// Add adds what another association is doing. RTT becomes the longer of both.
func (p *Point) Add(s *assoc.Stats, path *assoc.PathStats) {
	p.Out += s.OctetsOut
	p.In += s.DataOctetsIn
	p.Cwnd += clampOctets(path.Cwnd)
	p.Flight += clampOctets(s.Outstanding)
	p.Rwnd += clampOctets(s.PeerWindow)
	p.Window += clampOctets(s.RecvWindow)
	p.Queue += clampOctets(s.Queued)
	p.Buffered += clampOctets(s.Buffered)
	p.RTT = max(p.RTT, math.Round(path.SRTT.Seconds()*1e6)/1e3)
	p.Retransmits += s.Retransmits
}

func clampOctets(n int) uint64 { return uint64(max(n, 0)) }

// Line is the life of an association, or of all of one side.
type Line struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
}

// maxPoints is the most points of a Line. A plot cannot show more.
const maxPoints = 400

// These bound the Line of a peer, so that every plot of it can be drawn.
const (
	maxSeconds = 10 * 365 * 24 * 3600 // seconds
	maxCount   = 1 << 53
)

var errBadLine = errors.New("the figures of the peer make no sense")

// UnmarshalJSON takes the line of a peer, which may contain anything.
func (l *Line) UnmarshalJSON(b []byte) error {
	type plain Line
	if err := json.Unmarshal(b, (*plain)(l)); err != nil {
		return err
	}
	if len(l.Points) > maxPoints {
		return errBadLine
	}
	last := -1.0
	for i := range l.Points {
		p := &l.Points[i]
		p.At = roundMicros(p.At)
		most := max(p.Out, p.In, p.Cwnd, p.Flight, p.Rwnd, p.Window, p.Queue, p.Buffered, p.Retransmits)
		if p.At <= last || p.At > maxSeconds || most > maxCount || p.RTT < 0 || p.RTT > maxSeconds*1e3 {
			return errBadLine
		}
		last = p.At
	}
	return nil
}

func roundMicros(s float64) float64 { return math.Round(s*1e6) / 1e6 }

// Recorder takes points, and keeps a selection that covers all the time since the first evenly.
type Recorder struct {
	points    []Point
	minGap    time.Duration // between two that are kept, at least
	latest    Point         // the latest point, if it is not kept
	hasLatest bool
}

// Due returns how long to wait for the next point.
func (r *Recorder) Due() time.Duration { return max(r.minGap, firstGap) }

// firstGap is the time between the first points.
const firstGap = time.Millisecond

// Add takes a point that is later than all before.
func (r *Recorder) Add(p Point) {
	p.At = roundMicros(p.At)
	if n := len(r.points); n > 0 && p.At < r.points[n-1].At+r.minGap.Seconds() || n > 0 && p.At <= r.points[n-1].At {
		r.latest, r.hasLatest = p, true
		return
	}
	r.hasLatest = false
	if len(r.points) < maxPoints-1 { // one place is for the last
		r.points = append(r.points, p)
		return
	}
	r.minGap = 2 * r.Due()
	kept := r.points[:1]
	for _, q := range r.points[1:] {
		if q.At >= kept[len(kept)-1].At+r.minGap.Seconds() {
			kept = append(kept, q)
		}
	}
	if r.points = kept; len(kept) == maxPoints-1 { // points came far apart
		r.minGap *= 2
	}
	r.Add(p)
}

// Points returns the points that are kept, and the latest one.
func (r *Recorder) Points() []Point {
	if n := len(r.points); r.hasLatest && r.latest.At > r.points[n-1].At {
		return append(r.points[:n:n], r.latest)
	}
	return r.points
}
