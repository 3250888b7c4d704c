package sctptest

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Signed is a cookie of the association that the script has kept.
type Signed struct {
	Name        string
	Local, Peer uint32 // the tags in it
	Ties        bool   // it has the tie-tags of the association's first life
	Cookie      []byte
}

// Collector connects, keeps a cookie that was signed in each state that signs one, and goes on
// until the association is in state.
func Collector(t testing.TB, state assoc.State) *Lab {
	t.Helper()
	l := NewLab(t)
	l.Listen(nil)
	first := l.PeerTag
	keep := func(name string, peer uint32, ties bool) {
		own, tsn := l.Tag, l.HostTSN
		l.PeerTag = peer
		l.Initiate()
		l.Kept = append(l.Kept, Signed{name, l.Tag, peer, ties, l.Cookie})
		l.PeerTag, l.Tag, l.HostTSN = first, own, tsn
	}
	keep("a call before, with the tag of later", first, false)
	keep("a call before", 0x50505050, false)
	l.Connect(nil)
	keep("a collision in COOKIE-WAIT", 0x60606060, false)
	if state == assoc.CookieWait {
		return l
	}
	l.Send(l.Tag, InitAckChunk(l.PeerTag, l.TSN, []byte("theirs")))
	keep("a collision in COOKIE-ECHOED, with the same tag", first, true)
	keep("a collision in COOKIE-ECHOED", 0x70707070, true)
	if state == assoc.CookieEchoed {
		return l
	}
	l.Send(l.Tag, wire.AppendCookieAck(nil))
	keep("a restart", 0x80808080, true)
	keep("a restart with the same tag", first, true)
	if state == assoc.Established || state == assoc.ShutdownPending || state == assoc.ShutdownReceived {
		m := assoc.Message{Body: [2][]byte{[]byte("keeps the shutdown waiting")}}
		must.OK(t, l.A.Send(l.Now, &m))
		l.Flush()
	}
	switch state {
	case assoc.ShutdownPending, assoc.ShutdownSent:
		must.OK(t, l.A.Shutdown(l.Now))
		l.Flush()
	case assoc.ShutdownReceived, assoc.ShutdownAckSent:
		l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1))
	}
	return l
}

// RestoreCookie returns the cookie of that name, and says whether there is one.
func (l *Lab) RestoreCookie(name string) bool {
	for _, c := range l.Kept {
		if c.Name == name {
			l.Deliver(l.Peer, Packet(PortA, PortB, c.Local, wire.AppendCookieEcho(nil, c.Cookie)))
			return true
		}
	}
	return false
}
