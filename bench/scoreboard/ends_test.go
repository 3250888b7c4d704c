package main

import (
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testpriv"
)

// TestMain lets the test's own program play the ends, as the scoreboard's does.
func TestMain(m *testing.M) {
	asChild(os.Args[1:])
	os.Exit(m.Run())
}

// Our own ends move data over each link, between processes in network namespaces.
func TestOurOwnEnds(t *testing.T) {
	testpriv.Require(t, "CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_NET_RAW")
	self := must.Get(os.Executable())(t)
	b := &bench{self: self, tryout: true, nets: make(map[string]*network)}
	bd := new(board)
	for i, s := range []spec{
		tcpSpec(lo64K, mid), pingPong(tcpSpec(lo1500, tiny)), encrypted(tcpSpec(lo1500, record)),
		sctpSpec("raw", veth64K, mid), pingPong(sctpSpec("udp", lo1500, tiny)), pionOver(mid),
		pumpOver("raw", veth1500), pumpOver("udp", lo1500), pumpOver("tun", tun1500),
		bothWays(pumpOver("raw", lo64K)), withPolling(bareLinkPingPong("udp", lo1500)),
		shapeSpec("tcp", pipelined, "", lo1500), withConns(20)(shapeSpec("sctp", direct, "udp", lo1500)),
		shapeSpec("tcp", fetch, "", lo1500),
		withBusyCPU(shapeSpec("sctp", handed, "raw", lo64K)), besideAnother(shapeSpec("tcp", handed, "", lo1500)),
		withCrowd(shapeSpec("sctp", handed, "udp", lo1500)), overUDP.verbBeside("read", long)[1],
		overUDP.verbBeside("write", message)[1],
		overRaw.verbBeside("send", message)[1], shapeSpec("sctp", toDirect, "udp", lo1500), growthSpec("mem", 2, false),
		growthSpec("udp", 2, true), manyAssocsSpec(idle, "udp", 3, noBeats),
	} {
		if testing.Short() && i%3 != 0 {
			continue
		}
		s.Trips = min(s.Trips, 100)
		bd.Tasks = append(bd.Tasks, task{spec: s, rounds: 1, run: 300 * time.Millisecond})
	}
	must.OK(t, b.runTasks(t.Context(), bd, 5*time.Minute, io.Discard))
	for name, err := range bd.Errors {
		t.Errorf("%s: %s", name, err)
	}
	for _, s := range bd.Specs {
		f := bd.Results[s.String()][0]
		switch {
		case f == nil: // reported above
		case f.CPU[0] <= 0 || f.CPU[1] <= 0 || f.RSS[0] <= 0 || f.RSS[1] <= 0:
			t.Errorf("%s: no processor time or no memory: %+v", s, f)
		case s.tableKind() == shapeRows && !s.Busy &&
			(f.Rate <= 0 || (f.TripCPU <= 0 || f.TripCPU > 1e4) != (f.GBps > 0)):
			t.Errorf("%s: a program's round trips: %+v", s, f)
		case s.tableKind() == growthRows && (f.Growth.Setups <= 0 || f.Growth.Idle <= 0 ||
			s.Socket && f.Growth.Restart <= 0):
			t.Errorf("%s: what associations cost: %+v", s, f.Growth)
		case (f.Line[0] > 0 && f.Line[1] > 0) != (runtime.NumCPU() > 1 && runtime.GOMAXPROCS(0) > 1):
			t.Errorf("%s: where the processors were: %v", s, f.Line)
		case (s.PingPong || s.Shape != "") && f.P99 < f.P50:
			t.Errorf("%s: %+v", s, f)
		}
	}
}
