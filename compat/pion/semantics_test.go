package sctp_test

// What the original does, row by row. test/compat.sh runs this file against the original too: a row
// that fails there is wrong.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/sctp"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func wantErr(t *testing.T, what string, err error, is ...error) {
	t.Helper()
	for _, target := range is {
		if !errors.Is(err, target) {
			t.Errorf("%s: %v, want %v", what, err, target)
		}
	}
}

// ends are both ends of an association.
type ends struct {
	conns [2]*pipeConn
	assoc [2]*sctp.Association
}

// open opens an association from both ends, each with these options.
func open(t *testing.T, opts ...sctp.ClientOption) *ends {
	t.Helper()
	return openEach(t, opts, opts)
}

// openEach opens one with options for each end.
func openEach(t *testing.T, opts ...[]sctp.ClientOption) *ends {
	t.Helper()
	e := new(ends)
	e.conns[0], e.conns[1] = newPipe()
	var all sync.WaitGroup
	for i := range e.assoc {
		all.Go(func() {
			a, err := sctp.ClientWithOptions(append(slices.Clip(opts[i]), sctp.WithNetConn(e.conns[i]))...)
			if err != nil {
				t.Error(err)
				return
			}
			e.assoc[i] = a
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, a := range e.assoc {
			a.Close()
		}
	})
	return e
}

// stream opens a stream at the first end and accepts it at the other, by a message.
func (e *ends) stream(t *testing.T, id uint16) (a, b *sctp.Stream) {
	t.Helper()
	a, err := e.assoc[0].OpenStream(id, sctp.PayloadTypeWebRTCBinary)
	ok(t, err)
	_, err = a.Write([]byte("begin"))
	ok(t, err)
	b, err = e.assoc[1].AcceptStream()
	ok(t, err)
	_, err = b.Read(make([]byte, 10))
	ok(t, err)
	return a, b
}

// inBubble has a test run in virtual time.
func inBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

const soon = 5 * time.Second // of virtual time; by then everything has happened

// returns waits for a call to return.
func returns(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(soon):
		t.Fatalf("%s does not return", what)
	}
}

func TestEitherEndMayBeFirst(t *testing.T) {
	for name, first := range map[string]int{"one": 0, "the other": 1} {
		t.Run(name, inBubble(func(t *testing.T) {
			a, b := newPipe()
			conns := []net.Conn{a, b}
			opened := make(chan *sctp.Association, 2)
			for _, i := range []int{first, 1 - first} {
				go func() {
					c, err := sctp.Client(sctp.Config{NetConn: conns[i]})
					if err != nil {
						t.Error(err)
					}
					opened <- c
				}()
				time.Sleep(50 * time.Millisecond)
			}
			for range 2 {
				select {
				case c := <-opened:
					defer c.Close()
				case <-time.After(soon):
					t.Fatal("not established")
				}
			}
		}))
	}
}

func TestServerWaitsForAClient(t *testing.T) { inBubble(testServerWaitsForAClient)(t) }

func testServerWaitsForAClient(t *testing.T) {
	a, b := newPipe()
	served := make(chan *sctp.Association)
	go func() {
		s, err := sctp.ServerWithOptions(sctp.WithNetConn(b), sctp.WithName("server"))
		if err != nil {
			t.Error(err)
		}
		served <- s
	}()
	synctest.Wait()
	c, err := sctp.Client(sctp.Config{NetConn: a})
	ok(t, err)
	defer c.Close()
	s := <-served
	defer s.Close()
	st, err := c.OpenStream(1, sctp.PayloadTypeWebRTCString)
	ok(t, err)
	_, err = st.Write([]byte("x"))
	ok(t, err)
	got, err := s.AcceptStream()
	ok(t, err)
	want(t, "stream", got.StreamIdentifier(), 1)
}

func TestMessagesAndTheirTypes(t *testing.T) { inBubble(testMessagesAndTheirTypes)(t) }

func testMessagesAndTheirTypes(t *testing.T) {
	e := open(t)
	a, err := e.assoc[0].OpenStream(7, sctp.PayloadTypeWebRTCBinary)
	ok(t, err)
	for _, row := range []struct {
		name string
		send func() (int, error)
		n    int
		ppi  sctp.PayloadProtocolIdentifier
	}{
		{"Write has the default type", func() (int, error) { return a.Write([]byte("one")) }, 3, 53},
		{"WriteSCTP has its own", func() (int, error) { return a.WriteSCTP([]byte("four"), 51) }, 4, 51},
		{"a type that nobody knows", func() (int, error) { return a.WriteSCTP([]byte("xx"), 4711) }, 2, 4711},
		{"a long message", func() (int, error) { return a.Write(make([]byte, 65536)) }, 65536, 53},
		{"another default type", func() (int, error) {
			a.SetDefaultPayloadType(sctp.PayloadTypeWebRTCString)
			return a.Write([]byte("x"))
		}, 1, 51},
	} {
		n, err := row.send()
		ok(t, err)
		want(t, row.name+": written", n, row.n)
	}
	n, err := a.Write(nil)
	ok(t, err)
	want(t, "an empty message", n, 0)
	b, err := e.assoc[1].AcceptStream()
	ok(t, err)
	want(t, "stream", b.StreamIdentifier(), 7)
	buf := make([]byte, 1<<17)
	for _, row := range []struct {
		n   int
		ppi sctp.PayloadProtocolIdentifier
	}{{3, 53}, {4, 51}, {2, 4711}, {65536, 53}, {1, 51}} {
		n, ppi, err := b.ReadSCTP(buf)
		ok(t, err)
		want(t, "read", n, row.n)
		want(t, "type", ppi, row.ppi)
	}
}

func TestTheSameStreamIsOpenedOnce(t *testing.T) { inBubble(testTheSameStreamIsOpenedOnce)(t) }

func testTheSameStreamIsOpenedOnce(t *testing.T) {
	e := open(t)
	a, err := e.assoc[0].OpenStream(3, 53)
	ok(t, err)
	again, err := e.assoc[0].OpenStream(3, 51)
	ok(t, err)
	want(t, "the same", a == again, true)
	ok(t, func() error { _, err := a.Write([]byte("x")); return err }())
	b, err := e.assoc[1].AcceptStream()
	ok(t, err)
	opened, err := e.assoc[1].OpenStream(3, 53)
	ok(t, err)
	want(t, "accepted and opened", b == opened, true)
	_, ppi, err := b.ReadSCTP(make([]byte, 1))
	ok(t, err)
	want(t, "the type is that of the last call", ppi, 51)
}

func TestBufferThatIsTooShort(t *testing.T) { inBubble(testBufferThatIsTooShort)(t) }

func testBufferThatIsTooShort(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	long := bytes.Repeat([]byte("0123456789"), 500)
	_, err := a.WriteSCTP(long, 51)
	ok(t, err)
	_, err = a.WriteSCTP([]byte("next"), 53)
	ok(t, err)
	for _, room := range []int{1, 100, 4999} {
		n, ppi, err := b.ReadSCTP(make([]byte, room))
		want(t, "error", err, io.ErrShortBuffer)
		want(t, "octets that are needed", n, len(long))
		want(t, "type", ppi, 0)
	}
	buf := make([]byte, 5000)
	n, ppi, err := b.ReadSCTP(buf)
	ok(t, err)
	want(t, "octets", n, 5000)
	want(t, "type", ppi, 51)
	want(t, "the message", bytes.Equal(buf, long), true)
	n, ppi, err = b.ReadSCTP(buf)
	ok(t, err)
	want(t, "octets of the next", n, 4)
	want(t, "its type", ppi, 53)
}

func TestLongestMessage(t *testing.T) { inBubble(testLongestMessage)(t) }

func testLongestMessage(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	want(t, "by default", e.assoc[0].MaxMessageSize(), 65536)
	n, err := a.Write(make([]byte, 65537))
	wantErr(t, "longer", err, sctp.ErrOutboundPacketTooLarge)
	want(t, "written", n, 0)
	e.assoc[0].SetMaxMessageSize(300_000)
	want(t, "as set", e.assoc[0].MaxMessageSize(), 300_000)
	_, err = a.Write(make([]byte, 300_000))
	ok(t, err)
	n, err = b.Read(make([]byte, 300_000))
	ok(t, err)
	want(t, "octets", n, 300_000)
	short := open(t, sctp.WithMaxMessageSize(10))
	s, _ := short.stream(t, 1)
	_, err = s.Write(make([]byte, 11))
	wantErr(t, "longer than the option says", err, sctp.ErrOutboundPacketTooLarge)
}

func TestReadDeadline(t *testing.T) { inBubble(testReadDeadline)(t) }

func testReadDeadline(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	began := time.Now()
	ok(t, b.SetReadDeadline(began.Add(50*time.Millisecond)))
	_, err := b.Read(make([]byte, 10))
	wantErr(t, "a read that waits", err, sctp.ErrReadDeadlineExceeded, os.ErrDeadlineExceeded)
	want(t, "it waits", time.Since(began) >= 50*time.Millisecond, true)
	_, err = b.Read(make([]byte, 10))
	wantErr(t, "the next", err, sctp.ErrReadDeadlineExceeded)
	_, err = a.Write([]byte("there"))
	ok(t, err)
	ok(t, b.SetReadDeadline(time.Time{}))
	n, err := b.Read(make([]byte, 10))
	ok(t, err)
	want(t, "octets without a deadline", n, 5)
	_, err = a.Write([]byte("there"))
	ok(t, err)
	time.Sleep(50 * time.Millisecond)
	ok(t, b.SetDeadline(time.Now().Add(-time.Second)))
	time.Sleep(10 * time.Millisecond)
	n, err = b.Read(make([]byte, 10))
	ok(t, err)
	want(t, "octets that are there, after the deadline", n, 5)
}

// Writes do not wait, however little leaves.
func TestWritesDoNotWait(t *testing.T) { inBubble(testWritesDoNotWait)(t) }

func testWritesDoNotWait(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	e.conns[0].block(true)
	const messages, each = 500, 60_000
	ok(t, a.SetWriteDeadline(time.Now().Add(-time.Second))) // which does not concern them
	returns(t, "a write", func() {
		for range messages {
			if _, err := a.Write(make([]byte, each)); err != nil {
				t.Error(err)
			}
		}
	})
	want(t, "all of it is buffered", e.assoc[0].BufferedAmount() >= (messages-2)*each, true)
	e.conns[0].block(false)
	buf := make([]byte, each)
	for range messages {
		_, err := b.Read(buf)
		ok(t, err)
	}
	time.Sleep(soon)
	want(t, "buffered when all has arrived", e.assoc[0].BufferedAmount(), 0)
}

// With the option they do, and end by their deadline, by the error of contexts.
func TestWritesThatWait(t *testing.T) { inBubble(testWritesThatWait)(t) }

func testWritesThatWait(t *testing.T) {
	e := open(t, sctp.WithBlockWrite(true))
	a, b := e.stream(t, 1)
	e.conns[0].block(true)
	ok(t, a.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	var err error
	returns(t, "a write", func() {
		for range 1000 {
			if _, err = a.Write(make([]byte, 60_000)); err != nil {
				return
			}
		}
	})
	want(t, "error", err, context.DeadlineExceeded)
	e.conns[0].block(false)
	ok(t, a.SetWriteDeadline(time.Time{}))
	go func() {
		for buf := make([]byte, 1<<16); ; {
			if _, err := b.Read(buf); err != nil {
				return
			}
		}
	}()
	returns(t, "a write", func() {
		for range 100 {
			if _, err := a.Write(make([]byte, 60_000)); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestCloseEndsBothEnds(t *testing.T) { inBubble(testCloseEndsBothEnds)(t) }

func testCloseEndsBothEnds(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	heard := make(chan error, 4)
	for _, s := range []*sctp.Stream{a, b} {
		go func() { _, err := s.Read(make([]byte, 1)); heard <- err }()
	}
	for _, c := range e.assoc {
		go func() { _, err := c.AcceptStream(); heard <- err }()
	}
	synctest.Wait()
	returns(t, "Close", func() { ok(t, e.assoc[0].Close()) })
	want(t, "the connection is closed", e.conns[0].isClosed(), true)
	for range 4 {
		select {
		case err := <-heard:
			if err == nil {
				t.Error("a call returns without an error")
			}
		case <-time.After(soon):
			t.Fatal("a call does not return")
		}
	}
	for i, c := range e.assoc {
		_, err := c.AcceptStream()
		want(t, "AcceptStream", err, io.EOF)
		_, err = c.OpenStream(9, 53)
		wantErr(t, "OpenStream", err, sctp.ErrAssociationClosed)
		_, known := c.Metadata()
		want(t, "metadata", known, false)
		_, err = []*sctp.Stream{a, b}[i].Write([]byte("x"))
		wantErr(t, "Write", err, sctp.ErrPayloadDataStateNotExist)
	}
	_, err := b.Read(make([]byte, 1))
	want(t, "a read at the peer", err, io.EOF)
	returns(t, "the second Close", func() { e.assoc[0].Close() })
}

func TestAbortTellsThePeerWhy(t *testing.T) { inBubble(testAbortTellsThePeerWhy)(t) }

func testAbortTellsThePeerWhy(t *testing.T) {
	e := open(t)
	_, b := e.stream(t, 1)
	returns(t, "Abort", func() { e.assoc[0].Abort("because") })
	want(t, "the connection is closed", e.conns[0].isClosed(), true)
	_, err := b.Read(make([]byte, 1))
	wantErr(t, "a read at the peer", err, sctp.ErrChunk, sctp.ErrUserInitiatedAbort)
	if err == nil || !strings.Contains(err.Error(), "because") {
		t.Errorf("the reason is not in %v", err)
	}
	_, err = e.assoc[1].AcceptStream()
	want(t, "AcceptStream", err, io.EOF)
}

func TestShutdownDeliversWhatWasWritten(t *testing.T) {
	inBubble(testShutdownDeliversWhatWasWritten)(t)
}

func testShutdownDeliversWhatWasWritten(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	_, err := a.Write(bytes.Repeat([]byte("x"), 50_000))
	ok(t, err)
	got := make(chan int, 1)
	go func() {
		n, _ := b.Read(make([]byte, 65536))
		got <- n
	}()
	returns(t, "Shutdown", func() { ok(t, e.assoc[0].Shutdown(context.Background())) })
	want(t, "octets at the peer", <-got, 50_000)
	_, err = e.assoc[1].AcceptStream()
	want(t, "AcceptStream of the peer", err, io.EOF)
	wantErr(t, "Shutdown again", e.assoc[0].Shutdown(context.Background()), sctp.ErrShutdownNonEstablished)
}

func TestShutdownWaitsNoLongerThanItsContext(t *testing.T) {
	inBubble(testShutdownWaitsNoLongerThanItsContext)(t)
}

func testShutdownWaitsNoLongerThanItsContext(t *testing.T) {
	e := open(t)
	e.conns[0].loseSome(func([]byte) bool { return true })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	returns(t, "Shutdown", func() { want(t, "error", e.assoc[0].Shutdown(ctx), context.DeadlineExceeded) })
}

func TestContextOfSetUp(t *testing.T) { inBubble(testContextOfSetUp)(t) }

func testContextOfSetUp(t *testing.T) {
	a, b := newPipe()
	defer b.Close()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := sctp.ClientContext(ended, sctp.WithNetConn(a))
	want(t, "a context that has ended", err, context.Canceled)
	want(t, "the connection is closed", a.isClosed(), false)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	returns(t, "ClientContext", func() {
		_, err := sctp.ClientContext(ctx, sctp.WithNetConn(a))
		want(t, "nobody answers", err, context.DeadlineExceeded)
	})
	time.Sleep(soon)
	want(t, "the connection is closed in the end", a.isClosed(), true)
}

func TestConnectionThatEndsBeforeTheAssociationIsUp(t *testing.T) {
	for name, open := range map[string]func(c net.Conn) error{
		"client": func(c net.Conn) error { _, err := sctp.Client(sctp.Config{NetConn: c}); return err },
		"server": func(c net.Conn) error { _, err := sctp.Server(sctp.Config{NetConn: c}); return err },
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			a, b := newPipe()
			time.AfterFunc(50*time.Millisecond, func() { b.Close() })
			returns(t, "it", func() { wantErr(t, "error", open(a), sctp.ErrAssociationClosedBeforeConn) })
		}))
	}
}

func TestWhatAnAssociationSaysOfItself(t *testing.T) { inBubble(testWhatAnAssociationSaysOfItself)(t) }

func testWhatAnAssociationSaysOfItself(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	_, err := a.Write(make([]byte, 60_000))
	ok(t, err)
	_, err = b.Read(make([]byte, 65536))
	ok(t, err)
	time.Sleep(300 * time.Millisecond)
	for i, c := range e.assoc {
		if c.BytesSent() == 0 || c.BytesReceived() == 0 || c.CWND() < 1200 || c.RWND() < 100_000 {
			t.Errorf("end %d: %d octets sent, %d received, cwnd %d, rwnd %d", i, c.BytesSent(), c.BytesReceived(),
				c.CWND(), c.RWND())
		}
		want(t, "buffered", c.BufferedAmount(), 0)
		c.ActiveHeartbeat()
	}
	if n := e.assoc[0].BytesSent(); n < 60_000 || n > 80_000 {
		t.Errorf("%d octets sent", n)
	}
	if mtu := e.assoc[0].MTU(); mtu < 1188 || mtu > 1191 {
		t.Errorf("MTU %d", mtu)
	}
	if rtt := e.assoc[0].SRTT(); rtt < 0 || rtt > 1000 {
		t.Errorf("round trip %v ms", rtt)
	}
	want(t, "state", a.State(), sctp.StreamStateOpen)
}

func TestOptionsOutOfRange(t *testing.T) { inBubble(testOptionsOutOfRange)(t) }

func testOptionsOutOfRange(t *testing.T) {
	a, b := newPipe()
	defer a.Close()
	defer b.Close()
	for name, o := range map[string]sctp.ClientOption{
		"no connection":    sctp.WithName("x"),
		"nil connection":   sctp.WithNetConn(nil),
		"nil logger":       sctp.WithLoggerFactory(nil),
		"MTU 0":            sctp.WithMTU(0),
		"MTU 20":           sctp.WithMTU(20),
		"receive buffer 0": sctp.WithMaxReceiveBufferSize(0),
		"message size 0":   sctp.WithMaxMessageSize(0),
		"RTO 0":            sctp.WithRTOMax(0),
		"RTO below 0":      sctp.WithRTOMax(-1),
		"RACK window 0":    sctp.WithRACKOptions(nil, sctp.WithRackMinRTTWnd(0)),
		"RACK floor":       sctp.WithRACKOptions(sctp.WithRackReoWndFloor(-1)),
		"RACK delay 0":     sctp.WithRACKOptions(sctp.WithRackWCDelAck(0)),
		"SNAP":             sctp.WithSNAP(nil, []byte{1}),
		"no scheduler":     sctp.WithInterleavingOptions(sctp.WithInterleavingStreamSchedulerFactory(nil)),
		"weight 0":         sctp.WithInterleavingOptions(sctp.WithInterleavingWeightedFairQueueingWeight(1, 0)),
		"Config with MTU":  sctp.Config{MTU: 20},
	} {
		opts := []sctp.ClientOption{nil, o, sctp.WithNetConn(a)}
		if name == "no connection" {
			opts = opts[:2]
		}
		if _, err := sctp.ClientWithOptions(opts...); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	want(t, "the connection is closed", a.isClosed(), false)
	e := open(t, sctp.Config{MTU: 1000, MaxReceiveBufferSize: 200_000, RTOMax: 500}, sctp.WithMinCwnd(3), nil,
		sctp.WithFastRtxWnd(4), sctp.WithCwndCAStep(5), sctp.WithMaxReassemblyQueueEntries(100),
		sctp.WithRACKOptions(sctp.WithRackMinRTTWnd(time.Second), sctp.WithRackReoWndFloor(0),
			sctp.WithRackWCDelAck(time.Second)),
		sctp.WithEnableInterleaving(false), sctp.WithEnableZeroChecksum(false),
		sctp.WithInterleavingOptions(nil, sctp.WithInterleavingRoundRobinScheduler(),
			sctp.WithInterleavingWeightedFairQueueingScheduler(), sctp.WithInterleavingWeightedFairQueueingWeight(1, 2)))
	e.stream(t, 1)
	if mtu := e.assoc[0].MTU(); mtu < 997 || mtu > 1000 {
		t.Errorf("MTU %d", mtu)
	}
	if rwnd := e.assoc[0].RWND(); rwnd > 200_000 {
		t.Errorf("a window of %d octets", rwnd)
	}
}

func TestNamesOfValues(t *testing.T) {
	for _, row := range [][2]string{
		{sctp.PayloadTypeWebRTCDCEP.String(), "WebRTC DCEP"},
		{sctp.PayloadTypeWebRTCBinary.String(), "WebRTC Binary"},
		{sctp.PayloadTypeWebRTCString.String(), "WebRTC String"},
		{sctp.PayloadTypeWebRTCBinaryEmpty.String(), "WebRTC Binary (Empty)"},
		{sctp.PayloadTypeWebRTCStringEmpty.String(), "WebRTC String (Empty)"},
		{sctp.PayloadProtocolIdentifier(7).String(), "Unknown Payload Protocol Identifier: 7"},
		{sctp.StreamStateOpen.String(), "open"},
		{sctp.StreamStateClosing.String(), "closing"},
		{sctp.StreamStateClosed.String(), "closed"},
		{sctp.StreamState(99).String(), "unknown"},
	} {
		want(t, "name", row[0], row[1])
	}
	want(t, "a packet", sctp.TryMarshalUnmarshal([]byte("nonsense")), 0)
}
