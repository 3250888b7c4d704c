package reconfig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/reconfig"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Initial TSNs of the lab: own requests begin with 500, the peer's with 900.
const (
	ownTSN, peerTSN = 500, 900
	labRTO          = time.Second
)

// lab is a Machine whose Host notes what it is called for, and whose peer is the script.
type lab struct {
	t       *testing.T
	m       *reconfig.Machine
	now     rawio.Time
	out, in int
	next    wire.TSN // own next TSN
	cum     wire.TSN // what has come of the peer's
	busy    bool     // something that was given before the hold is not sent yet
	unacked bool     // something is not acknowledged
	atZero  bool
	holds   []reconfig.Hold
	lastNo  reconfig.Hold
	calls   []string
	events  []reconfig.Event
}

// newLab has 10 streams in each direction. The own next TSN is 600, and the peer's up to 950 have
// come. All is allowed.
func newLab(t *testing.T, changes ...func(*reconfig.Config)) *lab {
	cfg := reconfig.Config{LocalTSN: ownTSN, PeerTSN: peerTSN,
		Allowed: reconfig.Streams | reconfig.TSNs | reconfig.Adding,
		MaxOut:  reconfig.MaxStreams, MaxIn: reconfig.MaxStreams, MaxTries: 3}
	for _, f := range changes {
		f(&cfg)
	}
	l := &lab{t: t, out: 10, in: 10, next: 600, cum: 950, now: rawio.Time(time.Hour)}
	l.m = reconfig.New(cfg, l)
	return l
}

// allow is a change of newLab.
func allow(a reconfig.Allowed) func(*reconfig.Config) {
	return func(c *reconfig.Config) { c.Allowed = a }
}

func (l *lab) Streams() (out, in int)  { return l.out, l.in }
func (l *lab) NextTSN() wire.TSN       { return l.next }
func (l *lab) CumTSN() wire.TSN        { return l.cum }
func (l *lab) RTO() time.Duration      { return labRTO }
func (l *lab) IsAcked(t wire.TSN) bool { return !l.unacked && t.Less(l.next) }
func (l *lab) HasSettled(h reconfig.Hold, acked bool) bool {
	check.That(l.t, slices.Contains(l.holds, h), "hold %d is not there", h)
	return !l.busy && !(acked && l.unacked)
}
func (l *lab) OutIsAtZero([]wire.StreamID) bool { return l.atZero }

func (l *lab) HoldOut(s []wire.StreamID) reconfig.Hold {
	l.lastNo++
	l.holds = append(l.holds, l.lastNo)
	l.note("hold out %s", ids(s))
	return l.lastNo
}
func (l *lab) HoldMore(h reconfig.Hold, s []wire.StreamID) bool {
	if l.holds[len(l.holds)-1] != h {
		return false
	}
	l.note("hold out %s too", ids(s))
	return true
}
func (l *lab) ReleaseOut(h reconfig.Hold) {
	at := slices.Index(l.holds, h)
	must.That(l.t, at >= 0, "streams are released that are not held")
	l.holds = slices.Delete(l.holds, at, at+1)
	l.note("release out")
}
func (l *lab) ResetOut(s []wire.StreamID, last wire.TSN) {
	l.note("reset out %s last %d", ids(s), last)
}
func (l *lab) HoldIn(s []wire.StreamID, after wire.TSN) { l.note("hold in %s after %d", ids(s), after) }
func (l *lab) ReleaseIn()                               { l.note("release in") }
func (l *lab) FreezeIn()                                { l.note("freeze in") }
func (l *lab) ThawIn()                                  { l.note("thaw in") }
func (l *lab) ResetIn(s []wire.StreamID, after wire.TSN) {
	l.note("reset in %s after %d", ids(s), after)
}
func (l *lab) AddOut(n int) { l.out += n; l.note("add out %d", n) }
func (l *lab) AddIn(n int)  { l.in += n; l.note("add in %d", n) }
func (l *lab) RestartTSNs(next, expected wire.TSN) {
	l.next, l.cum = next, expected-1
	l.note("restart %d %d", next, expected)
}
func (l *lab) Violate(err error) { l.note("violated: %v", err) }

func (l *lab) Report(e reconfig.Event) { l.events = append(l.events, e) }

func (l *lab) note(format string, args ...any) {
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
}

func ids(list []wire.StreamID) string {
	if len(list) == 0 {
		return "all"
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ",")
}

// did checks what the Host was called for since the last time.
func (l *lab) did(want ...string) {
	l.t.Helper()
	check.Equal(l.t, "calls", strings.Join(l.calls, "; "), strings.Join(want, "; "))
	l.calls = nil
}

// heard checks what was reported since the last time.
func (l *lab) heard(want ...string) {
	l.t.Helper()
	var got []string
	for _, e := range l.events {
		s := map[reconfig.EventKind]string{reconfig.StreamsReset: "reset", reconfig.TSNsReset: "TSNs",
			reconfig.StreamsAdded: "added"}[e.Kind]
		if e.Kind != reconfig.TSNsReset {
			s += map[bool]string{true: " in", false: " out"}[e.Incoming]
		}
		switch e.Kind {
		case reconfig.StreamsReset:
			s += " " + ids(e.Streams)
		case reconfig.StreamsAdded:
			s += fmt.Sprint(" ", e.Count)
		}
		if e.ByPeer {
			s += " by peer"
		}
		if e.Err != nil {
			s += ": " + strings.TrimPrefix(e.Err.Error(), "sctp: ")
		}
		got = append(got, s)
	}
	l.events = nil
	check.Equal(l.t, "events", strings.Join(got, "; "), strings.Join(want, "; "))
}

// start begins with a request.
func (l *lab) start(r reconfig.Request) {
	l.t.Helper()
	must.Get(l.m.StartInTurn(l.now, r, 0))(l.t)
}

// take hands over a chunk of the peer, and checks the chunks that go back. The own request, if one
// is due, is among them.
func (l *lab) take(chunk []byte, want ...string) {
	l.t.Helper()
	must.OK(l.t, l.m.HandleChunk(l.now, reconfigOf(l.t, chunk)))
	l.sends(want...)
}

// sends checks what is to be sent, answers first.
func (l *lab) sends(want ...string) {
	l.t.Helper()
	var got []string
	for _, c := range split(l.m.AppendAnswer(nil, 1<<16)) {
		got = append(got, describe(l.t, c))
	}
	if l.m.RequestDue() {
		got = append(got, describe(l.t, l.m.AppendRequest(nil)))
		l.m.NoteRequestSent(l.now)
	}
	check.Equal(l.t, "chunks sent", strings.Join(got, "; "), strings.Join(want, "; "))
}

// wait lets time pass, and returns what the timer said.
func (l *lab) wait(d time.Duration) reconfig.Expiry {
	l.now = l.now.Add(d)
	return l.m.HandleTimeout(l.now)
}

func reconfigOf(t testing.TB, b []byte) wire.Reconfig {
	t.Helper()
	return must.Get(wire.AsReconfig(wire.Chunk(b[:int(b[2])<<8|int(b[3])])))(t)
}

// split cuts octets into chunks.
func split(b []byte) (list [][]byte) {
	for len(b) > 0 {
		n := (int(b[2])<<8 | int(b[3]) + 3) &^ 3
		list = append(list, b[:n])
		b = b[n:]
	}
	return list
}

// describe writes a chunk as chunk reads it.
func describe(t testing.TB, b []byte) string {
	t.Helper()
	var list []string
	ps := reconfigOf(t, b).Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		list = append(list, describeParam(t, p))
	}
	return strings.Join(list, " + ")
}

func describeParam(t testing.TB, p wire.Param) string {
	t.Helper()
	switch p.Type() {
	case wire.ParamOutgoingReset:
		r := must.Get(wire.AsOutgoingReset(p))(t)
		return fmt.Sprintf("OUT %d/%d last %d: %s", r.RequestSeq(), r.ResponseSeq(), r.LastTSN(), ids(idsOf(r.Streams())))
	case wire.ParamIncomingReset:
		r := must.Get(wire.AsIncomingReset(p))(t)
		return fmt.Sprintf("IN %d: %s", r.RequestSeq(), ids(idsOf(r.Streams())))
	case wire.ParamTSNReset:
		return fmt.Sprintf("TSN %d", must.Get(p.TSNResetSeq())(t))
	case wire.ParamReconfigResponse:
		r := must.Get(wire.AsReconfigResponse(p))(t)
		s := fmt.Sprintf("RESP %d %v", r.ResponseSeq(), r.Result())
		if sender, receiver, ok := r.NextTSNs(); ok {
			s += fmt.Sprintf(" %d %d", sender, receiver)
		}
		return s
	}
	r := must.Get(wire.AsAddStreams(p))(t)
	name := map[wire.ParamType]string{wire.ParamAddOutStreams: "ADD-OUT", wire.ParamAddInStreams: "ADD-IN"}[r.Type()]
	return fmt.Sprintf("%s %d: %d", name, r.RequestSeq(), r.Count())
}

func idsOf(l wire.Uint16List) (list []wire.StreamID) {
	for i := range l.Len() {
		list = append(list, wire.StreamID(l.At(i)))
	}
	return list
}

// A param appends a parameter of the peer's.
type param func([]byte) []byte

func chunk(params ...param) []byte {
	b := wire.AppendReconfig(nil)
	for _, p := range params {
		b = p(b)
	}
	return wire.CloseChunk(b, 0)
}

func outReset(seq, response uint32, last wire.TSN, streams ...wire.StreamID) param {
	return func(b []byte) []byte { return wire.AppendOutgoingReset(b, seq, response, last, streams) }
}

func inReset(seq uint32, streams ...wire.StreamID) param {
	return func(b []byte) []byte { return wire.AppendIncomingReset(b, seq, streams) }
}

func tsnReset(seq uint32) param {
	return func(b []byte) []byte { return wire.AppendTSNReset(b, seq) }
}

func addOut(seq uint32, n uint16) param {
	return func(b []byte) []byte { return wire.AppendAddStreams(b, wire.ParamAddOutStreams, seq, n) }
}

func addIn(seq uint32, n uint16) param {
	return func(b []byte) []byte { return wire.AppendAddStreams(b, wire.ParamAddInStreams, seq, n) }
}

func response(seq uint32, r wire.ReconfigResult) param {
	return func(b []byte) []byte { return wire.AppendReconfigResponse(b, seq, r) }
}

func tsnResponse(seq uint32, r wire.ReconfigResult, sender, receiver wire.TSN) param {
	return func(b []byte) []byte { return wire.AppendTSNResetResponse(b, seq, r, sender, receiver) }
}

// streams returns so many different ones.
func streams(n int) (list []wire.StreamID) {
	for i := range n {
		list = append(list, wire.StreamID(i))
	}
	return slices.Clip(list)
}

func uintText(n uint32) string { return fmt.Sprint(n) }
