package assoc

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A packet with ASCONF has a checksum, where others need none.
func TestAsconfHasAChecksum(t *testing.T) {
	// req 9653-5.2-4
	addr := netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		chunk []byte
		want  bool
	}{{wire.AppendAsconf(nil, 1, addr), true}, {wire.AppendHeartbeat(nil, make([]byte, 8)), false}} {
		q := controlQueue{buf: c.chunk, entries: []controlEntry{{end: len(c.chunk)}}}
		out := NewTxBatch(1)
		out.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPortFrom(addr, 0), 500)
		out.SetZeroChecksum(true)
		q.moveNextTo(out)
		out.End()
		pkt := wire.Packet(bytes.Join(out.Pkts[0].Vec, nil))
		check.That(t, (pkt.Checksum() != 0) == c.want && pkt.ChecksumOK() == c.want, "checksum %#x of %x", pkt.Checksum(), pkt)
	}
}
