package sctp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
)

// lives is a host whose peer is reborn from time to time, and associations of both.
type lives struct {
	t        *testing.T
	rnd      *rand.Rand
	clients  [2]*Transport
	b        *Transport
	server   *mempair.RestartLink
	cfg      *Config
	l        *Listener
	sock     *Socket
	ends     []*Conn
	restarts int
	failures int
}

// dialOnce sets up an association of the peer that lives, at the port of the listener or of the
// socket. The own port is one of a few: so it may be a restart.
func (v *lives) dialOnce() {
	life := v.server.Life.Load()
	if life == mempair.Dead {
		return
	}
	cfg := *v.cfg
	cfg.LocalPort = uint16(6000 + v.rnd.IntN(6))
	port := uint16(7 + v.rnd.IntN(2))
	ctx, cancel := context.WithTimeout(v.t.Context(), 5*time.Second)
	defer cancel()
	c, err := v.clients[life].Dial(ctx, netip.AddrPortFrom(v.server.LocalAddrs()[0].Addr(), port), &cfg)
	if err != nil { // the port is in use, or the peer of before is not known to be gone
		return
	}
	v.ends = append(v.ends, c)
	if port == 7 && v.rnd.IntN(4) > 0 { // others are never accepted
		if s, err := v.l.Accept(ctx); err == nil {
			v.ends = append(v.ends, s)
		}
	}
	if port == 8 {
		if s, err := v.sock.Conn(c.LocalAddr().(Addr).AddrPort); err == nil {
			v.ends = append(v.ends, s)
		}
	}
}

// actOnce lets one end do something that does not wait.
func (v *lives) actOnce() {
	if len(v.ends) == 0 {
		return
	}
	e := v.ends[v.rnd.IntN(len(v.ends))]
	now := time.Now().Add(time.Millisecond)
	switch v.rnd.IntN(10) {
	case 0, 1, 2, 3:
		_ = e.SetWriteDeadline(now)
		_, _ = e.WriteMsg(make([]byte, 1+v.rnd.IntN(9000)),
			SendInfo{Stream: uint16(v.rnd.IntN(4)), Unordered: v.rnd.IntN(2) == 0,
				Lifetime: time.Duration(v.rnd.IntN(2)) * time.Second})
	case 4: // a part of a message, or all
		_ = e.SetReadDeadline(now)
		_, _, _ = e.ReadMsg(make([]byte, 1+v.rnd.IntN(3000)))
	case 5:
		_ = v.sock.SetReadDeadline(now)
		_, _, _, _ = v.sock.ReadMsg(make([]byte, 1+v.rnd.IntN(3000)))
	case 6:
		e.Stream(uint16(v.rnd.IntN(4)))
	case 7:
		if v.rnd.IntN(4) == 0 {
			go e.Close()
		}
	case 8:
		if v.rnd.IntN(8) == 0 {
			e.Abort("over")
		}
	case 9:
		time.Sleep(time.Duration(v.rnd.IntN(300)) * time.Millisecond)
	}
}

// strikePeer is what happens to the peer: it is gone for a while, or for so long that its
// associations fail, or is born again at the same address.
func (v *lives) strikePeer() {
	life := v.server.Life.Load()
	switch v.rnd.IntN(3) {
	case 0:
		v.server.Life.Store(mempair.Dead)
		for range v.rnd.IntN(10) {
			v.actOnce()
		}
		if v.rnd.IntN(2) == 0 {
			time.Sleep(time.Minute) // nobody answers
			v.failures++
		}
		if life == mempair.Dead {
			life = 0
		}
		v.server.Life.Store(life)
	case 1:
		v.server.Life.Store(1 - max(life, 0))
		v.restarts++
	}
}

// When nothing is left every account is zero, though peers have restarted or have gone without a
// word, and messages of a one-to-many socket were never read.
func TestEveryAccountIsZeroHoweverLivesEnd(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	restarted, failed, lost := uint64(0), uint64(0), 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &lives{t: t, rnd: rand.New(rand.NewPCG(seed, 7))}
				v.clients, v.b, v.server = newReborn(t)
				v.cfg = &Config{RecvBuffer: 8000 + v.rnd.IntN(60_000), SendBuffer: 1 << 16, Backlog: 8,
					Events: v.rnd.IntN(3), RTOInitial: 200 * time.Millisecond, RTOMin: 100 * time.Millisecond,
					RTOMax:          time.Second,
					AssocMaxRetrans: 3, PathMaxRetrans: 2, MaxInitRetrans: 2, HeartbeatInterval: 5 * time.Second}
				v.l = must.Get(v.b.Listen(7, v.cfg))(t)
				v.sock = must.Get(v.b.OpenSocket(8, v.cfg))(t)
				for range 30 {
					v.dialOnce()
					for range v.rnd.IntN(12) {
						v.actOnce()
					}
					v.strikePeer()
				}
				waits := 0
				for _, e := range v.ends {
					waits += e.Stats().Buffered
				}
				lost += waits
				totals := v.b.Totals()
				restarted += totals.Restarts
				failed += v.b.Stats().EndTimeout
				v.l.Close()
				v.sock.Close() // with what nobody has read
				for _, tr := range []*Transport{v.clients[0], v.clients[1], v.b} {
					for _, c := range tr.liveConns() {
						c.Abort("")
					}
				}
				for _, c := range v.ends { // what is unread is given back
					c.Abort("")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				for name, tr := range map[string]*Transport{"the host": v.b, "the first peer": v.clients[0],
					"the second": v.clients[1]} {
					check.Equal(t, name, tr.unsettledAccounts(), "")
					tr.Close()
					check.Equal(t, "octets that are counted when it is closed: "+name, tr.Memory().Used, 0)
				}
			})
		})
	}
	t.Log(restarted, failed, lost)
	check.That(t, restarted > 0 && failed > 0 && lost > 0,
		"%d restarts, %d associations that nobody answered, %d octets unread: too few", restarted, failed, lost)
}
