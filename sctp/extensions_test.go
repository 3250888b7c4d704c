package sctp

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/sched"
)

// A message that is lost is given up by its policy. What comes behind it on its stream does not
// wait for it.
func TestMessageIsGivenUp(t *testing.T) {
	// req 3758-3.1-1
	// req 3758-3.3-3
	// req 3758-4.2-1
	// req 7496-4.5-1
	// req 7496-3-1
	for _, row := range []struct {
		name string
		info SendInfo
	}{
		{"sent once", SendInfo{Abandon: AbandonResent}},
		{"sent three times", SendInfo{Abandon: AbandonResent, Limit: 2}},
		{"expired", SendInfo{Abandon: AbandonExpired, Lifetime: 100 * time.Millisecond}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, links := apiPair(t)
				c, s := connectTransports(t, a, b, &Config{Events: 10, PartialReliability: true, DisablePMTUD: true},
					&Config{PartialReliability: true, DisablePMTUD: true})
				check.Equal(t, "the client has", c.Extensions(), PartialReliability)
				check.Equal(t, "the server has", s.Extensions(), PartialReliability)
				links[0].Lose.Store(true)
				must.Do(c.WriteMsg([]byte("lost"), row.info))(t)
				ev := nextOfKind(t, c, EventSendFailed)
				check.That(t, !ev.Unsent && string(ev.Message) == "lost", "failed: %q, unsent %v", ev.Message, ev.Unsent)
				links[0].Lose.Store(false)
				must.Do(c.WriteMsg([]byte("behind it"), SendInfo{}))(t)
				buf := make([]byte, 100)
				n, info, err := s.ReadMsg(buf)
				must.OK(t, err)
				check.Equal(t, "what arrives", string(buf[:n]), "behind it")
				check.Equal(t, "its SSN", info.SSN, 1)
			})
		})
	}
}

func TestPolicyThatCannotBeIsRefused(t *testing.T) {
	// req 3758-3.3-2
	synctest.Test(t, func(t *testing.T) {
		for _, offers := range [][2]bool{{false, false}, {true, false}, {false, true}} {
			p := newPair(t)
			c, s := p.connect(t, &Config{PartialReliability: offers[0]}, &Config{PartialReliability: offers[1]})
			check.Equal(t, "agreed on", c.Extensions()|s.Extensions(), 0)
			_, err := c.WriteMsg([]byte("x"), SendInfo{Abandon: AbandonResent})
			check.Error(t, "without the peer's consent", err, ErrNoPartialReliability)
		}
		p := newPair(t)
		c, _ := p.connect(t, &Config{PartialReliability: true}, &Config{PartialReliability: true})
		for _, info := range []SendInfo{{Abandon: AbandonExpired}, {Abandon: AbandonForRoom + 1}, {Abandon: 200}} {
			_, err := c.WriteMsg([]byte("x"), info)
			check.Error(t, "a policy that is none", err, ErrAbandonPolicy)
		}
		must.Do(c.WriteMsg([]byte("x"), SendInfo{Abandon: AbandonResent}))(t)
	})
}

// A short message of an important stream does not wait for what other streams have queued.
func TestSchedulerOfAConn(t *testing.T) {
	// req 8260-3-4
	synctest.Test(t, func(t *testing.T) {
		for _, late := range []bool{false, true} {
			a, b, links := apiPair(t)
			cfg := &Config{DisablePMTUD: true, MaxBurst: 1, RFC9260: true}
			if !late {
				cfg.NewScheduler = sched.Priority
			}
			c, s := connectTransports(t, a, b, cfg, &Config{DisablePMTUD: true})
			if late {
				must.OK(t, c.SetScheduler(sched.Priority()))
			}
			must.OK(t, c.SetStreamValue(1, 5))
			check.Equal(t, "value of stream 1", c.StreamValue(1), 5)
			check.Error(t, "a stream that is none", c.SetStreamValue(60000, 1), ErrInvalidStream)
			links[0].Lose.Store(true)
			for range 100 {
				must.Do(c.WriteMsg(make([]byte, 1000), SendInfo{Stream: 1}))(t)
			}
			must.Do(c.WriteMsg([]byte("first"), SendInfo{Stream: 2}))(t)
			links[0].Lose.Store(false)
			before := -1
			buf := make([]byte, 2000)
			for i := range 101 {
				n, info, err := s.ReadMsg(buf)
				must.OK(t, err)
				if info.Stream == 2 {
					check.Equal(t, "message", string(buf[:n]), "first")
					before = i
				}
			}
			check.That(t, before >= 0 && before < 20, "%d messages went before it", before)
		}
	})
}

// A full send buffer drops messages of less importance for one of more, and says so. Others wait.
func TestImportantMessageMakesRoom(t *testing.T) {
	// req 7496-4.2-1
	for _, scheduled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := &Config{Events: 10, PartialReliability: true, DisablePMTUD: true, HeartbeatInterval: -1, SendBuffer: 8000}
			if scheduled {
				cfg.NewScheduler = sched.RoundRobin
			}
			a, b, links := apiPair(t)
			c, s := connectTransports(t, a, b, cfg, &Config{PartialReliability: true, DisablePMTUD: true, HeartbeatInterval: -1})
			links[0].Lose.Store(true) // nothing is acknowledged
			must.Do(c.WriteMsg(make([]byte, 3000), SendInfo{PPID: 1}))(t)
			for _, limit := range []uint32{5, 9, 7} {
				must.Do(c.WriteMsg(make([]byte, 1500), SendInfo{PPID: 1 + limit, Abandon: AbandonForRoom, Limit: limit}))(t)
			}
			for _, row := range []struct {
				limit uint32
				drops []uint32 // limits of messages that make room; nil: it waits
			}{{8, []uint32{9}}, {9, nil}, {6, []uint32{8}}, {3, []uint32{7}}, {6, nil}} {
				must.OK(t, c.SetWriteDeadline(time.Now().Add(time.Millisecond)))
				_, err := c.WriteMsg(make([]byte, 1500), SendInfo{PPID: 1 + row.limit, Abandon: AbandonForRoom, Limit: row.limit})
				if row.drops == nil {
					check.Error(t, "a message of no more importance", err, os.ErrDeadlineExceeded)
				} else {
					must.OK(t, err)
				}
				for _, limit := range row.drops {
					check.Equal(t, "message that failed", nextOfKind(t, c, EventSendFailed).Info.Limit, limit)
				}
			}
			count := c.Abandoned()
			check.Equal(t, "dropped", count.Sent[AbandonForRoom]+count.Unsent[AbandonForRoom], 3)
			check.Equal(t, "dropped of stream 0", c.AbandonedOf(0), count)
			check.Equal(t, "dropped of stream 1", c.AbandonedOf(1), AbandonCounts{})
			links[0].Lose.Store(false)
			var got []uint32
			buf := make([]byte, 3000)
			for range 4 {
				_, info, err := s.ReadMsg(buf)
				must.OK(t, err)
				got = append(got, info.PPID)
			}
			check.Slice(t, "messages that arrive", got, []uint32{1, 6, 7, 4})
		})
	}
}

// A program hears when so much of a stream is acknowledged that it may write again.
func TestLowMarkOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newPair(t).connect(t, &Config{Events: 10, DisablePMTUD: true, HeartbeatInterval: -1}, quiet)
		synctest.Wait()
		check.Equal(t, "octets of an association that has sent nothing", c.Unacked()+c.UnackedOf(1), 0)
		must.OK(t, c.SetLowMark(1, 2000))
		must.OK(t, c.SetLowMark(2, 0))
		check.Error(t, "a stream that is none", c.SetLowMark(60000, 1), ErrInvalidStream)
		s.lock() // nothing is acknowledged
		for i, n := range []int{1500, 1500, 10} {
			must.Do(c.WriteMsg(make([]byte, n), SendInfo{Stream: uint16(1 + i/2)}))(t)
		}
		must.OK(t, c.SetLowMark(2, -1))
		for i, want := range []int{3010, 3000, 10, 0} {
			got := c.Unacked()
			if i > 0 {
				got = c.UnackedOf(uint16(i))
			}
			check.Equal(t, "octets", got, want)
		}
		s.unlock()
		ev := nextOfKind(t, c, EventSendLow)
		check.Equal(t, "stream that is low", ev.Info.Stream, 1)
		check.Equal(t, "event", ev.String(), "send low stream=1")
		time.Sleep(time.Second) // the last SACK may be delayed
		check.Equal(t, "octets at the end", c.Unacked()+c.UnackedOf(1), 0)
		plain, _ := newPair(t).connect(t, quiet, quiet)
		check.Error(t, "without events", plain.SetLowMark(1, 1), ErrNoEvents)
	})
}

// A short message does not wait for a long one of another stream, which is read in pieces. Each
// stream stays in order.
func TestMessagesOfStreamsAreInterleaved(t *testing.T) {
	// req 8260-2.2.1-1
	// req 8260-2.2.2-3
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := apiPair(t)
		c, s := connectTransports(t, a, b, &Config{Interleaving: true, NewScheduler: sched.RoundRobin, DisablePMTUD: true},
			&Config{Interleaving: true, RecvBuffer: 20_000, DisablePMTUD: true})
		check.Equal(t, "the client has", c.Extensions(), Interleaving)
		check.Equal(t, "the server has", s.Extensions(), Interleaving)
		long := bytes.Repeat([]byte("0123456789"), 20_000)
		must.Do(c.WriteMsg(long, SendInfo{Stream: 1, PPID: 7}))(t)
		must.Do(c.WriteMsg([]byte("behind it"), SendInfo{Stream: 1}))(t)
		for i := range 10 {
			must.Do(c.WriteMsg([]byte{byte(i)}, SendInfo{Stream: 2}))(t)
		}
		var got, short []byte
		ends, before := 0, -1 // messages of stream 1 that have ended, and octets of it before stream 2
		buf := make([]byte, 5000)
		for ends < 2 || len(short) < 10 {
			n, info, err := s.ReadMsg(buf)
			must.OK(t, err)
			if info.Stream == 2 {
				if short = append(short, buf[:n]...); len(short) == 10 {
					before = len(got)
				}
				continue
			}
			check.Equal(t, "PPID", info.PPID, []uint32{7, 0}[ends])
			check.Equal(t, "SSN", info.SSN, uint16(ends))
			if got = append(got, buf[:n]...); !info.More {
				ends++
			}
		}
		check.Equal(t, "stream 2", string(short), "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09")
		check.That(t, bytes.Equal(got, append(long, "behind it"...)), "stream 1: %d octets, of %d", len(got), len(long))
		check.That(t, before >= 0 && before < 50_000, "stream 2 has waited for %d octets of stream 1", before)
	})
}

// A reader of whole messages gets the beginning of each that comes in pieces, whatever is between.
func TestMessageConnOfInterleavedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := apiPair(t)
		c, s := connectTransports(t, a, b, &Config{Interleaving: true, NewScheduler: sched.RoundRobin, DisablePMTUD: true},
			&Config{Interleaving: true, PartialDelivery: 1000, DisablePMTUD: true})
		for id := range uint16(2) {
			must.Do(c.WriteMsg(bytes.Repeat([]byte{'a' + byte(id)}, 20_000), SendInfo{Stream: id}))(t)
			must.Do(c.WriteMsg([]byte{'A' + byte(id)}, SendInfo{Stream: id}))(t)
		}
		m := s.MessageConn()
		var got []string
		buf := make([]byte, 2)
		for range 4 {
			n, err := m.Read(buf)
			check.That(t, (err == nil) == (n == 1) && (err == nil || errors.Is(err, ErrTruncated)), "%q: %v", buf[:n], err)
			got = append(got, string(buf[:n]))
		}
		slices.Sort(got)
		check.Slice(t, "received", got, []string{"A", "B", "aa", "bb"})
	})
}
