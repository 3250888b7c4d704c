package mmsg

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// A socket whose messages come one at a time is asked for one at a time, until two come at once; none is lost or late.
func TestTrickle(t *testing.T) {
	a, b := pair(t, -time.Microsecond)
	sent, got := byte(0), byte(0)
	send := func(n int) {
		t.Helper()
		for range n {
			sent++
			if _, err := a.WriteBatch([]rawio.Packet{{Vec: [][]byte{{sent}}, Remote: anywhere}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func() int {
		t.Helper()
		pkts := make([]rawio.Packet, 8)
		n, err := b.ReadBatch(pkts)
		if err != nil {
			t.Fatal(err)
		}
		for i := range pkts[:n] {
			if got++; pkts[i].Data[0] != got {
				t.Fatalf("packet %d came for %d", pkts[i].Data[0], got)
			}
			pkts[i].Release()
		}
		return n
	}
	for range 2 {
		for range loneMany {
			send(3)
			if n := read(); n != 3 {
				t.Fatalf("%d of 3 at once", n)
			}
		}
		for range loneMany {
			send(1)
			read()
		}
		send(5)
		if n, m, k := read(), read(), read(); n != 1 || m != 1 || k != 3 {
			t.Errorf("after a trickle, five at once came as %d, %d and %d", n, m, k)
		}
	}
}

// Whatever became of a message, the next one finds room for its address and all its control messages.
func TestMessagesAreMadeReadyAgain(t *testing.T) {
	for _, test := range []struct {
		name  string
		n     uint32
		flags int32
	}{
		{"one packet", 100, 0}, {"no octet", 0, 0}, {"cut off", smallBuf, unix.MSG_TRUNC}, {"long", smallBuf + 1, 0},
	} {
		r := newReceiver()
		h := r.prepare(2)
		h[0].n, h[0].hdr.Namelen, h[0].hdr.Flags = test.n, 0, test.flags
		h[0].hdr.SetControllen(0)
		r.received(1, bare{})
		var st Stats
		pkts := make([]rawio.Packet, 2)
		for i := range pkts[:r.decode(pkts, &st)] {
			pkts[i].Release()
		}
		for i := range r.prepare(2) {
			h := &r.hdrs[i].hdr
			if h.Namelen != unix.SizeofSockaddrInet6 || h.Controllen != controlLen || h.Flags != 0 || r.bufs[i] == nil || h.Iov.Base != &r.bufs[i].B[0] {
				t.Errorf("%s: message %d is %+v", test.name, i, h)
			}
		}
		r.release()
	}
}
