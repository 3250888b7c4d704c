package ddpadapt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/conduct"
	"github.com/rddp-go/rddp/internal/count"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// player plays what befalls stream 0 and tells what is seen of it.
type player struct {
	*end
	s    *Session // the last one that the user has heard of
	u    *user
	seen Stats
	told []string
}

func (c *player) say(format string, args ...any) {
	c.told = append(c.told, fmt.Sprintf(format, args...))
}

// step is a message of the peer's, or a call.
func (c *player) step(what string) {
	var err error
	verb, rest, _ := strings.Cut(what, " ")
	if c.s == nil && strings.Contains("accept reject terminate abort send close", verb) {
		return
	}
	switch verb {
	case "call":
		u, open := c.stream(4), c.Open
		if rest != "" {
			open = func(now rawio.Time, id int, ds *ddp.Stream, private []byte) (*Session, error) {
				return c.OpenEnhanced(now, id, ds, Setup{IRD: 1, ORD: 2}, private)
			}
		}
		var s *Session
		if s, err = open(0, 0, u.Stream, []byte("hi")); err == nil {
			c.s, c.u = s, u
		}
	case "accept":
		u := c.stream(4)
		accept := c.s.Accept
		if rest != "" {
			accept = func(now rawio.Time, ds *ddp.Stream, private []byte) error {
				return c.s.AcceptEnhanced(now, ds, Setup{IRD: 3, ORD: 4}, private)
			}
		}
		if err = accept(0, u.Stream, []byte("yes")); err == nil {
			c.u = u
		}
	case "reject":
		err = c.s.Reject(0, []byte("no"))
	case "terminate":
		err = c.s.Terminate(0)
	case "abort":
		c.s.Abort()
	case "send":
		if c.u != nil {
			err = c.u.send(rest)
		}
	case "close":
		if c.u != nil {
			c.u.CloseSend()
		}
	case "hand":
		for _, p := range c.pull() {
			c.say("%s", strings.Trim(fmt.Sprintf("%q", p.String()), `"`))
		}
	case "ack":
		for _, p := range c.flight {
			p.arrived = true
		}
		c.acks()
	case "down":
		c.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: errors.New("down")})
	case "restart":
		c.a.life++
		c.HandleEvent(0, assoc.Event{Kind: assoc.EventRestart})
	case "pieces": // all of them 0
		c.reassembled(&assoc.Received{PPID: PPIDControl, Unordered: true, Size: 4})
	case "foreign":
		c.verdict(c.inject(0, 99, wire.FlagU, []byte{0, 1, 0, 0}))
	case "long": // an Initiate with too much private data
		_, b := encode("0 initiate " + strings.Repeat("x", MaxPrivateData+1))
		c.verdict(c.inject(0, PPIDControl, wire.FlagU, b))
	case "ordered":
		ppid, b := encode(rest)
		c.verdict(c.inject(0, ppid, 0, b))
	default:
		ppid, b := encode(what)
		c.verdict(c.inject(0, ppid, wire.FlagU, b))
	}
	if err != nil {
		c.say("%v", strings.TrimPrefix(err.Error(), "ddpadapt: "))
	}
}

func (c *player) verdict(v assoc.Verdict) {
	if v != assoc.Consumed {
		c.say("verdict %d", v)
	}
}

// look tells what has come of a step: events, what the user of the stream was told, counters, and the state.
func (c *player) look() string {
	for ev, ok := c.PollEvent(); ok; ev, ok = c.PollEvent() {
		about, se := fmt.Sprintf("%v %s", ev.Kind, ev.Private), (*SequenceError)(nil)
		if ev.Setup != nil {
			about += fmt.Sprintf(" %+v", *ev.Setup)
		}
		if ev.Session != nil && ev.Session.Stream() != 0 || ev.Session != c.s && ev.Kind != EventInitiate {
			about += " of another"
		}
		if errors.As(ev.Err, &se) {
			about += fmt.Sprintf(" %d: %v", se.SSN, se.Fault)
		} else if ev.Err != nil {
			about += " " + strings.TrimPrefix(ev.Err.Error(), "ddpadapt: ")
		}
		if c.say("[%s]", strings.Join(strings.Fields(about), " ")); ev.Kind == EventInitiate {
			c.s, c.u = ev.Session, nil
		}
	}
	if c.u != nil {
		for _, line := range c.u.log {
			c.say("<%s>", line)
		}
		c.u.log = nil
	}
	var now, before []uint64
	var names []string
	count.Each(c.Stats(), func(name string, v uint64) { now, names = append(now, v), append(names, name) })
	count.Each(c.seen, func(_ string, v uint64) { before = append(before, v) })
	for i, v := range now {
		if v != before[i] && !strings.HasPrefix(names[i], "Faults") {
			c.say("%s+%d", names[i], v-before[i])
		}
	}
	c.seen = c.Stats()
	if n := len(c.a.detached); n > 0 {
		c.say("detached %d", n)
		c.a.detached = nil
	}
	state := "none"
	if c.s != nil {
		st := c.s.Stats()
		state = fmt.Sprintf("%v %d/%d", c.s.State(), st.In, st.Out)
		count.Each(st, func(name string, v uint64) {
			if v > 0 && name != "In" && name != "Out" {
				state += fmt.Sprint(" ", name, v)
			}
		})
	}
	if n := c.Pending(); n > 0 {
		state += fmt.Sprint(" pending ", n)
	}
	if n := c.Active(); n > 0 {
		state += fmt.Sprint(" active ", n)
	}
	c.recount()
	told := strings.Join(append(c.told, state), ", ")
	c.told = nil
	return told
}

// In each situation of a stream and for each thing that can happen then, testdata/conduct.txt has what comes of it.
func TestConductIsAsWrittenDown(t *testing.T) {
	conduct.Table(t, "testdata/conduct.txt", func(situation []string, step string) string { return answer(t, situation, step) })
}

// answer tells what comes of a step in a situation: at once, when all that can leave has left and is acknowledged, and when the peer
// ends the session, or begins the next one if this one is over.
func answer(t *testing.T, situation []string, step string) string {
	c := &player{end: newEnd(t, newFake(), Config{Initiator: true})}
	for _, step := range situation {
		c.step(step)
		c.look()
	}
	c.step(step)
	got := c.look()
	c.step("hand")
	c.step("ack")
	got += " | " + c.look()
	if s := c.lookup(0); s != nil && s.State() < Over {
		c.step(fmt.Sprint(s.next, " terminate"))
	} else {
		c.step("0 initiate again")
	}
	c.step("hand")
	c.step("ack")
	last := c.look()
	if last == "[initiate again], Requests+1, pending 0/0 pending 1 active 1" {
		last = "free"
	}
	if got += " | " + last; c.a.broken != nil {
		got += " | BROKEN"
	}
	return got
}
