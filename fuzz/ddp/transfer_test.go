package ddp

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
)

// FuzzTransfer sends a message from arbitrary pieces, cut at a MULPDU that changes all the time,
// places the segments in an arbitrary order and checks that the message arrives and completes once.
//
//fuzz:covers ./ddp
func FuzzTransfer(f *testing.F) {
	f.Add(uint16(300), true, []byte{1, 50, 0, 7, 200, 3, 9})
	f.Add(uint16(75), false, []byte{0, 0, 0, 0, 255, 1, 2, 3, 4})
	f.Add(uint16(0), true, []byte{})
	f.Fuzz(func(t *testing.T, size uint16, tagged bool, input []byte) {
		n := int(size % 4096)
		s := fuzzinput.Script(input)
		msg := make([]byte, n)
		for i := range msg {
			msg[i] = byte(i*31 + i>>8)
		}
		var g ddp.Gather
		for off := 0; off < n; {
			k := min(int(s.Byte())+len(g)/8, n-off)
			g = append(g, ddp.Piece{Mem: ddp.Bytes(msg), Off: uint64(off), Len: uint64(k)})
			off += k
			must.That(t, len(g) <= 4096, "pieces do not add up")
		}

		sink := make([]byte, n+32)
		table := ddp.NewTable(bytes.NewReader(make([]byte, 16)))
		region := must.Get(table.Register(ddp.Spec{Mem: ddp.Bytes(sink[16 : 16+n]), Base: 77,
			Access: ddp.RemoteWrite}))(t)
		u := &counter{queue: ddp.NewQueue(1)}
		b := must.Get(ddp.MakeRecvBuffer(ddp.Gather{{Mem: ddp.Bytes(sink), Off: 16, Len: uint64(n)}}, 0))(t)
		must.OK(t, u.queue.Post(b))
		stream := ddp.NewStream(ddp.StreamConfig{ID: 1, Table: table, ULP: u, Queues: 1})
		stream.Attach(idleLower{})
		if tagged {
			must.OK(t, stream.SendTagged(region.STag(), 77, 1, g, 5))
		} else {
			must.OK(t, stream.SendUntagged(0, [5]byte{1}, g, 5))
		}
		var seg ddp.Segment
		var segs [][]byte
		for stream.Pending() {
			mulpdu := 19 + int(s.Byte())*4
			must.That(t, stream.NextSegment(mulpdu, &seg) && seg.Len() <= mulpdu, "segment of %d octets at MULPDU %d",
				seg.Len(), mulpdu)
			segs = append(segs, slices.Concat(seg.Header[:seg.HeaderLen], seg.Body[0], seg.Body[1]))
		}
		order := make([]int, len(segs))
		for i := range order {
			j := int(s.Next16()) % (i + 1)
			order[i], order[j] = order[j], i
		}
		placed := make([]ddp.Placed, len(segs))
		for _, i := range order {
			stream.Place(segs[i], &placed[i])
		}
		for i := range placed {
			must.That(t, u.delivered == 0 && u.completed == 0, "delivered or completed before the last segment")
			stream.Deliver(&placed[i])
			stream.Acked()
		}
		must.That(t, u.delivered == 1 && u.completed == 1 && u.length == uint64(n) && u.fault == nil,
			"delivered %d times with %d of %d octets, completed %d times, fault %v", u.delivered, u.length, n,
			u.completed, u.fault)
		must.Slice(t, "the message with what is around it", sink,
			slices.Concat(make([]byte, 16), msg, make([]byte, 16)))
	})
}

// counter is a ULP that is both source and sink.
type counter struct {
	queue     *ddp.Queue
	delivered int
	completed int
	length    uint64
	fault     *ddp.Error
}

func (c *counter) AdmitTagged(uint8, *ddp.Region, ddp.STag, uint64, int) (ddp.Access, *ddp.Error) {
	return ddp.RemoteWrite, nil
}
func (c *counter) Buffer(_, msn uint32, _ [5]byte) (*ddp.RecvBuffer, uint8) {
	return c.queue.Lookup(msn)
}
func (c *counter) DeliverTagged(_ uint8, _ ddp.STag, _, length uint64) {
	c.delivered++
	c.length = length
}
func (c *counter) DeliverUntagged(_, _ uint32, _ [5]byte, length uint32, _ *ddp.RecvBuffer) {
	c.delivered++
	c.length = uint64(length)
	c.queue.Pop()
}
func (c *counter) Completed(uint64)     { c.completed++ }
func (c *counter) Failed(uint64, error) {}
func (c *counter) Drained()             {}
func (c *counter) PeerClosed()          {}
func (c *counter) Fatal(err *ddp.Error) { c.fault = err }
