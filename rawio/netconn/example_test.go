package netconn_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/rddp-go/rddp/internal/test/connpipe"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/netconn"
	"github.com/rddp-go/rddp/sctp"
)

// openOver sets up an association over a DTLS connection. Both ends call it, whichever is first.
func openOver(ctx context.Context, c net.Conn) (*sctp.Conn, error) {
	link, err := netconn.New(c, &netconn.Config{ErrorDetection: rawio.DTLSErrorDetection})
	if err != nil {
		return nil, err
	}
	t, err := sctp.NewTransport(link, nil)
	if err != nil {
		return nil, err
	}
	peer := netip.AddrPortFrom(netconn.PeerAddr, 5000)
	return t.Dial(ctx, peer, &sctp.Config{LocalPort: 5000}) // the same at the other end
}

// Two ends of a connection that keeps packets apart open an association from both sides.
func ExampleNew() {
	ctx := context.Background()
	a, b := connpipe.New() // in place of two DTLS connections
	other := make(chan *sctp.Conn)
	go func() {
		c, err := openOver(ctx, b)
		if err != nil {
			panic(err)
		}
		other <- c
	}()
	one, err := openOver(ctx, a)
	if err != nil {
		panic(err)
	}
	two := <-other

	if _, err := one.WriteMsg([]byte("hello"), sctp.SendInfo{Stream: 3}); err != nil {
		panic(err)
	}
	buf := make([]byte, 100)
	n, info, err := two.ReadMsg(buf)
	fmt.Printf("%s on stream %d: %v\n", buf[:n], info.Stream, err)
	a.Close() // ends both associations
	<-two.Done()
	// Output: hello on stream 3: <nil>
}
