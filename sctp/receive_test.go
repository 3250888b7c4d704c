package sctp

import (
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// The acknowledgement of a message is held back for the answer where messages are answered at once.
// Without one it goes when those who might have answered have had their turn, even if somebody has
// the gate then.
func TestAcknowledgementGoesWithTheAnswer(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, func(t *testing.T) {
		// req 9260-6.2-7
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		p := joinPair(t, la, lb, la, &deaf{lb, make(chan struct{})})
		a, b := p.a, p.b
		l := must.Get(b.Listen(5000, nil))(t)
		dialed := make(chan *Conn)
		go func() {
			c, _ := a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 5000), nil)
			dialed <- c
		}()
		r := newReceiver(b, nil, false)
		comes := func(packets int) {
			r.beginRun()
			for got := 0; got < packets; {
				n := must.Get(lb.ReadBatch(r.pkts))(t)
				r.dispatchBatch(n)
				got += n
			}
		}
		for l.readyCount() == 0 {
			comes(1)
			r.finishRun(nil)
		}
		c, d := <-dialed, must.Get(l.Accept(deadlineCtx(t)))(t)
		must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t) // the first DATA is acknowledged at once
		comes(1)
		r.finishRun(nil)
		message := make([]byte, 2*1400)
		for _, tt := range []struct {
			name    string
			answers bool
			while   func(letGo func())
		}{
			{"answered", true, func(letGo func()) { must.Do(d.WriteMsg([]byte("x"), SendInfo{}))(t); letGo() }},
			{"not answered", true, func(letGo func()) { letGo() }},
			{"somebody has the gate", true, func(letGo func()) { d.acquireLock(); letGo(); d.unlock() }},
			{"somebody looks", true, func(letGo func()) { d.peekAssoc(func(*assoc.Assoc) { letGo() }) }},
			{"messages are not answered", false, nil},
		} {
			r.policy.RecordHandled(9, 900, 1, false)
			for range 16 {
				r.policy.RecordHeldSack(tt.answers)
			}
			must.Do(c.WriteMsg(message, SendInfo{}))(t)
			sent, sacks := b.Stats().TxPackets, d.Stats().SacksOut
			comes(2)
			held := r.releaseConn(true)
			must.That(t, (held == d) == tt.answers && (b.Stats().TxPackets == sent) == tt.answers,
				"%s: held back %v, %d packets sent", tt.name, held == d, b.Stats().TxPackets-sent)
			if held == nil {
				continue
			}
			tt.while(func() { r.releaseHeldSack(held, true) })
			check.Equal(t, tt.name+": packets sent", b.Stats().TxPackets-sent, 1)
			check.Equal(t, tt.name+": of these with a SACK", d.Stats().SacksOut-sacks, 1)
		}
	})
}

// What is handled together is of one association, in a row, no more than RowMost packets, and no
// more than have come.
func TestRowIsOfOneAssociation(t *testing.T) {
	const n = 3*assoc.RowMost + 2
	a, b := new(Conn), new(Conn)
	r := new(receiver)
	r.setPackets(make([]rawio.Packet, n+9))
	for i := range r.pkts {
		r.pkts[i].Data = make([]byte, 1+i)
		if r.conns[i] = a; i == 4 || i == 5 {
			r.conns[i] = b
		}
	}
	check.Equal(t, "packets in front of another's", len(r.consecutivePackets(a, 1, n)), 3)
	check.Equal(t, "packets of the other", len(r.consecutivePackets(b, 4, n)), 2)
	check.Equal(t, "packets in a long row", len(r.consecutivePackets(a, 6, n)), assoc.RowMost)
	check.Equal(t, "packets at the end", len(r.consecutivePackets(a, n-2, n)), 2)
	check.Equal(t, "the first of them", len(r.consecutivePackets(a, 6, n)[0].Data), 7)
	check.Equal(t, "the last that is handled", r.markHandled(a, 1, 3), 3)
	check.Equal(t, "octets", r.runOctets, 2+3+4)
	check.That(t, r.lastConn == a && r.conns[0] == a && r.conns[1] == nil && r.conns[3] == nil && r.conns[4] == b,
		"handled: %v", r.conns[:6])
}
