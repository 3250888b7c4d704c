package mmsg

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// Whatever became of a message, the next one finds room for its address and all its control
// messages.
func TestMessagesAreMadeReadyAgain(t *testing.T) {
	for _, test := range []struct {
		name  string
		n     uint32
		flags int32
	}{
		{"one packet", 100, 0}, {"no octet", 0, 0}, {"cut off", smallBuf, unix.MSG_TRUNC}, {"long", smallBuf + 1, 0},
	} {
		r := newReceiver()
		h := r.prepareMessages(2)
		h[0].n, h[0].hdr.Namelen, h[0].hdr.Flags = test.n, 0, test.flags
		h[0].hdr.SetControllen(0)
		r.beginBatch(1, bare{})
		var st Stats
		pkts := make([]rawio.Packet, 2)
		for i := range pkts[:r.decodePackets(pkts, &st)] {
			pkts[i].Release()
		}
		for i := range r.prepareMessages(2) {
			h := &r.headers[i].hdr
			check.That(t, h.Namelen == unix.SizeofSockaddrInet6 && h.Controllen == controlOctets && h.Flags == 0 &&
				r.bufs[i] != nil && h.Iov.Base == &r.bufs[i].B[0], "%s: message %d is %+v", test.name, i, h)
		}
		r.releaseBufs()
	}
}

// choosy takes a datagram for malformed whose first octet is 0.
type choosy struct{ bare }

func (choosy) Decode(m *Message, p *rawio.Packet) bool {
	p.Data = m.Data
	return m.Data[0] != 0
}

// Malformed datagrams give their buffers back, and one that was cut off is malformed.
func TestMalformedDatagramsKeepNoBuffers(t *testing.T) {
	a, b := newPair(t, 0)
	b.sockets[0].codec = choosy{}
	send := func(first byte, n int) {
		t.Helper()
		d := make([]byte, n)
		d[0] = first
		must.Do(a.WriteBatch([]rawio.Packet{{Vec: [][]byte{d}, Remote: anywhere}}))(t)
	}
	var in [4]rawio.Packet
	for range 3 {
		send(0, 100)
		send(0, 5000)          // by the overflow area, then in a large buffer
		send(1, largeBuf+1000) // longer than any buffer
		send(1, 200)
		n, err := b.ReadBatch(in[:])
		must.That(t, err == nil && n == 1 && len(in[0].Data) == 200, "%d packets, the first of %d octets, %v", n,
			len(in[0].Data), err)
		in[0].Release()
	}
	check.Equal(t, "malformed", b.Stats.RxMalformed.Load(), 9)
	b.Close()
	_, err := b.ReadBatch(in[:])
	must.That(t, err == net.ErrClosed, "%v", err)
	s, l := b.receiver.small.Outstanding(), b.receiver.large.Outstanding()
	check.That(t, s+l == 0, "%d small and %d large buffers were never given back", s, l)
}

// Of the TOS octet and the traffic class, two bits are the ECN field.
func TestECNFieldIsTwoBits(t *testing.T) {
	for _, row := range []struct{ level, typ, n int }{
		{unix.IPPROTO_IP, unix.IP_TOS, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 4},
	} {
		for ecn := range uint8(4) {
			var buf controlBuf
			at := 0
			b := buf.appendMessage(&at, row.level, row.typ, row.n)
			if b[0] = 0xb8 | ecn; row.n == 4 {
				*(*int32)(pointerTo(&b[0])) = int32(0xb8 | ecn) // in the host's order
			}
			c, _ := parseControl(controlBytes(&buf)[:at])
			check.That(t, c.ECN == ecn, "level %d: ECN %d, want %d", row.level, c.ECN, ecn)
		}
	}
}
