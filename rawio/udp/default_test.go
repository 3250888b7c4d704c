package udp

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

func TestDestinationWithoutAPortGetsTheDefault(t *testing.T) {
	for _, test := range []struct{ name, remote, want string }{
		// req 6951-5.1-1: the assigned port is the default on both ends.
		{"port 0 means the default port", "192.0.2.1:0", "192.0.2.1:9899"},
		{"another port is kept, as a NAT may have chosen it", "192.0.2.1:1234", "192.0.2.1:1234"},
		{"an IPv4-mapped address is an IPv4 one", "[::ffff:192.0.2.1]:0", "192.0.2.1:9899"},
	} {
		check.Equal(t, test.name, withDefaultPort(netip.MustParseAddrPort(test.remote)).String(), test.want)
	}
}

func TestConfigDefaults(t *testing.T) {
	for _, test := range []struct {
		name       string
		port, want int // -2: refused
	}{
		{"the zero value is the assigned port", 0, 9899}, // req 6951-5.1-1
		{"any port is the system's choice", AnyPort, 0},
		{"the first port is itself", 1, 1},
		{"the last port is itself", 65535, 65535},
		{"one more is none", 65536, -2},
		{"and less than none is none", -2, -2},
	} {
		cfg := Config{Port: test.port, Local: netip.MustParseAddr("::ffff:192.0.2.1")}
		err := cfg.validateAndDefault()
		check.That(t, (err != nil) == (test.want == -2) && (err != nil || cfg.Port == test.want) && cfg.Local.Is4(),
			"%s: port %d, %v", test.name, cfg.Port, err)
	}
	cfg := Config{Local: netip.MustParseAddr("::ffff:192.0.2.1")}
	err := cfg.validateAndDefault()
	check.That(t, err == nil && cfg.Local.Is4(), "an IPv4-mapped address: %v, %v", cfg.Local, err)
}

func TestPayloadIsTheMTULessUDP(t *testing.T) {
	for _, test := range []struct {
		name string
		mtu  int
		v6   bool
		want int
	}{
		// req 6951-5.6-1: 8 octets less than without UDP.
		{"IPv4 over Ethernet", 1500, false, 1472},
		{"IPv6 over Ethernet", 1500, true, 1452},
		{"IPv4 bounded by its length field", 65536, false, 65507},
		{"IPv6 on loopback", 65536, true, 65488},
		{"IPv6 bounded by its length field", 1 << 20, true, 65527},
		{"the least MTU", rawio.MinMTU, false, 548},
	} {
		check.Equal(t, test.name, payloadLimit(test.mtu, test.v6), test.want)
	}
}
