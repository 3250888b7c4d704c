package assoc_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// keyParamOf returns where the parameter is in an INIT or INIT ACK, nil if it has none.
func keyParamOf(pkt wire.Packet) wire.Param {
	for _, kind := range []wire.ChunkType{wire.ChunkInit, wire.ChunkInitAck} {
		if c := sctptest.ChunkOf(pkt, kind); c != nil {
			init, _ := wire.AsInit(c)
			return sctptest.ParamOf(init, wire.ParamKeyManagement)
		}
	}
	return nil
}

// rewrite changes packets of a host on their way.
func rewrite(w *sctptest.World, change func(from int, pkt wire.Packet)) {
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		change(from, pkt)
		resum(pkt)
		return 1, 1
	}
}

func TestOffers(t *testing.T) {
	// req dtlschunk-5.1-1, dtlschunk-5.1-2
	// req dtlschunk-4.1-3
	// req dtlschunk-4.1-7, dtlschunk-4.1-8
	// req dtlschunk-4.1-12
	// req dtlschunk-5.1-8
	w, a, b := protectedPair(t)
	w.Send(a, 0, []byte("x"))
	w.Run(time.Minute)
	must.OK(t, b.Shutdown(w.Now))
	w.Run(time.Minute)
	ties := map[uint32]bool{}
	for i, kind := range []wire.ChunkType{wire.ChunkInit, wire.ChunkInitAck} {
		init := must.Get(wire.AsInit(sctptest.ChunkOf(w.Seen(i, kind)[0].Pkt, kind)))(t)
		for _, auth := range []wire.ParamType{wire.ParamRandom, wire.ParamChunkList, wire.ParamHMACAlgo} {
			check.That(t, sctptest.ParamOf(init, auth) == nil, "%v has %v", kind, auth) // req dtlschunk-3.2-1
		}
		k := must.Get(keyParamOf(w.Seen(i, kind)[0].Pkt).KeyManagement())(t)
		check.That(t, k.Server && k.Client == (i == 0) && !k.Restart && bytes.Equal(k.Methods, []byte{192}), "%v: %+v", kind, k)
		ties[k.TieBreaker] = true
	}
	check.Equal(t, "tie breakers", len(ties), 2)
	w.Each(func(s sctptest.Capture, c wire.Chunk) {
		if c.Type() != wire.ChunkInit && c.Type() != wire.ChunkInitAck && c.Type() != wire.ChunkDTLS {
			at := bytes.Index(c, []byte{0x80, 0x06, 0, 10})
			check.That(t, at < 0 || c.Type() == wire.ChunkCookieEcho, "%v has the parameter", c.Type())
		}
	})
	for i, n := range []int{1, 2} { // req dtlschunk-5.1-7
		check.That(t, w.Hosts[i].Events[0].Kind == assoc.EventUp, "the first of %d events: %v", n, w.Hosts[i].Events[0])
	}
}

// A side that wants protection does without no peer.
func TestStrictMode(t *testing.T) {
	// req dtlschunk-5.1-3, dtlschunk-5.1-4
	// req dtlschunk-5.1-6
	// req dtlschunk-5.1-10, dtlschunk-5.1-11
	// req dtlschunk-4.3.1-1, dtlschunk-4.3.1-2
	// req dtlschunk-4.3.2-1, dtlschunk-4.3.2-2
	// req dtlschunk-4.3.3-1, dtlschunk-4.3.3-2
	// req dtlschunk-4.3.4-1, dtlschunk-4.3.4-2
	plain := &assoc.Config{}
	for _, c := range []struct {
		name   string
		client *assoc.Config
		server *assoc.Config
		change func(from int, p wire.Param) // on the way
		aborts int                          // which host does
		cause  wire.CauseCode
		code   uint16
	}{
		{"the client does not want it", plain, protected, nil, 1, wire.CauseNoDTLSSupport, 100},
		{"the server does not want it", protected, plain, nil, 0, wire.CauseNoDTLSSupport, 100},
		{"removed from the INIT", protected, protected, func(from int, p wire.Param) {
			if from == 0 {
				p[1] = 0x07 // a parameter that is skipped
			}
		}, 1, wire.CauseNoDTLSSupport, 100},
		{"no method of the server", protected, protected, func(from int, p wire.Param) { p[9] = 7 }, 1,
			wire.CauseNoCommonKeyMethod, 101},
		{"no method of the client", protected, protected, func(from int, p wire.Param) {
			if from == 1 {
				p[9] = 7
			}
		}, 0, wire.CauseNoCommonKeyMethod, 101},
		{"two servers", protected, protected, func(from int, p wire.Param) { p[8] = 2 }, 1, wire.CauseKeyRoles, 103},
		{"no role", protected, protected, func(from int, p wire.Param) { p[8] = 0 }, 1, wire.CauseKeyRoles, 103},
		{"the same tie breaker", protected, protected, func(from int, p wire.Param) {
			p[8] = 3
			binary.BigEndian.PutUint32(p[4:], tieOfFirstInit)
		}, 0, wire.CauseTieBreaker, 102},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := sctptest.NewWorld(t)
			attachTLS(w.Hosts[0])
			attachTLS(w.Hosts[1])
			w.Listen(c.server)
			a := w.Connect(c.client)
			rewrite(w, func(from int, pkt wire.Packet) {
				if p := keyParamOf(pkt); p != nil && c.change != nil {
					if from == 0 {
						tieOfFirstInit = binary.BigEndian.Uint32(p[4:])
					}
					c.change(from, p)
				}
			})
			w.Run(10 * time.Second)
			check.Equal(t, "state", a.State(), assoc.Closed)
			aborts := w.Seen(c.aborts, wire.ChunkAbort)
			must.That(t, len(aborts) > 0, "host %d sends no ABORT", c.aborts)
			code, cause := sctptest.CauseOf(aborts[0].Pkt)
			check.That(t, code == c.cause && uint16(code) == c.code && len(cause) == 4, "cause %v, % x", code, cause)
			err, _ := w.Hosts[0].DownErr()
			check.That(t, errors.Is(err, syscall.ECONNREFUSED) == (c.aborts == 1), "%v", err)
			if c.cause == wire.CauseNoDTLSSupport {
				check.That(t, strings.Contains(err.Error(), "TLS"), "the error does not say what is missing: %v", err)
			}
			// req dtlschunk-4.3.1-4, dtlschunk-4.3.2-4
			// req dtlschunk-4.3.3-4, dtlschunk-4.3.4-4
			w.Each(func(_ sctptest.Capture, x wire.Chunk) {
				check.That(t, x.Type() != wire.ChunkError, "an ERROR was sent")
			})
		})
	}
}

// In loose mode a peer without protection has an association in the clear, and one with it a
// protected one. A strict side never has one in the clear.
func TestLooseMode(t *testing.T) {
	// req dtlschunk-5.1-5
	plain, loose := &assoc.Config{}, &assoc.Config{Protected: true, LooseTLS: true}
	from := func(host int, change func(p wire.Param)) func(int, wire.Param) {
		return func(from int, p wire.Param) {
			if from == host {
				change(p)
			}
		}
	}
	remove := func(p wire.Param) { p[1] = 0x07 }
	method := func(p wire.Param) { p[9] = 7 }
	for _, c := range []struct {
		name           string
		client, server *assoc.Config
		change         func(from int, p wire.Param) // on the way
		want           string
	}{
		{"both are loose", loose, loose, nil, "protected"},
		{"the client alone is loose", loose, protected, nil, "protected"},
		{"the server alone is loose", protected, loose, nil, "protected"},
		{"the server has none", loose, plain, nil, "clear"},
		{"the client has none", plain, loose, nil, "clear"},
		{"removed from the INIT", loose, loose, from(0, remove), "clear"},
		{"removed from the INIT ACK", loose, loose, from(1, remove), "none"}, // the server waits for keys
		{"no method in common", loose, loose, from(0, method), "clear"},
		{"no role in common", loose, loose, from(0, func(p wire.Param) { p[8] = 0 }), "clear"},
		{"an answer that does not fit", loose, loose, from(1, method), "none"},
		{"a strict client, removed from the INIT", protected, loose, from(0, remove), "none"},
		{"a strict server, removed from the INIT", loose, protected, from(0, remove), "none"},
		{"a strict client, a server that has none", protected, plain, nil, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := sctptest.NewWorld(t)
			attachTLS(w.Hosts[0])
			attachTLS(w.Hosts[1])
			w.Hosts[0].Reads, w.Hosts[1].Reads = true, true
			w.Listen(c.server)
			a := w.Connect(c.client)
			rewrite(w, func(from int, pkt wire.Packet) {
				if p := keyParamOf(pkt); p != nil && c.change != nil {
					c.change(from, p)
				}
			})
			w.Run(10 * time.Second)
			if c.want == "none" {
				_, up := w.Hosts[1].Event(assoc.EventUp)
				check.That(t, !up, "the server is up")
				w.Run(10 * time.Minute)
				check.Equal(t, "state", a.State(), assoc.Closed)
				return
			}
			b := w.Peer()
			check.That(t, a.IsProtected() == (c.want == "protected") && b.IsProtected() == a.IsProtected(), "protected %v, %v",
				a.IsProtected(), b.IsProtected())
			check.That(t, a.IsProtected() || a.KeySessions() == nil && b.KeySessions() == nil, "there is TLS")
			w.Send(a, 0, []byte("there"))
			w.Send(b, 0, []byte("back"))
			w.Run(time.Second)
			check.Equal(t, "received", w.Hosts[1].Received.String()+w.Hosts[0].Received.String(), "thereback")
			check.Equal(t, "sealed", isSealed(w.Sent[len(w.Sent)-1].Pkt), a.IsProtected())
			for i, h := range w.Hosts {
				check.Equal(t, "first event", h.Events[0].Kind, assoc.EventUp)
				init := must.Get(wire.AsInit(sctptest.ChunkOf(w.Seen(i, wire.ChunkInit+wire.ChunkType(i))[0].Pkt,
					wire.ChunkInit+wire.ChunkType(i))))(t)
				p := sctptest.ParamOf(init, wire.ParamSupportedExtensions)
				isLoose := []*assoc.Config{c.client, c.server}[i] == loose
				check.That(t, p == nil || !isLoose || !must.Get(p.ListsChunk(wire.ChunkAsconf))(t),
					"loose mode offers ASCONF") // req dtlschunk-1.1-2
			}
			check.Error(t, "another address", a.AddLocalAddr(w.Now, netip.MustParseAddr("192.0.2.1")),
				assoc.ErrAddrChangesUnsupported)
			must.OK(t, a.Shutdown(w.Now))
			w.Run(time.Second)
			check.Equal(t, "state at the end", b.State(), assoc.Closed)
		})
	}
}

// Both sides connect at once, and one of them has no protection: they go on in the clear if the other
// is loose.
func TestLooseCollision(t *testing.T) {
	// req dtlschunk-5.1-5
	for seed := range 4 {
		w := sctptest.NewWorld(t)
		for i, h := range w.Hosts {
			h.Reboot(int64(100*seed+i), 0)
			attachTLS(h)
			h.Reads = true
		}
		w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
			if seed%2 == 1 && from == 1 && sctptest.Has(pkt, wire.ChunkInitAck) {
				return 0, 0 // the COOKIE ECHO alone says that there is no protection
			}
			return 1, 0
		}
		a := w.ConnectFrom(0, sctptest.PortA, sctptest.PortB, &assoc.Config{Protected: true, LooseTLS: true})
		b := w.ConnectFrom(1, sctptest.PortB, sctptest.PortA, &assoc.Config{})
		w.Run(5 * time.Second)
		check.That(t, a.State() == assoc.Established && b.State() == assoc.Established && !a.IsProtected(), "%v, %v",
			a.State(), b.State())
		w.Send(a, 0, []byte("x"))
		w.Run(time.Second)
		check.Equal(t, "received", w.Hosts[1].Received.Len(), 1)
	}
}

// What was set up with protection is not set up anew in the clear, in loose mode either: an attacker
// removes the parameter from the INIT of a peer that comes back.
func TestNoDowngradeOfAnAssociation(t *testing.T) {
	// req dtlschunk-5.1-5
	loose := &assoc.Config{Protected: true, LooseTLS: true}
	w := sctptest.NewWorld(t)
	attachTLS(w.Hosts[0])
	attachTLS(w.Hosts[1])
	w.Listen(loose)
	w.Connect(loose)
	w.Run(10 * time.Second)
	b := w.Peer()
	must.That(t, b.IsProtected(), "no keys")
	w.Hosts[0].Reboot(77, 0)
	attachTLS(w.Hosts[0])
	rewrite(w, func(from int, pkt wire.Packet) {
		if p := keyParamOf(pkt); p != nil {
			p[1] = 0x07
		}
	})
	w.ConnectFrom(0, sctptest.PortA, sctptest.PortB, loose)
	w.Run(20 * time.Second)
	_, restarted := w.Hosts[1].Event(assoc.EventRestart)
	check.That(t, b.IsProtected() && b.State() == assoc.Established && !restarted, "%v, protected %v", b.State(), b.IsProtected())
}

var tieOfFirstInit uint32

// Both sides connect at the same moment: the larger tie breaker is the server.
func TestCollision(t *testing.T) {
	// req dtlschunk-5.1-9
	for seed := range 8 {
		w := sctptest.NewWorld(t)
		logs := [2]*fakeTLS{}
		for i, h := range w.Hosts {
			h.Reboot(int64(100*seed+i), 0)
			logs[i] = attachTLS(h)
		}
		a := w.ConnectFrom(0, sctptest.PortA, sctptest.PortB, protected)
		b := w.ConnectFrom(1, sctptest.PortB, sctptest.PortA, protected)
		w.Run(5 * time.Second)
		must.That(t, a.IsProtected() && b.IsProtected(), "%v and %v without keys: %v %v", a.State(), b.State(),
			w.Hosts[0].Events, w.Hosts[1].Events)
		var ties [2]uint32
		for i := range ties {
			k := must.Get(keyParamOf(w.Seen(i, wire.ChunkInit)[0].Pkt).KeyManagement())(t)
			ties[i] = k.TieBreaker
			// The INIT ACK has the same.
			check.Slice(t, "parameter", keyParamOf(w.Seen(i, wire.ChunkInitAck)[0].Pkt), keyParamOf(w.Seen(i, wire.ChunkInit)[0].Pkt))
		}
		for i := range ties {
			want := "client"
			if ties[i] > ties[1-i] {
				want = "server"
			}
			check.Equal(t, "role", logs[i].log[0], want)
		}
	}
}

// Each bit of a parameter that is changed on its way keeps the association from coming up: the
// parameters are in the keys.
func TestChangedOffers(t *testing.T) {
	// req dtlschunk-10.3-1
	for bit := range 8 * 10 {
		for from := range 2 {
			w, _, _ := keyWorld(t)
			a := w.Connect(protected)
			rewrite(w, func(f int, pkt wire.Packet) {
				if p := keyParamOf(pkt); p != nil && f == from {
					p[bit/8] ^= 1 << (bit % 8)
				}
			})
			w.Run(5 * time.Minute)
			check.That(t, !a.IsProtected() || len(w.Hosts[1].Assocs) == 0 || w.Peer().State() == assoc.Closed,
				"bit %d of host %d: up", bit, from)
			for i, h := range w.Hosts {
				up, ok := h.Event(assoc.EventUp)
				if from == 0 && i == 0 { // the client hears nothing that opens
					check.That(t, !ok, "bit %d of host %d: %v", bit, from, up)
				}
			}
			check.Equal(t, "state at the end", a.State(), assoc.Closed)
		}
	}
}

// A parameter that is longer than this side keeps is refused, and one of its length is kept whole.
func TestLongOffers(t *testing.T) {
	// req dtlschunk-4.1-10: there is none but in the first, and it is not zero
	// req dtlschunk-5.1-13: the last of them is the first that this side has
	for _, c := range []struct {
		methods int
		ok      bool
	}{{1, true}, {54, true}, {55, true}, {56, false}, {200, false}} {
		methods := bytes.Repeat([]byte{9}, c.methods)
		methods[c.methods-1] = 192
		param := wire.AppendKeyManagement(nil, wire.KeyManagement{TieBreaker: 1, Client: true, Methods: methods})
		for i := 9 + c.methods; i < len(param); i++ {
			param[i] = 0xff
		}
		l := sctptest.NewLab(t)
		l.Listen(protected)
		out := l.Send(0, sctptest.InitChunk(7, 7, param))
		check.Equal(t, "acked", len(out) == 1 && sctptest.Has(out[0], wire.ChunkInitAck), c.ok)
		if !c.ok {
			code, _ := sctptest.CauseOf(out[0])
			check.Equal(t, "cause", code, wire.CauseProtocolViolation)
		}
	}
}
