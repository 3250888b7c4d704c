package assoc_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/count"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// placingLab is passiveLab with an upper layer that places.
func placingLab(t *testing.T) *lab {
	l := bareLab(t)
	l.h.placer = &placer{}
	l.listen(nil)
	l.shake()
	return l
}

// sentLab has sent n messages that fill a packet each.
func sentLab(t *testing.T, n int) *lab {
	l := passiveLab(t, nil)
	for range n {
		if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{make([]byte, 1300)}}); err != nil {
			t.Fatal(err)
		}
	}
	l.flush()
	return l
}

func gapSack(cum wire.TSN, start, end uint16, dups ...wire.TSN) []byte {
	return wire.AppendSack(nil, wire.SackFields{CumTSN: cum, ARwnd: 1 << 20, Gaps: []wire.GapBlock{{Start: start, End: end}}, Dups: dups})
}

// Every counter counts: there is a row for each field, which drives a real association with packets.
func TestEveryCounterCounts(t *testing.T) {
	echoLate := func(t *testing.T, d time.Duration, spoil byte) *lab {
		l := passiveLab(t, nil)
		l.peerTag = 0x22222222
		l.initiate()
		l.now = l.now.Add(d)
		l.cookie[len(l.cookie)-1] ^= spoil
		l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
		return l
	}
	quote := func(tag uint32) []byte { return packet(portB, portA, tag) }
	idle := func(t *testing.T) *lab {
		l := passiveLab(t, nil)
		l.wait(40 * time.Second)
		return l
	}
	probing := func(t *testing.T) *assoc.Assoc {
		r := newRoad(t, roadIPv4, 1500, simnet.Params{})
		a, _ := r.join(quiet, quiet)
		r.run(time.Second)
		return a
	}
	marked := func(t *testing.T) *assoc.Assoc {
		l := marksLab(t)
		l.marked(rawio.CE, l.tsn)
		return l.a
	}
	full := func(t *testing.T) *lab { // a window of 1500 octets, with a gap
		l := passiveLab(t, &assoc.Config{RecvBuffer: 1500})
		b := dataChunk(l.tsn+1, 0, 1, strings.Repeat("x", 1500))
		b[1] &^= wire.FlagU // it waits for the message before it
		l.send(l.tag, b)
		l.tsn += 2
		return l
	}
	of := func(f func(t *testing.T) *lab) func(*testing.T) *assoc.Assoc {
		return func(t *testing.T) *assoc.Assoc { return f(t).a }
	}
	passive := func(f func(l *lab)) func(*testing.T) *assoc.Assoc {
		return func(t *testing.T) *assoc.Assoc {
			l := passiveLab(t, nil)
			f(l)
			return l.a
		}
	}
	oneData := passive(func(l *lab) { l.send(l.tag, l.data("x")) })
	sentOne := of(func(t *testing.T) *lab { return sentLab(t, 1) })
	twoPaths := func(t *testing.T) *assoc.Assoc {
		w := newMulti(t, 2)
		a, _ := w.associate(assoc.Config{}, assoc.Config{})
		w.run(time.Second)
		w.cut(1)
		w.run(20 * time.Minute)
		return a
	}
	fast := of(func(t *testing.T) *lab {
		l := sentLab(t, 4)
		l.send(l.tag, gapSack(l.hostTSN-1, 2, 2))
		l.send(l.tag, gapSack(l.hostTSN-1, 2, 3))
		l.send(l.tag, gapSack(l.hostTSN-1, 2, 4))
		return l
	})
	beatAck := wire.AppendHeartbeat(nil, make([]byte, 32))
	beatAck[0] = byte(wire.ChunkHeartbeatAck)
	rows := map[string]func(t *testing.T) *assoc.Assoc{
		"PacketsIn": oneData, "OctetsIn": oneData, "DataIn": oneData, "DataOctetsIn": oneData, "SacksOut": oneData,
		"PacketsOut": sentOne, "OctetsOut": sentOne, "DataOut": sentOne,
		"Placed": of(func(t *testing.T) *lab {
			l := placingLab(t)
			l.send(l.tag, l.data("place"))
			return l
		}),
		"LeftUnacked": of(func(t *testing.T) *lab {
			l := placingLab(t)
			l.send(l.tag, l.data("drop"))
			return l
		}),
		"Violations": of(func(t *testing.T) *lab {
			l := placingLab(t)
			l.send(l.tag, l.data("abort"))
			return l
		}),
		"SacksIn":         passive(func(l *lab) { l.send(l.tag, l.sack(l.hostTSN-1)) }),
		"FastRetransmits": fast, "Retransmits": fast,
		"Timeouts": of(func(t *testing.T) *lab {
			l := sentLab(t, 1)
			l.wait(1500 * time.Millisecond)
			return l
		}),
		"WindowProbes": of(func(t *testing.T) *lab {
			l := sentLab(t, 1)
			l.send(l.tag, wire.AppendSack(nil, wire.SackFields{CumTSN: l.hostTSN}))
			if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{make([]byte, 100)}}); err != nil {
				t.Fatal(err)
			}
			l.wait(2 * time.Second)
			return l
		}),
		"Reneged": of(func(t *testing.T) *lab {
			l := sentLab(t, 4)
			l.send(l.tag, gapSack(l.hostTSN-1, 2, 3))
			l.send(l.tag, l.sack(l.hostTSN-1))
			return l
		}),
		"DuplicatesReported": of(func(t *testing.T) *lab {
			l := sentLab(t, 4)
			l.send(l.tag, gapSack(l.hostTSN-1, 2, 2, l.hostTSN+1))
			return l
		}),
		"HeartbeatsIn":  passive(func(l *lab) { l.send(l.tag, wire.AppendHeartbeat(nil, []byte("x"))) }),
		"HeartbeatsOut": of(idle),
		"HeartbeatAcksIn": func(t *testing.T) *assoc.Assoc {
			w, a, _ := pair(t, nil, nil)
			w.run(time.Minute)
			return a
		},
		"MTUProbesOut": probing, "MTUProbesAcked": probing,
		"MarksIn": marked,
		"EchoesIn": of(func(t *testing.T) *lab {
			l := marksLab(t)
			if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{{1}}}); err != nil {
				t.Fatal(err)
			}
			l.flush()
			l.send(l.tag, wire.AppendECNE(nil, l.hostTSN))
			return l
		}),
		"ErrorsIn": passive(func(l *lab) {
			l.send(l.tag, wire.CloseChunk(wire.AppendInvalidStreamCause(wire.AppendError(nil), 1), 0))
		}),
		"ICMPIn":   passive(func(l *lab) { l.report(rawio.KindPacketTooBig, 1000, quote(l.peerTag)) }),
		"WrongTag": passive(func(l *lab) { l.send(l.tag+1, l.data("x")) }),
		"ForeignSource": passive(func(l *lab) {
			l.sendFrom(netip.MustParseAddrPort("10.0.0.66:0"), l.tag, l.data("x"))
		}),
		"Malformed":     passive(func(l *lab) { l.send(l.tag) }),
		"Unexpected":    passive(func(l *lab) { l.send(l.tag, wire.AppendCookieAck(nil)) }),
		"UnknownChunks": passive(func(l *lab) { l.send(l.tag, wire.AppendChunk(nil, 0xfe, 0, []byte("what"))) }),
		"DuplicatesIn": passive(func(l *lab) {
			b := l.data("x")
			l.send(l.tag, b)
			l.send(l.tag, b)
		}),
		"OutOfWindow": of(func(t *testing.T) *lab {
			l := full(t)
			l.send(l.tag, l.data("x"))
			return l
		}),
		"Evicted": of(func(t *testing.T) *lab {
			l := full(t)
			l.tsn -= 2
			l.send(l.tag, l.data("x"))
			return l
		}),
		"InvalidStream":    passive(func(l *lab) { l.send(l.tag, dataChunk(l.tsn, 4000, 0, "x")) }),
		"BadHeartbeatAcks": passive(func(l *lab) { l.send(l.tag, beatAck) }),
		"BadCookies":       func(t *testing.T) *assoc.Assoc { return echoLate(t, 0, 1).a },
		"StaleCookies":     func(t *testing.T) *assoc.Assoc { return echoLate(t, 61*time.Second, 0).a },
		"Restarts":         func(t *testing.T) *assoc.Assoc { return echoLate(t, 0, 0).a },
		"InitsIn":          func(t *testing.T) *assoc.Assoc { return echoLate(t, 0, 0).a },
		"InitsRefused": passive(func(l *lab) {
			l.send(0, initChunk(0x33333333, 1, wire.AppendAddressParam(nil, netip.MustParseAddr("10.0.0.66"))))
		}),
		"RepliesDropped": passive(func(l *lab) {
			beat := wire.AppendHeartbeat(nil, make([]byte, 700))
			l.send(l.tag, beat, beat, beat)
		}),
		"AnswersDropped": passive(func(l *lab) {
			for range 129 { // without sending in between
				l.deliver(l.peer, packet(portA, portB, 0, initChunk(l.peerTag, 1)))
			}
		}),
		"ErrorReportsLost": passive(func(l *lab) {
			e := wire.CloseChunk(wire.AppendInvalidStreamCause(wire.AppendError(nil), 1), 0)
			for range 17 { // without polling in between
				l.deliver(l.peer, packet(portA, portB, l.tag, e))
			}
		}),
		"ICMPIgnored":      passive(func(l *lab) { l.report(rawio.KindPacketTooBig, 1000, quote(0xbad)) }),
		"ICMPContradicted": passive(func(l *lab) { l.report(rawio.KindProtoUnreachable, 0, quote(l.peerTag)) }),
		"AddressesIgnored": of(func(t *testing.T) *lab {
			l := activeLab(t, nil)
			var list []byte
			for i := range assoc.MaxPaths {
				list = wire.AppendAddressParam(list, netip.AddrFrom4([4]byte{10, 2, 0, byte(i)}))
			}
			l.send(l.tag, initAckChunk(l.peerTag, l.tsn, []byte("cookie!!"), list))
			return l
		}),
		"PathsDown": twoPaths, "PathsUp": twoPaths,
	}
	count.Each(assoc.Counters{}, func(name string, _ uint64) {
		t.Run(name, func(t *testing.T) {
			drive := rows[name]
			if drive == nil {
				t.Fatal("nothing here makes it count")
			}
			count.Each(drive(t).Stats().Counters, func(other string, v uint64) {
				if other == name && v == 0 {
					t.Error("it did not count")
				}
			})
		})
	})
}

// What an association has sent counts on when the peer restarts it.
func TestCountersSurviveARestart(t *testing.T) {
	l := sentLab(t, 3)
	l.send(l.tag, l.data("x"))
	before := l.a.Stats().Counters
	l.peerTag = 0x22222222
	l.shake()
	after := l.a.Stats().Counters
	if after.Restarts != 1 || before.DataOut != 3 || after.DataOut != 3 || after.DataIn != 1 {
		t.Errorf("%d DATA out before %d restart, %d after; %d in", before.DataOut, after.Restarts, after.DataOut, after.DataIn)
	}
}
