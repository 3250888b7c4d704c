package sctp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/wire"
)

// script plays peers to a Transport, whose link the test reads for it.
type script struct {
	testing.TB
	tr   *Transport
	l    *Listener
	peer *mem.Link
	r    receiver
	ends []*end
}

// end is an SCTP endpoint that the script plays.
type end struct {
	name      string
	from      netip.AddrPort
	port, to  uint16 // its SCTP port, and the Transport's
	tag, that uint32 // its own tag, and that of the Transport's association
	tsn       wire.TSN
	ack       wire.Init // the answer to its INIT
}

const scriptPort, dialPort = 5000, 5001

func newScript(t testing.TB, cfg *TransportConfig) *script {
	addrs := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:0"), netip.MustParseAddrPort("10.0.0.3:0")}
	la, lb := mempair.New(t, mem.Options{MTU: 1500, A: addrs})
	s := &script{TB: t, peer: la}
	s.tr = must.Get(NewTransport(&deaf{lb, make(chan struct{})}, cfg))(t)
	t.Cleanup(func() { s.tr.Close(); la.Close() })
	s.l = must.Get(s.tr.Listen(scriptPort, quiet))(t)
	s.r = newReceiver(s.tr, nil, false)
	return s
}

// addEnd makes one more endpoint; its tag is unlike all others.
func (s *script) addEnd(name, from string, port uint16) *end {
	n := uint32(len(s.ends) + 1)
	e := &end{name: name, from: netip.MustParseAddrPort(from), port: port, to: scriptPort, tag: n << 20,
		tsn: wire.TSN(n << 8)}
	s.ends = append(s.ends, e)
	return e
}

func (e *end) packetOf(tag uint32, chunks ...[]byte) rawio.Packet {
	return rawio.Packet{Data: sctptest.Packet(e.port, e.to, tag, chunks...),
		Local: netip.MustParseAddrPort("10.0.0.2:0"), Remote: e.from}
}

// packetToUs makes a packet with the tag that the association wants.
func (e *end) packetToUs(chunks ...[]byte) rawio.Packet { return e.packetOf(e.that, chunks...) }

func (e *end) initPacket(params ...[]byte) rawio.Packet {
	return e.packetOf(0, sctptest.InitChunk(e.tag, e.tsn, params...))
}

func (e *end) dataPacket() rawio.Packet {
	e.tsn++
	return e.packetToUs(sctptest.DataChunk(e.tsn-1, 0, 0, "message"))
}

// deliverPackets hands packets over in one batch.
func (s *script) deliverPackets(pkts ...rawio.Packet) {
	s.r.beginRun()
	copy(s.r.pkts, pkts)
	s.r.dispatchBatch(len(pkts))
	s.r.finishRun(nil)
}

// takeAnswers returns what the ends have got since it was called last, each kind once.
func (s *script) takeAnswers() (list []string) {
	synctest.Wait()
	pkts := make([]rawio.Packet, 64)
	for n := s.peer.PollBatch(pkts); n > 0; n = s.peer.PollBatch(pkts) {
		for i := range n {
			list = append(list, s.describePacket(&pkts[i])...)
			pkts[i].Release()
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// describePacket says which chunks a packet has, and for which end it is by its tag: T stands for a
// tag that it has only reflected.
func (s *script) describePacket(p *rawio.Packet) (list []string) {
	pkt := wire.Packet(p.Data)
	name := "nobody"
	for _, e := range s.ends {
		if e.port != pkt.DstPort() || e.from != p.Local {
			continue
		}
		switch pkt.VTag() {
		case e.tag:
			name = e.name
		case e.that:
			name = e.name + " T"
		}
		if c := sctptest.ChunkOf(pkt, wire.ChunkInitAck); c != nil && e.tag == pkt.VTag() {
			e.ack = slices.Clone(must.Get(wire.AsInit(c))(s))
		}
	}
	for _, c := range sctptest.ChunkTypes(pkt) {
		list = append(list, fmt.Sprint(name, ": ", c))
	}
	return list
}

// cookieEcho sends an INIT, and returns the COOKIE ECHO for its answer.
func (s *script) cookieEcho(e *end, params ...[]byte) rawio.Packet {
	s.TB.Helper()
	s.deliverPackets(e.initPacket(params...))
	s.takeAnswers()
	must.That(s.TB, e.ack != nil, "%s: no INIT ACK", e.name)
	return s.cookieEchoOf(e)
}

func (s *script) cookieEchoOf(e *end) rawio.Packet {
	e.that = e.ack.Tag()
	return e.packetToUs(wire.AppendCookieEcho(nil,
		slices.Clone(sctptest.ParamOf(e.ack, wire.ParamStateCookie).Value())))
}

// setUp sets an association up.
func (s *script) setUp(e *end, params ...[]byte) *Conn {
	s.TB.Helper()
	s.deliverPackets(s.cookieEcho(e, params...))
	s.takeAnswers()
	return must.Get(s.l.Accept(deadlineCtx(s.TB)))(s.TB)
}

// startDial has the Transport set an association up with an end, as far as its COOKIE ECHO.
func (s *script) startDial(name, from string, params ...[]byte) *end {
	s.TB.Helper()
	e := s.addEnd(name, from, 7003)
	e.to = dialPort
	go s.tr.Dial(deadlineCtx(s.TB), netip.AddrPortFrom(e.from.Addr(), e.port),
		&Config{LocalPort: dialPort, DisablePMTUD: true, HeartbeatInterval: -1})
	synctest.Wait()
	var pkts [1]rawio.Packet
	must.Equal(s.TB, "packets of Dial", s.peer.PollBatch(pkts[:]), 1)
	e.that = must.Get(wire.AsInit(sctptest.ChunkOf(pkts[0].Data, wire.ChunkInit)))(s.TB).Tag()
	pkts[0].Release()
	s.deliverPackets(e.packetToUs(sctptest.InitAckChunk(e.tag, e.tsn, []byte("cookie"), params...)))
	check.Equal(s.TB, "answer to INIT ACK", strings.Join(s.takeAnswers(), ", "), name+": COOKIE ECHO")
	return e
}

// Each packet of a batch sees what the one before it has left, as if they had come one by one: what
// comes behind the end of an association is for what there is then, be it a new association or
// nobody. It is so as well where the packets wait for the owner of the association.
func TestPacketsOfABatchSeeWhatThoseBeforeHaveLeft(t *testing.T) {
	// req 9260-8.4-3, 9260-8.4-5, 9260-8.4-7, 9260-8.4-10
	const one, three = "10.0.0.1:0", "10.0.0.3:0"
	abort := wire.AppendAbort(nil, false)
	complete := wire.AppendShutdownComplete(nil, false)
	fragment := func(e *end, flags uint8) rawio.Packet {
		b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: e.tsn, PayloadLen: 8})
		e.tsn++
		return e.packetToUs(append(b, "fragment"...))
	}
	for _, row := range []struct {
		name  string
		cfg   *TransportConfig
		alone bool // the packets are not for the backlog of one association
		play  func(s *script, a *end, c *Conn) []rawio.Packet
		want  string
	}{
		{"ABORT, INIT", nil, false, func(s *script, a *end, _ *Conn) []rawio.Packet {
			return []rawio.Packet{a.packetToUs(abort), s.addEnd("B", one, a.port).initPacket()}
		}, "B: INIT ACK"},
		{"ABORT, INIT from another UDP port", nil, false, func(s *script, a *end, _ *Conn) []rawio.Packet {
			return []rawio.Packet{a.packetToUs(abort), s.addEnd("B", "10.0.0.1:9899", a.port).initPacket()}
		}, "B: INIT ACK"},
		{"ABORT, INIT from another address that lists the first", nil, false,
			func(s *script, a *end, _ *Conn) []rawio.Packet {
				return []rawio.Packet{a.packetToUs(abort),
					s.addEnd("B", three, a.port).initPacket(wire.AppendAddressParam(nil, a.from.Addr()))}
			}, "B: INIT ACK"},
		{"ABORT, DATA", nil, false, func(s *script, a *end, _ *Conn) []rawio.Packet {
			return []rawio.Packet{a.packetToUs(abort), a.dataPacket()}
		}, "A T: ABORT"},
		{"ABORT, DATA in a row, INIT", nil, false, func(s *script, a *end, _ *Conn) []rawio.Packet {
			s.deliverPackets(fragment(a, wire.FlagB))
			s.takeAnswers()
			list := []rawio.Packet{fragment(a, 0), fragment(a, 0), fragment(a, 0), a.packetToUs(abort)}
			for range 20 {
				list = append(list, fragment(a, 0))
			}
			return append(list, s.addEnd("B", one, a.port).initPacket())
		}, "A T: ABORT, B: INIT ACK or A T: ABORT, A: SACK, B: INIT ACK"},
		{"SHUTDOWN COMPLETE, INIT", nil, false, func(s *script, a *end, _ *Conn) []rawio.Packet {
			s.deliverPackets(a.packetToUs(wire.AppendShutdown(nil, a.ack.TSN()-1)))
			check.Equal(s.TB, "answer to SHUTDOWN", strings.Join(s.takeAnswers(), ", "), "A: SHUTDOWN ACK")
			return []rawio.Packet{a.packetToUs(complete), s.addEnd("B", one, a.port).initPacket()}
		}, "B: INIT ACK"},
		{"SHUTDOWN ACK, and once more", nil, false, func(s *script, a *end, c *Conn) []rawio.Packet {
			go c.Close()
			check.Equal(s.TB, "sent by Close", strings.Join(s.takeAnswers(), ", "), "A: SHUTDOWN")
			ack := wire.AppendShutdownAck(nil)
			return []rawio.Packet{a.packetToUs(ack), a.packetToUs(ack)}
		}, "A T: SHUTDOWN COMPLETE, A: SHUTDOWN COMPLETE"},
		{"Protocol Violation, INIT", nil, false, func(s *script, a *end, _ *Conn) []rawio.Packet {
			return []rawio.Packet{a.packetToUs(sctptest.DataChunk(a.tsn, 0, 0, "")),
				s.addEnd("B", one, a.port).initPacket()}
		}, "A: ABORT, B: INIT ACK"},
		{"COOKIE ECHO, DATA", nil, true, func(s *script, _ *end, _ *Conn) []rawio.Packet {
			b := s.addEnd("B", one, 7002)
			return []rawio.Packet{s.cookieEcho(b), b.dataPacket()}
		}, "B: COOKIE ACK, B: SACK"},
		{"COOKIE ECHO, ABORT, INIT", nil, true, func(s *script, _ *end, _ *Conn) []rawio.Packet {
			b := s.addEnd("B", one, 7002)
			return []rawio.Packet{s.cookieEcho(b), b.packetToUs(abort), s.addEnd("C", one, 7002).initPacket()}
		}, "B: COOKIE ACK, C: INIT ACK"},
		{"COOKIE ECHO, DATA from an address that another's peer has only named", nil, true,
			func(s *script, _ *end, _ *Conn) []rawio.Packet {
				b, c := s.addEnd("B", one, 7002), s.addEnd("C", three, 7002)
				claims := s.setUp(b, wire.AppendAddressParam(nil, c.from.Addr()))
				time.Sleep(10 * time.Minute) // no HEARTBEAT to it is answered
				core, _ := claims.lock()
				given := core.Unverified(1)
				claims.unlock()
				must.That(s.TB, given, "the address is not given up")
				return []rawio.Packet{s.cookieEcho(c), c.dataPacket()}
			}, "C: COOKIE ACK, C: SACK"},
		{"restart: COOKIE ECHO, DATA with the new tag, DATA with the old", nil, false,
			func(s *script, a *end, _ *Conn) []rawio.Packet {
				b := s.addEnd("B", one, a.port)
				return []rawio.Packet{s.cookieEcho(b), b.dataPacket(), a.dataPacket()}
			}, "B: COOKIE ACK, B: SACK"},
		{"restart, ABORT of the new one, INIT", nil, false, func(s *script, a *end, _ *Conn) []rawio.Packet {
			b := s.addEnd("B", one, a.port)
			return []rawio.Packet{s.cookieEcho(b), b.packetToUs(abort), s.addEnd("C", one, a.port).initPacket()}
		}, "C: INIT ACK or B: COOKIE ACK, C: INIT ACK"},
		{"ABORT, COOKIE ECHO of a new association, DATA for it", nil, false,
			func(s *script, a *end, _ *Conn) []rawio.Packet {
				b := s.addEnd("B", one, a.port)
				return []rawio.Packet{s.cookieEcho(b), a.packetToUs(abort), s.cookieEchoOf(b), b.dataPacket()}[1:]
			}, "B: COOKIE ACK, B: SACK"},
		{"ABORT, COOKIE ECHO for the only place", &TransportConfig{MaxAssocs: 1}, true,
			func(s *script, a *end, _ *Conn) []rawio.Packet {
				b := s.addEnd("B", one, 7002)
				return []rawio.Packet{a.packetToUs(abort), s.cookieEcho(b), b.dataPacket()}
			}, "B: COOKIE ACK, B: SACK"},
		{"associations in turn", nil, true, func(s *script, a *end, _ *Conn) []rawio.Packet {
			b, c := s.addEnd("B", one, 7002), s.addEnd("C", one, 7002)
			s.setUp(b)
			return []rawio.Packet{a.dataPacket(), b.packetToUs(abort), a.dataPacket(), c.initPacket(), a.dataPacket(),
				b.dataPacket(), a.dataPacket()}
		}, "A: SACK, B T: ABORT, C: INIT ACK"},
		{"ABORT, a report about what was sent", nil, false, func(s *script, a *end, _ *Conn) []rawio.Packet {
			report := rawio.Packet{Kind: rawio.KindProtoUnreachable, Data: sctptest.Packet(scriptPort, a.port, a.tag),
				Remote: a.from}
			return []rawio.Packet{a.packetToUs(abort), report, s.addEnd("B", one, a.port).initPacket()}
		}, "B: INIT ACK"},
		{"COOKIE ACK, ABORT of a host that the INIT ACK has named", nil, true,
			func(s *script, _ *end, _ *Conn) []rawio.Packet {
				b := s.startDial("B", one, wire.AppendAddressParam(nil, netip.MustParseAddr("10.0.0.3")))
				refusal := b.packetOf(b.tag, wire.AppendAbort(nil, true))
				refusal.Remote = netip.MustParseAddrPort(three)
				return []rawio.Packet{b.packetToUs(wire.AppendCookieAck(nil)), refusal, b.dataPacket()}
			}, "B T: ABORT"},
	} {
		for _, how := range []string{"one by one", "in a batch", "in the backlog"} {
			if row.alone && how == "in the backlog" {
				continue
			}
			t.Run(row.name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newScript(t, row.cfg)
					a := s.addEnd("A", one, 7001)
					c := s.setUp(a)
					pkts := row.play(s, a, c)
					s.takeAnswers()
					switch how {
					case "one by one":
						for _, p := range pkts {
							s.deliverPackets(p)
						}
					case "in a batch":
						s.deliverPackets(pkts...)
					default:
						c.lock()
						s.deliverPackets(pkts...)
						c.unlock()
					}
					got := strings.Join(s.takeAnswers(), ", ")
					check.That(t, slices.Contains(strings.Split(row.want, " or "), got), "answers: %s, want %s", got,
						row.want)
					check.That(t, isAllZero(s.r.conns) && isAllZero(s.r.isDeferred) &&
						s.r.numDeferred == 0, "the reader keeps something of the packets")
				})
			})
		}
	}
}

// What follows on a COOKIE ECHO belongs to the new association: it is no set-up, of which only so
// many are looked at in a second.
func TestDataBehindACookieEchoIsNoSetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, &TransportConfig{MaxSetups: 16})
		a := s.addEnd("A", "10.0.0.1:0", 7001)
		pkts := []rawio.Packet{s.cookieEcho(a)}
		for range 60 {
			pkts = append(pkts, a.dataPacket())
		}
		s.deliverPackets(pkts...)
		c := must.Get(s.l.Accept(deadlineCtx(t)))(t)
		check.Equal(t, "DATA chunks received", c.Stats().DataIn, 60)
		check.Equal(t, "packets that were too many", s.tr.ep.Stats().OverBudget, 0)
		s.takeAnswers()
	})
}

// What waits for the owner of an association when that ends is for what comes after it, whenever it
// has come.
func TestBacklogOutlivesItsAssociation(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(s *script, c *Conn, init rawio.Packet)
	}{
		{"it came before the end", func(s *script, c *Conn, init rawio.Packet) {
			a, now := c.lock()
			s.deliverPackets(init)
			a.Abort(now, nil)
			c.unlock()
		}},
		{"before its owner has seen to all", func(s *script, c *Conn, init rawio.Packet) {
			a, now := c.lock()
			a.Abort(now, nil)
			c.flushPending(now)
			s.deliverPackets(init)
			c.unlock()
		}},
		{"before the backlog is closed", func(s *script, c *Conn, init rawio.Packet) {
			a, now := c.lock()
			a.Abort(now, nil)
			c.flushPending(now)
			s.deliverPackets(init)
			left := c.runUnlockTasks(taskCloseAccount, nil)
			check.Equal(s.TB, "packets left", len(left), 1)
			s.tr.redeliverPackets(c, left)
			c.unlock()
		}},
		{"when it is closed, while the association is in use", func(s *script, c *Conn, init rawio.Packet) {
			a, now := c.lock()
			a.Abort(now, nil)
			c.flushPending(now)
			c.runUnlockTasks(taskCloseAccount, nil)
			s.deliverPackets(init)
			c.unlock()
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, nil)
				a := s.addEnd("A", "10.0.0.1:0", 7001)
				c := s.setUp(a)
				row.end(s, c, s.addEnd("B", "10.0.0.1:0", 7001).initPacket())
				check.Equal(t, "sent", strings.Join(s.takeAnswers(), ", "), "A: ABORT, B: INIT ACK")
				check.That(t, isClosed(c.Done()) && s.tr.ep.Len() == 0, "the association is still there")
			})
		})
	}
}

// An association that has ended is not found any more where packets behind its end wait for that,
// though its owner has yet to see to the rest.
func TestEndedAssociationIsFoundNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, nil)
		a := s.addEnd("A", "10.0.0.1:0", 7001)
		c := s.setUp(a)
		core, now := c.lock()
		core.Abort(now, nil)
		s.tr.removeFromIndex(c)
		s.deliverPackets(a.dataPacket())
		check.Equal(t, "answer", strings.Join(s.takeAnswers(), ", "), "A T: ABORT")
		c.unlock()
		check.Equal(t, "sent by its owner", strings.Join(s.takeAnswers(), ", "), "A: ABORT")
	})
}
