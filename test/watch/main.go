// Command watch measures what it costs the traffic of a process that somebody looks at it. Two
// Transports in one process have many associations with each other; on a few of them messages go to
// and fro. It goes by turns, each as long as the other: with nobody looking, and with a Snapshot of
// both every so often. It prints the 50th and 99th percentile of the round trips of each pair of
// turns, and the median and quartiles of the ratios, and the percentiles of all turns together.
// metrics.Status looks every five seconds when a browser shows its page.
package main

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/rddp-go/rddp/internal/test/loadgen"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
)

const (
	port = 7
	size = 100 // octets of a message and of its answer
)

func main() {
	assocs := flag.Int("assocs", 10_000, "associations")
	busy := flag.Int("busy", 16, "of them with a message under way at a time")
	pause := flag.Duration("pause", 200*time.Microsecond, "between an answer and the next message")
	turn := flag.Duration("turn", 5*time.Second, "length of a turn")
	every := flag.Duration("every", 5*time.Second, "a look at both ends every so often")
	pairs := flag.Int("pairs", 20, "pairs of turns")
	flag.Parse()
	w, err := setUpWorld(*assocs, *busy, *pause)
	if err != nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		os.Exit(1)
	}
	defer w.closeBoth()
	w.runTurn(*turn, 0) // what comes first is slower
	fmt.Printf("%d associations, %d of them busy; two looks every %v; %d processors\n", *assocs, *busy, *every,
		runtime.GOMAXPROCS(0))
	var at50, at99 []float64
	var all, allWith result
	for i := range *pairs {
		var with, without result
		if i%2 == 0 {
			without, with = w.runTurn(*turn, 0), w.runTurn(*turn, *every)
		} else {
			with, without = w.runTurn(*turn, *every), w.runTurn(*turn, 0)
		}
		all.trips, allWith.trips = append(all.trips, without.trips...), append(allWith.trips, with.trips...)
		at50 = append(at50, ratioOf(with.percentile(50), without.percentile(50)))
		at99 = append(at99, ratioOf(with.percentile(99), without.percentile(99)))
		fmt.Printf("%2d: p50 %v, looked at %v; p99 %v, looked at %v; %d and %d round trips; a look takes %v\n", i+1,
			without.percentile(50), with.percentile(50), without.percentile(99), with.percentile(99),
			len(without.trips), len(with.trips), with.look)
	}
	for _, r := range []struct {
		what string
		of   []float64
	}{{"p50", at50}, {"p99", at99}} {
		slices.Sort(r.of)
		n := len(r.of)
		fmt.Printf("%s looked at / not, by pairs: median %.3f, quartiles %.3f and %.3f\n", r.what, r.of[n/2],
			r.of[n/4], r.of[n*3/4])
	}
	slices.Sort(all.trips)
	slices.Sort(allWith.trips)
	fmt.Printf("all turns together: p50 %v, looked at %v; p99 %v, looked at %v (%.3f)\n", all.percentile(50),
		allWith.percentile(50),
		all.percentile(99), allWith.percentile(99), ratioOf(allWith.percentile(99), all.percentile(99)))
}

func ratioOf(a, b time.Duration) float64 { return float64(a) / float64(b) }

// world is both ends.
type world struct {
	a, b  *sctp.Transport
	trips chan []time.Duration // of one busy association, at the end of a turn
	on    []chan time.Time     // begins a turn that ends then
}

// result is a turn.
type result struct {
	trips []time.Duration // sorted
	look  time.Duration   // how long one took, the longest
}

func (r *result) percentile(percent int) time.Duration {
	return r.trips[len(r.trips)*percent/100].Round(100 * time.Nanosecond)
}

// setUpWorld sets everything up.
func setUpWorld(assocs, busy int, pause time.Duration) (*world, error) {
	la, lb, err := mem.Pair(mem.Options{MTU: 1500})
	if err != nil {
		return nil, err
	}
	w := &world{trips: make(chan []time.Duration)}
	if w.a, err = sctp.NewTransport(la, loadgen.Limits()); err != nil {
		return nil, err
	}
	if w.b, err = sctp.NewTransport(lb, loadgen.Limits()); err != nil {
		return nil, err
	}
	server := netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), port)
	conns, err := loadgen.Connect(w.a, w.b, server, &sctp.Config{}, assocs, answerAll)
	if err != nil {
		return nil, err
	}
	for i := range busy {
		on := make(chan time.Time)
		w.on = append(w.on, on)
		go w.askAll(conns[i*(assocs/busy)], on, pause)
	}
	return w, nil
}

func (w *world) closeBoth() {
	w.a.Close()
	w.b.Close()
}

// answerAll sends back what comes.
func answerAll(c *sctp.Conn) {
	buf := make([]byte, 2*size)
	for {
		n, info, err := c.ReadMsg(buf)
		if err != nil {
			return
		}
		if _, err := c.WriteMsg(buf[:n], sctp.SendInfo{Stream: info.Stream}); err != nil {
			return
		}
	}
}

// askAll has messages answered while a turn lasts, and tells how long each took.
func (w *world) askAll(c *sctp.Conn, on chan time.Time, pause time.Duration) {
	buf := make([]byte, 2*size)
	for end := range on {
		var trips []time.Duration
		for began := time.Now(); began.Before(end); began = time.Now() {
			_, err := c.WriteMsg(buf[:size], sctp.SendInfo{})
			if err == nil {
				_, _, err = c.ReadMsg(buf)
			}
			if err != nil {
				panic(err) // the link is memory: nothing ends an association
			}
			trips = append(trips, time.Since(began))
			time.Sleep(pause)
		}
		w.trips <- trips
	}
}

// runTurn is one turn, with a look every so often if that is not 0.
func (w *world) runTurn(length, every time.Duration) (r result) {
	runtime.GC()
	begin := time.Now()
	end := begin.Add(length)
	for _, on := range w.on {
		on <- end
	}
	if every > 0 {
		for at := begin.Add(every / 2); at.Before(end); at = at.Add(every) {
			time.Sleep(time.Until(at))
			t := time.Now()
			w.a.Snapshot()
			w.b.Snapshot()
			r.look = max(r.look, time.Since(t)/2)
		}
	}
	for range w.on {
		r.trips = append(r.trips, <-w.trips...)
	}
	slices.Sort(r.trips)
	return r
}
