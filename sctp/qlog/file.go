// Package qlog writes what associations do into files, and reads them. The container is qlog's, as
// JSON text sequences (draft-ietf-quic-qlog-main-schema-13). docs/trace.md describes the events.
//
//   - In: events of associations, by the Tracer that [File.Tracer] returns.
//   - Out: a file, whose events [Read] returns.
//   - Invariant: no association waits for the disk. Events that find no room in a bounded queue are
//     counted, and the trace says so. It takes no more than twice Options.MaxSize.
package qlog

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/sctp"
)

// Options say how a trace is written. The zero value has the defaults.
type Options struct {
	// MaxSize is the most octets of a file. Then it is renamed, with .1 after its name, in place of
	// the last one so renamed, and a new file is begun. 0 means 64 MiB.
	MaxSize int64
	// Queue is how many events may wait to be written; 0 means 4096.
	Queue int
	// Title says what the trace is of.
	Title string
	// Vantage is where it is taken: "client", "server", or "unknown", the default.
	Vantage string
}

const (
	defaultMaxSize = 64 << 20
	defaultQueue   = 4096
	flushInterval  = 200 * time.Millisecond // and what has come by then is written
	flushOctets    = 64 << 10               // octets, or as soon as so much has
	closeTimeout   = 5 * time.Second
)

// File is a trace that is written.
type File struct {
	name      string
	opts      Options
	startedAt time.Time
	queue     chan queuedEvent
	dropped   atomic.Uint64
	closeOnce sync.Once
	stop      chan struct{} // closed by Close
	finished  chan struct{} // closed when all is written

	// Of the goroutine.
	out           io.WriteCloser
	open          func(name string) (io.WriteCloser, error)
	size          int64       // of the file
	buf           []byte      // whole records that are to be written
	recordEnds    []recordEnd // of the events in it
	dropsReported uint64      // drops that the trace tells of
	err           error       // the first one of the disk
}

// recordEnd is where a record in the buffer ends. It is an event, or says how many are missing.
type recordEnd struct {
	offset          int
	events, missing uint64
}

// queuedEvent is an event on its way.
type queuedEvent struct {
	source string
	event  sctp.TraceEvent
}

// Create begins a trace in a new file.
func Create(name string, opts *Options) (*File, error) { return createWith(name, opts, openFile) }

func openFile(name string) (io.WriteCloser, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
}

// createWith is Create with another disk, for tests.
func createWith(name string, opts *Options, open func(string) (io.WriteCloser, error)) (*File, error) {
	f := &File{name: name, startedAt: time.Now(), stop: make(chan struct{}), finished: make(chan struct{}), open: open}
	if opts != nil {
		f.opts = *opts
	}
	f.opts.MaxSize, f.opts.Vantage = cmp.Or(f.opts.MaxSize, defaultMaxSize), cmp.Or(f.opts.Vantage, "unknown")
	f.queue = make(chan queuedEvent, cmp.Or(f.opts.Queue, defaultQueue))
	var err error
	if f.out, err = open(name); err != nil {
		return nil, err
	}
	f.appendHead()
	go f.writeLoop()
	return f, nil
}

// Tracer returns a Tracer that writes into the file. The name of the source stands in each of its
// events, as there may be several.
func (f *File) Tracer(source string) sctp.Tracer { return &tracer{f, source} }

type tracer struct {
	f      *File
	source string
}

// Trace implements sctp.Tracer.
func (t *tracer) Trace(e *sctp.TraceEvent) {
	select {
	case t.f.queue <- queuedEvent{t.source, *e}:
	default:
		t.f.dropped.Add(1)
	}
}

// Dropped returns how many events are not in the trace, because the queue or the disk had no room.
func (f *File) Dropped() uint64 { return f.dropped.Load() }

// Close writes what has come so far, but for no longer than a few seconds. It returns the first
// error of the disk. What comes later is dropped.
func (f *File) Close() error {
	f.closeOnce.Do(func() { close(f.stop) })
	select {
	case <-f.finished:
		return f.err
	case <-time.After(closeTimeout):
		return os.ErrDeadlineExceeded
	}
}

// writeLoop writes until the file is closed.
func (f *File) writeLoop() {
	defer close(f.finished)
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case q := <-f.queue:
			f.recordEvent(q.source, &q.event)
		case <-tick.C:
			f.flush()
		case <-f.stop:
			for range len(f.queue) {
				q := <-f.queue
				f.recordEvent(q.source, &q.event)
			}
			f.flush()
			f.keepFirstError(f.out.Close())
			return
		}
	}
}

// recordSeparator begins each record (RFC 7464).
const recordSeparator = 0x1e

func (f *File) appendRecord(v any) {
	b, err := json.Marshal(v)
	if err != nil { // there is no such value
		return
	}
	f.buf = append(append(append(f.buf, recordSeparator), b...), '\n')
}

// recordEvent adds an event, and before it how many are missing.
func (f *File) recordEvent(source string, e *sctp.TraceEvent) {
	f.recordDrops(e.At)
	name, data := describeEvent(e)
	f.appendRecord(eventRecord{toMillis(e.At.Sub(f.startedAt)), name, groupID(source, e.Assoc), data})
	f.recordEnds = append(f.recordEnds, recordEnd{len(f.buf), 1, 0})
	if len(f.buf) >= flushOctets {
		f.flush()
	}
}

// recordDrops says how many events are missing, if there are more than was said.
func (f *File) recordDrops(now time.Time) {
	if n := f.dropped.Load(); n > f.dropsReported {
		f.appendRecord(eventRecord{toMillis(now.Sub(f.startedAt)), NameDropped, "",
			Dropped{Events: n - f.dropsReported}})
		f.recordEnds = append(f.recordEnds, recordEnd{len(f.buf), 0, n - f.dropsReported})
		f.dropsReported = n
	}
}

// flush writes what there is. What the disk does not take is dropped: there is more to come.
func (f *File) flush() {
	if f.recordDrops(time.Now()); len(f.buf) == 0 {
		return
	}
	if f.size > 0 && f.size+int64(len(f.buf)) > f.opts.MaxSize {
		f.rotateFile()
	}
	n, err := f.out.Write(f.buf)
	f.size += int64(n)
	f.keepFirstError(err)
	for _, e := range f.recordEnds {
		if e.offset > n {
			f.dropped.Add(e.events)
			f.dropsReported -= e.missing
		}
	}
	if f.buf, f.recordEnds = f.buf[:0], f.recordEnds[:0]; f.size == 0 {
		f.appendHead() // has not got there
	}
}

// rotateFile begins a new file, with a head of its own.
func (f *File) rotateFile() {
	f.keepFirstError(f.out.Close())
	if err := os.Rename(f.name, f.name+".1"); err != nil {
		f.keepFirstError(err)
	}
	out, err := f.open(f.name)
	if f.keepFirstError(err); err != nil {
		f.out = unopenedFile{err}
		return
	}
	f.out, f.size = out, 0
	rest := f.buf
	f.buf = nil
	f.appendHead()
	for i := range f.recordEnds {
		f.recordEnds[i].offset += len(f.buf)
	}
	f.buf = append(f.buf, rest...)
}

// unopenedFile is a file that could not be opened. The next flush tries again.
type unopenedFile struct{ err error }

func (w unopenedFile) Write([]byte) (int, error) { return 0, w.err }
func (w unopenedFile) Close() error              { return nil }

func (f *File) keepFirstError(err error) {
	if f.err == nil {
		f.err = err
	}
}

// appendHead begins a file.
func (f *File) appendHead() {
	f.appendRecord(Head{FileSchema: fileSchema, Format: mediaType, Title: f.opts.Title, Trace: TraceSeq{
		Common: Common{TimeFormat: "relative_to_epoch",
			Reference: Reference{Clock: "monotonic", Epoch: "unknown",
				Wall: f.startedAt.UTC().Format(time.RFC3339Nano)}},
		Vantage: Vantage{Type: f.opts.Vantage}, Schemas: []string{Schema},
	}})
}

func toMillis(d time.Duration) float64 { return float64(d.Nanoseconds()/1e3) / 1e3 }
