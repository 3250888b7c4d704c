package assoc_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A peer may send more messages on one stream than there are SSNs, as long as the window has room
// for them, while the first is missing and while nobody reads. All are delivered, in their order.
func TestMoreUnreadMessagesThanSSNs(t *testing.T) {
	const n, each = 70_000, 70
	for _, lost := range []bool{false, true} {
		l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1, RecvBuffer: 16 << 20})
		first, tsn := l.TSN, l.TSN
		send := func(from, to int) {
			var chunks [][]byte
			for i := from; i < to; i++ {
				b := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE,
					TSN: first.Add(uint32(i)), Stream: 3, SSN: wire.SSN(i), PPID: uint32(i), PayloadLen: 4})
				chunks = append(chunks, append(b, "abcd"...))
			}
			l.Send(l.Tag, chunks...)
		}
		if lost {
			for i := 1; i < 65_535; i += each {
				send(i, min(i+each, 65_535))
			}
			send(0, 1)
			tsn = first.Add(65_535)
		}
		for i := int(tsn - first); i < n; i += each {
			send(i, min(i+each, n))
		}
		l.InState(assoc.Established)
		for i := range n {
			r, ok := l.A.Receive()
			must.That(t, ok, "the first one lost: %v: silence behind %d messages of %d", lost, i, n)
			must.That(t, int(r.PPID) == i && int(r.SSN) == i&0xffff,
				"the first one lost: %v: message %d, SSN %d, where %d is due", lost, r.PPID, r.SSN, i)
			l.A.Release(r)
		}
		_, ok := l.A.Receive()
		check.That(t, !ok, "there is one more")
		list, _ := l.A.Streams(0, make([]assoc.StreamStats, 0, 9))
		check.That(t, len(list) == 1 && list[0].NextIn == n&0xffff && list[0].Waiting == 0, "%+v", list)
	}
}
