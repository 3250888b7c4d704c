// Command wan measures this project's stack beside TCP, QUIC and pion/sctp over long roads: what a
// request and its answer take, and what goes through in bulk, where packets are delayed and lost.
//
//	wan [flags]
//
// It runs as root on Linux, in network namespaces of its own that a relay joins (package relay);
// --virtual runs this project's stack alone, in virtual time and anywhere. In each round it runs
// every stack once over the same cell, with the same losses. It exits 0 when everything was
// measured, 1 when something failed or did not count, or a ratio of --short was exceeded, 2 on a
// mistake.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/bench/machine"
	"github.com/rddp-go/rddp/bench/wan/relay"
	"github.com/rddp-go/rddp/bench/wan/simulated"
)

type options struct {
	stacks    []string
	rtts      []string
	losses    []string
	sizes     []string
	transfers int
	rounds    int
	tries     int
	bulk      time.Duration
	time      time.Duration
	seed      uint64
	short     bool
	virtual   bool
	tools     string
	json      string
	book      string
	against   string
	share     []string
	beside    bool
	webrtc    string
	docs      string
	plots     string
	cell      simulated.Cell
	mbits     float64
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == endCommand {
		if err := runEnd(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	o := parseFlags()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	failed, err := o.main(ctx)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "wan:", err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

func parseFlags() *options {
	o := &options{}
	f := pflag.CommandLine
	f.SortFlags = false
	f.StringSliceVar(&o.stacks, "stacks", stackNames, "what to measure, of "+strings.Join(stackNames, ", "))
	f.StringSliceVar(&o.rtts, "rtt", mapTexts(simulated.RTTs, func(d time.Duration) string { return d.String() }),
		"round trips")
	f.StringSliceVar(&o.losses, "loss",
		mapTexts(simulated.Losses, func(l float64) string { return strconv.FormatFloat(l*100, 'g', -1, 64) }),
		"losses in percent of packets")
	f.StringSliceVar(&o.sizes, "size", mapTexts(simulated.Sizes, simulated.SizeName),
		"answers in octets, with K or M, or bulk")
	f.IntVarP(&o.transfers, "transfers", "n", 0,
		"transfers a cell and stack (default 2000, 200 above 100K; --virtual 10000)")
	f.IntVar(&o.rounds, "rounds", 3, "rounds that the transfers are spread over; as many runs of bulk")
	f.IntVar(&o.tries, "tries", 3, "how often a run is made until the road was in time and it counts")
	f.DurationVar(&o.bulk, "bulk", 30*time.Second, "a run in bulk")
	f.DurationVar(&o.time, "time", 10*time.Minute, "a run of transfers takes no longer")
	f.Uint64Var(&o.seed, "seed", 1, "what is lost")
	f.BoolVar(&o.short, "short", false, "half a minute on a quiet machine: few cells, wide margins")
	f.BoolVar(&o.virtual, "virtual", false, "in virtual time, without peers")
	f.StringVar(&o.tools, "tools", "", "only this: what ddpping and ddpbench of this `directory` print of a "+
		"road of known delay, rate and loss")
	f.StringVar(&o.book, "book", "", "keep what is measured in this `file`, and do not measure again what is in it")
	f.StringVar(&o.json, "json", "", "put all figures into this `file`")
	f.StringVar(&o.against, "against", "",
		"with --virtual, fail where it is worse than in this `file`, which --json wrote")
	f.StringSliceVar(&o.share, "share", nil,
		"only this: stacks side by side in bulk through one queue, as udp-cubic+tcp-cubic,udp-cubic+udp-cubic")
	f.BoolVar(&o.beside, "beside", false,
		"only this: messages of 100 octets each 10 ms beside bulk on another stream, of the stacks that have streams")
	f.StringVar(&o.webrtc, "webrtc", "", "only this: the same of data channels of pion/webrtc over pion/sctp and over "+
		"ours, with programs of this `directory`, and by how much ours is better")
	f.StringVar(&o.docs, "write-docs", "", "put the tables into this `file`")
	f.StringVar(&o.plots, "plots", "", "put plots into this `directory`")
	c := &o.cell
	f.Float64Var(&o.mbits, "rate", 100, "Mbit/s, each way")
	f.Float64Var(&c.Hold, "queue", 1, "what a queue holds, in round trips at the rate")
	f.DurationVar(&c.Pause, "pause", 0, "between two transfers of a flow")
	f.BoolVar(&c.BothWays, "both-ways", false, "what happens to packets happens to those from the client too")
	f.DurationVar(&c.Jitter, "jitter", 0, "up to so much more delay, without reordering")
	f.Float64Var(&c.Burst, "burst", 0, "losses come in runs of this mean length, their share being the same")
	f.Float64Var(&c.Reorder, "reorder", 0, "share of packets that are overtaken")
	f.DurationVar(&c.ReorderDelay, "reorder-delay", 0, "for so long")
	f.Float64Var(&c.Duplicate, "duplicate", 0, "share of packets that come twice")
	f.IntVar(&c.MarkQueue, "mark-queue", 0, "octets in the queue above which packets get a congestion mark (0: none)")
	f.Parse(os.Args[1:])
	return o
}

func mapTexts[T any](list []T, text func(T) string) (t []string) {
	for _, v := range list {
		t = append(t, text(v))
	}
	return t
}

// chosenCells are those that the flags name.
func (o *options) chosenCells() (list []simulated.Cell, err error) {
	for _, s := range o.sizes {
		size, err := simulated.ParseSize(s)
		if err != nil {
			return nil, err
		}
		for _, r := range o.rtts {
			rtt, err := time.ParseDuration(r)
			if err != nil {
				return nil, err
			}
			for _, l := range o.losses {
				loss, err := strconv.ParseFloat(l, 64)
				if err != nil || loss < 0 || loss >= 100 {
					return nil, fmt.Errorf("%q is no loss in percent", l)
				}
				c := o.cell
				c.RTT, c.Loss, c.Size, c.Rate = rtt, loss/100, size, int64(o.mbits*1e6/8)
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// placed says that this process has its place already.
const placed = "WAN_PLACED"

// goFirst puts all threads of this process, and the ends that it starts, before those of others. So
// other work of the machine is not measured. It begins anew from a thread that has that place, and
// keeps off the relay's processor. The Go runtime gets enough processors of its own that the relay
// never waits for one.
func goFirst() error {
	if list := os.Getenv(placed); list != "" {
		os.Unsetenv(placed)
		if err := relay.Reserved(list); err != nil {
			return err
		}
		runtime.GOMAXPROCS(8 + runtime.NumCPU())
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := relay.Before(1); err != nil {
		return err
	}
	list, err := relay.Reserve()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, append(os.Environ(), placed+"="+list))
}

func (o *options) main(ctx context.Context) (failed bool, err error) {
	for _, s := range o.stacks {
		if !slices.Contains(stackNames, s) {
			return false, fmt.Errorf("no stack %q; there are %s", s, strings.Join(stackNames, ", "))
		}
	}
	if o.rounds < 1 || o.mbits <= 0 {
		return false, errors.New("--rounds and --rate: more than none is needed")
	}
	cells, err := o.chosenCells()
	if err != nil {
		return false, err
	}
	if o.virtual && len(o.share) > 0 {
		return false, o.shareVirtually(ctx, cells, os.Stdout)
	}
	if o.virtual {
		return o.runVirtual(ctx, cells, os.Stdout)
	}
	if err := goFirst(); err != nil {
		return false, err
	}
	b := &resultBoard{Machine: machine.This(map[string]string{
		"quic-go": machine.Module("github.com/quic-go/quic-go"), "pion/sctp": machine.Module("github.com/pion/sctp"),
	})}
	b.Machine.CPUs = relay.Processors()
	if o.tools != "" {
		return o.runTools(ctx, o.tools, os.Stdout)
	}
	if len(o.share) > 0 {
		return o.runShared(ctx, cells, os.Stdout)
	}
	if o.webrtc != "" {
		return o.runWebRTC(ctx, os.Stdout)
	}
	if o.beside {
		return o.runBeside(ctx, cells, os.Stdout)
	}
	if o.short {
		failed, err = b.runShort(ctx, o, os.Stdout)
		return failed, err
	}
	if o.book != "" {
		if b.Rows, err = readBook(o.book, &b.Machine); err != nil {
			return false, err
		}
	}
	for i := range cells {
		stacks := b.missingStacks(&cells[i], o.stacks)
		if len(stacks) == 0 {
			continue
		}
		if err = b.measureCell(ctx, o, &cells[i], stacks); err == nil && o.book != "" {
			err = b.writeBook(o.book)
		}
		if err != nil {
			break // what has been measured is told all the same
		}
	}
	b.Machine.Load[1] = machine.Load()
	b.printBoard(os.Stdout)
	return b.hasFailures(), errors.Join(err, b.write(o))
}

// write puts what was measured where the flags say.
func (b *resultBoard) write(o *options) error {
	var plots []string
	if o.plots != "" {
		names, err := b.plotFiles(o.plots)
		if err != nil {
			return err
		}
		for _, n := range names {
			rel := filepath.Join(o.plots, n)
			if r, err := filepath.Rel(filepath.Dir(o.docs), rel); err == nil && o.docs != "" {
				rel = r
			}
			plots = append(plots, rel)
		}
	}
	if o.json != "" {
		if err := b.writeJSON(o.json); err != nil {
			return err
		}
	}
	if o.docs == "" {
		return nil
	}
	return b.writeDocs(o.docs, plots)
}
