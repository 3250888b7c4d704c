package sctptest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Event is something that can happen to an association.
type Event struct {
	Name   string
	happen func(l *Lab) error
}

// Befallings are what can happen, in the order of the package comment of sctp/assoc: the chunks of
// the peer, reports of the network, calls and timers. A cookie is named by what Collector calls it.
var Befallings = []Event{
	{"INIT", func(l *Lab) error { return deliverChunk(l, 0, InitChunk(0x99999999, 1)) }},
	{"INIT, another address", func(l *Lab) error {
		return deliverChunk(l, 0, InitChunk(0x99999999, 1, []byte{0, 5, 0, 8, 10, 9, 9, 9}))
	}},
	{"INIT ACK", func(l *Lab) error { return deliverChunk(l, l.Tag, InitAckChunk(l.PeerTag, l.TSN, []byte("theirs"))) }},
	{"COOKIE ACK", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendCookieAck(nil)) }},
	{"DATA", func(l *Lab) error { return deliverChunk(l, l.Tag, l.Data("x")) }},
	{"DATA, empty", func(l *Lab) error { return deliverChunk(l, l.Tag, l.Data("")) }},
	{"SACK", func(l *Lab) error { return deliverChunk(l, l.Tag, l.Sack(l.HostTSN)) }},
	{"SACK, not sent", func(l *Lab) error { return deliverChunk(l, l.Tag, l.Sack(l.HostTSN+5)) }},
	{"HEARTBEAT", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendHeartbeat(nil, []byte("x"))) }},
	{"HEARTBEAT ACK", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendHeartbeatAck(nil, make([]byte, 32))) }},
	{"ABORT", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendAbort(nil, false)) }},
	{"SHUTDOWN", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendShutdown(nil, l.HostTSN-1)) }},
	{"SHUTDOWN, all acknowledged", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendShutdown(nil, l.HostTSN)) }},
	{"SHUTDOWN ACK", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendShutdownAck(nil)) }},
	{"SHUTDOWN COMPLETE", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendShutdownComplete(nil, false)) }},
	{"ERROR, stale cookie", func(l *Lab) error { return deliverChunk(l, l.Tag, StaleError()) }},
	{"ERROR, other", func(l *Lab) error {
		return deliverChunk(l, l.Tag,
			wire.CloseChunk(wire.AppendCause(wire.AppendError(nil), wire.CauseOutOfResource, nil), 0))
	}},
	{"ECNE", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendECNE(nil, l.HostTSN)) }},
	{"CWR", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendCWR(nil, l.TSN)) }},
	{"PAD", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendChunk(nil, wire.ChunkPad, 0, nil)) }},
	{"unknown, 00", func(l *Lab) error { return deliverChunk(l, l.Tag, []byte{0x3e, 0, 0, 4}) }},
	{"unknown, 01", func(l *Lab) error { return deliverChunk(l, l.Tag, []byte{0x7e, 0, 0, 4}) }},
	{"unknown, 10", func(l *Lab) error { return deliverChunk(l, l.Tag, []byte{0xbe, 0, 0, 4}) }},
	{"unknown, 11", func(l *Lab) error { return deliverChunk(l, l.Tag, []byte{0xfe, 0, 0, 4}) }},
	{"wrong tag", func(l *Lab) error { return deliverChunk(l, ^l.Tag, wire.AppendAbort(nil, false)) }},
	{"ICMP, no SCTP", func(l *Lab) error {
		l.Now = l.Now.Add(2 * time.Second) // nothing was heard for so long
		tag, chunk := l.A.PeerTag(), l.Data("x")
		if l.A.State() == assoc.CookieWait {
			tag, chunk = 0, InitChunk(l.Tag, 1)
		}
		l.DeliverPacket(rawio.Packet{Kind: rawio.KindProtoUnreachable, Data: Packet(PortB, PortA, tag, chunk),
			Remote: l.Peer})
		return nil
	}},
	{"Send", func(l *Lab) error { return l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("x")}}) }},
	{"Shutdown", func(l *Lab) error { return l.A.Shutdown(l.Now) }},
	{"Abort", func(l *Lab) error { l.A.Abort(l.Now, nil); return nil }},
	{"AbortForMemory", func(l *Lab) error { l.A.AbortForMemory(2, 1); return nil }},
	{"Break", func(l *Lab) error { l.A.Break(new(assoc.InternalError)); return nil }},
	{"RequestHeartbeat", func(l *Lab) error { return l.A.RequestHeartbeat(l.Now, l.Peer.Addr()) }},
	{"T1, T2 or T3-rtx", func(l *Lab) error { return passTime(l, time.Second) }},
	{"T5-shutdown-guard", func(l *Lab) error { return passTime(l, 5*time.Minute) }},
	{"an hour of silence", func(l *Lab) error { l.Wait(time.Hour); return nil }},
	{"COOKIE ECHO, A", func(l *Lab) error { return giveBack(l, "a restart") }},
	{"COOKIE ECHO, B", func(l *Lab) error { return giveBack(l, "a collision in COOKIE-WAIT") }},
	{"COOKIE ECHO, C", func(l *Lab) error { return giveBack(l, "a call before") }},
	{"COOKIE ECHO, D", func(l *Lab) error { return giveBack(l, "a collision in COOKIE-ECHOED, with the same tag") }},
	{"COOKIE ECHO, expired", func(l *Lab) error {
		l.Now = l.Now.Add(61 * time.Second)
		return giveBack(l, "a collision in COOKIE-WAIT")
	}},
	{"COOKIE ECHO, forged", func(l *Lab) error { return deliverChunk(l, l.Tag, wire.AppendCookieEcho(nil, make([]byte, 108))) }},
}

func deliverChunk(l *Lab, tag uint32, chunk []byte) error {
	l.Deliver(l.Peer, Packet(PortA, PortB, tag, chunk))
	return nil
}

var errNone = errors.New("none")

func giveBack(l *Lab, name string) error {
	if !l.RestoreCookie(name) {
		return errNone
	}
	return nil
}

func passTime(l *Lab, d time.Duration) error {
	l.Now = l.Now.Add(d)
	l.A.HandleTimeout(l.Now)
	return nil
}

// HappensIn says what it does in a state: what is sent, the error of a call, and where it leads.
func (b *Event) HappensIn(t testing.TB, state assoc.State) string {
	defer invariant.TolerateInTest()()
	from := state
	if state == assoc.Closed {
		from = assoc.Established
	}
	l := Collector(t, from)
	if state == assoc.Closed {
		l.A.Abort(l.Now, nil)
		l.Flush()
	}
	a := l.A
	must.Equal(t, "state", a.State(), state)
	before := numDropped(a)
	err := b.happen(l)
	if err == errNone {
		return "cannot be"
	}
	says := Describe(l.Flush())
	switch {
	case errors.Is(err, assoc.ErrNotUp):
		says += "ErrNotUp"
	case errors.Is(err, assoc.ErrClosing):
		says += "ErrClosing"
	case says != "" || a.State() != state:
	case numDropped(a) != before || state == assoc.Closed:
		says = "ignored"
	default:
		says = "taken"
	}
	if a.State() == assoc.Closed && state != assoc.Closed {
		var list []string
		down, _ := l.Host.DownErr()
		for _, end := range Endings(t) {
			if end.Match(down) {
				list = append(list, end.Doc)
			}
		}
		check.That(t, len(list) == 1, "%v ends by %v, which the list of ends has as %q", state, down, list)
	}
	if a.State() != state {
		says = strings.TrimSpace(fmt.Sprintf("%s > %v", says, a.State()))
	}
	return says
}

// numDropped counts what an association has not taken.
func numDropped(a *assoc.Assoc) (n uint64) {
	counters.Each(a.Stats().Counters, func(name string, v uint64) {
		switch name {
		case "Unexpected", "Malformed", "WrongTag", "BadCookies", "BadHeartbeatAcks", "ForeignSource", "OutOfWindow",
			"UnknownChunks":
			n += v
		}
	})
	return n
}
