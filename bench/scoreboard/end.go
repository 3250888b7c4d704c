package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
)

// goPeer is a peer whose ends this program plays itself, each in a process of its own.
var goPeer = peer{
	command: func(b *bench, e *end) []string { return []string{b.self, endCommand, e.encodeJSON()} },
	ready:   "ready",
	parse:   parseReports,
}

// encodeJSON says to a process what it has to do.
func (e *end) encodeJSON() string {
	b, _ := json.Marshal(e) // numbers, strings, booleans and addresses always marshal
	return string(b)
}

// Commands of this program to itself: to be one end of a measurement, and a process that computes
// beside until it is killed.
const (
	endCommand     = "end"
	computeCommand = "compute"
)

// asChild does what this program was started for by itself, and does not return then.
func asChild(args []string) {
	switch {
	case len(args) == 2 && args[0] == endCommand:
		exitWith(runEnd(args[1], os.Stdout))
	case len(args) == 1 && args[0] == computeCommand:
		new(burner).burnCPU()
	}
}

// report is what one end saw, the last line of its output.
type report struct {
	Messages   uint64        `json:"messages"` // in the time, the first one excluded at a receiver
	Octets     uint64        `json:"octets"`
	Seconds    float64       `json:"seconds"`
	P50        float64       `json:"p50_us,omitempty"`
	P99        float64       `json:"p99_us,omitempty"`
	Allocs     *float64      `json:"allocs_per_message,omitempty"`
	PacketsOut uint64        `json:"packets_out,omitempty"`
	PacketsIn  uint64        `json:"packets_in,omitempty"`
	CallsOut   uint64        `json:"calls_out,omitempty"` // system calls, or batches where those are not counted
	CallsIn    uint64        `json:"calls_in,omitempty"`
	CPU        float64       `json:"cpu_seconds,omitempty"` // while Messages round trips were made
	Growth     *growthResult `json:"growth,omitempty"`
	Bulk       float64       `json:"bulk_GBps,omitempty"` // of a load that changes

	Line [2]time.Duration `json:"line_ns,omitzero"` // before and after the round trips, if much else came before them
}

// runEnd plays the end that arg describes.
func runEnd(arg string, out io.Writer) error {
	var e end
	if err := json.Unmarshal([]byte(arg), &e); err != nil {
		return err
	}
	if e.Procs > 0 {
		runtime.GOMAXPROCS(e.Procs)
	}
	play := map[string]func(*end, io.Writer) error{"pump": playPump, "sctp": playSCTP, "tcp": playTCP,
		"pion": playPion, "rdma": playRDMA}[e.Peer]
	switch {
	case e.Shape == growth || e.Shape == idle:
		play = playGrowth
	case e.Shape != "" && e.Peer != "rdma":
		play = playShape
	}
	if play == nil {
		return fmt.Errorf("no end of %q", e.Peer)
	}
	return play(&e, out)
}

func (r *report) printJSON(out io.Writer) error { return json.NewEncoder(out).Encode(r) }

// sayReady tells that a client may come.
func sayReady(out io.Writer) error {
	_, err := fmt.Fprintln(out, "ready")
	return err
}

// messenger moves messages one after another.
type messenger interface {
	send(b []byte) error
	// receive fills b with a message. After the peer's last one it returns io.EOF.
	receive(b []byte) (n int, err error)
	// finish tells the peer that this was all.
	finish() error
}

// playMessages measures messages over m. The server reports before the client does: it finishes
// when it has everything, and stays until it is told to go.
func playMessages(e *end, m messenger, out io.Writer, count func(*report)) error {
	play := e.sendLoop
	switch {
	case e.Server:
		play = e.receiveLoop
	case e.PingPong:
		play = e.pingPong
	}
	var r report
	if err := play(m, &r); err != nil {
		return err
	}
	count(&r)
	if !e.Server {
		return r.printJSON(out)
	}
	if err := r.printJSON(out); err != nil {
		return err
	}
	if err := m.finish(); err != nil {
		return err
	}
	select {}
}

// allocCounter counts heap allocations in the second half of a run, when everything has its size.
type allocCounter struct {
	half           time.Time
	begun          bool
	mallocs, count uint64
}

func numMallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// countSoFar is called now and then, when n messages have gone.
func (t *allocCounter) countSoFar(now time.Time, n uint64) {
	if !t.begun && now.After(t.half) {
		t.begun, t.mallocs, t.count = true, numMallocs(), n
	}
}

func (t *allocCounter) reportTo(r *report, n uint64) {
	if t.begun && n > t.count {
		per := float64(numMallocs()-t.mallocs) / float64(n-t.count)
		r.Allocs = &per
	}
}

// messagesPerLook is how many messages go between two looks at the clock.
func (e *end) messagesPerLook() uint64 { return uint64(max(1, (64<<10)/max(e.Size, 1))) }

func (e *end) sendLoop(m messenger, r *report) error {
	b := make([]byte, e.Size)
	for i := range b {
		b[i] = byte(i)
	}
	began := time.Now()
	t := allocCounter{half: began.Add(e.runTime() / 2)}
	for now := began; now.Sub(began) < e.runTime(); now = time.Now() {
		t.countSoFar(now, r.Messages)
		for range e.messagesPerLook() {
			if err := m.send(b); err != nil {
				return err
			}
			r.Messages++
		}
	}
	t.reportTo(r, r.Messages)
	r.Octets, r.Seconds = r.Messages*uint64(e.Size), time.Since(began).Seconds()
	return e.sendLast(m, b)
}

// sendLast sends the last message and waits for the peer's.
func (e *end) sendLast(m messenger, b []byte) error {
	if err := m.finish(); err != nil {
		return err
	}
	switch _, err := m.receive(b); err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("the server sent a message where it should end")
	default:
		return err
	}
}

// receiveLoop takes what comes, and returns it in a ping-pong. The first message only starts the
// clock.
func (e *end) receiveLoop(m messenger, r *report) error {
	b := make([]byte, e.Size)
	var began time.Time
	var t allocCounter
	for n := uint64(0); ; n++ {
		k, err := m.receive(b)
		if err == io.EOF {
			break
		}
		if err == nil && k != e.Size {
			err = fmt.Errorf("a message of %d octets came", k)
		}
		if err == nil && e.PingPong {
			err = m.send(b)
		}
		switch {
		case err != nil:
			return err
		case n == 0:
			began = time.Now()
			t.half = began.Add(e.runTime() / 2)
		case n%e.messagesPerLook() == 0:
			t.countSoFar(time.Now(), n)
		}
		r.Messages = n
	}
	r.Octets, r.Seconds = r.Messages*uint64(e.Size), time.Since(began).Seconds()
	t.reportTo(r, r.Messages)
	return nil
}

// maxTrips is how many round trips are kept: those of a second at a microsecond each.
const maxTrips = 1 << 20

func (e *end) pingPong(m messenger, r *report) error {
	b := make([]byte, e.Size)
	trips := make([]time.Duration, 0, maxTrips)
	began := time.Now()
	t := allocCounter{half: began.Add(e.runTime() / 2)}
	for now := began; now.Sub(began) < e.runTime() && len(trips) < maxTrips; {
		t.countSoFar(now, r.Messages)
		if err := m.send(b); err != nil {
			return err
		}
		if _, err := m.receive(b); err != nil {
			return err
		}
		after := time.Now()
		trips = append(trips, after.Sub(now))
		now = after
		r.Messages++
	}
	t.reportTo(r, r.Messages)
	r.Octets, r.Seconds = r.Messages*uint64(e.Size), time.Since(began).Seconds()
	slices.Sort(trips)
	us := func(q int) float64 { return float64(trips[(len(trips)-1)*q/100]) / 1e3 }
	r.P50, r.P99 = us(50), us(99)
	return e.sendLast(m, b)
}

// Encapsulation ports of our stack and of the others.
const (
	serverUDP = 9899
	clientUDP = 9900
)

func (e *end) localUDP() uint16 {
	if e.Server {
		return serverUDP
	}
	return clientUDP
}

func (e *end) remoteUDP() uint16 { return serverUDP + clientUDP - e.localUDP() }

// openLink opens the link of one end.
func (e *end) openLink() (rawio.Link, error) {
	f := cli.LinkFlags{Kind: e.Link, Local: e.Local.String(), UDPPort: int(e.localUDP()), Poll: e.Poll}
	if e.Host.IsValid() {
		f.TunHost = e.Host.String()
	}
	return f.Open(e.Server)
}

// countCalls adds the system calls of a link, where it counts them.
func countCalls(l rawio.Link, r *report) {
	switch l := l.(type) {
	case *raw.Link:
		s := l.Stats()
		r.PacketsOut, r.PacketsIn, r.CallsOut, r.CallsIn = s.TxPackets, s.RxPackets, s.TxCalls, s.RxCalls
	case *udp.Link:
		s := l.Stats()
		r.PacketsOut, r.PacketsIn, r.CallsOut, r.CallsIn = s.TxPackets, s.RxPackets, s.TxCalls, s.RxCalls
	}
}

// parseReports reads what ends print that speak as runEnd does.
func parseReports(s spec, server, client []byte) (f figures, err error) {
	cl, err := lastReport(client)
	if err != nil {
		return f, fmt.Errorf("client: %w", err)
	}
	srv := report{}
	if s.tableKind() != growthRows { // there the client tells all
		if srv, err = lastReport(server); err != nil {
			return f, fmt.Errorf("server: %w", err)
		}
	}
	f.P50, f.P99 = cl.P50, cl.P99
	f.Allocs = [2]*float64{cl.Allocs, srv.Allocs}
	f.Line = cl.Line
	f.Batch = [2]float64{ratioOrZero(cl.PacketsOut, cl.CallsOut), ratioOrZero(srv.PacketsIn, srv.CallsIn)}
	if s.Shape != "" {
		f.Growth, f.GBps = cl.Growth, cl.Bulk
		if cl.Messages == 0 {
			return f, nil
		}
		f.Rate = float64(cl.Messages) / cl.Seconds
		if f.GBps == 0 {
			f.TripCPU = (cl.CPU + srv.CPU) / float64(cl.Messages) * 1e6
		}
		return f, nil
	}
	if s.PingPong {
		f.Octets = 2 * float64(cl.Octets)
		return f, nil
	}
	f.GBps, f.Octets = srv.octetRate(), float64(srv.Octets)
	if s.Both {
		f.GBps += cl.octetRate()
		f.Octets += float64(cl.Octets)
	}
	return f, nil
}

// octetRate is in 10^9 octets a second.
func (r *report) octetRate() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return float64(r.Octets) / r.Seconds / 1e9
}

// ratioOrZero is 0 where there is none.
func ratioOrZero(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// lastReport finds the last line that is a JSON object.
func lastReport(out []byte) (r report, err error) {
	line, err := lastObject(out)
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	return r, err
}

var errNoReport = errors.New("it ended without a report")

// exitWith ends this process with err.
func exitWith(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "scoreboard:", err)
	os.Exit(1)
}
