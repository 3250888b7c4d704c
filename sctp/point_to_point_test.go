package sctp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/connpipe"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/netconn"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// carried is two Transports over a connection that keeps packets apart.
type carried struct {
	t     *testing.T
	conns [2]*connpipe.Conn
	ends  [2]*Transport
	mu    sync.Mutex // held while a packet is judged: both readers and timers send
}

// delay is the time that a packet takes one way.
const carriedDelay = 20 * time.Millisecond

// newCarried joins two Transports. Call it in a bubble of synctest.
func newCarried(t *testing.T, cfgs ...*netconn.Config) *carried {
	return newCarriedWith(t, nil, cfgs...)
}

// newCarriedWith is newCarried of Transports with options.
func newCarriedWith(t *testing.T, opt *TransportConfig, cfgs ...*netconn.Config) *carried {
	c := &carried{t: t}
	c.conns[0], c.conns[1] = connpipe.New()
	for i, conn := range c.conns {
		c.losePackets(i, func([]byte) bool { return false })
		var cfg *netconn.Config
		if len(cfgs) > 0 {
			cfg = cfgs[i%len(cfgs)]
		}
		c.ends[i] = must.Get(NewTransport(must.Get(netconn.New(conn, cfg))(t), opt))(t)
		t.Cleanup(func() { c.ends[i].Close() })
	}
	return c
}

// losePackets says which packets of one end do not arrive. The others take a while. What lost
// counts can be read after synctest.Wait.
func (c *carried) losePackets(end int, lost func(p []byte) bool) {
	other := c.conns[1-end]
	c.conns[end].Filter(func(p []byte) bool {
		c.mu.Lock()
		isLost := lost(p)
		c.mu.Unlock()
		if !isLost {
			p = bytes.Clone(p)
			time.AfterFunc(carriedDelay, func() { other.Inject(p) })
		}
		return false
	})
}

// peerToPeer is what both ends open with: the port is 5000 on either side.
var peerToPeer = &Config{LocalPort: 5000, HeartbeatInterval: -1}

// openEnd has one end open.
func (c *carried) openEnd(end int, cfg *Config) (*Conn, error) {
	return c.ends[end].Dial(deadlineCtx(c.t), netip.AddrPortFrom(netconn.PeerAddr, 5000), cfg)
}

// openBoth has both ends open at once.
func (c *carried) openBoth(cfg *Config) (conns [2]*Conn) {
	var all sync.WaitGroup
	for i := range conns {
		all.Go(func() { conns[i] = must.Get(c.openEnd(i, cfg))(c.t) })
	}
	all.Wait()
	return conns
}

// chunkTypes are those of a packet.
func chunkTypes(p []byte) (list []wire.ChunkType) {
	cs := wire.Packet(p).Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		list = append(list, c.Type())
	}
	return list
}

// Both ends open from a fixed port, the one before the other or both at once. An INIT that comes
// first ends nothing, and the association is up two round trips after the later one opened.
func TestBothEndsOpen(t *testing.T) {
	for _, row := range []struct {
		name  string
		waits [2]time.Duration
	}{
		{"at once", [2]time.Duration{}},
		{"while the INIT is on its way", [2]time.Duration{0, carriedDelay / 2}},
		{"one a moment later", [2]time.Duration{carriedDelay + time.Millisecond, 0}},
		{"one half a second later", [2]time.Duration{0, 500 * time.Millisecond}},
		{"one after several INITs", [2]time.Duration{20 * time.Second, 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCarried(t)
				began := time.Now()
				var all sync.WaitGroup
				var conns [2]*Conn
				for i := range conns {
					all.Go(func() {
						time.Sleep(row.waits[i])
						conns[i] = must.Get(c.openEnd(i, peerToPeer))(t)
					})
				}
				all.Wait()
				took := time.Since(began) - max(row.waits[0], row.waits[1])
				check.That(t, took <= 4*carriedDelay, "up %v after the later one opened", took)
				for i := range conns {
					must.Do(conns[i].WriteMsg([]byte("hello"), SendInfo{Stream: 3}))(t)
					n, info, err := conns[1-i].ReadMsg(make([]byte, 10))
					check.That(t, n == 5 && info.Stream == 3 && err == nil, "%d octets, %+v, %v", n, info, err)
				}
				for i := range conns {
					check.Equal(t, "associations", c.ends[i].Associations(), 1)
				}
			})
		})
	}
}

// One end may also listen, and do so later than the other dials. Ports tell associations apart.
func TestListenerOverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// req 8261-6.1-2
		c := newCarried(t)
		var all sync.WaitGroup
		for port := range uint16(3) {
			all.Go(func() {
				d := must.Get(c.ends[0].Dial(deadlineCtx(t), netip.AddrPortFrom(netconn.PeerAddr, 100+port), nil))(t)
				must.Do(d.WriteMsg([]byte{byte(port)}, SendInfo{}))(t)
			})
		}
		time.Sleep(2 * time.Second) // an INIT that is not answered comes again
		for port := range uint16(3) {
			l := must.Get(c.ends[1].Listen(100+port, nil))(t)
			s := must.Get(l.Accept(deadlineCtx(t)))(t)
			buf := make([]byte, 10)
			n, _, err := s.ReadMsg(buf)
			check.That(t, n == 1 && buf[0] == byte(port) && err == nil, "port %d: %d octets, %d, %v", port, n, buf[0],
				err)
		}
		all.Wait()
	})
}

// INIT and INIT ACK say nothing of addresses, and nothing is believed of those of the peer.
func TestNoAddressesOverAConnection(t *testing.T) {
	for _, listens := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			// req 8261-6.1-5, 8261-6.1-6
			c := newCarried(t)
			var mu sync.Mutex
			seen := make(map[wire.ChunkType]int)
			for end := range c.conns {
				c.losePackets(end, func(p []byte) bool {
					cs := wire.Packet(p).Chunks()
					ch, _ := cs.Next()
					if typ := ch.Type(); typ == wire.ChunkInit || typ == wire.ChunkInitAck {
						mu.Lock()
						seen[typ]++
						mu.Unlock()
						init := must.Get(wire.AsInit(ch))(t)
						ps := init.Params()
						for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
							switch prm.Type() {
							case wire.ParamIPv4, wire.ParamIPv6, wire.ParamSupportedAddrTypes:
								t.Errorf("%v has a parameter of type %v", typ, prm.Type())
							}
						}
					}
					return false
				})
			}
			cfg := *peerToPeer
			cfg.LocalAddrs = []netip.Addr{netconn.LocalAddr}
			if listens {
				must.Get(c.ends[1].Listen(5000, &cfg))(t)
				must.Get(c.openEnd(0, &cfg))(t)
			} else {
				c.openBoth(&cfg)
			}
			check.That(t, seen[wire.ChunkInit] > 0 && seen[wire.ChunkInitAck] > 0, "seen: %v", seen)
		})
	}
}

// A connection does not pass the bits of ECN, so the peer is not offered any.
func TestNoECNOverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// req 8261-5-7
		c := newCarried(t)
		inits := 0
		c.losePackets(0, func(p []byte) bool {
			cs := wire.Packet(p).Chunks()
			if ch, _ := cs.Next(); ch.Type() == wire.ChunkInit {
				inits++
				init := must.Get(wire.AsInit(ch))(t)
				ps := init.Params()
				for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
					check.That(t, prm.Type() != wire.ParamECNCapable, "ECN is offered")
				}
			}
			return false
		})
		c.openBoth(peerToPeer)
		synctest.Wait()
		check.Equal(t, "INITs", inits, 1)
	})
}

// A peer that lists addresses nevertheless gets an association with one path.
func TestAddressesOfThePeerAreIgnoredOverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// req 8261-6.1-3
		c := newCarried(t)
		c.conns[0].Filter(func(p []byte) bool {
			cs := wire.Packet(p).Chunks()
			if ch, _ := cs.Next(); ch.Type() == wire.ChunkInit {
				p = wire.AppendAddressParam(bytes.Clone(p), netip.MustParseAddr("192.0.2.77"))
				binary.BigEndian.PutUint16(p[wire.CommonHeaderLen+2:], uint16(len(p)-wire.CommonHeaderLen))
				wire.PutChecksum(p, wire.Checksum([][]byte{p}))
			}
			c.conns[1].Inject(p)
			return false
		})
		l := must.Get(c.ends[1].Listen(5000, nil))(t)
		must.Get(c.openEnd(0, peerToPeer))(t)
		s := must.Get(l.Accept(deadlineCtx(t)))(t)
		paths := s.Paths()
		check.That(t, len(paths) == 1 && paths[0].Remote.Addr() == netconn.PeerAddr, "paths: %+v", paths)
	})
}

// The one path is not given up before the association.
func TestPathMaxRetransOverAConnection(t *testing.T) {
	// req 8261-6.1-4
	for _, row := range []struct {
		name       string
		cfg        Config
		path, want int
	}{
		{"default", Config{}, 0, 10},
		{"of the association", Config{AssocMaxRetrans: 4}, 0, 4},
		{"of the program", Config{AssocMaxRetrans: 4, PathMaxRetrans: 2}, 0, 2},
	} {
		env := &assoc.Env{Features: rawio.PointToPoint}
		got := must.Get(row.cfg.assocConfig().CompleteFor(env))(t)
		check.Equal(t, row.name, got.PathMaxRetrans, row.want)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCarried(t)
		cfg := *peerToPeer
		cfg.RTOMin, cfg.RTOInitial, cfg.RTOMax = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
		cfg.Events = 8
		conns := c.openBoth(&cfg)
		c.losePackets(0, func([]byte) bool { return true })
		must.Do(conns[0].WriteMsg([]byte("x"), SendInfo{}))(t)
		var goneAt time.Time
		for ev := (Event{}); ev.Kind != EventDown; {
			ev = must.Get(conns[0].NextEvent(deadlineCtx(t)))(t)
			if ev.Kind == EventPathDown {
				goneAt = time.Now()
			}
		}
		check.Equal(t, "time from the end of the path to that of the association", time.Since(goneAt), 0)
		check.That(t, errors.Is(conns[0].Err(), syscall.ETIMEDOUT), "ended by %v", conns[0].Err())
	})
}

// Without DF nothing longer than the safe length is ever sent, and no probe either. With DF the
// search goes above it.
func TestMTUOverAConnection(t *testing.T) {
	for _, row := range []struct {
		name   string
		cfg    netconn.Config
		passes int // octets of a packet
		want   int // octets of the longest packet in the end
		probes bool
	}{
		{"the default", netconn.Config{}, 9000, 1188, false},
		{"of the caller", netconn.Config{MTU: 4000}, 9000, 4000, false},
		{"MaxMTU without DF", netconn.Config{MaxMTU: 4000}, 9000, 1188, false},
		{"DF", netconn.Config{DontFragment: true}, 9000, 1400, true},
		{"DF on a path of less", netconn.Config{DontFragment: true}, 1300, 1260, true},
		{"DF on a path of the safe length", netconn.Config{DontFragment: true}, 1191, 1188, true},
		{"DF and more", netconn.Config{DontFragment: true, MTU: 1000, MaxMTU: 4000}, 9000, 4000, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// req 8261-5-5, 8261-6.2-1
				c := newCarried(t, &row.cfg)
				var longest, longestData, probes int
				c.losePackets(0, func(p []byte) bool {
					longest = max(longest, len(p))
					types := chunkTypes(p)
					switch {
					case types[0] == wire.ChunkData:
						longestData = max(longestData, len(p))
					case len(types) == 2 && types[0] == wire.ChunkHeartbeat && types[1] == wire.ChunkPad:
						probes++
					}
					return len(p) > row.passes
				})
				conns := c.openBoth(peerToPeer)
				time.Sleep(10 * time.Minute)
				go conns[0].WriteMsg(make([]byte, 200_000), SendInfo{})
				must.OK(t, readFull(conns[1], 200_000))
				synctest.Wait()
				check.Equal(t, "octets of a packet", conns[0].Paths()[0].MaxPacket, row.want)
				check.That(t, longestData > row.want-64 && longestData <= row.want, "with DATA: %d octets", longestData)
				check.That(t, (probes > 0) == row.probes, "%d probes", probes)
				check.That(t, row.probes || longest <= row.want, "a packet of %d octets", longest)
			})
		})
	}
}

// readFull reads so many octets.
func readFull(c *Conn, octets int) error {
	buf := make([]byte, 64<<10)
	for octets > 0 {
		n, _, err := c.ReadMsg(buf)
		if octets -= n; err != nil {
			return err
		}
	}
	return nil
}

// A path that carries less than before, and says nothing, gets shorter packets, and longer ones
// again when it takes them. Nothing is stuck that was cut for the longer ones.
func TestBlackHoleOverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// req 8261-4-1, 8261-6.1-7
		c := newCarried(t, &netconn.Config{DontFragment: true})
		conns := c.openBoth(peerToPeer)
		time.Sleep(time.Minute)
		must.Equal(t, "octets of a packet", conns[0].Paths()[0].MaxPacket, 1400)
		go func() {
			for range 32 {
				_, _ = conns[0].WriteMsg(make([]byte, 64<<10), SendInfo{})
			}
		}()
		must.OK(t, readFull(conns[1], 128<<10))
		var passes atomic.Int64
		passes.Store(1203) // 1280 less what IPv6, UDP and DTLS take
		c.losePackets(0, func(p []byte) bool { return len(p) > int(passes.Load()) })
		began := time.Now()
		must.OK(t, readFull(conns[1], 2<<20-128<<10))
		check.That(t, time.Since(began) < 10*time.Second, "it takes %v", time.Since(began))
		check.Equal(t, "octets of a packet", conns[0].Paths()[0].MaxPacket, 1188)
		passes.Store(9000)
		time.Sleep(30 * time.Minute)
		check.Equal(t, "octets of a packet when the path takes them again", conns[0].Paths()[0].MaxPacket, 1400)
	})
}

// Packets of one chunk that still pass do not hide that those of several no longer do.
func TestShortPacketsHideNoBlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarried(t, &netconn.Config{DontFragment: true})
		conns := c.openBoth(peerToPeer)
		time.Sleep(time.Minute)
		c.losePackets(0, func(p []byte) bool { return len(p) > 1203 })
		const messages = 40
		began := time.Now()
		for range messages {
			must.Do(conns[0].WriteMsg(make([]byte, 1340), SendInfo{Unordered: true}))(t) // two chunks
			must.Do(conns[0].WriteMsg(make([]byte, 600), SendInfo{Unordered: true}))(t)
			time.Sleep(300 * time.Millisecond)
		}
		must.OK(t, readFull(conns[1], messages*(1340+600)))
		check.That(t, time.Since(began) < 15*time.Second, "it takes %v", time.Since(began))
		check.Equal(t, "octets of a packet", conns[0].Paths()[0].MaxPacket, 1188)
	})
}

// A path that does not carry what the caller has called safe gets shorter packets, with or without
// DF, and longer ones when it takes them. A chunk that was cut before is sent on whole: IP may
// fragment it.
func TestBlackHoleBelowTheSafeLength(t *testing.T) {
	for _, df := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			// req 8261-4-1, 8261-6.1-7
			c := newCarried(t, &netconn.Config{DontFragment: df})
			conns := c.openBoth(peerToPeer)
			time.Sleep(time.Minute)
			before := conns[0].Paths()[0].MaxPacket
			var passes atomic.Int64
			passes.Store(1000)
			c.losePackets(0, func(p []byte) bool { return len(p) > int(passes.Load()) })
			must.Do(conns[0].WriteMsg(make([]byte, 4000), SendInfo{}))(t)
			time.Sleep(10 * time.Second)
			must.Equal(t, "octets of a packet", conns[0].Paths()[0].MaxPacket, 512)
			passes.Store(9000)
			must.OK(t, readFull(conns[1], 4000))
			time.Sleep(30 * time.Minute)
			check.Equal(t, "octets of a packet when the path takes them again", conns[0].Paths()[0].MaxPacket, before)
		})
	}
}

// Whatever Read says of its end ends the association at once, and all that waits for it.
func TestEndOfAConnectionEndsTheAssociation(t *testing.T) {
	broken := errors.New("the tunnel is gone")
	for _, row := range []struct {
		name string
		end  func(c *connpipe.Conn)
		is   error
	}{
		{"closed here", func(c *connpipe.Conn) { c.Close() }, syscall.ENETDOWN},
		{"EOF", func(c *connpipe.Conn) { c.FailReads(io.EOF) }, syscall.ENETDOWN},
		{"net.ErrClosed", func(c *connpipe.Conn) { c.FailReads(&net.OpError{Op: "read", Err: net.ErrClosed}) },
			syscall.ENETDOWN},
		{"its own error", func(c *connpipe.Conn) { c.FailReads(broken) }, broken},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCarried(t)
				conns := c.openBoth(peerToPeer)
				time.Sleep(time.Second)
				read := make(chan error)
				go func() { read <- readFull(conns[0], 1) }()
				synctest.Wait()
				began := time.Now()
				row.end(c.conns[0])
				err := <-read
				<-conns[0].Done()
				check.That(t, errors.As(err, new(*LinkError)) && errors.Is(err, row.is), "a read ends by %v", err)
				check.OK(t, c.ends[0].Close())
				check.Equal(t, "time that it takes", time.Since(began), 0)
			})
		})
	}
}

// A connection whose Write blocks holds up nobody: neither deadlines, nor the end.
func TestConnectionThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarried(t)
		conns := c.openBoth(peerToPeer)
		c.conns[0].Block(true)
		began := time.Now()
		conns[0].SetWriteDeadline(began.Add(time.Second))
		_, err := conns[0].WriteMsg(make([]byte, 1<<20), SendInfo{})
		for err == nil {
			_, err = conns[0].WriteMsg(make([]byte, 1<<20), SendInfo{})
		}
		check.That(t, errors.Is(err, os.ErrDeadlineExceeded) && time.Since(began) == time.Second,
			"a write ends by %v after %v", err, time.Since(began))
		conns[0].Stats()
		check.Equal(t, "time", time.Since(began), time.Second)
		conns[0].Abort("enough")
		<-conns[0].Done()
		check.Equal(t, "time until it has ended", time.Since(began), time.Second)
		check.OK(t, c.ends[0].Close())
		check.That(t, time.Since(began) <= 1200*time.Millisecond, "Close takes %v", time.Since(began)-time.Second)
	})
}

// A connection whose calls do not even return when it is closed keeps one goroutine for each, and
// nobody else.
func TestConnectionThatDoesNotLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stubborn{letGo: make(chan struct{})}
		tr := must.Get(NewTransport(must.Get(netconn.New(s, nil))(t), nil))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := tr.Dial(ctx, netip.AddrPortFrom(netconn.PeerAddr, 5000), nil)
		check.That(t, errors.Is(err, context.DeadlineExceeded), "Dial: %v", err)
		began := time.Now()
		tr.Close()
		check.That(t, time.Since(began) < 3*time.Second, "Close takes %v", time.Since(began))
		close(s.letGo)
	})
}

// stubborn is a connection whose calls block until it is let go.
type stubborn struct{ letGo chan struct{} }

func (s *stubborn) Read([]byte) (int, error)  { <-s.letGo; return 0, net.ErrClosed }
func (s *stubborn) Write([]byte) (int, error) { <-s.letGo; return 0, net.ErrClosed }
func (s *stubborn) Close() error              { <-s.letGo; return nil }

// An address is no name of the peer's over a link that leads to one.
func TestOtherAddressesOverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCarried(t)
		_, err := c.ends[0].Dial(deadlineCtx(t), netip.MustParseAddrPort("192.0.2.77:5000"), nil)
		check.That(t, errors.Is(err, syscall.ENETUNREACH), "%v", err)
	})
}
