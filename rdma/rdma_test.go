package rdma

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

func TestWriteThenSendTells(t *testing.T) { eachFamily(t, writeThenSendTells) }

func writeThenSendTells(t *testing.T, x *lab) {
	a, b := x.join(nil)
	const n = 300_000
	fill(a.buf[:n], 1)
	b.recv(7, 900_000, 100)
	a.post(SendWR{ID: 1, Op: OpWrite, SGL: []SGE{a.mr.SGE(0, n)}, RemoteSTag: b.mr.STag(), RemoteTO: 1000})
	a.post(SendWR{ID: 2, Op: OpSendSE, Inline: []byte("look")})
	wc := b.good()
	check.That(t, wc.ID == 7 && wc.Opcode == rdmap.WCRecv && wc.ByteLen == 4 && wc.Solicited &&
		string(b.buf[900_000:900_004]) == "look",
		"received %+v", wc)
	check.Slice(t, "the Write when the Send that follows it is received", b.buf[1000:1000+n], a.buf[:n])
	check.That(t, bytes.Equal(b.buf[:1000], make([]byte, 1000)) &&
		bytes.Equal(b.buf[1000+n:2000+n], make([]byte, 1000)),
		"octets around the Write changed")
	for id := uint64(1); id <= 2; id++ {
		check.Equal(t, "completion", a.good().ID, id)
	}
}

func TestReadFetches(t *testing.T) { eachFamily(t, readFetches) }

func readFetches(t *testing.T, x *lab) {
	a, b := x.join(nil)
	const n = 200_000
	fill(b.buf, 3)
	for i := range uint64(40) { // more than ORD: the rest waits
		a.post(SendWR{ID: i, Op: OpRead, SGL: []SGE{a.mr.SGE(int(i)*n/10, n/10)}, RemoteSTag: b.mr.STag(),
			RemoteTO: 5 + i*n/10})
	}
	for i := range uint64(40) {
		wc := a.good()
		check.That(t, wc.ID == i && wc.ByteLen == n/10, "completion %+v, want %d", wc, i)
	}
	check.Slice(t, "what was read", a.buf[:4*n], b.buf[5:5+4*n])
}

func TestPrivateDataBothWays(t *testing.T) {
	x := newLab(t, nil)
	a, b := newSide(t, x.a, nil, nil), newSide(t, x.b, nil, nil)
	asked, answer := fill(make([]byte, 512), 1), fill(make([]byte, 512), 2)
	check.Fails(a.qp.Connect(must.Ended(), x.addr, make([]byte, 513)))(t, "513 octets in Connect",
		llp.ErrPrivateDataTooLong)
	got, err := x.connect(a.qp, asked, func(req *Request) error {
		check.Slice(t, "the request's private data", req.PrivateData(), asked)
		check.Error(t, "513 octets in Accept", req.Accept(b.qp, make([]byte, 513)), llp.ErrPrivateDataTooLong)
		return req.Accept(b.qp, answer)
	})
	check.That(t, err == nil && bytes.Equal(got, answer), "answer of %d octets, %v", len(got), err)
}

func TestRejection(t *testing.T) {
	x := newLab(t, nil)
	qp := newSide(t, x.a, nil, nil).qp
	_, err := x.connect(qp, nil, func(r *Request) error { return r.Reject([]byte("not today")) })
	var rejected *llp.RejectedError
	check.That(t, errors.As(err, &rejected) && errors.Is(qp.Err(), err) && string(rejected.Private) == "not today" &&
		errors.Is(err, syscall.ECONNREFUSED),
		"error %v, want the rejection with its private data", err)
}

func TestConnectErrors(t *testing.T) {
	x := newLab(t, nil)
	t.Run("nobody listens on the port", func(t *testing.T) {
		_, err := newSide(t, x.a, nil, nil).qp.Connect(ctx(t), netip.AddrPortFrom(x.addr.Addr(), 9), nil)
		var dial *sctp.DialError
		var abort *assoc.AbortError
		check.That(t, errors.As(err, &dial) && errors.As(err, &abort), "error %v", err)
	})
	t.Run("the context ends before the answer", func(t *testing.T) {
		c, cancel := context.WithCancel(ctx(t))
		go func() {
			check.Do(x.l.Accept(ctx(t)))(t)
			cancel() // the request is there, and stays without an answer
		}()
		check.Fails(newSide(t, x.a, nil, nil).qp.Connect(c, x.addr, nil))(t, "error", context.Canceled)
	})
	t.Run("the peer speaks SCTP but not DDP", func(t *testing.T) {
		l := must.Get(x.b.Transport().Listen(77, nil))(t)
		defer l.Close()
		_, err := newSide(t, x.a, nil, nil).qp.Connect(ctx(t), netip.AddrPortFrom(x.addr.Addr(), 77), nil)
		var adaptation *assoc.AdaptationError
		check.That(t, errors.As(err, &adaptation) && adaptation.Absent, "error %v, want an *assoc.AdaptationError", err)
	})
	t.Run("a QP is connected twice", func(t *testing.T) {
		a, _ := x.join(nil)
		check.Fails(a.qp.Connect(ctx(t), x.addr, nil))(t, "error", ErrInUse)
	})
	t.Run("the port is taken", func(t *testing.T) {
		check.Fails(x.b.Listen(DefaultPort))(t, "error", rawio.ErrPortInUse)
	})
	t.Run("the link's MTU or a limit is too small", func(t *testing.T) {
		link, _ := mempair.New(t, mem.Options{})
		_, err := NewDevice(small{link, 0, 543}, nil)
		_, limit := NewDevice(link, &Config{Limits: Limits{MaxSGE: -1}})
		check.That(t, errors.As(err, new(*rawio.MTUError)) && errors.As(limit, new(*LimitError)),
			"errors %v, with a limit below 1 %v", err, limit)
	})
}

// What the peer must not reach, it does not reach: the stream ends with the error that RFC 5041
// section 7.2 or RFC 5040 section 4.8 has for it, and no octet changes.
func TestAccessViolations(t *testing.T) {
	for _, tt := range []struct {
		name   string
		wr     func(a, b *side) SendWR
		status rdmap.Status
		want   string // the Terminate message, as the peer of the offender sees it
	}{
		{"a Write to an STag that does not exist", func(a, b *side) SendWR {
			return SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(0, 10)}, RemoteSTag: b.mr.STag() ^ 1}
		}, rdmap.StatusRemAccessErr, "STag"},
		{"a Write one octet past the end", func(a, b *side) SendWR {
			return SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(0, 10)}, RemoteSTag: b.mr.STag(), RemoteTO: 1<<20 - 9}
		}, rdmap.StatusRemAccessErr, "range"},
		{"a Write to an STag of another protection domain", func(a, b *side) SendWR {
			mr := must.Get(b.dev.AllocPD().Register(make([]byte, 10), RemoteWrite, nil))(t)
			return SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(0, 10)}, RemoteSTag: mr.STag()}
		}, rdmap.StatusRemAccessErr, "another stream or protection domain"},
		{"a Write to an invalidated STag", func(a, b *side) SendWR {
			b.mr.Invalidate()
			return SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(0, 10)}, RemoteSTag: b.mr.STag()}
		}, rdmap.StatusRemAccessErr, "STag"},
		{"a Write to a region that may only be read", func(a, b *side) SendWR {
			must.OK(t, b.mr.SetAccess(RemoteRead))
			return SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(0, 10)}, RemoteSTag: b.mr.STag()}
		}, rdmap.StatusRemAccessErr, ""},
		{"a Read of a region that may only be written", func(a, b *side) SendWR {
			must.OK(t, b.mr.SetAccess(RemoteWrite))
			return SendWR{Op: OpRead, SGL: []SGE{a.mr.SGE(0, 10)}, RemoteSTag: b.mr.STag()}
		}, rdmap.StatusRemAccessErr, "access"},
		{"a Read one octet past the end", func(a, b *side) SendWR {
			return SendWR{Op: OpRead, SGL: []SGE{a.mr.SGE(0, 10)}, RemoteSTag: b.mr.STag(), RemoteTO: 1<<20 - 9}
		}, rdmap.StatusRemAccessErr, ""},
		{"a Send without a receive", func(a, b *side) SendWR { return SendWR{Op: OpSend, Inline: []byte("x")} }, rdmap.StatusRemInvReqErr, "buffer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newLab(t, nil)
			a, b := x.join(nil)
			_, other := x.join(nil) // another QP, which must not notice
			before := bytes.Clone(fill(b.buf, 9))
			fill(a.buf, 1)
			wr := tt.wr(a, b)
			wr.ID = 5
			// The operation itself may have completed at the source before the Terminate comes, so
			// a Read waits behind it.
			read := SendWR{ID: 6, Op: OpRead, SGL: []SGE{a.mr.SGE(0, 0)}, RemoteSTag: b.mr.STag()}
			must.Do(a.qp.PostSendList([]SendWR{wr, read}))(t)
			for wc := a.wc(); ; wc = a.wc() {
				if wc.Status == tt.status || wc.ID == 6 && wc.Status == rdmap.StatusWRFlushErr {
					break
				}
				must.That(t, wc.ID != 6, "%+v, want status %v", wc, tt.status)
			}
			var failed *rdmap.StreamError
			if err := a.qp.Err(); !errors.As(err, &failed) || !failed.Remote || failed.Terminate == nil {
				t.Errorf("the offender's error is %v, want the peer's Terminate", err)
			} else if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the Terminate says %q, which does not mention %q", err, tt.want)
			}
			check.Slice(t, "memory", b.buf, before)
			check.That(t, other.qp.State() == rdmap.StateRTS && other.qp.Err() == nil,
				"another QP of the process is in state %v: %v", other.qp.State(), other.qp.Err())
		})
	}
}

func TestDisconnectIsGraceful(t *testing.T) {
	// req 5041-3-12, 5040-7-4
	eachFamily(t, disconnectIsGraceful)
}

func disconnectIsGraceful(t *testing.T, x *lab) {
	a, b := x.join(nil)
	const n = 1 << 20
	fill(a.buf, 5)
	a.post(SendWR{ID: 1, Op: OpWrite, SGL: []SGE{a.mr.SGE(0, n)}, RemoteSTag: b.mr.STag()})
	must.OK(t, a.qp.Disconnect(ctx(t)))
	check.Slice(t, "what a Write posted before Disconnect brought", b.buf, a.buf)
	<-b.qp.Done()
	soon, cancel := context.WithTimeout(ctx(t), 4*time.Second)
	defer cancel()
	for _, s := range []*side{a, b} {
		check.Error(t, "an association without sessions is still there", s.dev.Wait(soon), nil)
	}
	check.Error(t, "the peer calls a graceful end an error", b.qp.Err(), nil)
	check.Error(t, "post after Disconnect", a.qp.PostSend(&SendWR{Op: OpSend, Inline: []byte("x")}), rdmap.ErrState)
}

// When the association goes, every QP on it is told and every request completes.
func TestAssociationLossFlushes(t *testing.T) {
	x := newLab(t, nil)
	a1, b1 := x.join(nil)
	a2, _ := x.join(nil)
	for i := range uint64(3) {
		a1.recv(i, 0, 10)
		a2.recv(i, 0, 10)
	}
	b1.dev.Close()
	for _, s := range []*side{a1, a2} {
		for range 3 {
			check.Equal(t, "status of the receive", s.wc().Status, rdmap.StatusWRFlushErr)
		}
		<-s.qp.Done()
		check.That(t, s.qp.Err() != nil, "no reason for the end")
	}
}

func TestCompletionQueueOverflowHurtsOnlyItsOwn(t *testing.T) {
	x := newLab(t, nil)
	small := must.Get(x.a.CreateCQ(2))(t)
	a, b := x.join(func(c *QPConfig) {
		if c.PD.dev == x.a {
			c.SendCQ, c.MaxSend = small, 2
		}
	})
	a2, b2 := x.join(nil)
	var err error
	for errors.Is(err, rdmap.ErrQueueFull) || err == nil { // req 5040-8.1.1-11: nobody polls
		err = a.qp.PostSend(&SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(0, 10)}, RemoteSTag: b.mr.STag()})
		runtime.Gosched()
	}
	<-a.qp.Done()
	check.Error(t, "the QP ended with", a.qp.Err(), ErrCQOverflow)
	var wcs [4]WC
	if n, err := small.Poll(wcs[:]); n != 2 || err != nil { // req 5040-8.1.2-4, 5042-6.4.3.2-1
		t.Errorf("%d completions, %v: those that fit stay", n, err)
	}
	check.Fails(small.Poll(wcs[:]))(t, "poll of the overflowed queue", ErrCQOverflow)
	b2.recv(1, 0, 100) // req 5042-6.4.6-1
	a2.post(SendWR{ID: 1, Op: OpSend, Inline: []byte("still here")})
	b2.good()
	_ = b
}

func TestSharedReceiveQueue(t *testing.T) {
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	srq := must.Get(pd.CreateSRQ(16, 1))(t)
	buf := make([]byte, 1600)
	mr := must.Get(pd.Register(buf, LocalWrite, nil))(t)
	for i := range 16 {
		must.OK(t, srq.PostRecv(&RecvWR{ID: uint64(i), SGL: []SGE{mr.SGE(i*100, 100)}}))
	}
	var as, bs []*side
	for range 3 {
		a, b := x.joinIn(nil, pd, func(c *QPConfig) {
			if c.PD == pd {
				c.SRQ = srq
			}
		})
		as, bs = append(as, a), append(bs, b)
	}
	for i, a := range as {
		a.post(SendWR{Op: OpSend, Inline: fill(make([]byte, 20), i)})
		wc := bs[i].good()
		got := buf[wc.ID*100:][:wc.ByteLen]
		check.That(t, bytes.Equal(got, fill(make([]byte, 20), i)), "QP %d received %x", i, got)
	}
	check.Equal(t, "buffers left", srq.Len(), 13)
	check.Error(t, "receive posted past the shared queue", bs[0].qp.PostRecv(&RecvWR{}), rdmap.ErrSharedRecv)
}

// A buffer may be a file: data goes from the packet straight into it (RFC 4296 section 2.1).
func TestFileAsMemory(t *testing.T) {
	x := newLab(t, nil)
	a, b := x.join(nil)
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "region")))(t)
	defer f.Close()
	const n = 500_000
	mr := must.Get(b.pd.RegisterDevice(f, n, RemoteWrite|RemoteRead, nil))(t)
	fill(a.buf[:n], 4)
	a.post(SendWR{ID: 1, Op: OpWrite, SGL: []SGE{a.mr.SGE(0, n)}, RemoteSTag: mr.STag()})
	a.post(SendWR{ID: 2, Op: OpRead, SGL: []SGE{a.mr.SGE(n, n)}, RemoteSTag: mr.STag()})
	a.good()
	a.good()
	check.Slice(t, "what was read back", a.buf[:n], a.buf[n:2*n])
	onDisk, err := os.ReadFile(f.Name())
	check.That(t, err == nil && bytes.Equal(onDisk, a.buf[:n]),
		"the file differs from what was written (%d octets, %v)", len(onDisk), err)
}

// small is a link that buffers little.
type small struct {
	rawio.Link
	octets int
	mtu    int
}

func (l small) MTU(from, to netip.Addr) int { return cmp.Or(l.mtu, l.Link.MTU(from, to)) }

func (l small) Features() rawio.Features { return rawio.FeaturesOf(l.Link) }
func (l small) ReceiveBuffer() int       { return l.octets }

// The window that is advertised by default fits what the link buffers, and acknowledgements come as
// soon as completions need them.
func TestDefaultsOfADevice(t *testing.T) {
	const ms = time.Millisecond
	var tags []STag
	for _, c := range []struct {
		name      string
		octets    int
		own, want sctp.Config
	}{
		{"a link that buffers more", 1 << 30, sctp.Config{}, sctp.Config{RecvBuffer: defaultRecvWindow, SackDelay: 10 * ms, LoneSackDelay: ms}},
		{"a link that buffers less", 1 << 20, sctp.Config{SackDelay: 3 * ms}, sctp.Config{RecvBuffer: 1 << 20, SackDelay: 3 * ms}},
		{"a link that buffers next to nothing", 1000, sctp.Config{LoneSackDelay: 2 * ms}, sctp.Config{RecvBuffer: minRecvWindow, SackDelay: 10 * ms, LoneSackDelay: 2 * ms}},
		{"a window that was asked for", 1000, sctp.Config{RecvBuffer: 1 << 21}, sctp.Config{RecvBuffer: 1 << 21, SackDelay: 10 * ms, LoneSackDelay: ms}},
	} {
		link, _ := mempair.New(t, mem.Options{})
		d := must.Get(NewDevice(small{link, c.octets, 0},
			&Config{SCTP: c.own, Rand: strings.NewReader(strings.Repeat("secret", 100))}))(t)
		got := d.cfg.SCTP
		check.That(t, got.RecvBuffer == c.want.RecvBuffer && got.SackDelay == c.want.SackDelay &&
			got.LoneSackDelay == c.want.LoneSackDelay && got.OutStreams == 1024 && got.InStreams == 1024,
			"%s: %+v, want %+v", c.name, got, c.want)
		mr := must.Get(d.AllocPD().Register(nil, 0, nil))(t)
		tags = append(tags, mr.STag())
		check.Equal(t, c.name+": STags are not drawn from Config.Rand", tags[0], mr.STag())
		d.Close()
	}
}

func TestLimitsAreNamed(t *testing.T) {
	// req 5042-6.4.1-1
	x := newLab(t, &Config{Limits: Limits{MaxCQE: 10, MaxWR: 10, MaxSGE: 2, MaxReads: 3, MaxRegions: 1}})
	pd := x.a.AllocPD()
	cq := must.Get(x.a.CreateCQ(10))(t)
	var limit *LimitError
	_, err := x.a.CreateCQ(11)
	check.That(t, errors.As(err, &limit) && limit.Max == 10, "CQ too deep: %v", err)
	_, err = x.a.CreateQP(&QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, MaxSend: 10, MaxRecv: 10, MaxSGE: 2, IRD: 4,
		ORD: 3})
	check.That(t, errors.As(err, &limit) && limit.What == "IRD", "IRD beyond the limit: %v", err)
	for _, row := range []struct {
		what       string
		depth, sge int
	}{{"", 1, 1}, {"", 10, 2}, {"SRQ depth", 0, 1}, {"SRQ depth", 11, 1}, {"SRQ MaxSGE", 1, 0}, {"SRQ MaxSGE", 1, 3}} {
		limit = nil
		_, err = pd.CreateSRQ(row.depth, row.sge)
		check.That(t, errors.As(err, &limit) == (row.what != "") && (limit == nil || limit.What == row.what),
			"SRQ of %d with %d: %v", row.depth, row.sge, err)
	}
	must.Do(pd.Register(make([]byte, 1), 0, nil))(t)
	check.Fails(pd.Register(make([]byte, 1), 0, nil))(t, "a region too many", ddp.ErrTooManyRegions)
	check.Fails(x.b.CreateQP(&QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq}))(t, "a PD of another device", ErrForeign)
}
