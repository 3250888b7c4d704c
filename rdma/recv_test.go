package rdma

import (
	"encoding/binary"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// A receive can be posted while somebody else has the association.
func TestPostRecvDoesNotWaitForTheGate(t *testing.T) {
	a, b := newLab(t, nil).join(nil)
	p := b.qp.lockCore()
	posted := make(chan error, 1)
	go func() { posted <- b.qp.PostRecv(&RecvWR{ID: 7, SGL: []SGE{b.mr.SGE(0, 16)}}) }()
	var err error
	select {
	case err = <-posted:
	case <-ctx(t).Done():
		t.Error("it waits")
	}
	b.qp.unlockCore(p)
	must.OK(t, err)
	a.post(SendWR{Op: OpSend, Inline: []byte("here")})
	wc := b.good()
	check.That(t, wc.ID == 7 && string(b.buf[:wc.ByteLen]) == "here", "receive %d: %q", wc.ID, b.buf[:wc.ByteLen])
}

// Receives that are posted while messages arrive are used in the order of posting, each for one
// message (RFC 5041 section 5.1.2).
func TestReceivesArePostedWhileMessagesArrive(t *testing.T) {
	const depth, messages, size = 32, 900, 3000
	a, b := newLab(t, nil).join(func(c *QPConfig) { c.MaxRecv, c.MaxSend = depth, messages })
	credits := make(chan struct{}, messages)
	post := func(i uint64) error {
		err := b.qp.PostRecv(&RecvWR{ID: i, SGL: []SGE{b.mr.SGE(int(i%depth)*size, size)}})
		credits <- struct{}{}
		return err
	}
	for i := range uint64(depth) {
		must.OK(t, post(i))
	}
	go func() {
		for i := range uint64(messages) {
			<-credits
			copy(a.buf[int(i%depth)*size:], binary.BigEndian.AppendUint64(nil, i))
			wr := SendWR{Op: OpSend, Flags: Unsignaled, SGL: []SGE{a.mr.SGE(int(i%depth)*size, size)}}
			check.OK(t, a.qp.PostSend(&wr))
		}
	}()
	for i := range uint64(messages) {
		wc := b.good()
		got := binary.BigEndian.Uint64(b.buf[int(i%depth)*size:])
		must.That(t, wc.Opcode == rdmap.WCRecv && wc.ID == i && got == i, "message %d is in receive %d, want %d", got,
			wc.ID, i)
		if i+depth < messages {
			must.OK(t, post(i+depth))
		}
	}
}
