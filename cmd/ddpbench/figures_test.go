package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/internal/test/simlink"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

var serverAddr, clientAddr = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")

// runTool one end of the tool over a simulated network.
func runTool(ctx context.Context, t *testing.T, n *simlink.Net, addr netip.Addr, out io.Writer, args ...string) int {
	o := must.Get(parseArgs(args, io.Discard))(t)
	o.link.Opener = func(bool) (rawio.Link, error) { return n.Link(addr), nil }
	return o.runAndReport(ctx, out, out)
}

// serveTool has the tool serve over a simulated network until stop is called; it ends well.
func serveTool(t *testing.T, n *simlink.Net, out io.Writer, args ...string) (stop func()) {
	serving, end := context.WithCancel(t.Context())
	served := make(chan int)
	go func() { served <- runTool(serving, t, n, serverAddr, out, append(args, "write")...) }()
	synctest.Wait()
	return func() {
		end()
		check.Equal(t, "the server's exit", <-served, exitOK)
		synctest.Wait() // for its last words
	}
}

// phase is a part of a run: so many round trips of the same length.
type phase struct {
	rtt   time.Duration
	trips int
}

// followPhases gives the path the round trips of each phase in turn, from the end of the set-up on,
// which takes three. A change comes just before the last packet of a phase is answered, so that it
// is true for the next one. No length: nothing passes for so many ms.
func followPhases(n *simlink.Net, phases []phase) {
	at := 3 * phases[0].rtt
	for _, p := range phases {
		set := func() { n.Connect(serverAddr, clientAddr, simnet.Params{Delay: p.rtt / 2}) }
		if p.rtt == 0 {
			set, p.rtt = func() { n.Partition(serverAddr, clientAddr) }, time.Millisecond
			time.AfterFunc(at+time.Duration(p.trips)*p.rtt, func() { n.Heal(serverAddr, clientAddr) })
		}
		if at == 3*phases[0].rtt {
			set()
		} else {
			time.AfterFunc(at-time.Microsecond, set)
		}
		at += time.Duration(p.trips) * p.rtt
	}
}

// A client measures a server over a path of known delay, in virtual time, with one message under
// way at a time: so each figure is known, from latencies but for the digits that the histogram does
// not keep (0.05 %).
func TestEveryFigureIsThatOfTheKnownPath(t *testing.T) {
	race.Costly(t)
	const ms, us = time.Millisecond, time.Microsecond
	spaces := regexp.MustCompile(`[ \t]+`)
	unknown := regexp.MustCompile(
		`(?m)[\d.]+ s user, [\d.]+ s system | \(\d+%\)|^ Allocations .*\n|"cpu_user.*[\d.]+}|10.0.0.2:\d+|^-+\n|.*"type":"serving"}\n`)
	halved, quick := []phase{{10 * ms, 50}, {5 * ms, 100}}, []phase{{100 * us, 50}, {50 * us, 50}}
	tail := []phase{{10 * ms, 985}, {20 * ms, 12}, {40 * ms, 2}, {80 * ms, 1}}
	for _, tt := range []struct {
		args         string
		phases       []phase
		want, server string // from the results on
	}{
		{"send --lat -n 1000", tail, ` 2 1000 4997.12 40009.73 5001.22 5124.15 1399.54 10002.43 20004.86
 Packets : 1003 out, 1003 in; DATA chunks: 1003 out, 1001 in
 Retransmissions : 1 DATA chunks, 0 fast recoveries, 0 timeouts; 0 duplicates in
 SACKs : 1000 out, 1002 in
 Link : raw; batches: 1003 out, 1002 in; 0 packets refused, 0 dropped
 Path : 10.0.0.2 -> 10.0.0.1 active, primary, in use: cwnd 131000[B], SRTT 36302[usec], MTU 65535[B]
 CPU : in 10.330 s, this end
`, `{"bytes":2,"client":"","iterations":1000,"qps":1,"seconds":10.285,"test":"Send Latency","type":"run"}`},
		{"read --lat -n 1000", tail, " 2 1000 9994.24 80019.46 10002.43 10248.29 2799.09 20004.86 40009.73\n", ""},
		{"write --lat -n 100 --json --verify", []phase{{10 * ms, 100}}, `{"bytes":2,"iterations":100,"p999_us":5001.2155,"p99_us":5001.2155,"t_avg_us":4999.168,"t_max_us":5001.2155,"t_min_us":4997.12,"t_stdev_us":0,"t_typical_us":5001.2155,"tps":100.016643,"type":"result"}
{"bad":0,"both_ends":false,"command":"ddpbench write --lat -n 100 --json --verify 10.0.0.1","link":"raw","type":"summary","usage":{"packets_out":103,"packets_in":103,"data_chunks_out":202,"data_chunks_in":202,"retransmits":0,"fast_retransmits":0,"timeouts":0,"duplicates_in":0,"sacks_out":101,"sacks_in":101,"link_batches_out":103,"link_batches_in":101,"link_refused":0,"link_dropped":0,"paths_suspected":0,"paths_down":0,"paths":[{"local":"10.0.0.2","remote":"10.0.0.1","state":"active, primary","in_use":true,"cwnd":131000,"srtt_us":10000,"mtu":65535}],"seconds":1.01,}
`, `{"bad":0,"bytes":2,"client":"","iterations":100,"qps":1,"seconds":1,"test":"RDMA_Write Latency","type":"run"}`},
		// The trip of 12 ms keeps the timers of both ends apart.
		{"send --lat -n 10", []phase{{10 * ms, 4}, {12 * ms, 1}, {0, 500}, {10 * ms, 100}}, ` 2 10 4997.12 332136.45 5001.22 37699.79 98101.86 332136.45 332136.45
 Packets : 16 out, 13 in; DATA chunks: 15 out, 11 in
 Retransmissions : 3 DATA chunks, 0 fast recoveries, 2 timeouts; 0 duplicates in
`, ""},
		{"read --lat -D 1 --interval 0.25", halved, ` 0.00-0.25 sec 10000.00 usec 25 messages 0 retransmissions cwnd 131000[B] RTT 10000[usec]
 0.25-0.50 sec 10000.00 usec 25 messages 0 retransmissions cwnd 131000[B] RTT 10000[usec]
 0.50-0.75 sec 5000.00 usec 50 messages 0 retransmissions cwnd 131000[B] RTT 5006[usec]
 0.75-1.00 sec 5000.00 usec 50 messages 0 retransmissions cwnd 131000[B] RTT 5000[usec]
 2 150 6665.56 150.02 
 Latency[usec] : min 4997.12, 50% 5001.22, 99% 10002.43, 99.9% 10002.43, max 10002.43
`, ""},
		{"write --lat -D 1 --interval 0.25 --json", halved, `{"bytes":2,"cwnd":131000,"from_s":0,"iterations":25,"retransmits":0,"srtt_us":10000,"t_avg_us":5000,"to_s":0.25,"tps":100,"type":"interval"}
{"bytes":2,"cwnd":131000,"from_s":0.25,"iterations":25,"retransmits":0,"srtt_us":10000,"t_avg_us":5000,"to_s":0.5,"tps":100,"type":"interval"}
{"bytes":2,"cwnd":131000,"from_s":0.5,"iterations":50,"retransmits":0,"srtt_us":5006.296,"t_avg_us":2500,"to_s":0.75,"tps":200,"type":"interval"}
{"bytes":2,"cwnd":131000,"from_s":0.75,"iterations":50,"retransmits":0,"srtt_us":5000.005,"t_avg_us":2500,"to_s":1,"tps":200,"type":"interval"}
{"bytes":2,"iterations":150,"p999_us":5001.2155,"p99_us":5001.2155,"t_avg_us":3332.7785,"t_max_us":5001.2155,"t_min_us":2498.56,"t_stdev_us":1178.315,"t_typical_us":2500.6075,"tps":150.024964,"type":"result"}
`, ""},
		{"read -t 1 -n 100 -s 60000", quick, " 60000 100 1144.41 762.94 0.013333\n",
			`{"bw_avg_MiBps":765.49109,"bytes":60000,"client":"","iterations":100,"qps":1,"seconds":0.007475,"test":"RDMA_Read BW","type":"run"}`},
		{"read -t 1 -n 100 -s 60000 -b --verify", quick, " 60000 100 2288.82 1528.43 0.026711\n",
			": RDMA_Read Bidirectional BW, 60000 octets, 1 QPs: 200 messages in 0.007 s, 1530.98 MiB/sec, 0 " +
				"with wrong content"},
		{"read --lat -D 10.2", tail, " 2 1000 10248.29 97.58 \n Latency[usec] : min 9994.24, 50% 10002.43, 99% " +
			"20004.86, 99.9% 40009.73, max 80019.46\n",
			": RDMA_Read Latency, 2 octets, 1 QPs: 1000 messages in 10.285 s"},
		{"read -t 1 -n 100 -s 20000 -q 2 --own", []phase{{100 * us, 53}, {50 * us, 50}}, ` 20000 200 762.94 508.63 0.026667
 Packets : 204 out, 202 in; DATA chunks: 204 out, 202 in
 Retransmissions : 0 DATA chunks, 0 fast recoveries, 0 timeouts; 0 duplicates in
 SACKs : 200 out, 202 in
 Link : raw; batches: 204 out, 101 in; 0 packets refused, 0 dropped
 Path : 10.0.0.2 -> 10.0.0.1 active, primary, in use: cwnd 131000[B], SRTT 50[usec], MTU 65535[B]
 Path : 10.0.0.2 -> 10.0.0.1 active, primary, in use: cwnd 131000[B], SRTT 50[usec], MTU 65535[B]
`, ""},
		{"read -t 1 -D 1 --interval 0.25 -s 60000", halved, ` 0.00-0.25 sec 5.72 MiB/sec 25 messages 0 retransmissions cwnd 131000[B] RTT 10000[usec]
 0.25-0.50 sec 5.72 MiB/sec 25 messages 0 retransmissions cwnd 131000[B] RTT 10000[usec]
 0.50-0.75 sec 11.44 MiB/sec 50 messages 0 retransmissions cwnd 131000[B] RTT 5006[usec]
 0.75-1.00 sec 11.44 MiB/sec 50 messages 0 retransmissions cwnd 131000[B] RTT 5000[usec]
 60000 150 0.00 8.58 0.000150
`, ""},
		{"read -t 1 -D 1 --interval 0.25 -s 60000 --report_gbits", halved, " 0.00-0.25 sec 0.05 Gb/sec 25 messages 0 retransmissions", ""},
		{"read -t 1 -n 100 -s 60000 --report_gbits -N", quick, " 60000 100 0.00 6.40 0.013333\n", ""},
		{"atomic --lat -n 100", []phase{{10 * ms, 100}}, " 8 100 9994.24 10002.43 10002.43 9998.34 0.00 10002.43 10002.43\n", ""},
		{"atomic --lat -n 3 -U -A CMP_AND_SWAP", []phase{{10 * ms, 1}, {20 * ms, 1}, {10 * ms, 100}}, " 8 3 9994.24 20004.86 10002.43 13331.11 4713.26 20004.86 20004.86\n#, usec\n1, 10000\n2, 20000\n3, 10000\n", ""},
		{"atomic -t 1 -n 100 -b", quick, " 8 100 0.31 0.20 0.026711\n", ""},
		{"send -t 1 -D 1 --interval 0.5 -s 60000 --json", halved, `{"bw_avg_MiBps":5.722046,"bytes":60000,"cwnd":131000,"from_s":0,"iterations":50,"msg_rate_Mpps":0.0001,"retransmits":0,"srtt_us":10000,"to_s":0.5,"type":"interval"}
{"bw_avg_MiBps":11.444092,"bytes":60000,"cwnd":131000,"from_s":0.5,"iterations":100,"msg_rate_Mpps":0.0002,"retransmits":0,"srtt_us":5000.005,"to_s":1,"type":"interval"}
{"bw_avg_MiBps":8.540367,"bw_peak_MiBps":0,"bytes":60000,"iterations":150,"msg_rate_Mpps":0.000149,"type":"result"}
`, ""},
	} {
		t.Run(tt.args, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simlink.New(1)
				followPhases(n, tt.phases)
				var said, out strings.Builder
				text := strings.HasPrefix(tt.server, ":")
				stop := serveTool(t, n, &said, fmt.Sprint("--json=", !text))
				if text {
					check.Equal(t, "what the server begins with", said.String(),
						waitingForPeers+" SCTP port 5043 over raw\n")
					said.Reset()
				}
				code := runTool(t.Context(), t, n, clientAddr, &out,
					append(strings.Fields(tt.args), serverAddr.String())...)
				stop()
				check.Equal(t, "exit", code, exitOK)
				got := out.String()
				for _, head := range []string{resultHeader, strings.ReplaceAll(resultHeader, "MiB/sec", "Gb/sec"),
					latencyHeader, durationHeader, "\"type\":\"start\",\"verb\""} {
					if _, rest, found := strings.Cut(got, head); found {
						got = rest
					}
				}
				if tt.want[0] == '{' {
					_, got, _ = strings.Cut(got, "\n")
				}
				got = unknown.ReplaceAllString(spaces.ReplaceAllString(got, " "), "")
				check.That(t, strings.HasPrefix(got, tt.want), "got\n%s\nwant\n%s", got, tt.want)
				if got := strings.TrimSpace(unknown.ReplaceAllString(said.String(), "")); tt.server != "" &&
					got != tt.server {
					t.Errorf("the server says\n%s\nwant\n%s", got, tt.server)
				}
			})
		})
	}
}

// metered is a link that counts the octets of IP packets sent.
type metered struct {
	*simlink.Link
	octets *float64
}

func (l metered) WriteBatch(pkts []rawio.Packet) (int, error) {
	n, err := l.Link.WriteBatch(pkts)
	for i := range n {
		*l.octets += float64(20 + pkts[i].Len())
	}
	return n, err
}

// What is moved over a path of known rate, delay and loss is reported as the path has carried it,
// to 1 %: the bandwidth of the run, of each interval but for what came late, and what was sent
// again for each packet lost.
func TestBulkIsThatOfTheKnownPath(t *testing.T) {
	race.Costly(t)
	const rate = 12_500_000 // octets a second
	for _, tt := range []struct {
		args string
		loss float64
	}{{"write", 0.002}, {"write", 0}, {"send --report_gbits", 0}}[:map[bool]int{false: 3, true: 1}[race.Enabled]] {
		t.Run(fmt.Sprint(tt.args, " ", tt.loss), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, wire := simlink.New(1), 0.0
				p := simnet.Params{Delay: 5 * time.Millisecond, Rate: rate, MTU: 1500}
				n.SetLink(serverAddr, clientAddr, p)
				p.Loss = tt.loss
				n.SetLink(clientAddr, serverAddr, p)
				stop := serveTool(t, n, io.Discard)
				var out strings.Builder
				// a line is not off by the messages of one completion
				o := must.Get(
					parseArgs(strings.Fields(tt.args+" --json -m 1500 -s 64K -Q 1 -D 4 --interval 1 10.0.0.1"),
						io.Discard))(t)
				o.link.Opener = func(bool) (rawio.Link, error) { return metered{n.Link(clientAddr), &wire}, nil }
				check.Equal(t, "exit", o.runAndReport(t.Context(), &out, &out), exitOK)
				stop()
				lost := float64(n.Stats().Lost)
				type line struct {
					Type              string
					Bytes, Iterations float64
					MiB               float64 `json:"bw_avg_MiBps"`
					Gb                float64 `json:"bw_avg_Gbps"`
					From              float64 `json:"from_s"`
					SRTT              float64 `json:"srtt_us"`
					Usage             struct{ Retransmits float64 }
				}
				all := make(map[string][]line)
				for text := range strings.Lines(out.String()) {
					var l line
					must.OK(t, json.Unmarshal([]byte(text), &l))
					all[l.Type] = append(all[l.Type], l)
				}
				right := func(what string, got, want, late float64) {
					t.Helper()
					check.That(t, math.Abs(got-want) <= want*(0.01+late), "%s: %g, on the wire %g\n%s", what, got,
						want, &out)
				}
				result := all["result"][0]
				right("retransmissions", all["summary"][0].Usage.Retransmits, lost, 0)
				for i, l := range append(all["interval"], result) {
					if i > 0 && tt.loss == 0 { // the path is full
						// What waits for a chunk that was withheld, for two round trips at most, is
						// complete in the next second.
						right("bandwidth", l.MiB*(1<<20), rate*result.Bytes*result.Iterations/wire, 2*l.SRTT/1e6)
					}
					if strings.Contains(tt.args, "gbits") {
						right("its unit", l.Gb*1e9/8, l.MiB*(1<<20), 0)
					}
				}
			})
		})
	}
}

// What ends a run, and when, and what both ends say then.
func TestRunEndsWhenItIsToAndBothEndsSayHow(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name, args string
		cut, stop  time.Duration // when nothing passes any more, and when the client gets a ^C
		exit, want string        // how the client ends, and its last line
		server     string        // what is wrong in the server's eyes
	}{
		{"nobody answers", "write --timeout 1.5", 1, 0, "exit 1 after 1.5s",
			"ddpbench: no answer: check the address, that the server runs with the same --link and --port, and " +
				"firewalls in between", ""},
		{"interrupted before anything was measured", "write", 0, 15 * ms, "exit 2 after 15ms", "ddpbench: interrupted before anything was measured", ""},
		{"interrupted before a round trip is over", "read --lat", 0, 350 * ms, "exit 2 after 500ms", "ddpbench: nothing was measured", "transport closed"},
		{"interrupted, and the server does not answer the end", "read -D 600 -t 1", 1003 * ms, 2003 * ms,
			"exit 2 after 7.003s",
			"ddpbench: the peer does not answer the end of the run", "the client has been silent for 1m0s"},
		{"interrupted in the middle of all sizes", "read -a -n 100 -t 1", 0, 15_050 * ms, "exit 0 after 15.3s", strings.TrimSuffix(resultLine, "\n"), ""},
		{"the client falls silent", "write -D 600 -t 1", 1003 * ms, 0, "exit 2 after 6m4s",
			"ddpbench: the session has ended: rdmap: stream lost: sctp: peer unreachable: retransmission limit exceeded", "the client has been silent for 1m0s"},
		{"longer than a client may be silent", "send --lat -D 130", 0, 0, "exit 0 after 2m10.5s", strings.TrimSuffix(resultLine, "\n"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simlink.New(1)
				n.Connect(serverAddr, clientAddr, simnet.Params{Delay: 50 * ms})
				var said, out strings.Builder
				end := serveTool(t, n, &said, "--json")
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				if tt.cut > 0 {
					time.AfterFunc(tt.cut, func() { n.Partition(serverAddr, clientAddr) })
				}
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, interrupt)
				}
				begun := time.Now()
				code := runTool(ctx, t, n, clientAddr, &out, append(strings.Fields(tt.args), serverAddr.String())...)
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				exit := fmt.Sprintf("exit %d after %v", code, time.Since(begun))
				check.That(t, exit == tt.exit && lines[len(lines)-1] == tt.want, "%s, want %s\n%s", exit, tt.exit, &out)
				time.Sleep(2 * idleTimeout)
				end()
				got := strings.Contains(said.String(), `"error":`)
				check.That(t, got == (tt.server != "") && strings.Contains(said.String(), tt.server),
					"the server says\n%s", &said)
			})
		})
	}
}

// A run whose QPs do not all come is given up.
func TestIncompleteRunIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newLab(t)
		c := x.newClient(t, "write", "-q", "2")
		e := must.Get(newEngine(c.dev, c.params, true))(t)
		defer e.close()
		l := must.Get(e.addLane(0))(t)
		h := hello{params: e.params, run: 1, target: l.localTarget}
		must.Do(l.qp.Connect(t.Context(), x.to, h.encode()))(t)
		time.Sleep(joinTimeout - time.Millisecond)
		synctest.Wait()
		early := x.out.String()
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		check.That(t, early == "" && strings.Contains(x.out.String(), "not all of its 2 QPs have come within 10s"),
			"the server says %q, and then %q", early, x.out)
	})
}
