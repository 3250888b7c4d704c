package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rddp-go/rddp/internal/chart"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/timeline"
	"github.com/rddp-go/rddp/sctp/qlog"
)

// traceDrawing is a trace in the form in which it is drawn.
type traceDrawing struct {
	head          qlog.Head
	badRecords    int
	associations  map[string]*assocTrace
	events        []eventRow // without metrics
	omittedEvents int        // that did not fit
}

// eventRow is a line of the table.
type eventRow struct {
	timeMillis float64
	cells      []string // end, event, content
}

// assocTrace is the part of a trace about one association.
type assocTrace struct {
	name, peer  string
	recorder    timeline.Recorder
	octetsMoved uint64
}

// maxEvents and maxDrawn limit how much of a trace a page shows.
const (
	maxEvents = 300
	maxDrawn  = 4
)

// drawTrace draws what --trace has written, beginning with the older part if there is one.
func (o *options) drawTrace(out io.Writer) error {
	d := traceDrawing{associations: make(map[string]*assocTrace)}
	for _, name := range []string{o.traceFile + ".1", o.traceFile} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) && name != o.traceFile {
			continue
		}
		if err != nil {
			return cli.Usagef("trace: %v", err)
		}
		head, bad, err := qlog.Read(f, d.addRecord)
		f.Close()
		if err != nil {
			return fmt.Errorf("trace %s: %w", name, err)
		}
		d.head = head
		d.badRecords += bad
	}
	page := cmp.Or(o.reportFile, o.traceFile+".html")
	f, err := os.Create(page)
	if err != nil {
		return cli.Usagef("trace: %v", err)
	}
	if err := errors.Join(d.buildPage(o).Write(f), f.Close()); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	fmt.Fprintf(out, "%d associations, drawn in %s\n", len(d.associations), page)
	return nil
}

// addRecord adds an event.
func (d *traceDrawing) addRecord(r *qlog.Record) error {
	l := d.associations[r.Group]
	if l == nil && r.Group != "" {
		l = &assocTrace{name: cli.Printable(r.Group)}
		d.associations[r.Group] = l
	}
	switch {
	case r.Name == qlog.NameMetrics && l != nil:
		var m qlog.Metrics
		if json.Unmarshal(r.Data, &m) != nil {
			d.badRecords++
			return nil
		}
		if m.Primary {
			l.addMetrics(r.Time, &m)
		}
		return nil
	case r.Name == qlog.NameStarted && l != nil:
		var s qlog.Started
		if json.Unmarshal(r.Data, &s) == nil {
			l.peer = s.Peer.String()
		}
	}
	if len(d.events) == maxEvents {
		d.omittedEvents++
		return nil
	}
	who := r.Group
	if l != nil {
		who = l.displayName()
	}
	d.events = append(d.events, eventRow{r.Time, []string{who, cli.Printable(strings.TrimPrefix(r.Name, "sctp:")),
		formatObject(r.Data)}})
	return nil
}

func (l *assocTrace) displayName() string {
	if l.peer == "" {
		return l.name
	}
	return l.name + " with " + l.peer
}

func (l *assocTrace) addMetrics(ms float64, m *qlog.Metrics) {
	l.octetsMoved = max(l.octetsMoved, m.OctetsOut+m.OctetsIn)
	n := func(v int) uint64 { return uint64(max(v, 0)) }
	l.recorder.Add(timeline.Point{At: ms / 1e3, Out: m.OctetsOut, In: m.UserIn, Cwnd: n(m.Cwnd),
		Flight: n(m.Outstanding), Rwnd: n(m.PeerWindow), Window: n(m.OwnWindow),
		Queue: n(m.Queued), Buffered: n(m.Buffered), RTT: m.SRTT, Retransmits: m.Retransmits})
}

// formatObject formats an object as words.
func formatObject(b json.RawMessage) string {
	var v map[string]any
	if json.Unmarshal(b, &v) != nil {
		return ""
	}
	var list []string
	for k, x := range v {
		s := fmt.Sprint(x)
		if f, ok := x.(float64); ok {
			s = strconv.FormatFloat(f, 'f', -1, 64)
		}
		if s != "0" && s != "" {
			list = append(list, cli.Printable(strings.ReplaceAll(k, "_", " ")+" "+s))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// buildPage makes a page with the plots of the associations that have moved most, and all events.
func (d *traceDrawing) buildPage(o *options) *chart.Page {
	lives := make([]*assocTrace, 0, len(d.associations))
	for _, l := range d.associations {
		lives = append(lives, l)
	}
	slices.SortFunc(lives, func(a, b *assocTrace) int {
		return cmp.Or(cmp.Compare(b.octetsMoved, a.octetsMoved), cmp.Compare(a.name, b.name))
	})
	shown := lives[:min(len(lives), maxDrawn)]
	var lines []timeline.Line
	for _, l := range shown {
		lines = append(lines, timeline.Line{Name: l.displayName(), Points: l.recorder.Points()})
	}
	// Several goroutines have written the events.
	slices.SortStableFunc(d.events, func(a, b eventRow) int { return cmp.Compare(a.timeMillis, b.timeMillis) })
	var rows [][]string
	for _, e := range d.events {
		rows = append(rows, append([]string{fmt.Sprintf("%.3f", e.timeMillis)}, e.cells...))
	}
	rate := timeline.MiB
	if o.gbits {
		rate = timeline.Gbit
	}
	p := &chart.Page{Title: "Trace " + cli.Printable(filepath.Base(o.traceFile)),
		Lead: fmt.Sprintf("By %s, begun %s.", cli.Printable(d.head.Title),
			cli.Printable(d.head.Trace.Common.Reference.Wall)),
		Figures: timeline.Figures(lines, rate),
		Tables: []chart.Table{{Title: "Events", Words: true, Head: []string{"ms", "Association", "Event", "What"},
			Rows: rows}}}
	if n := len(lives) - len(shown); n > 0 {
		p.Notes = append(p.Notes,
			fmt.Sprintf("Drawn are the %d associations that have moved most; %d others are not.", len(shown), n))
	}
	if d.omittedEvents > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d more events are in the trace.", d.omittedEvents))
	}
	if d.badRecords > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d records were cut off or are not understood.", d.badRecords))
	}
	return p
}
