package ddpadapt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/golden"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// player plays what happens to a stream and tells what is seen of it.
type player struct {
	*end
	id   wire.StreamID
	s    *Session // the last one that the user has heard of
	u    *user
	seen Stats
	told []string
}

func (c *player) noteText(format string, args ...any) {
	c.told = append(c.told, fmt.Sprintf(format, args...))
}

// playStep is a message of the peer's, or a call.
func (c *player) playStep(what string) {
	var err error
	if before, ahead, yes := strings.Cut(what, "+"); yes { // of the message whose turn it is
		var n uint16
		fmt.Sscan(ahead, &n)
		if s := c.sessionOn(c.id); s != nil {
			n += s.nextSSN
		}
		what = fmt.Sprint(before, n, strings.TrimLeft(ahead, "0123456789"))
	}
	verb, rest, _ := strings.Cut(what, " ")
	if c.s == nil && strings.Contains("accept reject terminate abort send close detach", verb) {
		return
	}
	switch verb {
	case "call":
		u, open := c.newStream(4), c.Open
		if rest != "" {
			open = func(now rawio.Time, id int, ds *ddp.Stream, private []byte) (*Session, error) {
				return c.OpenEnhanced(now, id, ds, llp.Setup{IRD: 1, ORD: 2}, private)
			}
		}
		var s *Session
		if s, err = open(0, int(c.id), u.Stream, []byte("hi")); err == nil {
			c.s, c.u = s, u
		}
	case "accept":
		u := c.newStream(4)
		accept := c.s.Accept
		if rest != "" {
			accept = func(now rawio.Time, ds *ddp.Stream, private []byte) error {
				return c.s.AcceptEnhanced(now, ds, llp.Setup{IRD: 3, ORD: 4}, private)
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
			err = c.u.sendText(rest)
		}
	case "close":
		if c.u != nil {
			c.u.CloseSend()
		}
	case "hand":
		for _, p := range c.pullPackets() {
			c.noteText("%s", strings.Trim(fmt.Sprintf("%q", p.String()), `"`))
		}
	case "ack": // all, or so many
		n := len(c.flight)
		fmt.Sscan(rest, &n)
		for _, p := range c.flight[:min(n, len(c.flight))] {
			p.arrived = true
		}
		c.ackArrived()
	case "detach":
		c.s.Detach(nil)
	case "room": // in a DATA chunk
		fmt.Sscan(rest, &c.a.payload)
	case "down":
		c.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: errors.New("down")})
	case "restart":
		c.a.life++
		c.HandleEvent(0, assoc.Event{Kind: assoc.EventRestart})
	case "pieces": // all of them 0
		size := 4
		fmt.Sscan(rest, &size)
		c.receiveFragmented(&assoc.Received{Stream: c.id, PPID: PPIDControl, Unordered: true, Size: size})
	case "foreign":
		c.noteVerdict(c.injectMessage(c.id, 99, wire.FlagU, []byte{0, 1, 0, 0}))
	case "long": // an Initiate with too much private data
		_, b := encodeLine("0 initiate " + strings.Repeat("x", llp.MaxPrivateData+1))
		c.noteVerdict(c.injectMessage(c.id, PPIDControl, wire.FlagU, b))
	case "ordered":
		ppid, b := encodeLine(rest)
		c.noteVerdict(c.injectMessage(c.id, ppid, 0, b))
	default:
		ppid, b := encodeLine(what)
		c.noteVerdict(c.injectMessage(c.id, ppid, wire.FlagU, b))
	}
	if err != nil {
		c.noteText("%v", textOf(err))
	}
}

// textOf is the text of an error without the name of the package, where it is this one's or the one
// of what all lower layers say.
func textOf(err error) string {
	text := strings.TrimPrefix(err.Error(), "ddpadapt: ")
	if err == llp.ErrState || err == llp.ErrPrivateDataTooLong || errors.As(err, new(*llp.RejectedError)) ||
		errors.As(err, new(*llp.TerminatedError)) {
		text = strings.TrimPrefix(text, "ddp: ")
	}
	return text
}

func (c *player) noteVerdict(v assoc.Verdict) {
	if v != assoc.Consumed {
		c.noteText("verdict %d", v)
	}
}

// seenSoFar tells what has come of a step: events, what the user of the stream was told, counters,
// and the state.
func (c *player) seenSoFar() string {
	for ev, ok := c.PollEvent(); ok; ev, ok = c.PollEvent() {
		about, se := fmt.Sprintf("%v %s", ev.Kind, ev.Private), (*SequenceError)(nil)
		if ev.Setup != nil {
			about += fmt.Sprintf(" %+v", *ev.Setup)
		}
		if ev.Session != nil && ev.Session.Stream() != c.id || ev.Session != c.s && ev.Kind != EventInitiate {
			about += " of another"
		}
		if errors.As(ev.Err, &se) {
			about += fmt.Sprintf(" %d: %v", se.SSN, se.Fault)
		} else if ev.Err != nil {
			about += " " + textOf(ev.Err)
		}
		if c.noteText("[%s]", strings.Join(strings.Fields(about), " ")); ev.Kind == EventInitiate {
			c.s, c.u = ev.Session, nil
		}
	}
	if c.u != nil {
		for _, line := range c.u.log {
			c.noteText("<%s>", line)
		}
		c.u.log = nil
	}
	var now, before []uint64
	var names []string
	counters.Each(c.Stats(), func(name string, v uint64) { now, names = append(now, v), append(names, name) })
	counters.Each(c.seen, func(_ string, v uint64) { before = append(before, v) })
	for i, v := range now {
		if v != before[i] && !strings.HasPrefix(names[i], "Faults") {
			c.noteText("%s+%d", names[i], v-before[i])
		}
	}
	c.seen = c.Stats()
	if n := len(c.a.detached); n > 0 {
		c.noteText("detached %d", n)
		c.a.detached = nil
	}
	state := "none"
	if c.s != nil {
		st := c.s.Stats()
		state = fmt.Sprintf("%v %d/%d", c.s.State(), st.In, st.Out)
		counters.Each(st, func(name string, v uint64) {
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
	c.checkCounts()
	told := strings.Join(append(c.told, state), ", ")
	c.told = nil
	return told
}

// In each situation of a stream and for each thing that can happen then, testdata/conduct.txt has
// what comes of it.
func TestConductIsAsWrittenDown(t *testing.T) {
	golden.Table(t, "testdata/conduct.txt", func(situation []string, step string) string {
		return outcomeOf(t, situation, step)
	})
}

// What chance has happen on three streams comes to what it came to, of which only a digest is.
func TestConductByChanceIsAsItWas(t *testing.T) {
	often := "hand,hand,hand,ack,ack,ack #,call,accept,send x,send y,+0 segment abc,+0 segment abc,+0 segment " +
		"abc,+1 segment abc,+2 segment abc,+0 accept yes,0 initiate hi,0 initiate hi,"
	words := strings.Split(strings.Repeat(often, 6)+
		"call enhanced,call enhanced,accept enhanced,accept "+
		"enhanced,reject,terminate,terminate,terminate,terminate,abort,close,detach,detach,send "+
		strings.Repeat("x", 60)+",send "+strings.Repeat("y", 2000)+
		",+# segment abc,+# segment abc,# segment abc,+0 reject no,+0 enhancedaccept abcdef,+0 enhancedreject "+
		"abcd,0 enhancedinitiate abcdef,0 enhancedinitiate abcdef,+# accept,+0 initiate,# initiate,"+
		"+0 terminate,+0 terminate,+# terminate,+0 unknown,foreign,long,ordered +0 segment abc,pieces #,room "+
		"#,room 1200,restart", ",")
	fuzzinput.CheckRecording(t, "testdata/chance.txt", 120, func(seed int, told *strings.Builder) {
		in := fuzzinput.Script(fuzzinput.Random(seed, 1000))
		e := newEnd(t, newFake(), Config{Initiator: seed%2 == 0, MaxOutOfOrder: seed % 7, MaxEarly: 5 * (seed % 31),
			MaxPending: seed % 4})
		players := []*player{{end: e}, {end: e, id: 1}, {end: e, id: 2}}
		for len(in) > 0 {
			c := players[in.Next()*in.Next()>>13%3]
			line := in.Line(words, []int{0, 1, 2, 3, 7, 255, 1000, 32766, 65534})
			c.playStep(line)
			fmt.Fprintln(told, c.id, line, c.seenSoFar(), e.Steps(), e.Held(), e.a.broken)
		}
	})
}

// What is lost without a number may have been the last of what is awaited: the stream is free at
// once.
func TestLastOfALostSessionEndsIt(t *testing.T) {
	c, got := &player{end: newEnd(t, newFake(), Config{})}, ""
	for _, step := range []string{"0 initiate", "accept", "hand", "ack", "abort", "hand", "ack", "2 terminate",
		"pieces 1"} {
		c.playStep(step)
		got = c.seenSoFar()
	}
	check.That(t, strings.Contains(got, "[ended]"), "%v", got)
}

// outcomeOf tells what comes of a step in a situation: at once, when all that can leave has left
// and is acknowledged, and when the peer ends the session, or begins the next one if this one is
// over.
func outcomeOf(t *testing.T, situation []string, step string) string {
	c := &player{end: newEnd(t, newFake(), Config{Initiator: true})}
	for _, step := range situation {
		c.playStep(step)
		c.seenSoFar()
	}
	c.playStep(step)
	got := c.seenSoFar()
	c.playStep("hand")
	c.playStep("ack")
	got += " | " + c.seenSoFar()
	if s := c.sessionOn(0); s != nil && s.State() < Over {
		c.playStep(fmt.Sprint(s.nextSSN, " terminate"))
	} else {
		c.playStep("0 initiate again")
	}
	c.playStep("hand")
	c.playStep("ack")
	last := c.seenSoFar()
	if last == "[initiate again], Requests+1, pending 0/0 pending 1 active 1" {
		last = "free"
	}
	if got += " | " + last; c.a.broken != nil {
		got += " | BROKEN"
	}
	return got
}
