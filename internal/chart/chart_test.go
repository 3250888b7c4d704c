package chart

import (
	"math"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// Whatever text a page is given is shown as it is and means nothing, nothing is asked for beyond
// the page, and each plot has its words and its table.
func TestPageIsSelfContainedAndEscapes(t *testing.T) {
	const evil = `</title></svg><script>alert(1)</script><img src=http://x.test onerror=a()>"'&`
	p := Page{Title: evil, Lead: evil, Notes: []string{evil},
		Tables: []Table{{Title: evil, Rows: [][]string{{evil, evil}}}, {Title: "b", Head: []string{evil}}},
		Figures: []Figure{{Title: evil, Note: evil, XLabel: evil, YLabel: evil, XTicks: []Tick{{1, evil}},
			Series: []Series{{evil, []float64{1, 2}, []float64{3, 4}}}}}}
	var b strings.Builder
	must.OK(t, p.Write(&b))
	doc := must.Get(html.Parse(strings.NewReader(b.String())))(t)
	texts, kinds := 0, map[string]int{}
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && strings.Contains(n.Data, evil) {
			texts++
		}
		if n.Type != html.ElementNode {
			continue
		}
		kinds[n.Data]++
		for _, a := range n.Attr {
			check.That(t, !strings.HasPrefix(a.Key, "on") && a.Key != "src" &&
				(a.Key != "href" || a.Val == "data:,") && !strings.Contains(a.Val, "url("),
				"<%s %s=%q>", n.Data, a.Key, a.Val)
		}
	}
	check.Equal(t, "scripts and images", kinds["script"]+kinds["img"], 0)
	check.Equal(t, "texts", texts, 17)
	check.Equal(t, "tables", kinds["table"], 3)
	for _, want := range []string{`role="img" aria-label="&lt;`, "from 3 to 4",
		`<th scope="row">1</th><td>3</td></tr>` + "\n" + `<tr><th scope="row">2</th><td>4</td>`} {
		check.That(t, strings.Contains(b.String(), want), "no %s in\n%s", want, &b)
	}
}

// A curve goes from the left to the right, and from the bottom up to a twentieth below the top;
// bars stand on the bottom, each as wide as to the next.
func TestCurvesAreInTheirPlaces(t *testing.T) {
	for _, row := range []struct {
		name  string
		f     Figure
		class []string
		paths []string
	}{
		{"a curve", Figure{Series: []Series{{"a", []float64{0, 5, 10}, []float64{0, 10, 20}}}}, []string{"s0"}, []string{"M52 228L220 130.9L388 33.7"}},
		{"two, of which one is short and low", Figure{Series: []Series{{"a", []float64{0, 10}, []float64{20, 20}},
			{"b", []float64{5, 10}, []float64{0, 10}}}}, []string{"s0", "s1"}, []string{"M52 33.7L388 33.7", "M220 228L388 130.9"}},
		{"bars", Figure{Bars: true, Series: []Series{{"a", []float64{0, 5, 10}, []float64{10, 20, 0}}}}, []string{"s0 bar"},
			[]string{"M52 228V130.9H220V228M220 228V33.7H388V228"}},
		{"one point", Figure{Series: []Series{{"a", []float64{3}, []float64{20}}}}, []string{"s0"}, []string{"M52 33.7"}},
		{"far from 0", Figure{Series: []Series{{"a", []float64{6, 10}, []float64{20, 20}}}}, []string{"s0"}, []string{"M52 33.7L388 33.7"}},
		{"near to 0, which shows then", Figure{Series: []Series{{"a", []float64{1, 100}, []float64{20, 20}}}}, []string{"s0"}, []string{"M55.4 33.7L388 33.7"}},
		{"the colours of many", Figure{Series: make([]Series, 8)}, []string{"s0", "s1", "s2", "s3", "s4", "s5", "s0", "s1"}, make([]string, 8)},
		{"nothing", Figure{}, nil, nil},
	} {
		var class, paths []string
		p := row.f.layOut(1)
		for _, c := range p.Curves {
			class, paths = append(class, c.Class), append(paths, c.Path)
		}
		check.Slice(t, row.name+": kinds", class, row.class)
		check.Slice(t, row.name, paths, row.paths)
	}
	x0, x1, y1 := (&Figure{Series: []Series{{"a", []float64{3}, []float64{20}}}}).axisExtent()
	check.That(t, x0 == 3 && x1 == 4 && y1 == 21, "the axes of one point: %v to %v, up to %v", x0, x1, y1)
	p := (&Figure{XTicks: []Tick{{-1, "before"}, {0, "first"}, {10, "last"}, {11, "behind"}},
		Series: []Series{{"a", []float64{0, 10}, []float64{0, 20}}}}).layOut(7)
	check.Slice(t, "marks", p.XTicks, []mark{{"52", "", "first"}, {"388", "", "last"}})
	check.Slice(t, "marks upwards", p.YTicks, []mark{{"228", "232", "0"}, {"179.4", "183.4", "5"}, {"130.9", "134.9", "10"},
		{"82.3", "86.3", "15"}, {"33.7", "37.7", "20"}})
	check.That(t, p.ID == 7 && p.Width == 400 && p.Height == 270, "%+v", p)
}

// The table has each value at its moment, the one before where there is none, and a dash before the
// first; of many moments some that are spread evenly.
func TestTablesHaveTheValues(t *testing.T) {
	f := Figure{Title: "T", XLabel: "x", YLabel: "y", Series: []Series{{"a", []float64{1, 3}, []float64{10, 0.123456}},
		{"b", []float64{2}, []float64{1234.56}}}}
	table := func() (rows []string) {
		for _, r := range f.layOut(1).Table.Rows {
			rows = append(rows, strings.Join(r, " "))
		}
		return rows
	}
	check.Slice(t, "table", table(), []string{"1 10 –", "2 10 1235", "3 0.1235 1235"})
	check.Equal(t, "head", strings.Join(f.layOut(1).Table.Head, " "), "x a b")
	check.Equal(t, "words", f.layOut(1).Says, "T, y over x; a from 0.1235 to 10; b from 1235 to 1235")
	f.X = func(x float64) string { return strings.Repeat("I", int(x)) }
	check.Slice(t, "written otherwise", table(), []string{"I 10 –", "II 10 1235", "III 0.1235 1235"})
	f.Bars, f.X = true, nil
	check.Slice(t, "of bars", table(), []string{"1 10 –", "2 10 1235"})
	f = Figure{Series: []Series{{Name: "a"}}}
	for i := range 95 {
		f.Series[0].X, f.Series[0].Y = append(f.Series[0].X, float64(i)), append(f.Series[0].Y, float64(i))
	}
	rows := table()
	check.That(t, len(rows) == maxRows && rows[0] == "0 0" && rows[1] == "2 2" && rows[maxRows-1] == "94 94", "%v", rows)
}

// An axis has few marks, at round numbers, also where there is nothing to show.
func TestAxesHaveRoundNumbers(t *testing.T) {
	for _, tt := range []struct {
		x, y   []float64
		xs, ys string
	}{
		{[]float64{0, 10}, []float64{0, 7}, "0 2 4 6 8 10", "0 2 4 6"},
		{[]float64{0.001, 0.87}, []float64{1, 2e6}, "0.0 0.2 0.4 0.6 0.8", "0k 500k 1000k 1500k 2000k"},
		{[]float64{3, 4}, []float64{0, 0}, "3.0 3.2 3.4 3.6 3.8 4.0", "0"},
		{[]float64{1e7, 1e7 + 1e-6}, []float64{0, math.Pow(2, 53)}, "", ""},
		{nil, nil, "", "0"},
	} {
		f := Figure{Series: []Series{{"a", tt.x, tt.y}}}
		p := f.layOut(1)
		join := func(list []mark) (s string) {
			for _, m := range list {
				s += " " + m.Label
			}
			return strings.TrimSpace(s)
		}
		xs, ys := join(p.XTicks), join(p.YTicks)
		check.That(t, (tt.xs == "" || xs == tt.xs) && (tt.ys == "" || ys == tt.ys) && len(p.XTicks)+len(p.YTicks) <= 14,
			"%v, %v: %q and %q, want %q and %q", tt.x, tt.y, xs, ys, tt.xs, tt.ys)
		check.That(t, !strings.Contains(p.Curves[0].Path, "N"), "%v: %s", tt.x, p.Curves[0].Path)
	}
}
