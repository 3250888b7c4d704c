package sctp_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/sctp"
)

// readAll reads the messages of a stream up to its end.
func readAll(t *testing.T, s *sctp.Stream) (list []string) {
	t.Helper()
	for buf := make([]byte, 100_000); ; {
		n, err := s.Read(buf)
		if err == io.EOF {
			return list
		}
		ok(t, err)
		list = append(list, string(buf[:min(n, 10)]))
	}
}

func TestCloseOfAStream(t *testing.T) { inBubble(testCloseOfAStream)(t) }

func testCloseOfAStream(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	for i := range 3 {
		_, err := a.Write(fmt.Appendf(nil, "message %d", i))
		ok(t, err)
	}
	ok(t, a.Close())
	ok(t, a.Close())
	want(t, "state", a.State(), sctp.StreamStateClosing)
	_, err := a.Write([]byte("x"))
	wantErr(t, "a write behind Close", err, sctp.ErrStreamClosed)
	if got := readAll(t, b); !slices.Equal(got, []string{"message 0", "message 1", "message 2"}) {
		t.Errorf("the peer reads %q", got)
	}
	want(t, "state of the peer", b.State(), sctp.StreamStateOpen)
	_, err = b.Write([]byte("last"))
	ok(t, err)
	n, err := a.Read(make([]byte, 10)) // the other direction goes on
	ok(t, err)
	want(t, "octets", n, 4)
	ok(t, b.Close())
	want(t, "state of the peer", b.State(), sctp.StreamStateClosed)
	want(t, "messages behind that", len(readAll(t, a)), 0)
	want(t, "state", a.State(), sctp.StreamStateClosed)
	time.Sleep(soon)
	want(t, "buffered", a.BufferedAmount(), 0)
}

func TestStateWithoutReading(t *testing.T) { inBubble(testStateWithoutReading)(t) }

func testStateWithoutReading(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	ok(t, a.Close())
	time.Sleep(soon)
	ok(t, b.Close())
	want(t, "state of the second", b.State(), sctp.StreamStateClosed)
	time.Sleep(soon)
	want(t, "state of the first", a.State(), sctp.StreamStateClosed)
}

// A number is free again once both sides have closed its stream.
func TestNumbersOfStreamsAreUsedAgain(t *testing.T) { inBubble(testNumbersAreUsedAgain)(t) }

func testNumbersAreUsedAgain(t *testing.T) {
	e := open(t)
	var last *sctp.Stream
	for life := range 5 {
		a, err := e.assoc[life%2].OpenStream(7, 53)
		ok(t, err)
		want(t, "a stream of its own", a == last, false)
		last = a
		text := fmt.Sprint("life ", life)
		_, err = a.Write([]byte(text))
		ok(t, err)
		b, err := e.assoc[1-life%2].AcceptStream()
		ok(t, err)
		want(t, "number", b.StreamIdentifier(), 7)
		want(t, "state", b.State(), sctp.StreamStateOpen)
		ok(t, a.Close())
		if got := readAll(t, b); !slices.Equal(got, []string{text}) {
			t.Errorf("read %q, want %q", got, text)
		}
		ok(t, b.Close())
		want(t, "messages back", len(readAll(t, a)), 0)
		synctest.Wait()
		time.Sleep(time.Second)
	}
}

// What is written to a number that is opened again waits for its reset, which waits for another
// one.
func TestWritesToANumberThatWaitsForItsReset(t *testing.T) { inBubble(testWritesToANumber)(t) }

func testWritesToANumber(t *testing.T) {
	const reconfig = 130
	e := open(t)
	other, _ := e.stream(t, 1)
	a, b := e.stream(t, 7)
	ok(t, b.Close())
	want(t, "messages", len(readAll(t, a)), 0)
	e.conns[1].loseSome(func(p []byte) bool { return p[12] == reconfig || p[12] == 3 })
	ok(t, other.Close())
	_, err := a.Write([]byte("before"))
	ok(t, err)
	ok(t, a.Close())
	again, err := e.assoc[0].OpenStream(7, 53)
	ok(t, err)
	want(t, "another stream", again != a, true)
	_, err = again.Write([]byte("behind"))
	ok(t, err)
	time.Sleep(time.Second / 2)
	e.conns[1].loseSome(func([]byte) bool { return false })
	if got := readAll(t, b); !slices.Equal(got, []string{"before"}) {
		t.Errorf("the peer reads %q of the stream that is closed", got)
	}
	next, err := e.assoc[1].AcceptStream()
	ok(t, err)
	want(t, "number", next.StreamIdentifier(), 7)
	buf := make([]byte, 10)
	n, err := next.Read(buf)
	ok(t, err)
	want(t, "message", string(buf[:n]), "behind")
}

// A write that waits for room ends when its stream is closed.
func TestCloseEndsAWriteThatWaits(t *testing.T) { inBubble(testCloseEndsAWrite)(t) }

func testCloseEndsAWrite(t *testing.T) {
	e := open(t, sctp.WithBlockWrite(true))
	a, _ := e.stream(t, 1)
	e.conns[0].loseSome(func([]byte) bool { return true })
	ended := make(chan error)
	go func() {
		for {
			if _, err := a.Write(make([]byte, 10_000)); err != nil {
				ended <- err
				return
			}
		}
	}()
	synctest.Wait()
	ok(t, a.Close())
	wantErr(t, "the write", <-ended, sctp.ErrStreamClosed)
}

// Streams that are closed together are all reset, and others are not.
func TestManyStreamsAreClosed(t *testing.T) { inBubble(testManyStreamsAreClosed)(t) }

func testManyStreamsAreClosed(t *testing.T) {
	const streams = 400
	e := open(t)
	open, openIn := e.stream(t, 1000)
	var list, in []*sctp.Stream
	for id := range uint16(streams) {
		a, b := e.stream(t, id)
		list, in = append(list, a), append(in, b)
	}
	for _, s := range list {
		ok(t, s.Close())
	}
	for _, s := range in {
		want(t, "messages", len(readAll(t, s)), 0)
		ok(t, s.Close())
	}
	for _, s := range list {
		want(t, "messages", len(readAll(t, s)), 0)
	}
	_, err := open.Write([]byte("open"))
	ok(t, err)
	n, err := openIn.Read(make([]byte, 10))
	ok(t, err)
	want(t, "octets", n, 4)
}

// What was written before Close arrives, however many packets are lost, and the end behind it.
func TestCloseBehindLostPackets(t *testing.T) { inBubble(testCloseBehindLosses)(t) }

func testCloseBehindLosses(t *testing.T) {
	e := open(t, sctp.WithRTOMax(500))
	a, b := e.stream(t, 1)
	for _, c := range e.conns {
		n := 0
		c.loseSome(func([]byte) bool { n++; return n%4 == 0 })
	}
	for range 20 {
		_, err := a.Write(make([]byte, 5000))
		ok(t, err)
	}
	ok(t, a.Close())
	want(t, "messages", len(readAll(t, b)), 20)
	ok(t, b.Close())
	want(t, "messages back", len(readAll(t, a)), 0)
	want(t, "state", a.State(), sctp.StreamStateClosed)
}

// A message that the receive window does not hold comes in pieces, and is read as one. So it is by
// a buffer that is too short at first, and after deadlines.
func TestMessageLongerThanTheWindow(t *testing.T) { inBubble(testMessageLongerThanTheWindow)(t) }

func testMessageLongerThanTheWindow(t *testing.T) {
	e := open(t, sctp.WithMaxReceiveBufferSize(200_000), sctp.WithMaxMessageSize(1_000_000))
	a, b := e.stream(t, 1)
	long := bytes.Repeat([]byte("0123456789"), 50_000)
	go func() {
		time.Sleep(time.Second)
		a.WriteSCTP(long, 51)
		a.WriteSCTP([]byte("next"), 53)
	}()
	ok(t, b.SetReadDeadline(time.Now().Add(time.Second)))
	for range 2 {
		_, err := b.Read(make([]byte, 1000))
		wantErr(t, "before it comes", err, sctp.ErrReadDeadlineExceeded)
	}
	ok(t, b.SetReadDeadline(time.Time{}))
	n, _, err := b.ReadSCTP(make([]byte, 1000))
	want(t, "a short buffer", err, io.ErrShortBuffer)
	want(t, "octets", n, len(long))
	buf := make([]byte, len(long))
	n, ppi, err := b.ReadSCTP(buf)
	ok(t, err)
	want(t, "octets", n, len(long))
	want(t, "type", ppi, 51)
	want(t, "the message", bytes.Equal(buf, long), true)
	n, ppi, err = b.ReadSCTP(buf)
	ok(t, err)
	want(t, "octets of the next", n, 4)
	want(t, "type of the next", ppi, 53)
}
