package assoc_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/count"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// happenings are what can happen to an association, in the order of the package comment: the chunks of the peer, reports of the
// network, calls and timers. A cookie is named by what collector calls it.
var happenings = []struct {
	name   string
	happen func(l *lab.Lab) error
}{
	{"INIT", func(l *lab.Lab) error { return deliver(l, 0, lab.InitChunk(0x99999999, 1)) }},
	{"INIT, another address", func(l *lab.Lab) error {
		return deliver(l, 0, lab.InitChunk(0x99999999, 1, []byte{0, 5, 0, 8, 10, 9, 9, 9}))
	}},
	{"INIT ACK", func(l *lab.Lab) error { return deliver(l, l.Tag, lab.InitAckChunk(l.PeerTag, l.TSN, []byte("theirs"))) }},
	{"COOKIE ACK", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendCookieAck(nil)) }},
	{"DATA", func(l *lab.Lab) error { return deliver(l, l.Tag, l.Data("x")) }},
	{"DATA, empty", func(l *lab.Lab) error { return deliver(l, l.Tag, l.Data("")) }},
	{"SACK", func(l *lab.Lab) error { return deliver(l, l.Tag, l.Sack(l.HostTSN)) }},
	{"SACK, not sent", func(l *lab.Lab) error { return deliver(l, l.Tag, l.Sack(l.HostTSN+5)) }},
	{"HEARTBEAT", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendHeartbeat(nil, []byte("x"))) }},
	{"HEARTBEAT ACK", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendHeartbeatAck(nil, make([]byte, 32))) }},
	{"ABORT", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendAbort(nil, false)) }},
	{"SHUTDOWN", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendShutdown(nil, l.HostTSN-1)) }},
	{"SHUTDOWN, all acknowledged", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendShutdown(nil, l.HostTSN)) }},
	{"SHUTDOWN ACK", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendShutdownAck(nil)) }},
	{"SHUTDOWN COMPLETE", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendShutdownComplete(nil, false)) }},
	{"ERROR, stale cookie", func(l *lab.Lab) error { return deliver(l, l.Tag, staleError()) }},
	{"ERROR, other", func(l *lab.Lab) error {
		return deliver(l, l.Tag, wire.CloseChunk(wire.AppendCause(wire.AppendError(nil), wire.CauseOutOfResource, nil), 0))
	}},
	{"ECNE", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendECNE(nil, l.HostTSN)) }},
	{"CWR", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendCWR(nil, l.TSN)) }},
	{"PAD", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendChunk(nil, wire.ChunkPad, 0, nil)) }},
	{"unknown, 00", func(l *lab.Lab) error { return deliver(l, l.Tag, []byte{0x3e, 0, 0, 4}) }},
	{"unknown, 01", func(l *lab.Lab) error { return deliver(l, l.Tag, []byte{0x7e, 0, 0, 4}) }},
	{"unknown, 10", func(l *lab.Lab) error { return deliver(l, l.Tag, []byte{0xbe, 0, 0, 4}) }},
	{"unknown, 11", func(l *lab.Lab) error { return deliver(l, l.Tag, []byte{0xfe, 0, 0, 4}) }},
	{"wrong tag", func(l *lab.Lab) error { return deliver(l, foreign(l), wire.AppendAbort(nil, false)) }},
	{"ICMP, no SCTP", func(l *lab.Lab) error {
		l.Now = l.Now.Add(2 * time.Second) // nothing was heard for so long
		tag, chunk := l.A.PeerTag(), l.Data("x")
		if l.A.State() == assoc.CookieWait {
			tag, chunk = 0, lab.InitChunk(l.Tag, 1)
		}
		l.Hand(rawio.Packet{Kind: rawio.KindProtoUnreachable, Data: lab.Packet(lab.PortB, lab.PortA, tag, chunk), Remote: l.Peer})
		return nil
	}},
	{"Send", func(l *lab.Lab) error { return l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("x")}}) }},
	{"Shutdown", func(l *lab.Lab) error { return l.A.Shutdown(l.Now) }},
	{"Abort", func(l *lab.Lab) error { l.A.Abort(l.Now, nil); return nil }},
	{"AbortForMemory", func(l *lab.Lab) error { l.A.AbortForMemory(2, 1); return nil }},
	{"Break", func(l *lab.Lab) error { l.A.Break(new(assoc.InternalError)); return nil }},
	{"RequestHeartbeat", func(l *lab.Lab) error { return l.A.RequestHeartbeat(l.Now, l.Peer.Addr()) }},
	{"T1, T2 or T3-rtx", func(l *lab.Lab) error { return pass(l, time.Second) }},
	{"T5-shutdown-guard", func(l *lab.Lab) error { return pass(l, 5*time.Minute) }},
	{"an hour of silence", func(l *lab.Lab) error { l.Wait(time.Hour); return nil }},
	{"COOKIE ECHO, A", func(l *lab.Lab) error { return giveBack(l, "a restart") }},
	{"COOKIE ECHO, B", func(l *lab.Lab) error { return giveBack(l, "a collision in COOKIE-WAIT") }},
	{"COOKIE ECHO, C", func(l *lab.Lab) error { return giveBack(l, "a call before") }},
	{"COOKIE ECHO, D", func(l *lab.Lab) error { return giveBack(l, "a collision in COOKIE-ECHOED, with the same tag") }},
	{"COOKIE ECHO, expired", func(l *lab.Lab) error {
		l.Now = l.Now.Add(61 * time.Second)
		return giveBack(l, "a collision in COOKIE-WAIT")
	}},
	{"COOKIE ECHO, forged", func(l *lab.Lab) error { return deliver(l, l.Tag, wire.AppendCookieEcho(nil, make([]byte, 108))) }},
}

var jar []signed // of the association under test

func deliver(l *lab.Lab, tag uint32, chunk []byte) error {
	l.Deliver(l.Peer, lab.Packet(lab.PortA, lab.PortB, tag, chunk))
	return nil
}

var errNone = errors.New("none")

func giveBack(l *lab.Lab, name string) error {
	for _, c := range jar {
		if c.name == name {
			return deliver(l, c.local, wire.AppendCookieEcho(nil, c.cookie))
		}
	}
	return errNone
}

func pass(l *lab.Lab, d time.Duration) error {
	l.Now = l.Now.Add(d)
	l.A.HandleTimeout(l.Now)
	return nil
}

// befall says what one of them does in a state: what is sent, the error of a call, and where it leads.
func befall(t *testing.T, state assoc.State, happen func(l *lab.Lab) error) string {
	defer invariant.Tolerate()()
	from := state
	if state == assoc.Closed {
		from = assoc.Established
	}
	l, list := collector(t, from)
	if jar = list; state == assoc.Closed {
		l.A.Abort(l.Now, nil)
		l.Flush()
	}
	a := l.A
	must.Equal(t, "state", a.State(), state)
	before := dropped(a)
	err := happen(l)
	if err == errNone {
		return "cannot be"
	}
	says := lab.Describe(l.Flush())
	switch {
	case errors.Is(err, assoc.ErrNotUp):
		says += "ErrNotUp"
	case errors.Is(err, assoc.ErrClosing):
		says += "ErrClosing"
	case says != "" || a.State() != state:
	case dropped(a) != before || state == assoc.Closed:
		says = "ignored"
	default:
		says = "taken"
	}
	if a.State() == assoc.Closed && state != assoc.Closed {
		var list []string
		down, _ := l.Host.DownErr()
		for _, end := range endings(t) {
			if end.match(down) {
				list = append(list, end.doc)
			}
		}
		check.That(t, len(list) == 1, "%v ends by %v, which the list of ends has as %q", state, down, list)
	}
	if a.State() != state {
		says = strings.TrimSpace(fmt.Sprintf("%s > %v", says, a.State()))
	}
	return says
}

// dropped counts what an association has not taken.
func dropped(a *assoc.Assoc) (n uint64) {
	count.Each(a.Stats().Counters, func(name string, v uint64) {
		switch name {
		case "Unexpected", "Malformed", "WrongTag", "BadCookies", "BadHeartbeatAcks", "ForeignSource", "OutOfWindow", "UnknownChunks":
			n += v
		}
	})
	return n
}

// Whatever happens to an association, in each of its states, does what the table in the package comment says, and
// nothing else: what is sent, and the state after it.
func TestEverythingInEachState(t *testing.T) {
	// req 9260-5.2.2-1, 9260-9.2-19, 9260-5.2.3-1, 9260-5.2.5-1, 9260-6-3, 9260-6-4, 9260-6-6, 9260-4-1
	// req 9260-9.2-16, 9260-9.2-17, 9260-8.5.1-8, 9260-5.2.6-1
	doc := must.Get(os.ReadFile("doc.go"))(t)
	for _, h := range happenings {
		var order []string
		states := make(map[string][]string)
		most := ""
		for state := assoc.Closed; state <= assoc.ShutdownAckSent; state++ {
			says := befall(t, state, h.happen)
			if states[says] == nil {
				order = append(order, says)
			}
			if states[says] = append(states[says], state.String()); len(states[says]) > len(states[most]) {
				most = says
			}
		}
		line := most
		for _, says := range order {
			if says != most {
				line += "; " + strings.Join(states[says], ", ") + ": " + says
			}
		}
		line = fmt.Sprintf("//\t%-26s %s", h.name, line)
		check.That(t, strings.Contains(string(doc), line+"\n"), "doc.go lacks\n%s", line)
	}
}
