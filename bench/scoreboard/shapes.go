package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/sctp"
)

// Shapes: how the program of each end uses a connection.
const (
	direct    = "direct"    // who reads a message answers it
	handed    = "channel"   // a goroutine reads, and hands each message to a worker through a channel
	pipelined = "pipelined" // as direct, with several requests outstanding
	fetch     = "fetch"     // as channel: a short request, and an answer of Size octets
	toBulk    = "to-bulk"   // direct, and after a while messages of 64 KiB, several under way
	toDirect  = "to-direct" // the other way round
)

const (
	window   = 32 // requests outstanding in pipelined
	shortAsk = 16 // octets of a request in fetch
	queued   = 16 // messages that a channel to a worker holds
)

// numConns is how many connections there are.
func (s spec) numConns() int { return max(1, s.Conns) }

// requestSize is how long a request is. Answers have Size octets.
func (s spec) requestSize() int {
	switch s.Shape {
	case fetch:
		return shortAsk
	case toBulk, toDirect:
		return mid
	}
	return s.Size
}

// playShape measures round trips over connections that programs use in one of the shapes.
func playShape(e *end, out io.Writer) error {
	list, err := e.openConnections(out)
	if err != nil {
		return err
	}
	c := newCost(e.Busy)
	var r report
	if e.Server {
		return e.serveAll(list, c, &r, out)
	}
	if e.Shape == toBulk || e.Shape == toDirect {
		return e.runChangingLoad(list[0], c, &r, out)
	}
	return e.askAll(list, c, &r, out)
}

// openConnections sets all of them up.
func (e *end) openConnections(out io.Writer) ([]messenger, error) {
	open, err := e.tcpOpener(out)
	if e.Peer == "sctp" {
		open, err = e.sctpOpener(out)
	}
	if err != nil {
		return nil, err
	}
	return openSeveral(e.numConns(), open)
}

// dialers is how many connections are set up at a time.
const dialers = 64

// openSeveral calls open n times.
func openSeveral[T any](n int, open func() (T, error)) ([]T, error) {
	list, errs := make([]T, n), make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, dialers) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				list[i], errs[i] = open()
			}
		})
	}
	wg.Wait()
	return list, errors.Join(errs...)
}

func (e *end) tcpOpener(out io.Writer) (func() (messenger, error), error) {
	if e.Peer != "tcp" {
		return nil, nil
	}
	dial := func() (net.Conn, error) { return net.Dial("tcp", netip.AddrPortFrom(e.Remote, tcpPort).String()) }
	if e.Server {
		l, err := net.Listen("tcp", netip.AddrPortFrom(e.Local, tcpPort).String())
		if err != nil {
			return nil, err
		}
		dial = l.Accept
		if err := sayReady(out); err != nil {
			return nil, err
		}
	}
	return func() (messenger, error) {
		c, err := dial()
		if err != nil {
			return nil, err
		}
		return &tcpBuffered{tcpMessages{c.(*net.TCPConn)}, bufio.NewReader(c)}, nil
	}, nil
}

// tcpBuffered reads what has come at once, as programs do that have several requests under way.
type tcpBuffered struct {
	tcpMessages
	in *bufio.Reader
}

func (m *tcpBuffered) receive(b []byte) (int, error) { return io.ReadFull(m.in, b) }

// manyPeers has a Transport take as many associations from one address as a benchmark makes.
func manyPeers() *sctp.TransportConfig {
	return &sctp.TransportConfig{MaxPerSource: -1, MaxAnswers: -1, MaxSetups: -1, MaxMemory: -1}
}

func (e *end) sctpOpener(out io.Writer) (func() (messenger, error), error) {
	link, err := e.openLink()
	if err != nil {
		return nil, err
	}
	t, err := sctp.NewTransport(link, manyPeers())
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	dial := func() (*sctp.Conn, error) { return t.Dial(ctx, netip.AddrPortFrom(e.Remote, sctpPort), nil) }
	if e.Server {
		l, err := t.Listen(sctpPort, &sctp.Config{Backlog: e.numConns()})
		if err != nil {
			return nil, err
		}
		dial = func() (*sctp.Conn, error) { return l.Accept(ctx) }
		if err := sayReady(out); err != nil {
			return nil, err
		}
	}
	return func() (messenger, error) {
		c, err := dial()
		if err != nil {
			return nil, err
		}
		return markedConn{
			read:  func(b []byte) (int, error) { n, _, err := c.ReadMsg(b); return n, err },
			write: func(b []byte) (int, error) { return c.WriteMsg(b, sctp.SendInfo{}) },
		}, nil
	}, nil
}

// roundTrips are the round trips of one connection.
type roundTrips struct {
	until time.Time
	want  int // at least
	n     int
	took  []time.Duration // the first of them
}

func (t *roundTrips) wantsMore(now time.Time, n int) bool { return now.Before(t.until) || n < t.want }

func (t *roundTrips) addTrip(d time.Duration) {
	t.n++
	if len(t.took) < cap(t.took) {
		t.took = append(t.took, d)
	}
}

// newTrips are those of n connections, from now on.
func (e *end) newTrips(n int) []roundTrips {
	list := make([]roundTrips, n)
	until := time.Now().Add(e.runTime())
	for i := range list {
		list[i] = roundTrips{until: until, want: e.Trips / n, took: make([]time.Duration, 0, maxTrips/n)}
	}
	return list
}

// sumTrips sums round trips up.
func (r *report) sumTrips(list []roundTrips, elapsed time.Duration) {
	var all []time.Duration
	for i := range list {
		r.Messages += uint64(list[i].n)
		all = append(all, list[i].took...)
	}
	r.Seconds = elapsed.Seconds()
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	us := func(q int) float64 { return float64(all[(len(all)-1)*q/100]) / 1e3 }
	r.P50, r.P99 = us(50), us(99)
}

// askAll is the client: a round trip on each connection to begin with, then the measurement.
func (e *end) askAll(list []messenger, c *cost, r *report, out io.Writer) error {
	ask, answer := make([]byte, e.requestSize()), make([]byte, e.Size)
	for _, m := range list {
		if err := roundTrip(m, ask, answer); err != nil {
			return err
		}
	}
	run := map[string]func(*end, messenger, *roundTrips) (func() error, error){direct: (*end).askDirect,
		handed: (*end).askHanded, fetch: (*end).askHanded, pipelined: (*end).askPipelined}[e.Shape]
	over, errs := make([]func() error, len(list)), make([]error, len(list))
	c.startClock()
	began := time.Now()
	t := e.newTrips(len(list))
	var wg sync.WaitGroup
	for i, m := range list {
		wg.Go(func() { over[i], errs[i] = run(e, m, &t[i]) })
	}
	wg.Wait()
	r.sumTrips(t, time.Since(began))
	c.stopClock(r)
	for _, m := range list {
		errs = append(errs, m.finish())
	}
	for _, f := range over { // the server ends none before it has heard of all
		errs = append(errs, f())
	}
	return errors.Join(append(errs, r.printJSON(out))...)
}

// roundTrip is a request and its answer.
func roundTrip(m messenger, ask, answer []byte) error {
	if err := m.send(ask); err != nil {
		return err
	}
	_, err := m.receive(answer)
	return err
}

// waitForEnd waits for the end of m, which is next.
func waitForEnd(m messenger, b []byte) error {
	if _, err := m.receive(b); err != io.EOF {
		return fmt.Errorf("not the end: %w", err)
	}
	return nil
}

// askDirect and the other two return how to wait for the end of the connection.
func (e *end) askDirect(m messenger, t *roundTrips) (func() error, error) {
	ask, answer := make([]byte, e.requestSize()), make([]byte, e.Size)
	over := func() error { return waitForEnd(m, answer) }
	for now := time.Now(); t.wantsMore(now, t.n); {
		if err := roundTrip(m, ask, answer); err != nil {
			return over, err
		}
		after := time.Now()
		t.addTrip(after.Sub(now))
		now = after
	}
	return over, nil
}

// handOver reads messages of n octets and hands them on until the end, which closes the channel. A
// message stays as it is until queued others have come.
func handOver(m messenger, n int) (<-chan []byte, *error) {
	ch, err := make(chan []byte, queued), new(error)
	var ring [queued + 2][]byte
	for i := range ring {
		ring[i] = make([]byte, n)
	}
	go func() {
		defer close(ch)
		for i := 0; ; i++ {
			b := ring[i%len(ring)]
			k, e := m.receive(b)
			if e != nil {
				if e != io.EOF {
					*err = e
				}
				return
			}
			ch <- b[:k]
		}
	}()
	return ch, err
}

var errEarly = errors.New("the connection ended early")

func (e *end) askHanded(m messenger, t *roundTrips) (func() error, error) {
	answers, failed := handOver(m, e.Size)
	over := func() error {
		for range answers {
		}
		return *failed
	}
	ask := make([]byte, e.requestSize())
	for now := time.Now(); t.wantsMore(now, t.n); {
		if err := m.send(ask); err != nil {
			return over, err
		}
		if _, ok := <-answers; !ok {
			return over, errors.Join(errEarly, *failed)
		}
		after := time.Now()
		t.addTrip(after.Sub(now))
		now = after
	}
	return over, nil
}

func (e *end) askPipelined(m messenger, t *roundTrips) (func() error, error) {
	began := time.Now()
	var sent [window]atomic.Int64 // ns since began
	places, done := make(chan struct{}, window), make(chan error, 1)
	go func() {
		answer := make([]byte, e.Size)
		for i := 0; ; i++ {
			if _, err := m.receive(answer); err != nil {
				if err == io.EOF {
					err = nil
				}
				done <- err
				return
			}
			t.addTrip(time.Since(began) - time.Duration(sent[i%window].Load()))
			<-places
		}
	}()
	over := func() error { return <-done }
	ask := make([]byte, e.requestSize())
	for n, now := 0, began; t.wantsMore(now, n); n++ {
		places <- struct{}{}
		now = time.Now()
		sent[n%window].Store(int64(now.Sub(began)))
		if err := m.send(ask); err != nil {
			return over, err
		}
	}
	for range window { // all are answered
		places <- struct{}{}
	}
	return over, nil
}

// runChangingLoad is the client of a load that changes. What the second half of each of the two
// loads yields counts.
func (e *end) runChangingLoad(m messenger, c *cost, r *report, out io.Writer) error {
	if err := roundTrip(m, make([]byte, message), make([]byte, e.Size)); err != nil {
		return err
	}
	c.startClock()
	loads := []func() error{
		func() (err error) { r.Messages, r.Seconds, err = e.keepInFlight(m, 1, message); return err },
		func() error {
			n, seconds, err := e.keepInFlight(m, window, mid)
			r.Bulk = float64(n) * mid / seconds / 1e9
			return err
		},
	}
	if e.Shape == toDirect {
		slices.Reverse(loads)
	}
	for _, f := range loads {
		if err := f(); err != nil {
			return err
		}
	}
	c.stopClock(r)
	return errors.Join(m.finish(), waitForEnd(m, make([]byte, e.Size)), r.printJSON(out))
}

// keepInFlight has some messages of n octets under way at once, for half of the run, and counts
// those that are answered in the second half of that.
func (e *end) keepInFlight(m messenger, atOnce, n int) (count uint64, seconds float64, err error) {
	ask, answer := make([]byte, n), make([]byte, e.Size)
	began := time.Now()
	half, whole := began.Add(e.runTime()/4), began.Add(e.runTime()/2)
	var from time.Time
	for out, more := 0, true; more || out > 0; {
		for ; more && out < atOnce; out++ {
			if err := m.send(ask); err != nil {
				return 0, 0, err
			}
		}
		if _, err := m.receive(answer); err != nil {
			return 0, 0, err
		}
		out--
		now := time.Now()
		switch {
		case !from.IsZero() && more:
			count++
			seconds = now.Sub(from).Seconds()
		case now.After(half):
			from = now
		}
		more = now.Before(whole) || count == 0
	}
	return count, seconds, nil
}

// serveAll is the server. What it does from the last first request to the first end counts.
func (e *end) serveAll(list []messenger, c *cost, r *report, out io.Writer) error {
	var warm atomic.Int64
	var over sync.Once
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, m := range list {
		wg.Go(func() {
			ask, answer := make([]byte, e.requestSize()), make([]byte, e.Size)
			if _, errs[i] = m.receive(ask); errs[i] != nil {
				return
			}
			if warm.Add(1) == int64(len(list)) {
				c.startClock()
			}
			if errs[i] = m.send(answer); errs[i] == nil {
				errs[i] = e.serveRequests(m, ask, answer)
			}
			over.Do(func() { c.stopClock(r) })
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, r.printJSON(out))...); err != nil {
		return err
	}
	for _, m := range list {
		if err := m.finish(); err != nil {
			return err
		}
	}
	select {}
}

// serveRequests answers requests until the end.
func (e *end) serveRequests(m messenger, ask, answer []byte) error {
	if e.Shape != handed && e.Shape != fetch {
		for {
			if _, err := m.receive(ask); err != nil {
				return notEOF(err)
			}
			if err := m.send(answer); err != nil {
				return err
			}
		}
	}
	asks, failed := handOver(m, e.requestSize())
	for range asks {
		if err := m.send(answer); err != nil {
			return err
		}
	}
	return *failed
}

func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// cost is the processor time of this process without what it computes beside.
type cost struct {
	beside *burner
	began  time.Duration
}

func newCost(busy bool) *cost {
	c := new(cost)
	if busy {
		c.beside = new(burner)
		go c.beside.burnCPU()
	}
	return c
}

func (c *cost) processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no way to fail
	}
	return time.Duration(u.Utime.Nano()+u.Stime.Nano()) - c.beside.timeSpent()
}

func (c *cost) startClock() { c.began = c.processTime() }

func (c *cost) stopClock(r *report) { r.CPU = (c.processTime() - c.began).Seconds() }

// burner is a goroutine that computes beside. It may move between threads, and others may run in
// between, so its processor time is counted as the least that a unit of work has taken, for each of
// them.
type burner struct {
	spent atomic.Int64 // ns
}

func (l *burner) timeSpent() time.Duration {
	if l == nil {
		return 0
	}
	return time.Duration(l.spent.Load())
}

func (l *burner) burnCPU() {
	x, least := uint64(1), time.Hour
	for x != 0 { // it never is
		before := time.Now()
		for range 1 << 14 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		least = min(least, time.Since(before))
		l.spent.Add(int64(least))
	}
}
