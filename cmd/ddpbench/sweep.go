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

// sweepAxis is the quantity that one sweep increases.
type sweepAxis struct {
	Name   string // of the file
	Title  string
	Unit   string
	values []int
	set    func(s *rigScale, v int)
}

// sweepAxes are the sweeps. Everything else stays as in base.
var sweepAxes = []sweepAxis{
	{"size", "message size", "octets", []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30},
		func(s *rigScale, v int) { s.Size = v }},
	{"qps", "QPs on one association", "QPs", []int{1, 4, 16, 64, 256, 1024, 4096},
		func(s *rigScale, v int) { s.QPs = v }},
	{"associations", "associations, with one QP each", "associations", []int{1, 4, 16, 64, 256, 1000, 4000, 10000},
		func(s *rigScale, v int) { s.QPs, s.Own = v, true }},
	{"regions", "registered regions, used in turn", "regions", []int{1, 10, 100, 1000, 10_000, 100_000},
		func(s *rigScale, v int) { s.Regions = v }},
}

var baseScale = rigScale{Size: 64 << 10, QPs: 1, Regions: 1}

// sweepPoint is the measurement at one scale.
type sweepPoint struct {
	rigScale
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

// defaultSweep is the time for each point. Its first part, warmUpShare, does not count: in it
// everything reaches its size. Each QP gets a few messages then, so that congestion windows have
// opened.
const (
	defaultSweep = 2 * time.Second
	warmUpShare  = 0.4
	warmMessages = 8 // each QP
	minMessages  = 4 // that count
)

// runSweeps measures all axes. It writes a line for each point, and a plot for each axis into the
// directory.
func (o *options) runSweeps(ctx context.Context, out io.Writer) error {
	if err := os.MkdirAll(o.sweepDir, 0o777); err != nil {
		return err
	}
	fmt.Fprintf(out, "%-14s %10s %8s %12s %14s %10s %8s %8s\n", "axis", "value", "GB/s", "messages/s",
		"CPU us/packet", "CPU s/GB", "allocs", "resent")
	for i := range sweepAxes {
		a := &sweepAxes[i]
		var points []sweepPoint
		for _, v := range a.values {
			p, err := o.measurePoint(ctx, a, v)
			if err != nil {
				return fmt.Errorf("%d %s: %w", v, a.Unit, err)
			}
			points = append(points, p)
			fmt.Fprintf(out, "%-14s %10d %8.2f %12.0f %14.2f %10.3f %8.2f %8d\n", a.Name, v, p.GBps, p.Rate, p.Cost,
				p.PerGB, p.Allocs, p.Resent)
		}
		if err := o.savePoints(a, points); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "Plots and figures are in %s.\n", o.sweepDir)
	return nil
}

// savePoints writes the measured points and their plot.
func (o *options) savePoints(a *sweepAxis, points []sweepPoint) error {
	b, err := json.MarshalIndent(points, "", "\t")
	if err != nil {
		return err
	}
	name := filepath.Join(o.sweepDir, a.Name)
	if err := os.WriteFile(name+".json", append(b, '\n'), 0o666); err != nil {
		return err
	}
	return plotPoints(name+".svg", a, points)
}

// measurePoint sets everything up anew for one point.
func (o *options) measurePoint(ctx context.Context, a *sweepAxis, v int) (p sweepPoint, err error) {
	p.rigScale, p.Value = baseScale, v
	a.set(&p.rigScale, v)
	before := heapOctets()
	r, err := newRig(ctx, &o.link, p.rigScale)
	if err != nil {
		return p, err
	}
	defer r.devices.Close()
	p.Memory = (float64(heapOctets()) - float64(before) - 2*float64(r.memoryOctets())) / float64(v)
	if err := r.runFor(ctx, time.Duration(warmUpShare*float64(o.duration)), warmMessages*uint64(p.QPs)); err != nil {
		return p, err
	}
	start := r.takeReading()
	if err := r.runFor(ctx, time.Duration((1-warmUpShare)*float64(o.duration)), minMessages); err != nil {
		return p, err
	}
	end := r.takeReading()
	for ; end.packets == start.packets; end = r.takeReading() { // what was done may have arrived before
		if err := r.runFor(ctx, 0, 1); err != nil {
			return p, err
		}
	}
	p.setBetween(start, end)
	return p, nil
}

// rigReading is a reading of all counters at one moment.
type rigReading struct {
	takenAt                         time.Time
	cpuTimeUsed                     time.Duration
	completed, packets, retransmits uint64
	mallocs                         uint64
}

func (r *sweepRig) takeReading() rigReading {
	user, system, _ := cpuTime()
	s := r.devices.Client.Transport().Stats()
	l := rigReading{takenAt: time.Now(), cpuTimeUsed: user + system, completed: r.completed,
		packets: s.TxPackets + s.RxPackets, mallocs: mallocCount()}
	for i, qp := range r.qps {
		if i == 0 || r.Own {
			q, _ := qp.Stats()
			l.retransmits += q.Retransmits
		}
	}
	return l
}

func (p *sweepPoint) setBetween(a, b rigReading) {
	took, cpu, n := b.takenAt.Sub(a.takenAt).Seconds(), (b.cpuTimeUsed - a.cpuTimeUsed).Seconds(),
		float64(b.completed-a.completed)
	gb := n * float64(p.Size) / 1e9
	p.GBps, p.Rate, p.Packets, p.Resent = gb/took, n/took, b.packets-a.packets, b.retransmits-a.retransmits
	p.Cost, p.PerGB, p.Allocs = cpu*1e6/float64(p.Packets), cpu/gb, float64(b.mallocs-a.mallocs)/n
}

// heapOctets returns how many octets of the heap are in use.
func heapOctets() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
