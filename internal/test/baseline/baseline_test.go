package baseline

import (
	"errors"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/mem"
)

// Everything that is sent over a link that loses nothing is counted, with right checksums.
func TestPumpCounts(t *testing.T) {
	for _, work := range []bool{false, true} {
		a, b := must.Two(mem.Pair(mem.Options{Queue: 1 << 20, MTU: 1500}))(t)
		sent, received := must.Two(Run(a, b, b.LocalAddrs()[0],
			Config{Packet: 1480, Duration: time.Millisecond, Work: work}))(t)
		check.That(t, sent.Packets != 0 && received.Packets == sent.Packets && received.Octets == sent.Octets &&
			received.Bad == 0,
			"sent %+v, received %+v", sent, received)
		a.Close()
		b.Close()
	}
}

// A receiver that cannot tell that it is ready does not wait for a sender.
func TestReadyFails(t *testing.T) {
	a, b := must.Two(mem.Pair(mem.Options{MTU: 1500}))(t)
	defer a.Close()
	defer b.Close()
	want := errors.New("no")
	_, err := Receive(b, Config{Ready: func() error { return want }})
	check.That(t, err == want, "%v", err)
}

func TestPacketSizeIsChecked(t *testing.T) {
	a, b := must.Two(mem.Pair(mem.Options{MTU: 1500}))(t)
	defer a.Close()
	defer b.Close()
	for _, n := range []int{minPacket - 1, 1481} {
		_, err := Send(a, b.LocalAddrs()[0], Config{Packet: n}, nil)
		var size *SizeError
		check.That(t, errors.As(err, &size), "packets of %d octets: %v", n, err)
	}
}
