//go:build unix

package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// A stranger installs the tools, pings a server, sees an outage and its end, measures, reads the
// report, and looks at what a run is doing, without privileges.
func TestStranger(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tools")
	}
	s := &toolFolder{t, t.TempDir()}
	install := exec.Command("go", "install", "./cmd/...")
	install.Dir, install.Env = "../..", append(os.Environ(), "GOBIN="+s.bin)
	out, err := install.CombinedOutput()
	must.That(t, err == nil, "%v\n%s", err, out)
	s.startTool("ddpping", "--version").awaitEnd(0, `ddpping of rddp [^ ]+, go1\.\d+[^ ]* \w+/\w+\n`)
	link := []string{"--link", "udp", "--local", "127.0.0.1"}
	tool := func(line string, more ...string) *program {
		return s.startTool(append(append(strings.Fields(line), link...), more...)...)
	}

	// Ping.
	port := freePort(t)
	serve := func() *program {
		p := tool("ddpping -l --udp-port " + port)
		p.awaitLine(`^ddpping: serving on SCTP port 5043 over udp$`)
		return p
	}
	server := serve()
	const head, reply = `DDPPING 127\.0\.0\.1 \(127\.0\.0\.1\) 56 bytes of data by send over udp, SCTP port 5043\n`,
		`56 bytes from 127\.0\.0\.1: seq=FEW op=send time=MS ms(, COUNT retransmissions?)?\n`
	to := "--encap-port " + port + " 127.0.0.1"
	tool("ddpping -n -c 3 -i 0.1 "+to).awaitEnd(0, head+`(`+reply+
		`){3}\n--- 127\.0\.0\.1 ddpping statistics ---\n3 pings transmitted, 3 received, 0% packet loss, time FEWms\nrtt min/avg/max/mdev = RTTS ms\n(COUNT retransmissions?\n)?`)

	// Outage, and return.
	trace := filepath.Join(s.bin, "outage.sqlog")
	ping := tool("ddpping -n -i 0.1 "+to, "--trace", trace)
	ping.awaitLine(`seq=3 `)
	server.sendInterrupt().awaitEnd(0, `(?s).*: connected, 56 bytes a ping\n.*: gone after 3 pings\n.*`)
	ping.awaitLine(`^(connection lost|no answer yet|From )`)
	ping.awaitLine(`^(no answer yet|From )`)
	server = serve()
	ping.awaitLine(`^answers again`)
	ping.awaitLine(`time=`)
	ping.sendInterrupt().awaitEnd(0, head+`(`+reply+
		`){3,}(connection lost.*\n|no answer yet for seq=FEW\n|From 127\.0\.0\.1 seq=FEW: .*\n|`+reply+
		`)+answers again after SECONDS s without\n(no answer yet for seq=FEW\n|`+reply+
		`)+\n--- 127\.0\.0\.1 ddpping statistics ---\nCOUNT pings transmitted, COUNT received,( \+COUNT errors,)? LOSS% packet loss, time COUNTms\nrtt min/avg/max/mdev = RTTS ms\n(COUNT retransmissions?\n)?1 outage, SECONDS s in all\n`)
	server.sendInterrupt().awaitEnd(0, `(?s).*: gone after COUNT pings\n`)
	s.startTool("ddpbench", "trace", trace).awaitEnd(0, `[2-9] associations, drawn in .*/outage\.sqlog\.html\n`)
	drawn := string(must.Get(os.ReadFile(trace + ".html"))(t))
	check.That(t,
		matchPattern(
			`(?s).*<td>client-1 with 127\.0\.0\.1:5043</td><td>association_started</td>.*association_closed</td><td>reason sctp: [^<]+</td>.*<td>client-FEW with .*new ESTABLISHED, old COOKIE-[A-Z]+.*`, drawn),
		"the trace is drawn as\n%s", drawn)

	// Bench, with a report.
	port = freePort(t)
	bench := tool("ddpbench write --udp-port " + port)
	bench.awaitLine(`^ SCTP port 5043 over udp$`)
	page := filepath.Join(s.bin, "out.html")
	said := tool("ddpbench write -n 500 -s 64K --encap-port "+port+" 127.0.0.1", "--report", page).awaitEnd(0,
		`(?s).* RDMA_Write BW Test\n.* #bytes     #iterations    BW peak\[MiB/sec\]    BW average\[MiB/sec\]   MsgRate\[Mpps\]\n`+
			` 65536      500              RATE +RATE *\t\t   0\.\d{6}\n.* Path            : 127\.0\.0\.1 -> 127\.0\.0\.1 active, primary, in use: cwnd BYTES\[B\], SRTT US\[usec\], MTU BYTES\[B\]\n.*`)
	_, row, _ := strings.Cut(said, "\n 65536 ")
	average := append(strings.Fields(row), "", "", "")[2]
	report := string(must.Get(os.ReadFile(page))(t))
	check.That(t, matchPattern(`(?s)<!doctype html>.*<th scope="row">Average, MiB/s</th><td>`+regexp.QuoteMeta(average)+
		`</td>.*<h2>Client</h2>.*<h2>Server, as it says of itself</h2>.*role="img" aria-label="Throughput, MiB/s over seconds; client, sent from [^;]* to [^;]*; server, received from .*`+
		`aria-label="Latency, percentiles, µs over % of messages; at most from US to US">.*</html>\n`, report),
		"the report is\n%s", report)

	// What a run is doing.
	run := tool("ddpbench write -D 3600 --metrics 127.0.0.1:0 --encap-port " + port + " 127.0.0.1")
	at := strings.TrimSuffix(strings.TrimPrefix(run.awaitLine(`^metrics: http`), "metrics: http://"), "/metrics")
	run.awaitLine(`#bytes`)
	const state = `(?s)client: 1 associations, 1 QPs, COUNT regions\nESTABLISHED +\d+ queued  port COUNT  peer 127\.0\.0\.1:5043  set up here, FEW\w+ old\n\t streams:.*\n\t path 127\.0\.0\.1:COUNT -> 127\.0\.0\.1:` +
		`COUNT: active primary cubic cwnd:BYTES ssthresh:(-|\d+) flight:\d+ rtt:MS/\d+\.\d{3} rto:COUNT mtu:BYTES errors:0\nQP 1 RTS  peer 127\.0\.0\.1:5043 .*`
	s.startTool("ddpping", "--stat", at).awaitEnd(0, state)
	text := getPage(t, "http://"+at+"/status/text")
	check.That(t, matchPattern(state, text), "the state as text is\n%s", text)
	html := getPage(t, "http://"+at+"/status/")
	check.That(t,
		matchPattern(
			`(?s)<!doctype html>.*<caption>1 associations</caption>.*<td>127\.0\.0\.1:5043</td><td>ESTABLISHED</td>.*</html>\n`, html), "the page is\n%s", html)
	run.sendInterrupt().awaitEnd(0, `(?s)metrics: http://.* 65536 +COUNT +0\.00 +RATE *\t\t .*\n`)
	bench.sendInterrupt().awaitEnd(0,
		`(?s).* 127\.0\.0\.1:COUNT: RDMA_Write BW, 65536 octets, 1 QPs: 500 messages in FEW\.\d{3} s, RATE MiB/sec\n.*`)
}
