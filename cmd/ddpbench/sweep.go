package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// axis is what one sweep lets grow.
type axis struct {
	Name   string // of the file
	Title  string
	Unit   string
	values []int
	set    func(s *scale, v int)
}

// axes are the sweeps: everything else stays as it is in base.
var axes = []axis{
	{"size", "message size", "octets", []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30},
		func(s *scale, v int) { s.Size = v }},
	{"qps", "QPs on one association", "QPs", []int{1, 4, 16, 64, 256, 1024, 4096},
		func(s *scale, v int) { s.QPs = v }},
	{"associations", "associations, with one QP each", "associations", []int{1, 4, 16, 64, 256, 1000, 4000, 10000},
		func(s *scale, v int) { s.QPs, s.Own = v, true }},
	{"regions", "registered regions, used in turn", "regions", []int{1, 10, 100, 1000, 10_000, 100_000},
		func(s *scale, v int) { s.Regions = v }},
}

var base = scale{Size: 64 << 10, QPs: 1, Regions: 1}

// point is what was measured at one scale.
type point struct {
	scale
	Value   int     `json:"value"` // on the axis
	GBps    float64 `json:"GBps"`  // of messages
	Rate    float64 `json:"messages_per_second"`
	Packets uint64  `json:"packets"`                 // both ways
	Cost    float64 `json:"cpu_us_per_packet"`       // processor time of both ends
	PerGB   float64 `json:"cpu_s_per_GB"`            // the same for 10^9 octets
	Allocs  float64 `json:"allocs_per_message"`      // both ends
	Memory  float64 `json:"heap_octets_per_element"` // of the heap without the registered memory, both ends
	Resent  uint64  `json:"retransmits"`
}

// defaultSweep is the time for each point. In the first part of it, warmUp, which does not count, everything
// finds its size; each QP gets a few messages then, so that congestion windows have opened.
const (
	defaultSweep  = 2 * time.Second
	warmUp        = 0.4
	warmMessages  = 8 // each QP
	leastMessages = 4 // that count
)

// sweepAll measures all axes, writes a line for each point, and a plot for each axis into the directory.
func (o *options) sweepAll(ctx context.Context, out io.Writer) error {
	if err := os.MkdirAll(o.sweep, 0o777); err != nil {
		return err
	}
	fmt.Fprintf(out, "%-14s %10s %8s %12s %14s %10s %8s %8s\n", "axis", "value", "GB/s", "messages/s", "CPU us/packet", "CPU s/GB", "allocs", "resent")
	for i := range axes {
		a := &axes[i]
		var points []point
		for _, v := range a.values {
			p, err := o.measure(ctx, a, v)
			if err != nil {
				return fmt.Errorf("%d %s: %w", v, a.Unit, err)
			}
			points = append(points, p)
			fmt.Fprintf(out, "%-14s %10d %8.2f %12.0f %14.2f %10.3f %8.2f %8d\n", a.Name, v, p.GBps, p.Rate, p.Cost, p.PerGB, p.Allocs, p.Resent)
		}
		if err := o.keep(a, points); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "Plots and figures are in %s.\n", o.sweep)
	return nil
}

// keep writes what was measured, and its plot.
func (o *options) keep(a *axis, points []point) error {
	b, err := json.MarshalIndent(points, "", "\t")
	if err != nil {
		return err
	}
	name := filepath.Join(o.sweep, a.Name)
	if err := os.WriteFile(name+".json", append(b, '\n'), 0o666); err != nil {
		return err
	}
	return plotPoints(name+".svg", a, points)
}

// measure sets up everything anew for one point.
func (o *options) measure(ctx context.Context, a *axis, v int) (p point, err error) {
	p.scale, p.Value = base, v
	a.set(&p.scale, v)
	before := heap()
	r, err := newRig(ctx, &o.link, p.scale)
	if err != nil {
		return p, err
	}
	defer r.ends.Close()
	p.Memory = (float64(heap()) - float64(before) - 2*float64(r.memory())) / float64(v)
	if err := r.run(ctx, time.Duration(warmUp*float64(o.duration)), warmMessages*uint64(p.QPs)); err != nil {
		return p, err
	}
	start := r.look()
	if err := r.run(ctx, time.Duration((1-warmUp)*float64(o.duration)), leastMessages); err != nil {
		return p, err
	}
	end := r.look()
	for ; end.packets == start.packets; end = r.look() { // what was done had arrived before
		if err := r.run(ctx, 0, 1); err != nil {
			return p, err
		}
	}
	p.between(start, end)
	return p, nil
}

// reading is everything that counts at a moment.
type reading struct {
	at                    time.Time
	cpu                   time.Duration
	done, packets, resent uint64
	mallocs               uint64
}

func (r *rig) look() reading {
	user, system, _ := cpuTime()
	s := r.ends.Client.Transport().Stats()
	l := reading{at: time.Now(), cpu: user + system, done: r.done, packets: s.TxPackets + s.RxPackets, mallocs: mallocs()}
	for i, qp := range r.qps {
		if i == 0 || r.Own {
			q, _ := qp.Stats()
			l.resent += q.Retransmits
		}
	}
	return l
}

func (p *point) between(a, b reading) {
	took, cpu, n := b.at.Sub(a.at).Seconds(), (b.cpu - a.cpu).Seconds(), float64(b.done-a.done)
	gb := n * float64(p.Size) / 1e9
	p.GBps, p.Rate, p.Packets, p.Resent = gb/took, n/took, b.packets-a.packets, b.resent-a.resent
	p.Cost, p.PerGB, p.Allocs = cpu*1e6/float64(p.Packets), cpu/gb, float64(b.mallocs-a.mallocs)/n
}

// heap is how many octets are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
