// Command diameter-end is one end of a measurement of go-diameter's requests and answers, over TCP
// or over this stack. go-diameter is written for github.com/ishidawataru/sctp, which this module's
// go.mod replaces by ours. The scoreboard starts both ends, each with a JSON object that says what
// to do.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fiorix/go-diameter/v4/diam"
	"github.com/fiorix/go-diameter/v4/diam/avp"
	"github.com/fiorix/go-diameter/v4/diam/datatype"

	"github.com/rddp-go/rddp/compat"
)

// end is the JSON object from the scoreboard.
type end struct {
	Server  bool       `json:"server"`
	Link    string     `json:"link"`  // raw or udp; default for a program that asks for neither; empty for TCP
	Shape   string     `json:"shape"` // pipelined, or one request at a time
	Conns   int        `json:"conns"`
	Size    int        `json:"size"` // octets of a request
	Seconds float64    `json:"seconds"`
	Local   netip.Addr `json:"local"`
	Remote  netip.Addr `json:"remote"`
}

// report is the answer to the scoreboard.
type report struct {
	Messages int     `json:"messages"`
	Seconds  float64 `json:"seconds"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	CPU      float64 `json:"cpu_seconds"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		exit(err)
	}
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "diameter-end:", err)
	os.Exit(1)
}

func run(args []string) error {
	e := end{Conns: 1}
	if len(args) != 1 {
		return errors.New("it is started by the scoreboard")
	}
	if err := json.Unmarshal([]byte(args[0]), &e); err != nil {
		return err
	}
	if err := compat.Use(strings.TrimPrefix(e.Link, "default")); err != nil {
		return err
	}
	if e.Server {
		return e.serve()
	}
	return e.ask()
}

// network returns go-diameter's name of the network.
func (e *end) network() string {
	if e.Link == "" {
		return "tcp"
	}
	return "sctp"
}

const (
	port  = 3868
	realm = "scoreboard"
	// rest is the octets of a request besides the name of its host. They are the header, an AVP of
	// a number, the realm with its padding, and the head of the host.
	rest = diam.HeaderLength + 12 + (8 + len(realm) + 2) + 8
)

// fill adds what a message says besides a number. go-diameter's NewAVP fails only for AVP names.
func (e *end) fill(m *diam.Message) *diam.Message {
	m.NewAVP(avp.OriginHost, avp.Mbit, 0, datatype.DiameterIdentity(strings.Repeat("h", e.Size-rest)))
	m.NewAVP(avp.OriginRealm, avp.Mbit, 0, datatype.DiameterIdentity(realm))
	return m
}

// used returns the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serve answers requests. The client begins with one request on each connection, which does not
// count. It ends each connection by a Disconnect-Peer-Request.
func (e *end) serve() error {
	var requests, ends atomic.Int64
	var before time.Duration
	answer := func(conn diam.Conn, m *diam.Message) {
		if _, err := e.fill(m.Answer(diam.Success)).WriteTo(conn); err != nil {
			exit(err)
		}
	}
	mux := diam.NewServeMux()
	mux.HandleFunc("DWR", func(conn diam.Conn, m *diam.Message) {
		if requests.Add(1) == int64(e.Conns) {
			before = used()
		}
		answer(conn, m)
	})
	mux.HandleFunc("DPR", func(conn diam.Conn, m *diam.Message) {
		if ends.Add(1) == 1 {
			say(report{CPU: (used() - before).Seconds()})
		}
		answer(conn, m)
	})
	l, err := diam.MultistreamListen(e.network(), netip.AddrPortFrom(e.Local, port).String())
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return diam.Serve(l, mux)
}

func say(r report) {
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		exit(err)
	}
}

// window is how many requests are outstanding in the shape of that name.
const window = 32

// asker is one connection of the client. Handlers run in the goroutine that reads it.
type asker struct {
	conn   diam.Conn
	places chan struct{} // one for each request outstanding
	n      uint32        // requests sent
	began  time.Time
	sent   [window]atomic.Int64 // ns since began
	took   []time.Duration      // the reader's, except between two runs
	over   chan struct{}        // closed by the answer to the last request
}

// most is how many round trips of a connection are kept.
const most = 1 << 20

func (e *end) dial() (*asker, error) {
	outstanding := 1
	if e.Shape == "pipelined" {
		outstanding = window
	}
	a := &asker{places: make(chan struct{}, outstanding), began: time.Now(), over: make(chan struct{}),
		took: make([]time.Duration, 0, most/e.Conns)}
	mux := diam.NewServeMux()
	mux.HandleFunc("DWA", func(_ diam.Conn, m *diam.Message) {
		d := time.Since(a.began) - time.Duration(a.sent[m.Header.HopByHopID%window].Load())
		a.took = append(a.took, d)
		<-a.places
	})
	mux.HandleFunc("DPA", func(diam.Conn, *diam.Message) { close(a.over) })
	go func() { exit((<-mux.ErrorReports()).Error) }()
	var err error
	a.conn, err = diam.DialNetwork(e.network(), netip.AddrPortFrom(e.Remote, port).String(), mux, nil)
	return a, err
}

// request sends one request.
func (a *asker) request(e *end, command uint32) error {
	a.n++
	m := e.fill(diam.NewMessage(command, diam.RequestFlag, 0, a.n, a.n, nil))
	m.NewAVP(avp.OriginStateID, avp.Mbit, 0, datatype.Unsigned32(1))
	a.sent[a.n%window].Store(int64(time.Since(a.began)))
	_, err := m.WriteTo(a.conn)
	return err
}

// ask makes round trips until a time, at least one, and waits for the last.
func (a *asker) ask(e *end, until time.Time) error {
	a.took = a.took[:0]
	for more := true; more; more = time.Now().Before(until) {
		a.places <- struct{}{}
		if err := a.request(e, diam.DeviceWatchdog); err != nil {
			return err
		}
	}
	for range cap(a.places) {
		a.places <- struct{}{}
	}
	for range cap(a.places) {
		<-a.places
	}
	return nil
}

// ask runs the client.
func (e *end) ask() error {
	var list []*asker
	for range e.Conns {
		a, err := e.dial()
		if err != nil {
			return err
		}
		if err := a.ask(e, time.Time{}); err != nil {
			return err
		}
		list = append(list, a)
	}
	errs := make([]error, len(list))
	before, began := used(), time.Now()
	until := began.Add(time.Duration(e.Seconds * float64(time.Second)))
	var wg sync.WaitGroup
	for i, a := range list {
		wg.Go(func() { errs[i] = a.ask(e, until) })
	}
	wg.Wait()
	r := report{Seconds: time.Since(began).Seconds(), CPU: (used() - before).Seconds()}
	var all []time.Duration
	for _, a := range list {
		all = append(all, a.took...)
		errs = append(errs, a.request(e, diam.DisconnectPeer))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, a := range list {
		<-a.over
	}
	slices.Sort(all)
	us := func(q int) float64 { return float64(all[(len(all)-1)*q/100]) / 1e3 }
	r.Messages, r.P50, r.P99 = len(all), us(50), us(99)
	say(r)
	return nil
}
