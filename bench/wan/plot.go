package main

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/rddp-go/rddp/bench/wan/simulated"
)

// plotFiles draws a file for each round trip, and returns their names: a panel for each size, over
// the loss, the p99 of each stack, or its throughput. Each processor model has its own, as it has
// its block in the document.
func (b *resultBoard) plotFiles(dir string) (files []string, err error) {
	model := strings.Join(strings.FieldsFunc(strings.ToLower(b.Machine.CPU),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), "-")
	var rtts []time.Duration
	for _, r := range b.Rows {
		if !slices.Contains(rtts, r.Cell.RTT) {
			rtts = append(rtts, r.Cell.RTT)
		}
	}
	for _, rtt := range rtts {
		var panels []*plot.Plot
		b.forEachSize(func(size int, rows []*row) {
			rows = slices.DeleteFunc(rows, func(r *row) bool { return r.Cell.RTT != rtt })
			if err == nil && len(rows) > 0 {
				var p *plot.Plot
				p, err = b.plotPanel(size, rows, len(panels) == 0)
				panels = append(panels, p)
			}
		})
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("wan-%s-%v.svg", model, rtt)
		if err := drawPanels(filepath.Join(dir, name), panels); err != nil {
			return nil, err
		}
		files = append(files, name)
	}
	return files, nil
}

func drawPanels(file string, panels []*plot.Plot) error {
	canvas := vgsvg.New(vg.Length(len(panels))*3*vg.Inch, 3.4*vg.Inch)
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: vg.Millimeter * 6, PadTop: 6, PadBottom: 6, PadLeft: 6,
		PadRight: 6}
	for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, draw.New(canvas))[0] {
		panels[i].Draw(c)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// plotPanel is a line for each stack over the losses, which are names: 0 has no logarithm.
func (b *resultBoard) plotPanel(size int, rows []*row, legend bool) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.X.Label.Text = "loss, %"
	p.Title.Text = simulated.SizeName(size)
	p.Y.Label.Text = "p99 ms"
	if size == 0 {
		p.Y.Label.Text = "Mbit/s"
	}
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = fmt.Sprintf("%g", 100*r.Cell.Loss)
	}
	p.NominalX(names...)
	p.Add(plotter.NewGrid())
	top := 1.0
	for i, s := range b.stackNames() {
		var xy plotter.XYs
		for k, r := range rows {
			res := r.resultOf(s)
			if res == nil {
				continue
			}
			v := milliseconds(res.Sum.Quantile(0.99))
			if size == 0 {
				v = medianOf(res.Runs)
			}
			xy = append(xy, plotter.XY{X: float64(k), Y: v})
			top = math.Max(top, v)
		}
		if len(xy) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = plotutil.Color(i), vg.Points(1.2)
		if !isOurs(s) {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
		}
		dots.Color, dots.Shape, dots.Radius = line.Color, draw.CircleGlyph{}, vg.Points(1.5)
		p.Add(line, dots)
		if legend {
			p.Legend.Add(strings.TrimPrefix(s, "go-"), line)
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size = vg.Points(7)
	p.Y.Min, p.Y.Max = 0, top*1.15
	return p, nil
}
