package main

import (
	"fmt"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// plotPoints draws the cost of a packet and the throughput over the axis, side by side in an SVG.
func plotPoints(name string, a *sweepAxis, points []sweepPoint) error {
	left, err := newPanel(a, points, "CPU us a packet", func(p *sweepPoint) float64 { return p.Cost })
	if err != nil {
		return err
	}
	right, err := newPanel(a, points, "GB/s", func(p *sweepPoint) float64 { return p.GBps })
	if err != nil {
		return err
	}
	canvas := vgsvg.New(9*vg.Inch, 3.2*vg.Inch)
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Millimeter * 6, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 6}
	for i, c := range plot.Align([][]*plot.Plot{{left, right}}, tiles, draw.New(canvas))[0] {
		[]*plot.Plot{left, right}[i].Draw(c)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// newPanel is one curve over a logarithmic axis. The other axis begins with 0.
func newPanel(a *sweepAxis, points []sweepPoint, unit string, of func(*sweepPoint) float64) (*plot.Plot, error) {
	xy := make(plotter.XYs, len(points))
	top := 0.0
	for i := range points {
		xy[i] = plotter.XY{X: float64(points[i].Value), Y: of(&points[i])}
		top = max(top, xy[i].Y)
	}
	line, dots, err := plotter.NewLinePoints(xy)
	if err != nil {
		return nil, err
	}
	line.Width = vg.Points(1.5)
	line.Color = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	dots.Color = line.Color
	dots.Shape = draw.CircleGlyph{}
	p := plot.New()
	p.BackgroundColor = color.White
	p.X.Label.Text, p.Y.Label.Text = a.Title, unit
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decadeTicks{}
	p.Y.Min, p.Y.Max = 0, top*1.15
	p.Add(plotter.NewGrid(), line, dots)
	return p, nil
}

// decadeTicks marks the powers of ten.
type decadeTicks struct{}

func (decadeTicks) Ticks(least, most float64) (list []plot.Tick) {
	for v := 1.0; v <= most; v *= 10 {
		if v >= least {
			list = append(list, plot.Tick{Value: v, Label: formatMagnitude(v)})
		}
	}
	return list
}

// formatMagnitude writes a power of ten.
func formatMagnitude(v float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.of {
			return fmt.Sprintf("%.0f%s", v/u.of, u.name)
		}
	}
	return fmt.Sprintf("%.0f", v)
}
