package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/bench/wan/relay"
	"github.com/rddp-go/rddp/bench/wan/simulated"
)

// end is what one end of a run has to do: a process of its own for each.
type end struct {
	Stack   string
	Server  bool
	From    int // number of the first flow
	Flows   int
	Size    int           // octets of an answer; 0: in bulk
	Count   int           // transfers of a flow, the first aside: as many for each, so that slow ones weigh as much
	Time    time.Duration // in bulk how long, else when to begin no more transfers
	Pause   time.Duration // between two transfers of a flow
	ECN     bool
	Beside  bool  // short messages beside bulk, on two streams
	Started int64 // when the run may begin, ns of CLOCK_MONOTONIC

	// For a program of another module:
	Programs      string     // where it lies
	Local, Remote netip.Addr // of the first flow
	Startup       time.Duration
}

// endCommand makes this program one end of a run.
const endCommand = "end"

// transfer is a request and its answer.
type transfer struct {
	At   int64         `json:"at"` // ns of CLOCK_MONOTONIC
	Took time.Duration `json:"took"`
}

// binTime is how finely bulk is told.
const binTime = simulated.BinTime

// flowReport is what the client saw of a flow.
type flowReport struct {
	First transfer   `json:"first"` // with the windows of a new connection
	Rest  []transfer `json:"rest,omitempty"`
	Cut   int        `json:"cut,omitempty"`  // transfers that the end of the run has cut off
	Bins  []int      `json:"bins,omitempty"` // octets in each binTime
}

// clientReport and serverReport are the last line of each end.
type clientReport struct {
	Flows []flowReport `json:"flows"`
}

type serverReport struct {
	Resent int64  `json:"resent"` // packets or chunks sent again; -1: the stack does not say
	Octets int64  `json:"octets"` // of user data given to the stack
	About  string `json:"about,omitempty"`

	CPU time.Duration `json:"cpu,omitempty"` // of data channels: what the process took of the processors
}

// conn is one flow's connection, of either end. A message of a stack without messages is its
// octets.
type conn interface {
	write(b []byte) error
	read(b []byte) (int, error)
	resent() int64
}

// runEnd plays the end that arg describes: it says "ready" or reports, and waits until standard
// input ends.
func runEnd(arg string) error {
	var e end
	if err := json.Unmarshal([]byte(arg), &e); err != nil {
		return err
	}
	s, err := stackOf(&e)
	if err != nil {
		return err
	}
	switch {
	case e.Beside:
		return e.runBesideEnd(s)
	case e.Server:
		return e.runServer(s)
	}
	return e.runClient(s)
}

// stdinClosed is closed when standard input has ended.
func stdinClosed() <-chan struct{} {
	c := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(c)
	}()
	return c
}

const requestLen = 16

// chunk is how much is written at a time in bulk.
const chunk = 64 << 10

// longestAnswer is what buffers are made for.
const longestAnswer = 1 << 20

// runServer answers requests: each says how many octets it wants, or 0 for as many as there is time
// for.
func (e *end) runServer(s stack) error {
	var mu sync.Mutex
	var conns []conn
	var octets atomic.Int64
	for i := e.From; i < e.From+e.Flows; i++ {
		accept, err := s.listen(i)
		if err != nil {
			return fmt.Errorf("flow %d: %w", i, err)
		}
		go func() {
			c, err := accept()
			if err != nil {
				fmt.Fprintf(os.Stderr, "flow %d: %v\n", i, err)
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			answerRequest(c, &octets) // ends with the client
		}()
	}
	fmt.Println("ready")
	<-stdinClosed()
	r := serverReport{Octets: octets.Load()}
	mu.Lock()
	defer mu.Unlock()
	for _, c := range conns {
		if n := c.resent(); n < 0 || r.Resent < 0 {
			r.Resent = -1
		} else {
			r.Resent += n
		}
	}
	r.About = s.about()
	return json.NewEncoder(os.Stdout).Encode(&r)
}

func answerRequest(c conn, octets *atomic.Int64) error {
	b, req := make([]byte, longestAnswer), make([]byte, requestLen)
	for {
		for have := 0; have < requestLen; {
			n, err := c.read(req[have:])
			if err != nil {
				return err
			}
			have += n
		}
		size := int(binary.BigEndian.Uint64(req))
		if size > longestAnswer {
			return errors.New("a request for too much")
		}
		if size > 0 {
			octets.Add(int64(size))
			if err := c.write(b[:size]); err != nil {
				return err
			}
			continue
		}
		for { // the client ends it
			if err := c.write(b[:chunk]); err != nil {
				return err
			}
			octets.Add(chunk)
		}
	}
}

func (e *end) runClient(s stack) error {
	reports := make([]flowReport, e.Flows)
	failed := make(chan error, e.Flows)
	for i := range reports {
		go func() { failed <- e.runFlow(s, e.From+i, &reports[i]) }()
	}
	stop := stdinClosed()
	for range reports {
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
		case <-stop:
			return errors.New("stopped")
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(&clientReport{reports}); err != nil {
		return err
	}
	<-stop
	return nil
}

// runFlow makes transfers over a connection of its own. It ends when there are enough, or the time
// is over; what is under way then is cut off.
func (e *end) runFlow(s stack, i int, r *flowReport) error {
	c, err := s.dial(i)
	if err != nil {
		return fmt.Errorf("flow %d: %w", i, err)
	}
	over := make(chan error, 1)
	deadline := time.After(e.Time)
	var mu sync.Mutex // of r, which is copied when the time is over
	var out flowReport
	go func() {
		if e.Size == 0 {
			over <- e.runBulk(c, &mu, &out)
		} else {
			over <- e.runTransfers(c, &mu, &out)
		}
	}()
	select {
	case err = <-over:
	case <-deadline:
		if e.Size > 0 {
			out.Cut = 1
		}
	}
	mu.Lock()
	defer mu.Unlock()
	*r = out
	r.Rest, r.Bins = append([]transfer(nil), out.Rest...), append([]int(nil), out.Bins...)
	return err
}

func (e *end) runTransfers(c conn, mu *sync.Mutex, out *flowReport) error {
	b, req := make([]byte, longestAnswer), make([]byte, requestLen)
	binary.BigEndian.PutUint64(req, uint64(e.Size))
	for n := range 1 + e.Count {
		began := relay.Now()
		if err := c.write(req); err != nil {
			return err
		}
		for have := 0; have < e.Size; {
			n, err := c.read(b)
			if err != nil {
				return err
			}
			have += n
		}
		t := transfer{began, time.Duration(relay.Now() - began)}
		mu.Lock()
		if n == 0 {
			out.First = t
		} else {
			out.Rest = append(out.Rest, t)
		}
		mu.Unlock()
		if e.Pause > 0 {
			time.Sleep(e.Pause)
		}
	}
	return nil
}

func (e *end) runBulk(c conn, mu *sync.Mutex, out *flowReport) error {
	b, req := make([]byte, longestAnswer), make([]byte, requestLen)
	began := relay.Now()
	if err := c.write(req); err != nil {
		return err
	}
	mu.Lock()
	out.First.At = began
	mu.Unlock()
	for {
		n, err := c.read(b)
		if err != nil {
			return err
		}
		bin := int((relay.Now() - began) / int64(binTime))
		mu.Lock()
		for len(out.Bins) <= bin {
			out.Bins = append(out.Bins, 0)
		}
		out.Bins[bin] += n
		mu.Unlock()
	}
}
