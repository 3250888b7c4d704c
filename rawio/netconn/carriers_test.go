package netconn

import (
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/connpipe"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
)

// batching is a connection that brings and takes several packets at once.
type batching struct {
	*connpipe.Conn
	refuses int // packets at the beginning of each batch that it takes, less 1; 0: all
	batches int
}

func (b *batching) ReadPackets(bufs [][]byte, lens []int) (n int, err error) {
	b.batches++
	for n < len(bufs) && n < 3 && err == nil {
		if lens[n], err = b.Read(bufs[n]); err == nil {
			n++
		}
	}
	return n, err
}

func (b *batching) WritePackets(pkts [][]byte) (n int, err error) {
	b.batches++
	for _, p := range pkts {
		if b.refuses > 0 && n == b.refuses-1 {
			return n, errors.New("enough")
		}
		if _, err := b.Write(p); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func TestBatches(t *testing.T) {
	a, b := connpipe.New()
	ca, cb := &batching{Conn: a}, &batching{Conn: b}
	one, two := newLink(t, ca, nil), newLink(t, cb, nil)
	check.Equal(t, "packets at once", rawio.MaxBatchOf(two), maxReadBatch)
	data := linktest.Pattern(100)
	linktest.WriteAll(t, one, packetTo(data), packetTo(data[:50]), packetTo(data[:11]), packetTo(data[:20]),
		packetTo(data[:30]), packetTo(data[:40]))
	var got []int
	pkts := make([]rawio.Packet, 32)
	for len(got) < 5 { // one is too short
		for _, p := range pkts[:must.Get(two.ReadBatch(pkts))(t)] {
			check.Slice(t, "octets", p.Data, data[:len(p.Data)])
			got = append(got, len(p.Data))
			p.Release()
		}
	}
	check.Slice(t, "lengths", got, []int{100, 50, 20, 30, 40})
	check.Equal(t, "batches read", cb.batches, 2)
	ca.refuses = 2
	linktest.WriteAll(t, one, packetTo(data), packetTo(data), packetTo(data), packetTo(data))
	one.Close()
	check.That(t, one.Stats().TxErrors >= 1, "%+v", one.Stats())
	a.Close()
	_, err := one.ReadBatch(pkts)
	check.That(t, errors.Is(err, net.ErrClosed), "%v", err)
}

// Datagram sockets are connections that keep packets apart, with or without an address of the peer.
func TestSocketsAsCarriers(t *testing.T) {
	udp := func(t *testing.T) (*net.UDPConn, *net.UDPConn) {
		listen := func() *net.UDPConn {
			return must.Get(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
		}
		return listen(), listen()
	}
	links := map[string]func(t *testing.T) (a, b *Link, stranger func([]byte)){
		"UDP": func(t *testing.T) (*Link, *Link, func([]byte)) {
			a, b := udp(t)
			c, _ := udp(t)
			t.Cleanup(func() { c.Close() })
			return must.Get(NewPacket(a, b.LocalAddr(), nil))(t), must.Get(NewPacket(b, a.LocalAddr(), nil))(t),
				func(p []byte) { must.Do(c.WriteTo(p, b.LocalAddr()))(t) }
		},
	}
	if runtime.GOOS != "windows" {
		links["Unix datagrams"] = func(t *testing.T) (*Link, *Link, func([]byte)) {
			dir := t.TempDir()
			at := func(name string) *net.UnixAddr {
				return &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unixgram"}
			}
			a := must.Get(net.ListenUnixgram("unixgram", at("a")))(t)
			b := must.Get(net.ListenUnixgram("unixgram", at("b")))(t)
			c := must.Get(net.ListenUnixgram("unixgram", at("c")))(t)
			t.Cleanup(func() { c.Close() })
			return must.Get(NewPacket(a, at("b"), nil))(t), must.Get(NewPacket(b, at("a"), nil))(t),
				func(p []byte) { must.Do(c.WriteTo(p, at("b")))(t) }
		}
		links["connected Unix datagrams"] = func(t *testing.T) (*Link, *Link, func([]byte)) {
			dir := t.TempDir()
			at := func(name string) *net.UnixAddr {
				return &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unixgram"}
			}
			b := must.Get(net.ListenUnixgram("unixgram", at("b")))(t)
			a := must.Get(net.DialUnix("unixgram", at("a"), at("b")))(t)
			return must.Get(New(a, nil))(t), must.Get(NewPacket(b, at("a"), nil))(t), nil
		}
	}
	for name, open := range links {
		t.Run(name, func(t *testing.T) {
			a, b, stranger := open(t)
			data := linktest.Pattern(1000)
			if stranger != nil {
				stranger(data[:100])
			}
			for range 3 {
				linktest.WriteAll(t, a, packetTo(data), packetTo(data[:500]))
				wantPacket(t, b, data)
				wantPacket(t, b, data[:500])
				linktest.WriteAll(t, b, packetTo(data[:20]))
				wantPacket(t, a, data[:20])
			}
			if stranger != nil {
				check.Equal(t, "packets of others", b.Stats().RxDropped, 1)
			}
			for _, l := range []*Link{a, b} {
				ended := make(chan error)
				go func() {
					_, err := l.ReadBatch(make([]rawio.Packet, 1))
					ended <- err
				}()
				check.OK(t, l.Close())
				check.That(t, <-ended == net.ErrClosed, "the reader hears of something else")
			}
		})
	}
}
