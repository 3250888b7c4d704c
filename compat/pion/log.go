package sctp

import (
	"context"
	"log/slog"
	"strings"

	"github.com/pion/logging"
)

const logScope = "sctp"

// writesNothing reports whether the loggers of a factory write none of the stack's lines: by
// default they write errors of the program's only.
func writesNothing(f logging.LoggerFactory) bool {
	d, ok := f.(*logging.DefaultLoggerFactory)
	if !ok {
		return false
	}
	level, ok := d.ScopeLevels[logScope]
	if !ok {
		level = d.DefaultLogLevel
	}
	return level < logging.LogLevelWarn
}

// logHandler writes the stack's lines to a logger of pion/logging.
type logHandler struct {
	log    logging.LeveledLogger
	prefix string
	attrs  string // of WithAttrs
}

// Enabled leaves the choice to the logger.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes a line. What is ordinary for the stack is of interest for few here.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	line := &logLine{h, &r}
	switch {
	case r.Level >= slog.LevelError:
		h.log.Warnf("%v", line)
	case r.Level >= slog.LevelWarn:
		h.log.Infof("%v", line)
	default:
		h.log.Debugf("%v", line)
	}
	return nil
}

// logLine is put together only if the logger writes it.
type logLine struct {
	h *logHandler
	r *slog.Record
}

func (l *logLine) String() string {
	var b strings.Builder
	b.WriteString(l.h.prefix + l.r.Message + l.h.attrs)
	l.r.Attrs(func(a slog.Attr) bool { b.WriteString(" " + a.String()); return true })
	return b.String()
}

// WithAttrs returns a handler whose lines have these as well.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	for _, a := range attrs {
		c.attrs += " " + a.String()
	}
	return &c
}

// WithGroup leaves the names of attributes as they are.
func (h *logHandler) WithGroup(string) slog.Handler { return h }
