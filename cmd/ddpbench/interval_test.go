package main

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/internal/test/simlink"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// While nothing is answered there is a line of 0 each second, in bandwidth and in latency, as text
// and as JSON.
func TestIntervalInWhichNothingComes(t *testing.T) {
	race.Costly(t)
	for args, want := range map[string]string{
		"write -s 64":              " 0.00 MiB/sec 0 messages ",
		"read -s 64 --json":        `"bw_avg_MiBps":0,"bytes":64,`,
		"send --lat":               " 0.00 usec 0 messages ",
		"read --lat --json":        `"t_avg_us":0,`,
		"send --lat --report page": " 0.00 usec 0 messages ",
	} {
		synctest.Test(t, func(t *testing.T) {
			n := simlink.New(1)
			n.Connect(serverAddr, clientAddr, simnet.Params{Delay: 5 * time.Millisecond})
			args = strings.ReplaceAll(args, "page", t.TempDir()+"/page")
			var out, served bytes.Buffer
			stop := serveTool(t, n, &served)
			time.AfterFunc(500*time.Millisecond, func() { n.Partition(serverAddr, clientAddr) })
			time.AfterFunc(5500*time.Millisecond, func() { n.Heal(serverAddr, clientAddr) })
			code := runTool(t.Context(), t, n, clientAddr, &out,
				append(strings.Fields(args), "-D", "12", "--interval", "1", serverAddr.String())...)
			stop()
			said := strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "\n", "\n |")), " ")
			zero := strings.Count(said, strings.TrimSpace(want))
			check.That(t, code == exitOK && zero >= 3,
				"%s: exit %d, %d lines of 0 in five seconds without an answer:\n%s", args, code, zero, &out)
		})
	}
}

// After a failover the path that is shown is the one that data goes by.
func TestPathInUseIsTheOneThatAnswers(t *testing.T) {
	path := func(state sctp.PathState, primary, suspected bool, flight int) rdma.PathStats {
		return rdma.PathStats{State: state, Primary: primary, Suspected: suspected, Flight: flight}
	}
	for name, row := range map[string]struct {
		list []rdma.PathStats
		want int
	}{
		"none": {nil, -1},
		"the primary": {[]rdma.PathStats{path(sctp.PathActive, false, false, 9),
			path(sctp.PathActive, true, false, 0)}, 1},
		"another, where that is down": {[]rdma.PathStats{path(sctp.PathInactive, true, false, 0),
			path(sctp.PathActive, false, false, 0)}, 1},
		"another, where that is silent": {[]rdma.PathStats{path(sctp.PathActive, true, true, 9),
			path(sctp.PathActive, false, false, 0)}, 1},
		"another, where that has failed": {[]rdma.PathStats{path(sctp.PathPotentiallyFailed, true, false, 9),
			path(sctp.PathActive, false, false, 0)}, 1},
		"the one of two with data": {[]rdma.PathStats{path(sctp.PathInactive, true, false, 0),
			path(sctp.PathActive, false, false, 0), path(sctp.PathActive, false, false, 7)}, 2},
		"no path that was never confirmed": {[]rdma.PathStats{path(sctp.PathUnconfirmed, false, false, 0),
			path(sctp.PathInactive, true, false, 0)}, 1},
		"a silent one, where all others failed": {[]rdma.PathStats{path(sctp.PathInactive, true, false, 0),
			path(sctp.PathActive, false, true, 0)}, 1},
	} {
		check.Equal(t, name, indexInUse(row.list), row.want)
	}
	p := path(sctp.PathActive, true, true, 0)
	p.Local, p.Remote, p.Cwnd, p.SRTT, p.MTU = netip.MustParseAddrPort("10.0.0.1:5"),
		netip.MustParseAddrPort("10.0.0.2:6"), 1, 2*time.Millisecond, 3
	check.Equal(t, "a path", pathOf(&p, false), pathUsageOf("10.0.0.1", "10.0.0.2", "suspected, primary"))
	check.Equal(t, "one of several", (&intervalStats{paths: 2, path: pathOf(&p, true)}).pathSuffix(), "  to 10.0.0.2")
	check.Equal(t, "the only one", (&intervalStats{paths: 1, path: pathOf(&p, true)}).pathSuffix(), "")
}

func pathUsageOf(local, remote, state string) pathUsage {
	return pathUsage{local, remote, state, false, 1, 2000, 3}
}

// A server that is gone in the middle of a run was there: nobody is told to start it over the right
// link.
func TestServerThatIsGoneInTheMiddle(t *testing.T) {
	x := newLab(t)
	c, e := x.connectedClient(t, "write", "-n", "100")
	x.server.dev.Close()
	<-e.lanes[0].qp.Done()
	err := c.measureConnected(t.Context(), e)
	said := cli.Explain(err)
	check.That(t, err != nil && strings.Contains(said,
		"the session has ended: the other side has aborted it, or its program is gone") && exitCode(err) == exitError,
		"%s, exit %d", said, exitCode(err))
	for _, why := range []error{assoc.ErrProtoUnreachable, &assoc.AbortError{ByPeer: true}} {
		said := cli.Explain(&cli.SessionError{Err: why})
		check.That(t, strings.HasPrefix(said, "the session has ended: the other side") &&
			!strings.Contains(said, "start the server") && !strings.Contains(said, "--port"), "%v: %s", why, said)
	}
}

// Packets, or events, that the disk has not taken are an error.
func TestRecordsOnAFullDisk(t *testing.T) {
	for flag, want := range map[string]string{
		"--pcap":   "ddpbench: --pcap /dev/full: not all packets are in it: write /dev/full: no space left on device\n",
		"--trace":  "ddpbench: the trace is not complete: write /dev/full: no space left on device\n",
		"--report": "ddpbench: --report: write /dev/full: no space left on device\n"} {
		out, errs, code := runBench(t, "write", "--self", "--link", "mem", "-n", "10", flag, "/dev/full")
		check.That(t, code == exitError && errs == want && strings.Contains(out, "Packets"),
			"%s: exit %d, %q, want %q", flag, code, errs, want)
	}
}

// A Read that brought nothing is no message with the right content: what the one before has brought
// was spoiled.
func TestReadThatBroughtNothingIsBad(t *testing.T) {
	e, l := &engine{client: true, params: params{verb: verbRead, isLatency: true, verify: true, size: 100, depth: 1,
		qps: 1}}, &lane{dst: &region{buf: make([]byte, 100)}}
	fillContent(l.dst.buf, e.slotSeed(0, false, 0))
	e.checkRead(l)
	check.Equal(t, "bad ones, after a Read that brought what it should", l.badMessages, 0)
	e.checkRead(l)
	check.Equal(t, "bad ones, after one that brought nothing", l.badMessages, 1)
}
