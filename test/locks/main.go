// Command locks measures which locks goroutines wait for when many associations share a link. It is
// the mutex profile of a process with two Transports, over udp on this machine.
//
// Messages go to and fro on many associations. Each association is read by a goroutine that hands
// messages to a worker. Others are set up and end beside them. The command prints each lock with
// its share of all waiting, and of the time of the processors. It fails if a lock has more than
// -most of that time, unless it is an association's own.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/test/loadgen"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp"
)

const (
	port = 7
	size = 100 // octets of a message and of its answer
)

func main() {
	assocs := flag.Int("assocs", 256, "associations with a message under way")
	rate := flag.Int("rate", 1000, "set-ups and ends a second beside them")
	duration := flag.Duration("duration", 5*time.Second, "how long")
	most := flag.Float64("most", 1, "share of the processors' time that a lock may have which associations "+
		"share, in percent")
	flag.Parse()
	if err := runLoad(*assocs, *rate, *duration, *most); err != nil {
		fmt.Fprintln(os.Stderr, "locks:", err)
		os.Exit(1)
	}
}

func runLoad(assocs, rate int, duration time.Duration, most float64) error {
	w, err := setUpWorld(assocs)
	if err != nil {
		return err
	}
	defer w.closeBoth()
	time.Sleep(time.Second) // the search for the MTU of the paths is over
	runtime.SetMutexProfileFraction(1)
	before, trips := lockWaits(), w.trips.Load()
	began := time.Now()
	done, err := w.churnAssocs(rate, began.Add(duration))
	if err != nil {
		return err
	}
	took := time.Since(began)
	after := lockWaits()
	fmt.Printf("%d associations, %.0f round trips a second, %.0f set-ups and ends a second, %d processors, %v\n",
		assocs,
		float64(w.trips.Load()-trips)/took.Seconds(), float64(done)/took.Seconds(), runtime.GOMAXPROCS(0),
		took.Round(time.Millisecond))
	return printWaits(before, after, took, most)
}

// printWaits prints what was waited, the longest first.
func printWaits(before, after map[string]time.Duration, took time.Duration, most float64) error {
	var all time.Duration
	var locks []string
	for l := range after {
		if after[l] -= before[l]; after[l] > 0 {
			all += after[l]
			locks = append(locks, l)
		}
	}
	slices.SortFunc(locks, func(a, b string) int { return int(after[b] - after[a]) })
	percent := func(d, of time.Duration) float64 { return 100 * float64(d) / float64(of) }
	processors := took * time.Duration(runtime.GOMAXPROCS(0))
	fmt.Printf("waited %v in all, %.2f %% of the processors' time\n", all.Round(time.Microsecond),
		percent(all, processors))
	var bad []string
	for _, l := range locks {
		share := percent(after[l], processors)
		fmt.Printf("%7.2f %% %9.4f %%  %s\n", percent(after[l], all), share, l)
		if share > most && !strings.HasPrefix(l, "Conn ") {
			bad = append(bad, l)
		}
	}
	if bad != nil {
		return fmt.Errorf("more than %v %% of the processors' time: %s", most, strings.Join(bad, ", "))
	}
	return nil
}

// lockWaits is how long goroutines have waited for each lock so far. A lock is told by the type
// whose method unlocks it, and what that calls it.
func lockWaits() map[string]time.Duration {
	var list []runtime.BlockProfileRecord
	for n, ok := runtime.MutexProfile(nil); !ok; {
		list = make([]runtime.BlockProfileRecord, n+100)
		n, ok = runtime.MutexProfile(list)
		list = list[:min(n, len(list))]
	}
	waited := map[string]time.Duration{}
	for _, r := range list {
		waited[lockOf(r.Stack())] += time.Duration(float64(r.Cycles) / perNanosecond())
	}
	return waited
}

// perNanosecond is how many cycles the runtime counts in one, which only the text form of the
// profile tells.
var perNanosecond = sync.OnceValue(func() float64 {
	var b bytes.Buffer
	if err := pprof.Lookup("mutex").WriteTo(&b, 1); err != nil {
		panic(err)
	}
	_, rest, _ := strings.Cut(b.String(), "cycles/second=")
	var a float64
	if _, err := fmt.Sscan(rest, &a); err != nil {
		panic(err)
	}
	return a / 1e9
})

// lockOf names the lock of a stack.
func lockOf(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "sync.") && !strings.HasPrefix(f.Function, "internal/sync.") {
			return typeOfMethod(f.Function) + lockIn(f.File, f.Line)
		}
		if !more {
			return "?"
		}
	}
}

// typeOfMethod is the type of a method, and a space.
func typeOfMethod(function string) string {
	if _, rest, ok := strings.Cut(function, ".(*"); ok {
		name, _, _ := strings.Cut(rest, ")")
		return name + " "
	}
	return function + " "
}

// lockIn is what is unlocked in a line of a source, or last before it: a deferred call is told by
// the end of its function.
func lockIn(path string, line int) (lock string) {
	lock = fmt.Sprintf("%s:%d", path[strings.LastIndexByte(path, '/')+1:], line)
	f, err := os.Open(path)
	if err != nil {
		return lock
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for n := 1; n <= line && s.Scan(); n++ {
		for _, word := range strings.Fields(s.Text()) {
			if at := strings.Index(word, "nlock()"); at > 0 {
				word = strings.TrimSuffix(strings.TrimSuffix(word[:at-1], "R"), ".")
				lock = word[strings.IndexByte(word, '.')+1:]
			}
		}
	}
	return lock
}

// world is both ends.
type world struct {
	a, b   *sctp.Transport
	server netip.AddrPort
	cfg    *sctp.Config
	trips  atomic.Int64
}

func setUpWorld(assocs int) (*world, error) {
	w := &world{}
	var at [2]netip.Addr
	for i, t := range []**sctp.Transport{&w.a, &w.b} {
		at[i] = netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + i)})
		l, err := udp.Open(udp.Config{Local: at[i], Port: udp.AnyPort})
		if err != nil {
			return nil, err
		}
		if *t, err = sctp.NewTransport(l, loadgen.Limits()); err != nil {
			return nil, err
		}
		w.cfg = &sctp.Config{EncapPort: l.Port()} // the server's in the end
	}
	w.server = netip.AddrPortFrom(at[1], port)
	conns, err := loadgen.Connect(w.a, w.b, w.server, w.cfg, assocs, func(c *sctp.Conn) { handToWorkers(c, func() {}) })
	if err != nil {
		return nil, err
	}
	for _, c := range conns {
		go handToWorkers(c, func() { w.trips.Add(1) })
		if _, err := c.WriteMsg(make([]byte, size), sctp.SendInfo{}); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) dialServer() (*sctp.Conn, error) {
	return w.a.Dial(context.Background(), w.server, w.cfg)
}

func (w *world) closeBoth() {
	w.a.Close()
	w.b.Close()
}

// handToWorkers reads messages and hands each to a worker, who sends it back.
func handToWorkers(c *sctp.Conn, count func()) {
	work := make(chan []byte, 1)
	defer close(work)
	go func() {
		for b := range work {
			if _, err := c.WriteMsg(b, sctp.SendInfo{}); err != nil {
				return
			}
			count()
		}
	}()
	var bufs [4][size]byte
	for i := 0; ; i++ {
		b := bufs[i%len(bufs)][:]
		n, _, err := c.ReadMsg(b)
		if err != nil {
			return
		}
		work <- b[:n]
	}
}

// churnAssocs sets associations up and ends them, at that rate, until then.
func (w *world) churnAssocs(rate int, until time.Time) (done int64, err error) {
	const hands = 16
	var count atomic.Int64
	errs := make([]error, hands)
	var wg sync.WaitGroup
	for h := range hands {
		wg.Go(func() {
			every := hands * time.Second / time.Duration(rate)
			for next := time.Now(); next.Before(until); next = next.Add(every) {
				time.Sleep(time.Until(next))
				c, err := w.dialServer()
				if err != nil {
					errs[h] = err
					return
				}
				if errs[h] = c.Close(); errs[h] != nil {
					return
				}
				count.Add(1)
			}
		})
	}
	wg.Wait()
	return count.Load(), errors.Join(errs...)
}
