package sctp

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/limits"
	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// refusing is a link that refuses packets.
type refusing struct{ rawio.Link }

func (refusing) WriteBatch([]rawio.Packet) (int, error) { return 0, rawio.ErrFull }

// givePackets hands packets to a transport as its receive goroutine would.
func givePackets(t *Transport, from, to netip.Addr, pkt []byte, times int) {
	for range times {
		r := newReceiver(t, nil, false)
		r.pkts = []rawio.Packet{{Data: pkt, Buf: rawio.NewBuf(pkt), Remote: netip.AddrPortFrom(from, 0),
			Local: netip.AddrPortFrom(to, 0)}}
		r.dispatchBatch(1)
		r.finishRun(nil)
	}
}

func rawPacket(src, dst uint16, tag uint32, chunk []byte) []byte {
	pkt := append(wire.AppendHeader(nil, src, dst, tag), chunk...)
	wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
	return pkt
}

// Every counter counts: there is a row for each field. Those of the endpoint have theirs in package
// endpoint; one of them shows that they are passed on.
func TestEveryCounterCounts(t *testing.T) {
	brief := &Config{RTOInitial: time.Millisecond, RTOMin: time.Millisecond, RTOMax: time.Millisecond,
		MaxInitRetrans: 1}
	done := func(t *testing.T, c *Conn) {
		select {
		case <-c.Done():
		case <-deadlineCtx(t).Done():
			t.Fatal("the association does not end")
		}
	}
	connected := func(t *testing.T) *Transport {
		p := newPair(t)
		p.connect(t, nil, nil)
		return p.a
	}
	// dials without success and returns what the dialler has counted.
	fails := func(t *testing.T, tr *Transport, to netip.AddrPort, cfg *Config) *Transport {
		_, err := tr.Dial(deadlineCtx(t), to, cfg)
		must.That(t, err != nil, "Dial succeeds")
		return tr
	}
	// short has associations send messages that nobody reads, where memory for peers is 1 MiB.
	short := func(t *testing.T, associations, messages int) *Transport {
		b := newBesieged(t, 1<<20, &Config{Backlog: 100})
		for port := range associations {
			a := b.newAttacker(netip.MustParseAddr("10.0.1.1"), uint16(1+port))
			for i := 0; i < messages && a != nil; i++ {
				a.sendChunks(a.dataChunk(0, 0, wire.SSN(i), whole, 60_000))
			}
		}
		until(t, "memory to be short", func() bool {
			s := b.Stats()
			return associations == 1 || s.MemoryAborted+s.MemoryRefused > 0
		})
		return b.Transport
	}
	rows := map[string]func(t *testing.T) *Transport{
		"RxPackets": connected, "RxBatches": connected, "TxPackets": connected, "TxBatches": connected,
		"Established": connected,
		"RxDropped": func(t *testing.T) *Transport {
			p := newPair(t)
			givePackets(p.a, p.bAddr, p.bAddr, []byte("short"), 1)
			return p.a
		},
		"TxFailed": func(t *testing.T) *Transport {
			l, other := mempair.New(t, mem.Options{})
			t.Cleanup(func() { other.Close() })
			tr := must.Get(NewTransport(refusing{l}, nil))(t)
			t.Cleanup(func() { tr.Close() })
			return fails(t, tr, netip.MustParseAddrPort("10.0.0.2:5000"), brief)
		},
		"BacklogDropped": func(t *testing.T) *Transport {
			p := newPair(t)
			c, _ := p.connect(t, nil, nil)
			a, _ := c.lock() // its owner does not get to the packets
			givePackets(p.a, p.bAddr, p.bAddr, rawPacket(a.PeerPort(), a.LocalPort(), a.LocalTag(),
				wire.AppendCookieAck(nil)), maxBacklogPackets+1)
			c.unlock()
			return p.a
		},
		"AcceptRefused": func(t *testing.T) *Transport {
			p, log := newPair(t), make(lines, 9)
			p.b.eventLog = newEventLog(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})), false)
			l := must.Get(p.b.Listen(0, &Config{Backlog: 1}))(t)
			defer l.Close()
			for i := range 2 {
				c, err := p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), nil)
				switch {
				case err == nil:
					defer done(t, c)
					defer l.Close()
				case i == 0: // the second may be up for too short a time to be seen
					t.Fatal(err)
				}
			}
			until(t, "the refusal", func() bool {
				return p.b.Stats().AcceptRefused > 0 && log.nextTellsOf(limitAccept)
			})
			return p.b
		},
		"EventsLost": func(t *testing.T) *Transport {
			p := newPair(t)
			c, _ := p.connect(t, &Config{Events: 1}, nil)
			c.Abort("")
			done(t, c)
			c, _ = p.connect(t, &Config{Events: 1}, nil)
			for range 3 {
				must.Do(c.WriteMsg([]byte("x"), SendInfo{Lifetime: time.Nanosecond}))(t)
			}
			c.Abort("")
			done(t, c)
			return p.a
		},
		"EndShutdown": func(t *testing.T) *Transport {
			p := newPair(t)
			c, _ := p.connect(t, nil, nil)
			must.OK(t, c.Close())
			return p.a
		},
		"EndAborted": func(t *testing.T) *Transport {
			p := newPair(t)
			c, _ := p.connect(t, nil, nil)
			c.Abort("enough")
			done(t, c)
			return p.a
		},
		"EndByPeer": func(t *testing.T) *Transport {
			p := newPair(t)
			c, s := p.connect(t, nil, nil)
			s.Abort("enough")
			done(t, c)
			return p.a
		},
		"EndTimeout": func(t *testing.T) *Transport {
			l, other := mempair.New(t, mem.Options{})
			t.Cleanup(func() { other.Close() })
			tr := must.Get(NewTransport(l, nil))(t)
			t.Cleanup(func() { tr.Close() })
			return fails(t, tr, netip.MustParseAddrPort("10.0.0.2:5000"), brief)
		},
		"EndRefused": func(t *testing.T) *Transport {
			p := newPair(t)
			l := must.Get(p.b.Listen(0, nil))(t)
			want := uint32(1)
			return fails(t, p.a, netip.AddrPortFrom(p.bAddr, l.Port()),
				&Config{Adaptation: &want, RequireAdaptation: true})
		},
		"Squeezed":      func(t *testing.T) *Transport { return short(t, 1, 9) },
		"MemoryAborted": func(t *testing.T) *Transport { return short(t, 3, 7) },
		"MemoryRefused": func(t *testing.T) *Transport { return short(t, 60, 0) },
		"Endpoint.OutOfBlue": func(t *testing.T) *Transport {
			p := newPair(t)
			givePackets(p.a, p.bAddr, p.bAddr, rawPacket(1, 2, 3, wire.AppendCookieAck(nil)), 1)
			return p.a
		},
	}
	rows["EndInternal"] = func(t *testing.T) *Transport {
		p := newPair(t)
		c, _ := p.connect(t, nil, nil)
		t.Cleanup(invariant.TolerateInTest())
		a, _ := c.lock()
		a.Break(invariant.Violation("a test", "nothing"))
		c.unlock()
		done(t, c)
		return p.a
	}
	rows["Contradictions"] = rows["EndInternal"]
	once := map[string]bool{"RxDropped": true, "EndShutdown": true, "EndAborted": true, "EndByPeer": true,
		"EndTimeout": true, "EndRefused": true,
		"EndInternal": true, "Endpoint.OutOfBlue": true}
	counters.Each(TransportStats{}, func(name string, _ uint64) {
		drive := rows[name]
		if drive == nil && strings.HasPrefix(name, "Endpoint.") {
			return
		}
		t.Run(name, func(t *testing.T) {
			must.That(t, drive != nil, "nothing here makes it count")
			counters.Each(drive(t).Stats(), func(other string, v uint64) {
				check.That(t, other != name || v == 1 || !once[name] && v > 1 && v < 1<<32,
					"it did not count, or twice, or down: %d", v)
			})
		})
	})
}

// lines are those of a journal.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// nextTellsOf says whether the next line is there and tells of a limit.
func (l lines) nextTellsOf(of limitKind) bool {
	return len(l) > 0 && strings.Contains(<-l, limitTexts[of])
}

// What the backlog had no room for is among the packets dropped, once.
func TestDroppedPacketsAreASum(t *testing.T) {
	p, log := newPair(t), make(lines, 9)
	p.a.eventLog = newEventLog(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})), false)
	c, _ := p.connect(t, nil, nil)
	a, _ := c.lock()
	c.backlog.mu.Lock()
	c.backlog.octets += maxBacklogOctets // full
	c.backlog.mu.Unlock()
	givePackets(p.a, p.bAddr, p.bAddr, rawPacket(a.PeerPort(), a.LocalPort(), a.LocalTag(),
		wire.AppendCookieAck(nil)), 2)
	c.backlog.mu.Lock()
	c.backlog.octets -= maxBacklogOctets
	c.backlog.mu.Unlock()
	check.That(t, len(log) == 0, "a line is written while somebody holds the gate: perhaps who writes it")
	c.unlock()
	until(t, "a line about it", func() bool { return log.nextTellsOf(limitBacklog) })
	check.That(t, !c.backlog.overflowed.Load(), "another one is due in a minute, whether or not a packet is dropped")
	givePackets(p.a, p.bAddr, p.bAddr, []byte("short"), 1)
	stats := p.a.Stats()
	check.That(t, stats.BacklogDropped >= 2 && stats.RxDropped == stats.BacklogDropped+1,
		"%d packets dropped, %d of them for want of room, want one more than these", stats.RxDropped,
		stats.BacklogDropped)
}

// The sums over all associations include those that have ended, and do not count them twice.
func TestTotalsOutliveAssociations(t *testing.T) {
	p := newPair(t)
	c, s := p.connect(t, nil, nil)
	send := func(c, s *Conn) {
		t.Helper()
		must.Do(c.WriteMsg(make([]byte, 100), SendInfo{}))(t)
		readOne(t, s)
	}
	send(c, s)
	check.Equal(t, "octets while it lives", p.b.Totals().DataOctetsIn, 100)
	must.OK(t, c.Close())
	<-s.Done()
	check.Equal(t, "octets after its end", p.b.Totals().DataOctetsIn, 100)
	trips := p.a.Trips()
	check.That(t, trips.Total() > 0 && trips.Sum > 0, "no round trip of what has ended: %+v", trips)
	c, s = p.connect(t, nil, nil)
	send(c, s)
	n, m := p.b.Totals().DataOctetsIn, p.b.Associations()
	check.That(t, n == 200 && m == 1, "%d octets, %d associations with the second", n, m)
}

// The limits of a TransportConfig reach the endpoint, with their defaults.
func TestTransportLimits(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{})
	a := must.Get(NewTransport(la, nil))(t)
	defer a.Close()
	var log bytes.Buffer
	b := must.Get(NewTransport(lb, &TransportConfig{MaxPerSource: 1, MaxAnswers: 5, MaxSetups: 2000,
		Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	l := must.Get(b.Listen(5000, nil))(t)
	to := netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), l.Port())
	must.Do(a.Dial(deadlineCtx(t), to, nil))(t)
	var aborted *assoc.AbortError
	if _, err := a.Dial(deadlineCtx(t), to, nil); !errors.As(err, &aborted) || !aborted.ByPeer ||
		aborted.Causes[0].Code != wire.CauseOutOfResource {
		t.Errorf("the second association: %v", err)
	}
	other := netip.MustParseAddr("10.0.0.77")
	givePackets(b, other, to.Addr(), rawPacket(1, 2, 3, wire.AppendHeartbeat(nil, []byte("x"))), 100)
	s := b.Stats().Endpoint
	check.That(t, s.AssocsRefused == 1 && s.Reflected >= 5 && s.Reflected <= 60 && s.RateLimited == 100-s.Reflected,
		"%d refused, %d answered, %d not", s.AssocsRefused, s.Reflected, s.RateLimited)
	givePackets(b, other, to.Addr(), rawPacket(1, 2, 3, wire.AppendHeartbeat(nil, []byte("x"))), 4000)
	b.Close()
	for _, line := range []string{"MaxPerSource is reached\" total=1", "MaxAnswers\" total=1", "MaxSetups\" total=1"} {
		n := strings.Count(log.String(), line)
		check.That(t, n == 1, "%d lines with %q in\n%s", n, line, &log)
	}
	limit, known := limits.MemoryLimit()
	for _, row := range []struct {
		TransportConfig
		perSource, answers, setups int
		timeout                    time.Duration
		memory                     int64
		rand                       io.Reader
	}{
		{TransportConfig{}, 16_384, 10_000, 50_000, 10 * time.Second, limit / 4, rand.Reader},
		{TransportConfig{MaxPerSource: 1, MaxAnswers: 2, MaxSetups: 3, CloseTimeout: 4, MaxMemory: 5, Rand: zeros{}}, 1, 2, 3, 4, 5, zeros{}},
		{TransportConfig{MaxPerSource: -1, MaxAnswers: -1, MaxSetups: -1, MaxMemory: -1}, 0, 0, 0, 10 * time.Second, math.MaxInt64 / 2, rand.Reader},
	} {
		c := &row.TransportConfig
		check.That(t, c.maxPerSource() == row.perSource && c.maxAnswers() == row.answers &&
			c.maxSetups() == row.setups && c.closeTimeout() == row.timeout &&
			(budgetOctets(c.MaxMemory) == row.memory || !known) && c.randReader() == row.rand, "%+v means %+v", c, row)
	}
	c, one := new(Config), (&Config{Backlog: 1, SendBuffer: 1})
	check.That(t, c.backlogLimit() == 128 && c.firstSendBuffer() == 1<<20 && one.backlogLimit() == 1 &&
		one.firstSendBuffer() == 1, "by default %d wait for Accept, and %d octets are kept for the peer",
		c.backlogLimit(), c.firstSendBuffer())
}

// The Logger has a line for what happens to associations and paths, and none for a packet.
func TestJournalHasALineForEachEventAndNoneForAPacket(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{})
	a := must.Get(NewTransport(la, nil))(t)
	defer a.Close()
	var log bytes.Buffer
	b := must.Get(NewTransport(lb, &TransportConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	l := must.Get(b.Listen(5000, nil))(t)
	connect := func() (c, s *Conn) {
		t.Helper()
		c = must.Get(a.Dial(deadlineCtx(t), netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), 5000), nil))(t)
		s = must.Get(l.Accept(deadlineCtx(t)))(t)
		return c, s
	}
	c, s := connect()
	must.OK(t, c.Close())
	<-s.Done()
	c, s = connect()
	for range 500 {
		must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		readOne(t, s)
	}
	c.Abort("tired\nof it")
	<-s.Done()
	b.Close()
	got := log.String()
	for _, want := range []string{`level=INFO msg="association: up" remote=10.0.0.1:`,
		`level=INFO msg="association: down" remote=10.0.0.1:`,
		`level=WARN msg="association: down" remote=10.0.0.1:`, `tired\\nof it`} {
		check.That(t, strings.Contains(got, want), "no line with %s", want)
	}
	n := strings.Count(got, "\n")
	check.That(t, n <= 4, "%d lines:\n%s", n, got)
}

// What a line says of an association, and how loud; what it is not worth one.
func TestJournalTellsWhatHasHappened(t *testing.T) {
	p, log := newPair(t), make(lines, 99)
	p.a.eventLog = newEventLog(slog.New(slog.NewTextHandler(log, nil)), false)
	c, _ := p.connect(t, quiet, quiet)
	loud := map[EventKind]string{EventUp: "INFO", EventPathUp: "INFO", EventPrimary: "INFO", EventRestart: "WARN",
		EventPathDown:              "WARN",
		EventPathPotentiallyFailed: "WARN", EventPeerError: "WARN", EventDown: "WARN"}
	until(t, "the line about its beginning", func() bool { return len(log) == 1 })
	<-log
	for kind := EventUp; kind <= EventAdaptation; kind++ {
		c.lock()
		c.queueLogEntry(assoc.Event{Kind: kind, Path: netip.MustParseAddrPort("10.9.9.9:1"), Err: io.EOF})
		c.unlock()
		got, want := "", ""
		if len(log) > 0 {
			_, got, _ = strings.Cut(<-log, " ")
		}
		if loud[kind] != "" {
			want = fmt.Sprintf("level=%s msg=\"association: %v\" remote=%v path=10.9.9.9 reason=EOF\n", loud[kind],
				kind, c.RemoteAddr())
		}
		check.That(t, got == want, "%q, want %q", got, want)
	}
}

// However much happens, there are 100 lines a second, and the next one says how many are missing.
func TestJournalIsLimited(t *testing.T) {
	var log bytes.Buffer
	j := newEventLog(slog.New(slog.NewTextHandler(&log, nil)), false)
	for i := range maxLogLines + 50 { // one peer, and then the others
		who := netip.AddrFrom4([4]byte{10, 0, 0, 1})
		if i >= maxLogLinesPerAddr+20 {
			who = netip.Addr{}
		}
		j.writeLine(slog.LevelInfo, who, "again")
		n := strings.Count(log.String(), "\n")
		must.That(t, n == min(i+1, maxLogLinesPerAddr) || n == min(i-19, maxLogLines), "%d lines of %d", n, i+1)
	}
	for _, step := range []struct {
		end   string // of the first line of a second
		lines int    // in that second
	}{{"again suppressed=30\n", maxLogLines + 1}, {"again suppressed=1\n", maxLogLines}, {"again\n", 1}} {
		j.lineLimiter.RateLimiter = quota.RateLimiter{All: maxLogLines, Each: maxLogLinesPerAddr} // another second
		for n := range step.lines {
			j.writeLine(slog.LevelInfo, netip.Addr{}, "again")
			check.That(t, n != 0 || strings.HasSuffix(log.String(), step.end), "the last line is %q",
				log.String()[log.Len()-100:])
		}
	}
	synctest.Test(t, func(t *testing.T) {
		j := newEventLog(slog.New(slog.NewTextHandler(&log, nil)), false)
		for want, wait := range []time.Duration{0, time.Minute - 1, 1} {
			time.Sleep(wait) // of virtual time
			j.logLimit(limitAssocs, 1)
			check.Equal(t, "lines about one limit", strings.Count(log.String(), "MaxAssocs"), max(want, 1))
		}
	})
	log.Reset() // over a link with one peer it may have all lines
	j = newEventLog(slog.New(slog.NewTextHandler(&log, nil)), true)
	for range maxLogLines + 1 {
		j.writeLine(slog.LevelInfo, netip.AddrFrom4([4]byte{10, 0, 0, 1}), "again")
	}
	check.Equal(t, "lines about the one peer", strings.Count(log.String(), "\n"), maxLogLines)
	(*eventLog)(nil).writeLine(slog.LevelInfo, netip.Addr{}, "nothing")
	(*eventLog)(nil).logLimit(limitAssocs, 1)
}

// A Transport reports rare events to a slog.Logger.
func ExampleTransportConfig_logger() {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	link, other, err := mem.Pair(mem.Options{})
	if err != nil {
		panic(err)
	}
	defer other.Close()
	t, err := NewTransport(link, &TransportConfig{Logger: logger, MaxPerSource: 100})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = t.Dial(ctx, netip.MustParseAddrPort("10.0.0.2:5043"), nil)
	fmt.Println(errors.Is(err, context.Canceled), t.Stats().EndAborted)
	// Output: true 0
}
