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

// drawing is a trace as it is drawn.
type drawing struct {
	head   qlog.Head
	bad    int
	lives  map[string]*life
	events []event // but metrics
	more   int     // that did not fit
}

// event is a line of the table.
type event struct {
	ms    float64
	words []string // who, which, what
}

// life is what a trace has of one association.
type life struct {
	name, peer string
	rec        timeline.Recorder
	octets     uint64
}

// maxEvents and maxLives are how much of a trace a page shows.
const (
	maxEvents = 300
	maxLives  = 4
)

// drawTrace draws what --trace has written, the older part first if there is one.
func (o *options) drawTrace(out io.Writer) error {
	d := drawing{lives: make(map[string]*life)}
	for _, name := range []string{o.trace + ".1", o.trace} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) && name != o.trace {
			continue
		}
		if err != nil {
			return cli.Usagef("trace: %v", err)
		}
		head, bad, err := qlog.Read(f, d.take)
		f.Close()
		if err != nil {
			return fmt.Errorf("trace %s: %w", name, err)
		}
		d.head = head
		d.bad += bad
	}
	page := cmp.Or(o.page, o.trace+".html")
	f, err := os.Create(page)
	if err != nil {
		return cli.Usagef("trace: %v", err)
	}
	if err := errors.Join(d.page(o).Write(f), f.Close()); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	fmt.Fprintf(out, "%d associations, drawn in %s\n", len(d.lives), page)
	return nil
}

// take takes an event.
func (d *drawing) take(r *qlog.Record) error {
	l := d.lives[r.Group]
	if l == nil && r.Group != "" {
		l = &life{name: cli.Printable(r.Group)}
		d.lives[r.Group] = l
	}
	switch {
	case r.Name == qlog.NameMetrics && l != nil:
		var m qlog.Metrics
		if json.Unmarshal(r.Data, &m) != nil {
			d.bad++
			return nil
		}
		if m.Primary {
			l.add(r.Time, &m)
		}
		return nil
	case r.Name == qlog.NameStarted && l != nil:
		var s qlog.Started
		if json.Unmarshal(r.Data, &s) == nil {
			l.peer = s.Peer.String()
		}
	}
	if len(d.events) == maxEvents {
		d.more++
		return nil
	}
	who := r.Group
	if l != nil {
		who = l.title()
	}
	d.events = append(d.events, event{r.Time, []string{who, cli.Printable(strings.TrimPrefix(r.Name, "sctp:")), plainly(r.Data)}})
	return nil
}

func (l *life) title() string {
	if l.peer == "" {
		return l.name
	}
	return l.name + " with " + l.peer
}

func (l *life) add(ms float64, m *qlog.Metrics) {
	l.octets = max(l.octets, m.OctetsOut+m.OctetsIn)
	n := func(v int) uint64 { return uint64(max(v, 0)) }
	l.rec.Add(timeline.Point{At: ms / 1e3, Out: m.OctetsOut, In: m.UserIn, Cwnd: n(m.Cwnd), Flight: n(m.Outstanding), Rwnd: n(m.PeerWindow), Window: n(m.OwnWindow),
		Queue: n(m.Queued), Buffered: n(m.Buffered), RTT: m.SRTT, Retransmits: m.Retransmits})
}

// plainly writes an object as words.
func plainly(b json.RawMessage) string {
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

// page has the plots of the associations that have moved most, and all events.
func (d *drawing) page(o *options) *chart.Page {
	lives := make([]*life, 0, len(d.lives))
	for _, l := range d.lives {
		lives = append(lives, l)
	}
	slices.SortFunc(lives, func(a, b *life) int { return cmp.Or(cmp.Compare(b.octets, a.octets), cmp.Compare(a.name, b.name)) })
	shown := lives[:min(len(lives), maxLives)]
	var lines []timeline.Line
	for _, l := range shown {
		lines = append(lines, timeline.Line{Name: l.title(), Points: l.rec.Points()})
	}
	slices.SortStableFunc(d.events, func(a, b event) int { return cmp.Compare(a.ms, b.ms) }) // several goroutines have written
	var rows [][]string
	for _, e := range d.events {
		rows = append(rows, append([]string{fmt.Sprintf("%.3f", e.ms)}, e.words...))
	}
	rate := timeline.MiB
	if o.gbits {
		rate = timeline.Gbit
	}
	p := &chart.Page{Title: "Trace " + cli.Printable(filepath.Base(o.trace)), Lead: fmt.Sprintf("By %s, begun %s.", cli.Printable(d.head.Title), cli.Printable(d.head.Trace.Common.Reference.Wall)),
		Figures: timeline.Figures(lines, rate),
		Tables:  []chart.Table{{Title: "Events", Words: true, Head: []string{"ms", "Association", "Event", "What"}, Rows: rows}}}
	if n := len(lives) - len(shown); n > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("Drawn are the %d associations that have moved most; %d others are not.", len(shown), n))
	}
	if d.more > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d more events are in the trace.", d.more))
	}
	if d.bad > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d records were cut off or are not understood.", d.bad))
	}
	return p
}
