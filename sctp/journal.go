package sctp

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// journal writes rare events to TransportConfig.Logger. A peer that causes many of them cannot flood the log:
// there are journalLines lines in a second, and one line a minute for each limit. Nil writes nothing. No
// gate and no lock may be held.
type journal struct {
	log *slog.Logger

	mu         sync.Mutex // a leaf lock
	second     time.Time  // guarded by mu: when the present second began
	lines      int        // guarded by mu: in that second
	suppressed int        // guarded by mu: lines not written since the last that was
	limits     [numLimits]time.Time
}

const journalLines = 100

// limit is one of the limits whose reaching is worth a line.
type limit uint8

const (
	limitAssocs limit = iota
	limitAnswers
	limitBacklog
	limitAccept
	numLimits
)

var limitTexts = [numLimits]string{
	limitAssocs:  "associations refused: MaxAssocs or MaxPerSource is reached",
	limitAnswers: "packets not answered: their source is at MaxAnswers",
	limitBacklog: "packets dropped: the owner of their association is too slow",
	limitAccept:  "associations refused: nobody accepts them, and Backlog is reached",
}

func newJournal(log *slog.Logger) *journal {
	if log == nil {
		return nil
	}
	return &journal{log: log}
}

// write writes a line, unless there were too many of late.
func (j *journal) write(level slog.Level, msg string, attrs ...slog.Attr) {
	if j == nil || !j.log.Enabled(context.Background(), level) {
		return
	}
	j.mu.Lock()
	if now := time.Now(); now.Sub(j.second) >= time.Second {
		j.second, j.lines = now, 0
	}
	if j.lines == journalLines {
		j.suppressed++
		j.mu.Unlock()
		return
	}
	j.lines++
	if j.suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", j.suppressed))
		j.suppressed = 0
	}
	j.mu.Unlock()
	j.log.LogAttrs(context.Background(), level, msg, attrs...)
}

// reached notes that a limit was reached, total times by now.
func (j *journal) reached(l limit, total uint64) {
	if j == nil {
		return
	}
	j.mu.Lock()
	now := time.Now()
	due := now.Sub(j.limits[l]) >= time.Minute
	if due {
		j.limits[l] = now
	}
	j.mu.Unlock()
	if due {
		j.write(slog.LevelWarn, limitTexts[l], slog.Uint64("total", total))
	}
}

// Journal writes a line about a rare event to TransportConfig.Logger, for a protocol above: not under a gate,
// and never per packet. With no Logger it does nothing; there are at most 100 lines in a second.
func (t *Transport) Journal(level slog.Level, msg string, attrs ...slog.Attr) {
	t.journal.write(level, msg, attrs...)
}

// entry is a line of the journal that waits for the gate to open.
type entry struct {
	kind EventKind
	path netip.Addr
	err  error
}

// record notes what is worth a line. Owner only.
func (c *Conn) record(ev assoc.Event) {
	if c.t.journal == nil {
		return
	}
	switch ev.Kind {
	case EventUp, EventDown, EventRestart, EventPathUp, EventPathDown, EventPathPotentiallyFailed, EventPrimary, EventPeerError:
		c.entries = append(c.entries, entry{ev.Kind, ev.Path.Addr(), ev.Err})
	}
}

// report writes the lines. No gate is held.
func (c *Conn) report(list []entry) {
	if len(list) == 0 {
		return
	}
	remote := slog.Any("remote", c.RemoteAddr())
	for _, e := range list {
		level, attrs := slog.LevelInfo, []slog.Attr{remote}
		switch e.kind {
		case EventPathDown, EventPathPotentiallyFailed, EventPeerError, EventRestart:
			level = slog.LevelWarn
		case EventDown:
			if e.err != assoc.ErrShutdown {
				level = slog.LevelWarn
			}
		}
		if e.path.IsValid() {
			attrs = append(attrs, slog.Any("path", e.path))
		}
		if e.err != nil {
			attrs = append(attrs, slog.String("reason", e.err.Error()))
		}
		c.t.journal.write(level, "association: "+e.kind.String(), attrs...)
	}
}
