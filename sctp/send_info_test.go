package sctp

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
)

func TestSendPrimitive(t *testing.T) {
	// The peer's window has room for the first message, which nothing acknowledges.
	blocked := func(t *testing.T) *Conn {
		a, b, links := apiPair(t)
		c, _ := associate(t, a, b, &Config{Events: 100, RemoteAddrs: []netip.Addr{addrsB[1].Addr()}, Config: assoc.Config{DisablePMTUD: true}},
			&Config{Config: assoc.Config{RecvBuffer: 3000}})
		links[0].silent.Store(true)
		return c
	}
	write := func(t *testing.T, c *Conn, msg []byte, info SendInfo) {
		t.Helper()
		if _, err := c.WriteMsg(msg, info); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("lifetime", func(t *testing.T) {
		c := blocked(t)
		write(t, c, pattern(1, 2500), SendInfo{Lifetime: time.Nanosecond}) // over before it can be sent
		write(t, c, pattern(2, 2500), SendInfo{Lifetime: time.Hour})       // sent at once
		write(t, c, pattern(3, 2500), SendInfo{Stream: 3, PPID: 4, Lifetime: 20 * time.Millisecond})
		write(t, c, pattern(4, 2500), SendInfo{})
		for _, want := range []struct {
			n      int
			stream uint16
		}{{1, 0}, {3, 3}} {
			ev := next(t, c, EventSendFailed)
			if !ev.Unsent || !bytes.Equal(ev.Message, pattern(want.n, 2500)) || ev.Info.Stream != want.stream { // req 9260-11.1-5, 9260-11.1-4: with its context
				t.Errorf("message %d: unsent %v, %d octets, %+v", want.n, ev.Unsent, len(ev.Message), ev.Info)
			}
		}
		if st := c.Stats(); st.Outstanding == 0 || st.Outstanding+st.Queued != 5000 {
			t.Errorf("%d octets sent, %d queued of the other two", st.Outstanding, st.Queued)
		}
		c.Abort("")
		for _, n := range []int{2, 4} {
			if ev := next(t, c, EventSendFailed); !bytes.Equal(ev.Message, pattern(n, 2500)) {
				t.Errorf("message %d: %+v", n, ev.Info)
			}
		}
	})
	t.Run("destination", func(t *testing.T) {
		c := blocked(t)
		write(t, c, pattern(1, 100), SendInfo{Dest: addrsB[1].Addr()}) // req 9260-11.1-4
		for _, p := range c.Paths() {
			if (p.Flight > 0) != (p.Remote.Addr() == addrsB[1].Addr()) {
				t.Errorf("%d octets in flight to %v", p.Flight, p.Remote)
			}
		}
		if _, err := c.WriteMsg(pattern(1, 100), SendInfo{Dest: netip.MustParseAddr("192.0.2.9")}); !errors.Is(err, assoc.ErrNoPath) {
			t.Errorf("to a stranger: %v", err)
		}
	})
}

// Messages end in any order; their octets stay as they are until then.
func TestSendBufferFreesInAnyOrder(t *testing.T) {
	s := sendBuf{max: 100_000}
	r := rand.New(rand.NewPCG(1, 2))
	type message struct {
		token uint64
		n     int
	}
	var live []message
	check := func(m message) {
		t.Helper()
		w := s.get(m.token)
		if got := append(bytes.Clone(w.body[0]), w.body[1]...); !bytes.Equal(got, pattern(m.n, 1+m.n%3000)) || w.info.PPID != uint32(m.n) {
			t.Fatalf("message %d of %d octets was overwritten", m.n, len(got))
		}
	}
	full, grown := 0, 0
	for n := range 20_000 {
		before := len(s.ring)
		if _, token, ok := s.put(pattern(n, 1+n%3000), SendInfo{PPID: uint32(n)}); !ok {
			full++
		} else if r.IntN(10) == 0 {
			s.undo() // the association has refused it
		} else {
			live = append(live, message{token, n})
		}
		if len(s.ring) > before {
			grown++
		}
		for len(live) > 0 && r.IntN(101) < 50 {
			i := 0
			if r.IntN(4) == 0 {
				i = r.IntN(len(live))
			}
			check(live[i])
			s.free(live[i].token)
			live = append(live[:i], live[i+1:]...)
		}
	}
	for _, m := range live {
		check(m)
		s.free(m.token)
	}
	if s.used != 0 || len(s.msgs) != 0 || cap(s.msgs) > 10_000 || full == 0 || grown < 3 {
		t.Errorf("%d octets and %d messages left, room for %d, full %d times, grown %d times", s.used, len(s.msgs), cap(s.msgs), full, grown)
	}
}
