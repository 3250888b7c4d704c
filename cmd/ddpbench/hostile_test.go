package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
)

// liar is a server that serves one run as it should, and then tells what the test wants told for
// the report.
type liar struct {
	dev  *rdma.Device
	tell func(e *engine, l *lane)
	ends chan error
}

// serveLies serves clients of dev until the test ends.
func serveLies(t *testing.T, tell func(e *engine, l *lane)) (dev *rdma.Device, to netip.AddrPort) {
	t.Helper()
	a, b := mempair.New(t, mem.Options{})
	dev, x := must.Get(rdma.NewDevice(a, nil))(t), &liar{tell: tell, ends: make(chan error, 1)}
	x.dev = must.Get(rdma.NewDevice(b, nil))(t)
	l := must.Get(x.dev.Listen(rdma.DefaultPort))(t)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		var err error
		for err == nil {
			err = x.serveOne(ctx, l)
		}
		x.ends <- err
	}()
	t.Cleanup(func() {
		cancel()
		<-x.ends
		dev.Close()
		x.dev.Close()
	})
	return dev, netip.AddrPortFrom(b.LocalAddrs()[0].Addr(), rdma.DefaultPort)
}

// serveOne serves one client. An error is that of the listener.
func (x *liar) serveOne(ctx context.Context, l *rdma.Listener) error {
	req, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	var h hello
	if err := h.decode(req.PrivateData()); err != nil {
		return err
	}
	e, err := newEngine(x.dev, h.params, false)
	if err != nil {
		return err
	}
	defer e.close()
	lane, err := e.addLane(0)
	if err != nil {
		return err
	}
	lane.peerTarget, e.clientNotesTarget = h.target, h.notesTarget
	if err := req.Accept(lane.qp, lane.localTarget.encodeAnswer()); err != nil {
		return err
	}
	for !lane.peerDone {
		if e.waitCompletions(ctx) != nil {
			return nil
		}
	}
	x.tell(e, lane)
	<-lane.qp.Done()
	return nil
}

// putNotes writes octets into the client's notes, and reports whether the session still stands.
func (l *lane) putNotes(e *engine, r *region, from, n, to int) bool {
	err := l.postControl(rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Unsignaled, SGL: []rdma.SGE{r.sgeAt(from, n)},
		RemoteSTag: e.clientNotesTarget.stag, RemoteTO: e.clientNotesTarget.to + uint64(to)})
	return err == nil || l.qp.State() == rdma.StateRTS
}

// reportAgainst measures against a liar, for a report.
func reportAgainst(t *testing.T, dev *rdma.Device, to netip.AddrPort) error {
	t.Helper()
	o := must.Get(parseArgs([]string{"write", "10.0.0.1", "-n", "2", "-s", "64", "--report",
		filepath.Join(t.TempDir(), "page")}, io.Discard))(t)
	c := &client{options: o, dev: dev, serverAddr: to, reporter: newReporter(o, io.Discard, "mem")}
	return c.measureAllSizes(t.Context())
}

// A server that goes on writing into what the client parses (RFC 5042 section 6.2.2) changes
// nothing of it: a decoder that sees the octets change ends the process.
func TestNotesThatChangeWhileTheyAreRead(t *testing.T) {
	// A long text, which the server cuts short and mends, in turns.
	text := []byte(`{"machine":{"host":"` + strings.Repeat("a", maxNotesLen-40) + `"}}`)
	dev, to := serveLies(t, func(e *engine, l *lane) {
		r, err := registerRegion(e.pd, len(text)+2, 0)
		if err != nil {
			return
		}
		defer r.close()
		copy(r.buf, text)
		copy(r.buf[len(text):], `"a`)
		if !l.putNotes(e, r, 0, len(text), 0) || l.sendControl(control{kind: controlNotes, count: uint64(len(text))}) !=
			nil {
			return
		}
		for i := 0; l.putNotes(e, r, len(text)+i%2, 1, len(text)/2); i++ {
			runtime.Gosched()
		}
	})
	for range 20 {
		_ = reportAgainst(t, dev, to) // whatever it says of such a server
	}
}

// Once it is told that the notes are there, the client's memory is closed to the server: a Write
// behind that is refused.
func TestNotesAreClosedToTheServer(t *testing.T) {
	x := newLab(t)
	c, e := x.connectedClient(t, "write", "-n", "1", "--report", "page")
	x.server.mu.Lock()
	var served *clientRun
	for _, r := range x.server.runs {
		served = r
	}
	x.server.mu.Unlock()
	<-served.allJoined
	copy(e.notesRegion.buf, "{}")
	must.OK(t, e.handleControl(e.lanes[0], &control{kind: controlNotes, count: 2}))
	qp := served.engine.lanes[0].qp
	must.OK(t, qp.PostSend(&rdma.SendWR{Op: rdma.OpWrite, Inline: []byte("["),
		RemoteSTag: served.engine.clientNotesTarget.stag, RemoteTO: served.engine.clientNotesTarget.to}))
	<-qp.Done()
	err := qp.Err()
	check.That(t, err != nil && strings.Contains(err.Error(), "STag") && e.notesRegion.buf[0] == '{',
		"a Write of the server of %v: %v", c.serverAddr, err)
}

// What a client makes a server allocate is what is counted for it before: queues and completions as
// well as messages.
func TestWhatARunTakesIsWhatIsCounted(t *testing.T) {
	x := newLab(t)
	for name, p := range map[string]params{
		"one QP":   {verb: verbWrite, size: 1, depth: 1, qps: 1, iters: 1},
		"many QPs": {verb: verbWrite, size: 1, depth: 1, qps: 64, iters: 1},
		"deep queues": {verb: verbWrite, size: 1, depth: 2048, qps: 2, iters: 1,
			bidirectional: true},
		"deep queues of one that is led": {verb: verbWrite, size: 1, depth: 2048, qps: 2, iters: 1},
		"many receives":                  {verb: verbSend, size: 1, depth: 4096, qps: 2, iters: 1},
		"receives for --memory":          {verb: verbSend, size: 1, depth: 1, memoryOctets: 8192, qps: 2, iters: 1},
		"reads":                          {verb: verbRead, size: 1, depth: 128, qps: 16, iters: 1},
		"reads both ways":                {verb: verbRead, size: 1, depth: 128, qps: 16, iters: 1, bidirectional: true},
		"atomics":                        {verb: verbAtomic, size: 8, depth: 512, qps: 8, iters: 1},
		"a peak": {verb: verbWrite, size: 1, depth: 1, qps: 1, iters: 20000,
			bidirectional: true},
		"long messages": {verb: verbSend, size: 1 << 20, depth: 4, qps: 1, iters: 1,
			bidirectional: true},
	} {
		before := min(heapOctets(), heapOctets())
		e := must.Get(newEngine(x.dev, p, false))(t)
		for i := range p.qps {
			must.Get(e.addLane(i))(t)
		}
		e.startClock(e.startedAt)
		took, counted := int64(heapOctets()-before), p.endMemory(false)
		runtime.KeepAlive(e)
		e.close()
		check.That(t, took <= counted && counted <= 3*took+2*runMemory,
			"%s takes %d octets of the heap, counted are %d", name, took, counted)
	}
}

// A client with requests beyond count waits for nothing, and keeps others out of nothing.
func TestRequestsThatWaitAreCounted(t *testing.T) {
	x := newLab(t)
	one := x.to.Addr()
	must.That(t, x.server.requestQuota.Max == maxWaitingRequests &&
		x.server.requestQuota.TryAcquire(netip.MustParseAddr("192.0.2.1"), maxWaitingRequests/2),
		"half of what may wait")
	must.OK(t, x.newClient(t, "write", "-n", "1").measureAllSizes(t.Context())) // of another address
	x.server.requestQuota.Max = 1
	err := x.newClient(t, "write", "-n", "1").measureAllSizes(t.Context())
	check.That(t, err != nil && strings.Contains(err.Error(), "too many requests wait"),
		"from %v, of which nobody else's request may wait: %v", one, err)
}

// A bandwidth that no sum of which could be printed is none.
func TestReportedBandwidthIsBounded(t *testing.T) {
	for rate, ok := range map[float64]bool{0: true, maxRate: true, 2 * maxRate: false, 1e308: false, -1: false} {
		var b [controlLen]byte
		(&control{kind: controlReport, bandwidth: bandwidth{peak: rate}}).encodeTo(&b)
		err := new(control).decode(bytes.Clone(b[:]))
		check.That(t, (err == nil) == ok, "%v: %v", fmt.Sprint(rate), err)
	}
}
