package raw_test

import (
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/raw"
)

// A receiver that does not keep up loses packets; its host must not claim that it has no SCTP, or
// the peer has to end the association.
func TestFullBufferIsNotCalledUnreachable(t *testing.T) {
	ns := testns.New(t)
	for _, test := range []struct {
		name        string
		slow, other netip.Addr
	}{
		{"IPv4", v4, netip.MustParseAddr("127.0.0.2")},
		{"IPv6", v6, v6},
	} {
		t.Run(test.name, func(t *testing.T) {
			slow := openLink(t, ns, raw.Config{Local: test.slow, Ports: []uint16{20001}})
			sender := openLink(t, ns, raw.Config{Local: test.other, Ports: []uint16{20002}})
			big := fakePacket(20002, 20001, 60_000)
			for range 4000 { // far more than a receive buffer holds
				linktest.WriteAll(t, sender, rawio.Packet{Vec: [][]byte{big}, Remote: addrPortOf(test.slow)})
			}
			lost := 4000*60_000 > slow.ReceiveBuffer()
			must.That(t, lost, "the receive buffer of %d octets has not overflowed", slow.ReceiveBuffer())
			linktest.WriteAll(t, slow, rawio.Packet{Vec: [][]byte{fakePacket(20001, 20002, 100)},
				Remote: addrPortOf(test.other)})
			check.Equal(t, "what came before the other's packet", linktest.ReadPackets(t, sender, 1)[0].Kind,
				rawio.KindSCTP)
		})
	}
}

// A sink costs a copy of each packet, so it rests while packets are read as fast as they come, and
// only then. At rest it keeps a packet.
func TestSinkRests(t *testing.T) {
	for _, test := range []struct {
		name        string
		table       string // of the namespace's raw sockets
		slow, other netip.Addr
	}{
		{"IPv4", "/proc/thread-self/net/raw", v4, netip.MustParseAddr("127.0.0.2")},
		{"IPv6", "/proc/thread-self/net/raw6", v6, v6},
	} {
		t.Run(test.name, func(t *testing.T) {
			ns := testns.New(t)
			slow := openLink(t, ns, raw.Config{Local: test.slow, Ports: []uint16{20001}})
			sender := openLink(t, ns, raw.Config{Local: test.other, Ports: []uint16{20002}})
			send := func(count, size int) {
				t.Helper()
				p := rawio.Packet{Vec: [][]byte{fakePacket(20002, 20001, size)}, Remote: addrPortOf(test.slow)}
				for range count {
					linktest.WriteAll(t, sender, p)
				}
			}
			// holders are the sockets that have received something.
			holders := func() (n int) {
				ns.Do(func() error {
					b, err := os.ReadFile(test.table)
					for _, row := range strings.Split(string(b), "\n")[1:] {
						if f := strings.Fields(row); len(f) > 4 && !strings.HasSuffix(f[4], ":00000000") {
							n++
						}
					}
					return err
				})
				return n
			}
			send(300, 100)
			check.Equal(t, "sockets that hold packets before anybody reads", holders(), 1)
			linktest.ReadPackets(t, slow, 300)
			send(10, 100)
			check.Equal(t, "sockets that hold packets while packets are read as they come: the link's own and "+
				"one that rests", holders(), 2)
			linktest.ReadPackets(t, slow, 10)
			done := make(chan error)
			go func() {
				_, err := slow.ReadBatch(make([]rawio.Packet, 1))
				done <- err
			}()
			for holders() > 0 { // until the reader parks
				runtime.Gosched()
			}
			send(1, 100)
			must.OK(t, <-done)

			send(300, 100)
			linktest.ReadPackets(t, slow, 300)
			send(10, 100)
			check.Equal(t, "sockets that hold packets soon after the reader has parked", holders(), 1)
			linktest.ReadPackets(t, slow, 10)
			for range 20 {
				send(300, 100)
				linktest.ReadPackets(t, slow, 300)
			}
			send(900, 60_000) // the buffer has room for a thousand
			check.Equal(t, "sockets that hold packets", holders(), 2)
			linktest.ReadPackets(t, slow, 256)
			check.Equal(t, "sockets that hold packets when the reader falls behind", holders(), 1)
			linktest.ReadPackets(t, slow, 644)
			send(10, 100)
			check.Equal(t, "sockets that hold packets soon after that", holders(), 1)
			send(4000, 60_000)
			linktest.WriteAll(t, slow, rawio.Packet{Vec: [][]byte{fakePacket(20001, 20002, 100)},
				Remote: addrPortOf(test.other)})
			check.Equal(t, "what came before the other's packet", linktest.ReadPackets(t, sender, 1)[0].Kind,
				rawio.KindSCTP)
		})
	}
}
