package endpoint_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/endpointtest"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

func newListening(t *testing.T) *endpointtest.Bench {
	b := endpointtest.New(t, endpoint.Config{})
	must.OK(t, b.EP.Listen(localPort, nil))
	return b
}

// "A new Verification Tag value MUST be used each time the endpoint tears down and then
// reestablishes an association to the same peer" (section 5.3.1): a peer that has never got the
// COOKIE ACK sends its COOKIE ECHO again, after the association has been given up here, and packets
// of that are still under way.
func TestCookieMakesOneAssociation(t *testing.T) {
	b := newListening(t)
	tag, cookie := b.CookieOf(goodInit)
	a, _ := b.Echo(tag, cookie)
	must.That(t, a != nil, "no association")
	b.EP.Refresh(a) // as on EventUp
	again, _ := b.Echo(tag, cookie)
	// req 9260-5.2.4-13
	check.That(t, again == a && a.State() == assoc.Established, "the COOKIE ECHO does not reach its association twice")
	b.EP.Remove(0, a)
	for _, after := range []time.Duration{0, 59 * time.Second, time.Second} { // to the end of the cookie's life
		b.Now = b.Now.Add(after)
		late, outOfBlue := b.Echo(tag, cookie) // req 9260-5.3.1-2, 9260-8.4-11
		check.That(t, late == nil && outOfBlue && b.EP.Len() == 0,
			"after %v more: association %v, out of the blue %v", after, late != nil, outOfBlue)
	}
	other, cookie := b.CookieOf(goodInit)
	a, _ = b.Echo(other, cookie)
	check.That(t, a != nil && other != tag, "the peer, with tag %#x after %#x, cannot set up another association",
		other, tag)
}

// A cookie that has made an association makes no other when so many have ended since that its tag
// had to be forgotten, at its own hour or earlier. A peer whose handshake began since gets in at
// once, and one that is so late by a cookie that it asks for anew (section 5.2.6).
func TestCookieMakesOneAssociationWhateverEndsSince(t *testing.T) {
	race.Alone(t)
	b := newListening(t)
	early, unused := b.CookieOf(goodInit) // of a handshake that has not ended
	b.Now = b.Now.Add(time.Second)
	tag, cookie := b.CookieOf(goodInit)
	a, _ := b.Echo(tag, cookie)
	must.That(t, a != nil, "no association")
	b.EP.Remove(0, a)
	flood := netip.MustParseAddrPort("10.0.0.10:0")
	for i := range 1 << 16 {
		b.Now = b.Now.Add(100 * time.Microsecond)
		a := b.Establish(flood, uint16(i|1))
		must.That(t, a != nil, "association %d is refused", i)
		b.EP.Remove(0, a)
	}
	for _, row := range []struct {
		name   string
		tag    uint32
		cookie []byte
	}{{"a cookie that has made one", tag, cookie}, {"an older one", early, unused}} {
		// req 9260-5.3.1-2
		list, a := b.Receive(sctptest.Packet(peerPort, localPort, row.tag, wire.AppendCookieEcho(nil, row.cookie)))
		must.That(t, a == nil && len(list) == 1, "%s: association %v, %d answers", row.name, a != nil, len(list))
		_, c := endpointtest.Only(t, list)
		e, err := wire.AsError(c)
		check.That(t, err == nil && string(e) == "\x09\x00\x00\x0c\x00\x03\x00\x08\x00\x00\x00\x00",
			"%s is answered by %x, want an ERROR: stale by 0", row.name, []byte(c))
	}
	check.Equal(t, "cookies that came too late", b.EP.Stats().StaleCookies, 2)
	check.That(t, b.Establish(peerAddr, peerPort) != nil, "the peer does not get in with another cookie")
	check.That(t, b.EP.Held() < 8<<20, "%d octets are held for tags", b.EP.Held())
}

// The cookie for an INIT that crosses an own one has the tag of the own one (section 5.2.1). It may
// come when that association has been given up.
func TestCookieOfACollisionMakesNoAssociation(t *testing.T) {
	b := newListening(t)
	a := b.Connect(localPort, peerAddr)
	b.Receive(sctptest.Packet(peerPort, localPort, 0, sctptest.InitLike(wire.ChunkInit, goodInit)))
	tag, cookie := b.CookieIn(b.Poll(a.PollTransmit))
	must.That(t, tag == a.LocalTag() && cookie != nil, "tag %#x, cookie %x", tag, cookie) // req 9260-5.2.1-1
	b.EP.Remove(0, a)
	late, outOfBlue := b.Echo(tag, cookie) // req 9260-5.3.1-2
	check.That(t, late == nil && outOfBlue, "association %v, out of the blue %v", late != nil, outOfBlue)
}

// An association whose peer has restarted has had two tags, and neither comes back.
func TestNoTagOfARestartedAssociationComesBack(t *testing.T) {
	b := newListening(t)
	first, cookie := b.CookieOf(goodInit)
	a, _ := b.Echo(first, cookie)
	anew := goodInit
	anew.Tag++
	b.Receive(sctptest.Packet(peerPort, localPort, 0, sctptest.InitLike(wire.ChunkInit, anew)))
	second, other := b.CookieIn(b.Poll(a.PollTransmit))
	again, _ := b.Echo(second, other)
	// req 9260-5.2.4-5
	must.That(t, again == a && a.LocalTag() == second && first != second, "no restart: tag %#x, %#x in the cookie",
		a.LocalTag(), second)
	// as on EventRestart
	b.EP.Refresh(a)
	b.EP.Remove(0, a)
	for tag, cookie := range map[uint32][]byte{first: cookie, second: other} {
		late, outOfBlue := b.Echo(tag, cookie) // req 9260-5.3.1-2
		check.That(t, late == nil && outOfBlue, "tag %#x: association %v, out of the blue %v", tag, late != nil,
			outOfBlue)
	}
}
