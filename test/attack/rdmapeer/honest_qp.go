package rdmapeer

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// honestQP is a queue pair of the victim that has nothing to do with the attacks: it answers each
// Send by the same octets, and somebody checks the answers, all the time.
type honestQP struct {
	name  string
	beat  chan struct{} // offered after each round
	broke chan error
}

const pingLen = 48

func newBystander(name string, round func(i uint32, ping []byte) ([]byte, error)) *honestQP {
	b := &honestQP{name: name, beat: make(chan struct{}), broke: make(chan error, 1)}
	go func() {
		ping := make([]byte, pingLen)
		for i := uint32(1); ; i++ {
			for j := range ping {
				ping[j] = byte(i)*7 + byte(j)
			}
			pong, err := round(i, ping)
			if err == nil && !bytes.Equal(pong, ping) {
				err = fmt.Errorf("round %d: sent %x, got %x", i, ping, pong)
			}
			if err != nil {
				b.broke <- err
				return
			}
			select {
			case b.beat <- struct{}{}:
			default:
			}
		}
	}()
	return b
}

// goesOn waits for a round that began after the call.
func (b *honestQP) goesOn(t testing.TB) {
	t.Helper()
	for range 2 {
		select {
		case <-b.beat:
		case err := <-b.broke:
			b.broke <- err
			t.Fatalf("%s: %v", b.name, err)
		case <-deadlineCtx(t).Done():
			t.Fatalf("%s has stopped", b.name)
		}
	}
}

// serveEcho serves a bystander at the victim until its QP ends.
func serveEcho(ctx context.Context, qp *rdma.QP, cq *rdma.CQ, mr *rdma.MR, buf []byte) error {
	for ctx.Err() == nil {
		var wcs [8]rdma.WC
		n, err := cq.Poll(wcs[:])
		if err == nil && n == 0 {
			err = cq.Wait(ctx)
		}
		if err != nil {
			return err
		}
		for _, wc := range wcs[:n] {
			switch {
			case wc.Status != rdmap.StatusSuccess:
				return fmt.Errorf("%v: %v", wc.Opcode, wc.Status)
			case wc.Opcode != rdmap.WCRecv:
				continue
			}
			pong := bytes.Clone(buf[:wc.ByteLen])
			if err := qp.PostRecv(&rdma.RecvWR{SGL: []rdma.SGE{mr.SGE(0, len(buf))}}); err != nil {
				return err
			}
			if err := qp.PostSend(&rdma.SendWR{Op: rdma.OpSend, Inline: pong}); err != nil {
				return err
			}
		}
	}
	return nil
}

// echoQP makes a QP that echo serves, and serves it.
func (l *attackLab) echoQP(t *testing.T) *rdma.QP {
	t.Helper()
	pd := l.b.AllocPD()
	cq := must(l.b.CreateCQ(1024))
	qp := must(l.b.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq}))
	buf := make([]byte, pingLen)
	mr := must(pd.Register(buf, rdma.LocalWrite, nil))
	if err := qp.PostRecv(&rdma.RecvWR{SGL: []rdma.SGE{mr.SGE(0, len(buf))}}); err != nil {
		t.Fatal(err)
	}
	go serveEcho(l.ctx, qp, cq, mr, buf) // what goes wrong here, the other end notices
	return qp
}

// farBystander is a QP of an honest program on an association of its own.
func (l *attackLab) farBystander(t *testing.T) *honestQP {
	t.Helper()
	served := l.echoQP(t)
	pd := l.a.AllocPD()
	cq := must(l.a.CreateCQ(1024))
	qp := must(l.a.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq}))
	buf := make([]byte, pingLen)
	mr := must(pd.Register(buf, rdma.LocalWrite, nil))
	answered := make(chan error, 1)
	go func() {
		req, err := l.l.Accept(l.ctx)
		if err == nil {
			err = req.Accept(served, nil)
		}
		answered <- err
	}()
	if _, err := qp.Connect(l.ctx, l.addr, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	return newBystander("the queue pair on another association", func(_ uint32, ping []byte) ([]byte, error) {
		if err := qp.PostRecv(&rdma.RecvWR{SGL: []rdma.SGE{mr.SGE(0, len(buf))}}); err != nil {
			return nil, err
		}
		if err := qp.PostSend(&rdma.SendWR{Op: rdma.OpSend, Inline: ping, Flags: rdma.Unsignaled}); err != nil {
			return nil, err
		}
		var wcs [1]rdma.WC
		for {
			n, err := cq.Poll(wcs[:])
			if err == nil && n == 0 {
				err = cq.Wait(l.ctx)
			}
			if err != nil {
				return nil, err
			}
			if n == 1 && wcs[0].Status != rdmap.StatusSuccess {
				return nil, fmt.Errorf("%v: %v", wcs[0].Opcode, wcs[0].Status)
			}
			if n == 1 {
				return buf[:wcs[0].ByteLen], nil
			}
		}
	})
}

// nearBystander is a QP on the association that the attacks come from: its peer is made by hand
// too, and for once behaves.
func (l *attackLab) nearBystander(t *testing.T) *honestQP {
	t.Helper()
	s := l.c.freshSession(t)
	s.sendControl(fnInitiate, nil)
	req := must(l.l.Accept(l.ctx))
	if err := req.Accept(l.echoQP(t), nil); err != nil {
		t.Fatal(err)
	}
	if m, ok := s.nextMessage(l.ctx); !ok || !m.isControl(fnAccept) {
		t.Fatalf("the Initiate is answered by %v", m)
	}
	return newBystander("the queue pair on the same association", func(i uint32, ping []byte) ([]byte, error) {
		seg := untagged(rdmap.OpSend, rdmap.QueueSend, i, 0, ping)
		info := sctp.SendInfo{Stream: s.stream, PPID: ddpadapt.PPIDSegment, Unordered: true}
		if _, err := s.c.conn.WriteMsg(numbered(uint16(i), seg), info); err != nil {
			return nil, err
		}
		select {
		case m := <-s.c.streamBox(s.stream):
			v := ddp.UntaggedView(m.data[2:])
			if _, op := rdmap.SplitControl(m.data[3]); m.ppid != ddpadapt.PPIDSegment || op != rdmap.OpSend ||
				v.MSN() != i {
				return nil, fmt.Errorf("round %d is answered by %v", i, m)
			}
			return v.Payload(), nil
		case <-l.ctx.Done():
			return nil, l.ctx.Err()
		case <-s.c.conn.Done():
			return nil, net.ErrClosed
		}
	})
}
