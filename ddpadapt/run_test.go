package ddpadapt

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// runOf hands over up to n messages at once, as packets; none where Next is to be asked.
func (e *end) runOf(n int) (list []*packet) {
	run := e.NextRun(0, e.a.payload, n)
	if run == nil {
		return nil
	}
	must.That(e, run.N > 1 && run.N <= n && len(run.Body)%run.N == 0,
		"a run of %d with %d octets, of %d that were asked for", run.N, len(run.Body), n)
	part := len(run.Body) / run.N
	for i := range run.N {
		msg := assoc.Message{Stream: run.Stream, PPID: run.PPID, Token: run.Token, Unordered: true,
			HeadLen: run.HeadLen, Head: run.Heads[i]}
		msg.Body[0] = run.Body[i*part:][:part]
		must.Equal(e, "octets of a message of a run", msg.Len(), e.a.payload)
		list = append(list, e.nextChunk(&msg))
	}
	return list
}

// What the Mux hands over in runs is what it hands over one by one: segments and control messages,
// of several sessions by turns, under any limit.
func TestRunsAreWhatNextGives(t *testing.T) {
	// req 5043-4-1, 5043-5.2.2-1, 5043-10-7
	runs := 0
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(5043, seed))
		var ends [2]*end // one by one, and in runs
		var users [2][]*user
		var sessions [2][]*Session
		for i := range ends {
			a, b := newPair(t)
			for range 1 + seed%3 {
				s, _, u, _ := connectSession(a, b)
				if seed%5 == 0 { // it has many in flight already
					s.unackedMessages = MaxInFlight - 50
				}
				sessions[i], users[i] = append(sessions[i], s), append(users[i], u)
			}
			ends[i] = a
		}
		one, many := ends[0], ends[1]
		memory := make([]byte, 60_000)
		for i := range memory {
			memory[i] = byte(rnd.Uint32())
		}
		for range 200 {
			switch who := rnd.IntN(len(users[0])); rnd.IntN(12) {
			case 0, 1, 2:
				n, tagged, to, cut := rnd.IntN(len(memory)/(1+rnd.IntN(30))), rnd.IntN(2) == 0, rnd.Uint64()>>1,
					rnd.IntN(3)
				for i := range ends {
					u := users[i][who]
					u.sent++
					g := gatherOf(memory[:n])
					if cut == 0 {
						g = append(gatherOf(memory[:n/3]), gatherOf(memory[n/3:n])...)
					}
					if tagged {
						_ = u.SendTagged(7, to, 3, g, u.sent)
					} else {
						_ = u.SendUntagged(0, [5]byte{}, g, u.sent)
					}
				}
			case 3:
				payload := 400 + rnd.IntN(1200)
				one.a.payload, many.a.payload = payload, payload
			case 4:
				if rnd.IntN(8) == 0 {
					for i := range ends {
						_ = sessions[i][who].Terminate(0)
					}
				}
			case 5:
				if rnd.IntN(8) == 0 {
					for _, e := range ends {
						_, _ = e.Open(0, -1, e.newStream(8).Stream, nil)
					}
				}
			case 6:
				if rnd.IntN(20) == 0 {
					for _, e := range ends {
						e.a.life++
					}
				}
			case 7, 8:
				var alike []*packet
				said := func() {
					if n := len(alike); n > 0 {
						many.AckedRun(0, alike[0].data.Stream(), alike[0].token, n)
						alike = nil
					}
				}
				for range rnd.IntN(len(one.flight) + 1) {
					p := one.flight[0]
					one.flight, many.flight = one.flight[1:], many.flight[1:]
					one.Acked(0, p.data.Stream(), p.token)
					if len(alike) > 0 && (alike[0].token != p.token || alike[0].data.Stream() != p.data.Stream()) {
						said()
					}
					alike = append(alike, p)
				}
				said()
			default:
				var msg assoc.Message
				got := many.runOf(rnd.IntN(12))
				if runs += min(len(got), 1); got == nil && many.Next(0, many.a.payload, &msg) {
					got = append(got, many.nextChunk(&msg))
				}
				if got == nil {
					must.That(t, !one.Next(0, one.a.payload, &msg), "seed %d: less than Next has", seed)
				}
				for _, p := range got {
					must.That(t, one.Next(0, one.a.payload, &msg), "seed %d: more than Next has", seed)
					want := one.nextChunk(&msg)
					must.That(t, bytes.Equal(p.data, want.data) && p.token == want.token, "seed %d: %x, want %x",
						seed, p.data, want.data)
				}
				must.That(t, many.outRun == nil || many.outRun.N > 0, "seed %d: an empty run", seed)
			}
			must.Equal(t, "counters", many.Stats(), one.Stats())
			must.Equal(t, "turn", many.scheduler.segmentsLeft, one.scheduler.segmentsLeft)
			must.Equal(t, "whether there is nothing to send", many.Idle(), one.Idle())
			for i, s := range sessions[0] {
				r := sessions[1][i]
				must.That(t, s.unackedMessages == r.unackedMessages && s.Stats() == r.Stats() && s.state == r.state &&
					s.ourTerminate == r.ourTerminate,
					"seed %d: session %d has %d unacknowledged in %v, want %d in %v", seed, i, r.unackedMessages,
					r.state, s.unackedMessages, s.state)
			}
		}
		for i, u := range users[0] {
			check.Slice(t, "what a session's user hears", users[1][i].log, u.log)
		}
	}
	check.That(t, runs > 500, "%d runs only", runs)
}

// There is no run where Next has something else to do first, or more than one message has to be
// looked at.
func TestWhereThereIsNoRun(t *testing.T) {
	for _, row := range []struct {
		name  string
		story func(a *end, s *Session)
		want  int
	}{
		{"a long message", func(*end, *Session) {}, segmentsPerTurn},
		{"a control message goes first", func(a *end, _ *Session) { must.Do(a.Open(0, -1, a.newStream(8).Stream, nil))(a) }, 0},
		{"the association has restarted", func(a *end, _ *Session) { a.a.life++ }, 0},
		{"all in flight that may be", func(_ *end, s *Session) { s.unackedMessages = MaxInFlight }, 0},
		{"all but three", func(_ *end, s *Session) { s.unackedMessages = MaxInFlight - 3 }, 3},
		{"a path that is too narrow for a segment", func(a *end, _ *Session) { a.a.payload = ssnLen + MinMULPDU - 1 }, 0},
		{"one that is just wide enough", func(a *end, _ *Session) { a.a.payload = ssnLen + MinMULPDU }, segmentsPerTurn},
		{"the session is over", func(_ *end, s *Session) { s.Abort() }, 0},
	} {
		a, b := newPair(t)
		s, _, u, _ := connectSession(a, b)
		must.OK(t, u.SendUntagged(0, [5]byte{}, ddp.Gather{{Mem: ddp.Bytes(make([]byte, 1<<20)), Len: 1 << 20}}, 1))
		row.story(a, s)
		check.Equal(t, row.name, len(a.runOf(100)), row.want)
	}
	a := newEnd(t, newFake(), Config{})
	check.That(t, a.NextRun(0, 1200, 8) == nil, "a run of no session")
	a = &end{TB: t, a: newFake(), Mux: NewMux(newFake(), Config{})}
	check.That(t, a.NextRun(0, 1200, 8) == nil, "a run where DDP is not agreed")
}
