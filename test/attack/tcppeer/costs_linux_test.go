package tcppeer

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// longFPDU is an FPDU as long as there are.
func (p *peer) longFPDU() []byte { return p.fpdu(rdmap.QueueSend, rdmap.OpSend, make([]byte, 65000)) }

// A start-up that comes octet by octet has no more time than one that does not come.
func TestStartupThatTrickles(t *testing.T) {
	// req 5044-7.1.2-26
	synctest.Test(t, func(t *testing.T) {
		d := must.Get(rdma.NewDevice(nil, nil))(t)
		defer d.Close()
		ours, theirs := net.Pipe()
		f := mpa.Frame{CRC: true, Revision: mpa.Revision, Private: make([]byte, 512)}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for _, b := range f.Append(nil) {
				if _, err := theirs.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		began := time.Now()
		_, err := d.RequestOver(t.Context(), ours)
		check.That(t, errors.Is(err, mpa.ErrStartupTimeout) && time.Since(began) == 10*time.Second, "%v after %v", err,
			time.Since(began))
		<-gone
	})
}

// An FPDU that comes octet by octet does not count as life.
func TestFPDUThatTrickles(t *testing.T) {
	v := newVictim(t, &rdma.Config{IdleTimeout: 100 * time.Millisecond})
	p := v.join()
	go func() {
		for _, b := range p.longFPDU() {
			if _, err := p.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(time.Millisecond) // what is slow is the point
		}
	}()
	p.awaitEnd(t)
	check.That(t, errors.Is(p.qp.Err(), rdma.ErrIdle), "%v", p.qp.Err())
}

// Half an FPDU costs its length, once, and nothing when the peer has gone.
func TestHalfAnFPDUIsHeldOnce(t *testing.T) {
	v := newVictim(t, nil)
	const many, most = 64, 160 << 10 // octets, with the QP, its queues and two goroutines
	before := heap()
	var peers []*peer
	for range many {
		p := v.join()
		b := p.longFPDU()
		must.Do(p.Write(b[:len(b)-1]))(t)
		peers = append(peers, p)
	}
	for _, p := range peers { // all of it has been read
		must.OK(t, awaitRead(p))
	}
	each := (heap() - before) / many
	t.Logf("%d octets for each connection", each)
	check.That(t, each <= most, "%d octets for each connection", each)
	for _, p := range peers {
		p.Close()
		<-p.qp.Done()
	}
	check.That(t, heap()-before < many*most/4, "%d octets stay", heap()-before)
}

// A peer that asks for much and reads nothing costs no memory: answers leave from where they are.
func TestReadsOfAPeerThatReadsNothing(t *testing.T) {
	v := newVictim(t, &rdma.Config{TCP: rdma.TCPConfig{LingerTimeout: 50 * time.Millisecond}})
	honest := v.join()
	before := heap()
	const many = 8
	var peers []*peer
	for range many {
		p := v.join()
		for range 16 { // the IRD
			var rr [rdmap.ReadRequestLen]byte
			(&rdmap.ReadRequest{SinkSTag: 1, Size: memory, SrcSTag: v.mr.STag()}).Put(&rr)
			must.Do(p.Write(p.fpdu(rdmap.QueueReadRequest, rdmap.OpReadRequest, rr[:])))(t)
		}
		peers = append(peers, p)
	}
	must.OK(t, awaitRead(peers[many-1]))
	each := (heap() - before) / many
	t.Logf("%d octets for each connection, which asks for 16 MiB", each)
	check.That(t, each < 256<<10, "%d octets for each connection", each)
	must.Do(honest.Write(honest.fpdu(rdmap.QueueSend, rdmap.OpSend, []byte("hello"))))(t)
	must.OK(t, honest.qp.PostSend(&rdma.SendWR{Op: rdma.OpSend, Inline: []byte("yes")})) // when it has come
	must.Do(honest.Read(make([]byte, 1)))(t)
	for i, p := range peers {
		if i%2 == 0 {
			must.OK(t, p.qp.Close()) // waits for nobody
		} else {
			for range 16 { // too many
				var rr [rdmap.ReadRequestLen]byte
				p.Write(p.fpdu(rdmap.QueueReadRequest, rdmap.OpReadRequest, rr[:]))
			}
		}
		<-p.qp.Done()
	}
}

// Connections that never ask for anything leave room for those of others, and are closed.
func TestSilentConnectionsLeaveRoomForOthers(t *testing.T) {
	for _, row := range []struct {
		name string
		say  []byte
	}{{"nothing", nil}, {"half a Request", []byte("MPA ID Req")}} {
		v := newVictim(t, &rdma.Config{Limits: rdma.Limits{MaxRequests: 8},
			TCP: rdma.TCPConfig{StartupTimeout: time.Second}})
		const many = 40
		for range many {
			c := v.dial("127.0.0.2")
			c.Write(row.say) // it may be closed already
		}
		p := v.join()
		must.Do(p.Write(p.fpdu(rdmap.QueueSend, rdmap.OpSend, []byte("hello"))))(t)
		s := v.dev.Stats().TCP
		check.That(t, s.Dropped >= many-4, "%s: %+v", row.name, s)
		p.Close()
		<-p.qp.Done()
		must.OK(t, v.l.Close())
		must.OK(t, v.dev.Wait(t.Context()))
		s = v.dev.Stats().TCP
		check.That(t, s.Dropped+s.StartupTimeouts == many, "%s: %+v", row.name, s)
	}
}

// Connections that come, ask and go leave nothing.
func TestConnectionsThatComeAndGo(t *testing.T) {
	v := newVictim(t, nil)
	const many = 300
	before := heap()
	for i := range many {
		c := v.dial("127.0.0.1").(*net.TCPConn)
		must.Do(c.Write((&mpa.Frame{CRC: true, Revision: mpa.Revision}).Append(nil)))(t)
		if i%2 == 0 {
			c.SetLinger(0)
		}
		c.Close()
	}
	must.OK(t, v.l.Close())
	for { // those that had a session
		select {
		case q := <-v.qps:
			<-q.Done()
			continue
		case <-v.over:
		}
		break
	}
	for len(v.qps) > 0 {
		<-(<-v.qps).Done()
	}
	must.OK(t, v.dev.Wait(t.Context()))
	check.Equal(t, "QPs", len(v.dev.QPs()), 0)
	check.That(t, heap()-before < 2<<20, "%d octets stay", heap()-before)
}
