package pcap

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Link is a tap: it passes everything on to an inner link and records the packets that the inner
// link sent or received. A failure to write the record ends the recording, never the traffic.
//
// Writes are serialised with the record, so that a reply never stands before the packet that it
// answers. Nothing waits for the WriteBatch of an inner link that is not prompt (rawio.Prompter).
// Its packets are recorded when it returns, with the time at which it was called.
type Link struct {
	inner         rawio.Link
	innerIsPrompt bool     // inner is
	file          *os.File // from Create, else nil

	mu        sync.Mutex
	writer    *Writer // guarded by mu
	stopped   bool    // guarded by mu: recording has failed or the link is closed
	recordErr error   // guarded by mu: why recording failed
}

var (
	_ rawio.Link       = (*Link)(nil)
	_ rawio.Addresser  = (*Link)(nil)
	_ rawio.PortBinder = (*Link)(nil)
	_ rawio.Featurer   = (*Link)(nil)
	_ rawio.Waiter     = (*Link)(nil)
	_ rawio.Fragmenter = (*Link)(nil)

	_ rawio.Interrupter = (*Link)(nil)
	_ rawio.Sharder     = (*Link)(nil)
)

// New returns a tap on inner that records to w. Close closes inner and completes the record;
// closing w is left to the caller. Traffic waits for w, which must not block.
func New(inner rawio.Link, w io.Writer) (*Link, error) {
	pw, err := NewWriter(w)
	if err != nil {
		return nil, err
	}
	return &Link{inner: inner, innerIsPrompt: rawio.PromptOf(inner), writer: pw}, nil
}

// Create is New with a file of its own, created or truncated, that Close closes.
func Create(inner rawio.Link, path string) (*Link, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	l, err := New(inner, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l.file = f
	return l, nil
}

// ReadBatch reads from the inner link and records what came.
func (l *Link) ReadBatch(pkts []rawio.Packet) (n int, err error) {
	return shardTap{l, l.inner}.ReadBatch(pkts)
}

// PollBatch is ReadBatch for an inner link that is a rawio.Poller; where it is not, nothing has
// ever come.
func (l *Link) PollBatch(pkts []rawio.Packet) int { return shardTap{l, l.inner}.PollBatch(pkts) }

// Wait asks the inner link, where that is a rawio.Waiter: see its Features.
func (l *Link) Wait(p rawio.Pause) error { return shardTap{l, l.inner}.Wait(p) }

// Polling asks the inner link, where that is a rawio.Waiter.
func (l *Link) Polling() time.Duration { return shardTap{l, l.inner}.Polling() }

// Shards returns the inner link's, and records what comes there too.
func (l *Link) Shards() []rawio.Shard {
	var out []rawio.Shard
	for _, s := range rawio.ShardsOf(l.inner) {
		out = append(out, shardTap{l, s})
	}
	return out
}

// shardTap is a queue of the inner link, or its own.
type shardTap struct {
	tap   *Link
	inner rawio.Shard
}

func (s shardTap) ReadBatch(pkts []rawio.Packet) (n int, err error) {
	n, err = s.inner.ReadBatch(pkts)
	s.tap.recordReceived(pkts[:n])
	return n, err
}

func (s shardTap) PollBatch(pkts []rawio.Packet) int {
	p, ok := s.inner.(rawio.Poller)
	if !ok {
		return 0
	}
	n := p.PollBatch(pkts)
	s.tap.recordReceived(pkts[:n])
	return n
}

func (s shardTap) Wait(p rawio.Pause) error {
	if w, ok := s.inner.(rawio.Waiter); ok {
		return w.Wait(p)
	}
	return nil
}

func (s shardTap) Polling() time.Duration {
	if w, ok := s.inner.(rawio.Waiter); ok {
		return w.Polling()
	}
	return 0
}

// recordReceived records what the inner link has read.
func (l *Link) recordReceived(pkts []rawio.Packet) {
	at := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; i < len(pkts) && !l.stopped; i++ {
		l.stopOnError(l.writer.Received(at, &pkts[i]))
	}
}

// WriteBatch writes to the inner link and records what it took. Where the inner link chooses the
// source address, the record shows its first address of the right family.
func (l *Link) WriteBatch(pkts []rawio.Packet) (n int, err error) {
	if l.innerIsPrompt {
		l.mu.Lock()
	}
	at := time.Now()
	n, err = l.inner.WriteBatch(pkts)
	if !l.innerIsPrompt {
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	for i := 0; i < n && !l.stopped; i++ {
		p := pkts[i]
		if !p.Local.IsValid() {
			p.Local = l.sourceFor(p.Remote.Addr())
		}
		l.stopOnError(l.writer.Sent(at, &p))
	}
	return n, err
}

// Prompt implements rawio.Prompter where the inner link does.
func (l *Link) Prompt() rawio.Link {
	if l.innerIsPrompt {
		return l
	}
	return nil
}

func (l *Link) sourceFor(remote netip.Addr) netip.AddrPort {
	for _, ap := range l.LocalAddrs() {
		if ap.Addr().Unmap().BitLen() == remote.Unmap().BitLen() {
			return ap
		}
	}
	return netip.AddrPort{}
}

// MTU asks the inner link.
func (l *Link) MTU(local, remote netip.Addr) int { return l.inner.MTU(local, remote) }

// Features asks the inner link.
func (l *Link) Features() rawio.Features { return rawio.FeaturesOf(l.inner) }

// BaseMTU asks the inner link; it returns 0, for none, where that is no rawio.BaseSizer.
func (l *Link) BaseMTU(local, remote netip.Addr) int {
	if s, ok := l.inner.(rawio.BaseSizer); ok {
		return s.BaseMTU(local, remote)
	}
	return 0
}

// MaxBatch asks the inner link; it returns 0, for any number, where that is no rawio.Batcher.
func (l *Link) MaxBatch() int { return rawio.MaxBatchOf(l.inner) }

// ErrorDetection asks the inner link.
func (l *Link) ErrorDetection() rawio.ErrorDetection { return rawio.ErrorDetectionOf(l.inner) }

// CutFrom asks the inner link; it returns 0 where that is no rawio.Fragmenter.
func (l *Link) CutFrom(local, remote netip.Addr) int {
	if f, ok := l.inner.(rawio.Fragmenter); ok {
		return f.CutFrom(local, remote)
	}
	return 0
}

// Interrupt tells the inner link, where that is a rawio.Interrupter.
func (l *Link) Interrupt() {
	if i, ok := l.inner.(rawio.Interrupter); ok {
		i.Interrupt()
	}
}

// ReceiveBuffer asks the inner link.
func (l *Link) ReceiveBuffer() int { return rawio.ReceiveBufferOf(l.inner) }

// BindPort asks the inner link; it succeeds where that is no rawio.PortBinder.
func (l *Link) BindPort(port uint16, at ...netip.Addr) error {
	if b, ok := l.inner.(rawio.PortBinder); ok {
		return b.BindPort(port, at...)
	}
	return nil
}

// UnbindPort tells the inner link, where that is a rawio.PortBinder.
func (l *Link) UnbindPort(port uint16) {
	if b, ok := l.inner.(rawio.PortBinder); ok {
		b.UnbindPort(port)
	}
}

// Watch asks the inner link; it returns at once where that is no rawio.Watcher.
func (l *Link) Watch(changed func(usable []netip.Addr)) {
	if w, ok := l.inner.(rawio.Watcher); ok {
		w.Watch(changed)
	}
}

// Owns asks the inner link, see rawio.Owns.
func (l *Link) Owns(a netip.Addr) bool { return rawio.Owns(l.inner, a) }

// LocalAddrs asks the inner link; it returns nil where that is no rawio.Addresser.
func (l *Link) LocalAddrs() []netip.AddrPort {
	if a, ok := l.inner.(rawio.Addresser); ok {
		return a.LocalAddrs()
	}
	return nil
}

// Skipped returns how many packets passed but could not be recorded: see the package comment.
func (l *Link) Skipped() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.Skipped()
}

// Flush completes the record so far. It returns the error that ended the recording, if one did.
func (l *Link) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flushRecord()
}

// Close closes the inner link and completes the record. Its error joins those of the inner link and
// of the recording.
func (l *Link) Close() error {
	err := l.inner.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	err = errors.Join(err, l.flushRecord())
	l.stopped = true
	if l.file != nil {
		closed := l.file.Close()
		if l.recordErr == nil {
			l.recordErr = closed
		}
		err = errors.Join(err, closed)
		l.file = nil
	}
	return err
}

func (l *Link) flushRecord() error {
	if !l.stopped {
		l.stopOnError(l.writer.Flush())
	}
	return l.recordErr
}

// stopOnError ends the recording with its first error.
func (l *Link) stopOnError(err error) {
	if err != nil {
		l.recordErr, l.stopped = err, true
	}
}
