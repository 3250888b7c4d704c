package asconf_test

import (
	"bytes"
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/internal/asconf"
	"github.com/rddp-go/rddp/sctp/wire"
)

func lookup(asconf.Request) netip.Addr { return addr(1) }

// ackOf makes an ASCONF-ACK, with a cause if that is not 0.
func ackOf(t testing.TB, seq uint32, why wire.CauseCode) wire.AsconfAck {
	t.Helper()
	b := wire.AppendAsconfAck(nil, seq)
	if why != 0 {
		start := len(b)
		b = wire.CloseParam(wire.AppendCause(wire.AppendErrorIndication(b, seq), why, nil), start)
	}
	return must.Get(wire.AsAsconfAck(chunkOf(t, wire.CloseChunk(b, 0))))(t)
}

func TestOneRequestIsUnderWay(t *testing.T) {
	// req 5061-5.1-1, 5061-5.1-4
	// req 5061-4.1-2
	// req 5061-5.1-3: the same chunk each time
	q := asconf.NewRequester(0xffffffff)
	must.That(t, !q.Begin(lookup), "something is under way")
	must.OK(t, q.Ask(asconf.Request{Op: asconf.Add, Addr: addr(4)}))
	must.OK(t, q.Ask(asconf.Request{Op: asconf.SetPrimary, Addr: addr(4)}))
	for i, want := range []asconf.Request{{Op: asconf.Add, Addr: addr(4)}, {Op: asconf.SetPrimary, Addr: addr(4)}} {
		must.That(t, q.Begin(lookup), "nothing is under way")
		c := must.Get(wire.AsAsconf(chunkOf(t, q.Chunk())))(t)
		check.Equal(t, "number", c.Seq(), uint32(0xffffffff+i))
		check.Equal(t, "address", c.Addr(), addr(1))
		ps := c.Params()
		p, _ := ps.Next()
		r := must.Get(wire.AsAddrRequest(p))(t)
		check.Equal(t, "asked for", r.Addr(), want.Addr)
		first := bytes.Clone(q.Chunk())
		check.That(t, q.Begin(lookup) && bytes.Equal(q.Chunk(), first), "another chunk while one is under way")
		done, refused, fatal := q.HandleAck(ackOf(t, c.Seq(), 0))
		check.That(t, done && refused == nil && fatal == nil, "%v %v %v", done, refused, fatal)
		done, _, fatal = q.HandleAck(ackOf(t, c.Seq(), 0))
		check.That(t, !done && fatal == nil, "again: %v %v", done, fatal)
	}
	check.That(t, !q.Begin(lookup), "something is left")
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		op    asconf.Op
		why   wire.CauseCode
		want  error
		later [3]error // of the next requests
	}{
		{"performed", asconf.Add, 0, nil, [3]error{}},
		{"refused", asconf.Add, wire.CauseResourceShortage, &asconf.RefusedError{Cause: wire.CauseResourceShortage}, [3]error{}},
		{"not understood", asconf.Delete, wire.CauseUnrecognizedParams, asconf.ErrUnsupported,
			[3]error{asconf.ErrUnsupported, asconf.ErrUnsupported, nil}},
		{"a primary is not understood", asconf.SetPrimary, wire.CauseUnrecognizedParams, asconf.ErrUnsupported,
			[3]error{nil, nil, asconf.ErrUnsupported}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := asconf.NewRequester(9)
			must.OK(t, q.Ask(asconf.Request{Op: c.op, Addr: addr(4)}))
			q.Begin(lookup)
			q.Chunk()
			done, refused, fatal := q.HandleAck(ackOf(t, 9, c.why))
			check.That(t, done && fatal == nil, "%v %v", done, fatal)
			if want, ok := c.want.(*asconf.RefusedError); ok {
				var got *asconf.RefusedError
				check.That(t, errors.As(refused, &got) && *got == *want && errors.Is(refused, syscall.EADDRNOTAVAIL), "%v", refused)
			} else {
				check.Error(t, "refused", refused, c.want)
			}
			for op, want := range c.later {
				check.Error(t, "later", q.Ask(asconf.Request{Op: asconf.Op(op), Addr: addr(5)}), want)
			}
		})
	}
}

// An answer says of each parameter whether it was performed. The first that was not counts, and
// what is no answer to a request says nothing.
func TestAnswersOfSeveralParameters(t *testing.T) {
	success := func(b []byte) []byte { return wire.AppendSuccessIndication(b, 9) }
	failure := func(why wire.CauseCode) func(b []byte) []byte {
		return func(b []byte) []byte {
			start := len(b)
			b = wire.AppendErrorIndication(b, 9)
			if why != 0 {
				b = wire.AppendCause(b, why, nil)
			}
			return wire.CloseParam(b, start)
		}
	}
	other := func(b []byte) []byte { return append(b, 0x80, 0x77, 0, 4) }
	for _, row := range []struct {
		name string
		says []func(b []byte) []byte
		want error
	}{
		{"success is said", []func([]byte) []byte{success}, nil},
		{"something else is said", []func([]byte) []byte{other}, nil},
		{"success, and then a refusal", []func([]byte) []byte{success, failure(wire.CauseDeleteLastAddr)}, &asconf.RefusedError{Cause: wire.CauseDeleteLastAddr}},
		{"something else, and then a refusal", []func([]byte) []byte{other, failure(wire.CauseDeleteLastAddr)}, &asconf.RefusedError{Cause: wire.CauseDeleteLastAddr}},
		{"a refusal, and then success", []func([]byte) []byte{failure(wire.CauseDeleteLastAddr), success}, &asconf.RefusedError{Cause: wire.CauseDeleteLastAddr}},
		{"two refusals", []func([]byte) []byte{failure(wire.CauseResourceShortage), failure(wire.CauseUnrecognizedParams)}, &asconf.RefusedError{Cause: wire.CauseResourceShortage}},
	} {
		q := asconf.NewRequester(9)
		must.OK(t, q.Ask(asconf.Request{Op: asconf.Delete, Addr: addr(4)}))
		r, isSent, ok := q.Current()
		check.That(t, !ok, "%s: %+v is under way, %v", row.name, r, isSent)
		q.Begin(lookup)
		r, isSent, ok = q.Current()
		check.That(t, ok && !isSent && r == asconf.Request{Op: asconf.Delete, Addr: addr(4)}, "%s: %+v, %v, %v", row.name, r, isSent, ok)
		q.Chunk()
		_, isSent, ok = q.Current()
		check.That(t, ok && isSent, "%s: sent %v, under way %v", row.name, isSent, ok)
		b := wire.AppendAsconfAck(nil, 9)
		for _, f := range row.says {
			b = f(b)
		}
		done, refused, fatal := q.HandleAck(must.Get(wire.AsAsconfAck(chunkOf(t, wire.CloseChunk(b, 0))))(t))
		got, is := refused.(*asconf.RefusedError)
		want, wanted := row.want.(*asconf.RefusedError)
		check.That(t, done && fatal == nil && is == wanted && (!is && refused == nil || is && *got == *want), "%s: %v, %v, %v",
			row.name, done, refused, fatal)
		_, _, ok = q.Current()
		check.That(t, !ok && q.Ask(asconf.Request{Op: asconf.Delete, Addr: addr(5)}) == nil, "%s: it goes on", row.name)
	}
}

// What waits is counted by its kind, and is abandoned in its order, behind what is under way.
func TestWhatWaitsIsCounted(t *testing.T) {
	q := asconf.NewRequester(9)
	list := []asconf.Request{{Op: asconf.Add, Addr: addr(4)}, {Op: asconf.Delete, Addr: addr(5)}, {Op: asconf.Add, Addr: addr(6)}}
	for _, r := range list {
		must.OK(t, q.Ask(r))
	}
	waiting := func(what string, add, del, primary int) {
		t.Helper()
		check.Equal(t, what, [3]int{q.Waiting(asconf.Add), q.Waiting(asconf.Delete), q.Waiting(asconf.SetPrimary)},
			[3]int{add, del, primary})
	}
	waiting("all", 2, 1, 0)
	q.Begin(lookup)
	waiting("but the one under way", 1, 1, 0)
	var ended []asconf.Request
	q.Abandon(func(r asconf.Request) { ended = append(ended, r) })
	check.Slice(t, "abandoned", ended, list)
	waiting("nothing", 0, 0, 0)
	q.Abandon(func(r asconf.Request) { t.Errorf("%+v is abandoned twice", r) })
}

// An answer to what was not sent ends the association. One to what has ended says nothing.
func TestIllegalAcks(t *testing.T) {
	// req 5061-5.3-3
	q := asconf.NewRequester(9)
	for seq, want := range map[uint32]error{8: nil, 9: asconf.ErrIllegalAck, 9 + 1<<30: asconf.ErrIllegalAck, 5: nil} {
		done, _, fatal := q.HandleAck(ackOf(t, seq, 0))
		check.That(t, !done && errors.Is(fatal, want), "%d: %v", seq, fatal)
	}
	must.OK(t, q.Ask(asconf.Request{Addr: addr(4)}))
	q.Begin(lookup)
	_, _, fatal := q.HandleAck(ackOf(t, 9, 0))
	check.Error(t, "before it was sent", fatal, asconf.ErrIllegalAck)
	q.Chunk()
	_, _, fatal = q.HandleAck(ackOf(t, 10, 0))
	check.Error(t, "of the next", fatal, asconf.ErrIllegalAck)
}

// A peer that does not know the chunk gets no other. What waits is bounded, and all is reported.
func TestUnrecognizedAndAbandoned(t *testing.T) {
	q := asconf.NewRequester(9)
	n := 0
	for q.Ask(asconf.Request{Addr: addr(4)}) == nil {
		n++
	}
	check.Equal(t, "waiting", n, 16)
	check.Error(t, "one more", q.Ask(asconf.Request{Addr: addr(4)}), asconf.ErrBusy)
	q.Begin(lookup)
	ended := 0
	q.Abandon(func(asconf.Request) { ended++ })
	check.That(t, ended == n && !q.Begin(lookup), "%d of %d have ended", ended, n)
	must.OK(t, q.Ask(asconf.Request{Addr: addr(4)}))
	q.Unrecognized()
	check.That(t, !q.Begin(lookup), "an ASCONF to who does not know it")
	check.Error(t, "another", q.Ask(asconf.Request{Addr: addr(4)}), asconf.ErrUnsupported)
}
