package timeline

import "github.com/rddp-go/rddp/internal/chart"

// MiB a second, or gigabits, is what throughput is shown in.
type Unit struct {
	Name   string
	Octets float64 // in a second
}

var (
	MiB  = Unit{"MiB/s", 1 << 20}
	Gbit = Unit{"Gb/s", 1e9 / 8}
)

// Figures are the plots of lines.
func Figures(lines []Line, rate Unit) []chart.Figure {
	list := []chart.Figure{
		{Title: "Throughput", Note: "Sent counts whole packets, repeated ones too. Received counts user data once.", YLabel: rate.Name, Series: throughput(lines, rate)},
		sized(lines, "Congestion window", "What a sender may have under way (cwnd), and what it has (in flight).",
			curve{"cwnd", func(p *Point) uint64 { return p.Cwnd }}, curve{"in flight", func(p *Point) uint64 { return p.Flight }}),
		{Title: "Round trip time", Note: "Smoothed, of the path that data goes by (SRTT).", YLabel: "ms", Series: measured(series(lines, "", func(p *Point) float64 { return p.RTT }))},
		sized(lines, "Receive window", "What the receiver at the other end still takes (rwnd), as the sender knows it.",
			curve{"", func(p *Point) uint64 { return p.Rwnd }}),
		sized(lines, "Queues", "User data that waits to be sent, and that has come and waits to be taken. RDMA hands data on at the moment it is sent, and places what comes at once.",
			curve{"to send", func(p *Point) uint64 { return p.Queue }}, curve{"to take", func(p *Point) uint64 { return p.Buffered }}),
		{Title: "Retransmissions", Note: "DATA chunks sent again, since the beginning.", YLabel: "chunks", Series: series(lines, "", func(p *Point) float64 { return float64(p.Retransmits) })},
	}
	for i := range list {
		list[i].XLabel = "seconds"
	}
	return list
}

// curve is one thing to show of each line.
type curve struct {
	name string
	of   func(*Point) uint64
}

// sized is a plot of octets, in a unit that fits.
func sized(lines []Line, title, note string, curves ...curve) chart.Figure {
	var most uint64
	for _, l := range lines {
		for i := range l.Points {
			for _, c := range curves {
				most = max(most, c.of(&l.Points[i]))
			}
		}
	}
	f := chart.Figure{Title: title, Note: note}
	of := 1.0
	switch {
	case most >= 10<<20:
		f.YLabel, of = "MiB", 1<<20
	case most >= 10<<10:
		f.YLabel, of = "KiB", 1<<10
	default:
		f.YLabel = "bytes"
	}
	for _, c := range curves {
		f.Series = append(f.Series, series(lines, c.name, func(p *Point) float64 { return float64(c.of(p)) / of })...)
	}
	return f
}

// series is one curve for each line.
func series(lines []Line, what string, of func(*Point) float64) (list []chart.Series) {
	for _, l := range lines {
		s := chart.Series{Name: named(l.Name, what)}
		for i := range l.Points {
			s.X, s.Y = append(s.X, l.Points[i].At), append(s.Y, of(&l.Points[i]))
		}
		list = append(list, s)
	}
	return list
}

// measured leaves out the time before there is a figure.
func measured(list []chart.Series) []chart.Series {
	for i := range list {
		s := &list[i]
		for len(s.Y) > 0 && s.Y[0] == 0 {
			s.X, s.Y = s.X[1:], s.Y[1:]
		}
	}
	return list
}

func named(line, what string) string {
	if what == "" {
		return line
	}
	return line + ", " + what
}

// slices is how many parts of a line throughput is shown of: fewer than it has points, as each should have seen some packets.
const slices = 50

// throughput is what went out and came in. A direction in which hardly anything goes, but acknowledgements, is not shown.
func throughput(lines []Line, rate Unit) (list []chart.Series) {
	var most uint64
	for _, l := range lines {
		if n := len(l.Points); n > 0 {
			most = max(most, l.Points[n-1].Out, l.Points[n-1].In)
		}
	}
	for _, l := range lines {
		for _, c := range []curve{{"sent", func(p *Point) uint64 { return p.Out }}, {"received", func(p *Point) uint64 { return p.In }}} {
			if n := len(l.Points); n > 1 && c.of(&l.Points[n-1]) >= most/50 {
				list = append(list, chart.Series{Name: named(l.Name, c.name)})
				list[len(list)-1].X, list[len(list)-1].Y = slope(l.Points, c.of, rate)
			}
		}
	}
	return list
}

// slope is how fast a count grows.
func slope(points []Point, of func(*Point) uint64, rate Unit) (x, y []float64) {
	least := points[len(points)-1].At / slices
	last := &points[0]
	for i := range points[1:] {
		p := &points[i+1]
		if p.At-last.At < least || of(p) < of(last) {
			continue
		}
		v := float64(of(p)-of(last)) / (p.At - last.At) / rate.Octets
		if x == nil {
			x, y = append(x, last.At), append(y, v)
		}
		x, y = append(x, p.At), append(y, v)
		last = p
	}
	return x, y
}
