// Command pump measures bare links: how fast packets go when there is no protocol above them.
//
//	pump [flags]
//
// It prints a line for each link, packet size and amount of work: the throughput that the receiver
// saw in GB/s, the median of several runs and their range, what was lost, and processor seconds for
// each GB on both sides. Sender and receiver are two processes on loopback unless --one is given.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/internal/test/baseline"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/tun"
	"github.com/rddp-go/rddp/rawio/udp"
)

type options struct {
	links   []string
	mtus    []int
	seconds float64
	repeat  int
	batch   int
	poll    time.Duration
	one     bool
	plain   bool
	work    string
	child   bool
}

// result is one run.
type result struct {
	Sent, Received baseline.Result
}

func main() {
	var o options
	pflag.StringSliceVar(&o.links, "link", []string{"raw", "udp", "tun"}, "links to measure")
	pflag.IntSliceVar(&o.mtus, "mtu", []int{1500, 65535}, "IP-level MTUs in octets")
	pflag.Float64VarP(&o.seconds, "duration", "D", 1, "seconds of a run")
	pflag.IntVarP(&o.repeat, "repeat", "n", 3, "runs of each kind, interleaved")
	pflag.IntVar(&o.batch, "batch", 0, "packets in a batch (default 64)")
	pflag.DurationVar(&o.poll, "poll", 0, "how long the receiver polls before it blocks")
	pflag.BoolVar(&o.one, "one", false, "both ends in one process")
	pflag.BoolVar(&o.plain, "no-offload", false, "udp without UDP_SEGMENT and UDP_GRO")
	pflag.StringVar(&o.work, "work", "both", "bare, crc (CRC32c on both sides and a copy), or both")
	pflag.BoolVar(&o.child, "receive", false, "be the receiving process")
	pflag.CommandLine.MarkHidden("receive")
	pflag.Parse()
	err := runPump(&o)
	if o.child {
		err = child(&o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pump:", err)
		os.Exit(1)
	}
}

func runPump(o *options) error {
	if o.child {
		return nil
	}
	type kind struct {
		link string
		mtu  int
		work bool
	}
	var kinds []kind
	for _, l := range o.links {
		for _, m := range o.mtus {
			for _, w := range []bool{false, true} {
				if o.work == "both" || w == (o.work == "crc") {
					kinds = append(kinds, kind{l, m, w})
				}
			}
		}
	}
	results := make(map[kind][]result)
	for range o.repeat {
		for _, k := range kinds {
			r, err := measureLink(o, k.link, k.mtu, k.work)
			if err != nil {
				return fmt.Errorf("%s, MTU %d: %w", k.link, k.mtu, err)
			}
			results[k] = append(results[k], r)
		}
	}
	fmt.Printf("%-4s %6s %-8s %8s %17s %7s %9s %10s\n", "link", "MTU", "work", "GB/s", "range", "lost", "pkts/read",
		"CPU s/GB")
	for _, k := range kinds {
		rs := results[k]
		slices.SortFunc(rs, func(a, b result) int {
			return int(1e6 * (a.Received.GBps() - b.Received.GBps()))
		})
		m := rs[len(rs)/2]
		work := "bare"
		if k.work {
			work = "crc+copy"
		}
		gb := float64(m.Received.Octets) / 1e9
		cpu := m.Sent.CPU.Seconds()
		if !o.one {
			cpu += m.Received.CPU.Seconds()
		}
		fmt.Printf("%-4s %6d %-8s %8.3f %8.3f-%-8.3f %6.1f%% %9.1f %10.2f\n", k.link, k.mtu, work, m.Received.GBps(),
			rs[0].Received.GBps(), rs[len(rs)-1].Received.GBps(),
			100*(1-float64(m.Received.Packets)/float64(m.Sent.Packets)),
			float64(m.Received.Packets)/float64(m.Received.Calls), cpu/gb)
		if m.Received.Bad > 0 {
			return fmt.Errorf("%d packets had a wrong checksum", m.Received.Bad)
		}
	}
	return nil
}

func (o *options) pumpConfig(work bool) baseline.Config {
	return baseline.Config{Batch: o.batch, Duration: time.Duration(o.seconds * float64(time.Second)), Work: work}
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// The two TUN devices of a run and their stacks' addresses; the host routes between them.
var tunHost = [2]netip.Prefix{netip.MustParsePrefix("10.231.1.1/24"), netip.MustParsePrefix("10.231.2.1/24")}
var tunAddr = [2]netip.Addr{netip.MustParseAddr("10.231.1.2"), netip.MustParseAddr("10.231.2.2")}

// openLink opens one end of a link, end 1 the receiver, and returns the address it can be sent to.
func (o *options) openLink(link string, mtu, end int) (rawio.Link, netip.AddrPort, error) {
	poll := o.poll
	if end == 0 {
		poll = 0
	}
	switch link {
	case "raw":
		l, err := raw.Open(raw.Config{Local: loopback, MTU: mtu, Poll: poll})
		return l, netip.AddrPortFrom(loopback, 0), err
	case "udp":
		l, err := udp.Open(udp.Config{Local: loopback, Port: udp.AnyPort, MTU: mtu, Poll: poll, NoOffload: o.plain})
		if err != nil {
			return nil, netip.AddrPort{}, err
		}
		return l, netip.AddrPortFrom(loopback, l.Port()), nil
	case "tun":
		l, err := tun.Open(tun.Config{MTU: mtu, Poll: poll, Addrs: tunAddr[end : end+1], Host: tunHost[end : end+1]})
		return l, netip.AddrPortFrom(tunAddr[end], 0), err
	}
	return nil, netip.AddrPort{}, fmt.Errorf("no link %q", link)
}

func measureLink(o *options, link string, mtu int, work bool) (r result, err error) {
	if link == "tun" {
		if err := enableForwarding(); err != nil {
			return r, err
		}
	}
	a, _, err := o.openLink(link, mtu, 0)
	if err != nil {
		return r, err
	}
	defer a.Close()
	c := o.pumpConfig(work)
	if !o.one {
		return measureTwo(o, a, link, mtu, work)
	}
	b, to, err := o.openLink(link, mtu, 1)
	if err != nil {
		return r, err
	}
	defer b.Close()
	c.Packet = a.MTU(netip.Addr{}, to.Addr())
	r.Sent, r.Received, err = baseline.Run(a, b, to, c)
	return r, err
}

// measureTwo has a child process receive. It says where it can be reached, and at the end what it
// got.
func measureTwo(o *options, a rawio.Link, link string, mtu int, work bool) (r result, err error) {
	args := []string{"--receive", "--link", link, "--mtu", strconv.Itoa(mtu), "--batch", strconv.Itoa(o.batch),
		"--poll", o.poll.String(), "--work", "bare", "--no-offload=" + strconv.FormatBool(o.plain)}
	if work {
		args[len(args)-2] = "crc"
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	shared, err := os.CreateTemp("", "pump")
	if err != nil {
		return r, err
	}
	defer shared.Close()
	if err := os.Remove(shared.Name()); err != nil {
		return r, err
	}
	gate, err := baseline.MapGate(shared)
	if err != nil {
		return r, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{shared} // becomes descriptor 3
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		return r, errors.Join(errors.New("the receiver did not start"), cmd.Wait())
	}
	to, err := netip.ParseAddrPort(strings.TrimSpace(line))
	if err != nil {
		return r, err
	}
	c := o.pumpConfig(work)
	c.Gate = gate
	c.Packet = a.MTU(netip.Addr{}, to.Addr())
	over := make(chan struct{})
	var report []byte
	go func() {
		defer close(over)
		report, _ = io.ReadAll(lines)
	}()
	if r.Sent, err = baseline.Send(a, to, c, nil); err == nil {
		err = baseline.End(a, to, over)
	}
	if err != nil {
		cmd.Process.Kill()
	}
	err = errors.Join(err, cmd.Wait())
	if err == nil {
		err = json.Unmarshal(report, &r.Received)
	}
	return r, err
}

func child(o *options) error {
	l, at, err := o.openLink(o.links[0], o.mtus[0], 1)
	if err != nil {
		return err
	}
	defer l.Close()
	if p, ok := l.(rawio.PortBinder); ok {
		if err := p.BindPort(baseline.RecvPort); err != nil {
			return err
		}
	}
	c := o.pumpConfig(o.work == "crc")
	if c.Gate, err = baseline.MapGate(os.NewFile(3, "gate")); err != nil {
		return err
	}
	c.Ready = func() error {
		_, err := fmt.Println(at)
		return err
	}
	r, err := baseline.Receive(l, c)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// enableForwarding lets this host route between TUN devices. It changes a setting of the network
// namespace: run the program in one of its own.
func enableForwarding() error {
	const file = "/proc/sys/net/ipv4/ip_forward"
	if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) == "1" {
		return nil
	}
	return fmt.Errorf("the tun pump routes between two devices: set %s to 1, best in a network namespace of its "+
		"own (ip netns)", file)
}
