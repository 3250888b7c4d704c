package sctp

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// eventLog writes rare events to TransportConfig.Logger. A peer that causes many of them cannot
// flood the log. There are maxLogLines lines in a second, a tenth of them about one address, and
// one line a minute for each limit. So no peer keeps what others cause out of the log. Nil writes
// nothing. No lock may be held.
type eventLog struct {
	logger *slog.Logger

	lineLimiter quota.LogLimiter // a leaf lock
	hasOnePeer  bool             // all lines are about it

	mu              sync.Mutex               // a leaf lock
	limitLoggedAt   [numLimits]time.Time     // guarded by mu
	refusalLoggedAt map[refusalKey]time.Time // guarded by mu: when there was a line
}

// refusalKey is what this host refuses to send, and why.
type refusalKey struct {
	to    netip.Addr
	errno syscall.Errno
}

// maxRefusalKeys is how many of them are remembered; then they are forgotten.
const maxRefusalKeys = 64

const (
	maxLogLines        = 100
	maxLogLinesPerAddr = maxLogLines / 10
)

// limitKind is one of the limits that get a line when they are reached.
type limitKind uint8

const (
	limitAssocs limitKind = iota
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

func newEventLog(log *slog.Logger, hasOnePeer bool) *eventLog {
	if log == nil {
		return nil
	}
	return &eventLog{logger: log, hasOnePeer: hasOnePeer,
		lineLimiter: quota.LogLimiter{RateLimiter: quota.RateLimiter{All: maxLogLines, Each: maxLogLinesPerAddr}}}
}

// writeLine writes a line, unless there were too many recently. It is about the peer at who, or
// about the program itself if who is not valid.
func (j *eventLog) writeLine(level slog.Level, who netip.Addr, msg string, attrs ...slog.Attr) {
	if j != nil {
		if j.hasOnePeer {
			who = netip.Addr{} // only the lines of all are bounded, without a table of addresses
		}
		j.lineLimiter.Log(j.logger, level, who, msg, attrs...)
	}
}

// logLimit notes that a limit was reached, total times by now.
func (j *eventLog) logLimit(l limitKind, total uint64) {
	if j == nil {
		return
	}
	j.mu.Lock()
	now := time.Now()
	due := now.Sub(j.limitLoggedAt[l]) >= time.Minute
	if due {
		j.limitLoggedAt[l] = now
	}
	j.mu.Unlock()
	if due {
		j.writeLine(slog.LevelWarn, netip.Addr{}, limitTexts[l], slog.Uint64("total", total))
	}
}

// logRefusal notes that this host has refused to send a packet: a line a minute for each address
// and reason. Locks may be held: another goroutine writes it.
func (j *eventLog) logRefusal(p *rawio.Packet, err error) {
	if j == nil {
		return
	}
	key := refusalKey{to: p.Remote.Addr().Unmap()}
	errors.As(err, &key.errno)
	j.mu.Lock()
	now := time.Now()
	last, known := j.refusalLoggedAt[key]
	due := !known || now.Sub(last) >= time.Minute
	if due {
		if j.refusalLoggedAt == nil || len(j.refusalLoggedAt) >= maxRefusalKeys {
			j.refusalLoggedAt = make(map[refusalKey]time.Time)
		}
		j.refusalLoggedAt[key] = now
	}
	j.mu.Unlock()
	if due {
		e := &assoc.RefusedError{Path: p.Remote, Err: err}
		attrs := []slog.Attr{slog.Any("path", key.to), slog.String("reason", e.Error())}
		if p.Local.IsValid() {
			attrs = append(attrs, slog.Any("local", p.Local.Addr()))
		}
		go j.writeLine(slog.LevelWarn, key.to, "this host refuses to send", attrs...)
	}
}

// logLine writes a line about a rare event to TransportConfig.Logger, for a protocol above. It is
// not for use under an association lock, and never per packet. remote, if it is valid, is the peer
// that the line is about. With no Logger it does nothing. There are at most 100 lines in a second,
// 10 of them about one address.
func (t *Transport) logLine(level slog.Level, remote netip.AddrPort, msg string, attrs ...slog.Attr) {
	if remote.IsValid() {
		attrs = append([]slog.Attr{slog.Any("remote", remote)}, attrs...)
	}
	t.eventLog.writeLine(level, remote.Addr(), msg, attrs...)
}

// logEntry is a line of the event log that waits for the unlock.
type logEntry struct {
	kind EventKind
	path netip.Addr
	err  error
}

// queueLogEntry notes what is worth a line. Owner only.
func (c *Conn) queueLogEntry(ev assoc.Event) {
	if c.t.eventLog == nil {
		return
	}
	switch ev.Kind {
	case EventUp, EventDown, EventRestart, EventPathUp, EventPathDown, EventPathPotentiallyFailed, EventPrimary,
		EventPeerError:
		if c.afterUnlock.logEntries == nil {
			c.afterUnlock.logEntries = new([]logEntry)
		}
		*c.afterUnlock.logEntries = append(*c.afterUnlock.logEntries, logEntry{ev.Kind, ev.Path.Addr(), ev.Err})
		c.afterUnlock.tasks |= taskDrainLists
	}
}

// writeLogEntries writes the lines. No lock is held.
func (c *Conn) writeLogEntries(list []logEntry) {
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
			attrs = append(attrs, slog.Any("reason", e.err))
		}
		c.t.eventLog.writeLine(level, c.RemoteAddr().(Addr).Addr(), "association: "+e.kind.String(), attrs...)
	}
}
