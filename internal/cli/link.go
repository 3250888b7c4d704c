// Package cli is what the command-line tools share: the choice of a link, and plain sentences for
// errors.
package cli

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/pcap"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/tun"
	"github.com/rddp-go/rddp/rawio/udp"
)

// LinkFlags are the flags that choose a link.
type LinkFlags struct {
	Kind       string         // raw, udp, tun, tcp or mem
	Local      string         // local address or interface, several with commas between them; for tun the stack's own
	V4, V6     bool           // of this family only
	Mark       rawio.Mark     // in IP headers
	NoSearch   bool           // for the MTU of paths
	UDPPort    int            // local encapsulation port, 0: 9899 for a server, any for a client
	EncapPort  uint16         // the peer's encapsulation port, 0: 9899
	TunName    string         // device
	TunHost    string         // the host's address on the device
	MTU        int            // IP-level, 0: the route's
	Pcap       string         // file for a copy of every packet
	Poll       time.Duration  // before blocking
	Shards     int            // queues of incoming packets, 0: one
	NoCRC      bool           // with tcp, if the peer can do without
	Trace      Trace          // of associations
	Encryption TLSFlags       // of all that is sent
	LocalPort  uint16         // a client's own SCTP port, 0: any
	Restart    RestartFlags   // of encrypted associations after a crash
	dialled    string         // the host that Resolve was asked for
	controller controllerFlag // of what this end sends
	pcapLink   *pcap.Link     // what writes Pcap

	// Opener opens the link of one end in place of the one that the flags name. It is for tests
	// over a simulated network.
	Opener func(server bool) (rawio.Link, error)
}

// Add defines the flags.
func (f *LinkFlags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.Kind, "link", "", "how packets travel: raw (IP protocol 132, needs CAP_NET_RAW), udp (RFC "+
		"6951), tun (needs CAP_NET_ADMIN), mem (with --self); or tcp, iWARP in place of SCTP (default raw)")
	fs.StringVar(&f.Local, "local", "", "local `address` or interface, several with commas between them for as "+
		"many paths; with --link tun the stack's own, which the host must not have; with tcp where a server listens")
	fs.BoolVar(&f.NoCRC, "no-crc", false, "with --link tcp, do without CRCs of MPA if the peer can")
	fs.Var(Port(&f.UDPPort, 0).OrZero(), "udp-port",
		"local UDP encapsulation `port` (default 9899 for a server, any for a client)")
	fs.Var(Port(&f.EncapPort, 0).OrZero(), "encap-port", "the peer's UDP encapsulation `port` (default 9899)")
	fs.StringVar(&f.TunName, "tun-name", "", "TUN `device`, created unless it exists (default: a new one)")
	fs.StringVar(&f.TunHost, "tun-host", "", "the host's `address/bits` on the TUN device")
	fs.Var(MTU(&f.MTU), "mtu", "IP-level MTU in `octets` (default: the route's)")
	fs.Var(Int(&f.Shards, 1, 1, maxShards), "shards",
		"with --link udp or tun, `queues` of incoming packets, each read by a goroutine of its own")
	fs.StringVar(&f.Pcap, "pcap", "", "write every packet to a pcapng `file` for Wireshark")
	fs.Var(&f.controller, "cc", "congestion controller of what this end sends: cubic, newreno, rfc9260 (its "+
		"letter) or bbr (default cubic)")
	f.Trace.Add(fs)
	f.Encryption.Add(fs)
	f.Restart.Add(fs)
	fs.Var(Port(&f.LocalPort, 0).OrZero(), "local-port", "a client's own SCTP `port` (default: any)")
	fs.Var(Duration(&f.Poll, 0, -time.Second, time.Second), "poll",
		"poll this `time` before blocking for packets: lower latency for a busy processor; less than 0 blocks "+
			"at once (default: up to 40us, as long as packets come that soon)")
}

// maxShards is how many queues a link may have.
const maxShards = 256

// MTU is an MTU of IP. It must be large enough for a DDP session's private data. 0 is the route's
// MTU.
func MTU(p *int) *Number { return Int(p, 0, minMTU, 65535).OrZero() }

const minMTU = 576

// UsageError is a mistake in the command line.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Open opens the link of one end. A server takes the well-known encapsulation port.
func (f *LinkFlags) Open(server bool) (rawio.Link, error) {
	if f.Kind == "mem" {
		return nil, Usagef("--link mem joins two ends of one process: use it with --self")
	}
	link, err := f.openLink(server)
	if err != nil {
		return nil, err
	}
	return f.tapLink(link)
}

func (f *LinkFlags) openLink(server bool) (rawio.Link, error) {
	if f.Opener != nil {
		return f.Opener(server)
	}
	local, err := f.bindAddr()
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case "", "raw":
		return f.openRaw(local)
	case "udp":
		port := f.UDPPort
		if port == 0 && !server {
			port = udp.AnyPort
		}
		return udp.Open(udp.Config{Local: local, Port: port, MTU: f.MTU, Poll: f.Poll, Shards: f.Shards, Mark: f.Mark})
	case "tun":
		cfg := tun.Config{Name: f.TunName, MTU: f.MTU, Poll: f.Poll, Shards: f.Shards, Mark: f.Mark}
		if cfg.Addrs, err = f.localAddrs(); err != nil || len(cfg.Addrs) == 0 {
			return nil, Usagef("--link tun needs --local ADDRESS for the stack, and usually --tun-host " +
				"ADDRESS/BITS for the host's end")
		}
		if f.TunHost != "" {
			p, err := netip.ParsePrefix(f.TunHost)
			if err != nil {
				return nil, Usagef("--tun-host %s is not an address with a prefix length, such as 10.9.0.1/24",
					f.TunHost)
			}
			cfg.Host = []netip.Prefix{p}
		}
		return tun.Open(cfg)
	}
	return nil, Usagef("--link %s: it is one of raw, udp, tun, tcp, mem", f.Kind)
}

func (f *LinkFlags) openRaw(local netip.Addr) (rawio.Link, error) {
	if f.Shards > 1 {
		return nil, Usagef("--shards is for --link udp and tun: the kernel gives a raw socket all packets")
	}
	return raw.Open(raw.Config{Local: local, MTU: f.MTU, Poll: f.Poll, Mark: f.Mark})
}

func (f *LinkFlags) tapLink(link rawio.Link) (rawio.Link, error) {
	if f.Pcap == "" {
		return link, nil
	}
	tapped, err := pcap.Create(link, f.Pcap)
	if err != nil {
		link.Close()
		return nil, err
	}
	f.pcapLink = tapped
	return tapped, nil
}

// RecordingError returns, once the link is closed, what has kept packets out of the file of --pcap.
func (f *LinkFlags) RecordingError() error {
	if f.pcapLink == nil {
		return nil
	}
	if err := f.pcapLink.Flush(); err != nil {
		return fmt.Errorf("--pcap %s: not all packets are in it: %w", f.Pcap, err)
	}
	return nil
}

// SelfLinks is both ends of a link in one process.
type SelfLinks struct {
	Server, Client rawio.Link
	Addr           netip.Addr // the server's
	EncapPort      uint16     // of the server
	Description    string     // which link it is, for people
}

// OpenSelf opens both ends. Without --link it takes the best link that needs no set-up. That is raw
// sockets on loopback with the privilege, and otherwise UDP on loopback.
func (f *LinkFlags) OpenSelf() (*SelfLinks, error) {
	if f.Opener != nil {
		s, err := openBoth(f.Opener)
		if err == nil {
			s.Addr = s.Server.(rawio.Addresser).LocalAddrs()[0].Addr()
		}
		return s, err
	}
	kind := f.Kind
	if kind == "" {
		kind = "raw"
	}
	s, err := f.openSelf(kind)
	var perm *rawio.PermissionError
	if f.Kind == "" && (errors.As(err, &perm) || errors.Is(err, errors.ErrUnsupported)) {
		s, err = f.openSelf("udp")
		if err == nil {
			s.Description += " (raw sockets are not available here)"
		}
	}
	if err != nil {
		return nil, err
	}
	if s.Client, err = f.tapLink(s.Client); err != nil {
		s.Server.Close()
		return nil, err
	}
	return s, nil
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// openBoth opens both ends on loopback.
func openBoth(open func(server bool) (rawio.Link, error)) (*SelfLinks, error) {
	server, err := open(true)
	if err != nil {
		return nil, err
	}
	client, err := open(false)
	if err != nil {
		server.Close()
		return nil, err
	}
	return &SelfLinks{Server: server, Client: client, Addr: loopback}, nil
}

func (f *LinkFlags) openSelf(kind string) (*SelfLinks, error) {
	switch kind {
	case "raw":
		s, err := openBoth(func(bool) (rawio.Link, error) { return f.openRaw(loopback) })
		if err == nil {
			s.Description = "raw sockets on loopback"
		}
		return s, err
	case "udp":
		s, err := openBoth(func(bool) (rawio.Link, error) {
			return udp.Open(udp.Config{Local: loopback, Port: udp.AnyPort, MTU: f.MTU, Poll: f.Poll, Shards: f.Shards})
		})
		if err == nil {
			s.Description = "UDP on loopback"
			s.EncapPort = s.Server.(*udp.Link).Port()
		}
		return s, err
	case "mem":
		if f.Shards > 1 {
			return nil, Usagef("--shards is for --link udp and tun: memory is one queue")
		}
		a, b, err := mem.Pair(mem.Options{MTU: f.MTU})
		if err != nil {
			return nil, err
		}
		return &SelfLinks{Server: a, Client: b, Addr: a.LocalAddrs()[0].Addr(),
			Description: "memory of this process"}, nil
	}
	return nil, Usagef("--self works with --link raw, udp, tcp or mem, not %s", kind)
}

// Resolve finds the address of HOST, which is a literal or a name. It takes the family of the
// flags, or that of a local address.
func (f *LinkFlags) Resolve(host string) (netip.Addr, error) {
	addrs := []string{host}
	f.dialled = host
	if _, err := netip.ParseAddr(host); err != nil {
		if addrs, err = net.LookupHost(host); err != nil {
			return netip.Addr{}, fmt.Errorf("%s: %w", host, err)
		}
	}
	local, err := f.localAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, s := range addrs {
		a, err := netip.ParseAddr(s)
		alike := func(l netip.Addr) bool { return l.Is4() == a.Is4() }
		if err == nil && f.wantsFamily(a) && (len(local) == 0 || slices.ContainsFunc(local, alike)) {
			return a, nil
		}
	}
	switch {
	case f.V4:
		return netip.Addr{}, Usagef("%s has no IPv4 address: leave -4 out", host)
	case f.V6:
		return netip.Addr{}, Usagef("%s has no IPv6 address: leave -6 out", host)
	}
	return netip.Addr{}, Usagef("%s has no address of the family of %s", host, f.Local)
}

// wantsFamily reports whether the flags allow the family of an address.
func (f *LinkFlags) wantsFamily(a netip.Addr) bool {
	v4 := a.Unmap().Is4()
	return v4 && !f.V6 || !v4 && !f.V4
}

// localAddrs returns the addresses that Local names. An interface stands for its first address that
// is not link-local. It is of IPv4 unless the flags say otherwise.
func (f *LinkFlags) localAddrs() (list []netip.Addr, err error) {
	if f.Local == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(f.Local, ",") {
		a, err := netip.ParseAddr(name)
		if err != nil {
			if a, err = f.interfaceAddr(name); err != nil {
				return nil, err
			}
		}
		list = append(list, a)
	}
	return list, nil
}

func (f *LinkFlags) interfaceAddr(name string) (netip.Addr, error) {
	dev, err := net.InterfaceByName(name)
	var addrs []net.Addr
	if err == nil {
		addrs, err = dev.Addrs()
	}
	if err != nil { // it may have gone in between
		return netip.Addr{}, Usagef("--local %s is not an IP address, and no interface of this host", name)
	}
	var found netip.Addr
	for _, s := range addrs {
		p, err := netip.ParsePrefix(s.String())
		if a := p.Addr().Unmap(); err == nil && f.wantsFamily(a) && !a.IsLinkLocalUnicast() &&
			(!found.IsValid() || a.Is4() && found.Is6()) {
			found = a
		}
	}
	if !found.IsValid() {
		return found, Usagef("the interface %s has no address that could be used", name)
	}
	return found, nil
}

// bindAddr returns the address that a link is bound to. For several it is invalid or unspecified.
func (f *LinkFlags) bindAddr() (netip.Addr, error) {
	list, err := f.localAddrs()
	switch {
	case err != nil:
		return netip.Addr{}, err
	case len(list) == 1:
		return list[0], nil
	case f.V4:
		return netip.IPv4Unspecified(), nil
	case f.V6:
		return netip.IPv6Unspecified(), nil
	}
	return netip.Addr{}, nil
}

// Warn prints a line for people on standard error.
func Warn(tool, format string, args ...any) {
	fmt.Fprintf(os.Stderr, tool+": "+format+"\n", args...)
}
