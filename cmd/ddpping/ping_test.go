package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// runTool runs the tool and returns what it printed and its exit code.
func runTool(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = runProgram(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

func TestSizesFromNothingToMegabytes(t *testing.T) {
	for _, size := range []string{"0", "1", "2000000"} {
		code, out, errs := runTool(t.Context(), "--self", "--link", "mem", "--op", "all", "-c", "3", "-q", "-p",
			"c0ffee", "-s", size)
		check.That(t, code == exitOK && strings.Contains(out, "over memory of this process") &&
			strings.Contains(out, "3 received, 0% packet loss"), "size %s: exit %d\n%s%s", size, code, out, errs)
	}
}

// Over TCP the answers are the same, and nobody speaks of SCTP.
func TestPingOverTCP(t *testing.T) {
	for _, flags := range [][]string{{}, {"--no-crc"}, {"--json"}} {
		code, out, errs := runTool(t.Context(), append([]string{"--self", "--link", "tcp", "--op", "all", "-c", "6",
			"-i", "0", "-s", "100000", "-v"}, flags...)...)
		check.That(t, code == exitOK && strings.Contains(out, "TCP on loopback") && !strings.Contains(out, "SCTP") &&
			(strings.Contains(out, "6 received, 0% packet loss") || strings.Contains(out, `"received":6`)),
			"%v: exit %d\n%s%s", flags, code, out, errs)
	}
	// Nobody listens on port 1 of this host.
	code, out, errs := runTool(t.Context(), "--link", "tcp", "--port", "1", "-c", "1", "127.0.0.1")
	check.That(t, code == exitLost && strings.Contains(out, "the host is up but nothing listens there"),
		"exit %d\n%s%s", code, out, errs)
}

func TestMistakesAreNamed(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		args       []string
	}{
		{"no host", "one HOST is needed", nil},
		{"two hosts", "one HOST is needed", []string{"a", "b"}},
		{"serve and ping", "takes no HOST", []string{"-l", "a"}},
		{"serve and ping itself", "takes no HOST and no --self", []string{"-l", "--self"}},
		{"ask and ping", "--stat asks a tool", []string{"--stat", "127.0.0.1:1", "a"}},
		{"ask and serve", "--stat asks a tool", []string{"--stat", "127.0.0.1:1", "-l"}},
		{"ask and ping itself", "--stat asks a tool", []string{"--stat", "127.0.0.1:1", "--self"}},
		{"unknown flag", "unknown flag", []string{"--nonsense"}},
		{"unknown operation", "--op fly: it is one of send, write, read, all", []string{"--op", "fly", "a"}},
		{"unknown link", "--link pigeon: it is one of raw, udp, tun, tcp, mem", []string{"--link", "pigeon", "127.0.0.1"}},
		{"mem without --self", "use it with --self", []string{"--link", "mem", "127.0.0.1"}},
		{"no size", "-s -1: it is a number of bytes", []string{"-s", "-1", "a"}},
		{"too large a size", "-s 17M: it is a number of bytes, such as 4096, 64K or 1M, from 0 to 16M", []string{"-s", "17M", "a"}},
		{"no count", "-c 0: it is a whole number, from 1 to 2147483647\n", []string{"-c", "0", "a"}},
		{"no number", "-c x: it is a whole number, from 1 to 2147483647\n", []string{"-c", "x", "a"}},
		{"no port", "--port 70000: it is a port, from 1 to 65535\n", []string{"--port", "70000", "a"}},
		{"no hex", "-p zz: it is bytes in hex", []string{"-p", "zz", "a"}},
		{"somebody else's address", "this host does not have the address that --local or -I names", []string{"-I", "192.0.2.9", "--link", "udp", "127.0.0.1"}},
		{"no TTL", "-t 256: it is a whole number, from 1 to 255", []string{"-t", "256", "a"}},
		{"no TTL at all", "-t 0: it is a whole number, from 1 to 255", []string{"-t", "0", "a"}},
		{"no traffic class", "-Q 0x100: it is a whole number, from 0 to 255", []string{"-Q", "0x100", "a"}},
		{"bits of ECN", "the lower two bits are those of ECN", []string{"-Q", "0xb9", "a"}},
		{"no way to find the MTU", "-M probe: it is one of do, want, dont", []string{"-M", "probe", "a"}},
		{"too long a pattern", "a pattern is 1 to 16 bytes", []string{"-p", "0123456789abcdef0123456789abcdef01", "a"}},
		{"two families", "-4 and -6", []string{"-46", "a"}},
		{"the other family", "127.0.0.1 has no IPv6 address", []string{"-6", "127.0.0.1"}},
		{"what makes no sense", "-U: all times here are those that the program sees", []string{"-U", "a"}},
		{"what makes no sense, with a value", "-m: packets have no firewall mark", []string{"-m", "5", "a"}},
		{"a preload", "ping's preload is not offered", []string{"-l", "3", "a"}},
		{"local is no address", "--local x is not an IP address, and no interface", []string{"--local", "x", "--link", "udp", "127.0.0.1"}},
		{"an MTU too small", "--mtu 575: it is a whole number, 0 or from 576 to 65535", []string{"--self", "--link", "mem", "--mtu", "575"}},
		{"an MTU of TCP", "--mtu goes with SCTP", []string{"--mtu", "1500", "--link", "tcp", "127.0.0.1"}},
		{"tun without an address", "--link tun needs --local", []string{"--link", "tun", "127.0.0.1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := runTool(must.Ended(), tt.args...) // where it goes on, it does not go on for long
			check.That(t, code == exitError && strings.Contains(errs, tt.want) &&
				strings.HasPrefix(errs, "ddpping: ") && !strings.Contains(errs, "%!") && out == "",
				"exit %d, printed %q and %q, want %q", code, out, errs, tt.want)
		})
	}
	for flag, want := range map[string]string{"--help": "--pcap", "-h": "--pcap", "--version": "ddpping of rddp ",
		"-V": "ddpping of rddp "} {
		code, out, errs := runTool(t.Context(), flag)
		check.That(t, code == exitOK && strings.Contains(out, want) && errs == "", "%s: exit %d\n%s%s", flag, code,
			out, errs)
	}
}

func TestPacketsAreMarkedAsAsked(t *testing.T) {
	for args, want := range map[string]rawio.Mark{"a": {}, "-t 1 -Q 0xb8 a": {TTL: 1, Class: 0xb8},
		"-t 255 -Q 252 a": {TTL: 255, Class: 252}} {
		o := must.Get(parseArgs(strings.Fields(args), io.Discard))(t)
		check.That(t, o.link.Mark == want, "%s: %+v, want %+v", args, o.link.Mark, want)
	}
}

// An address has its name before it, unless numbers are asked for.
func TestAddressHasItsName(t *testing.T) {
	a := netip.MustParseAddr("127.0.0.1")
	named := a.String()
	if names, err := net.LookupAddr(named); err == nil {
		named = strings.TrimSuffix(names[0], ".") + " (127.0.0.1)"
	}
	check.Equal(t, "its name", newReporter(new(options), a, io.Discard).displayName, named)
	check.Equal(t, "by number", newReporter(&options{numeric: true}, a, io.Discard).displayName, a.String())
}

// A port that another program has ends the tool.
func TestPortOfAnotherProgram(t *testing.T) {
	for _, arg := range []string{"-l", "--self"} {
		o := must.Get(parseArgs([]string{"--port", "7", arg}, io.Discard))(t)
		o.link.Opener = mempair.Taken(t, 7)
		_, err := o.runMode(t.Context(), io.Discard)
		check.Error(t, arg, err, rawio.ErrPortInUse)
	}
}

// pingAgainst pings a server that handle plays badly.
func pingAgainst(t *testing.T, args []string, handle func(e *endpoint, client *hello, msg []byte)) (code int,
	out string,
	err error) {
	t.Helper()
	client, server := newDevices(t)
	l, e := must.Get(server.Listen(rdma.DefaultPort))(t), must.Get(newEndpoint(server, 56, nil))(t)
	go func() {
		req, err := l.Accept(t.Context())
		if err != nil {
			return
		}
		var h hello
		check.OK(t, h.decode(req.PrivateData()))
		mine := e.makeHello()
		check.OK(t, req.Accept(e.qp, mine.encode()))
		for {
			wc, err := e.nextCompletion(t.Context())
			if err != nil || wc.Status != rdmap.StatusSuccess {
				return
			}
			if wc.Opcode == rdmap.WCRecv {
				handle(e, &h, e.receivedMessage(wc))
				e.postRecv(int(wc.ID))
			}
		}
	}()
	o := must.Get(parseArgs(append(args, "host"), io.Discard))(t)
	var b bytes.Buffer
	code, err = o.pingServer(t.Context(), client, netip.AddrPortFrom(serverAddr, rdma.DefaultPort), &b)
	return code, b.String(), err
}

// newDevices are a client's and a server's, at serverAddr, joined by memory.
func newDevices(t *testing.T, cfg ...*rdma.Config) (client, server *rdma.Device) {
	t.Helper()
	sl, cl := mempair.New(t, mem.Options{})
	for to, link := range map[**rdma.Device]*mem.Link{&server: sl, &client: cl} {
		*to = must.Get(rdma.NewDevice(link, append(cfg, nil)[0]))(t)
		t.Cleanup(func() { (*to).Close() })
	}
	return client, server
}

func TestWrongRepliesAreFound(t *testing.T) {
	for _, tt := range []struct {
		name, op string
		handle   func(e *endpoint, client *hello, msg []byte)
		err      string // instead of a reply with bad content
	}{
		{"a wrong octet", "send", func(e *endpoint, _ *hello, msg []byte) {
			data := bytes.Clone(msg[headerLen:])
			data[len(data)-1] ^= 1
			e.postMessage(opSend, verdictGood, 1, data)
		}, ""},
		{"an octet less", "send", func(e *endpoint, _ *hello, msg []byte) {
			e.postMessage(opSend, verdictGood, 1, msg[headerLen:len(msg)-1])
		}, ""},
		{"the server found it wrong", "send", func(e *endpoint, _ *hello, msg []byte) { e.postMessage(opSend, verdictBad, 1, msg[headerLen:]) }, ""},
		{"nothing was written", "write", func(e *endpoint, _ *hello, msg []byte) { e.postMessage(opWrite, verdictGood, 1, nil) }, ""},
		{"something else was read", "read", nil, ""}, // its memory is all zeros
		{"a message too short for a reply", "send", func(e *endpoint, _ *hello, msg []byte) {
			e.qp.PostSend(&rdma.SendWR{SGL: e.partSGE(memPart{e.source[0].off, headerLen - 1})})
		}, "a message of 15 bytes is not a reply"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, err := pingAgainst(t, []string{"-n", "-c", "1", "--op", tt.op}, tt.handle)
			check.That(t, (tt.err == "" || err != nil && err.Error() == tt.err) && (tt.err != "" ||
				err == nil && code == exitLost && strings.Contains(out, "BAD CONTENT") &&
					strings.Contains(out, "1 with bad content")), "exit %d, %v\n%s", code, err, out)
		})
	}
}

// What the server's program says, or that it is none, ends the tool: it is no ping that is lost.
func TestServerThatTakesNoPings(t *testing.T) {
	for want, answer := range map[string]func(*rdma.Request, *endpoint) error{
		"the server refused: full": func(r *rdma.Request, _ *endpoint) error {
			return r.Reject([]byte("full"))
		},
		"is something else than this tool": nil,
		errHello.Error(): func(r *rdma.Request, e *endpoint) error {
			return r.Accept(e.qp, []byte("x"))
		},
	} {
		client, server := newDevices(t)
		if answer == nil {
			must.Get(server.Transport().Listen(rdma.DefaultPort, nil))(t)
		} else {
			l, e := must.Get(server.Listen(rdma.DefaultPort))(t), must.Get(newEndpoint(server, 1, nil))(t)
			go func() { check.OK(t, answer(must.Get(l.Accept(t.Context()))(t), e)) }()
		}
		o := must.Get(parseArgs([]string{"-n", "-c", "2", "-W", "1", "host"}, io.Discard))(t)
		_, err := o.pingServer(t.Context(), client, netip.AddrPortFrom(serverAddr, rdma.DefaultPort), io.Discard)
		check.That(t, err != nil && strings.Contains(cli.Explain(err), want), "%v, want %s", err, want)
		check.Equal(t, "QPs that stay: "+want, len(client.QPs()), 0)
	}
}

// An end that its device has no room for is none, and takes none. One that there is room for takes
// what memory says, until it is closed.
func TestEndsTakeRoom(t *testing.T) {
	for _, limits := range []rdma.Limits{{MaxCQE: 8}, {MaxRegions: 2}, {MaxWR: 100}} {
		client, _ := newDevices(t, &rdma.Config{Limits: limits})
		e, err := newEndpoint(client, 1, nil)
		check.That(t, e == nil && err != nil && len(client.Snapshot().Regions) == 0, "with %+v: %v, and %+v stay",
			limits, err, client.Snapshot().Regions)
	}
	dev, _ := newDevices(t)
	for _, size := range []int{0, 1, 100, 1 << 20, 5 << 20} {
		e := must.Get(newEndpoint(dev, size, nil))(t)
		check.Equal(t, "octets", len(e.writeTarget)+len(e.readTarget)+len(e.localMem)+len(e.scratch)+sessionMemory+
			int(queueSizes(size).Memory()), endpointMemory(size))
		for _, late := range []*endpoint{e, nil} { // it may have come when all was over
			check.OK(t, (&client{runCtx: must.Ended()}).handleAttempt(attemptResult{session: session{endpoint: late}}))
		}
		check.That(t, e.postRecv(0) != nil && len(dev.QPs())+len(dev.Snapshot().Regions) == 0,
			"its QP is still there, or its memory")
	}
}

// The server judges what it gets, and ends a session of what is no ping.
func TestServerFindsWrongPings(t *testing.T) {
	client, server := newDevices(t)
	l := must.Get(server.Listen(1))(t)
	go (&service{dev: server, out: io.Discard}).acceptClients(t.Context(), l)
	e := must.Get(newEndpoint(client, 8, nil))(t)
	mine := e.makeHello()
	must.Do(e.qp.Connect(t.Context(), netip.AddrPortFrom(serverAddr, 1), mine.encode()))(t)
	next := func() (wc rdma.WC) {
		for wc.Status == rdmap.StatusSuccess && wc.Opcode != rdmap.WCRecv {
			wc = must.Get(e.nextCompletion(t.Context()))(t)
		}
		return wc
	}
	for _, op := range []operation{opSend, opWrite} {
		e.postMessage(op, verdictGood, 7, make([]byte, 8)[:map[operation]int{opSend: 8}[op]])
		msg := e.receivedMessage(next())
		check.That(t, operation(msg[0]) == op && msg[1] == verdictBad, "%v: the reply is % x", op, msg)
	}
	e.qp.PostSend(&rdma.SendWR{SGL: e.partSGE(memPart{0, headerLen - 1})})
	wc := next()
	check.That(t, wc.Status != rdmap.StatusSuccess, "a message too short for a ping is answered by % x",
		e.receivedMessage(wc))
}

func TestServerRefusesHostileHellos(t *testing.T) {
	for _, tt := range []struct {
		name    string
		private []byte
		left    int // sessions that the client has opened and left, with the longest pings
		want    string
	}{
		{"not ours", []byte("hello"), 0, "private data is not ddpping's"},
		{"more memory than a ping may take", (&hello{size: math.MaxUint32}).encode(), 0, "too many"},
		{"more memory than one client may take", (&hello{size: maxSize}).encode(), 1, errBusy.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, server := newDevices(t)
			l := must.Get(server.Listen(1))(t)
			go (&service{dev: server, out: io.Discard}).acceptClients(t.Context(), l)
			e := must.Get(newEndpoint(client, 1, nil))(t)
			for range tt.left {
				e := must.Get(newEndpoint(client, 1, nil))(t)
				must.Do(e.qp.Connect(t.Context(), netip.AddrPortFrom(serverAddr, 1),
					(&hello{size: maxSize}).encode()))(t)
			}
			_, err := e.qp.Connect(t.Context(), netip.AddrPortFrom(serverAddr, 1), tt.private)
			check.That(t, err != nil && strings.Contains(err.Error(), tt.want), "error %v, want %q", err, tt.want)
		})
	}
}

// What one side says of itself comes to the other as it was said, field by field, and what is too
// long or short, or of another program, is refused.
func TestHelloSurvivesTheWire(t *testing.T) {
	for _, pattern := range []string{"", "a", "0123456789abcdef"} {
		h := hello{size: 0x01020304, pattern: []byte(pattern), write: remoteBuf{0x05060708, 0x090a0b0c0d0e0f10},
			read: remoteBuf{0x11121314, 0x15161718191a1b1c}}
		b := h.encode()
		var got hello
		must.OK(t, got.decode(b))
		check.That(t, got.size == h.size && got.write == h.write && got.read == h.read && string(got.pattern) == pattern &&
			len(b) == helloLen, "%+v comes as %+v", h, got)
		b[len(b)-1] ^= 1
		check.That(t, string(got.pattern) == pattern, "the pattern is memory of the packet's")
		for name, bad := range map[string][]byte{"short": b[:len(b)-1], "long": append(bytes.Clone(b), 0), "nothing": nil,
			"of another": append([]byte("ddpping1"), b[len(magic):]...)} {
			check.Error(t, name, new(hello).decode(bad), errHello)
		}
		b[helloLen-1-maxPattern] = maxPattern
		check.OK(t, new(hello).decode(b))
		b[helloLen-1-maxPattern] = maxPattern + 1
		check.Error(t, "a pattern that is too long", new(hello).decode(b), errHello)
	}
}

// When the program is to end, a ping that waits for its turn says nothing more of those before.
func TestPingsThatWaitWhenTheProgramEnds(t *testing.T) {
	dev, _ := newDevices(t)
	e := must.Get(newEndpoint(dev, 1, nil))(t)
	defer e.close()
	var out firstLine
	o := &options{size: 1, numeric: true, interval: time.Hour}
	c := &client{options: o, dev: dev, reporter: newReporter(o, serverAddr, &out), session: session{endpoint: e},
		unanswered: map[uint64]*sentPing{1: {op: opSend}}, turnBeganAt: time.Now()}
	full := 1 + uint64(maxOutstanding(1))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	must.OK(t, c.waitForSlot(ctx, full))
	check.Equal(t, "said of an end", out.String(), "")
	must.OK(t, c.waitForSlot(t.Context(), full-1)) // which has its turn
	check.Equal(t, "said of one that has its turn", out.String(), "")
	o.interval = time.Millisecond
	ctx, out.end = context.WithCancel(t.Context())
	must.OK(t, c.waitForSlot(ctx, full))
	check.That(t, strings.HasPrefix(out.String(), "no answer yet for seq=1\n"), "said of one that waits: %q", out.String())
}

// firstLine is what is printed until end ends it.
type firstLine struct {
	bytes.Buffer
	end func()
}

func (f *firstLine) Write(b []byte) (int, error) {
	defer f.end()
	return f.Buffer.Write(b)
}

// Data of different pings differs, so a reply to one cannot pass for another's.
func TestFillTellsPingsApart(t *testing.T) {
	seen := map[string]uint64{}
	b := make([]byte, 16)
	for seq := range uint64(1000) {
		fillData(b, seq, nil)
		old, ok := seen[string(b)]
		must.That(t, !ok, "pings %d and %d have the same data", old, seq)
		seen[string(b)] = seq
	}
	fillData(b, 1, []byte{1, 2, 3})
	check.Equal(t, "a pattern again and again", fmt.Sprintf("%x", b), "01020301020301020301020301020301")
	fillData(b, 1, nil)
	// by xorshift64
	check.Equal(t, "the first ping, of any release", fmt.Sprintf("%x", b), "6e2d75caae771bdcb45c6f16b32df054")
}
