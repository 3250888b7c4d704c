package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/internal/test/simlink"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// TestSweepMeasuresAndKeepsEveryAxis measures the small end of each axis, prints and keeps what it
// finds.
func TestSweepMeasuresAndKeepsEveryAxis(t *testing.T) {
	defer func(all []sweepAxis) { sweepAxes = all }(sweepAxes)
	sweepAxes = slices.Clone(sweepAxes)
	for i := range sweepAxes {
		sweepAxes[i].values = sweepAxes[i].values[:2]
	}
	dir := filepath.Join(t.TempDir(), "plots")
	out, errs, code := runBench(t, "--sweep", dir, "--link", "mem", "-D", "0.01")
	want := "axis                value     GB/s   messages/s  CPU us/packet   CPU s/GB   allocs   resent\n"
	for i := range sweepAxes {
		a := &sweepAxes[i]
		var kept []sweepPoint
		text := must.Get(os.ReadFile(filepath.Join(dir, a.Name+".json")))(t)
		check.That(t, must.Get(os.Stat(filepath.Join(dir, a.Name+".json")))(t).Mode()&0o600 == 0o600,
			"who made the file may not read and write it")
		must.OK(t, json.Unmarshal(text, &kept))
		check.Equal(t, "what is kept", string(text), string(must.Get(json.MarshalIndent(kept, "", "\t"))(t))+"\n")
		for k, p := range kept {
			s := baseScale
			a.set(&s, p.Value)
			check.That(t, p.Value == a.values[k] && p.rigScale == s && p.Packets != 0 && p.Rate > 0 && p.GBps > 0 &&
				p.Resent <= p.Packets && p.Memory*float64(p.Value) <= rigMemory/2,
				"at %d: %+v", p.Value, p)
			want += fmt.Sprintf("%-14s %10d %8.2f %12.0f %14.2f %10.3f %8.2f %8d\n", a.Name, p.Value, p.GBps, p.Rate,
				p.Cost, p.PerGB, p.Allocs, p.Resent)
		}
		check.Equal(t, "points kept", len(kept), 2)
		wellFormed(t, filepath.Join(dir, a.Name+".svg"), a.Title)
	}
	want += "Plots and figures are in " + dir + ".\n"
	check.That(t, out == want && errs == "" && code == exitOK, "exit %d, %s\n%swant\n%s", code, errs, out, want)
	_, errs, code = runBench(t, "--sweep", filepath.Join(dir, "size.svg"))
	check.That(t, code == exitError && strings.Contains(errs, "not a directory"),
		"a file for a directory: exit %d, %s", code, errs)
}

// A plot looks as it did when somebody last looked at one: whoever changes it looks at it again,
// and writes its sum here.
func TestPlotIsDrawnAsItWas(t *testing.T) {
	name := filepath.Join(t.TempDir(), "plot.svg")
	points := []sweepPoint{{Value: 64, Cost: 1, GBps: 0.5}, {Value: 1024, Cost: 1.5, GBps: 2},
		{Value: 1 << 20, Cost: 4, GBps: 1.25}}
	must.OK(t, plotPoints(name, &sweepAxes[0], points))
	cost, rate := plotPoints(name+"2", &sweepAxes[0], []sweepPoint{{Value: 1, Cost: math.NaN()}}),
		plotPoints(name+"2", &sweepAxes[0], []sweepPoint{{Value: 1, GBps: math.Inf(1)}})
	check.That(t, cost != nil && rate != nil && plotPoints("/no/such/plot", &sweepAxes[0], points) != nil &&
		plotPoints("/dev/full", &sweepAxes[0], points) != nil,
		"a plot of what is no number, %v or %v, or for which there is no place", cost, rate)
	for dir, p := range map[string]sweepPoint{t.TempDir(): {Value: 1, PerGB: math.NaN()}, "/no/such": {Value: 1}} {
		check.That(t, (&options{sweepDir: dir}).savePoints(&sweepAxes[0], []sweepPoint{p}) != nil,
			"%+v is kept in %s", p, dir)
	}
	// others round otherwise
	if sum := fmt.Sprintf("%x", sha256.Sum256(must.Get(os.ReadFile(name))(t))); runtime.GOARCH == "amd64" {
		check.Equal(t, "the sum of a plot", sum[:16], "191768eddd11cb88")
	}
	check.Equal(t, "ticks", fmt.Sprint(decadeTicks{}.Ticks(5, 1e9)),
		"[{10 10} {100 100} {1000 1k} {10000 10k} {100000 100k} {1e+06 1M} {1e+07 10M} {1e+08 100M} {1e+09 1G}]")
}

// However large messages are and however many QPs there are, each has one outstanding, and all of
// them no more than so many.
func TestDepthOfARig(t *testing.T) {
	for s, want := range map[rigScale]int{{Size: 64, QPs: 1}: 256, {Size: 64, QPs: 4096}: 1,
		{Size: 1 << 20, QPs: 4}: 4, {Size: 1 << 30, QPs: 1}: 1} {
		check.Equal(t, fmt.Sprintf("outstanding of %+v", s), (&sweepRig{rigScale: s}).queueDepth(), want)
	}
	r := must.Get(newRig(t.Context(), &cli.LinkFlags{Kind: "mem"}, rigScale{Size: 16 << 20, QPs: 1, Regions: 3}))(t)
	defer r.devices.Close()
	ended := must.Ended()
	for _, link := range []string{"tun", "mem"} {
		r, err := newRig(ended, &cli.LinkFlags{Kind: link}, baseScale)
		check.That(t, r == nil && err != nil, "a rig over %s that cannot be, or is not waited for: %v", link, err)
	}
	full := newLab(t, nil, &rdma.Config{Limits: rdma.Limits{MaxCQE: 1}}).server.dev
	x := newLab(t, nil, &rdma.Config{Limits: rdma.Limits{MaxRegions: 2, MaxQPs: 1}})
	two := &sweepRig{rigScale: rigScale{Size: 1, QPs: 2, Regions: 3},
		devices: &cli.Devices{Client: x.dev, Server: x.server.dev, Addr: x.to.Addr()}}
	check.Error(t, "regions that there is no room for", two.registerRegions(), ddp.ErrTooManyRegions)
	var limit *rdma.LimitError
	err := two.connectQPs(t.Context())
	check.That(t, errors.As(err, &limit), "QPs that the server has no room for: %v", err)
	check.That(t, (&sweepRig{rigScale: rigScale{QPs: 1}, devices: &cli.Devices{Server: full}}).acceptQPs(t.Context(),
		nil) != nil, "a CQ that there is no room for")
	nobody := must.Get(r.devices.Server.Listen(7))(t)
	check.Error(t, "a client that is not waited for", r.acceptQPs(ended, nobody), context.Canceled)
	for _, qp := range slices.Concat(r.devices.Client.QPs(), r.devices.Server.QPs()) {
		check.That(t, qp.IRD()+qp.ORD() == 0, "a QP that only writes or is written to has room for %d and %d reads",
			qp.IRD(), qp.ORD())
	}
	turns, used := sweepRig{dst: r.dst}, make(map[*rdma.MR]bool)
	for ; turns.posted < 3; turns.posted++ {
		used[turns.nextRegion()] = true
	}
	check.Equal(t, "regions in turn", len(used), 3)
	must.OK(t, r.runFor(t.Context(), 0, 9)) // each place in memory is used again
	check.That(t, r.completed >= 9, "%d messages are done", r.completed)
	check.Error(t, "a run that is given up", r.runFor(ended, 0, 1<<40), context.Canceled)
	must.OK(t, r.qps[0].PostRecv(&rdma.RecvWR{})) // outstanding still if all that was written has arrived
	r.qps[0].Close()
	r.posted = math.MaxUint64 // nothing more is posted
	err = r.runFor(t.Context(), 0, 1<<40)
	said, flushed := fmt.Sprint(err), ": "+rdmap.StatusWRFlushErr.String()+": "
	check.That(t, !errors.Is(err, context.Canceled) && (strings.HasPrefix(said, "RDMA Write"+flushed) ||
		strings.HasPrefix(said, "Receive"+flushed)), "a message that fails: %v", err)
	check.Equal(t, "octets for large messages", (&sweepRig{rigScale: rigScale{Size: 1 << 30}}).memoryOctets(), 1<<30)
	check.Equal(t, "octets for small messages", (&sweepRig{rigScale: rigScale{Size: 64}}).memoryOctets(), 64<<20)
}

// A point takes the time that was asked for, and counts what an association has sent again once,
// however many QPs it has.
func TestPointTakesItsTimeAndCountsAnAssociationOnce(t *testing.T) {
	race.Costly(t)
	for _, a := range sweepAxes[1:3] {
		synctest.Test(t, func(t *testing.T) {
			n, o := simlink.New(1), &options{params: params{duration: 30 * time.Second}}
			n.Connect(serverAddr, clientAddr, simnet.Params{Delay: 5 * time.Millisecond, MTU: 1500, Loss: 0.01,
				Rate: 1e6})
			o.link.Opener = func(server bool) (rawio.Link, error) {
				return n.Link(map[bool]netip.Addr{true: serverAddr, false: clientAddr}[server]), nil
			}
			begun := time.Now()
			p := must.Get(o.measurePoint(t.Context(), &a, 4))(t)
			took := time.Since(begun)
			// One packet of a hundred is lost, of both ways; half of them, or a little less, carry
			// DATA. That is some 115, give or take ten.
			check.That(t, p.Resent > p.Packets/400 && p.Resent < p.Packets/120, "%s: %+v", a.Name, p)
			check.That(t, took >= o.duration && took < o.duration+2*time.Second && p.GBps > 0.0007 && p.GBps < 0.001,
				"%s: %v, %+v", a.Name, took, p)
			for _, end := range []time.Duration{time.Second, 20 * time.Second} { // before it counts, and then
				ctx, cancel := context.WithTimeout(t.Context(), end)
				check.Fails(o.measurePoint(ctx, &a, 1))(t, "a point that is given up", context.DeadlineExceeded)
				cancel()
			}
		})
	}
}

func TestPointIsWhatHappenedInBetween(t *testing.T) {
	at := time.Unix(1000, 0)
	p := sweepPoint{rigScale: rigScale{Size: 500_000}}
	p.setBetween(rigReading{at, time.Second, 10, 1000, 3, 100},
		rigReading{at.Add(2 * time.Second), 4 * time.Second, 4010, 7000, 7, 8100})
	want := sweepPoint{rigScale: p.rigScale, GBps: 1, Rate: 2000, Packets: 6000, Cost: 500, PerGB: 1.5, Allocs: 2,
		Resent: 4}
	check.Equal(t, "what was parsed", p, want)
}

func wellFormed(t *testing.T, name, title string) {
	b := must.Get(os.ReadFile(name))(t)
	check.That(t, strings.Contains(string(b), title), "the plot does not say %q", title)
	d, err := xml.NewDecoder(strings.NewReader(string(b))), error(nil)
	for err == nil {
		_, err = d.Token()
	}
	check.Equal(t, "what ends the XML", err, io.EOF)
}

func TestSweepOptions(t *testing.T) {
	o, err := parseArgs([]string{"--sweep", "plots", "--link", "mem"}, io.Discard)
	check.That(t, err == nil && o.sweepDir == "plots" && o.duration == defaultSweep, "%+v, %v", o, err)
	for _, args := range [][]string{{"--sweep", "plots", "write"}, {"--sweep", "plots", "-q", "4"},
		{"--sweep", "plots", "--lat"}} {
		_, err := parseArgs(args, io.Discard)
		check.That(t, err != nil, "%v: accepted", args)
	}
}
