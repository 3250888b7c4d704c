package reconfig_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/reconfig"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The examples of RFC 6525 Appendix A, as E-A sees them.
func TestOwnRequestsOfAppendixA(t *testing.T) {
	for _, c := range []struct {
		name    string
		request reconfig.Request
		sent    string
		answer  []byte
		back    string // what goes back for the answer
		did     []string
		heard   []string
	}{
		{"streams 1 and 2 that go out", reconfig.Request{ResetOut: true, Streams: []wire.StreamID{1, 2}},
			"OUT 500/899 last 599: 1,2", chunk(response(500, wire.ReconfigPerformed)), "",
			[]string{"hold out 1,2", "reset out 1,2 last 599", "release out"}, []string{"reset out 1,2"}},
		{"streams 1 and 2 that come in", reconfig.Request{ResetIn: true, Streams: []wire.StreamID{1, 2}},
			"IN 500: 1,2", chunk(outReset(900, 500, 950, 1, 2)), "RESP 900 Success - Performed",
			[]string{"reset in 1,2 after 950", "release in"}, []string{"reset in 1,2"}},
		{"all streams in both directions", reconfig.Request{ResetOut: true, ResetIn: true},
			"OUT 500/899 last 599: all + IN 501: all",
			chunk(response(500, wire.ReconfigPerformed), outReset(900, 501, 950)), "RESP 900 Success - Performed",
			[]string{"hold out all", "reset out all last 599", "release out", "reset in all after 950", "release in"},
			[]string{"reset out all", "reset in all"}},
		{"TSNs", reconfig.Request{ResetTSNs: true}, "TSN 500",
			chunk(tsnResponse(500, wire.ReconfigPerformed, 7000, 8000)), "",
			[]string{"hold out all", "freeze in", "restart 8000 7000", "release out"}, []string{"TSNs"}},
		{"3 more streams that go out", reconfig.Request{AddOut: 3}, "ADD-OUT 500: 3",
			chunk(response(500, wire.ReconfigPerformed)), "", []string{"add out 3"}, []string{"added out 3"}},
		{"more streams in both directions", reconfig.Request{AddOut: 3, AddIn: 4}, "ADD-OUT 500: 3 + ADD-IN 501: 4",
			chunk(response(500, wire.ReconfigPerformed), response(501, wire.ReconfigPerformed)), "",
			[]string{"add out 3"}, []string{"added out 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, allow(0)) // what was asked for needs no leave
			l.start(c.request)
			l.sends(c.sent)
			if c.back == "" {
				l.take(c.answer)
			} else {
				l.take(c.answer, c.back)
			}
			l.did(c.did...)
			l.heard(c.heard...)
			check.That(t, l.m.IsIdle() && l.m.NextTimeout() == rawio.Never, "it goes on")
		})
	}
}

// The last example: the answer does not say that it is one. The request goes again, and nobody
// minds if that is not answered. A peer that had the same idea has not got the request yet.
func TestStreamsThatComeInAreAskedForUntilTheyAreSureToCome(t *testing.T) {
	asked := func() *lab {
		l := newLab(t, allow(0))
		l.start(reconfig.Request{AddIn: 3})
		l.sends("ADD-IN 500: 3")
		l.take(chunk(addOut(900, 2)), "RESP 900 Denied")
		l.take(chunk(addOut(901, 3)), "RESP 901 Success - Performed")
		l.heard("added in 3")
		return l
	}
	l := asked()
	for range 2 {
		check.Equal(t, "after the RTO", l.wait(labRTO), reconfig.NoExpiry)
		l.sends("ADD-IN 500: 3")
	}
	check.Equal(t, "at last", l.wait(labRTO), reconfig.NoExpiry)
	l.sends()
	check.That(t, l.m.IsIdle() && l.m.NextTimeout() == rawio.Never, "it goes on")

	l = asked()
	l.wait(labRTO)
	l.sends("ADD-IN 500: 3")
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	check.That(t, l.m.IsIdle(), "it goes on")
	l.take(chunk(addOut(902, 3)), "RESP 902 Denied")
	l.heard()

	l = asked()
	l.take(chunk(addOut(902, 3)), "RESP 902 Success - Performed") // which of the two is the answer?
	l.take(chunk(response(500, wire.ReconfigDenied)))
	l.heard("added in 3 by peer", "added in 3: the peer has refused a stream reconfiguration: Denied")
	check.Equal(t, "streams", l.in, 16)
}

// A request that was taken for answered has never come to the peer. Then the next one has the wrong
// number for it, and so would all that follow. The one that is missing goes first.
func TestRequestThatHasNeverCome(t *testing.T) {
	desynchronized := func() *lab {
		l := newLab(t)
		l.start(reconfig.Request{AddIn: 3})
		l.sends("ADD-IN 500: 3")
		l.take(chunk(addOut(900, 3)), "RESP 900 Success - Performed")
		for l.wait(labRTO); l.m.RequestDue(); l.wait(labRTO) {
			l.sends("ADD-IN 500: 3")
		}
		l.start(reconfig.Request{ResetOut: true, ResetIn: true, Streams: streams(1)})
		l.sends("OUT 501/900 last 599: 0 + IN 502: 0")
		return l
	}
	const bad = wire.ReconfigBadSeq
	l := desynchronized()
	l.calls, l.events = nil, nil
	l.take(chunk(response(501, bad), response(502, bad)), "ADD-IN 500: 3")
	check.Equal(t, "nobody answers", l.wait(labRTO), reconfig.Unanswered)
	l.sends("ADD-IN 500: 3")
	l.take(chunk(response(500, wire.ReconfigPerformed)), "OUT 501/900 last 599: 0 + IN 502: 0")
	l.take(chunk(addOut(901, 3)), "RESP 901 Success - Performed")
	l.take(chunk(response(501, bad), response(502, bad))) // late
	l.take(chunk(response(501, wire.ReconfigPerformed), outReset(902, 502, 950, 0)), "RESP 902 Success - Performed")
	l.heard("added in 3", "reset out 0", "reset in 0")
	check.That(t, l.m.IsIdle(), "it goes on")

	l = desynchronized() // the number is right after all
	l.take(chunk(response(501, wire.ReconfigPerformed), response(502, wire.ReconfigDenied)))
	l.start(reconfig.Request{AddOut: 1})
	l.sends("ADD-OUT 503: 1")
	l.events = nil
	l.take(chunk(response(503, bad)))
	l.heard("added out 1: the peer has refused a stream reconfiguration: Error - Bad Sequence Number")
}

// A peer that answers by a response has its own request accepted when that comes.
func TestPeerAnswersByAResponseBeforeItsRequest(t *testing.T) {
	l := newLab(t, allow(0))
	l.start(reconfig.Request{ResetIn: true, Streams: []wire.StreamID{4}})
	l.sends("IN 500: 4")
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	l.heard()
	l.take(chunk(outReset(900, 500, 950, 4)), "RESP 900 Success - Performed")
	l.heard("reset in 4")
	l.take(chunk(outReset(901, 500, 950, 4)), "RESP 901 Denied") // it was asked for once

	l.start(reconfig.Request{AddIn: 3})
	l.sends("ADD-IN 501: 3")
	l.take(chunk(response(501, wire.ReconfigPerformed)))
	l.heard()
	l.take(chunk(addOut(902, 3)), "RESP 902 Success - Performed")
	l.heard("added in 3")
	l.take(chunk(addOut(903, 3)), "RESP 903 Denied")
}

func TestRequestsThatAreRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		request reconfig.Request
		paired  bool
		want    error
	}{
		{"nothing", reconfig.Request{}, false, reconfig.ErrRequest},
		{"fewer streams", reconfig.Request{AddOut: 1, AddIn: -1}, false, reconfig.ErrRequest},
		{"nothing but streams", reconfig.Request{Streams: streams(2)}, false, reconfig.ErrRequest},
		{"a reset and new streams", reconfig.Request{ResetOut: true, AddOut: 1}, false, reconfig.ErrRequest},
		{"TSNs and more", reconfig.Request{ResetTSNs: true, ResetIn: true}, false, reconfig.ErrRequest},
		{"TSNs and new streams", reconfig.Request{ResetTSNs: true, AddIn: 1}, false, reconfig.ErrRequest},
		{"a stream that does not go out", reconfig.Request{ResetOut: true, Streams: streams(11)}, false,
			reconfig.ErrStream},
		{"a stream that does not come in", reconfig.Request{ResetIn: true, Streams: []wire.StreamID{20}}, false,
			reconfig.ErrStream},
		{"65536 streams that go out", reconfig.Request{AddOut: 65526}, false, reconfig.ErrTooManyStreams},
		{"65536 streams that come in", reconfig.Request{AddIn: 65516}, false, reconfig.ErrTooManyStreams},
		{"a reset of pairs", reconfig.Request{ResetOut: true}, true, reconfig.ErrPaired},
		{"a reset of pairs that come in", reconfig.Request{ResetIn: true}, true, reconfig.ErrPaired},
		{"TSNs of pairs", reconfig.Request{ResetTSNs: true}, true, reconfig.ErrPaired},
		{"streams that are no pairs", reconfig.Request{AddOut: 2, AddIn: 1}, true, reconfig.ErrPaired},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, func(f *reconfig.Config) { f.Paired = c.paired })
			l.in = 20
			check.Fails(l.m.StartInTurn(l.now, c.request, 0))(t, "StartInTurn", c.want)
			l.sends()
			l.did()
		})
	}
	l := newLab(t)
	l.start(reconfig.Request{AddOut: 65525})
	l.sends("ADD-OUT 500: 65525")
}

// Messages that were given before go in the old numbering; later ones wait. Only then is the last
// TSN known.
func TestOutgoingResetWaitsForWhatWasGivenBefore(t *testing.T) {
	l := newLab(t)
	l.busy = true
	l.start(reconfig.Request{ResetOut: true, Streams: []wire.StreamID{3}})
	l.sends()
	l.did("hold out 3")
	l.m.Poll(l.now)
	l.sends()
	l.busy, l.next = false, 620
	l.m.Poll(l.now)
	l.sends("OUT 500/899 last 619: 3")
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	l.did("reset out 3 last 619", "release out")
}

func TestOneRequestIsInFlight(t *testing.T) {
	l := newLab(t)
	l.busy = true
	l.start(reconfig.Request{ResetOut: true})
	l.start(reconfig.Request{AddOut: 1}) // while it waits
	l.sends()
	l.busy = false
	l.m.Poll(l.now)
	l.sends("OUT 500/899 last 599: all")
	l.start(reconfig.Request{AddOut: 2}) // while it is in flight
	l.sends()
	l.take(chunk(response(500, wire.ReconfigDenied)), "ADD-OUT 501: 1")
	l.take(chunk(response(501, wire.ReconfigDenied)), "ADD-OUT 502: 2")
}

func TestRequestNumbersWrap(t *testing.T) {
	l := newLab(t, func(c *reconfig.Config) { c.LocalTSN, c.PeerTSN = 0xffffffff, 0 })
	l.start(reconfig.Request{AddOut: 1, AddIn: 1})
	l.sends("ADD-OUT 4294967295: 1 + ADD-IN 0: 1")
	l.take(chunk(response(0xffffffff, wire.ReconfigDenied), response(0, wire.ReconfigDenied)))
	l.start(reconfig.Request{ResetOut: true})
	l.sends("OUT 1/4294967295 last 599: all")
}

func TestResultsOfThePeer(t *testing.T) {
	for _, c := range []struct {
		name   string
		result wire.ReconfigResult
		did    []string
		heard  string
	}{
		{"performed", wire.ReconfigPerformed, []string{"reset out 3 last 599", "release out"}, "reset out 3"},
		{"nothing to do", wire.ReconfigNothingToDo, []string{"reset out 3 last 599", "release out"}, "reset out 3"},
		{"denied", wire.ReconfigDenied, []string{"release out"},
			"reset out 3: the peer has refused a stream reconfiguration: Denied"},
		{"wrong SSN", wire.ReconfigWrongSSN, []string{"release out"},
			"reset out 3: the peer has refused a stream reconfiguration: Error - Wrong SSN"},
		{"bad sequence number", wire.ReconfigBadSeq, []string{"release out"},
			"reset out 3: the peer has refused a stream reconfiguration: Error - Bad Sequence Number"},
		{"a result of the future", 77, []string{"release out"},
			"reset out 3: the peer has refused a stream reconfiguration: result 77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.start(reconfig.Request{ResetOut: true, Streams: []wire.StreamID{3}})
			l.sends("OUT 500/899 last 599: 3")
			l.did("hold out 3")
			l.take(chunk(response(499, c.result))) // not what was asked
			l.did()
			l.take(chunk(response(500, c.result)))
			l.did(c.did...)
			if len(l.events) == 1 && l.events[0].Err != nil {
				check.Equal(t, "it was denied", errors.Is(l.events[0].Err, reconfig.ErrDenied), c.name == "denied")
			}
			l.heard(c.heard)
			l.take(chunk(response(500, wire.ReconfigPerformed))) // late, and again
			l.did()
			l.heard()
		})
	}
}

// New streams are used after a Success, and not before (section 5.1.5).
func TestStreamsAreAddedWhenThePeerHasThem(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{AddOut: 2})
	l.sends("ADD-OUT 500: 2")
	check.Equal(t, "streams while it is under way", l.out, 10)
	l.take(chunk(response(500, wire.ReconfigInProgress)))
	check.Equal(t, "streams while it is in progress", l.out, 10)
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	check.Equal(t, "streams", l.out, 12)
	l.start(reconfig.Request{AddOut: 2})
	l.sends("ADD-OUT 501: 2")
	l.take(chunk(response(501, wire.ReconfigDenied)))
	check.Equal(t, "streams after a denial", l.out, 12)
}

// A request that nobody answers goes again after the RTO, with the same octets. Each expiry counts
// an error. After MaxTries it is given up, and messages go on.
func TestPeerNeverAnswers(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{ResetOut: true, Streams: []wire.StreamID{3}})
	first := l.m.AppendRequest(nil)
	l.sends("OUT 500/899 last 599: 3")
	l.next = 700 // DATA of other streams goes on
	for range 3 {
		check.Equal(t, "before the RTO", l.wait(labRTO-1), reconfig.NoExpiry)
		check.That(t, !l.m.RequestDue(), "it goes again before the RTO")
		check.Equal(t, "after the RTO", l.wait(1), reconfig.Unanswered)
		check.That(t, bytes.Equal(l.m.AppendRequest(nil), first), "it has other octets than at first")
		l.sends("OUT 500/899 last 599: 3")
	}
	l.did("hold out 3")
	check.Equal(t, "at last", l.wait(labRTO), reconfig.GivenUp)
	l.did("release out")
	l.heard("reset out 3: the peer does not answer requests for stream reconfiguration")
	l.sends()
	check.That(t, l.m.IsIdle() && l.m.NextTimeout() == rawio.Never, "it goes on")
	check.Fails(l.m.StartInTurn(l.now, reconfig.Request{AddOut: 1}, 0))(t, "another", reconfig.ErrUnanswered)
	l.take(chunk(response(500, wire.ReconfigPerformed))) // far too late
	l.did()
	l.take(chunk(outReset(900, 499, 900, 1)), "RESP 900 Success - Performed") // its own are still performed
	l.take(chunk(inReset(901, 2)), "RESP 901 Denied")                         // but it is asked for nothing more
	l.take(chunk(addIn(902, 2)), "RESP 902 Denied")
}

// Nobody knows whether a peer that does not answer has reset its TSNs. So nothing is sent again:
// the association has to end (section 5.1.4, C2).
func TestPeerNeverAnswersAResetOfTSNs(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{ResetTSNs: true})
	l.sends("TSN 500")
	must.Get(l.m.StartInTurn(l.now, reconfig.Request{AddOut: 1}, 6))(t)
	for range 3 {
		check.Equal(t, "after the RTO", l.wait(labRTO), reconfig.Unanswered)
		l.sends("TSN 500")
	}
	l.did("hold out all", "freeze in")
	check.Equal(t, "at last", l.wait(labRTO), reconfig.TSNsUnknown)
	l.did()
	l.heard()
	l.m.Abandon(errors.New("it ends"))
	l.did("thaw in", "release out")
	l.heard("TSNs: it ends", "added out 1: it ends")
}

// Requests go in the order in which they were asked for. Messages behind each wait from then on,
// and what nobody wants any more is not asked for.
func TestRequestsWaitForTheirTurn(t *testing.T) {
	l := newLab(t)
	ask := func(r reconfig.Request) reconfig.RequestID {
		t.Helper()
		return must.Get(l.m.StartInTurn(l.now, r, 4))(t)
	}
	out := func(s ...wire.StreamID) reconfig.Request { return reconfig.Request{ResetOut: true, Streams: s} }
	first := ask(out(1))
	l.sends("OUT 500/899 last 599: 1")
	second := ask(out(1, 2))
	check.Equal(t, "joined", ask(out(3)), second)
	third := ask(out(2)) // which begins anew in between
	check.Equal(t, "joined", ask(out(4, 5, 6)), third)
	full := ask(out(7))
	unwanted := ask(reconfig.Request{ResetIn: true})
	tsns := ask(reconfig.Request{ResetTSNs: true})
	all := ask(out())
	check.That(t, first != second && second != third && third != full && all != tsns, "requests are joined")
	check.Fails(l.m.StartInTurn(l.now, out(77), 4))(t, "no such stream", reconfig.ErrStream)
	l.did("hold out 1", "hold out 1,2", "hold out 3 too", "hold out 2", "hold out 4,5,6 too", "hold out 7", "hold out all",
		"hold out all")
	l.m.StopWaiting(unwanted)
	l.m.StopWaiting(full)
	l.m.StopWaiting(third) // the other one wants it
	l.m.StopWaiting(first) // is under way
	l.did("release out")
	for id, want := range map[reconfig.RequestID]bool{first: true, third: true, unwanted: false, full: false} {
		check.That(t, l.m.IsUnderWay(id) == want, "request %d is under way: %v", id, !want)
	}

	l.take(chunk(response(500, wire.ReconfigPerformed)), "OUT 501/899 last 599: 1,2,3")
	l.did("reset out 1 last 599", "release out")
	check.That(t, !l.m.IsUnderWay(first) && l.m.IsUnderWay(second), "the turn is wrong")
	l.take(chunk(response(501, wire.ReconfigDenied)), "OUT 502/899 last 599: 2,4,5,6")
	l.did("release out")
	l.take(chunk(response(502, wire.ReconfigPerformed)), "TSN 503")
	l.did("reset out 2,4,5,6 last 599", "release out", "freeze in")
	l.take(chunk(tsnResponse(503, wire.ReconfigPerformed, 951, 700)), "OUT 504/899 last 699: all")
	l.did("restart 700 951", "release out")
	l.heard("reset out 1", "reset out 1,2,3: the peer has refused a stream reconfiguration: Denied", "reset out 2,4,5,6",
		"TSNs")
	ask(out(8))
	l.m.StopAsking(errors.New("closing"))
	l.did("hold out 8", "release out", "release out")
	l.heard("reset out all: closing", "reset out 8: closing")
	check.Fails(l.m.StartInTurn(l.now, out(1), 4))(t, "StartInTurn", reconfig.ErrUnanswered)
}

// What cannot be done any more when it is its turn is not begun. The others go on.
func TestRequestThatHasBecomeWrong(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{AddOut: reconfig.MaxStreams - 10})
	l.sends("ADD-OUT 500: 65525")
	must.Get(l.m.StartInTurn(l.now, reconfig.Request{AddOut: 2}, 4))(t)
	must.Get(l.m.StartInTurn(l.now, reconfig.Request{ResetOut: true, Streams: []wire.StreamID{3}}, 4))(t)
	l.take(chunk(response(500, wire.ReconfigPerformed)), "OUT 501/899 last 599: 3")
	l.heard("added out 65525", "added out 2: more streams than an association can have")
}

// A reset of TSNs by the peer comes before requests that wait.
func TestPeersTSNResetComesBeforeThoseThatWait(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{ResetOut: true, Streams: []wire.StreamID{3}})
	l.sends("OUT 500/899 last 599: 3")
	must.Get(l.m.StartInTurn(l.now, reconfig.Request{ResetOut: true, Streams: []wire.StreamID{3}}, 4))(t)
	l.unacked = true
	l.take(chunk(tsnReset(900)))
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	l.did("hold out 3", "hold out 3", "reset out 3 last 599", "release out", "hold out all")
	l.unacked = false
	l.m.Poll(l.now)
	l.sends("RESP 900 Success - Performed 600 2147484599", "OUT 501/900 last 599: 3")
}

// "In progress" starts the timer again. The retransmission that follows counts no error; that it is
// not answered then is one (section 5.2.7, H2).
func TestInProgressCountsNoError(t *testing.T) {
	l := newLab(t)
	l.unacked = true
	l.start(reconfig.Request{ResetOut: true, Streams: []wire.StreamID{3}})
	l.sends("OUT 500/899 last 599: 3")
	check.Equal(t, "no answer", l.wait(labRTO), reconfig.Unanswered)
	l.sends("OUT 500/899 last 599: 3")
	for range 20 {
		l.wait(labRTO / 2)
		l.take(chunk(response(500, wire.ReconfigInProgress)))
		check.Equal(t, "an RTO after the first transmission", l.wait(labRTO/2), reconfig.NoExpiry)
		check.That(t, !l.m.RequestDue(), "the timer was not started again")
		check.Equal(t, "an RTO after the answer", l.wait(labRTO/2), reconfig.NoExpiry)
		l.sends("OUT 500/899 last 599: 3")
	}
	for range 3 {
		check.Equal(t, "no answer any more", l.wait(labRTO), reconfig.Unanswered)
		l.sends("OUT 500/899 last 599: 3")
	}
	l.heard()
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	l.heard("reset out 3")
}

// A peer may perform a reset, lose the one answer that says so, and call it in progress for ever.
// When it has all DATA, it is asked by another number, and not for ever.
func TestResetThatStaysInProgress(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{ResetOut: true, Streams: []wire.StreamID{3}})
	for number := uint32(500); number <= 508; number++ {
		want := fmt.Sprintf("OUT %d/899 last 599: 3", number)
		l.sends(want)
		for range 7 {
			l.take(chunk(response(number, wire.ReconfigInProgress)))
			check.Equal(t, "expiry", l.wait(labRTO), reconfig.NoExpiry)
			l.sends(want)
		}
		l.take(chunk(response(number, wire.ReconfigInProgress)))
		if number < 508 {
			l.sends()
			check.Equal(t, "expiry", l.wait(labRTO), reconfig.NoExpiry)
		}
	}
	l.did("hold out 3", "release out")
	l.heard("reset out 3: the peer has refused a stream reconfiguration: In progress")
	check.That(t, l.m.IsIdle(), "it goes on")

	l.start(reconfig.Request{ResetOut: true, Streams: []wire.StreamID{3}})
	l.sends("OUT 509/899 last 599: 3")
	for range 8 {
		l.take(chunk(response(509, wire.ReconfigInProgress)))
	}
	l.wait(labRTO)
	l.sends("OUT 510/899 last 599: 3")
	l.take(chunk(response(510, wire.ReconfigPerformed)))
	l.did("hold out 3", "reset out 3 last 599", "release out")
	l.heard("reset out 3")
}

// An answer to one of two parts leaves the timer on for the other, and the chunk as it was.
func TestPartsAreAnsweredOneByOne(t *testing.T) {
	l := newLab(t)
	const sent = "OUT 500/899 last 599: 3 + IN 501: 3"
	l.start(reconfig.Request{ResetOut: true, ResetIn: true, Streams: []wire.StreamID{3}})
	l.sends(sent)
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	l.did("hold out 3", "reset out 3 last 599", "release out")
	l.take(chunk(response(500, wire.ReconfigPerformed))) // again
	l.did()
	check.Equal(t, "after the RTO", l.wait(labRTO), reconfig.Unanswered)
	l.sends(sent)
	l.take(chunk(response(501, wire.ReconfigInProgress)))
	check.Equal(t, "after another", l.wait(labRTO), reconfig.NoExpiry)
	l.sends(sent)
	l.take(chunk(response(501, wire.ReconfigDenied)))
	l.heard("reset out 3", "reset in 3: the peer has refused a stream reconfiguration: Denied")
	check.That(t, l.m.IsIdle(), "it goes on")
}

// Messages go on when the reset of what goes out is denied, whatever becomes of the other.
func TestMessagesGoOnWhenTheirResetIsDenied(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{ResetOut: true, ResetIn: true, Streams: []wire.StreamID{3}})
	l.sends("OUT 500/899 last 599: 3 + IN 501: 3")
	l.take(chunk(response(500, wire.ReconfigDenied), response(501, wire.ReconfigInProgress)))
	l.did("hold out 3", "release out")
	l.heard("reset out 3: the peer has refused a stream reconfiguration: Denied")
}

// A peer that is busy with a request of its own says so. What it can perform by itself it is asked
// again, by another number; what takes its turn has failed.
func TestPeerIsBusy(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{ResetOut: true, ResetIn: true, Streams: []wire.StreamID{3}})
	l.sends("OUT 500/899 last 599: 3 + IN 501: 3")
	l.take(chunk(response(500, wire.ReconfigAlreadyInProgress), response(501, wire.ReconfigAlreadyInProgress)))
	l.heard("reset in 3: the peer has refused a stream reconfiguration: Error - Request already in progress")
	l.sends()
	l.did("hold out 3") // and it stays so
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	l.next = 610
	for seq := uint32(502); seq < 509; seq++ {
		check.Equal(t, "after the RTO", l.wait(labRTO), reconfig.NoExpiry)
		l.sends(fmt.Sprintf("OUT %d/899 last 609: 3", seq))
		l.take(chunk(response(seq, wire.ReconfigAlreadyInProgress)))
	}
	l.did()
	l.wait(labRTO)
	l.sends("OUT 509/899 last 609: 3")
	l.take(chunk(response(509, wire.ReconfigAlreadyInProgress))) // eight times are enough
	l.did("release out")
	l.heard("reset out 3: the peer has refused a stream reconfiguration: Error - Request already in progress")
	check.That(t, l.m.IsIdle(), "it goes on")
}

// For a reset of TSNs nothing is outstanding, and nothing is sent until the answer (section 5.1.4).
func TestTSNResetWaitsForAcknowledgements(t *testing.T) {
	l := newLab(t)
	l.unacked = true
	l.start(reconfig.Request{ResetTSNs: true})
	l.sends()
	l.did("hold out all")
	l.unacked = false
	l.m.Poll(l.now)
	l.sends("TSN 500")
	l.take(chunk(response(500, wire.ReconfigPerformed))) // it lacks the TSNs
	l.did("freeze in", "violated: sctp: the peer has reset TSNs and not named the next ones")
	l.take(chunk(response(500, wire.ReconfigNothingToDo))) // and this one needs none
	l.did("thaw in", "release out")
	l.heard("TSNs: the peer has refused a stream reconfiguration: Success - Nothing to do")

	check.Fails(l.m.StartInTurn(l.now, reconfig.Request{ResetTSNs: true}, 0))(t, "again", reconfig.ErrTooSoon)
	l.wait(30*time.Second - 1)
	check.Fails(l.m.StartInTurn(l.now, reconfig.Request{ResetTSNs: true}, 0))(t, "before 30 s", reconfig.ErrTooSoon)
	l.wait(1)
	l.start(reconfig.Request{ResetTSNs: true})
	l.sends("TSN 501")
	l.take(chunk(tsnResponse(501, wire.ReconfigDenied, 1, 2)))
	l.did("hold out all", "freeze in", "thaw in", "release out")
	l.heard("TSNs: the peer has refused a stream reconfiguration: Denied")
}

func TestAbandon(t *testing.T) {
	why := errors.New("it ends")
	l := newLab(t)
	l.take(chunk(outReset(900, 499, 960, 1)), "RESP 900 In progress")
	l.start(reconfig.Request{ResetOut: true, ResetIn: true, Streams: []wire.StreamID{3}})
	l.did("hold in 1 after 960", "hold out 3")
	l.m.Abandon(why)
	l.did("release out", "release in")
	l.heard("reset out 3: it ends", "reset in 3: it ends")
	l.sends()
	check.That(t, l.m.IsIdle() && l.m.NextTimeout() == rawio.Never, "it goes on")

	l = newLab(t)
	l.unacked = true
	l.take(chunk(tsnReset(900)))
	l.m.Abandon(why)
	l.did("hold out all", "release out")
	check.That(t, l.m.NextTimeout() == rawio.Never, "a timer runs")
}
