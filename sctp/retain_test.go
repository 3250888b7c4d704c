package sctp

import (
	"net"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// deaf is a link from which somebody else reads.
type deaf struct {
	*mem.Link
	closed chan struct{}
}

func (d *deaf) ReadBatch([]rawio.Packet) (int, error) {
	<-d.closed
	return 0, net.ErrClosed
}

func (d *deaf) PollBatch([]rawio.Packet) int { return 0 }

func (d *deaf) Close() error {
	close(d.closed)
	return d.Link.Close()
}

// The receive goroutine keeps no association of the packets that it has handled: it would keep
// those that have ended, and all that their users hang on them, until as many packets come at once
// again.
func TestReceiverKeepsNoAssociation(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	p := joinPair(t, la, lb, la, &deaf{lb, make(chan struct{})})
	l := must.Get(p.b.Listen(5000, nil))(t)
	dialed := make(chan error)
	go func() { _, err := p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 5000), nil); dialed <- err }()
	r := newReceiver(p.b, nil, false)
	for l.readyCount() == 0 { // INIT, then COOKIE ECHO
		n := must.Get(lb.ReadBatch(r.pkts))(t)
		r.dispatchBatch(n)
		r.finishRun(nil)
		must.That(t, r.lastConn == nil && isAllZero(r.conns), "an association is kept")
	}
	must.OK(t, <-dialed)
}
