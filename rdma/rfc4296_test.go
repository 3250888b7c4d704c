package rdma

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Each row of the tables in the package comment, with the words of RFC 4296.
func TestOperationsOfRFC4296(t *testing.T) {
	for _, row := range []struct {
		name string
		test func(t *testing.T, a, b *side)
	}{
		{"ddp_send, rdma_send: send an untagged message", func(t *testing.T, a, b *side) {
			b.recv(1, 0, 10)
			a.post(SendWR{Op: OpSend, Inline: []byte("untagged")})
			wc := b.good()
			check.That(t, wc.Opcode == WCRecv && string(b.buf[:wc.ByteLen]) == "untagged", "%+v, %q", wc, b.buf[:10])
		}},
		{"ddp_send_ddp, rdma_write without notification: send a tagged message to a remote buffer",
			func(t *testing.T, a, b *side) {
				b.recv(1, 100, 10)
				a.write(b.mr.STag(), 5, "tagged")
				check.That(t, string(b.buf[5:11]) == "tagged", "%q", b.buf[:20])
				var wcs [1]WC // req 5042-2.2.6-1
				n, _ := b.cq.Poll(wcs[:])
				check.That(t, n == 0, "the receiver was told: %+v", wcs[0])
			}},
		{"ddp_send_ddp, rdma_write with notification by a Send", func(t *testing.T, a, b *side) {
			b.recv(1, 100, 10)
			n, err := a.qp.PostSendList([]SendWR{
				{Op: OpWrite, Inline: []byte("tagged"), RemoteSTag: b.mr.STag()},
				{Op: OpSendSE, Inline: []byte{42}},
			})
			must.That(t, n == 2 && err == nil, "%v", err)
			wc := b.good()
			check.That(t, wc.Solicited && b.buf[100] == 42 && string(b.buf[:6]) == "tagged", "%+v, %q", wc, b.buf[:6])
		}},
		{"ddp_send_ddp, rdma_write with notification by Immediate Data", func(t *testing.T, a, b *side) {
			b.recv(1, 100, 0)
			a.post(SendWR{Op: OpWriteImm, Inline: []byte("tagged"), RemoteSTag: b.mr.STag(), Immediate: 42})
			wc := b.good()
			check.That(t, wc.Opcode == WCRecvImm && wc.Immediate == 42 && string(b.buf[:6]) == "tagged", "%+v, %q",
				wc, b.buf[:6])
		}},
		{"rdma_read: read l octets from remote buffer address s to local buffer address d",
			func(t *testing.T, a, b *side) {
				copy(b.buf[7:], "remote")
				a.post(SendWR{Op: OpRead, SGL: []SGE{a.mr.SGE(3, 6)}, RemoteSTag: b.mr.STag(), RemoteTO: 7})
				wc := a.good()
				check.That(t, wc.Opcode == WCRead && string(a.buf[3:9]) == "remote", "%+v, %q", wc, a.buf[:10])
			}},
		{"rdma_send while an rdma_read is in progress", func(t *testing.T, a, b *side) {
			b.recv(1, 1<<19, 10)
			fill(b.buf[:1<<19], 1)
			a.post(SendWR{ID: 1, Op: OpRead, SGL: []SGE{a.mr.SGE(0, 1<<19)}, RemoteSTag: b.mr.STag()})
			a.post(SendWR{ID: 2, Op: OpSend, Inline: []byte("meanwhile")})
			b.good()
			first, second := a.good(), a.good()
			check.That(t, first.ID == 1 && second.ID == 2 && bytes.Equal(a.buf[:1<<19], b.buf[:1<<19]), "%+v, %+v",
				first, second)
		}},
		{"ddp_post_recv, ddp_recv: buffers come back in the order in which they were posted",
			func(t *testing.T, a, b *side) {
				for i := range uint64(3) { // req 5042-2.3.5-1
					b.recv(10+i, int(i)*10, 10)
				}
				for i := range byte(3) {
					a.post(SendWR{Op: OpSend, Inline: []byte{i}})
				}
				for i := range uint64(3) {
					wc := b.good()
					check.That(t, wc.ID == 10+i && b.buf[i*10] == byte(i), "%+v holds %d, want %d", wc, b.buf[i*10], i)
				}
			}},
		{"ddp_recv: a tagged message reception error", func(t *testing.T, a, b *side) {
			a.post(SendWR{Op: OpWrite, Inline: []byte("x"), RemoteSTag: b.mr.STag(), RemoteTO: 1 << 20})
			<-b.qp.Done()
			check.That(t, errors.Is(b.qp.Err(), &ddp.Error{Type: ddp.TypeTagged, Code: ddp.CodeBaseBounds}), "%v",
				b.qp.Err())
		}},
		{"rdma_recv: an RDMA error, writing a buffer only registered for reading", func(t *testing.T, a, b *side) {
			must.OK(t, b.mr.SetAccess(RemoteRead))
			a.post(SendWR{Op: OpWrite, Inline: []byte("x"), RemoteSTag: b.mr.STag()})
			<-b.qp.Done()
			err := b.qp.Err()
			check.That(t, errors.Is(err, &ddp.Error{Type: ddp.TypeTagged, Code: ddp.CodeInvalidSTag}) &&
				b.buf[0] == 0, "%v", err)
		}},
		{"ddp_register: the same buffer multiple times, each registration with its own end",
			func(t *testing.T, a, b *side) {
				second, err := b.pd.Register(b.buf, RemoteWrite, nil)
				must.That(t, err == nil && second.STag() != b.mr.STag(), "%v", err)
				a.write(b.mr.STag(), 0, "first")
				must.OK(t, b.mr.Deregister())
				a.write(second.STag(), 5, "second")
				check.That(t, string(b.buf[:11]) == "firstsecond", "%q", b.buf[:11])
			}},
		{"ddp_register: buffers that refer to portions of the same underlying object", func(t *testing.T, a, b *side) {
			low := must.Get(b.pd.Register(b.buf[:12], RemoteWrite, nil))(t)
			high := must.Get(b.pd.Register(b.buf[8:20], RemoteRead, &RegionOptions{Base: 1000}))(t)
			a.write(low.STag(), 5, "overlap")
			a.post(SendWR{Op: OpRead, SGL: []SGE{a.mr.SGE(0, 4)}, RemoteSTag: high.STag(), RemoteTO: 1000})
			a.good()
			check.That(t, string(a.buf[:4]) == "rlap", "%q", a.buf[:4])
		}},
		{"ddp_register: one QP only", func(t *testing.T, a, b *side) {
			mr := must.Get(b.pd.Register(b.buf, RemoteWrite, &RegionOptions{QP: b.qp}))(t)
			check.Equal(t, "status", a.write(mr.STag(), 0, "mine").Status, StatusSuccess)
		}},
		{"ddp_buffer_t: a disk file", func(t *testing.T, a, b *side) {
			f := must.Get(os.Create(filepath.Join(t.TempDir(), "f")))(t)
			defer f.Close()
			mr := must.Get(b.pd.RegisterDevice(f, 100, RemoteWrite, nil))(t)
			a.write(mr.STag(), 10, "on disk")
			got, err := os.ReadFile(f.Name())
			check.That(t, err == nil && string(got[10:]) == "on disk", "%q, %v", got, err)
		}},
		{"ddp_deregister: remove a registration from a buffer", func(t *testing.T, a, b *side) {
			must.OK(t, b.mr.Deregister())
			a.post(SendWR{Op: OpWrite, Inline: []byte("x"), RemoteSTag: b.mr.STag()})
			<-b.qp.Done()
			check.Equal(t, "the buffer", b.buf[0], 0)
		}},
		{"ddp_max_msizes, rdma_max_msizes: what fits in a single transport message", func(t *testing.T, a, b *side) {
			for _, m := range []struct {
				wr     SendWR
				header int
			}{{SendWR{Op: OpSend}, 18}, {SendWR{Op: OpWrite, RemoteSTag: b.mr.STag()}, 14}} {
				for over := range 2 {
					b.recv(0, 1<<19, 1<<14)
					before, _ := a.qp.StreamStats()
					m.wr.SGL = []SGE{a.mr.SGE(0, a.qp.MULPDU()-m.header+over)}
					a.post(m.wr)
					a.good()
					after, _ := a.qp.StreamStats()
					n := after.Out - before.Out
					check.That(t, n == uint64(1+over),
						"opcode %d, %d octets more than max_msizes: %d transport messages", m.wr.Op, over, n)
				}
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := newLab(t, nil).join(nil)
			row.test(t, a, b)
		})
	}
}

// ddp_post_recv: "The same buffer may be enabled on multiple sockets; receipt of an untagged
// message into the buffer from any of these sockets unposts the buffer from all sockets."
// rdma_post_recv: "ordering guarantees are relaxed".
func TestBufferOnSeveralSockets(t *testing.T) {
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	srq := must.Get(pd.CreateSRQ(4, 1))(t)
	var as, bs []*side
	for range 2 {
		a, b := x.joinIn(nil, pd, func(c *QPConfig) {
			if c.PD == pd {
				c.SRQ = srq
			}
		})
		as, bs = append(as, a), append(bs, b)
	}
	mem := bs[0].mr
	for i := range uint64(2) {
		must.OK(t, srq.PostRecv(&RecvWR{ID: i, SGL: []SGE{mem.SGE(int(i)*10, 10)}}))
	}
	as[1].post(SendWR{Op: OpSend, Inline: []byte("second")})
	wc := bs[1].good()
	check.That(t, wc.ID == 0 && string(bs[0].buf[:6]) == "second",
		"%+v: the first buffer goes to whoever has a message first", wc)
	check.Equal(t, "buffers posted on all sockets together", srq.Len(), 1)
	as[0].post(SendWR{Op: OpSend, Inline: []byte("first")})
	wc = bs[0].good()
	check.That(t, wc.ID == 1 && string(bs[0].buf[10:15]) == "first", "%+v", wc)
	as[0].post(SendWR{Op: OpSend})
	<-bs[0].qp.Done() // no buffer is left on any socket
	var e *rdmap.StreamError
	check.That(t, errors.As(bs[0].qp.Err(), &e) && e.Terminate != nil && e.Terminate.Code == ddp.CodeNoBuffer, "%v",
		bs[0].qp.Err())
}
