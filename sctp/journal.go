package sctp

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/fair"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// journal writes rare events to TransportConfig.Logger. A peer that causes many of them cannot flood the log:
// there are journalLines lines in a second, a tenth of them about one address, so that nobody keeps what others cause out of the log, and one line
// a minute for each limit. Nil writes nothing. No gate and no lock may be held.
type journal struct {
	log *slog.Logger

	lines fair.Lines // a leaf lock

	mu     sync.Mutex           // a leaf lock
	limits [numLimits]time.Time // guarded by mu
	unsent map[unsent]time.Time // guarded by mu: when there was a line
}

// unsent is what this host refuses to send, and why.
type unsent struct {
	to  netip.Addr
	why syscall.Errno
}

// mostUnsent is how many of them are remembered; then they are forgotten.
const mostUnsent = 64

const (
	journalLines = 100
	journalEach  = journalLines / 10
)

// limit is one of the limits whose reaching is worth a line.
type limit uint8

const (
	limitAssocs limit = iota
	limitAnswers
	limitSetups
	limitBacklog
	limitAccept
	limitMemory
	numLimits
)

var limitTexts = [numLimits]string{
	limitAssocs:  "associations refused: MaxAssocs or MaxPerSource is reached",
	limitAnswers: "packets not answered: their source is at MaxAnswers",
	limitSetups:  "packets not looked at: more set-ups, or packets of no association, come than MaxSetups",
	limitBacklog: "packets dropped: the owner of their association is too slow",
	limitMemory:  "associations aborted: MaxMemory is reached, and they held more than their share",
	limitAccept:  "associations refused: nobody accepts them, and Backlog is reached",
}

func newJournal(log *slog.Logger) *journal {
	if log == nil {
		return nil
	}
	return &journal{log: log, lines: fair.Lines{Rate: fair.Rate{All: journalLines, Each: journalEach}}}
}

// write writes a line that who has caused, or, if that is not valid, the program itself, unless there were too many of late.
func (j *journal) write(level slog.Level, who netip.Addr, msg string, attrs ...slog.Attr) {
	if j == nil || !j.log.Enabled(context.Background(), level) {
		return
	}
	left, ok := j.lines.Allow(time.Now(), who)
	if !ok {
		return
	}
	if left > 0 {
		attrs = append(attrs, slog.Int("suppressed", left))
	}
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
		j.write(slog.LevelWarn, netip.Addr{}, limitTexts[l], slog.Uint64("total", total))
	}
}

// refused notes that this host has refused to send a packet: a line a minute for each address and reason. Locks may be held: somebody else writes it.
func (j *journal) refused(p *rawio.Packet, err error) {
	if j == nil {
		return
	}
	key := unsent{to: p.Remote.Addr().Unmap()}
	errors.As(err, &key.why)
	j.mu.Lock()
	now := time.Now()
	last, known := j.unsent[key]
	due := !known || now.Sub(last) >= time.Minute
	if due {
		if j.unsent == nil || len(j.unsent) >= mostUnsent {
			j.unsent = make(map[unsent]time.Time)
		}
		j.unsent[key] = now
	}
	j.mu.Unlock()
	if due {
		e := &assoc.RefusedError{Path: p.Remote, Err: err}
		attrs := []slog.Attr{slog.Any("path", key.to), slog.String("reason", e.Error())}
		if p.Local.IsValid() {
			attrs = append(attrs, slog.Any("local", p.Local.Addr()))
		}
		go j.write(slog.LevelWarn, key.to, "this host refuses to send", attrs...)
	}
}

// tell writes a line about a rare event to TransportConfig.Logger, for a protocol above: not under a gate,
// and never per packet. remote, if it is valid, is the peer that the line is about. With no Logger it does nothing; there are at most 100
// lines in a second, 10 of them about one address.
func (t *Transport) tell(level slog.Level, remote netip.AddrPort, msg string, attrs ...slog.Attr) {
	if remote.IsValid() {
		attrs = append([]slog.Attr{slog.Any("remote", remote)}, attrs...)
	}
	t.journal.write(level, remote.Addr(), msg, attrs...)
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
		if c.entries == nil {
			c.entries = new([]entry)
		}
		*c.entries = append(*c.entries, entry{ev.Kind, ev.Path.Addr(), ev.Err})
		c.wake |= wakeListed
	}
}

// report writes the lines. No gate is held.
func (c *Conn) report(list []entry) {
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
		c.t.journal.write(level, c.RemoteAddr().(Addr).Addr(), "association: "+e.kind.String(), attrs...)
	}
}
