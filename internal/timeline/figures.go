package timeline

import "github.com/rddp-go/rddp/internal/chart"

// Unit is the unit in which throughput is shown: MiB a second, or gigabits.
type Unit struct {
	Name   string
	Octets float64 // in a second
}

var (
	MiB  = Unit{"MiB/s", 1 << 20}
	Gbit = Unit{"Gb/s", 1e9 / 8}
)

// Figures returns the plots of lines.
func Figures(lines []Line, rate Unit) []chart.Figure {
	list := []chart.Figure{
		{Title: "Throughput", Note: "Sent counts whole packets, repeated ones too. Received counts user data once.", YLabel: rate.Name, Series: throughputSeries(lines, rate)},
		octetFigure(lines, "Congestion window", "What a sender may have under way (cwnd), and what it has (in flight).",
			curve{"cwnd", func(p *Point) uint64 { return p.Cwnd }},
			curve{"in flight", func(p *Point) uint64 { return p.Flight }}),
		{Title: "Round trip time", Note: "Smoothed, of the path that data goes by (SRTT).", YLabel: "ms", Series: trimUnmeasured(makeSeries(lines, "", func(p *Point) float64 { return p.RTT }))},
		octetFigure(lines, "Receive window",
			"What the receiver at the other end still takes (rwnd), as the sender knows it.",
			curve{"", func(p *Point) uint64 { return p.Rwnd }}),
		octetFigure(lines, "Queues", "User data that waits to be sent, and that has come and waits to be taken. "+
			"RDMA hands data on at the moment it is sent, and places what comes at once.",
			curve{"to send", func(p *Point) uint64 { return p.Queue }},
			curve{"to take", func(p *Point) uint64 { return p.Buffered }}),
		{Title: "Retransmissions", Note: "DATA chunks sent again, since the beginning.", YLabel: "chunks", Series: makeSeries(lines, "", func(p *Point) float64 { return float64(p.Retransmits) })},
	}
	for i := range list {
		list[i].XLabel = "seconds"
	}
	return list
}

// curve is one quantity to show of each line.
type curve struct {
	name    string
	valueOf func(*Point) uint64
}

// octetFigure is a plot of octets, in a unit that fits.
func octetFigure(lines []Line, title, note string, curves ...curve) chart.Figure {
	var most uint64
	for _, l := range lines {
		for i := range l.Points {
			for _, c := range curves {
				most = max(most, c.valueOf(&l.Points[i]))
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
		f.Series = append(f.Series,
			makeSeries(lines, c.name, func(p *Point) float64 { return float64(c.valueOf(p)) / of })...)
	}
	return f
}

// makeSeries returns one curve for each line.
func makeSeries(lines []Line, what string, of func(*Point) float64) (list []chart.Series) {
	for _, l := range lines {
		s := chart.Series{Name: seriesName(l.Name, what)}
		for i := range l.Points {
			s.X, s.Y = append(s.X, l.Points[i].At), append(s.Y, of(&l.Points[i]))
		}
		list = append(list, s)
	}
	return list
}

// trimUnmeasured drops the time before the first figure.
func trimUnmeasured(list []chart.Series) []chart.Series {
	for i := range list {
		s := &list[i]
		for len(s.Y) > 0 && s.Y[0] == 0 {
			s.X, s.Y = s.X[1:], s.Y[1:]
		}
	}
	return list
}

func seriesName(line, what string) string {
	if what == "" {
		return line
	}
	return line + ", " + what
}

// throughputParts is how many parts of a line throughput is shown of. It is less than the number of
// points, as each part should have seen some packets.
const throughputParts = 50

// throughputSeries returns what went out and came in. It leaves out a direction with hardly more
// than acknowledgements.
func throughputSeries(lines []Line, rate Unit) (list []chart.Series) {
	var most uint64
	for _, l := range lines {
		if n := len(l.Points); n > 0 {
			most = max(most, l.Points[n-1].Out, l.Points[n-1].In)
		}
	}
	for _, l := range lines {
		for _, c := range []curve{{"sent", func(p *Point) uint64 { return p.Out }},
			{"received", func(p *Point) uint64 { return p.In }}} {
			if n := len(l.Points); n > 1 && c.valueOf(&l.Points[n-1]) >= most/50 {
				list = append(list, chart.Series{Name: seriesName(l.Name, c.name)})
				list[len(list)-1].X, list[len(list)-1].Y = growthRate(l.Points, c.valueOf, rate)
			}
		}
	}
	return list
}

// growthRate returns how fast a count grows.
func growthRate(points []Point, of func(*Point) uint64, rate Unit) (x, y []float64) {
	least := points[len(points)-1].At / throughputParts
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
