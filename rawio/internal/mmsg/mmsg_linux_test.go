package mmsg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// bare adds nothing to a datagram: these tests run over a pair of Unix sockets, whose queue is short
// and which lose nothing.
type bare struct{}

func (bare) Decode(m *Message, p *rawio.Packet) bool {
	p.Data = m.Data
	return len(m.Data) > 0
}
func (bare) DecodeError(*ICMPError, *rawio.Packet) bool { return false }
func (bare) Encode(p *rawio.Packet, o *Outgoing) error  { return nil }

func pair(t *testing.T, spin time.Duration) (a, b *Group) {
	t.Helper()
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
	group := func(fd int) *Group {
		s := must.Get(NewSocket(fd, false, bare{}))(t)
		g := must.Get(NewGroup(spin, s))(t)
		g.drain = func(uintptr) {} // a Unix socket has no error queue, and would give a datagram instead
		t.Cleanup(func() { g.Close() })
		return g
	}
	return group(fds[0]), group(fds[1])
}

var anywhere = netip.MustParseAddrPort("127.0.0.1:1")

// Writers that find the queue full wait for the reader and go on; nothing is lost or mixed up.
func TestFullQueueBlocksWriters(t *testing.T) {
	for _, spin := range []time.Duration{0, 20 * time.Microsecond} {
		a, b := pair(t, spin)
		const writers, each = 4, 500
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				pkts := make([]rawio.Packet, 50)
				for i := 0; i < each; i += len(pkts) {
					for k := range pkts {
						head, body := make([]byte, 8), bytes.Repeat([]byte{byte(w)}, 1000+i+k)
						binary.BigEndian.PutUint32(head, uint32(w))
						binary.BigEndian.PutUint32(head[4:], uint32(i+k))
						pkts[k] = rawio.Packet{Vec: [][]byte{head, body}, Remote: anywhere}
					}
					if n, err := a.WriteBatch(pkts); n != len(pkts) || err != nil {
						t.Errorf("WriteBatch = %d, %v", n, err)
					}
				}
			})
		}
		var next [writers]int
		in := make([]rawio.Packet, 7)
		for total := 0; total < writers*each; {
			n := must.Get(b.ReadBatch(in))(t)
			for i := range in[:n] {
				d := in[i].Data
				w, k := binary.BigEndian.Uint32(d), int(binary.BigEndian.Uint32(d[4:]))
				if next[w] != k || !bytes.Equal(d[8:], bytes.Repeat([]byte{byte(w)}, 1000+k)) {
					t.Fatalf("writer %d: packet %d of %d octets, want packet %d", w, k, len(d), next[w])
				}
				next[w]++
				in[i].Release()
			}
			total += n
		}
		wg.Wait()
	}
}

// The receiver copies together the first packets that do not fit a small buffer, goes over to large
// ones, and comes back when packets have been small for long.
func TestReceiveBuffersFollowThePackets(t *testing.T) {
	a, b := pair(t, 0)
	in := make([]rawio.Packet, 3)
	var held []rawio.Packet
	move := func(sizes ...int) {
		t.Helper()
		var out []rawio.Packet
		for _, n := range sizes {
			d := make([]byte, n)
			for i := range d {
				d[i] = byte(i * 11)
			}
			out = append(out, rawio.Packet{Vec: [][]byte{d}, Remote: anywhere})
		}
		if n, err := a.WriteBatch(out); err != nil {
			t.Fatalf("WriteBatch = %d, %v", n, err)
		}
		for got := 0; got < len(out); {
			n := must.Get(b.ReadBatch(in))(t)
			for i := range in[:n] {
				if !bytes.Equal(in[i].Data, out[got+i].Vec[0]) {
					t.Fatalf("a packet of %d octets came as %d, or changed", len(out[got+i].Vec[0]), len(in[i].Data))
				}
			}
			held = append(held, in[:n]...)
			got += n
		}
	}
	release := func() {
		for i := range held {
			held[i].Release()
		}
		held = held[:0]
	}
	move(100, 2048, 2049, 65535, 100)
	if !b.rx.big {
		t.Error("small buffers after large packets")
	}
	move(65535, 1, 65535, 2048)
	release()
	for range quietLimit + largeBatch {
		move(100)
		release()
	}
	if b.rx.big {
		t.Error("large buffers after small packets only")
	}
	move(2049)
	release()
	b.Close()
	if _, err := b.ReadBatch(in); err == nil {
		t.Error("ReadBatch after Close succeeded")
	}
	check.Equal(t, "buffers leaked", b.rx.small.Outstanding()+b.rx.large.Outstanding(), 0)
}

func TestMalformedIsCountedAndSkipped(t *testing.T) {
	a, b := pair(t, 0)
	if _, err := a.WriteBatch([]rawio.Packet{{Remote: anywhere}, {Remote: anywhere}, {Vec: [][]byte{{1}}, Remote: anywhere}}); err != nil {
		t.Fatal(err)
	}
	in := make([]rawio.Packet, 4)
	for got := 0; got == 0; {
		n := must.Get(b.ReadBatch(in))(t)
		got = n
	}
	in[0].Release()
	check.Equal(t, "malformed", b.Stats.RxMalformed.Load(), 2)
}

// An error that stays is the packet's. This socket first reports ECONNREFUSED, which might be about
// an earlier packet and is tried again, and then has no peer any more.
func TestErrorStopsTheBatch(t *testing.T) {
	a, b := pair(t, 0)
	b.Close()
	n, err := a.WriteBatch([]rawio.Packet{{Vec: [][]byte{{1}}, Remote: anywhere}})
	var sys *os.SyscallError
	if n != 0 || !errors.As(err, &sys) || sys.Err != unix.ENOTCONN {
		t.Errorf("WriteBatch to a closed peer = %d, %v", n, err)
	}
	if n, err := a.WriteBatch([]rawio.Packet{{Remote: netip.MustParseAddrPort("[::1]:1")}, {}}); n != 0 || err == nil {
		t.Errorf("WriteBatch without a socket of the family = %d, %v", n, err)
	}
	if n, err := a.ReadBatch(nil); n != 0 || err == nil {
		t.Errorf("ReadBatch without room = %d, %v", n, err)
	}
}

func TestControlMessages(t *testing.T) {
	var o Outgoing
	from4, from6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	o.From(from6)
	o.Class(3, true)
	if c, _ := parseControl(bytesOf(&o.ctl)[:o.ctlLen]); c.Local != from6 || c.ECN != 3 {
		t.Errorf("IPv6: %+v", c)
	}
	o = Outgoing{}
	o.From(from4)
	o.Class(2, false)
	c, _ := parseControl(bytesOf(&o.ctl)[:o.ctlLen])
	check.Equal(t, "IPv4: ECN", c.ECN, 2)
	for cut := range o.ctlLen { // a cut-off message is left out, and none reads beyond the end
		parseControl(bytesOf(&o.ctl)[:cut])
	}
}

func TestZoneOfAnAddressSurvivesTheKernel(t *testing.T) {
	var s sockaddr
	a := netip.MustParseAddr("fe80::1%lo")
	if n := s.put(a, 7); n != unix.SizeofSockaddrInet6 || s.Scope_id == 0 {
		t.Errorf("scope %d", s.Scope_id)
	}
	check.Equal(t, "came back as", s.get(), netip.AddrPortFrom(a, 7))
	check.Equal(t, "index of an unknown zone", zoneIndex("no such interface"), 0)
	if i := zoneIndex("4711"); i != 4711 || zoneName(4711) != "4711" {
		t.Errorf("a number as the zone has index %d", i)
	}
}
