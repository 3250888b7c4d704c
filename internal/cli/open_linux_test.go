package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/kernelsctp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/internal/test/testpriv"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/tun"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// parseFlags are those of a command line.
func parseFlags(t *testing.T, line string) *LinkFlags {
	t.Helper()
	f, fs := new(LinkFlags), NewFlags("test")
	f.Add(fs)
	must.OK(t, Parse(fs, strings.Fields(line), io.Discard, ""))
	return f
}

// linkText is what a link says of itself.
func linkText(l rawio.Link, err error) string {
	if err != nil {
		return err.Error()
	}
	a := l.(rawio.Addresser).LocalAddrs()[0]
	port := fmt.Sprint(a.Port())
	if len(port) == 5 {
		port = "any"
	}
	s := fmt.Sprintf("%T at %v port %s, %d octets, %d queues", l, a.Addr(), port, l.MTU(netip.Addr{}, a.Addr()),
		1+len(rawio.ShardsOf(l)))
	if d, ok := l.(*tun.Link); ok {
		dev, _ := net.InterfaceByName(d.Name())
		host, _ := dev.Addrs()
		s += fmt.Sprintf(", %s %v", d.Name(), host[0])
	}
	return s
}

func TestEachFlagReachesTheLink(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pcap")
	for _, tt := range []struct{ line, server, client string }{ // client: where that differs
		{"", "*raw.Link at 127.0.0.1 port 0, 65515 octets, 1 queues", ""},
		{"--link raw --local 127.0.0.7 --mtu 1300", "*raw.Link at 127.0.0.7 port 0, 1280 octets, 1 queues", ""},
		{"--link udp", "*udp.Link at 127.0.0.1 port 9899, 65507 octets, 1 queues", "*udp.Link at 127.0.0.1 port any, 65507 octets, 1 queues"},
		{"--link udp --local ::1 --udp-port 4000 --mtu 1300 --shards 3", "*udp.Link at ::1 port 4000, 1252 octets, 3 queues", ""},
		{"--link tun --local 10.9.0.2 --tun-host 10.9.0.1/24 --tun-name t0 --mtu 1400 --shards 2", "*tun.Link at 10.9.0.2 port 0, 1380 octets, 2 queues, t0 10.9.0.1/24", ""},
		{"--link udp --pcap " + file, "*pcap.Link at 127.0.0.1 port 9899, 65507 octets, 1 queues", "*pcap.Link at 127.0.0.1 port any, 65507 octets, 1 queues"},
		{"--link udp --udp-port 4000 --pcap /no/such/file", "open /no/such/file: no such file or directory", ""},
		{"--local x", "--local x is not an IP address, and no interface of this host", ""},
		{"--link x", "--link x: it is one of raw, udp, tun, tcp, mem", ""},
		{"--link mem", "--link mem joins two ends of one process: use it with --self", ""},
		{"--link tun", "--link tun needs --local ADDRESS for the stack, and usually --tun-host ADDRESS/BITS for the host's end", ""},
		{"--link tun --local 10.9.0.2 --tun-host x", "--tun-host x is not an address with a prefix length, such as 10.9.0.1/24", ""},
	} {
		testns.New(t).Do(func() error {
			for server, want := range map[bool]string{true: tt.server, false: tt.client} {
				l, err := parseFlags(t, tt.line).Open(server)
				if want == "" {
					want = tt.server
				}
				got := linkText(l, err)
				check.That(t, got == want, "%s: server %v: %s, want %s", tt.line, server, got, want)
				if l != nil {
					l.Close()
				}
			}
			return nil
		})
	}
	s, err := os.Stat(file)
	check.That(t, err == nil && s.Size() != 0, "%+v, %v", s, err)
	f := parseFlags(t, "--encap-port 7 --poll 9us")
	check.That(t, f.EncapPort == 7 && f.Poll == 9000 && reflect.DeepEqual(parseFlags(t, ""), &LinkFlags{Shards: 1}),
		"%+v",
		f)
}

func TestBothEndsOfEachLink(t *testing.T) {
	for _, tt := range []struct{ line, about, ends string }{
		{"", "raw sockets on loopback", "*raw.Link at 127.0.0.1 port 0, 65515 octets, 1 queues"},
		{"--link raw --mtu 1300", "raw sockets on loopback", "*raw.Link at 127.0.0.1 port 0, 1280 octets, 1 queues"},
		{"--link udp --mtu 1300 --shards 2", "UDP on loopback", "*udp.Link at 127.0.0.1 port any, 1272 octets, 2 queues"},
		{"--link mem --mtu 1300", "memory of this process", "*mem.Link at 10.0.0.1 port 0, 1280 octets, 1 queues"},
		{"--link tun", "--self works with --link raw, udp, tcp or mem, not tun", ""},
	} {
		testns.New(t).Do(func() error {
			s, err := parseFlags(t, tt.line).OpenSelf()
			if err != nil {
				check.That(t, err.Error() == tt.about && tt.ends == "", "%s: %v", tt.line, err)
				return nil
			}
			a := s.Server.(rawio.Addresser).LocalAddrs()[0]
			client := strings.Replace(linkText(s.Client, nil), "10.0.0.2", "10.0.0.1", 1)
			server := linkText(s.Server, nil)
			check.That(t, server == tt.ends && client == tt.ends && s.Description == tt.about && s.Addr == a.Addr() &&
				s.EncapPort == a.Port(), "%s: %s and %s, %+v", tt.line, server, client, s)
			return s.Client.Close()
		})
	}
	var server []bool
	open := func(s bool) (rawio.Link, error) {
		server = append(server, s)
		l, _, err := mem.Pair(mem.Options{})
		return l, err
	}
	both := must.Get((&LinkFlags{Opener: open}).OpenSelf())(t)
	check.That(t, slices.Equal(server, []bool{true, false}) && both.Addr == netip.MustParseAddr("10.0.0.1"),
		"opened as a server: %v, at %v", server, both.Addr)
	for name, kind := range map[string]string{"": "raw", "udp": "udp", "tun": "tun"} {
		f := (LinkFlags{Kind: name, Local: "x"})
		check.That(t, f.Name() == kind && (f.Warning() == "" || kind == "raw"), "%q is %s: %s", name, f.Name(),
			f.Warning())
	}
}

func TestTheKernelsSCTPIsWarnedOf(t *testing.T) {
	was := kernelsctp.Root
	defer func() { kernelsctp.Root = was }()
	kernelsctp.Root = t.TempDir()
	check.Equal(t, "warning where the kernel has none", (&LinkFlags{Kind: "raw"}).Warning(), "")
	must.OK(t, os.MkdirAll(kernelsctp.Root+"/sys/module/sctp", 0o755))
	for kind, want := range map[string]string{"raw": kernelsctp.Advice, "udp": "", "tun": ""} {
		check.Equal(t, kind, (&LinkFlags{Kind: kind}).Warning(), want)
	}
}

func TestWithoutPrivilegeBothEndsAreOfUDP(t *testing.T) {
	testpriv.AsNobody(t, func(t *testing.T) {
		s, err := parseFlags(t, "").OpenSelf()
		if err != nil || s.Description != "UDP on loopback (raw sockets are not available here)" || s.EncapPort == 0 {
			t.Errorf("%+v, %v", s, err)
			return
		}
		s.Client.Close()
		s.Server.Close()
		s, err = parseFlags(t, "--link raw").OpenSelf()
		check.That(t, err != nil && strings.HasSuffix(Explain(err), ", which needs none (--link udp)"), "%+v, %v", s,
			err)
	})
}

// A device that cannot be leaves no link open.
func TestRefusedDeviceClosesItsLink(t *testing.T) {
	bad := &rdma.Config{Limits: rdma.Limits{MaxQPs: -1}}
	testns.New(t).Do(func() error {
		for range 2 {
			for _, server := range []bool{true, false} {
				var limit *rdma.LimitError
				d, err := parseFlags(t, "--link udp --udp-port 4000").Device(server, bad, nil)
				check.That(t, d == nil && errors.As(err, &limit), "a device of less than no QPs: %v", err)
			}
		}
		d, err := parseFlags(t, "--link udp").Devices(bad, nil)
		check.That(t, d == nil && err != nil, "devices of less than no QPs: %v", err)
		two := must.Get(parseFlags(t, "--link udp --local 127.0.0.1,192.0.2.1").Device(true, nil, nil))(t)
		defer two.Close()
		var foreign *sctp.LocalAddrError
		_, err = two.Listen(7)
		check.That(t, errors.As(err, &foreign), "a server at two addresses, of which the host has one: %v", err)
		return nil
	})
}

func TestNameIsOfTheFamilyAskedFor(t *testing.T) {
	for _, tt := range []struct {
		f          LinkFlags
		host, want string
	}{
		{LinkFlags{}, "10.9.0.1", "10.9.0.1"}, {LinkFlags{}, "::1", "::1"}, {LinkFlags{}, "a..b", "a..b: lookup a..b: no such host"},
		{LinkFlags{Local: "127.0.0.1"}, "localhost", "127.0.0.1"}, {LinkFlags{Local: "::1"}, "localhost", "::1"},
		{LinkFlags{V4: true}, "::1", "::1 has no IPv4 address: leave -4 out"}, {LinkFlags{V6: true}, "10.9.0.1", "10.9.0.1 has no IPv6 address: leave -6 out"},
		{LinkFlags{Local: "x"}, "::1", "--local x is not an IP address, and no interface of this host"},
		{LinkFlags{Local: "10.9.0.9,::2"}, "::1", "::1"}, {LinkFlags{Local: "10.9.0.9"}, "::1", "::1 has no address of the family of 10.9.0.9"},
	} {
		a, err := tt.f.Resolve(tt.host)
		got := a.String()
		if err != nil {
			got = err.Error()
		}
		check.That(t, got == tt.want || got == "localhost has no address of the family of ::1",
			"%s from %+v: %s, want %s", tt.host, tt.f, got, tt.want)
	}
}

// An interface stands for its address of the family that is asked for, IPv4 if there is a choice;
// without an address all of the family are meant.
func TestAddressThatALinkIsBoundTo(t *testing.T) {
	testns.New(t).Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = errors.Join(netlink.AddrAdd(lo, &netlink.Addr{IPNet: netlink.NewIPNet(net.ParseIP("fd77::1")),
				Flags: unix.IFA_F_NODAD}),
				netlink.AddrAdd(lo, &netlink.Addr{IPNet: netlink.NewIPNet(net.IPv4(10, 7, 0, 1))}))
		}
		list, _ := net.InterfaceAddrs()
		if err != nil || len(list) != 4 {
			return fmt.Errorf("addresses %v, %w", list, err)
		}
		first, _, _ := strings.Cut(list[2].String(), "/") // of IPv6
		for _, tt := range []struct {
			f    LinkFlags
			want string
		}{
			{LinkFlags{Local: "lo"}, "127.0.0.1"}, {LinkFlags{Local: "lo", V4: true}, "127.0.0.1"}, {LinkFlags{Local: "lo", V6: true}, first},
			{LinkFlags{}, "invalid IP"}, {LinkFlags{V4: true}, "0.0.0.0"}, {LinkFlags{V6: true}, "::"}, {LinkFlags{Local: "lo,::2", V6: true}, "::"},
			{LinkFlags{Local: "lo", V4: true, V6: true}, "the interface lo has no address that could be used"},
		} {
			a, err := tt.f.bindAddr()
			got := a.String()
			if err != nil {
				got = err.Error()
			}
			check.Equal(t, fmt.Sprintf("%+v", tt.f), got, tt.want)
		}
		return nil
	})
}

// What an error is about, and what to do, is told in a sentence; what nobody knows stays as it is.
func TestErrorsAreExplained(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&assoc.NoRouteError{Err: syscall.EHOSTUNREACH}, "no answer: check the address, at which"},
		{&assoc.RefusedError{Path: netip.MustParseAddrPort("192.0.2.1:0"), Err: syscall.EPERM}, "this host does not send to 192.0.2.1 (operation not permitted): its firewall"},
		{fmt.Errorf("%w; %w", &assoc.RefusedError{Err: syscall.EADDRNOTAVAIL}, context.DeadlineExceeded), "this host does not send to"},
		{context.DeadlineExceeded, "no answer: check the address, that"}, {assoc.ErrInitTimeout, "no answer: check the address, that"},
		{rawio.ErrPortInUse, "the SCTP port is in use"}, {syscall.EADDRINUSE, "the UDP port is in use"}, {syscall.EADDRNOTAVAIL, "this host does not have the address"},
		{&assoc.AdaptationError{Absent: true}, (&assoc.AdaptationError{Absent: true}).Error() + ": is something else"},
		{&llp.RejectedError{Private: []byte("no\x1b")}, "the server refused: no\uFFFD"},
		{assoc.ErrProtoUnreachable, "the host is up but nothing there speaks SCTP"},
		{&assoc.AbortError{ByPeer: true}, "the host is up but refused the association"}, {&assoc.AbortError{}, (&assoc.AbortError{}).Error()},
		{&rawio.UnsupportedError{}, (&rawio.UnsupportedError{}).Error() + " (--link udp)"}, {io.EOF, "EOF"},
	} {
		s := Explain(fmt.Errorf("%w", tt.err))
		check.That(t, strings.HasPrefix(s, tt.want), "%T: %s, want %s", tt.err, s, tt.want)
	}
}

// A trace that the disk does not take is told of, and one that nobody asked for is none.
func TestTraceThatIsLostIsToldOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	for name, want := range map[string]string{"": "",
		"/dev/full": "p: the trace is not complete: write /dev/full: no space left on device\n",
		file:        "p: the trace is not complete: 1 events came faster than they could be written\n"} {
		trace, said := Trace{fileName: name}, new(strings.Builder)
		must.OK(t, trace.Open("p", "client"))
		check.Equal(t, "there is a tracer", trace.Tracer("client") != nil, name != "")
		trace.Close("p", said)
		if name == file { // what comes now waits for nobody
			for tracer := trace.Tracer("client"); trace.file.Dropped() == 0; tracer.Trace(new(sctp.TraceEvent)) {
			}
			trace.Close("p", said)
		}
		check.Equal(t, name, said.String(), want)
	}
}
