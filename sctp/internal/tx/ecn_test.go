package tx

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// ecnFields returns the ECN fields of packets.
func ecnFields(pkts []rawio.Packet) string {
	var list []uint8
	for _, p := range pkts {
		list = append(list, p.ECN)
	}
	return fmt.Sprint(list)
}

func TestOnlyNewDataIsECNCapable(t *testing.T) {
	l := newLab(t, 1)
	l.enqueueMany(1, full)
	check.Equal(t, "not negotiated: ECN", ecnFields(l.transmit()), "[0]")
	l.s.SetECN(true)
	l.enqueueMany(3, full)
	check.Equal(t, "new data: ECN", ecnFields(l.transmit()), "[2 2 2]")
	l.runNextTimeout()
	l.enqueueMany(1, 100)
	check.Equal(t, "ECN of a retransmission", ecnFields(l.transmit()), "[0]") // RFC 3168 section 6.1.5
	l.sack(4)
	check.Equal(t, "after it: ECN", ecnFields(l.transmit()), "[2]")
	l.b.Begin(1, 2, 3, l.pathAt(0).Local, l.pathAt(0).Remote, labMTU)
	l.s.Fill(l.now, l.b, l.pathAt(0)) // nothing is left
	l.b.End()
	check.Equal(t, "a packet without DATA is ECN-capable", l.b.Pkts[len(l.b.Pkts)-1].ECN, 0)
	l.handleSack(makeSack(5, 0))
	l.sendFull(1)
	l.now = l.s.NextTimeout()
	check.Equal(t, "ECN of a zero window probe", ecnFields(l.transmit()), "[0]") // RFC 3168 section 6.1.6
}

func TestEchoReducesTheWindowOncePerWindow(t *testing.T) {
	l := newLab(t, 1)
	l.enqueueMany(500, full)
	for l.pathAt(0).cc.Window() < 20000 {
		l.transmit()
		l.sackAfter(10, l.s.NextTSN()-1)
	}
	l.transmit()
	first, last := l.s.CumTSN()+1, l.s.NextTSN()-1
	cwnd := l.pathAt(0).cc.Window()
	l.s.HandleECNE(l.now, first+2)
	l.expectCwnd("the first echo", cwnd/2)
	l.s.HandleECNE(l.now, first+2)
	l.s.HandleECNE(l.now, last)
	l.expectCwnd("echoes of the same window", cwnd/2)
	l.sack(first + 3)
	l.expectCwnd("the SACK with the echo", cwnd/2) // RFC 3168 section 6.1.2: no growth
	l.sack(last)
	l.transmit()
	cwnd = l.pathAt(0).cc.Window()
	l.s.HandleECNE(l.now, last+1)
	l.expectCwnd("an echo of the next window", cwnd/2)
	check.Equal(t, "reductions", l.s.Stats().Echoes, 2)
	l.s.HandleECNE(l.now, l.s.NextTSN())
	l.s.HandleECNE(l.now, first-1000)
	l.expectCwnd("echoes of what was never sent, or is forgotten", cwnd/2)
}

func TestEchoOfAWindowThatLossHasReduced(t *testing.T) {
	l := newLab(t, 1)
	l.sendFull(100)
	last := l.s.NextTSN() - 1
	for i := range wire.TSN(3) {
		l.sack(0, gap{2, 2 + i})
	}
	cwnd := l.pathAt(0).cc.Window()
	l.s.HandleECNE(l.now, last)
	l.expectCwnd("the loss has reduced it", cwnd)

	l = newLab(t, 1)
	l.pathAt(0).cc.OnAck(0, cc.Ack{Octets: 40 * counted, Flight: 40 * counted})
	before := l.pathAt(0).cc.Window()
	l.sendFull(100)
	last = l.s.NextTSN() - 1
	l.runNextTimeout()
	l.s.HandleECNE(l.now, last)
	l.expectCwnd("T3-rtx has reduced it", 1000)
	th := l.pathAt(0).cc.Ssthresh()
	check.That(t, th == before/2 && before >= 20000 && l.s.Stats().Echoes == 0,
		"ssthresh %d after a timeout at cwnd %d, %d reductions by echoes", th, before, l.s.Stats().Echoes)
	l.transmit()
	l.sack(last)
	l.transmit()
	cwnd = l.pathAt(0).cc.Window()
	l.s.HandleECNE(l.now, l.s.NextTSN()-1)
	l.expectCwnd("an echo never raises the window", cwnd)
}
