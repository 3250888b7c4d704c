package cli

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma"
)

// A flag that a link cannot do anything with is refused, not forgotten.
func TestShardsAreForLinksOfSeveralQueues(t *testing.T) {
	var usage *UsageError
	for _, kind := range []string{"", "raw", "mem"} {
		f := LinkFlags{Kind: kind, Shards: 2}
		l, err := f.Open(true)
		check.That(t, errors.As(err, &usage), "--link %q: %v, %v", kind, l, err)
		d, err := f.Device(true, nil, nil)
		check.That(t, d == nil && errors.As(err, &usage), "a device over --link %q: %v, %v", kind, d, err)
		s, err := f.OpenSelf()
		check.That(t, errors.As(err, &usage), "--self --link %q: %v, %v", kind, s, err)
	}
	f := LinkFlags{Kind: "udp", Shards: 2}
	s := must.Get(f.OpenSelf())(t)
	s.Client.Close()
	s.Server.Close()
}

// Each flag reaches the field that it is for, and none is forgotten.
func TestEachFlagOfALink(t *testing.T) {
	for line, is := range map[string]func(f *LinkFlags) bool{
		"--link udp": func(f *LinkFlags) bool { return f.Kind == "udp" }, "--local a,b": func(f *LinkFlags) bool { return f.Local == "a,b" },
		"--no-crc": func(f *LinkFlags) bool { return f.NoCRC }, "--udp-port 7": func(f *LinkFlags) bool { return f.UDPPort == 7 },
		"--encap-port 7": func(f *LinkFlags) bool { return f.EncapPort == 7 }, "--tun-name t": func(f *LinkFlags) bool { return f.TunName == "t" },
		"--tun-host h": func(f *LinkFlags) bool { return f.TunHost == "h" }, "--mtu 1500": func(f *LinkFlags) bool { return f.MTU == 1500 },
		"--shards 3": func(f *LinkFlags) bool { return f.Shards == 3 }, "--pcap p": func(f *LinkFlags) bool { return f.Pcap == "p" },
		"--cc bbr":  func(f *LinkFlags) bool { return f.controller.name == "bbr" && f.controller.factory != nil },
		"--trace t": func(f *LinkFlags) bool { return f.Trace.fileName == "t" }, "--poll 3us": func(f *LinkFlags) bool { return f.Poll == 3000 },
		"--cert c": func(f *LinkFlags) bool { return f.Encryption.certFile == "c" }, "--key k": func(f *LinkFlags) bool { return f.Encryption.keyFile == "k" },
		"--ca c": func(f *LinkFlags) bool { return f.Encryption.caFile == "c" }, "--fingerprint f": func(f *LinkFlags) bool { return f.Encryption.fingerprints == "f" },
		"--insecure-self-signed": func(f *LinkFlags) bool { return f.Encryption.selfSigned },
	} {
		f, fs := new(LinkFlags), NewFlags("test")
		f.Add(fs)
		check.OK(t, Parse(fs, strings.Fields(line), io.Discard, ""))
		check.That(t, is(f), "%s: %+v", line, f)
	}
}

// What the disk has not taken of a recording is told, with the file's name; a trace is that of the
// end that it is of, and both ends of a device have their watcher.
func TestRecordings(t *testing.T) {
	f := &LinkFlags{Kind: "udp", Pcap: "/dev/full"}
	must.OK(t, f.RecordingError()) // nothing is recorded
	s := must.Get(f.OpenSelf())(t)
	s.Client.Close()
	s.Server.Close()
	err := f.RecordingError()
	check.That(t, errors.Is(err, syscall.ENOSPC) && strings.HasPrefix(err.Error(),
		"--pcap /dev/full: not all packets are in it: "), "%v", err)

	file := filepath.Join(t.TempDir(), "trace")
	f = &LinkFlags{Kind: "mem", Trace: Trace{fileName: file}}
	must.OK(t, f.Trace.Open("tool", "client"))
	var seen watchedDevices
	d := must.Get(f.Devices(nil, &seen))(t)
	l := must.Get(d.Server.Transport().Listen(7, nil))(t)
	c := must.Get(d.Client.Transport().Dial(t.Context(), netip.AddrPortFrom(d.Addr, 7), nil))(t)
	must.Get(l.Accept(t.Context()))(t)
	c.Abort("")
	d.Close()
	check.Slice(t, "devices that are watched", seen, []string{"server", "client"})
	var said strings.Builder
	check.That(t, f.Trace.Close("tool", &said) && said.String() == "", "%s", &said)
	text := string(must.Get(os.ReadFile(file))(t))
	check.That(t, strings.Contains(text, "server") && strings.Contains(text, "client") && len(text) > 1000,
		"%d octets are traced:\n%s", len(text), text)
	d = must.Get((&LinkFlags{Kind: "mem"}).Devices(nil, nil))(t) // without either
	d.Close()
}

// watchedDevices are the ends that were watched.
type watchedDevices []string

func (w *watchedDevices) Device(name string, d *rdma.Device, l rawio.Link) {
	if d != nil && l != nil {
		*w = append(*w, name)
	}
}

func TestOctetsHaveAUnit(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "4096": 4096, "64K": 1 << 16, "64k": 1 << 16, "1M": 1 << 20,
		"1m": 1 << 20, "2047M": 2047 << 20, "2147483647": 1<<31 - 1,
		"1G": 1 << 30,
		// -1: refused
		"2048M": -1, "2147483648": -1, "2097152K": -1, "": -1, "K": -1, "-1": -1, "1KK": -1, "1P": -1, "1.5G": -1,
		"8388608T": -1, "18014398509481985K": -1, "9223372036854775808": -1} {
		var s int
		err := Octets(&s, 0, 0, 1<<31-1).Set(text)
		check.That(t, (err == nil) == (want >= 0) && (err != nil || int(s) == want), "%q: %d, %v", text, s, err)
	}
}
