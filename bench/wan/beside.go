package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rddp-go/rddp/bench/wan/relay"
	"github.com/rddp-go/rddp/bench/wan/simulated"
)

// Streams of a run with short messages beside bulk. The server sends on both.
const (
	bulkStream = iota
	shortStream
	besideStreams
)

const (
	shortOctets = 100
	shortEvery  = 10 * time.Millisecond
	bulkMessage = 16 << 10
	// besideStartup is the time of a run in which nothing is measured.
	besideStartup = 5 * time.Second
)

// streamsConn is a connection with several streams of messages.
type streamsConn interface {
	writeTo(stream int, b []byte) error
	// readAny returns the next message, of whichever stream.
	readAny(b []byte) (stream, n int, err error)
}

// streamsStack is a stack that has them.
type streamsStack interface {
	listenStreams(flow int) (accept func() (streamsConn, error), err error)
	dialStreams(flow int) (streamsConn, error)
}

// besideReport is what the client of such a run saw.
type besideReport struct {
	OneWay []time.Duration // of short messages, from the call that writes to the one that reads
	Octets int             // of bulk
	Time   time.Duration   // that was measured

	// Of data channels alone:
	Longest time.Duration // without any bulk
	All     int           // octets of bulk, from the beginning
	CPU     time.Duration // that both ends took
}

// runBesideEnd plays an end of a run with short messages beside bulk.
func (e *end) runBesideEnd(s stack) error {
	ss, ok := s.(streamsStack)
	if !ok {
		return fmt.Errorf("%s has no streams of messages", e.Stack)
	}
	if e.Server {
		return e.serveBeside(ss)
	}
	c, err := ss.dialStreams(e.From)
	if err != nil {
		return err
	}
	r, err := e.receiveBeside(c)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return err
	}
	<-stdinClosed()
	return nil
}

// serveBeside sends to the client, until standard input ends.
func (e *end) serveBeside(s streamsStack) error {
	accept, err := s.listenStreams(e.From)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	served := make(chan error, 1)
	go func() {
		c, err := accept()
		if err == nil {
			err = sendBeside(c)
		}
		served <- err
	}()
	select {
	case err := <-served:
		return err
	case <-stdinClosed():
	}
	return json.NewEncoder(os.Stdout).Encode(&serverReport{Resent: -1})
}

// sendBeside sends bulk, and beside it short messages that say when they were written, until the
// client ends.
func sendBeside(c streamsConn) error {
	failed := make(chan error, 2)
	go func() {
		b := make([]byte, bulkMessage)
		for {
			if err := c.writeTo(bulkStream, b); err != nil {
				failed <- err
				return
			}
		}
	}()
	go func() {
		b, next := make([]byte, shortOctets), time.Now()
		for {
			binary.BigEndian.PutUint64(b, uint64(relay.Now()))
			if err := c.writeTo(shortStream, b); err != nil {
				failed <- err
				return
			}
			next = next.Add(shortEvery)
			time.Sleep(time.Until(next))
		}
	}()
	return <-failed
}

// receiveBeside reads all of it until the time is over.
func (e *end) receiveBeside(c streamsConn) (*besideReport, error) {
	r := &besideReport{Time: e.Time - besideStartup}
	var mu sync.Mutex // of r
	began, failed := relay.Now(), make(chan error, 1)
	go func() {
		b := make([]byte, longestAnswer)
		for {
			stream, n, err := c.readAny(b)
			if err != nil {
				failed <- err
				return
			}
			now := relay.Now()
			mu.Lock()
			switch {
			case time.Duration(now-began) < besideStartup:
			case stream == bulkStream:
				r.Octets += n
			case n == shortOctets:
				r.OneWay = append(r.OneWay, time.Duration(now-int64(binary.BigEndian.Uint64(b))))
			}
			mu.Unlock()
		}
	}()
	select {
	case err := <-failed:
		return nil, err
	case <-time.After(e.Time):
	}
	mu.Lock()
	defer mu.Unlock()
	return &besideReport{OneWay: slices.Clone(r.OneWay), Octets: r.Octets, Time: r.Time}, nil
}

// measureBeside runs a stack over a cell once, with short messages beside bulk.
func measureBeside(ctx context.Context, e *end, c *simulated.Cell, seed uint64) (*besideReport, error) {
	r, err := newRelay(c, seed, 1, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, e.Time+patience)
	defer cancel()
	r.Start()
	e.From, e.Flows, e.Beside, e.Startup = 1, 1, true, besideStartup
	var rep besideReport
	var sr serverReport
	err = runEndsTo(ctx, r, e, &rep, &sr)
	if err = errors.Join(err, r.Stop()); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", e.Stack, c, err)
	}
	rep.CPU += sr.CPU
	if err := checkRelay(r, c.RTT); err != nil {
		return nil, err
	}
	if len(rep.OneWay) == 0 {
		return nil, fmt.Errorf("%s, %s: no short message has come", e.Stack, c)
	}
	return &rep, nil
}

// runBeside measures short messages beside bulk: stacks in turn over each road, round by round.
func (o *options) runBeside(ctx context.Context, cells []simulated.Cell, out io.Writer) (failed bool, err error) {
	t := table{{"RTT, loss", "stack", "one way, ms: p50", "p99", "max", "messages", "bulk, Mbit/s"}}
	for i := range cells {
		c := &cells[i]
		if c.Size != 0 {
			continue
		}
		for round := range o.rounds {
			for _, stack := range o.stacks {
				if s, err := stackOf(&end{Stack: stack}); err != nil {
					return true, err
				} else if _, ok := s.(streamsStack); !ok {
					continue
				}
				r, err := measureBeside(ctx, &end{Stack: stack, Time: besideStartup + o.bulk}, c, o.seed+uint64(round))
				if ctx.Err() != nil {
					return true, ctx.Err()
				}
				if err != nil {
					failed = true
					t = append(t, []string{roadName(c), stack, err.Error(), "", "", "", ""})
					continue
				}
				slices.Sort(r.OneWay)
				n := len(r.OneWay)
				t = append(t, []string{roadName(c), stack, threeDigits(milliseconds(r.OneWay[n/2])),
					threeDigits(milliseconds(r.OneWay[n*99/100])), threeDigits(milliseconds(r.OneWay[n-1])), fmt.Sprint(n),
					threeDigits(float64(r.Octets) * 8 / r.Time.Seconds() / 1e6)})
			}
		}
	}
	t.write(out)
	return failed, nil
}
