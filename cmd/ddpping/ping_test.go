package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// invoke runs the tool and returns what it printed and its exit code.
func invoke(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

func TestSelfByEveryOperation(t *testing.T) {
	code, out, errs := invoke(t.Context(), "--self", "--link", "mem", "--op", "all", "-c", "2", "-i", "0", "-s", "5000")
	if code != exitWell || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		`DDPPING self \(.*\) 5000 data octets by all over memory of this process, SCTP port 5043\n`,
		`5000 octets from .*: seq=1 op=send time=[0-9.]+ ms\n`,
		`5000 octets from .*: seq=2 op=write time=[0-9.]+ ms\n`,
		`5000 octets from .*: seq=6 op=read time=[0-9.]+ ms\n`,
		`\n--- self ddpping statistics ---\n6 pings transmitted, 6 received, 0% loss, time [0-9]+ms\n`,
		`rtt min/avg/max/mdev = [0-9.]+/[0-9.]+/[0-9.]+/[0-9.]+ ms\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("output lacks %s:\n%s", want, out)
		}
	}
}

func TestSizesFromNothingToMegabytes(t *testing.T) {
	for _, size := range []string{"0", "1", "2000000"} {
		code, out, errs := invoke(t.Context(), "--self", "--link", "mem", "--op", "all", "-c", "1", "-q", "-s", size)
		if code != exitWell || !strings.Contains(out, "3 received, 0% loss") {
			t.Errorf("size %s: exit %d\n%s%s", size, code, out, errs)
		}
	}
}

func TestJSON(t *testing.T) {
	code, out, errs := invoke(t.Context(), "--self", "--link", "mem", "-c", "3", "-i", "0", "--json", "-D")
	if code != exitWell {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var types []string
	for line := range strings.Lines(out) {
		var v struct {
			Type     string
			Time     float64
			Good     bool
			RTT      float64 `json:"rtt_ms"`
			Received int
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if v.Time < 1e9 || v.Type == "reply" && (!v.Good || v.RTT <= 0) || v.Type == "summary" && v.Received != 3 {
			t.Errorf("line %s", line)
		}
		types = append(types, v.Type)
	}
	if got := strings.Join(types, " "); got != "start reply reply reply summary" {
		t.Errorf("lines are %s", got)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		args       []string
	}{
		{"no host", "one HOST is needed", nil},
		{"two hosts", "one HOST is needed", []string{"a", "b"}},
		{"serve and ping", "takes no HOST", []string{"-l", "a"}},
		{"unknown flag", "unknown flag", []string{"--nonsense"}},
		{"unknown operation", "--op fly: it is one of send, write, read, all", []string{"--op", "fly", "a"}},
		{"unknown link", "--link pigeon: it is one of raw, udp, tun, mem", []string{"--link", "pigeon", "127.0.0.1"}},
		{"mem without --self", "use it with --self", []string{"--link", "mem", "127.0.0.1"}},
		{"negative size", "the size is 0 to", []string{"-s", "-1", "a"}},
		{"local is no address", "--local x is not an IP address", []string{"--local", "x", "--link", "udp", "127.0.0.1"}},
		{"an MTU too small", "below 576", []string{"--self", "--link", "mem", "--mtu", "575"}},
		{"tun without an address", "--link tun needs --local", []string{"--link", "tun", "127.0.0.1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := invoke(t.Context(), tt.args...)
			if code != exitError || !strings.Contains(errs, tt.want) || !strings.HasPrefix(errs, "ddpping: ") || out != "" {
				t.Errorf("exit %d, printed %q and %q, want %q", code, out, errs, tt.want)
			}
		})
	}
	if code, out, _ := invoke(t.Context(), "--help"); code != exitWell || !strings.Contains(out, "--pcap") {
		t.Errorf("help: exit %d\n%s", code, out)
	}
}

func TestNoServer(t *testing.T) {
	code, _, errs := invoke(t.Context(), "--link", "udp", "--udp-port", "-1", "--encap-port", "1", "-w", "0.2", "127.0.0.1")
	if code == exitWell || errs == "" {
		t.Errorf("exit %d, printed %q", code, errs)
	}
}

// Interrupted, it prints what it has, and the ping that was cut off is no loss.
func TestInterruptPrintsTheSummary(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &watcher{when: "seq=2", do: cancel}
	var errs bytes.Buffer
	code := run(ctx, []string{"--self", "--link", "mem", "-i", "0.001"}, out, &errs)
	if code != exitWell || !strings.Contains(out.String(), "ddpping statistics") || !strings.Contains(out.String(), "rtt min/avg/max/mdev") {
		t.Errorf("exit %d\n%s%s", code, out, &errs)
	}
}

// watcher calls do when it has seen some text.
type watcher struct {
	bytes.Buffer
	when string
	do   func()
}

func (w *watcher) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.when) {
		w.do()
	}
	return w.Buffer.Write(p)
}

// against pings a server that handle plays badly.
func against(t *testing.T, args []string, handle func(e *end, client *hello, msg []byte)) (code int, out string) {
	t.Helper()
	sl, cl, err := mem.Pair(mem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := rdma.NewDevice(sl, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := rdma.NewDevice(cl, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	l, err := server.Listen(rdma.DefaultPort)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		req, err := l.Accept(t.Context())
		if err != nil {
			return
		}
		var h hello
		if err := h.decode(req.PrivateData()); err != nil {
			t.Error(err)
		}
		e, err := newEnd(server, int(h.size))
		if err != nil {
			t.Error(err)
			return
		}
		mine := e.hello()
		if err := req.Accept(e.qp, mine.encode()); err != nil {
			t.Error(err)
		}
		for {
			wc, err := e.next(t.Context())
			if err != nil || wc.Status != rdmap.StatusSuccess {
				return
			}
			if wc.Opcode == rdmap.WCRecv {
				handle(e, &h, e.message(wc))
				e.postRecv(int(wc.ID))
			}
		}
	}()
	o, err := parse(append(args, "host"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	code, err = o.ping(t.Context(), client, netip.AddrPortFrom(sl.LocalAddrs()[0].Addr(), rdma.DefaultPort), &b)
	if err != nil {
		t.Fatal(err)
	}
	return code, b.String()
}

func TestBadContentIsFound(t *testing.T) {
	code, out := against(t, []string{"-n", "-c", "1"}, func(e *end, _ *hello, msg []byte) {
		data := bytes.Clone(msg[headerLen:])
		data[len(data)-1] ^= 1
		e.send(opSend, verdictGood, 1, data)
	})
	if code != exitLost || !strings.Contains(out, "BAD CONTENT") || !strings.Contains(out, "1 with bad content") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestServersVerdictCounts(t *testing.T) {
	code, out := against(t, []string{"-n", "-c", "1"}, func(e *end, _ *hello, msg []byte) {
		e.send(opSend, verdictBad, 1, msg[headerLen:])
	})
	if code != exitLost || !strings.Contains(out, "BAD CONTENT") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestMissingReplyIsALoss(t *testing.T) {
	code, out := against(t, []string{"-n", "-c", "1", "-W", "0.05"}, func(*end, *hello, []byte) {})
	if code != exitLost || !strings.Contains(out, "no reply within 50ms: seq=1 op=send") || !strings.Contains(out, "0 received, 100% loss") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestServerRefusesHostileHellos(t *testing.T) {
	for _, tt := range []struct {
		name    string
		private []byte
		want    string
	}{
		{"not ours", []byte("hello"), "private data is not ddpping's"},
		{"more memory than a ping may take", (&hello{size: math.MaxUint32}).encode(), "too many"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sl, cl, err := mem.Pair(mem.Options{})
			if err != nil {
				t.Fatal(err)
			}
			server, _ := rdma.NewDevice(sl, nil)
			client, _ := rdma.NewDevice(cl, nil)
			defer server.Close()
			defer client.Close()
			l, err := server.Listen(1)
			if err != nil {
				t.Fatal(err)
			}
			go (&service{dev: server, out: io.Discard}).accept(t.Context(), l)
			e, err := newEnd(client, 1)
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.qp.Connect(t.Context(), netip.AddrPortFrom(sl.LocalAddrs()[0].Addr(), 1), tt.private)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// Data of different pings differs, so a reply to one cannot pass for another's.
func TestFillTellsPingsApart(t *testing.T) {
	seen := map[string]uint64{}
	b := make([]byte, 16)
	for seq := range uint64(1000) {
		fill(b, seq)
		if old, ok := seen[string(b)]; ok {
			t.Fatalf("pings %d and %d have the same data", old, seq)
		}
		seen[string(b)] = seq
	}
}
