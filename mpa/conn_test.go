package mpa

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

func TestGracefulEnd(t *testing.T) {
	for _, peerFirst := range []bool{false, true} {
		// req 5044-7.2-1, 5044-7.2-2, 5044-8-1
		a, b := pair(t, Config{}, Config{})
		a.say("last")
		a.ds.CloseSend()
		exchange(a, b)
		check.That(t, a.fin && a.State() == Closing && b.State() == PeerClosed, "states %v, %v", a.State(), b.State())
		check.Equal(t, "the peer's user", b.heard(), `untagged "last", peer closed`)
		// The other half lives on.
		b.say("still here")
		exchange(a, b)
		check.Equal(t, "the user", a.heard(), `completed 7, untagged "still here"`)
		if peerFirst { // the FIN of one end arrives before its own has left
			b.ds.CloseSend()
			b.take()
			a.peerFin()
		} else {
			b.ds.CloseSend()
			exchange(a, b)
		}
		check.That(t, a.State() == Ended && b.State() == Ended && a.Err() == nil && b.Err() == nil,
			"states %v, %v: %v, %v",
			a.State(), b.State(), a.Err(), b.Err())
		check.That(t, a.takeEvents() == "ended" && b.takeEvents() == "ended", "events")
		act, _ := a.Next(0, MaxBatch)
		check.That(t, act == ActNone && !a.HasOutput() && a.Deadline() == rawio.Never, "it goes on")
	}
}

// The FIN follows what there is to write, and no sooner than all of it.
func TestFinFollowsTheData(t *testing.T) {
	a, b := pair(t, Config{}, Config{})
	a.write(b, 0, patternOf(1000))
	act, pieces := a.Next(0, MaxBatch)
	must.Equal(t, "action", act, ActWrite)
	a.ds.CloseSend()
	b.feed(bytes.Join(pieces, nil)[:100])
	a.Written(0, 100)
	act, pieces = a.Next(0, MaxBatch)
	must.Equal(t, "action in the middle", act, ActWrite)
	b.feed(bytes.Join(pieces, nil))
	a.Written(0, len(bytes.Join(pieces, nil)))
	act, _ = a.Next(0, MaxBatch)
	check.Equal(t, "action behind all", act, ActFinish)
	a.Finished(0)
	b.peerFin()
	check.Equal(t, "the peer's user", b.heard(), "tagged 0+1000, peer closed")
}

func TestInvalidFPDUEndsReceptionAlone(t *testing.T) {
	var list [][]byte
	for msn := range uint32(20) {
		list = append(list, segment(msn+1, "forty octets, so that Markers are within"))
	}
	marked, ends := withMarkers(list...)
	var plain []byte
	for _, u := range list {
		plain = append(plain, fpdu(u)...)
	}
	for _, row := range []struct {
		name   string
		cfg    Config
		stream []byte
		at     int // the octet that is wrong
		good   int // messages before it
		code   uint8
	}{
		{"CRC", Config{}, plain, 4*len(fpdu(list[0])) + 30, 4, CodeCRC},
		{"Marker", Config{Markers: true, NoCRC: true}, marked, 515, 7, CodeMarker},
	} {
		t.Run(row.name, func(t *testing.T) {
			must.That(t, row.code == CodeCRC || ends[row.good-1] < row.at && row.at < ends[row.good], "ends %v", ends)
			a, b := pair(t, Config{NoCRC: row.cfg.NoCRC}, row.cfg)
			b.u.onFatal = func() { b.say("that was wrong") } // DDP's user has a last message
			stream := bytes.Clone(row.stream)
			stream[row.at] ^= 4
			b.feed(stream)
			// req 5044-8-5, 5044-8-12: DDP has the code, and nothing that came behind it.
			var e *Error
			must.That(t, errors.As(b.u.fault, &e) && e.Code == row.code && errors.Is(e, syscall.ECONNRESET),
				"fault %v", b.u.fault)
			check.That(t, b.u.fault.Code == row.code && len(b.u.log) == row.good+1, "the user was told %q", b.u.log)
			b.heard()
			b.feed(row.stream)
			check.Equal(t, "what came later", b.heard(), "")
			// req 5044-8-13, 5044-8-14: TCP is open, and the other half works.
			check.That(t, b.State() == Open && !b.fin && b.takeEvents() == "", "state %v", b.State())
			a.say("the first FPDU of the initiator")
			a.take()
			a.feed(b.take())
			check.Equal(t, "the peer's user", a.heard(), `completed 7, untagged "that was wrong"`)
			// DDP's user closes behind it, and the peer may not hold the connection for ever.
			b.ds.CloseSend()
			b.take()
			check.That(t, b.fin && b.Deadline() == b.now.Add(defaultLinger), "deadline %v", b.Deadline())
			b.HandleTimeout(b.now.Add(defaultLinger - 1))
			check.Equal(t, "state", b.State(), Closing)
			b.HandleTimeout(b.now.Add(defaultLinger))
			check.That(t, b.State() == Ended && b.Err() == ErrLingerTimeout, "state %v, %v", b.State(), b.Err())
		})
	}
}

// A peer that was told of an error and does not read, or whose very first FPDU was wrong, so that
// nothing may be said, holds the connection for a time only.
func TestErrorThatThePeerCannotBeToldOf(t *testing.T) {
	a, b := initiator(t, Config{}, nil, ""), responder(t, Config{})
	b.feed(a.take())
	must.OK(t, b.Accept(b.ds, nil, nil))
	b.take()
	b.u.onFatal = func() { b.say("that was wrong") }
	bad := fpdu(segment(1, "x"))
	bad[5] ^= 1
	b.feed(bad)
	check.That(t, len(b.take()) == 0 && b.Deadline() == b.now.Add(defaultLinger), "deadline %v", b.Deadline())
	_, b = pair(t, Config{}, Config{})
	b.write(b, 0, patternOf(5000))
	b.fenced = false
	b.Next(0, MaxBatch)  // and TCP takes nothing
	b.ds.Fail(0, 0, nil) // DDP's user has found something
	b.Receive(b.now, fpdu(segment(1, "x")))
	check.Equal(t, "deadline", b.Deadline(), b.now.Add(defaultLinger))
	b.HandleTimeout(b.Deadline())
	check.Equal(t, "state", b.State(), Ended)
}

// A fault that DDP itself finds lets the peer close, but not for ever.
func TestPeerThatDoesNotCloseAfterAFault(t *testing.T) {
	for _, closes := range []bool{false, true} {
		_, b := pair(t, Config{LingerTimeout: time.Second}, Config{LingerTimeout: time.Second})
		b.u.onFatal = func() {
			b.say("bad segment")
			b.ds.CloseSend()
		}
		b.feed(fpdu([]byte{0})) // a DDP version that does not exist
		b.take()
		must.That(t, b.fin && b.Deadline() == b.now.Add(time.Second), "deadline %v", b.Deadline())
		b.feed(fpdu(segment(1, "more of the peer"))) // it is read, and nobody hears of it
		check.Equal(t, "the user", b.heard(), "fatal 2/6, completed 7")
		if closes {
			b.peerFin()
			check.That(t, b.State() == Ended && b.Err() == nil, "state %v, %v", b.State(), b.Err())
		} else {
			b.HandleTimeout(b.now.Add(time.Second))
			check.That(t, b.State() == Ended && b.Err() == ErrLingerTimeout, "state %v, %v", b.State(), b.Err())
		}
	}
}

// Each way in which a connection can end has an error that no other has.
func TestEveryEndHasAnErrorOfItsOwn(t *testing.T) {
	reset := errors.New("connection reset by peer")
	lost := func(cause error) func(error) bool {
		return func(err error) bool {
			var e *Error
			return errors.As(err, &e) && e.Code == CodeLost && errors.Is(err, cause)
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return err == want } }
	ends := []struct {
		name  string
		match func(error) bool
		drive func(a, b *end)
	}{
		{"both sides are done", is(nil), func(a, b *end) { a.ds.CloseSend(); b.ds.CloseSend(); exchange(a, b) }},
		// req 5044-8-1
		{"TCP has lost it", lost(reset), func(a, b *end) { b.Lost(reset) }},
		{"FIN in the middle of an FPDU", lost(ErrTruncated), func(a, b *end) { b.feed(fpdu(segment(1, "x"))[:9]); b.peerFin() }},
		{"the peer does not close after an error", is(ErrLingerTimeout), func(a, b *end) {
			b.u.onFatal = b.ds.CloseSend
			bad := fpdu(segment(1, "x"))
			bad[4]++
			b.feed(bad)
			b.take()
			b.HandleTimeout(b.Deadline())
		}},
	}
	for i, end := range ends {
		t.Run(end.name, func(t *testing.T) {
			a, b := pair(t, Config{}, Config{})
			end.drive(a, b)
			must.Equal(t, "state", b.State(), Ended)
			for j, other := range ends {
				check.That(t, other.match(b.Err()) == (i == j), "%v taken for %q", b.Err(), other.name)
			}
		})
	}
	a, b := pair(t, Config{}, Config{})
	a.say("x")
	a.Abort()
	check.That(t, a.State() == Ended && a.Err() == nil && a.heard() == "failed 7" && a.takeEvents() == "ended",
		"Abort: state %v, %v", a.State(), a.Err())
	a.Abort()
	a.Lost(io.EOF)
	a.peerFin()
	a.feed(fpdu(segment(1, "x")))
	a.ds.CloseSend()
	check.That(t, a.takeEvents() == "" && a.heard() == "" && len(a.take()) == 0, "something happens after the end")
	b.ds.Abort() // as DDP's user asks for it
	check.That(t, b.State() == Ended && b.heard() == "" && b.takeEvents() == "ended", "state %v", b.State())
}

// A FIN before the connection is set up ends it, whatever has come.
func TestFinDuringTheStartup(t *testing.T) {
	for _, row := range []struct {
		name string
		e    *end
		in   string
		want error
	}{
		{"no Request", responder(t, Config{}), "", ErrClosedEarly},
		{"a part of a Request", responder(t, Config{}), requestKey, ErrTruncated},
		{"a Request that was not answered", responder(t, Config{}), string(request("hi")), ErrClosedEarly},
		{"no Reply", initiator(t, Config{}, nil, ""), "", ErrClosedEarly},
		{"a part of a Reply", initiator(t, Config{}, nil, ""), replyKey + "\x40", ErrTruncated},
	} {
		row.e.feed([]byte(row.in))
		row.e.peerFin()
		check.That(t, row.e.State() == Ended && errors.Is(row.e.Err(), row.want), "%s: state %v, %v", row.name,
			row.e.State(),
			row.e.Err())
	}
}

// What DDP's user does from within a delivery holds for what came with it.
func TestEndFromWithinADelivery(t *testing.T) {
	a, b := pair(t, Config{}, Config{})
	b.u.onMsg = func() { b.Abort() }
	for range 3 {
		a.say("x")
	}
	b.feed(a.take())
	check.That(t, b.State() == Ended && b.heard() == `untagged "x"`, "state %v", b.State())
}

// What this package contradicts itself about ends the connection, and says so.
func TestContradictionsEndTheConnection(t *testing.T) {
	_, b := pair(t, Config{}, Config{})
	err := &InternalError{Where: "a test"}
	b.Break(err)
	check.That(t, b.State() == Ended && b.Err() == error(err) && errors.Is(b.Err(), syscall.ENOTRECOVERABLE), "%v",
		b.Err())
	_, b = pair(t, Config{}, Config{})
	restore := invariant.TolerateInTest()
	ok := b.changeState(onRequested)
	restore()
	var got *InternalError
	check.That(t, !ok && errors.As(b.Err(), &got) && got.Where == "mpa.Conn.changeState", "%v", b.Err())
}

// Octets that nobody listens to are taken, so that the FIN behind them is seen.
func TestOctetsBehindTheEndOfAHalfAreDropped(t *testing.T) {
	a, b := pair(t, Config{}, Config{})
	a.ds.CloseSend()
	exchange(a, b)
	used := b.Receive(0, fpdu(segment(1, "from beyond")))
	check.That(t, used == len(fpdu(segment(1, "from beyond"))) && b.heard() == "peer closed" && b.State() == PeerClosed,
		"%d octets, state %v", used, b.State())
}

// What a responder has to send while it waits for the first FPDU is lost if the peer closes its
// half instead: it would wait for ever.
func TestFinInPlaceOfTheFirstFPDU(t *testing.T) {
	_, b := pair(t, Config{}, Config{})
	b.say("never")
	b.peerFin()
	check.That(t, b.State() == Ended && errors.Is(b.Err(), ErrClosedEarly), "state %v, %v", b.State(), b.Err())
	check.Equal(t, "its user", b.heard(), "fatal 3/0, failed 7")
}
