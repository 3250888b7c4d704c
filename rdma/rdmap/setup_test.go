package rdmap

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

func idlePair(t *testing.T, change func(*Config)) *pair {
	return &pair{a: newEnd(t, 1, change), b: newEnd(t, 2, nil)}
}

func TestLimitORD(t *testing.T) {
	// req 6581-4.1-2: as strict limit: the rest waits in the send queue.
	p := idlePair(t, func(c *Config) { c.ORD, c.MaxSend = 8, 64 })
	for _, n := range []int{100, 2, 5} { // it only goes down
		must.OK(t, p.a.qp.LimitORD(n))
	}
	must.That(t, p.a.qp.ORD() == 2 && p.a.qp.IRD() == 2 && len(p.a.qp.sq.headers) == 4,
		"ORD %d, IRD %d, %d headers", p.a.qp.ORD(), p.a.qp.IRD(), len(p.a.qp.sq.headers))
	p.a.qp.Start()
	p.b.qp.Start()
	check.Equal(t, "after Start", p.a.qp.LimitORD(1), ErrState)
	r, _ := p.b.memory(8, ddp.RemoteAtomic|ddp.RemoteRead)
	sink, _ := p.a.memory(8, ddp.LocalWrite)
	for i := range uint64(40) {
		if i%2 == 0 {
			p.a.post(atomicWR(i, r, 0, FetchAdd(1)))
		} else {
			p.a.post(SendWR{ID: i, Op: WRRead, SGL: []SGE{sge(sink, 0, 8)}, RemoteSTag: r.STag(), RemoteTO: r.Base()})
		}
	}
	check.Equal(t, "requests left", p.a.cutAll(), 2)
	p.run()
	got := p.a.scq.take()
	check.That(t, len(got) == 40 && got[38].Original == 19 && len(p.b.failed) == 0, "%d completions, %v", len(got), p.b.failed)

	none := newEnd(t, 3, nil)
	err := none.qp.LimitORD(-1)
	check.That(t, err == nil && none.qp.ORD() == 0, "%v, ORD %d", err, none.qp.ORD())
	none.qp.Start()
	check.Equal(t, "with ORD 0", none.qp.PostSend(&SendWR{Op: WRAtomic}), ErrNoReads)
}

func TestReadyToReceiveIndications(t *testing.T) {
	for _, row := range []struct {
		name string
		op   WROpcode
		want []byte
		recv int // receives of the peer that it takes
	}{
		// req 6581-9.2-10
		{"Send", WRSend, untagged(0, 1, [5]byte{0x43}, 0, true, nil), 1},
		{"RDMA Write", WRWrite, tagged(0x40, 0, 0, true, nil), 0},
		{"RDMA Read", WRRead, untagged(1, 1, [5]byte{0x41}, 0, true, make([]byte, 28)), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := idlePair(t, func(c *Config) { c.MaxSend, c.ORD = 2, 1 })
			r, _ := p.b.memory(8, ddp.LocalWrite|ddp.RemoteRead)
			p.b.recv(1, r, 0, 8)
			p.b.recv(2, r, 0, 8)
			sink, _ := p.a.memory(8, ddp.LocalWrite)
			p.b.qp.Start()
			err := p.a.qp.StartRTR(row.op)
			must.That(t, err == nil && p.a.qp.State() == StateRTS, "%v, state %v", err, p.a.qp.State())
			// It takes no place of the user's.
			p.a.post(SendWR{ID: 7})
			p.a.post(SendWR{ID: 8, Op: WRRead, SGL: []SGE{sge(sink, 0, 8)}, RemoteSTag: r.STag(), RemoteTO: r.Base()})
			check.Equal(t, "third request in a queue of two", p.a.qp.PostSend(&SendWR{}), ErrQueueFull)
			p.run()
			// req 6581-5-2, 6581-9.2-8: ahead of everything.
			same(t, "first message", p.a.log[0], row.want)
			wants(t, "no completion but the user's", p.a.scq.take(), WC{ID: 7}, WC{ID: 8, Opcode: WCRead})
			got := p.b.rcq.take()
			check.That(t, len(got) == 1+row.recv && got[0].ID == 1 && len(p.b.failed)+len(p.a.failed) == 0,
				"receives %v, failed %v %v", got, p.a.failed, p.b.failed)
			check.Equal(t, "places free", p.a.qp.sq.free(), 2)
			check.Equal(t, "again", p.a.qp.StartRTR(row.op), ErrState)
		})
	}
	t.Run("flushed without a completion", func(t *testing.T) {
		p := idlePair(t, nil)
		must.OK(t, p.a.qp.StartRTR(WRSend))
		p.a.post(SendWR{ID: 1})
		p.a.qp.Abort(errors.New("enough"))
		wants(t, "flushed", p.a.scq.take(), WC{ID: 1, Status: StatusWRFlushErr})
	})
	t.Run("refused", func(t *testing.T) {
		e := newEnd(t, 1, func(c *Config) { c.ORD = 0 })
		check.Equal(t, "Read with ORD 0", e.qp.StartRTR(WRRead), ErrNoReads)
		check.Equal(t, "an atomic", e.qp.StartRTR(WRAtomic), ErrOpcode)
		check.That(t, e.qp.State() == StateInit && e.qp.sq.free() == 16, "state %v, %d places", e.qp.State(), e.qp.sq.free())
	})
}

func TestRefusedSetupIsATerminateWithItsCode(t *testing.T) {
	// req 6581-8-1, 6581-8-2, 6581-9.1-7, 6581-9.3-2, 6581-11-1: layer 2, type 0, codes 5 to 7; then the stream ends.
	for code, text := range map[uint8]string{CodeSetupLocal: "local catastrophic error", CodeInsufficientIRD: "insufficient IRD resources", CodeNoRTR: "no matching RTR option"} {
		p := idlePair(t, nil)
		cause := errors.New("because")
		p.a.qp.Refuse(code, cause)
		p.run()
		tm, raw := p.a.lastWord()
		check.That(t, tm == (Terminate{Layer: LayerLLP, Code: code}) && len(p.a.log) == 1, "Terminate %+v, %d messages", tm, len(p.a.log))
		same(t, "on the wire", raw[18:], []byte{0x20, code, 0, 0})
		check.That(t, errors.Is(p.a.qp.Err(), cause) && p.a.finish && p.a.qp.State() == StateError,
			"%v, finished %v, state %v", p.a.qp.Err(), p.a.finish, p.a.qp.State())
		var got *StreamError
		check.That(t, errors.As(p.b.qp.Err(), &got) && got.Remote && *got.Terminate == tm &&
			got.Error() == "rdmap: the peer terminated the stream: connection setup, "+text+" (0x0"+string('0'+rune(code))+")", "peer: %v", p.b.qp.Err())
	}
	check.Equal(t, "another type", (&Terminate{Layer: LayerLLP, EType: 1}).String(), "layer 2, type 0x1, code 0x00")
	check.Equal(t, "another code", (&Terminate{Layer: LayerLLP, Code: 9}).String(), "connection setup, unknown code (0x09)")
}
