package cli

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// A flag that TCP can do nothing with is refused, not forgotten.
func TestFlagsThatTCPHasNoUseFor(t *testing.T) {
	var usage *UsageError
	for _, row := range []struct {
		name   string
		flags  LinkFlags
		server bool
		works  bool
	}{
		{"nothing", LinkFlags{}, false, true},
		{"a family, and no CRCs", LinkFlags{V4: true, NoCRC: true}, false, true},
		{"one queue", LinkFlags{Shards: 1}, false, true},
		{"the address of a server", LinkFlags{Local: "127.0.0.1"}, true, true},
		{"the address of a client", LinkFlags{Local: "127.0.0.1"}, false, false},
		{"several addresses", LinkFlags{Local: "127.0.0.1,127.0.0.2"}, true, false},
		{"no address", LinkFlags{Local: "nowhere"}, true, false},
		{"several queues", LinkFlags{Shards: 2}, true, false},
		{"--udp-port", LinkFlags{UDPPort: 1}, true, false},
		{"--encap-port", LinkFlags{EncapPort: 1}, false, false},
		{"--tun-name", LinkFlags{TunName: "x"}, false, false},
		{"--tun-host", LinkFlags{TunHost: "10.0.0.1/24"}, false, false},
		{"--mtu", LinkFlags{MTU: 1500}, false, false},
		{"--pcap", LinkFlags{Pcap: "file"}, false, false},
		{"--poll", LinkFlags{Poll: time.Second}, false, false},
		{"--cc", LinkFlags{controller: controllerFlag{name: "bbr"}}, false, false},
		{"--trace", LinkFlags{Trace: Trace{fileName: "file"}}, false, false},
		{"a mark", LinkFlags{Mark: rawio.Mark{TTL: 3}}, false, false},
		{"no search for the MTU", LinkFlags{NoSearch: true}, false, false},
	} {
		row.flags.Kind = "tcp"
		d, err := row.flags.Device(row.server, nil, nil)
		check.That(t, (err == nil) == row.works && (err == nil || errors.As(err, &usage)), "%s: %v", row.name, err)
		if err == nil {
			d.Close()
		}
	}
}

func TestListenersOverTCP(t *testing.T) {
	for _, row := range []struct {
		flags LinkFlags
		free  string // an address whose port is free still
	}{
		{LinkFlags{Local: "127.0.0.1"}, "127.0.0.2"}, {LinkFlags{V4: true}, ""}, {LinkFlags{}, ""},
	} {
		row.flags.Kind = "tcp"
		d := must.Get(row.flags.Device(true, nil, nil))(t)
		l := must.Get(row.flags.Listen(d, 0))(t)
		_, err := row.flags.Listen(d, l.Port())
		check.That(t, errors.Is(err, syscall.EADDRINUSE), "a port that is taken: %v", err)
		check.Equal(t, "explained", Explain(err),
			"the TCP port is in use by another program on this host: stop it or choose another with --port")
		if row.free != "" {
			must.OK(t, must.Get((&LinkFlags{Kind: "tcp", Local: row.free}).Listen(d, l.Port()))(t).Close())
		}
		check.Equal(t, "protocol", row.flags.Protocol(), "TCP")
		must.OK(t, d.Close())
	}
	check.Equal(t, "protocol of raw", (&LinkFlags{}).Protocol(), "SCTP")
}
