package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/simlink"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// path is what lies between the tool and its server.
type path struct {
	*simlink.Net
	mu   sync.Mutex
	rtts []time.Duration // guarded by mu: of the pings, in turn; 0: nothing passes
	out  strings.Builder
}

var (
	serverAddr, clientAddr   = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	serverAddr2, clientAddr2 = netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.2") // on another network
)

// nextPing sets the path for the next ping.
func (p *path) nextPing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rtts[0] == 0 {
		p.Partition(serverAddr, clientAddr)
	} else {
		p.Heal(serverAddr, clientAddr)
		p.Connect(serverAddr, clientAddr, simnet.Params{Delay: p.rtts[0] / 2})
	}
	p.rtts = p.rtts[min(1, len(p.rtts)-1):]
}

// Write takes what the tool prints: once the acknowledgement of a reply has left too, the path is
// that of the next ping.
func (p *path) Write(b []byte) (int, error) {
	if s := string(b); strings.Contains(s, "time=") || strings.Contains(s, `"rtt_ms"`) {
		time.AfterFunc(100*time.Millisecond, p.nextPing)
	}
	return p.out.Write(b)
}

// runOverPath one end of the tool over the path.
func (p *path) runOverPath(ctx context.Context, t *testing.T, addrs []netip.Addr, out io.Writer, args ...string) int {
	o := must.Get(parseArgs(args, io.Discard))(t)
	o.link.Opener = func(bool) (rawio.Link, error) { return p.Link(addrs...), nil }
	return o.runAndReport(ctx, out, out)
}

// The whole tool pings a server of its own over a path of known delay and loss, in virtual time: so
// each figure is known to the letter.
func TestEveryFigureIsThatOfTheKnownPath(t *testing.T) {
	const ms = time.Millisecond
	head := func(bytes int, ops string) string {
		return fmt.Sprintf("DDPPING 10.0.0.1 (10.0.0.1) %d bytes of data by %s over raw, SCTP port 5043\n", bytes, ops)
	}
	stats := func(pings, rtts string) string {
		s := "\n--- 10.0.0.1 ddpping statistics ---\n" + pings + "\n"
		if rtts != "" {
			s += "rtt min/avg/max/mdev = " + rtts + " ms\n"
		}
		return s
	}
	ping := func(bytes, seq int, op, time string) string {
		return fmt.Sprintf("%d bytes from 10.0.0.1: seq=%d op=%s time=%s\n", bytes, seq, op, time)
	}
	sends := func(from, to int, time string) (s string) {
		for seq := from; seq <= to; seq++ {
			s += ping(56, seq, "send", time)
		}
		return s
	}
	noAnswer := func(from, to int) (s string) {
		for seq := from; seq <= to; seq++ {
			s += fmt.Sprintf("no answer yet for seq=%d\n", seq)
		}
		return s
	}
	const aborted = `sctp: association aborted by the peer`
	const refused = "From 10.0.0.1 seq=%d: the host is up but refused the association: is the server running on " +
		"that --port? (" + aborted + ")\n"
	const start = `"addr":"10.0.0.1","host":"10.0.0.1","link":"raw","op":"send","port":5043,"size":56,"type":"start"`
	object := func(lines ...string) string { return "{" + strings.Join(lines, "}\n{") + "}\n" }
	answer := func(seq, rtt int) string {
		return fmt.Sprintf(
			`"bytes":56,"good":true,"op":"send","paths":["10.0.0.1"],"retransmissions":0,"rtt_ms":%d,"seq":%d,"type":"reply"`, rtt, seq)
	}
	uneven, steady, near := []time.Duration{5 * ms, 10 * ms, 30 * ms, 115 * ms}, []time.Duration{10 * ms},
		[]time.Duration{8 * ms}
	for _, tt := range []struct {
		name, args string
		rtts       []time.Duration
		at         string // what happens then: ^C; the server ends, serves again, cut and heal
		want       string
		exit       string
		said       string // by the server
	}{
		{"round trips that differ", "-c 4", uneven, "", head(56, "send") + ping(56, 1, "send", "5.000 ms") +
			ping(56, 2, "send", "10.0 ms") +
			ping(56, 3, "send", "30.0 ms, 1 retransmission") + ping(56, 4, "send", "115 ms") +
			stats("4 pings transmitted, 4 received, 0% packet loss, time 3115ms", "5.000/40.000/115.000/44.300") +
			"1 retransmission\n", "exit 0 after 3.36s",
			"ddpping: serving on SCTP port 5043 over raw\n[946684800.012500] CLIENT: connected, 56 bytes a " +
				"ping\n[946684803.187500] CLIENT: gone after 4 pings\n"},
		{"each operation in one round trip", "--op all -c 6 -i 0.5 -s 100 -D", steady, "", head(100, "all") +
			"[946684800.040000] " + ping(100, 1, "send", "10.0 ms") + "[946684800.050000] " +
			ping(100, 2, "write", "10.0 ms") + "[946684800.060000] " + ping(100, 3, "read", "10.0 ms") +
			"[946684800.560000] " + ping(100, 4, "send", "10.0 ms") + "[946684800.570000] " +
			ping(100, 5, "write", "10.0 ms") + "[946684800.580000] " + ping(100, 6, "read", "10.0 ms") +
			stats("6 pings transmitted, 6 received, 0% packet loss, time 550ms", "10.000/10.000/10.000/0.000"),
			"exit 0 after 600ms", ""},
		{"a count is of pings, whatever the operations", "--op all -c 2 -3", steady, "",
			head(56, "all") + ping(56, 1, "send", "10.000 ms") + ping(56, 2, "write", "10.000 ms") +
				stats("2 pings transmitted, 2 received, 0% packet loss, time 20ms", "10.000/10.000/10.000/0.000"),
			"exit 0 after 70ms", ""},
		{"pings go on while nothing answers, and come late", "-c 6", steady, "1.5s cut, 4.5s heal",
			head(56, "send") + sends(1, 2, "10.0 ms") + noAnswer(3, 5) +
				"answers again after 3.03 s without\n" + ping(56, 3, "send", "3031 ms, 2 retransmissions") +
				ping(56, 4, "send", "2031 ms") + ping(56, 5, "send", "1031 ms") + ping(56, 6, "send", "31.3 ms") +
				stats("6 pings transmitted, 6 received, 0% packet loss, time 5031ms",
					"10.000/1024.219/3031.328/1160.885") + "6 retransmissions\n1 outage, 3.03 s in all\n",
			"exit 0 after 5.081328124s", ""},
		{"nothing passes at first", "-c 6", steady, "1ms cut, 2.2s heal", head(56, "send") + noAnswer(1, 3) +
			"answers again after 3.04 s without\n" + sends(4, 6, "10.0 ms") +
			stats("6 pings transmitted, 3 received, 50% packet loss, time 5040ms", "10.000/10.000/10.000/0.000") +
			"1 outage, 3.04 s in all\n", "exit 0 after 5.06s", ""},
		{"the server ends, and returns", "-c 6", steady, "1.5s end, 3.5s serve",
			head(56, "send") + sends(1, 2, "10.0 ms") +
				"connection lost: rdmap: stream lost: " + aborted + ": User-Initiated Abort \"transport closed\"\n" +
				noAnswer(3, 5) + "answers again after 3.56 s without\n" + ping(56, 6, "send", "10.0 ms") +
				stats("6 pings transmitted, 3 received, 50% packet loss, time 5040ms", "10.000/10.000/10.000/0.000") +
				"1 outage, 3.56 s in all\n", "exit 0 after 5.09s", ""},
		{"the server is restarted between two pings", "-c 5 -i 0.2", steady, "500ms end, 550ms serve",
			head(56, "send") + sends(1, 3, "10.0 ms") +
				"connection lost: rdmap: stream lost: " + aborted +
				": User-Initiated Abort \"transport closed\"\nanswers again after 0.17 s without\n" +
				sends(4, 5, "10.0 ms") +
				stats("5 pings transmitted, 5 received, 0% packet loss, time 840ms", "10.000/10.000/10.000/0.000") +
				"1 outage, 0.17 s in all\n", "exit 0 after 890ms", ""},
		{"another server is there after the outage", "-c 14", steady, "1.5s cut, 1.6s end, 1.7s serve, 10s heal",
			head(56, "send") + sends(1, 2, "10.0 ms") + noAnswer(3, 11) +
				"connection lost, and 10 pings with it: rdmap: stream lost: " + aborted +
				"\nanswers again after 10.04 s without\n" + sends(13, 14, "10.0 ms") +
				stats("14 pings transmitted, 4 received, 71.43% packet loss, time 13040ms",
					"10.000/10.000/10.000/0.000") + "24 retransmissions\n1 outage, 10.04 s in all\n",
			"exit 0 after 13.09s", ""},
		{"JSON", "-c 2 -s 9 --json -D", steady, "500ms cut, 2.2s heal", `{"addr":"10.0.0.1","host":"10.0.0.1","link":"raw","op":"send","port":5043,"size":9,"time":946684800,"type":"start"}
{"bytes":9,"good":true,"op":"send","paths":["10.0.0.1"],"retransmissions":0,"rtt_ms":10,"seq":1,"time":946684800.04,"type":"reply"}
{"seq":2,"time":946684802.03,"type":"no_answer"}
{"seconds":3.0334375,"text":"answers again after 3.03 s without","time":946684804.063437,"type":"outage"}
{"bytes":9,"good":true,"op":"send","paths":["10.0.0.1"],"retransmissions":1,"rtt_ms":3033.4375,"seq":2,"time":946684804.063437,"type":"reply"}
{"bad":0,"errors":0,"loss_percent":0,"outage_seconds":3.0334375,"outages":1,"received":2,"retransmissions":5,"rtt_avg_ms":1521.71875,"rtt_max_ms":3033.4375,"rtt_mdev_ms":1511.71875,"rtt_min_ms":10,"time":946684804.063437,"time_ms":4033,"transmitted":2,"type":"summary"}
`, "exit 0 after 4.0834375s", ""},
		{"hundred of them, quiet", "-c 100 -q -i 0", near, "", head(56, "send") + stats("100 pings transmitted, 100 received, 0% packet loss, time 800ms", "8.000/8.000/8.000/0.000"), "exit 0 after 840ms", ""},
		{"as fast as replies come", "-c 4 -f", near, "", head(56, "send") + ".\b \b.\b \b.\b \b.\b \b" + stats("4 pings transmitted, 4 received, 0% packet loss, time 32ms", "8.000/8.000/8.000/0.000"), "exit 0 after 72ms", ""},
		{"a hundred a second, if replies do not come", "-c 4 -f", []time.Duration{35 * ms}, "", head(56, "send") + "....\b \b\b \b\b \b\b \b" + stats("4 pings transmitted, 4 received, 0% packet loss, time 65ms", "35.000/35.000/35.000/0.000"), "exit 0 after 240ms", ""},
		{"a flood slowed down", "-c 3 -f -i 0.1", steady, "", head(56, "send") + ".\b \b.\b \b.\b \b" + stats("3 pings transmitted, 3 received, 0% packet loss, time 210ms", "10.000/10.000/10.000/0.000"), "exit 0 after 260ms", ""},
		{"adaptive", "-c 3 -A -v", steady, "", head(56, "send") + sends(1, 3, "10.0 ms") + stats("3 pings transmitted, 3 received, 0% packet loss, time 30ms", "10.000/10.000/10.000/0.000") + "path 10.0.0.2 -> 10.0.0.1: active, primary, 3 answers, srtt 10.000 ms, rto 1s, mtu 65535 bytes, cwnd 131000 bytes\n", "exit 0 after 80ms", ""},
		{"several under way", "-c 4 -i 0.1 -O --op write", []time.Duration{250 * ms}, "",
			head(56, "write") + noAnswer(1, 2) + ping(56, 1, "write", "250 ms") + noAnswer(3, 3) +
				ping(56, 2, "write", "250 ms") + ping(56, 3, "write", "250 ms") + ping(56, 4, "write", "250 ms") +
				stats("4 pings transmitted, 4 received, 0% packet loss, time 550ms", "250.000/250.000/250.000/0.000"),
			"exit 0 after 1.8s", ""},
		// the first two come before the session
		{"as many under way as there is memory for", "-c 67 -i 0.01 -q", []time.Duration{700 * ms}, "",
			head(56, "send") +
				stats("67 pings transmitted, 65 received, 2.985% packet loss, time 3500ms",
					"700.000/700.000/700.000/0.000") + "1 outage, 2.80 s in all\n", "exit 0 after 4.9s", ""},
		{"until a deadline when no more may be under way", "-w 2.77 -i 0.01 -q", []time.Duration{700 * ms}, "",
			head(56, "send") +
				stats("66 pings transmitted, 0 received, 100% packet loss, time 2770ms", ""), "exit 1 after 2.77s", ""},
		{"until a deadline", "-w 1.5", steady, "", head(56, "send") + sends(1, 2, "10.0 ms") +
			stats("2 pings transmitted, 2 received, 0% packet loss, time 1470ms", "10.000/10.000/10.000/0.000"),
			"exit 0 after 1.52s", ""},
		{"a count within the deadline", "-w 1.5 -c 2", steady, "", head(56, "send") + sends(1, 2, "10.0 ms") +
			stats("2 pings transmitted, 2 received, 0% packet loss, time 1010ms", "10.000/10.000/10.000/0.000"),
			"exit 0 after 1.06s", ""},
		{"fewer than the count at the deadline", "-w 1.5 -c 3", steady, "", head(56, "send") + sends(1, 2, "10.0 ms") +
			stats("2 pings transmitted, 2 received, 0% packet loss, time 1470ms", "10.000/10.000/10.000/0.000"),
			"exit 1 after 1.52s", ""},
		{"until a deadline before the first reply", "-w 0.035", steady, "", head(56, "send") + stats("1 pings transmitted, 0 received, 100% packet loss, time 5ms", ""), "exit 1 after 35ms", ""},
		{"interrupted: the ping that was cut off is no reason to fail, nor to be named", "-i 0.5 -O",
			[]time.Duration{10 * ms, 400 * ms}, "800ms ^C", head(56, "send") + sends(1, 1, "10.0 ms") +
				stats("2 pings transmitted, 1 received, 50% packet loss, time 770ms", "10.000/10.000/10.000/0.000") +
				"2 retransmissions\n", "exit 0 after 800ms", ""},
		{"JSON of a flood that nobody answers for long", "-c 2 -f -O --json", []time.Duration{35 * ms}, "",
			object(start, `"seq":1,"type":"no_answer"`, answer(1, 35), answer(2, 35),
				`"bad":0,"errors":0,"loss_percent":0,"outage_seconds":0,"outages":0,"received":2,"retransmissions":0,"rtt_avg_ms":35,"rtt_max_ms":35,"rtt_mdev_ms":0,"rtt_min_ms":35,"time_ms":45,"transmitted":2,"type":"summary"`), "exit 0 after 220ms", ""},
		{"JSON where nobody answers", "-c 1 -W 1.5 --json", []time.Duration{0}, "",
			object(start, `"seq":1,"type":"no_answer"`,
				`"text":"no answer: check the address, that the server runs with the same --link and --port, and firewalls in between","type":"unreachable"`,
				`"bad":0,"errors":0,"loss_percent":100,"outage_seconds":1.5,"outages":1,"received":0,"retransmissions":0,"rtt_avg_ms":0,"rtt_max_ms":0,"rtt_mdev_ms":0,"rtt_min_ms":0,"time_ms":1500,"transmitted":1,"type":"summary"`), "exit 1 after 1.5s", ""},
		{"JSON of a server that ends", "-w 2.4 --json", steady, "1.5s end", object(start, answer(1, 10), answer(2, 10),
			`"pings":0,"text":"connection lost: rdmap: stream lost: `+aborted+
				`: User-Initiated Abort \"transport closed\"","type":"lost"`,
			`"bad":0,"errors":0,"loss_percent":33.333333333333336,"outage_seconds":0.895,"outages":1,"received":2,"retransmissions":0,"rtt_avg_ms":10,"rtt_max_ms":10,"rtt_mdev_ms":0,"rtt_min_ms":10,"time_ms":2370,"transmitted":3,"type":"summary"`), "exit 0 after 2.4s", ""},
		{"nobody answers", "-c 2 -W 1.5", []time.Duration{0}, "", head(56, "send") + noAnswer(1, 1) +
			"no answer: check the address, that the server runs with the same --link and --port, and firewalls " +
			"in between\n" + noAnswer(2, 2) +
			stats("2 pings transmitted, 0 received, 100% packet loss, time 2500ms", ""), "exit 1 after 2.5s", ""},
		{"nobody listens", "--port 9 -c 2", steady, "", strings.Replace(head(56, "send"), "5043", "9", 1) +
			fmt.Sprintf(refused+refused, 1, 2) +
			stats("2 pings transmitted, 0 received, +2 errors, 100% packet loss, time 1010ms", ""),
			"exit 1 after 1.01s", ""},
		{"as many errors as the count within the deadline", "--port 9 -c 2 -w 5", steady, "",
			strings.Replace(head(56, "send"), "5043", "9", 1) + fmt.Sprintf(refused+refused, 1, 2) +
				stats("2 pings transmitted, 0 received, +2 errors, 100% packet loss, time 1010ms", ""),
			"exit 1 after 1.01s", ""},
		{"an error is no answer that the next ping follows at once", "--port 9 -A", steady, "500ms ^C",
			strings.Replace(head(56, "send"), "5043", "9", 1) + fmt.Sprintf(refused, 1) +
				stats("1 pings transmitted, 0 received, +1 errors, 100% packet loss, time 500ms", ""),
			"exit 1 after 500ms", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &path{Net: simlink.New(1), rtts: tt.rtts}
				p.nextPing()
				var said *strings.Builder
				serve := func() func() {
					said = new(strings.Builder) // its sessions may have a last word beside the next one
					out := said
					serving, stop := context.WithCancel(t.Context())
					served := make(chan int)
					go func() { served <- p.runOverPath(serving, t, []netip.Addr{serverAddr}, out, "-l", "-D") }()
					return sync.OnceFunc(func() {
						stop()
						check.Equal(t, "the server's exit", <-served, exitOK)
					})
				}
				stop := serve()
				synctest.Wait()
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				for _, plan := range strings.Split(tt.at, ", ") {
					at, what, _ := strings.Cut(plan, " ")
					after, _ := time.ParseDuration(at)
					do := map[string]func(){"^C": interrupt, "end": func() { stop() },
						"serve": func() { stop = serve() },
						"cut":   func() { p.Partition(serverAddr, clientAddr) },
						"heal":  func() { p.Heal(serverAddr, clientAddr) }, "": nil}[what]
					if do != nil {
						time.AfterFunc(after, do)
					}
				}
				begun := time.Now()
				code := p.runOverPath(ctx, t, []netip.Addr{clientAddr}, p,
					append(strings.Fields(tt.args), "-n", serverAddr.String())...)
				exit := fmt.Sprintf("exit %d after %v", code, time.Since(begun))
				check.That(t, exit == tt.exit && p.out.String() == tt.want, "%s\n%s\nwant %s\n%s", exit, &p.out,
					tt.exit, tt.want)
				synctest.Wait()
				stop()
				synctest.Wait()
				from := regexp.MustCompile(`10.0.0.2:\d+`).FindString(said.String())
				want := strings.ReplaceAll(tt.said, "CLIENT", from)
				check.That(t, tt.said == "" || said.String() == want, "the server says\n%s\nwant\n%s", said, want)
			})
		})
	}
}

// Of two paths each shows what becomes of it, and an answer by which it has come.
func TestEachPathIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &path{Net: simlink.New(1), rtts: []time.Duration{10 * time.Millisecond}}
		p.Connect(serverAddr, clientAddr, simnet.Params{Delay: 5 * time.Millisecond})
		p.Connect(serverAddr2, clientAddr2, simnet.Params{Delay: 20 * time.Millisecond})
		serving, stop := context.WithCancel(t.Context())
		served := make(chan int)
		go func() {
			served <- p.runOverPath(serving, t, []netip.Addr{serverAddr, serverAddr2}, io.Discard, "-l", "--local",
				"10.0.0.1,10.1.0.1")
		}()
		synctest.Wait()
		time.AfterFunc(1500*time.Millisecond, func() { p.Partition(serverAddr, clientAddr) })
		var out strings.Builder
		code := p.runOverPath(t.Context(), t, []netip.Addr{clientAddr, clientAddr2}, &out, "-n", "-c", "5", "-I",
			"10.0.0.2,10.1.0.2", serverAddr.String())
		const want = `DDPPING 10.0.0.1 (10.0.0.1) 56 bytes of data by send over raw, SCTP port 5043
path 10.0.0.2 -> 10.0.0.1: active, primary
path 10.1.0.2 -> 10.1.0.1: unconfirmed
56 bytes from 10.0.0.1: seq=1 op=send time=10.0 ms via 10.0.0.1
path 10.1.0.2 -> 10.1.0.1: active
56 bytes from 10.0.0.1: seq=2 op=send time=10.0 ms via 10.0.0.1
56 bytes from 10.0.0.1: seq=3 op=send time=92.2 ms via 10.1.0.1, 1 retransmission
56 bytes from 10.0.0.1: seq=4 op=send time=40.0 ms via 10.1.0.1
path 10.0.0.2 -> 10.0.0.1: does not answer, primary
56 bytes from 10.0.0.1: seq=5 op=send time=40.0 ms via 10.1.0.1

--- 10.0.0.1 ddpping statistics ---
5 pings transmitted, 5 received, 0% packet loss, time 4040ms
rtt min/avg/max/mdev = 10.000/38.447/92.234/30.055 ms
1 retransmission
path 10.0.0.2 -> 10.0.0.1: does not answer, primary, 2 answers, srtt 10.000 ms, rto 2s, mtu 65535 bytes, cwnd 65500 bytes
path 10.1.0.2 -> 10.1.0.1: active, 3 answers, srtt 40.000 ms, rto 1s, mtu 65535 bytes, cwnd 131000 bytes
`
		check.That(t, code == exitOK && out.String() == want, "exit %d\n%s\nwant\n%s", code, &out, want)
		p.Heal(serverAddr, clientAddr)
		out.Reset()
		p.runOverPath(t.Context(), t, []netip.Addr{clientAddr, clientAddr2}, &out, "-n", "-c", "1", "--json", "-I",
			"10.0.0.2,10.1.0.2", serverAddr.String())
		const object = `{"local":"10.0.0.2","remote":"10.0.0.1","state":"active, primary","text":"path 10.0.0.2 -\u003e 10.0.0.1: active, primary","type":"path"}`
		check.That(t, strings.Contains(out.String(), object), "%s\nwant\n%s", &out, object)
		stop()
		<-served
	})
}
