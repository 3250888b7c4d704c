package upper_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/upper"
	"github.com/rddp-go/rddp/sctp/wire"
)

// meter is a protocol that counts what comes, and keeps nothing of it.
type meter struct {
	octets int
	ended  chan struct{}
}

func (m *meter) Place(_ rawio.Time, d wire.Data, _ *rawio.Buf) assoc.Verdict {
	m.octets += len(d.Payload())
	return assoc.Consumed
}

func (*meter) Next(rawio.Time, int, *assoc.Message) bool { return false } // it has nothing to say
func (*meter) Idle() bool                                { return true }
func (*meter) Acked(rawio.Time, wire.StreamID, uint64)   {}
func (*meter) HandleReceived(rawio.Time) (more bool)     { return false }
func (*meter) Settled()                                  {}

func (m *meter) HandleEvent(_ rawio.Time, ev assoc.Event) {
	if ev.Kind == assoc.EventDown {
		close(m.ended)
	}
}

// A server that measures, and a client that sends it messages.
func Example() {
	a, b, err := mem.Pair(mem.Options{})
	check(err)
	server, err := sctp.NewTransport(a, nil)
	check(err)
	defer server.Close()
	client, err := sctp.NewTransport(b, nil)
	check(err)
	defer client.Close()

	m := &meter{ended: make(chan struct{})}
	_, err = server.Listen(7, &sctp.Config{
		NewUpper: func(*sctp.Conn, *assoc.Assoc) upper.Protocol { return m },
	})
	check(err)
	c, err := client.Dial(context.Background(), netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), 7), nil)
	check(err)
	for range 3 {
		_, err = c.WriteMsg(make([]byte, 5000), sctp.SendInfo{})
		check(err)
	}
	check(c.Close())
	<-m.ended
	fmt.Println(m.octets, "octets")
	// Output: 15000 octets
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
