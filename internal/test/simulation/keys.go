package simulation

import (
	"bytes"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// keyWorld is what a world has whose associations are encrypted by DTLS chunks.
type keyWorld struct {
	*Keys
	w    *World
	last *rawio.Packet // a copy of the last packet that was sealed
}

// NewEncrypted makes a world from a seed whose associations are encrypted.
func NewEncrypted(seed uint64) *World {
	w := New(seed)
	w.hash = firstHash + 2
	w.keys = &keyWorld{w: w, Keys: NewKeys(w.Env, simnet.NewRand(seed^0x746c73))}
	for _, h := range []*Host{w.a, w.b} {
		h.cfg.Protected, h.cfg.Restartable = true, true
		h.node.Out = w.keys.send
	}
	w.keys.rekeyLater()
	if w.keys.rand.IntN(3) == 0 {
		w.keys.crashLater(1 + w.keys.rand.IntN(3))
	}
	return w
}

// crashLater has A crash so many times, now and then.
func (k *keyWorld) crashLater(times int) {
	k.w.After(time.Duration(k.rand.IntN(2000))*time.Millisecond, func() {
		switch {
		case k.w.finishing || times == 0:
		case k.crash():
			k.crashLater(times - 1)
		default:
			k.crashLater(times)
		}
	})
}

// send gives a packet to the network, once the ledger has it.
func (k *keyWorld) send(p *rawio.Packet) {
	if wrong := k.Note(p); wrong != "" {
		k.w.failf("%v -> %v: %s", p.Local, p.Remote, wrong)
	}
	k.last = &rawio.Packet{Vec: [][]byte{bytes.Join(p.Vec, nil)}}
	k.w.net.Send(k.w.now, p)
}

// crash has A lose all but its restart keys, in the middle of everything, and set the association
// up again with them. It returns false where either side has none at the moment.
func (k *keyWorld) crash() bool {
	w := k.w
	if w.conn == nil || len(w.b.conns) == 0 || w.assocKiller.on {
		return false
	}
	c, peer := w.conn, w.b.currentConn()
	if !k.keeps(c) || !k.keeps(peer) || !w.bothConnected() {
		return false
	}
	w.cutOff()
	c.down, c.closing, c.flushing = errCrash, nil, nil
	for _, l := range w.workloads {
		if l.q.h == w.a && !l.q.over {
			l.q.over = true
			l.q.core.Ended()
		}
	}
	w.a.node.Crash()
	w.coverage.Restarts++
	w.sessions += len(w.slots)
	w.ops += 10
	w.connectHosts()
	return true
}

// rekeyLater has either side ask for new keys now and then.
func (k *keyWorld) rekeyLater() {
	k.w.After(time.Duration(k.rand.IntN(3000))*time.Millisecond, func() {
		if c := []*Host{k.w.a, k.w.b}[k.rand.IntN(2)]; len(c.conns) > 0 && c.currentConn().down == nil {
			c.currentConn().a.Rekey(c.node.Time())
			c.currentConn().Pump()
		}
		if !k.w.finishing {
			k.rekeyLater()
		}
	})
}

// setupLost takes the end of an association that has got no keys in time. Another one is set up,
// from another port: what the peer has of the old one is encrypted already, or will end by itself.
func (k *keyWorld) setupLost(c *conn) (excused bool) {
	if k == nil || !c.peerless && c.up {
		return false
	}
	if c.h == k.w.a && c == k.w.conn {
		for _, peer := range k.w.b.conns {
			peer.peerless = true
		}
		k.w.local++
		k.w.coverage.Retried++
		k.w.scheduleAfter(time.Millisecond, k.w.connectHosts)
	}
	return true
}

// tls is what runs the handshakes of the world's associations, nil if they are in the clear.
func (w *World) tls() *Keys {
	switch {
	case w.keys != nil:
		return w.keys.Keys
	case w.joined != nil:
		return w.joined.keys
	}
	return nil
}

// countRekeys counts the handshakes of an association that has ended.
func (w *World) countRekeys(c *conn) {
	if k := w.tls(); k != nil && c.h.cfg.Protected {
		k.Forget(c)
		w.coverage.Rekeys += int(max(c.a.Stats().Keys.Handshakes, 1)) - 1
	}
}
