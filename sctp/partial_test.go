package sctp

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// Two writers of long messages and one of short ones: all go through a receive buffer of a few packets.
func TestMessagesLongerThanTheReceiveBuffer(t *testing.T) {
	c, s := newPair(t).connect(t, nil, &Config{Config: assoc.Config{RecvBuffer: 10_000}})
	const count, long = 5, 100_000
	for stream := range uint16(3) {
		go func() {
			for i := range count {
				size := []int{long, long, 1000}[stream]
				if _, err := c.WriteMsg(pattern(i, size), SendInfo{Stream: stream, PPID: uint32(i), Unordered: stream == 1}); err != nil {
					t.Errorf("write: %v", err)
				}
			}
		}()
	}
	buf := make([]byte, 2*long)
	pieces := 0
	for range 3 * count {
		var msg []byte
		for more := true; more; {
			n, info, err := s.ReadMsg(buf)
			if err != nil {
				t.Fatal(err)
			}
			msg = append(msg, buf[:n]...)
			// req 9260-6.9-7, 9260-11.1-7: the partial flag
			if more = info.More; more {
				pieces++
			} else if want := pattern(int(info.PPID), len(msg)); info.Size != len(msg) || !bytes.Equal(msg, want) {
				t.Fatalf("stream %d, message %d: %d octets differ, %+v", info.Stream, info.PPID, len(msg), info)
			}
			if more && info.Size != 0 {
				t.Errorf("a size of %d, of a message whose end is not known", info.Size)
			}
		}
	}
	if pieces < 2*count*long/10_000 {
		t.Errorf("%d pieces", pieces)
	}
}

func TestMaxMessage(t *testing.T) {
	c, s := newPair(t).connect(t, nil, &Config{Config: assoc.Config{RecvBuffer: 10_000, MaxMessage: 30_000}})
	if _, err := c.WriteMsg(make([]byte, 30_000), SendInfo{}); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 30_000)
	for n := 0; n < 30_000; {
		k, info, err := s.ReadMsg(buf)
		if n += k; err != nil || info.More != (n < 30_000) {
			t.Fatalf("%d octets, %+v, %v", n, info, err)
		}
	}
	if _, err := c.WriteMsg(make([]byte, 30_001), SendInfo{}); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		_, _, err = s.ReadMsg(buf)
	}
	var abort *assoc.AbortError
	if !errors.As(err, &abort) || abort.ByPeer {
		t.Errorf("a message longer than MaxMessage: %v", err)
	}
}

// begin has the server read the first piece of a message whose rest is yet to come.
func begin(t *testing.T, c, s *Conn) (read int) {
	t.Helper()
	if _, err := c.WriteMsg(make([]byte, 100_000), SendInfo{}); err != nil {
		t.Fatal(err)
	}
	n, info, err := s.ReadMsg(make([]byte, 100_000))
	if err != nil || !info.More || n == 100_000 {
		t.Fatalf("%d octets, %+v, %v", n, info, err)
	}
	return n
}

func TestMessageThatIsCutOff(t *testing.T) {
	small := &Config{Config: assoc.Config{RecvBuffer: 10_000, DisablePMTUD: true}}
	cut := func(t *testing.T, s *Conn, want error) {
		t.Helper()
		for {
			switch _, info, err := s.ReadMsg(make([]byte, 100_000)); {
			case err == want && !info.More:
				return
			case err != nil || !info.More:
				t.Fatalf("%+v, %v, want %v", info, err, want)
			}
		}
	}
	t.Run("by a restart of the peer", func(t *testing.T) {
		a, b, links := apiPair(t)
		cfg := &Config{LocalPort: 4711, Config: assoc.Config{DisablePMTUD: true, RTOInitial: 20 * time.Millisecond, RTOMin: 20 * time.Millisecond}}
		c, s := associate(t, a, b, cfg, small)
		begin(t, c, s)
		links[0].silent.Store(true)
		c.Abort("the peer does not hear of it")
		<-c.Done()
		up := make(chan *Conn)
		go func() {
			c, err := a.Dial(deadlineCtx(t), netip.AddrPortFrom(addrsB[0].Addr(), uint16(s.LocalAddr().(Addr).Port())), cfg)
			if err != nil {
				t.Error(err)
			}
			up <- c
		}()
		for len(a.all()) == 0 { // what comes for the old association is not out of the blue from now on
			runtime.Gosched()
		}
		links[0].silent.Store(false)
		if c = <-up; c == nil {
			return
		}
		cut(t, s, ErrCutOff)
		if _, err := c.WriteMsg([]byte("again"), SendInfo{}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		if n, info, err := s.ReadMsg(buf); string(buf[:n]) != "again" || info.More || err != nil {
			t.Errorf("%q, %+v, %v", buf[:n], info, err)
		}
	})
	t.Run("by a shutdown that no peer may begin yet", func(t *testing.T) {
		a, b, _ := apiPair(t)
		c, s := associate(t, a, b, nil, small)
		begin(t, c, s)
		core, now := s.Lock()
		s.handleEvent(now, assoc.Event{Kind: EventDown, Err: assoc.ErrShutdown})
		s.Unlock()
		cut(t, s, io.ErrUnexpectedEOF)
		s.Lock()
		core.Close() // as Abort would, if the association itself had ended
		s.gate.own.Unlock()
	})
	t.Run("for a Socket", func(t *testing.T) {
		a, b, links := apiPair(t)
		server, err := b.OpenSocket(0, small)
		if err != nil {
			t.Fatal(err)
		}
		cfg := &Config{LocalPort: 4711, Config: assoc.Config{DisablePMTUD: true, RTOInitial: 20 * time.Millisecond, RTOMin: 20 * time.Millisecond}}
		to := netip.AddrPortFrom(addrsB[0].Addr(), server.Port())
		c, err := a.Dial(deadlineCtx(t), to, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.WriteMsg(make([]byte, 100_000), SendInfo{}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100_000)
		_, from, info, err := server.ReadMsg(buf)
		if err != nil || !info.More || info.Size != 0 {
			t.Fatalf("%+v, %v", info, err)
		}
		links[0].silent.Store(true)
		c.Abort("")
		<-c.Done()
		go a.Dial(deadlineCtx(t), to, cfg)
		for len(a.all()) == 0 {
			runtime.Gosched()
		}
		links[0].silent.Store(false)
		for err == nil {
			var again *Conn
			if _, again, info, err = server.ReadMsg(buf); again != from {
				t.Fatalf("from %v, %v", again, err)
			}
		}
		if err != ErrCutOff || info.More {
			t.Errorf("%+v, %v", info, err)
		}
	})
}
