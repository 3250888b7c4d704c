package sctp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/kernelsctp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/udp"
	"golang.org/x/sys/unix"
)

// onlyLinks are links of those kinds alone, as of another process.
func onlyLinks(t *testing.T, kinds ...linkKind) *sharedLinks {
	l := &sharedLinks{allowedKinds: func() ([]linkKind, error) { return kinds, nil }}
	t.Cleanup(l.close)
	return l
}

// A listener is found by raw IP and by UDP, by name and by address; of several attempts it accepts
// one. What cannot be reached is told at once.
func TestDialFindsWhoListens(t *testing.T) {
	server, client, both := onlyLinks(t, rawLink, udpLink), onlyLinks(t, udpLink), onlyLinks(t, rawLink, udpLink)
	testns.New(t).Do(func() error {
		listen := func(by *sharedLinks, at string) (l *Listener, port string) {
			l = must.Get((&ListenConfig{links: by}).Listen(t.Context(), "sctp", at))(t)
			_, port = must.Two(net.SplitHostPort(l.Addr().String()))(t)
			return l, port
		}
		l, port := listen(server, ":0")
		one, onePort := listen(server, "127.0.0.2:0")
		two, twoPort := listen(onlyLinks(t, rawLink), ":0")
		quick := Config{RTOInitial: 10 * time.Millisecond}
		accepted := uint64(0)
		rows := []struct {
			name, network, to string
			by                *sharedLinks
			from              *Listener
			want              error
			over              linkKind
		}{
			{"by raw IP alone", "sctp", "127.0.0.1:" + twoPort, both, two, nil, rawLink},
			{"without privileges", "sctp", "127.0.0.1:" + port, client, l, nil, udpClient},
			{"who is of this host", "sctp", "127.0.0.1:" + port, both, l, nil, udpClient},
			{"by IPv6", "sctp6", "[::1]:" + port, both, l, nil, udpClient},
			{"by name", "sctp", "localhost:" + port, both, l, nil, udpClient},
			{"without a host", "sctp", ":" + port, client, l, nil, udpClient},
			{"by a loopback address", "sctp", "127.0.0.2:" + onePort, both, one, nil, udpClient},
			{"by another than it listens on", "sctp", "127.0.0.1:" + onePort, both, nil, syscall.ECONNREFUSED, ""},
			{"where nobody listens", "sctp", "127.0.0.1:1", both, nil, syscall.ECONNREFUSED, ""},
			{"where nobody listens, by UDP", "sctp", "127.0.0.1:1", client, nil, syscall.ECONNREFUSED, ""},
			{"without a way", "sctp", "192.0.2.1:1", both, nil, syscall.ENETUNREACH, ""},
			{"by a network that is none", "tcp", "127.0.0.1:" + port, both, nil, net.UnknownNetworkError("tcp"), ""},
		}
		for _, delay := range []time.Duration{time.Hour, 1} { // one after the other, and all at once
			for _, row := range rows {
				if row.want != nil && delay > 1 {
					continue // what is silent takes too long
				}
				c, err := (&Dialer{links: row.by, FallbackDelay: delay, Config: quick}).Dial(deadlineCtx(t),
					row.network, row.to)
				check.That(t, errors.Is(err, row.want), "%s: %v, want %v", row.name, err, row.want)
				if err != nil {
					continue
				}
				s := must.Get(row.from.Accept(deadlineCtx(t)))(t)
				accepted++
				check.That(t, delay == 1 || c.t == row.by.transports[row.over], "%s: not over %s", row.name, row.over)
				must.OK(t, c.Close())
				must.OK(t, s.Close())
			}
		}
		for _, to := range []string{"127.0.0.1:1", "::1", "[::1]:nothing"} {
			_, err := (&Dialer{links: client}).Dial(deadlineCtx(t), "sctp6", to)
			check.That(t, errors.As(err, new(*net.AddrError)) || errors.As(err, new(*net.DNSError)),
				"%s, by IPv6: %v", to, err)
		}
		n := uint64(0)
		for _, tr := range server.transports {
			n += tr.Stats().Established
		}
		n += two.t.Stats().Established
		check.That(t, n == accepted, "%d associations have come to be for %d calls of Dial", n, accepted)
		k := both.lastAnswered[netip.AddrFrom4([4]byte{127, 0, 0, 1})]
		check.That(t, k == rawLink || k == udpLink, "127.0.0.1 answered by %q", k)
		_, err := (&ListenConfig{links: server}).Listen(context.Background(), "sctp", ":"+port)
		check.Error(t, "listened on twice", err, syscall.EADDRINUSE)
		must.OK(t, l.Close())
		listen(server, ":"+port) // over both links the port is free
		return nil
	})
}

// RDDP_LINK leaves one link, and Dial is content with what is allowed.
func TestLinksAreThoseOfTheEnvironment(t *testing.T) {
	for value, want := range map[string]int{"": 2, "raw": 1, "udp": 1, "tun": 1, "tcp": 0} {
		t.Setenv("RDDP_LINK", value)
		kinds, err := processLinks.allowedKinds()
		refused := func(err error) bool { return err != nil && strings.Contains(err.Error(), `"`+value+`"`) }
		check.That(t, len(kinds) == want && (err == nil || refused(err)) && (err == nil) == (want > 0), "%q: %v, %v",
			value, kinds, err)
		if want == 0 {
			_, dial := Dial(t.Context(), "sctp", "127.0.0.1:1")
			_, listen := Listen("sctp", "127.0.0.1:0")
			check.That(t, refused(dial) && refused(listen) && strings.HasPrefix(dial.Error(), "dial sctp: ") &&
				strings.HasPrefix(listen.Error(), "listen sctp: "), "Dial: %v, Listen: %v", dial, listen)
		}
	}
	stack, host := onlyLinks(t, tunLink), onlyLinks(t, rawLink)
	for _, own := range []string{"", "10.9.0"} {
		t.Setenv("RDDP_TUN", own)
		_, err := (&ListenConfig{links: stack}).Listen(t.Context(), "sctp", ":5000")
		check.That(t, err != nil && strings.Contains(err.Error(), "RDDP_TUN"), "a stack at %q: %v", own, err)
	}
	t.Setenv("RDDP_TUN", "10.9.0.2, fd09::2")
	ns := testns.New(t)
	testns.Veth(ns, testns.New(t), "host", 1500, netip.MustParsePrefix("10.8.0.1/24"),
		netip.MustParsePrefix("10.8.0.2/24"))
	ns.Do(func() error {
		l := must.Get((&ListenConfig{links: stack}).Listen(t.Context(), "sctp", "10.9.0.2:5000"))(t)
		must.Get((&Dialer{links: host}).Dial(deadlineCtx(t), "sctp", "10.9.0.2:5000"))(t)
		must.Get(l.Accept(deadlineCtx(t)))(t)
		return nil
	})
}

// One port is had by several listeners of a host at different addresses, of one program or of
// several, over raw IP and over UDP, where each program has a port of UDP for itself: whoever dials
// finds each, and none takes the port of another.
func TestListenersShareAPortByAddress(t *testing.T) {
	for _, kind := range []linkKind{udpLink, rawLink} {
		one, two, client := onlyLinks(t, kind), onlyLinks(t, kind), onlyLinks(t, kind)
		testns.New(t).Do(func() error {
			listen := func(by *sharedLinks, at string) *Listener {
				return must.Get((&ListenConfig{links: by}).Listen(t.Context(), "sctp", at))(t)
			}
			must.Get(net.ListenPacket("unixgram", "@rddp/udp/7000/1/nowhere"))(t) // a name of somebody else's
			at := []string{"127.0.0.1:7000", "127.0.0.2:7000", "127.0.0.3:7000", "[::1]:7000"}
			ls := []*Listener{listen(one, at[0]), listen(two, at[1]), listen(one, at[2]), listen(two, at[3]),
				listen(one, ":7001"), listen(two, ":0")}
			for i, to := range append(at, "127.0.0.4:7001", ls[5].Addr().String()) {
				for _, by := range []*sharedLinks{client, one, two} {
					c := must.Get((&Dialer{links: by}).Dial(deadlineCtx(t), "sctp", to))(t)
					must.Get(ls[i].Accept(deadlineCtx(t)))(t)
					check.Equal(t, "over the link that it listens by", c.t == by.transports[kind], by != client ||
						kind == rawLink)
					c.Abort("")
				}
			}
			for _, at := range append(at, ":7000", ":7001", "127.0.0.1:7001", "[::1]:7001") {
				for _, by := range []*sharedLinks{one, two} {
					_, err := (&ListenConfig{links: by}).Listen(t.Context(), "sctp", at)
					check.That(t, errors.Is(err, syscall.EADDRINUSE), "%s is listened on twice by %s: %v", at, kind,
						err)
				}
			}
			if kind == udpLink { // by raw IP a port stays bound at all its addresses
				check.Equal(t, "UDP port of the first program",
					one.transports[udpLink].link.(*udp.Link).LocalAddrs()[0].Port(), tunnelingPort)
				name := must.Get(net.Listen("unix", "@rddp/port/7002"))(t)
				defer name.Close()
				_, err := (&ListenConfig{links: one}).Listen(t.Context(), "sctp", "127.0.0.1:7002")
				check.Error(t, "where the name is another's, who does not answer", err, syscall.EADDRINUSE)
				_, err = (&ListenConfig{links: two}).Listen(t.Context(), "sctp", ":7002")
				check.Error(t, "at all addresses, of which another has one", err, syscall.EADDRINUSE)
				must.OK(t, ls[2].Close())
				must.OK(t, listen(two, at[2]).Close())
			}
			return nil
		})
	}
}

// taken is a link with ports that another program has, as many as are asked for first.
type taken struct {
	*mem.Link
	first, asked int
}

func (l *taken) BindPort(uint16, ...netip.Addr) error {
	if l.asked++; l.asked <= l.first {
		return fmt.Errorf("another program: %w", rawio.ErrPortInUse)
	}
	return nil
}

// A port that is free on one link and not on another is none; others are tried, some times.
func TestListenLooksForAPortFreeOnAllLinks(t *testing.T) {
	for _, row := range []struct {
		first, asked int
		port         string
		want         error
	}{{3, 4, "0", nil}, {1000, maxListenTries, "0", rawio.ErrPortInUse}, {3, 1, "7", rawio.ErrPortInUse}} {
		l, link := onlyLinks(t, rawLink, tunLink), &taken{first: row.first}
		l.transports = make(map[linkKind]*Transport)
		for _, k := range []linkKind{rawLink, tunLink} {
			la, lb := mempair.New(t, mem.Options{})
			defer lb.Close()
			at := rawio.Link(la)
			if k == tunLink {
				link.Link, at = la, link
			}
			l.transports[k] = must.Get(NewTransport(at, nil))(t)
		}
		_, err := (&ListenConfig{links: l}).Listen(t.Context(), "sctp", ":"+row.port)
		check.That(t, errors.Is(err, row.want) && link.asked == row.asked, "port %s: %v after %d of %d", row.port,
			err, link.asked, row.first)
	}
}

// So many hosts are remembered, then they are forgotten.
func TestHostsThatAnsweredAreBounded(t *testing.T) {
	l, host := &sharedLinks{lastAnswered: make(map[netip.Addr]linkKind)}, netip.MustParseAddr("10.0.0.0")
	for i := range maxRememberedHosts + 1 {
		host = host.Next()
		l.rememberAnswer(host, udpLink)
		check.That(t, len(l.lastAnswered) == i%maxRememberedHosts+1 &&
			l.preferredIndex(host, []linkKind{rawLink, udpLink}, false) == 1 &&
			l.preferredIndex(host.Next(), []linkKind{rawLink, udpLink}, false) == 0, "%d of %d", len(l.lastAnswered),
			i+1)
	}
}

// Where the kernel has an SCTP of its own, raw IP is for programs that ask for nothing else, and
// the program is told.
func TestTheKernelsSCTPIsAvoided(t *testing.T) {
	was, logger := kernelsctp.Root, slog.Default()
	defer func() { kernelsctp.Root = was; slog.SetDefault(logger) }()
	kernelsctp.Root = t.TempDir()
	must.OK(t, os.MkdirAll(kernelsctp.Root+"/proc/net/sctp", 0o755))
	var said bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	testns.New(t).Do(func() error {
		for _, row := range []struct {
			ask  []linkKind
			want string
		}{{[]linkKind{rawLink, udpLink}, "[udp]"}, {[]linkKind{rawLink}, "[raw]"}} {
			said.Reset()
			l := onlyLinks(t, row.ask...)
			for range 2 {
				_, kinds, err := l.usableTransports(true)
				check.Equal(t, fmt.Sprint(row.ask, err), fmt.Sprint(kinds), row.want)
			}
			check.Equal(t, "lines about it", strings.Count(said.String(), "rmmod sctp"), 1)
			open := must.Get(os.ReadFile("/proc/thread-self/net/raw"))(t)
			check.Equal(t, "raw sockets are open: "+row.want, bytes.Count(open, []byte("\n")) > 1, row.want == "[raw]")
			l.close()
		}
		return nil
	})
}

// Where no link can be opened Dial and Listen say why, each time.
func TestWhyThereIsNoLink(t *testing.T) {
	for _, kinds := range [][]linkKind{{rawLink}, {udpLink}, {rawLink, udpLink}} {
		testns.New(t).Do(func() error {
			must.OK(t, testns.Refuse(syscall.EMFILE, unix.SYS_SOCKET))
			l := onlyLinks(t, kinds...)
			for range 2 {
				_, dial := (&Dialer{links: l}).Dial(t.Context(), "sctp", "127.0.0.1:1")
				_, listen := (&ListenConfig{links: l}).Listen(t.Context(), "sctp", "127.0.0.1:0")
				check.That(t, errors.Is(dial, syscall.EMFILE) && errors.Is(listen, syscall.EMFILE),
					"by %v: Dial: %v, Listen: %v", kinds, dial, listen)
			}
			return nil
		})
	}
}
