package mmsg

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// input is a fuzz input.
type input struct{ fuzzinput.Script }

// quoting is choosy and takes ICMP errors of more than 8 octets.
type quoting struct{ choosy }

func (quoting) DecodeError(e *ICMPError, p *rawio.Packet) bool {
	p.Data, p.Remote, p.Local = e.Data, e.To, netip.AddrPortFrom(e.Control.Local, 0)
	return len(e.Data) > 8
}

// makeDatagram is what the kernel could have received into message i: octets that count up from a
// first one, an address and control messages. It returns the packets that are to come of it.
func (s *input) makeDatagram(r *receiver, i int) (want [][]byte) {
	h := &r.headers[i]
	b := s.Next()
	n := []int{s.Next(), s.Next() << 4, smallBuf - 2 + b>>4, s.Next() << 8}[b%4]
	d := make([]byte, n)
	first := s.Next()
	for k := range d {
		d[k] = byte(first + k)
	}
	k := copy(r.bufs[i].B, d)
	copy(r.overflowArea[i*overflowLen:][:overflowLen], d[k:])
	if r.usesLarge {
		copy(r.bufs[i].B, d)
	}
	h.n = uint32(n)
	if b&16 != 0 {
		h.hdr.Flags = unix.MSG_TRUNC
	}
	addr := netip.IPv4Unspecified()
	if b&32 != 0 {
		addr = netip.IPv6LinkLocalAllNodes().WithZone("lo")
	}
	r.names[i].setAddr(addr, uint16(s.Next()))
	segment := s.makeControl(&r.ctls[i], &h.hdr)
	if n == 0 || b&16 != 0 {
		return [][]byte{nil} // one malformed
	}
	if segment <= 0 {
		segment = n
	}
	for ; n > segment; n -= segment {
		want, d = append(want, d[:segment]), d[segment:]
	}
	return append(want, d)
}

// makeControl makes control messages, or octets instead, and returns the segment size that they
// say.
func (s *input) makeControl(c *controlBuf, h *unix.Msghdr) (segment int) {
	b := s.Next()
	at := 0
	switch b % 4 {
	case 1, 2:
		segment = s.Next()<<b/64*4 - 8
		binary.NativeEndian.PutUint32(c.appendMessage(&at, unix.SOL_UDP, unix.UDP_GRO, 4), uint32(int32(segment)))
		if b%4 == 2 {
			copy(c.appendMessage(&at, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo), s.Take(12))
		}
	case 3:
		at = copy(controlBytes(c), s.Take(controlOctets))
		parsed, _ := parseControl(controlBytes(c)[:at])
		segment = parsed.segmentSize
	}
	h.SetControllen(at)
	return segment
}

// FuzzReceive takes datagrams apart that hold several packets, of any length and with any control
// messages, with room for a few packets at a time: all packets come, as they were, and every buffer
// is given back.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{3, 0, 200, 1, 0, 0, 2, 1, 20, 7, 5, 0x41, 100, 1})
	f.Add([]byte{1, 3, 255, 9, 4, 1, 250, 0, 0, 0})
	f.Add([]byte{0x42, 1, 100, 9, 4, 0x22, 9, 10, 0, 0, 1, 127, 0, 0, 1, 3, 255, 1, 2, 3, 20, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0x80, 2, 0xFF, 60, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		s := input{in}
		r, q, st := newReceiver(), &errorReader{}, &Stats{}
		for len(s.Script) > 0 {
			b := s.Next()
			if b&0x80 != 0 {
				fuzzError(t, &s, q, r.small)
				continue
			}
			var want [][]byte
			n := len(r.prepareMessages(b%4 + 1))
			for i := range n {
				want = append(want, s.makeDatagram(r, i)...)
			}
			r.beginBatch(n, quoting{})
			drainAll(t, r, st, want, b>>4%4+1)
		}
		r.releaseBufs()
		q.releaseBuf()
		must.Equal(t, "buffers never given back", r.small.Outstanding()+r.large.Outstanding(), 0)
	})
}

// drainAll takes all packets, some at a time, and compares those that are well formed.
func drainAll(t *testing.T, r *receiver, st *Stats, want [][]byte, room int) {
	malformed := st.RxMalformed.Load()
	for _, w := range want {
		if len(w) == 0 || w[0] == 0 {
			malformed++
		}
	}
	for r.hasPending() {
		pkts := make([]rawio.Packet, room)
		n := r.decodePackets(pkts, st)
		for _, p := range pkts[:n] {
			for len(want) > 0 && (len(want[0]) == 0 || want[0][0] == 0) {
				want = want[1:]
			}
			must.That(t, len(want) != 0 && bytes.Equal(p.Data, want[0]) && cap(p.Data) == len(p.Data),
				"a packet of %d octets, capacity %d, %d are to come", len(p.Data), cap(p.Data), len(want))
			want = want[1:]
			p.Release()
		}
	}
	for _, w := range want {
		must.That(t, len(w) == 0 || w[0] == 0, "a packet of %d octets never came", len(w))
	}
	must.Equal(t, "malformed", st.RxMalformed.Load(), malformed)
}

// fuzzError decodes an entry of an error queue.
func fuzzError(t *testing.T, s *input, q *errorReader, pool *rawio.Pool) {
	if q.buf == nil {
		q.buf = pool.Get()
	}
	n := s.Next() * 16
	q.msg[0].hdr.SetControllen(copy(q.control.asBytes(), s.Take(s.Next())))
	q.destination.setAddr(netip.IPv6Loopback(), 1)
	var p rawio.Packet
	buf := q.buf
	if q.decodeReport(n, &Socket{codec: quoting{}}, &p) {
		must.That(t, p.Buf == buf && q.buf == nil && len(p.Data) > 8 && len(p.Data) <= len(buf.B),
			"a report of %d octets", len(p.Data))
		p.Release()
	}
}
