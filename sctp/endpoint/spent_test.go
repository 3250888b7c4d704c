package endpoint_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/internal/lab/bench"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

func listening(t *testing.T) *bench.Bench {
	b := bench.New(t, endpoint.Config{})
	must.OK(t, b.EP.Listen(localPort, nil))
	return b
}

// "A new Verification Tag value MUST be used each time the endpoint tears down and then reestablishes an association to the
// same peer" (section 5.3.1): a peer that has never got the COOKIE ACK sends its COOKIE ECHO again, after the association has
// been given up here, and packets of that are still under way.
func TestCookieMakesOneAssociation(t *testing.T) {
	b := listening(t)
	tag, cookie := b.CookieOf(goodInit)
	a, _ := b.Echo(tag, cookie)
	must.That(t, a != nil, "no association")
	b.EP.Refresh(a) // as on EventUp
	again, _ := b.Echo(tag, cookie)
	check.That(t, again == a && a.State() == assoc.Established, "the COOKIE ECHO does not reach its association twice") // req 9260-5.2.4-13
	b.EP.Remove(a)
	for _, after := range []time.Duration{0, 59 * time.Second, time.Second} { // to the end of the cookie's life
		b.Now = b.Now.Add(after)
		late, outOfBlue := b.Echo(tag, cookie) // req 9260-5.3.1-2, 9260-8.4-11
		check.That(t, late == nil && outOfBlue && b.EP.Len() == 0, "after %v more: association %v, out of the blue %v", after, late != nil, outOfBlue)
	}
	other, cookie := b.CookieOf(goodInit)
	a, _ = b.Echo(other, cookie)
	check.That(t, a != nil && other != tag, "the peer, with tag %#x after %#x, cannot set up another association", other, tag)
}

// The cookie for an INIT that crosses an own one has the tag of the own one (section 5.2.1). It may come when that association
// has been given up.
func TestCookieOfACollisionMakesNoAssociation(t *testing.T) {
	b := listening(t)
	a := b.Connect(localPort, peerAddr)
	b.Receive(lab.Packet(peerPort, localPort, 0, lab.InitLike(wire.ChunkInit, goodInit)))
	tag, cookie := b.CookieIn(b.Poll(a.PollTransmit))
	must.That(t, tag == a.LocalTag() && cookie != nil, "tag %#x, cookie %x", tag, cookie) // req 9260-5.2.1-1
	b.EP.Remove(a)
	late, outOfBlue := b.Echo(tag, cookie) // req 9260-5.3.1-2
	check.That(t, late == nil && outOfBlue, "association %v, out of the blue %v", late != nil, outOfBlue)
}

// An association whose peer has restarted has had two tags, and neither comes back.
func TestNoTagOfARestartedAssociationComesBack(t *testing.T) {
	b := listening(t)
	first, cookie := b.CookieOf(goodInit)
	a, _ := b.Echo(first, cookie)
	anew := goodInit
	anew.Tag++
	b.Receive(lab.Packet(peerPort, localPort, 0, lab.InitLike(wire.ChunkInit, anew)))
	second, other := b.CookieIn(b.Poll(a.PollTransmit))
	again, _ := b.Echo(second, other)
	must.That(t, again == a && a.LocalTag() == second && first != second, "no restart: tag %#x, %#x in the cookie", a.LocalTag(), second) // req 9260-5.2.4-5
	b.EP.Refresh(a)                                                                                                                       // as on EventRestart
	b.EP.Remove(a)
	for tag, cookie := range map[uint32][]byte{first: cookie, second: other} {
		late, outOfBlue := b.Echo(tag, cookie) // req 9260-5.3.1-2
		check.That(t, late == nil && outOfBlue, "tag %#x: association %v, out of the blue %v", tag, late != nil, outOfBlue)
	}
}
