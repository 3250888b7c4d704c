package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rddp-go/rddp/bench/wan/simulated"
)

// gateStack is what the short form compares with TCP CUBIC: our default.
const gateStack = "udp-cubic"

// shortCell is a cell of the short form, and by how much ours may be worse there: wide, as a gate
// must not fail by chance.
type shortCell struct {
	loss     float64
	size, n  int
	p50, p90 float64 // times TCP CUBIC's
	bulk     float64 // share of TCP CUBIC's throughput
}

// shortCells: on a quiet machine ours is as fast as TCP CUBIC in all of them.
var shortCells = []shortCell{
	{loss: 0, size: 14_000, n: 300, p50: 1.5, p90: 2},
	{loss: 0.01, size: 14_000, n: 300, p50: 1.5, p90: 2},
	{loss: 0, size: 100_000, n: 100, p50: 1.5, p90: 2},
	{loss: 0.01, size: 100_000, n: 60, p50: 1.5, p90: 2.5},
	{loss: 0, bulk: 0.7},
}

const (
	shortBulk = 3 * time.Second
	// A run is tried so often where the machine has much else to do, but once when half of
	// shortTime is over. No cell begins after it.
	shortTries = 5
	shortTime  = 2 * time.Minute
)

// runShort runs the short form. It fails where a ratio is exceeded, a run fails, or less than half
// of the cells count.
func (b *resultBoard) runShort(ctx context.Context, o *options, out io.Writer) (failed bool, err error) {
	o.stacks, o.rounds, o.tries, o.time = []string{"tcp-cubic", gateStack}, 1, shortTries, 10*time.Second
	judged, began := 0, time.Now()
	for _, s := range shortCells {
		switch took := time.Since(began); {
		case took > shortTime:
			fmt.Fprintf(out, "%s at %g %% loss: there was no time left\n", simulated.SizeName(s.size), 100*s.loss)
			continue
		case took > shortTime/2:
			o.tries = 1
		}
		c := o.cell
		c.RTT, c.Loss, c.Size, c.Rate = 20*time.Millisecond, s.loss, s.size, int64(o.mbits*1e6/8)
		o.transfers, o.bulk = s.n, shortBulk
		if err := b.measureCell(ctx, o, &c, o.stacks); err != nil {
			return true, err
		}
		r := b.rowOf(&c)
		text, exceeded, counts := s.judgeRow(r)
		if counts {
			judged++
		}
		failed = failed || exceeded
		fmt.Fprintf(out, "%s: %s\n", &r.Cell, text)
		for _, res := range r.Results {
			failed = failed || res.Error != ""
		}
	}
	if 2*judged < len(shortCells) {
		fmt.Fprintf(out, "%d of %d cells count: the machine had too much else to do\n", judged, len(shortCells))
		failed = true
	}
	return failed, nil
}

// judgeRow says whether ours is worse than the cell allows.
func (s *shortCell) judgeRow(r *row) (text string, exceeded, counts bool) {
	peer, own := r.resultOf("tcp-cubic"), r.resultOf(gateStack)
	if peer == nil || own == nil {
		for _, res := range r.Results {
			if none := res.whyNone(); none != "" {
				text += res.Stack + ": " + none + "; "
			}
		}
		return text + "not judged", false, false
	}
	if s.size == 0 {
		ratio := medianOf(own.Runs) / medianOf(peer.Runs)
		return fmt.Sprintf("%.2f of TCP CUBIC's throughput, at least %g", ratio, s.bulk), ratio < s.bulk, true
	}
	p50, in50 := simulated.Ratio(&own.Sum.Sample, &peer.Sum.Sample, 0.5, 0, 1)
	p90, in90 := simulated.Ratio(&own.Sum.Sample, &peer.Sum.Sample, 0.9, 0, 1)
	return fmt.Sprintf("%.2f times TCP CUBIC's p50 (%.2f-%.2f), at most %g; %.2f its p90 (%.2f-%.2f), at most %g",
		p50, in50.Low, in50.High, s.p50, p90, in90.Low, in90.High, s.p90), in50.Low > s.p50 || in90.Low > s.p90, true
}
