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
