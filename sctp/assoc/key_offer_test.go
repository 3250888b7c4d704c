package assoc_test

import (
	"bytes"
	"encoding/binary"
	"errors"
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
