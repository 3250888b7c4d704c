package rdmap_test

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestLimitORD(t *testing.T) {
	// req 6581-4.1-2: as strict limit: the rest waits in the send queue.
	p := rdmaptest.IdlePair(t, func(c *rdmap.Config) { c.ORD, c.MaxSend = 8, 64 })
	for _, n := range []int{100, 2, 5} { // it only goes down
		must.OK(t, p.A.QP.LimitORD(n))
	}
	must.That(t, p.A.QP.ORD() == 2 && p.A.QP.IRD() == 2 && rdmap.ReadHeaders(p.A.QP) == 4,
		"ORD %d, IRD %d, %d headers", p.A.QP.ORD(), p.A.QP.IRD(), rdmap.ReadHeaders(p.A.QP))
	p.A.QP.Start()
	p.B.QP.Start()
	check.Equal(t, "after Start", p.A.QP.LimitORD(1), rdmap.ErrState)
	r, _ := p.B.Memory(8, ddp.RemoteAtomic|ddp.RemoteRead)
	sink, _ := p.A.Memory(8, ddp.LocalWrite)
	for i := range uint64(40) {
		if i%2 == 0 {
			p.A.Post(rdmaptest.Atomic(i, r, 0, rdmap.FetchAdd(1)))
		} else {
			p.A.Post(rdmap.SendWR{ID: i, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 8)},
				RemoteSTag: r.STag(), RemoteTO: r.Base()})
		}
	}
	check.Equal(t, "requests left", p.A.CutAll(), 2)
	p.Run()
	got := p.A.SCQ.Take()
	check.That(t, len(got) == 40 && got[38].Original == 19 && len(p.B.Failures) == 0, "%d completions, %v", len(got),
		p.B.Failures)

	none := rdmaptest.NewEnd(t, 3, nil)
	err := none.QP.LimitORD(-1)
	check.That(t, err == nil && none.QP.ORD() == 0, "%v, ORD %d", err, none.QP.ORD())
	none.QP.Start()
	check.Equal(t, "with ORD 0", none.QP.PostSend(&rdmap.SendWR{Op: rdmap.WRAtomic}), rdmap.ErrNoReads)
}

func TestReadyToReceiveIndications(t *testing.T) {
	for _, row := range []struct {
		name string
		op   rdmap.WROpcode
		want []byte
		recv int // receives of the peer that it takes
	}{
		// req 6581-9.2-10
		{"Send", rdmap.WRSend, rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, true, nil), 1},
		{"RDMA Write", rdmap.WRWrite, rdmaptest.Tagged(0x40, 0, 0, true, nil), 0},
		{"RDMA Read", rdmap.WRRead, rdmaptest.Untagged(1, 1, [5]byte{0x41}, 0, true, make([]byte, 28)), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := rdmaptest.IdlePair(t, func(c *rdmap.Config) { c.MaxSend, c.ORD = 2, 1 })
			r, _ := p.B.Memory(8, ddp.LocalWrite|ddp.RemoteRead)
			p.B.Recv(1, r, 0, 8)
			p.B.Recv(2, r, 0, 8)
			sink, _ := p.A.Memory(8, ddp.LocalWrite)
			p.B.QP.Start()
			err := p.A.QP.StartRTR(row.op)
			must.That(t, err == nil && p.A.QP.State() == rdmap.StateRTS, "%v, state %v", err, p.A.QP.State())
			// It takes no place of the user's.
			p.A.Post(rdmap.SendWR{ID: 7})
			p.A.Post(rdmap.SendWR{ID: 8, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 8)},
				RemoteSTag: r.STag(), RemoteTO: r.Base()})
			check.Equal(t, "third request in a queue of two", p.A.QP.PostSend(&rdmap.SendWR{}), rdmap.ErrQueueFull)
			p.Run()
			// req 6581-5-2, 6581-9.2-8: ahead of everything.
			rdmaptest.Same(t, "first message", p.A.Log[0], row.want)
			rdmaptest.Wants(t, "no completion but the user's", p.A.SCQ.Take(), rdmap.WC{ID: 7},
				rdmap.WC{ID: 8, Opcode: rdmap.WCRead})
			got := p.B.RCQ.Take()
			check.That(t, len(got) == 1+row.recv && got[0].ID == 1 && len(p.B.Failures)+len(p.A.Failures) == 0,
				"receives %v, failed %v %v", got, p.A.Failures, p.B.Failures)
			check.Equal(t, "places free", rdmap.FreeSends(p.A.QP), 2)
			check.Equal(t, "again", p.A.QP.StartRTR(row.op), rdmap.ErrState)
		})
	}
	t.Run("flushed without a completion", func(t *testing.T) {
		p := rdmaptest.IdlePair(t, nil)
		must.OK(t, p.A.QP.StartRTR(rdmap.WRSend))
		p.A.Post(rdmap.SendWR{ID: 1})
		p.A.QP.Abort(errors.New("enough"))
		rdmaptest.Wants(t, "flushed", p.A.SCQ.Take(), rdmap.WC{ID: 1, Status: rdmap.StatusWRFlushErr})
	})
	t.Run("refused", func(t *testing.T) {
		e := rdmaptest.NewEnd(t, 1, func(c *rdmap.Config) { c.ORD = 0 })
		check.Equal(t, "Read with ORD 0", e.QP.StartRTR(rdmap.WRRead), rdmap.ErrNoReads)
		check.Equal(t, "an atomic", e.QP.StartRTR(rdmap.WRAtomic), rdmap.ErrOpcode)
		check.That(t, e.QP.State() == rdmap.StateInit && rdmap.FreeSends(e.QP) == 16, "state %v, %d places",
			e.QP.State(), rdmap.FreeSends(e.QP))
	})
}

func TestErrorOfMPAIsATerminateWithItsCode(t *testing.T) {
	// req 5040-4.8-3: layer 2, type 0, the code of RFC 5044 section 8; no header is quoted. Then
	// the stream ends.
	for code, text := range map[uint8]string{rdmap.CodeMPACRC: "CRC error",
		rdmap.CodeMPAMarker: "Marker and ULPDU Length field mismatch"} {
		p := rdmaptest.IdlePair(t, nil)
		cause := errors.New("because")
		p.A.QP.Stream().LLPFailed(code, cause)
		p.Run()
		tm, raw := p.A.LastTerminate()
		check.That(t, tm == (rdmap.Terminate{Layer: rdmap.LayerLLP, Code: code}) && len(p.A.Log) == 1,
			"Terminate %+v, %d messages", tm, len(p.A.Log))
		rdmaptest.Same(t, "on the wire", raw[18:], []byte{0x20, code, 0, 0})
		check.That(t, errors.Is(p.A.QP.Err(), cause) && p.A.Finished && p.A.QP.State() == rdmap.StateError,
			"%v, finished %v, state %v", p.A.QP.Err(), p.A.Finished, p.A.QP.State())
		var got *rdmap.StreamError
		check.That(t, errors.As(p.B.QP.Err(), &got) && got.Remote && *got.Terminate == tm &&
			got.Error() == "rdmap: the peer terminated the stream: MPA, "+text+" (0x0"+string('0'+rune(code))+")",
			"peer: %v", p.B.QP.Err())
	}
	for code, text := range map[uint8]string{rdmap.CodeMPALost: "MPA, TCP connection closed, terminated, or lost (0x01)",
		rdmap.CodeMPAFrame: "MPA, invalid Request or Reply Frame (0x04)"} {
		check.Equal(t, "text", (&rdmap.Terminate{Layer: rdmap.LayerLLP, Code: code}).String(), text)
	}
	p := rdmaptest.IdlePair(t, nil)
	p.A.QP.Stream().Closed(errors.New("lost")) // there is no way to say so
	p.Run()
	check.That(t, len(p.A.Log) == 0 && p.A.QP.State() == rdmap.StateError, "%d messages, state %v", len(p.A.Log),
		p.A.QP.State())
}

func TestRefusedSetupIsATerminateWithItsCode(t *testing.T) {
	// req 6581-8-1, 6581-8-2, 6581-9.1-7, 6581-9.3-2, 6581-11-1: layer 2, type 0, codes 5 to 7;
	// then the stream ends.
	for code, text := range map[uint8]string{rdmap.CodeSetupLocal: "local catastrophic error",
		rdmap.CodeInsufficientIRD: "insufficient IRD resources", rdmap.CodeNoRTR: "no matching RTR option"} {
		p := rdmaptest.IdlePair(t, nil)
		cause := errors.New("because")
		p.A.QP.Refuse(code, cause)
		p.Run()
		tm, raw := p.A.LastTerminate()
		check.That(t, tm == (rdmap.Terminate{Layer: rdmap.LayerLLP, Code: code}) && len(p.A.Log) == 1,
			"Terminate %+v, %d messages", tm, len(p.A.Log))
		rdmaptest.Same(t, "on the wire", raw[18:], []byte{0x20, code, 0, 0})
		check.That(t, errors.Is(p.A.QP.Err(), cause) && p.A.Finished && p.A.QP.State() == rdmap.StateError,
			"%v, finished %v, state %v", p.A.QP.Err(), p.A.Finished, p.A.QP.State())
		var got *rdmap.StreamError
		check.That(t, errors.As(p.B.QP.Err(), &got) && got.Remote && *got.Terminate == tm &&
			got.Error() == "rdmap: the peer terminated the stream: connection setup, "+text+" (0x0"+
				string('0'+rune(code))+")", "peer: %v", p.B.QP.Err())
	}
	check.Equal(t, "another type", (&rdmap.Terminate{Layer: rdmap.LayerLLP, EType: 1}).String(),
		"layer 2, type 0x1, code 0x00")
	check.Equal(t, "another code", (&rdmap.Terminate{Layer: rdmap.LayerLLP, Code: 9}).String(),
		"connection setup, unknown code (0x09)")
}
