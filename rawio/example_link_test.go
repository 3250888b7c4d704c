package rawio_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp"
)

// tunnel is a link of one's own. Here a channel carries the packets; it could as well be DTLS, or
// messages of a WebSocket.
type tunnel struct {
	local, remote netip.AddrPort
	in, out       chan []byte
	open          context.Context // until Close
	end           context.CancelFunc
}

func (l *tunnel) ReadBatch(pkts []rawio.Packet) (int, error) {
	select {
	case b := <-l.in:
		pkts[0] = rawio.Packet{Data: b, Local: l.local, Remote: l.remote}
		return 1, nil
	case <-l.open.Done():
		return 0, net.ErrClosed
	}
}

func (l *tunnel) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		if l.open.Err() != nil {
			return i, net.ErrClosed
		}
		select {
		case l.out <- bytes.Join(pkts[i].Vec, nil):
		default: // it is full: SCTP sends again what is lost
		}
	}
	return len(pkts), nil
}

func (l *tunnel) MTU(_, _ netip.Addr) int { return 1200 }

func (l *tunnel) Close() error {
	l.end()
	return nil
}

// LocalAddrs is optional: an Addresser knows its own addresses.
func (l *tunnel) LocalAddrs() []netip.AddrPort { return []netip.AddrPort{l.local} }

// SCTP over a link of one's own.
func ExampleLink() {
	ok := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	a, b := netip.MustParseAddrPort("192.0.2.1:0"), netip.MustParseAddrPort("192.0.2.2:0")
	to, fro := make(chan []byte, 64), make(chan []byte, 64)
	var ends [2]*sctp.Transport
	for i, l := range []*tunnel{{local: a, remote: b, in: fro, out: to}, {local: b, remote: a, in: to, out: fro}} {
		l.open, l.end = context.WithCancel(context.Background())
		t, err := sctp.NewTransport(l, nil)
		ok(err)
		defer t.Close()
		ends[i] = t
	}

	server, err := ends[1].Listen(7, nil)
	ok(err)
	client, err := ends[0].Dial(context.Background(), netip.AddrPortFrom(b.Addr(), 7), nil)
	ok(err)
	_, err = client.WriteMsg([]byte("over a channel"), sctp.SendInfo{Stream: 3})
	ok(err)
	accepted, err := server.Accept(context.Background())
	ok(err)
	buf := make([]byte, 100)
	n, info, err := accepted.ReadMsg(buf)
	fmt.Printf("%s on stream %d: %v\n", buf[:n], info.Stream, err)
	// Output:
	// over a channel on stream 3: <nil>
}
