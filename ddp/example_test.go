package ddp_test

import (
	"crypto/rand"
	"fmt"

	"github.com/rddp-go/rddp/ddp"
)

// sink is the least a ULP can be: it has no untagged queue and lets the peer write to tagged
// buffers.
type sink struct{ name string }

func (s *sink) AdmitTagged(uint8, *ddp.Region, ddp.STag, uint64, int) (ddp.Access, *ddp.Error) {
	return ddp.RemoteWrite, nil
}
func (s *sink) Buffer(_, _ uint32, _ [5]byte) (*ddp.RecvBuffer, uint8) { return nil, ddp.CodeNoBuffer }
func (s *sink) DeliverTagged(rsvd uint8, stag ddp.STag, to, length uint64) {
	fmt.Printf("%s: %d octets arrived at offset %d\n", s.name, length, to)
}
func (s *sink) DeliverUntagged(qn, msn uint32, rsvd [5]byte, length uint32, b *ddp.RecvBuffer) {}
func (s *sink) Completed(token uint64) {
	fmt.Printf("%s: message %d completed\n", s.name, token)
}
func (s *sink) Failed(token uint64, err error) {
	fmt.Println(s.name, err)
}
func (s *sink) Fatal(err *ddp.Error) {
	fmt.Printf("%s: %v\n", s.name, err)
}
func (s *sink) Drained()    {}
func (s *sink) PeerClosed() {}

// wireBytes is a lower layer that does nothing by itself: the example moves the segments.
type wireBytes struct{}

func (wireBytes) MULPDU() int { return 30 }
func (wireBytes) Ready()      {}
func (wireBytes) Finish()     {}
func (wireBytes) Abort()      {}

// A message is cut into segments of 30 octets, which arrive in reverse order and are placed as they
// come.
func Example() {
	table := ddp.NewTable(rand.Reader)
	memory := make([]byte, 64)
	region, err := table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(memory), Base: 1000, Access: ddp.RemoteWrite})
	if err != nil {
		fmt.Println(err)
		return
	}
	a := ddp.NewStream(ddp.StreamConfig{ID: 1, PD: 1, Table: table, ULP: &sink{"source"}})
	b := ddp.NewStream(ddp.StreamConfig{ID: 2, PD: 1, Table: table, ULP: &sink{"sink"}})
	a.Attach(wireBytes{})
	b.Attach(wireBytes{})

	text := []byte("placed directly, delivered in order")
	message := ddp.Gather{{Mem: ddp.Bytes(text), Len: uint64(len(text))}}
	if err := a.SendTagged(region.STag(), 1010, 0, message, 7); err != nil {
		fmt.Println(err)
		return
	}
	var segments [][]byte
	var seg ddp.Segment
	for a.NextSegment(wireBytes{}.MULPDU(), &seg) {
		octets := append([]byte{}, seg.Header[:seg.HeaderLen]...)
		segments = append(segments, append(append(octets, seg.Body[0]...), seg.Body[1]...))
	}
	placed := make([]ddp.Placed, len(segments))
	for i := len(segments) - 1; i >= 0; i-- {
		b.Place(segments[i], &placed[i])
	}
	for i := range placed {
		b.Deliver(&placed[i])
		a.Acked()
	}
	fmt.Printf("%q\n", memory[10:10+len(text)])

	region.Invalidate() // from here on the memory is ours alone
	b.Place(segments[0], &placed[0])
	b.Deliver(&placed[0])
	// Output:
	// sink: 35 octets arrived at offset 1010
	// source: message 7 completed
	// "placed directly, delivered in order"
	// sink: DDP: the STag is not valid for this access
}
