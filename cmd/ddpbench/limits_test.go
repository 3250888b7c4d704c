package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma"
)

// Notes are taken once, by a client that asked for them, and no longer than they may be.
func TestNotesThatNobodyHasAskedFor(t *testing.T) {
	for name, row := range map[string]struct {
		set func(e *engine)
		n   uint64
		ok  bool
	}{
		"asked for": {func(*engine) {}, 2, true}, "told twice": {func(e *engine) { e.notesReceived = true }, 2,
			false}, "of no report": {func(e *engine) { e.wantsNotes = false }, 2, false},
		"for a server": {func(e *engine) { e.client = false }, 2, false},
		"the longest":  {func(*engine) {}, maxNotesLen, true},
		"too long":     {func(*engine) {}, maxNotesLen + 1, false},
		"of no JSON":   {func(*engine) {}, 1, false},
	} {
		x := newLab(t)
		pd := x.dev.AllocPD()
		e := &engine{params: params{wantsNotes: true}, client: true, pd: pd}
		must.OK(t, e.openNotesRegion())
		copy(e.notesRegion.buf, "{}"+strings.Repeat(" ", maxNotesLen-2))
		row.set(e)
		err := e.receiveNotes(row.n)
		check.That(t, (err == nil) == row.ok, "%s: %v", name, err)
		check.That(t, e.notesReceived || !row.ok, "%s: it may be told again", name)
		e.notesRegion.close()
	}
}

// What messages are sent from cannot be written to, by anybody.
func TestSourcesAreReadOnly(t *testing.T) {
	x := newLab(t)
	_, e := x.connectedClient(t, "write", "-n", "1")
	l := e.lanes[0]
	must.That(t, l.src != nil, "there is no source")
	err := l.qp.PostRecv(&rdma.RecvWR{ID: 1, SGL: []rdma.SGE{l.src.sgeAt(0, 1)}})
	check.That(t, err != nil, "a receive into it is posted")
}

// A turn is over when its time is, and one that has not begun is not.
func TestWhenATurnIsOver(t *testing.T) {
	var u periodicContext
	check.Equal(t, "over, before it has begun", u.hasEnded(), false)
	u.close()
	ctx := context.Background()
	check.That(t, u.contextFor(ctx, 0) == ctx, "without a limit it is another context")
	first := u.contextFor(ctx, time.Hour)
	check.Equal(t, "over", u.hasEnded(), false)
	check.That(t, u.contextFor(ctx, time.Hour) == first, "another context, though the time is not over")
	u.close()
	check.Equal(t, "over, when it is closed", u.hasEnded(), true)
	second := u.contextFor(ctx, time.Hour)
	check.That(t, second != first && second.Err() == nil, "the same context, though the time is over")
	other, end := context.WithCancel(ctx)
	third := u.contextFor(other, time.Hour)
	check.That(t, third != second && second.Err() != nil, "the same context for another parent")
	end()
	check.Equal(t, "over, with its parent", u.hasEnded(), true)
}

// So manieth message asks for a completion, before the queue is full.
func TestModerationAtItsLimits(t *testing.T) {
	for _, row := range []struct{ cqMod, depth, size, want int }{
		{0, 1, 1, 1}, {0, 3, 1, 1}, {0, 8, 1, 2}, {0, 4 * moderateCount, 1, moderateCount}, {0, 4*moderateCount + 4, 1, moderateCount}, {0, 4*moderateCount - 1, 1, moderateCount - 1},
		{0, 1000, moderateOctets / 7, 7}, {0, 1000, moderateOctets, 1}, {0, 1000, moderateOctets + 1, 1}, {1, 8, 1, 1}, {5, 8, 1, 5}, {8, 8, 1, 8}, {9, 8, 1, 8},
	} {
		p := params{cqModeration: row.cqMod, depth: row.depth, size: row.size}
		check.Equal(t, fmt.Sprintf("%+v", row), p.completionInterval(), row.want)
	}
}

// The number of receives is bounded by the memory that they take.
func TestReceivesThatNeedTooMuch(t *testing.T) {
	_, errs, code := runBench(t, strings.Fields("send a -r 8192 -s 1M")...)
	check.That(t, code == exitError && strings.Contains(errs,
		"-r 8192: receives of 1048576 bytes on 1 QPs need more than 1024M of memory"), "%d %s", code, errs)
	for args, mem := range map[string]int{"send a -r 5 -s 100": 500, "send a -r 3 -s 100 -q 2": 600,
		"send a -r 2": 2 * 65536} {
		o, err := parseArgs(strings.Fields(args), io.Discard)
		check.That(t, err == nil && o.memoryOctets == mem, "%s: %d octets, %v, want %d", args, o.memoryOctets, err, mem)
	}
	_, errs, _ = runBench(t, strings.Fields("send a -r 1024 -s 1M")...)
	// for all the rest besides
	check.That(t, strings.Contains(errs, "-s 1048576 with -q 1 needs more than 1024M of memory: take less of one"),
		"%s", errs)
	_, errs, code = runBench(t, strings.Fields("send a -r 1024 -s 1M -q 2")...)
	check.That(t, code == exitError && strings.Contains(errs, "on 2 QPs need more than 1024M of memory"), "%d %s",
		code, errs)
}

// A report says when it was made, and of what.
func TestLeadOfAReport(t *testing.T) {
	var b strings.Builder
	d := &document{options: &options{}, lastSize: 77}
	must.OK(t, d.writePage(&b, new(usage)))
	check.That(t, regexp.MustCompile(`RDMA over SCTP, measured \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [^ .]+\.<`).MatchString(
		b.String()), "no lead")
	check.That(t, strings.Contains(b.String(), "are of messages of 77 bytes."), "no length")
}

// Traffic adds and takes away each of its figures.
func TestTrafficAddsEachFigure(t *testing.T) {
	var sum traffic
	for i, c := range sum.counterFields() {
		*c = uint64(100 + i)
	}
	var one traffic
	for i, c := range one.counterFields() {
		*c = uint64(1 + i)
	}
	before := sum
	sum.addSigned(&one, 1)
	for i, c := range sum.counterFields() {
		check.Equal(t, fmt.Sprint("figure ", i), *c, uint64(101+2*i))
	}
	sum.addSigned(&one, -1)
	check.Equal(t, "the same again", sum, before)
	check.Equal(t, "figures", len(sum.counterFields()), 18)
	s := rdma.AssocStats{}
	s.PacketsOut, s.PacketsIn, s.DataOut, s.DataIn, s.Retransmits, s.FastRetransmits, s.Timeouts = 1, 2, 3, 4, 5, 6, 7
	s.DuplicatesIn, s.SacksOut, s.SacksIn, s.PathsSuspected, s.PathsDown = 8, 9, 10, 15, 16
	want := one
	want.BatchesOut, want.BatchesIn, want.Refused, want.Dropped, want.FPDUsOut, want.FPDUsIn = 0, 0, 0, 0, 0, 0
	check.Equal(t, "that of an association", trafficOf(&s), want)
}

// The names of tests, and the heads of their tables.
func TestTitlesAndHeads(t *testing.T) {
	for _, row := range []struct {
		lat, both bool
		want      string
	}{{true, false, "RDMA_Write Latency"}, {true, true, "RDMA_Write Latency"},
		{false, true, "RDMA_Write Bidirectional BW"}, {false, false, "RDMA_Write BW"}} {
		p := params{verb: verbWrite, isLatency: row.lat, bidirectional: row.both}
		check.Equal(t, "title", p.testTitle(), row.want)
	}
	for _, row := range []struct {
		lat, gbits bool
		duration   time.Duration
		want       string
	}{{false, true, 0, strings.ReplaceAll(resultHeader, "MiB/sec", "Gb/sec")}, {false, false, 1, resultHeader},
		{true, true, 1, durationHeader}, {true, false, 0, latencyHeader}} {
		o := &options{}
		o.isLatency, o.gbits, o.duration = row.lat, row.gbits, row.duration
		r := reporter{options: o}
		check.Equal(t, "head", r.columnHeader(), row.want)
	}
}
