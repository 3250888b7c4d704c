package sctp

import (
	"bytes"
	"net/netip"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/udp"
)

// Over a link of several queues, each with its receive goroutine, associations from many hosts, and
// several from each, carry messages both ways, and nothing is left when the Transport is closed.
func TestTransportOverShards(t *testing.T) {
	const clients, each, messages = 6, 2, 40
	address := func(host byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, host}) }
	// two hosts of one address are one, if they choose the same port
	open := func(host byte, shards int) (*Transport, *udp.Link) {
		link := must.Get(udp.Open(udp.Config{Local: address(host), Port: udp.AnyPort, Shards: shards}))(t)
		tr := must.Get(NewTransport(link, nil))(t)
		t.Cleanup(func() { tr.Close() })
		return tr, link
	}
	server, link := open(1, 3)
	l := must.Get(server.Listen(5000, nil))(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for range clients * each {
			c, err := l.Accept(deadlineCtx(t))
			if err != nil {
				t.Error(err)
				return
			}
			wg.Go(func() { echoAll(c) })
		}
	})
	for i := range clients {
		client, _ := open(byte(2+i), 1)
		for range each {
			wg.Go(func() {
				c, err := client.Dial(deadlineCtx(t), netip.AddrPortFrom(address(1), 5000),
					&Config{EncapPort: link.Port()})
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				back := make([]byte, 1<<16)
				for i := range messages {
					out := bytes.Repeat([]byte{byte(i)}, 1+i*37)
					if _, err := c.WriteMsg(out, SendInfo{}); err != nil {
						t.Error(err)
						return
					}
					if n, _, err := c.ReadMsg(back); err != nil || !bytes.Equal(back[:n], out) {
						t.Errorf("message %d comes back with %d octets: %v", i, n, err)
						return
					}
				}
			})
		}
	}
}
