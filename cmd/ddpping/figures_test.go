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

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/internal/simlink"
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

var serverAddr, clientAddr = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")

// advance sets the path for the next ping.
func (p *path) advance() {
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

// Write takes what the tool prints: once the acknowledgement of a reply has left too, the path is that of the next ping.
func (p *path) Write(b []byte) (int, error) {
	if s := string(b); strings.Contains(s, "seq=") || strings.Contains(s, `"seq"`) {
		time.AfterFunc(100*time.Millisecond, p.advance)
	}
	return p.out.Write(b)
}

// runs one end of the tool over the path.
func (p *path) runs(ctx context.Context, t *testing.T, addr netip.Addr, out io.Writer, args ...string) int {
	o := must.Get(parse(args, io.Discard))(t)
	o.link.Opener = func(bool) (rawio.Link, error) { return p.Link(addr), nil }
	return o.execute(ctx, out, out)
}

// The whole tool pings a server of its own over a path of known delay and loss, in virtual time: so each figure is known to the letter.
func TestEveryFigureIsThatOfTheKnownPath(t *testing.T) {
	const ms = time.Millisecond
	head := func(octets int, ops string) string {
		return fmt.Sprintf("DDPPING 10.0.0.1 (10.0.0.1) %d data octets by %s over raw, SCTP port 5043\n", octets, ops)
	}
	stats := func(pings, rtts string) string {
		s := "\n--- 10.0.0.1 ddpping statistics ---\n" + pings + "\n"
		if rtts != "" {
			s += "rtt min/avg/max/mdev = " + rtts + " ms\n"
		}
		return s
	}
	ping := func(octets, seq int, op, time string) string {
		return fmt.Sprintf("%d octets from 10.0.0.1: seq=%d op=%s time=%s ms\n", octets, seq, op, time)
	}
	uneven, steady, lost := []time.Duration{5 * ms, 10 * ms, 30 * ms, 115 * ms}, []time.Duration{10 * ms}, []time.Duration{10 * ms, 0}
	for _, tt := range []struct {
		name, args string
		rtts       []time.Duration
		stop, end  time.Duration // when the tool gets a ^C, and the server
		want       string
		exit       string
		said       string // by the server
	}{
		{"round trips that differ", "-c 4", uneven, 0, 0, head(56, "send") + ping(56, 1, "send", "5.000") + ping(56, 2, "send", "10.0") +
			ping(56, 3, "send", "30.0") + ping(56, 4, "send", "115") + stats("4 pings transmitted, 4 received, 0% loss, time 3115ms", "5.000/40.000/115.000/44.300"), "exit 0 after 3.36s",
			"ddpping: serving on SCTP port 5043 over raw\n[946684800.012500] CLIENT: connected, 56 octets a ping\n[946684803.187500] CLIENT: gone after 4 pings\n"},
		{"each operation in one round trip", "--op all -c 2 -i 0.5 -s 100 -D", steady, 0, 0, head(100, "all") +
			"[946684800.040000] " + ping(100, 1, "send", "10.0") + "[946684800.050000] " + ping(100, 2, "write", "10.0") + "[946684800.060000] " + ping(100, 3, "read", "10.0") +
			"[946684800.560000] " + ping(100, 4, "send", "10.0") + "[946684800.570000] " + ping(100, 5, "write", "10.0") + "[946684800.580000] " + ping(100, 6, "read", "10.0") +
			stats("6 pings transmitted, 6 received, 0% loss, time 550ms", "10.000/10.000/10.000/0.000"), "exit 0 after 600ms", ""},
		{"one of three is late", "-c 3 -W 0.5 -i 1.1", []time.Duration{10 * ms, 0, 10 * ms}, 0, 0, head(56, "send") + ping(56, 1, "send", "10.0") +
			"no reply within 500ms: seq=2 op=send\n" + ping(56, 2, "send", "1120") + ping(56, 3, "send", "20.0") + // the third tells that the second is lost
			stats("3 pings transmitted, 3 received, 0% loss, time 2220ms", "10.000/383.333/1120.000/520.918"), "exit 1 after 2.27s", ""},
		{"two of three are lost", "-c 3 -W 0.5", lost, 0, 0, head(56, "send") + ping(56, 1, "send", "10.0") +
			"no reply within 500ms: seq=2 op=send\nno reply within 500ms: seq=3 op=send\n" + stats("3 pings transmitted, 1 received, 66.67% loss, time 2500ms", "10.000/10.000/10.000/0.000"), "exit 1 after 4.53s", ""},
		{"JSON", "-c 2 -W 0.5 -s 9 --json -D", lost, 0, 0, `{"addr":"10.0.0.1","host":"10.0.0.1","link":"raw","op":"send","port":5043,"size":9,"time":946684800.03,"type":"start"}
{"good":true,"octets":9,"op":"send","rtt_ms":10,"seq":1,"time":946684800.04,"type":"reply"}
{"op":"send","seq":2,"time":946684801.53,"type":"missing"}
{"bad":0,"loss_percent":50,"received":1,"rtt_avg_ms":10,"rtt_max_ms":10,"rtt_mdev_ms":0,"rtt_min_ms":10,"time":946684801.53,"time_ms":1500,"transmitted":2,"type":"summary"}
`, "exit 1 after 3.53s", ""},
		{"hundred of them, quiet", "-c 100 -q -i 0", steady, 0, 0, head(56, "send") + stats("100 pings transmitted, 100 received, 0% loss, time 1000ms", "10.000/10.000/10.000/0.000"), "exit 0 after 1.05s", ""},
		{"as fast as replies come", "-c 4 -f", steady, 0, 0, head(56, "send") + ".\b \b.\b \b.\b \b.\b \b" + stats("4 pings transmitted, 4 received, 0% loss, time 40ms", "10.000/10.000/10.000/0.000"), "exit 0 after 90ms", ""},
		{"a flood slowed down", "-c 3 -f -i 0.1", steady, 0, 0, head(56, "send") + ".\b \b.\b \b.\b \b" + stats("3 pings transmitted, 3 received, 0% loss, time 210ms", "10.000/10.000/10.000/0.000"), "exit 0 after 260ms", ""},
		{"until a deadline", "-w 1.5", steady, 0, 0, head(56, "send") + ping(56, 1, "send", "10.0") + ping(56, 2, "send", "10.0") +
			stats("2 pings transmitted, 2 received, 0% loss, time 1470ms", "10.000/10.000/10.000/0.000"), "exit 0 after 1.52s", ""},
		{"until a deadline before the first reply", "-w 0.035", steady, 0, 0, head(56, "send") + stats("1 pings transmitted, 0 received, 100% loss, time 5ms", ""), "exit 1 after 60ms", ""},
		{"interrupted: the ping that was cut off is no loss", "-i 0.5", []time.Duration{10 * ms, 400 * ms}, 750 * ms, 0, head(56, "send") + ping(56, 1, "send", "10.0") +
			stats("2 pings transmitted, 1 received, 50% loss, time 720ms", "10.000/10.000/10.000/0.000"), "exit 0 after 1.73s", ""},
		{"the server ends", "", steady, 0, 1500 * ms, head(56, "send") + ping(56, 1, "send", "10.0") + ping(56, 2, "send", "10.0") +
			stats("2 pings transmitted, 2 received, 0% loss, time 1475ms", "10.000/10.000/10.000/0.000") + "ddpping: the host is up but refused the association: " +
			"is the server running on that --port? (sctp: association aborted by the peer: User-Initiated Abort \"transport closed\")\n", "exit 2 after 1.505s", ""},
		{"nobody answers", "-W 1.5", []time.Duration{0}, 0, 0, "ddpping: no answer: check the address, that the server runs with the same --link and --port, and firewalls in between\n", "exit 1 after 1.5s", ""},
		{"nobody listens", "-p 9", steady, 0, 0, "ddpping: the host is up but refused the association: is the server running on that --port? (sctp: association aborted by the peer)\n", "exit 2 after 10ms", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &path{Net: simlink.New(1), rtts: tt.rtts}
				p.advance()
				serving, stop := context.WithCancel(t.Context())
				served := make(chan int)
				var said strings.Builder
				go func() { served <- p.runs(serving, t, serverAddr, &said, "-l", "-D") }()
				synctest.Wait()
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				for _, end := range []struct {
					after time.Duration
					do    func()
				}{{tt.stop, interrupt}, {tt.end, stop}} {
					if end.after > 0 {
						time.AfterFunc(end.after, end.do)
					}
				}
				begun := time.Now()
				code := p.runs(ctx, t, clientAddr, p, append(strings.Fields(tt.args), "-n", serverAddr.String())...)
				if exit := fmt.Sprintf("exit %d after %v", code, time.Since(begun)); exit != tt.exit || p.out.String() != tt.want {
					t.Errorf("%s\n%s\nwant %s\n%s", exit, &p.out, tt.exit, tt.want)
				}
				stop()
				check.Equal(t, "the server's exit", <-served, exitWell)
				synctest.Wait()
				from := regexp.MustCompile(`10.0.0.2:\d+`).FindString(said.String())
				if want := strings.ReplaceAll(tt.said, "CLIENT", from); tt.said != "" && said.String() != want {
					t.Errorf("the server says\n%s\nwant\n%s", &said, want)
				}
			})
		})
	}
}
