package sctp

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Two writers of long messages and one of short ones: all go through a receive buffer of a few
// packets.
func TestMessagesLongerThanTheReceiveBuffer(t *testing.T) {
	c, s := newPair(t).connect(t, nil, &Config{RecvBuffer: 10_000})
	const count, long = 5, 100_000
	for stream := range uint16(3) {
		go func() {
			for i := range count {
				size := []int{long, long, 1000}[stream]
				_, err := c.WriteMsg(patternOf(i, size),
					SendInfo{Stream: stream, PPID: uint32(i), Unordered: stream == 1})
				check.That(t, err == nil, "write: %v", err)
			}
		}()
	}
	buf := make([]byte, 2*long)
	pieces := 0
	for range 3 * count {
		var msg []byte
		for more := true; more; {
			n, info := must.Two(s.ReadMsg(buf))(t)
			msg = append(msg, buf[:n]...)
			// req 9260-6.9-7, 9260-11.1-7: the partial flag
			if more = info.More; more {
				pieces++
			} else if want := patternOf(int(info.PPID), len(msg)); info.Size != len(msg) || !bytes.Equal(msg, want) {
				t.Fatalf("stream %d, message %d: %d octets differ, %+v", info.Stream, info.PPID, len(msg), info)
			}
			check.That(t, !more || info.Size == 0, "a size of %d, of a message whose end is not known", info.Size)
		}
	}
	check.That(t, pieces >= 2*count*long/10_000, "%d pieces", pieces)
}

func TestMaxMessage(t *testing.T) {
	c, s := newPair(t).connect(t, nil, &Config{RecvBuffer: 10_000, MaxMessage: 30_000})
	must.Do(c.WriteMsg(make([]byte, 30_000), SendInfo{}))(t)
	buf := make([]byte, 30_000)
	for n := 0; n < 30_000; {
		k, info, err := s.ReadMsg(buf)
		n += k
		must.That(t, err == nil && info.More == (n < 30_000), "%d octets, %+v, %v", n, info, err)
	}
	must.Do(c.WriteMsg(make([]byte, 30_001), SendInfo{}))(t)
	var err error
	for err == nil || err == ErrCutOff {
		_, _, err = s.ReadMsg(buf)
	}
	var abort *assoc.AbortError
	check.That(t, errors.As(err, &abort) && !abort.ByPeer, "a message longer than MaxMessage: %v", err)
}

// Of a message that is delivered in pieces the reader learns the end, however it comes.
func TestMessageThatIsCutOff(t *testing.T) {
	small := &Config{RecvBuffer: 10_000}
	fixed := &Config{LocalPort: 4711}
	for _, tt := range []struct {
		name    string
		unheard wire.ChunkType // of the peer's: they are lost
		by      func(t *testing.T, a *Transport, c *Conn, to netip.AddrPort)
		then    func(err error) bool // what the next read returns
	}{
		{"by a restart of the peer", wire.ChunkAbort, func(t *testing.T, a *Transport, c *Conn, to netip.AddrPort) {
			c.Abort("the peer does not hear of it")
			<-c.Done()
			c = must.Get(a.Dial(deadlineCtx(t), to, fixed))(t)
			must.Do(c.WriteMsg([]byte("again"), SendInfo{}))(t)
		}, func(err error) bool { return err == nil }},
		{"by the end of the association", 0, func(t *testing.T, _ *Transport, c *Conn, _ netip.AddrPort) {
			c.Abort("the reason")
		}, func(err error) bool {
			var abort *assoc.AbortError
			return errors.As(err, &abort) && abort.ByPeer
		}},
	} {
		begin := func(t *testing.T, c *Conn) {
			t.Helper()
			must.Do(c.WriteMsg(make([]byte, 100_000), SendInfo{}))(t)
		}
		t.Run(tt.name, func(t *testing.T) {
			a, b, links := apiPair(t)
			c, s := connectTransports(t, a, b, fixed, small)
			defer s.Close()
			begin(t, c)
			buf := make([]byte, 10)
			_, info, err := s.ReadMsg(buf)
			must.That(t, err == nil && info.More, "%+v, %v", info, err)
			links[0].Chunk.Store(int32(tt.unheard))
			tt.by(t, a, c, netip.AddrPortFrom(addrsB[0].Addr(), uint16(s.LocalAddr().(Addr).Port())))
			n, info, err := s.ReadMsg(buf)
			for ; err == nil && info.More; n, info, err = s.ReadMsg(buf) {
			}
			check.That(t, err == ErrCutOff && !info.More && n == 0, "%d octets, %+v, %v, want %v", n, info, err,
				ErrCutOff)
			n, info, err = s.ReadMsg(buf)
			check.That(t, tt.then(err) && (err != nil || string(buf[:n]) == "again") && !info.More,
				"after that %q, %+v, %v", buf[:n], info, err)
		})
		t.Run(tt.name+", for a Socket", func(t *testing.T) {
			a, b, links := apiPair(t)
			server := must.Get(b.OpenSocket(0, small))(t)
			to := netip.AddrPortFrom(addrsB[0].Addr(), server.Port())
			c := must.Get(a.Dial(deadlineCtx(t), to, fixed))(t)
			begin(t, c)
			buf := make([]byte, 100_000)
			_, from, info, err := server.ReadMsg(buf)
			must.That(t, err == nil && info.More && info.Size == 0, "%+v, %v", info, err)
			links[0].Chunk.Store(int32(tt.unheard))
			tt.by(t, a, c, to)
			for err == nil && info.More {
				var again *Conn
				_, again, info, err = server.ReadMsg(buf)
				must.That(t, again == from, "from %v, %v", again, err)
			}
			check.That(t, err == ErrCutOff && !info.More, "%+v, %v", info, err)
		})
	}
}

// A stream takes over what waits of its own messages, but for one of which a part has been read.
func TestStreamTakesItsOwnMessages(t *testing.T) {
	var all, own inbox
	all.push(new(assoc.Received))
	for i := range 5 {
		all.push(&assoc.Received{Stream: wire.StreamID(i % 2), Size: i})
	}
	all.popFirst() // one that was read
	all.readOffset = 1
	own.takeStream(&all, 0)
	sizes := func(b *inbox) (list []int) {
		for _, r := range b.queue[b.head:] {
			list = append(list, r.Size)
		}
		return list
	}
	check.Slice(t, "left are messages", sizes(&all), []int{0, 1, 3})
	check.Slice(t, "taken are messages", sizes(&own), []int{2, 4})
}
