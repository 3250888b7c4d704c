package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Figure is one plot.
type Figure struct {
	Title, Note    string
	XLabel, YLabel string // with the unit
	Series         []Series
	Bars           bool   // each point is a bar as far as the next
	XTicks         []Tick // nil: round numbers
	// X writes the first column of the table; nil: the number as it is.
	X func(float64) string
}

// Series is one curve. X grows.
type Series struct {
	Name string
	X, Y []float64
}

// Tick is a mark on an axis.
type Tick struct {
	At    float64
	Label string
}

// The plot has units of its own, and a screen scales it as it likes. Text is readable where the
// plot is 330 pixels wide.
const (
	width, height  = 400, 270
	left, right    = 52, width - 12
	top, bottom    = 24, height - 42
	maxTicks       = 5
	maxRows        = 48
	colours        = 6
	headroom       = 1.05
	textBelowPoint = 4
)

// These methods give the template the places of things.
func (view) Left() int   { return left }
func (view) Right() int  { return right }
func (view) Top() int    { return top }
func (view) Bottom() int { return bottom }
func (view) Beside() int { return left - 5 }
func (view) Below() int  { return bottom + 18 }
func (view) Under() int  { return height - 6 }

// plot is a Figure in the form that the template needs.
type plot struct {
	*Figure
	ID            int
	Width, Height int
	Says          string // for a reader who does not see it
	Curves        []curve
	XTicks        []mark
	YTicks        []mark
	Table         Table
}

type curve struct{ Name, Class, Path string }

// mark is a Tick in its place.
type mark struct {
	Pos, Text string
	Label     string
}

func (f *Figure) layOut(id int) plot {
	p := plot{Figure: f, ID: id, Width: width, Height: height}
	x0, x1, y1 := f.axisExtent()
	ys := []Tick{{0, "0"}}
	if y1 > 0 {
		ys = roundTicks(0, y1)
	} else {
		y1 = 1
	}
	px := func(x float64) float64 { return left + (x-x0)/(x1-x0)*(right-left) }
	py := func(y float64) float64 { return bottom - y/y1*(bottom-top) }
	xs := f.XTicks
	if xs == nil {
		xs = roundTicks(x0, x1)
	}
	for _, t := range xs {
		if t.At >= x0 && t.At <= x1 {
			p.XTicks = append(p.XTicks, mark{Pos: formatCoordinate(px(t.At)), Label: t.Label})
		}
	}
	for _, t := range ys {
		p.YTicks = append(p.YTicks, mark{Pos: formatCoordinate(py(t.At)),
			Text: formatCoordinate(py(t.At) + textBelowPoint), Label: t.Label})
	}
	for i, s := range f.Series {
		class := fmt.Sprintf("s%d", i%colours)
		if f.Bars {
			class += " bar"
		}
		p.Curves = append(p.Curves, curve{s.Name, class, f.svgPath(s, px, py)})
	}
	p.Says = f.describeInWords()
	p.Table = f.valueTable(x0, x1)
	return p
}

// axisExtent returns the range of the axes. The vertical one begins with 0.
func (f *Figure) axisExtent() (x0, x1, y1 float64) {
	x0, x1 = math.Inf(1), math.Inf(-1)
	for _, s := range f.Series {
		if len(s.X) > 0 {
			x0, x1 = min(x0, s.X[0]), max(x1, s.X[len(s.X)-1])
			y1 = max(y1, slices.Max(s.Y))
		}
	}
	if !(x0 < x1) { // nothing, or one point
		x0 = min(x0, math.MaxFloat64/4)
		x1 = x0 + 1
	}
	if x0 > 0 && x0 < x1/20 {
		x0 = 0
	}
	return x0, x1, y1 * headroom
}

func (f *Figure) svgPath(s Series, px, py func(float64) float64) string {
	var b strings.Builder
	for i := range s.X {
		x, y := formatCoordinate(px(s.X[i])), formatCoordinate(py(s.Y[i]))
		switch {
		case f.Bars && i+1 < len(s.X):
			fmt.Fprintf(&b, "M%s %dV%sH%sV%d", x, bottom, y, formatCoordinate(px(s.X[i+1])), bottom)
		case f.Bars:
		case i == 0:
			fmt.Fprintf(&b, "M%s %s", x, y)
		default:
			fmt.Fprintf(&b, "L%s %s", x, y)
		}
	}
	return b.String()
}

// describeInWords is the plot in words.
func (f *Figure) describeInWords() string {
	list := []string{f.Title + ", " + f.YLabel + " over " + f.XLabel}
	for _, s := range f.Series {
		if len(s.Y) > 0 {
			list = append(list, fmt.Sprintf("%s from %s to %s", s.Name, formatNumber(slices.Min(s.Y)),
				formatNumber(slices.Max(s.Y))))
		}
	}
	return strings.Join(list, "; ")
}

// valueTable has the values of all curves at the same moments.
func (f *Figure) valueTable(x0, x1 float64) Table {
	t := Table{Title: f.Title, Head: []string{f.XLabel}}
	var at []float64
	for _, s := range f.Series {
		t.Head = append(t.Head, s.Name)
		at = append(at, s.X...)
	}
	slices.Sort(at)
	if at = slices.Compact(at); len(at) > maxRows {
		for i := range maxRows {
			at[i] = x0 + (x1-x0)*float64(i)/(maxRows-1)
		}
		at = at[:maxRows]
	}
	if f.Bars && len(at) > 0 {
		at = at[:len(at)-1] // where the last one ends
	}
	show := f.X
	if show == nil {
		show = formatNumber
	}
	for _, x := range at {
		row := []string{show(x)}
		for _, s := range f.Series {
			cell := "–"
			if i, found := slices.BinarySearch(s.X, x); found {
				cell = formatNumber(s.Y[i])
			} else if i > 0 {
				cell = formatNumber(s.Y[i-1])
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// roundTicks returns marks at round numbers.
func roundTicks(from, to float64) (list []Tick) {
	step := math.Pow10(int(math.Floor(math.Log10((to - from) / maxTicks))))
	for _, k := range []float64{1, 2, 5, 10} {
		if (to-from)/(k*step) <= maxTicks {
			step *= k
			break
		}
	}
	unit, of := "", 1.0
	switch {
	case to >= 1e8:
		unit, of = "M", 1e6
	case to >= 1e5:
		unit, of = "k", 1e3
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step/of)-1e-9)))
	for i := math.Ceil(from/step-1e-9) + 0; i*step <= to*(1+1e-9); i++ {
		list = append(list, Tick{i * step, strconv.FormatFloat(i*step/of, 'f', decimals, 64) + unit})
	}
	return list
}

// formatNumber writes four digits, or a whole number with all of them.
func formatNumber(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func formatCoordinate(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
