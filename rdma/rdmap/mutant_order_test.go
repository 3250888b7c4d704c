package rdmap

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
)

// The response to the second of two RDMA Reads of one length is no answer to the first: its octets may be
// placed, as segments come in any order, but in its turn it is an error.
func TestResponseToALaterReadDoesNotAnswerTheFirst(t *testing.T) {
	// req 5040-5.5-16
	e := newEnd(t, 1, nil)
	r, mem := e.memory(40, ddp.LocalWrite)
	e.qp.Start()
	for i := range 2 {
		e.post(SendWR{ID: uint64(i), Op: WRRead, RemoteSTag: 77, SGL: []SGE{sge(r, 20*i, 20)}})
	}
	e.cutAll()
	body := make([]byte, 20)
	fill(body, 1)
	e.inject(tagged(Control(OpReadResponse), r.STag(), r.Base()+20, true, body))
	same(t, "placed where the second Read wants it", mem[20:], body)
	if e.qp.State() < StateTerminate {
		t.Fatalf("state %v", e.qp.State())
	}
	wants(t, "both fail, the first for the wrong answer", e.scq.take(),
		WC{ID: 0, Status: StatusBadRespErr, Opcode: WCRead}, WC{ID: 1, Status: StatusWRFlushErr, Opcode: WCRead})
}

// Each receive of a full queue has memory of its own, also when its places were used before.
func TestReceivesOfAFullQueueShareNothing(t *testing.T) {
	// req 5040-5.3-2
	for depth := 1; depth <= 5; depth++ {
		p := newPair(t, func(c *Config) { c.MaxRecv = depth })
		sink, got := p.b.memory(10*depth, ddp.LocalWrite)
		source, sent := p.a.memory(10, 0)
		next := byte(0)
		for range depth {
			p.b.recv(0, sink, 0, 10)
			p.a.post(SendWR{Op: WRSend, SGL: []SGE{sge(source, 0, 10)}})
			p.run()
			for i := range depth { // full
				p.b.recv(uint64(i), sink, 10*i, 10)
			}
			for i := range depth {
				next++
				fill(sent, next)
				p.a.post(SendWR{Op: WRSend, SGL: []SGE{sge(source, 0, 10)}})
				p.run()
				same(t, "the buffer of this Send", got[10*i:10*i+10], sent)
			}
			p.b.rcq.take()
		}
	}
}

// Who closes still answers all that the peer has asked for, also when the answer has to wait: for the one
// before it, or until earlier ones are acknowledged.
func TestClosingAnswersEveryRead(t *testing.T) {
	for _, row := range []struct {
		name   string
		before int  // Reads answered before, and not acknowledged
		cut    bool // a response is being cut
	}{
		{"the first response is being cut", 0, true},
		{"no place for a response until one is acknowledged", 4, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPair(t, nil) // IRD and ORD 2
			p.lazy = true
			src, data := p.b.memory(300, ddp.RemoteRead)
			fill(data, 3)
			dst, got := p.a.memory(300, ddp.LocalWrite)
			read := func(id uint64) {
				p.a.post(SendWR{ID: id, Op: WRRead, RemoteSTag: src.STag(), RemoteTO: src.Base(), SGL: []SGE{sge(dst, 0, 300)}})
			}
			for i := range row.before {
				read(uint64(i))
				p.run()
				p.a.ack() // the requests: their headers are free again
			}
			clear(got)
			p.a.scq.take()
			read(100)
			read(101)
			p.a.cutAll()
			p.arrive(p.a, p.b, len(p.a.sent))
			if row.cut {
				p.b.cutOne()
			}
			p.b.qp.Close()
			p.lazy = false
			p.b.ack()
			p.run()
			wants(t, "the Reads", p.a.scq.take(), WC{ID: 100, Opcode: WCRead}, WC{ID: 101, Opcode: WCRead})
			same(t, "what was read", got, data)
			if !p.b.finish || p.b.qp.Err() != nil {
				t.Errorf("closed %v, %v", p.b.finish, p.b.qp.Err())
			}
		})
	}
}

// Of two errors the first counts, also when the Terminate that tells of it still waits.
func TestFirstErrorCountsWhileItsTerminateWaits(t *testing.T) {
	// req 5040-7.1-5
	e := newEnd(t, 1, nil)
	r, _ := e.memory(300, 0)
	e.qp.Start()
	e.post(SendWR{Op: WRSend, SGL: []SGE{sge(r, 0, 300)}})
	e.cutOne()
	e.inject(untagged(QueueSend, 1, [5]byte{Control(OpSend)}, 0, true, []byte("nobody has posted a receive")))
	first := e.qp.Err()
	if e.qp.State() != StateTerminate || first == nil {
		t.Fatalf("state %v, %v", e.qp.State(), first)
	}
	e.qp.Refuse(CodeSetupLocal, errors.New("second"))
	if e.qp.Err() != first || len(e.failed) != 1 {
		t.Errorf("%v, reported %d times", e.qp.Err(), len(e.failed))
	}
	if tm, _ := e.lastWord(); tm.Layer != LayerDDP || tm.Code != ddp.CodeNoBuffer {
		t.Errorf("the Terminate says %v", &tm)
	}
}
