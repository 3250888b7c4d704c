package ddpadapt

import (
	"bytes"
	"cmp"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// reuser is a program that writes to its memory as soon as the request is done, one way or another.
type reuser struct {
	sink
	mem  []byte
	done bool
}

func (u *reuser) Completed(uint64)     { u.overwriteMemory() }
func (u *reuser) Failed(uint64, error) { u.overwriteMemory() }
func (u *reuser) overwriteMemory() {
	u.done = true
	copy(u.mem, bytes.Repeat([]byte{'!'}, len(u.mem)))
}

// signCookie has host 0 sign a cookie for an INIT that is sent in the name of host 1, and returns
// the COOKIE ECHO packet.
func (w *world) signCookie(tag uint32, streams uint16) []byte {
	w.Helper()
	b := wire.AppendInit(wire.AppendHeader(nil, wirePort, wirePort+1, 0), wire.ChunkInit,
		wire.InitFields{Tag: tag, ARwnd: 1 << 20, OutStreams: streams, InStreams: streams, TSN: 7000})
	w.receiveBatch(wire.CloseChunk(wire.AppendAdaptationIndication(b, AdaptationDDP), wire.CommonHeaderLen))
	ack := w.Sent[len(w.Sent)-1].Pkt
	cs := ack.Chunks()
	c, _ := cs.Next()
	init, err := wire.AsInit(c)
	if err != nil || c.Type() != wire.ChunkInitAck || ack.VTag() != tag {
		w.Fatalf("the INIT was answered by %v, %v", c.Type(), err)
	}
	ps := init.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		if p.Type() == wire.ParamStateCookie {
			return wire.AppendCookieEcho(wire.AppendHeader(nil, wirePort, wirePort+1, init.Tag()), p.Value())
		}
	}
	w.Fatal("no cookie")
	return nil
}

// receiveBatch has host 0 read packets of host 1 at once, before anything above its association
// learns of them.
func (w *world) receiveBatch(pkts ...[]byte) {
	h := w.hosts[0]
	for _, b := range pkts {
		wire.PutChecksum(b, wire.ChecksumBytes(b))
		p := rawio.Packet{Data: b, Buf: rawio.NewBuf(b), Local: h.Addr, Remote: w.hosts[1].Addr}
		if a, _ := h.Endpoint.HandleUnmatched(w.Now, &p); a != nil { // a COOKIE ECHO
			a.HandlePacket(w.Now, &p)
		}
		p.Release()
	}
	h.m.HandleReceived(w.Now)
	w.Flush()
}

// A hostile server lets the client set an association up with it, and keeps cookies that the client
// has signed: in COOKIE-ECHOED as if the server had called too (a collision), and later as if it
// had restarted. It returns them when it likes, several in one read. Whatever it does, a session
// lasts for one life of the association and no longer, and memory that was given back to the
// program is never sent.
func TestCookiesThatAHostilePeerKeeps(t *testing.T) {
	const other, fresh, streams = 0x0BAD0BAD, 0x0BAD0001, 16
	for _, row := range []struct {
		name string
		// c, o: of a collision, with another tag and with the server's; r, R: of a restart, with
		// the server's tag, and with a fresh one
		echoes string
		lives  uint64
		tag    uint32 // of the peer afterwards, 0: as before
	}{
		{"the server swaps its tag", "c", 1, other}, // req 9260-5.2.4-11
		{"the server swaps its tag and swaps it back", "co", 1, 0},
		{"the server restarts with a fresh tag", "R", 2, fresh},
		{"the server swaps its tag and restarts with the one that all layers know", "cr", 2, 0},
		{"the server restarts, and returns a cookie of the life before", "Rr", 2, fresh},
		{"the server swaps its tag twice and restarts", "cocr", 2, 0},
	} {
		for _, reading := range []string{"each by itself", "in one read"} {
			t.Run(row.name+", "+reading, func(t *testing.T) {
				w := newHosts(t, 1480)
				w.setUpAssoc()
				w.Run(sctptest.RoundTrip)
				victim := w.hosts[0]
				must.Equal(t, "state", victim.a.State(), assoc.CookieEchoed)
				known := victim.a.PeerTag()
				cookies := map[rune][]byte{'c': w.signCookie(other, streams), 'o': w.signCookie(known, streams)}
				w.Run(time.Second)
				w.nextEvent(0, EventUp)
				w.nextEvent(1, EventUp)
				u := &reuser{mem: bytes.Repeat([]byte{'s'}, 3000)}
				s := must.Get(victim.m.Open(w.Now, streams-1, victim.newStream(u), nil))(t)
				w.Run(time.Second)
				must.OK(t, w.nextEvent(1, EventInitiate).Session.Accept(w.Now, w.hosts[1].newStream(new(sink)), nil))
				w.Run(time.Second)
				w.nextEvent(0, EventAccepted)

				// Its segments are on the way, and lost, when the cookies come.
				w.Filter = func(from int, _ wire.Packet) (int, time.Duration) { return from, 0 }
				must.OK(t, s.ds.SendTagged(1, 0, 0, ddp.Gather{{Mem: ddp.Bytes(u.mem), Len: uint64(len(u.mem))}}, 1))
				w.Flush()
				cookies['r'], cookies['R'] = w.signCookie(known, 1), w.signCookie(fresh, 1) // with one stream only
				var read [][]byte
				for _, c := range row.echoes {
					read = append(read, cookies[c])
					if reading != "in one read" {
						w.receiveBatch(read...)
						read = nil
					}
				}
				w.receiveBatch(read...)

				tag := cmp.Or(row.tag, known)
				check.That(t, victim.a.PeerTag() == tag && victim.a.Incarnation() == row.lives,
					"in its life %d with tag %#x, want %d and %#x", victim.a.Incarnation(), victim.a.PeerTag(),
					row.lives, tag)
				if row.lives == 1 {
					check.That(t, len(victim.takeEvents()) <= 0 && !u.done && s.State() == Open,
						"the session is %v, events %+v", s.State(), victim.events)
				} else {
					ev := w.nextEvent(0, EventDown)
					check.That(t, ev.Session == s && ev.Err == ErrRestarted && u.done, "event %+v", ev)
					w.nextEvent(0, EventDown)
					w.nextEvent(0, EventUp)
					check.Equal(t, "streams", victim.m.Streams(), 1)
					check.Do(victim.m.Open(w.Now, -1, victim.newStream(new(sink)), nil))(t)
				}
				w.Run(10 * time.Minute) // T3-rtx expires until the association is given up
				for _, s := range w.Sent {
					must.That(t, s.From != 0 || !bytes.Contains(s.Pkt, []byte("!!!!")),
						"memory was sent that the program had got back")
				}
				victim.takeEvents()
				check.That(t, u.done, "the memory was never given back")
			})
		}
	}
}
