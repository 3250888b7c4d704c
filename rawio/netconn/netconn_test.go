package netconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/connpipe"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
)

// newLink makes a link that the test closes.
func newLink(t testing.TB, c Carrier, cfg *Config) *Link {
	t.Helper()
	l := must.Get(New(c, cfg))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

// packetTo is a packet of these pieces to the peer.
func packetTo(vec ...[]byte) rawio.Packet { return rawio.Packet{Vec: vec, Remote: peer} }

// wantPacket reads one packet and compares its octets.
func wantPacket(t testing.TB, l *Link, want []byte) {
	t.Helper()
	pkts := make([]rawio.Packet, 1)
	n, err := l.ReadBatch(pkts)
	must.That(t, n == 1 && err == nil, "%d packets, %v", n, err)
	check.Slice(t, "octets", pkts[0].Data, want)
	check.That(t, pkts[0].Local == local && pkts[0].Remote == peer, "from %v to %v", pkts[0].Remote, pkts[0].Local)
	pkts[0].Release()
}

func TestPacketsArriveAsTheyWereSent(t *testing.T) {
	a, b := connpipe.New()
	one, two := newLink(t, a, nil), newLink(t, b, nil)
	for _, n := range []int{12, 100, 1191} {
		data := linktest.Pattern(n)
		linktest.WriteAll(t, one, packetTo(data[:5], nil, data[5:]), packetTo(data))
		wantPacket(t, two, data)
		wantPacket(t, two, data)
	}
	check.Equal(t, "packets sent", one.Stats().TxPackets, 6)
	check.Equal(t, "packets received", two.Stats().RxPackets, 6)
	_, err := two.ReadBatch(nil)
	check.That(t, err != nil, "a read without room")
}

// What the program says of its connection is what SCTP hears of the link.
func TestWhatALinkSaysOfItsConnection(t *testing.T) {
	// req 8261-5-6: without a word of the caller
	for _, row := range []struct {
		name      string
		cfg       *Config
		base, mtu int
		features  rawio.Features
		cut       int
		detects   rawio.ErrorDetection
	}{
		{"nothing is said", nil, 1191, 1191, rawio.PointToPoint, 0, rawio.NoErrorDetection},
		{"an MTU", &Config{MTU: 4000}, 4000, 4000, rawio.PointToPoint, 0, 0},
		{"more without DF", &Config{MaxMTU: 4000}, 1191, 1191, rawio.PointToPoint, 0, 0},
		{"DF", &Config{DontFragment: true}, 1191, 1400, rawio.PointToPoint | rawio.DontFragment, -1, 0},
		{"DF and an MTU above the default", &Config{DontFragment: true, MTU: 2000}, 2000, 2000,
			rawio.PointToPoint | rawio.DontFragment, -1, 0},
		{"DF and more", &Config{DontFragment: true, MaxMTU: 9000}, 1191, 9000,
			rawio.PointToPoint | rawio.DontFragment, -1, 0},
		{"DTLS", &Config{ErrorDetection: rawio.DTLSErrorDetection}, 1191, 1191, rawio.PointToPoint, 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, _ := connpipe.New()
			l := newLink(t, a, row.cfg)
			check.Equal(t, "octets that pass surely", rawio.BaseMTUOf(l)(LocalAddr, PeerAddr), row.base)
			check.Equal(t, "octets at most", l.MTU(LocalAddr, PeerAddr), row.mtu)
			check.Equal(t, "features", rawio.FeaturesOf(l), row.features)
			check.Equal(t, "length of what is cut", rawio.CutFromOf(l)(LocalAddr, PeerAddr), row.cut)
			check.Equal(t, "error detection", rawio.ErrorDetectionOf(l), row.detects)
			check.Equal(t, "receive buffer", rawio.ReceiveBufferOf(l), 0)
			check.Equal(t, "packets at once", rawio.MaxBatchOf(l), 1)
			check.That(t, rawio.PromptOf(l) && rawio.Owns(l, LocalAddr) && !rawio.Owns(l, PeerAddr), "not prompt")
		})
	}
}

func TestConfigOutOfRange(t *testing.T) {
	for name, cfg := range map[string]*Config{
		"MTU too small":                 {MTU: MinMTU - 1},
		"MTU negative":                  {MTU: -1},
		"MTU beyond IP":                 {MTU: 70_000},
		"MaxMTU below MTU":              {DontFragment: true, MaxMTU: 1000},
		"MaxMTU beyond IP":              {DontFragment: true, MaxMTU: 70_000},
		"MaxPacket below MTU":           {MaxPacket: 1000},
		"MaxPacket beyond IP":           {MaxPacket: 70_000},
		"a queue of less than nothing ": {Queue: -1},
	} {
		a, _ := connpipe.New()
		_, err := New(a, cfg)
		check.That(t, err != nil, "%s is accepted", name)
		check.That(t, !a.IsClosed(), "%s: the connection was closed", name)
	}
	a, _ := connpipe.New()
	_, err := New(a, &Config{MTU: MinMTU - 1})
	check.That(t, errors.As(err, new(*rawio.MTUError)), "%v", err)
	_, err = NewPacket(nil, nil, nil)
	check.That(t, err != nil, "no peer is accepted")
}

func TestPacketsThatAreRefused(t *testing.T) {
	a, b := connpipe.New()
	one, two := newLink(t, a, nil), newLink(t, b, nil)
	short, long := packetTo(make([]byte, 12)), packetTo(make([]byte, 1000), make([]byte, 192))
	other := short
	other.Remote = local
	n, err := one.WriteBatch([]rawio.Packet{short, long, short})
	check.That(t, n == 1 && errors.Is(err, rawio.ErrTooLong), "a long one: %d, %v", n, err)
	n, err = one.WriteBatch([]rawio.Packet{other})
	check.That(t, n == 0 && errors.As(err, new(*net.AddrError)), "one to another address: %d, %v", n, err)
	check.Equal(t, "too long", one.Stats().TxTooLong, 1)
	wantPacket(t, two, make([]byte, 12))
}

// A Write that blocks holds up no caller: packets wait, as many as there is room for, and then are
// lost. When it goes on, what has waited goes first.
func TestWriteThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connpipe.New()
		one, two := newLink(t, a, &Config{Queue: 4}), newLink(t, b, nil)
		a.Block(true)
		numbered := func(n int) rawio.Packet { return packetTo(append(make([]byte, 12), byte(n))) }
		linktest.WriteAll(t, one, numbered(0), numbered(1))
		synctest.Wait() // these are being written
		linktest.WriteAll(t, one, numbered(2), numbered(3), numbered(4), numbered(5))
		n, err := one.WriteBatch([]rawio.Packet{numbered(6), numbered(7)})
		check.That(t, n == 0 && err == rawio.ErrFull, "%d, %v", n, err)
		check.Equal(t, "lost", one.Stats().TxFull, 1)
		a.Block(false)
		for i := range 6 {
			wantPacket(t, two, append(make([]byte, 12), byte(i)))
		}
		linktest.WriteAll(t, one, numbered(9))
		wantPacket(t, two, append(make([]byte, 12), 9))
	})
}

// Errors that are about one packet, or about a peer that is not there yet, end nothing.
func TestErrorsThatPass(t *testing.T) {
	for name, err := range map[string]error{
		"refused":      &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNREFUSED)},
		"unreachable":  syscall.EHOSTUNREACH,
		"too long":     io.ErrShortBuffer,
		"temporary":    temporary{},
		"a deadline":   os.ErrDeadlineExceeded,
		"a timeout":    &net.DNSError{IsTimeout: true},
		"interruption": syscall.EINTR,
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{reads: []error{err, err, nil}, writes: []error{err, nil}}
			l := newLink(t, s, nil)
			wantPacket(t, l, make([]byte, 12))
			check.Equal(t, "errors", l.Stats().RxErrors, 2)
			l.WriteBatch([]rawio.Packet{packetTo(make([]byte, 12)), packetTo(make([]byte, 13))})
			check.OK(t, l.Close())
			check.That(t, s.written == 12 || s.written == 13, "%d octets were written", s.written)
		})
	}
}

type temporary struct{}

func (temporary) Error() string   { return "later" }
func (temporary) Temporary() bool { return true }

// An error that comes again and again is the end: the reader would do nothing else.
func TestErrorThatDoesNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connpipe.New()
		l := newLink(t, a, nil)
		a.FailReads(syscall.ECONNREFUSED)
		_, err := l.ReadBatch(make([]rawio.Packet, 1))
		check.That(t, errors.Is(err, syscall.ECONNREFUSED), "%v", err)
		check.Equal(t, "errors", l.Stats().RxErrors, maxErrorStreak)

		slow := newLink(t, &scripted{reads: slices.Repeat([]error{syscall.ECONNREFUSED}, 10*maxErrorStreak),
			pause: 2 * streakGap}, nil)
		_, err = slow.ReadBatch(make([]rawio.Packet, 1))
		check.That(t, errors.Is(err, net.ErrClosed), "errors that come now and then: %v", err)
	})
}

// scripted is a Carrier whose calls return these errors, and then net.ErrClosed.
type scripted struct {
	reads, writes []error
	pause         time.Duration // that a Read takes
	written       int           // octets
}

func (s *scripted) Read(p []byte) (int, error) {
	time.Sleep(s.pause)
	if len(s.reads) == 0 {
		return 0, net.ErrClosed
	}
	err := s.reads[0]
	if s.reads = s.reads[1:]; err != nil {
		return 0, err
	}
	return 12, nil
}

func (s *scripted) Write(p []byte) (int, error) {
	if len(s.writes) == 0 {
		return 0, net.ErrClosed
	}
	err := s.writes[0]
	if s.writes = s.writes[1:]; err != nil {
		return 0, err
	}
	s.written += len(p)
	return len(p), nil
}

func (s *scripted) Close() error { return nil }

// A deadline that somebody has set on the connection, and that has passed, is taken off.
func TestDeadlineThatWasLeftBehind(t *testing.T) {
	a, b := connpipe.New()
	check.OK(t, a.SetDeadline(time.Unix(1, 0)))
	check.OK(t, b.SetDeadline(time.Unix(1, 0)))
	one, two := newLink(t, a, nil), newLink(t, b, nil)
	linktest.WriteAll(t, one, packetTo(make([]byte, 12)), packetTo(make([]byte, 13))) // the first is lost
	wantPacket(t, two, make([]byte, 13))
}

// Whatever a Read or a Write says of the end is the end of the link, for both.
func TestEndIsHeardAtOnce(t *testing.T) {
	broken := errors.New("the tunnel is gone")
	for _, row := range []struct {
		name   string
		err    error
		writes bool
		closed bool // it matches net.ErrClosed
	}{
		{"Read: EOF", io.EOF, false, true},
		{"Read: closed", net.ErrClosed, false, true},
		{"Read: closed pipe", io.ErrClosedPipe, false, false},
		{"Read: its own", broken, false, false},
		{"Write: closed", &net.OpError{Op: "write", Err: net.ErrClosed}, true, true},
		{"Write: EPIPE", syscall.EPIPE, true, true},
		{"Write: EOF", fmt.Errorf("write: %w", io.EOF), true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := connpipe.New()
				c := &mortal{Conn: a}
				l := newLink(t, c, nil)
				read := make(chan error)
				go func() {
					_, err := l.ReadBatch(make([]rawio.Packet, 1))
					read <- err
				}()
				synctest.Wait()
				began := time.Now()
				if row.writes {
					c.writeErr = row.err
					linktest.WriteAll(t, l, packetTo(make([]byte, 12)))
				} else {
					a.FailReads(row.err)
				}
				err := <-read
				check.That(t, row.writes || errors.Is(err, row.err), "ReadBatch: %v", err)
				synctest.Wait()
				if row.writes {
					_, err = l.WriteBatch([]rawio.Packet{packetTo(make([]byte, 12))})
					check.That(t, errors.Is(err, row.err), "WriteBatch: %v", err)
				}
				check.Equal(t, "matches net.ErrClosed", errors.Is(err, net.ErrClosed), row.closed)
				check.That(t, err.Error() != "", "no text")
				check.OK(t, l.Close())
				check.Equal(t, "time", time.Since(began), 0)
			})
		})
	}
}

// mortal is a connection whose Write fails.
type mortal struct {
	*connpipe.Conn
	writeErr error
}

func (m *mortal) Write(p []byte) (int, error) {
	if m.writeErr != nil {
		return 0, m.writeErr
	}
	return m.Conn.Write(p)
}

// Close wakes the reader, lets what waits leave, and waits for nothing that blocks.
func TestClose(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b := connpipe.New()
			l := must.Get(New(a, nil))(t)
			read := make(chan error)
			go func() {
				_, err := l.ReadBatch(make([]rawio.Packet, 1))
				read <- err
			}()
			synctest.Wait()
			a.Block(blocks)
			began := time.Now()
			linktest.WriteAll(t, l, packetTo(make([]byte, 12)))
			check.OK(t, l.Close())
			want := time.Duration(0)
			if blocks {
				want = closePatience
			}
			check.Equal(t, "time", time.Since(began), want)
			check.That(t, <-read == net.ErrClosed, "the reader hears of something else")
			if _, err := b.Read(make([]byte, 100)); !blocks {
				check.OK(t, err)
			}
			n, err := l.WriteBatch([]rawio.Packet{packetTo(make([]byte, 12))})
			check.That(t, n == 0 && err == net.ErrClosed, "a packet after Close: %d, %v", n, err)
			check.OK(t, l.Close())
			b.Close()
		})
	}
}

// What is too short to be a packet is dropped, and a short one does not keep the memory of a long
// one. Buffers grow for longer packets, of which the first is lost, up to MaxPacket.
func TestLengthsOfPackets(t *testing.T) {
	for _, row := range []struct {
		name    string
		read    func(c *connpipe.Conn) Carrier
		dropped uint64
	}{
		{"long ones are refused", func(c *connpipe.Conn) Carrier { return c }, 2},
		{"long ones are cut", func(c *connpipe.Conn) Carrier { return cutting{c} }, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := connpipe.New()
			l := newLink(t, row.read(a), &Config{MaxPacket: 8000})
			for _, n := range []int{11, 0, 2049, 12, 4000, 5000, 5000, 9000, 7999, 100} {
				a.Inject(make([]byte, n))
			}
			for _, want := range [][2]int{{12, smallPacket}, {4000, 4096}, {5000, 8192}, {7999, 8192}, {100, smallPacket}} {
				pkts := make([]rawio.Packet, 1)
				must.Equal(t, "packets", must.Get(l.ReadBatch(pkts))(t), 1)
				if n := len(pkts[0].Data); n == 2048 || n == 4096 { // it was cut
					pkts[0].Release()
					must.Equal(t, "packets", must.Get(l.ReadBatch(pkts))(t), 1)
				}
				check.Equal(t, "octets", len(pkts[0].Data), want[0])
				check.Equal(t, "octets of memory", len(pkts[0].Buf.B), want[1])
				pkts[0].Release()
			}
			check.Equal(t, "dropped", l.Stats().RxDropped, row.dropped)
			b.Close()
		})
	}
}

// cutting is a connection that cuts packets off for which the buffer is too short, as sockets do.
type cutting struct{ *connpipe.Conn }

func (c cutting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.ErrShortBuffer {
		err = nil
	}
	return n, err
}
