package asconf_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/internal/asconf"
	"github.com/rddp-go/rddp/sctp/wire"
)

func lookup([]asconf.Request) netip.Addr { return addr(1) }

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

// only returns the error of the one outcome.
func only(t testing.TB, list []asconf.Outcome) error {
	t.Helper()
	must.That(t, len(list) == 1, "%d outcomes", len(list))
	return list[0].Err
}

// asked writes down what an ASCONF asks for, and the ids of that.
func asked(t testing.TB, b []byte) (requests string, ids []uint32) {
	t.Helper()
	ps := must.Get(wire.AsAsconf(chunkOf(t, b)))(t).Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		r := must.Get(wire.AsAddrRequest(p))(t)
		sign := map[wire.ParamType]string{wire.ParamAddIP: "+", wire.ParamDeleteIP: "-", wire.ParamSetPrimary: "!"}
		requests += sign[r.Type()] + r.Addr().String() + " "
		ids = append(ids, r.CorrelationID())
	}
	return requests, ids
}

func TestOneRequestIsUnderWay(t *testing.T) {
	// req 5061-5.1-1, 5061-5.1-4
	// req 5061-4.1-2
	// req 5061-5.1-3: the same chunk each time
	q := asconf.NewRequester(0xffffffff)
	must.That(t, !q.Begin(lookup), "something is under way")
	must.OK(t, q.Ask(asconf.Request{Op: asconf.Add, Addr: addr(4)}))
	for i, want := range []asconf.Request{{Op: asconf.Add, Addr: addr(4)}, {Op: asconf.SetPrimary, Addr: addr(4)}} {
		must.That(t, q.Begin(lookup), "nothing is under way")
		if i == 0 {
			must.OK(t, q.Ask(asconf.Request{Op: asconf.SetPrimary, Addr: addr(4)}))
		}
		c := must.Get(wire.AsAsconf(chunkOf(t, q.Chunk())))(t)
		check.Equal(t, "number", c.Seq(), uint32(0xffffffff+i))
		check.Equal(t, "address", c.Addr(), addr(1))
		ps := c.Params()
		p, _ := ps.Next()
		r := must.Get(wire.AsAddrRequest(p))(t)
		check.Equal(t, "asked for", r.Addr(), want.Addr)
		first := bytes.Clone(q.Chunk())
		check.That(t, q.Begin(lookup) && bytes.Equal(q.Chunk(), first), "another chunk while one is under way")
		done, outcomes, fatal := q.HandleAck(ackOf(t, c.Seq(), 0))
		check.That(t, done && only(t, outcomes) == nil && fatal == nil, "%v %v %v", done, outcomes, fatal)
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
			done, outcomes, fatal := q.HandleAck(ackOf(t, 9, c.why))
			check.That(t, done && fatal == nil, "%v %v", done, fatal)
			refused := only(t, outcomes)
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
		list, isSent := q.Current()
		check.That(t, list == nil && !isSent, "%s: %+v is under way, %v", row.name, list, isSent)
		q.Begin(lookup)
		list, isSent = q.Current()
		check.That(t, !isSent && len(list) == 1 && list[0] == asconf.Request{Op: asconf.Delete, Addr: addr(4)},
			"%s: %+v, %v", row.name, list, isSent)
		q.Chunk()
		list, isSent = q.Current()
		check.That(t, len(list) == 1 && isSent, "%s: sent %v, under way %v", row.name, isSent, list)
		b := wire.AppendAsconfAck(nil, 9)
		for _, f := range row.says {
			b = f(b)
		}
		done, outcomes, fatal := q.HandleAck(must.Get(wire.AsAsconfAck(chunkOf(t, wire.CloseChunk(b, 0))))(t))
		refused := only(t, outcomes)
		got, is := refused.(*asconf.RefusedError)
		want, wanted := row.want.(*asconf.RefusedError)
		check.That(t, done && fatal == nil && is == wanted && (!is && refused == nil || is && *got == *want), "%s: %v, %v, %v",
			row.name, done, refused, fatal)
		list, _ = q.Current()
		check.That(t, list == nil && q.Ask(asconf.Request{Op: asconf.Delete, Addr: addr(5)}) == nil, "%s: it goes on", row.name)
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
	waiting("nothing but what is under way", 0, 0, 0)
	more := []asconf.Request{{Op: asconf.SetPrimary, Addr: addr(4)}, {Op: asconf.Add, Addr: addr(7)}}
	must.OK(t, q.Ask(more...))
	waiting("what came later", 1, 0, 1)
	list = append(list, more...)
	check.Slice(t, "abandoned", q.Abandon(), list)
	waiting("nothing", 0, 0, 0)
	check.Slice(t, "abandoned twice", q.Abandon(), nil)
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
	check.Error(t, "too many at once", q.Ask(make([]asconf.Request, 17)...), asconf.ErrBusy)
	n := 0
	for q.Ask(asconf.Request{Addr: addr(4)}) == nil {
		n++
	}
	check.Equal(t, "waiting", n, 16)
	check.Error(t, "one more", q.Ask(asconf.Request{Addr: addr(4)}), asconf.ErrBusy)
	q.Begin(lookup)
	ended := len(q.Abandon())
	check.That(t, ended == n && !q.Begin(lookup), "%d of %d have ended", ended, n)
	must.OK(t, q.Ask(asconf.Request{Addr: addr(4)}))
	q.Unrecognized()
	check.That(t, !q.Begin(lookup), "an ASCONF to who does not know it")
	check.Error(t, "another", q.Ask(asconf.Request{Addr: addr(4)}), asconf.ErrUnsupported)
}

// What waits goes in one ASCONF, each request with an id of its own, and no more than fit any path
// with their answers.
func TestRequestsAreBundled(t *testing.T) {
	// req 5061-5.1-1, 5061-5.1-4
	q := asconf.NewRequester(0xfffffffe)
	many := make([]asconf.Request, 11)
	want := ""
	for i := range many {
		many[i] = asconf.Request{Op: asconf.Op(i % 3), Addr: netip.AddrFrom16([16]byte{0xfd, 15: byte(i)})}
		want += string("+-!"[i%3]) + many[i].Addr.String() + " "
	}
	must.OK(t, q.Ask(many...))
	got, seen, seq := "", map[uint32]bool{}, uint32(0xfffffffe)
	for _, n := range []int{8, 3} {
		must.That(t, q.Begin(lookup), "nothing is under way")
		requests, ids := asked(t, q.Chunk())
		check.Equal(t, "requests", len(ids), n)
		check.That(t, len(q.Chunk()) <= 256+20, "%d octets", len(q.Chunk()))
		got += requests
		for _, id := range ids {
			seen[id] = true
		}
		done, outcomes, _ := q.HandleAck(ackOf(t, seq, 0))
		check.That(t, done && len(outcomes) == n, "%v %v", done, outcomes)
		seq++
	}
	check.Equal(t, "asked for", got, want)
	check.Equal(t, "ids", len(seen), len(many))
}

// A7: what is behind a failure, and not said to be done, has failed. Where that was for the failure
// in front of it, it is asked for again: no request keeps another from being performed.
func TestFailuresOfABundle(t *testing.T) {
	// req 5061-5.2-2
	// req 5061-5.3-3
	peer := &addrList{list: []netip.Addr{addr(1), addr(2)}, most: 4, refuses: addr(7)}
	q, r := asconf.NewRequester(20), asconf.NewResponder(20)
	must.OK(t, q.Ask(asconf.Request{Op: asconf.Add, Addr: addr(4)}, asconf.Request{Op: asconf.Add, Addr: addr(7)},
		asconf.Request{Op: asconf.SetPrimary, Addr: addr(4)}, asconf.Request{Op: asconf.SetPrimary, Addr: addr(9)},
		asconf.Request{Op: asconf.Delete, Addr: addr(2)}, asconf.Request{Op: asconf.Add, Addr: addr(5)}))
	var got []string
	for q.Begin(lookup) {
		c := must.Get(wire.AsAsconf(chunkOf(t, q.Chunk())))(t)
		ack := r.Handle(c, true, addr(1), 1000, peer)
		_, outcomes, fatal := q.HandleAck(must.Get(wire.AsAsconfAck(chunkOf(t, ack)))(t))
		must.OK(t, fatal)
		round := ""
		for _, x := range outcomes {
			round += fmt.Sprintf("%d %v %v, ", x.Op, x.Addr, x.Err != nil)
		}
		got = append(got, round)
	}
	check.Slice(t, "rounds", got, []string{
		"0 192.0.2.4 false, 0 192.0.2.7 true, 2 192.0.2.4 false, 2 192.0.2.9 true, ",
		"1 192.0.2.2 false, 0 192.0.2.5 false, "})
	check.Slice(t, "performed", peer.log, []string{"+192.0.2.4", "!192.0.2.4", "-192.0.2.2", "+192.0.2.5"})
}

// The rules for what is not said of a request, one answer a row: s and f say that a request was
// performed or refused, u that it was not understood, x that it is a failure of none of them.
func TestAnswersOfABundle(t *testing.T) {
	// req 5061-5.2-2
	for _, row := range []struct{ says, want, again string }{
		{"", "ok ok ok", ""},
		{"0s", "ok ok ok", ""},
		{"1f", "ok refused", "-192.0.2.3 "},
		{"1f 2s", "ok refused ok", ""},
		{"2s 1f", "ok refused ok", ""},
		{"0f", "refused", "+192.0.2.2 -192.0.2.3 "},
		{"0f 1f 2f", "refused", "+192.0.2.2 -192.0.2.3 "},
		{"2f", "ok ok refused", ""},
		{"x", "refused", "+192.0.2.2 -192.0.2.3 "},
		{"0s x", "ok refused", "-192.0.2.3 "},
		{"0u", "unsupported unsupported unsupported", ""},
		{"1f 1s", "ok refused", "-192.0.2.3 "},
	} {
		q := asconf.NewRequester(100)
		must.OK(t, q.Ask(asconf.Request{Op: asconf.Add, Addr: addr(1)}))
		q.Begin(lookup)
		q.Chunk()
		q.HandleAck(ackOf(t, 100, 0)) // ids and numbers are no longer the same
		must.OK(t, q.Ask(asconf.Request{Op: asconf.Add, Addr: addr(1)}, asconf.Request{Op: asconf.Add, Addr: addr(2)},
			asconf.Request{Op: asconf.Delete, Addr: addr(3)}))
		q.Begin(lookup)
		_, ids := asked(t, q.Chunk())
		b := wire.AppendAsconfAck(nil, 101)
		for _, word := range strings.Fields(row.says) {
			id := uint32(7)
			if word != "x" {
				id = ids[word[0]-'0']
			}
			start := len(b)
			switch word[len(word)-1] {
			case 's':
				b = wire.AppendSuccessIndication(b, id)
				continue
			case 'u':
				b = wire.AppendCause(wire.AppendErrorIndication(b, id), wire.CauseUnrecognizedParams, nil)
			default:
				b = wire.AppendCause(wire.AppendErrorIndication(b, id), wire.CauseResourceShortage, nil)
			}
			b = wire.CloseParam(b, start)
		}
		_, outcomes, _ := q.HandleAck(must.Get(wire.AsAsconfAck(chunkOf(t, wire.CloseChunk(b, 0))))(t))
		var got []string
		for _, x := range outcomes {
			switch {
			case x.Err == nil:
				got = append(got, "ok")
			case errors.Is(x.Err, asconf.ErrUnsupported):
				got = append(got, "unsupported")
			default:
				got = append(got, "refused")
			}
		}
		check.Equal(t, row.says, strings.Join(got, " "), row.want)
		again := ""
		if q.Begin(lookup) {
			again, _ = asked(t, q.Chunk())
		}
		check.Equal(t, row.says+": again", again, row.again)
	}
}
