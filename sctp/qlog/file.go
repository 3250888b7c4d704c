// Package qlog writes what associations do into files, and reads them: the container is qlog's (draft-ietf-quic-qlog-main-schema-13), as JSON text
// sequences, with events of a schema of our own, which docs/trace.md describes.
//
//	f, err := qlog.Create("trace.sqlog", nil)
//	...
//	cfg.Tracer = f.Tracer("client")
//	...
//	f.Close()
//
// Nobody waits for the disk. Events go through a bounded queue to one goroutine; what finds no room there, or does not get onto the disk, is counted,
// and the trace says so when it goes on. A trace takes no more than twice Options.MaxSize.
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
	// MaxSize is how many octets a file takes at most. Then it is renamed, with .1 behind its name, in the place of the last one so renamed, and begun
	// anew. 0 means 64 MiB.
	MaxSize int64
	// Queue is how many events may wait to be written; 0 means 4096.
	Queue int
	// Title says what the trace is of.
	Title string
	// Vantage is where it is taken: "client", "server", or "unknown", the default.
	Vantage string
}

const (
	defaultSize  = 64 << 20
	defaultQueue = 4096
	flushEvery   = 200 * time.Millisecond // and what has come by then is written
	flushAt      = 64 << 10               // octets, or as soon as so much has
	closeTimeout = 5 * time.Second
)

// File is a trace that is written.
type File struct {
	name    string
	opts    Options
	start   time.Time
	queue   chan queued
	dropped atomic.Uint64
	closing sync.Once
	stop    chan struct{} // closed by Close
	ended   chan struct{} // closed when all is written

	// Of the goroutine.
	out  io.WriteCloser
	open func(name string) (io.WriteCloser, error)
	size int64  // of the file
	buf  []byte // whole records that are to be written
	ends []end  // of the events in it
	told uint64 // drops that the trace tells of
	err  error  // the first one of the disk
}

// end is where a record in the buffer ends. It is an event, or says how many are missing.
type end struct {
	at              int
	events, missing uint64
}

// queued is an event on its way.
type queued struct {
	source string
	event  sctp.TraceEvent
}

// Create begins a trace in a new file.
func Create(name string, opts *Options) (*File, error) { return create(name, opts, openFile) }

func openFile(name string) (io.WriteCloser, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
}

// create is Create with another disk, for tests.
func create(name string, opts *Options, open func(string) (io.WriteCloser, error)) (*File, error) {
	f := &File{name: name, start: time.Now(), stop: make(chan struct{}), ended: make(chan struct{}), open: open}
	if opts != nil {
		f.opts = *opts
	}
	f.opts.MaxSize, f.opts.Vantage = cmp.Or(f.opts.MaxSize, defaultSize), cmp.Or(f.opts.Vantage, "unknown")
	f.queue = make(chan queued, cmp.Or(f.opts.Queue, defaultQueue))
	var err error
	if f.out, err = open(name); err != nil {
		return nil, err
	}
	f.head()
	go f.run()
	return f, nil
}

// Tracer returns a Tracer that writes into the file. The name of the source stands in each of its events, as there may be several.
func (f *File) Tracer(source string) sctp.Tracer { return &tracer{f, source} }

type tracer struct {
	f      *File
	source string
}

// Trace implements sctp.Tracer.
func (t *tracer) Trace(e *sctp.TraceEvent) {
	select {
	case t.f.queue <- queued{t.source, *e}:
	default:
		t.f.dropped.Add(1)
	}
}

// Dropped returns how many events are not in the trace, for want of room in the queue or on the disk.
func (f *File) Dropped() uint64 { return f.dropped.Load() }

// Close writes what has come so far, but for no longer than a few seconds, and returns what was wrong with the disk first. What comes later is dropped.
func (f *File) Close() error {
	f.closing.Do(func() { close(f.stop) })
	select {
	case <-f.ended:
		return f.err
	case <-time.After(closeTimeout):
		return os.ErrDeadlineExceeded
	}
}

// run writes until the file is closed.
func (f *File) run() {
	defer close(f.ended)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case q := <-f.queue:
			f.record(q.source, &q.event)
		case <-tick.C:
			f.flush()
		case <-f.stop:
			for range len(f.queue) {
				q := <-f.queue
				f.record(q.source, &q.event)
			}
			f.flush()
			f.fail(f.out.Close())
			return
		}
	}
}

// separator begins each record (RFC 7464).
const separator = 0x1e

func (f *File) append(v any) {
	b, err := json.Marshal(v)
	if err != nil { // there is no such value
		return
	}
	f.buf = append(append(append(f.buf, separator), b...), '\n')
}

// record adds an event, and before it how many are missing.
func (f *File) record(source string, e *sctp.TraceEvent) {
	f.tell(e.At)
	name, data := describe(e)
	f.append(written{millis(e.At.Sub(f.start)), name, group(source, e.Assoc), data})
	f.ends = append(f.ends, end{len(f.buf), 1, 0})
	if len(f.buf) >= flushAt {
		f.flush()
	}
}

// tell says how many events are missing, if there are more than was said.
func (f *File) tell(now time.Time) {
	if n := f.dropped.Load(); n > f.told {
		f.append(written{millis(now.Sub(f.start)), NameDropped, "", Dropped{Events: n - f.told}})
		f.ends = append(f.ends, end{len(f.buf), 0, n - f.told})
		f.told = n
	}
}

// flush writes what there is. What the disk does not take is dropped: there is more to come.
func (f *File) flush() {
	if f.tell(time.Now()); len(f.buf) == 0 {
		return
	}
	if f.size > 0 && f.size+int64(len(f.buf)) > f.opts.MaxSize {
		f.rotate()
	}
	n, err := f.out.Write(f.buf)
	f.size += int64(n)
	f.fail(err)
	for _, e := range f.ends {
		if e.at > n {
			f.dropped.Add(e.events)
			f.told -= e.missing
		}
	}
	if f.buf, f.ends = f.buf[:0], f.ends[:0]; f.size == 0 {
		f.head() // has not got there
	}
}

// rotate begins a new file, with a head of its own.
func (f *File) rotate() {
	f.fail(f.out.Close())
	if err := os.Rename(f.name, f.name+".1"); err != nil {
		f.fail(err)
	}
	out, err := f.open(f.name)
	if f.fail(err); err != nil {
		f.out = nowhere{err}
		return
	}
	f.out, f.size = out, 0
	rest := f.buf
	f.buf = nil
	f.head()
	for i := range f.ends {
		f.ends[i].at += len(f.buf)
	}
	f.buf = append(f.buf, rest...)
}

// nowhere is a file that could not be opened. The next flush tries again.
type nowhere struct{ err error }

func (w nowhere) Write([]byte) (int, error) { return 0, w.err }
func (w nowhere) Close() error              { return nil }

func (f *File) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// head begins a file.
func (f *File) head() {
	f.append(Head{FileSchema: fileSchema, Format: format, Title: f.opts.Title, Trace: TraceSeq{
		Common:  Common{TimeFormat: "relative_to_epoch", Reference: Reference{Clock: "monotonic", Epoch: "unknown", Wall: f.start.UTC().Format(time.RFC3339Nano)}},
		Vantage: Vantage{Type: f.opts.Vantage}, Schemas: []string{Schema},
	}})
}

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()/1e3) / 1e3 }
