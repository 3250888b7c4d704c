package sctp

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/netconn"
	"github.com/rddp-go/rddp/sctp/wire"
)

var carriedPeer = netip.AddrPortFrom(netconn.PeerAddr, 5000)

// initsOf makes the INITs of two ends, as each of them has them.
func initsOf(t *testing.T, cfgs ...*Config) (a, b *Inits) {
	one, other := must.Get(NewInit(cfgs[0], rawio.NoErrorDetection))(t), must.Get(NewInit(cfgs[1], rawio.NoErrorDetection))(t)
	return &Inits{Own: one, Peer: other}, &Inits{Own: other, Peer: one}
}

// Associations by INITs are there without a packet, and carry messages at once. Of what the ends
// offer they have what both do.
func TestAssociationByInits(t *testing.T) {
	for _, row := range []struct {
		name       string
		one, other Config
		extensions Extensions
		streams    int
	}{
		{"alike", Config{PartialReliability: true, Interleaving: true, OutStreams: 100},
			Config{PartialReliability: true, Interleaving: true, OutStreams: 100}, PartialReliability | Interleaving, 100},
		{"one offers less", Config{PartialReliability: true, OutStreams: 100}, Config{OutStreams: 10, InStreams: 50}, 0, 50},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCarried(t)
				var sent atomic.Int32
				for i := range c.conns {
					c.losePackets(i, func([]byte) bool { sent.Add(1); return false })
				}
				cfgs := []*Config{&row.one, &row.other}
				row.one.LocalPort, row.other.LocalPort = 5000, 5000
				row.one.Inits, row.other.Inits = initsOf(t, cfgs...)
				var conns [2]*Conn
				for i := range conns {
					conns[i] = must.Get(c.ends[i].Dial(t.Context(), carriedPeer, cfgs[i]))(t)
				}
				check.Equal(t, "packets", sent.Load(), 0)
				check.Equal(t, "streams", conns[0].Stats().OutStreams, row.streams)
				for i := range conns {
					check.Equal(t, "extensions", conns[i].Extensions(), row.extensions)
					must.Do(conns[i].WriteMsg(make([]byte, 50_000), SendInfo{Stream: 3}))(t)
				}
				for i := range conns {
					n, info, err := conns[i].ReadMsg(make([]byte, 60_000))
					check.That(t, n == 50_000 && info.Stream == 3 && err == nil, "%d, %+v, %v", n, info, err)
				}
				must.OK(t, conns[0].Close())
			})
		})
	}
}

// What is no pair of INITs is refused, and so are INITs over a link with many peers.
func TestInitsThatAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarried(t)
		good, _ := initsOf(t, nil, nil)
		with := func(b []byte, at int, octets ...byte) []byte {
			b = append([]byte(nil), b...)
			copy(b[at:], octets)
			return b
		}
		for name, inits := range map[string]Inits{
			"nothing":            {},
			"no peer":            {Own: good.Own},
			"another chunk":      {Own: good.Own, Peer: with(good.Peer, 0, byte(wire.ChunkInitAck))},
			"another own chunk":  {Own: with(good.Own, 0, byte(wire.ChunkData)), Peer: good.Peer},
			"tag 0":              {Own: good.Own, Peer: with(good.Peer, 4, 0, 0, 0, 0)},
			"own tag 0":          {Own: with(good.Own, 4, 0, 0, 0, 0), Peer: good.Peer},
			"no window":          {Own: good.Own, Peer: with(good.Peer, 8, 0, 0, 0, 0)},
			"no streams":         {Own: good.Own, Peer: with(good.Peer, 12, 0, 0)},
			"no streams the way": {Own: good.Own, Peer: with(good.Peer, 14, 0, 0)},
			"cut off":            {Own: good.Own, Peer: good.Peer[:10]},
		} {
			_, err := c.ends[0].Dial(t.Context(), carriedPeer, &Config{Inits: &inits})
			check.Error(t, name, err, ErrInits)
		}
		p := newPair(t)
		_, err := p.a.Dial(t.Context(), netip.AddrPortFrom(p.bAddr, 7), &Config{Inits: good})
		check.Error(t, "many peers", err, ErrInitsLink)
	})
}

// No INIT of a peer does harm.
func FuzzInits(f *testing.F) {
	own, err := NewInit(nil, rawio.DTLSErrorDetection)
	if err != nil {
		f.Fatal(err)
	}
	full, err := NewInit(&Config{PartialReliability: true, Interleaving: true, StreamReset: AllowStreamReset},
		rawio.DTLSErrorDetection)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	f.Add(full)
	f.Fuzz(func(t *testing.T, peer []byte) {
		synctest.Test(t, func(t *testing.T) {
			c := newCarried(t)
			conn, err := c.ends[0].Dial(t.Context(), carriedPeer, &Config{LocalPort: 5000, Inits: &Inits{Own: own, Peer: peer}})
			if err != nil {
				return
			}
			must.Do(conn.WriteMsg([]byte("x"), SendInfo{}))(t)
			synctest.Wait()
			conn.Abort("enough")
		})
	})
}
