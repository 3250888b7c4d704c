//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// campedPort is the first of those that the attacker guesses the honest client will use next.
const campedPort = 41000

// addrParams is address parameters of n third parties.
func (f *family) addrParams(n int) (b []byte) {
	for i := range n {
		b = wire.AppendAddressParam(b, hostAddr(f.innocents, i))
	}
	return b
}

func setupAttacks(f *family) []attack {
	handshake := []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT"}
	list := []attack{
		{name: "INIT flood, nothing follows", rfc: "9260 5.1.3", must: []string{"INIT ACK"},
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				return x.w.sendSCTP(x.freshAddr(), x.victimPort(portSCTP), 0, initChunk(x.w.randomTag(), 1, 1<<16, nil))
			})},
		{name: "INIT flood in the names of third parties", rfc: "5062 9", must: []string{"INIT ACK" + third}, echo: 4,
			start: withoutAssoc(func(x *attackEnv, i int) error {
				from := x.innocentAddr(i)
				return x.w.sendSCTP(from, x.victimPort(portSCTP), 0, initChunk(x.w.randomTag(), 1, 1<<16, nil))
			})},
		{name: fmt.Sprintf("INIT with %d addresses", f.addrs), rfc: "5062 6", must: []string{"INIT ACK"},
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				return x.w.sendSCTP(x.freshAddr(), x.victimPort(portSCTP), 0,
					initChunk(x.w.randomTag(), 1, 1<<16, x.addrParams(x.addrs)))
			})},
		{name: fmt.Sprintf("INIT with %d,%03d addresses, in IP fragments", f.mostAddrs/1000, f.mostAddrs%1000),
			rfc: "5062 6", must: []string{"INIT ACK"}, idle: 2 << 20,
			start: func(x *attackEnv) (func(int) error, error) {
				params := x.addrParams(x.mostAddrs)
				return func(int) error {
					src := x.freshAddr()
					return x.w.sendFragments(src.Addr(), x.victimAddr,
						forge.Packet(src.Port(), portSCTP, 0, initChunk(x.w.randomTag(), 1, 1<<16, params)))
				}, nil
			}},
		{name: fmt.Sprintf("INIT with %d unknown parameters to report", f.params), rfc: "5062 8, 9260 3.2.2", must: []string{"INIT ACK"},
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				var params []byte
				for range x.params {
					params = wire.AppendParam(params, 0xC0FE, nil)
				}
				return x.w.sendSCTP(x.freshAddr(), x.victimPort(portSCTP), 0,
					initChunk(x.w.randomTag(), 1, 1<<16, params))
			})},
		{name: "INIT with malformed parameters", rfc: "9260 3.2.1", must: []string{"ABORT 13"},
			start: withoutAssoc(func(x *attackEnv, i int) error {
				c := initChunk(x.w.randomTag(), 1, 1<<16, wire.AppendParam(nil, 0x8123, make([]byte, 12)))
				c[23] = [...]byte{0, 1, 2, 3, 200}[i%5] // shorter than its own header, longer than the chunk
				return x.w.sendSCTP(x.freshAddr(), x.victimPort(portSCTP), 0, c)
			})},
		{name: "made-up cookies", rfc: "9260 5.1.5",
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				return x.w.sendSCTP(x.freshAddr(), x.victimPort(portSCTP), x.w.randomTag(),
					wire.AppendCookieEcho(nil, randomOctets(x, 124)))
			})},
		{name: "cookies with one bit changed", rfc: "9260 5.1.5",
			start: func(x *attackEnv) (func(int) error, error) {
				p := x.newPeer(x.victimPort(portSCTP), nil)
				if err := p.requestCookie(); err != nil {
					return nil, err
				}
				return func(i int) error {
					c := bytes.Clone(p.cookie)
					bit := i % (8 * len(c))
					c[bit/8] ^= 1 << (bit % 8)
					return p.sendChunks(wire.AppendCookieEcho(nil, c))
				}, nil
			}},
		{name: "stale cookies", rfc: "9260 5.1.5", must: []string{"ERROR 3"},
			start: func(x *attackEnv) (func(int) error, error) {
				p := x.newPeer(x.victimPort(portStale), nil)
				err := p.requestCookie()
				time.Sleep(staleLife + 50*time.Millisecond)
				return func(int) error {
					p.drainPackets()
					return p.sendChunks(
						wire.AppendCookieEcho(nil, p.cookie))
				}, err
			}},
		{name: "redirection: cookies from another port or address", rfc: "5062 7",
			start: func(x *attackEnv) (func(int) error, error) {
				p := x.newPeer(x.victimPort(portSCTP), nil)
				if err := p.requestCookie(); err != nil {
					return nil, err
				}
				return func(i int) error {
					to, from := p.dst, p.src
					switch i % 3 {
					case 0:
						from = netip.AddrPortFrom(from.Addr(), from.Port()+1)
					case 1:
						from = netip.AddrPortFrom(hostAddr(x.attackers, 900), from.Port())
					case 2:
						to = netip.AddrPortFrom(to.Addr(), portStale)
					}
					return x.w.sendSCTP(from, to, p.tag, wire.AppendCookieEcho(nil, p.cookie))
				}, nil
			}},
		{name: "cookie replay: one that lists third parties, whose ABORT has ended the association", rfc: "5062 6",
			must: []string{"COOKIE ACK", "ABORT"}, may: append(handshake, "HEARTBEAT"+third), echo: 1,
			start: func(x *attackEnv) (func(int) error, error) {
				p := x.newPeer(x.victimPort(portSCTP), x.addrParams(7))
				if err := p.requestCookie(); err != nil {
					return nil, err
				}
				p.silent = true
				return func(i int) error {
					if err := p.sendChunks(wire.AppendCookieEcho(nil, p.cookie)); err != nil {
						return err
					}
					// The first has the association; the others are out of the blue, as it has
					// ended.
					if _, err := p.waitFor(wire.ChunkCookieAck, 5*time.Millisecond); err != nil &&
						err != errSilence && err != errAborted {
						return err
					}
					// What the third party does with a packet out of the blue (RFC 9260 section
					// 8.4).
					from := netip.AddrPortFrom(hostAddr(x.innocents, i%7), p.src.Port())
					return x.w.sendSCTP(from, x.victimPort(portSCTP), p.own, wire.AppendAbort(nil, true))
				}, nil
			}},
		{name: "associations that say nothing", rfc: "5042 6.4.1", most: 3000,
			must: []string{"INIT ACK", "COOKIE ACK"}, may: handshake,
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				p, err := x.openAssoc(x.victimPort(portSCTP), nil)
				p.stopReceiving() // but not the victim
				return err
			})},
		{name: "address camping: the only address that the client will use", rfc: "5062 2", most: 1500,
			must: []string{"INIT ACK", "COOKIE ACK"}, may: append(handshake, "HEARTBEAT"+client, "INIT ACK"+client,
				"COOKIE ACK"+client, "ABORT 12"+client),
			start: occupyPeerAddr(portSCTP),
			finish: func(x *attackEnv) error {
				return x.friend.callAgent("dial", dialRequest{Port: campedPort, To: portSCTP, Timeout: leave}, nil)
			}},
		{name: "address camping: one of two addresses, until its probes have gone unanswered", rfc: "5062 2",
			most: 1500,
			must: []string{"INIT ACK", "COOKIE ACK"},
			may: append(handshake, "ABORT", "HEARTBEAT"+client, "INIT ACK"+client, "COOKIE ACK"+client,
				"ABORT 12"+client),
			start: occupyPeerAddr(portHasty),
			finish: func(x *attackEnv) error {
				for end := time.Now().Add(leave); ; {
					time.Sleep(hastyEnd)
					err := x.friend.callAgent("dial",
						dialRequest{Port: campedPort, To: portHasty, Both: true, Timeout: leave},
						nil)
					if err == nil || time.Now().After(end) {
						return err
					}
				}
			}},
		{name: "hijack: INIT on one's own association shows no tag of it", rfc: "5062 3", must: []string{"INIT ACK"},
			may: handshake,
			start: func(x *attackEnv) (func(int) error, error) {
				p, err := x.openAssoc(x.victimPort(portSCTP), nil)
				if err != nil {
					return nil, err
				}
				own, theirs := uint32Octets(p.own), uint32Octets(p.tag)
				return func(int) error {
					q := *p
					q.own = x.w.randomTag()
					if err := q.requestCookie(); err != nil {
						return err
					}
					if bytes.Contains(q.cookie, own) || bytes.Contains(q.cookie, theirs) {
						return fmt.Errorf("the cookie has a tag of the association in it")
					}
					return nil
				}, nil
			}},
		{name: "restart of one's own association, again and again", rfc: "5062 4",
			must: []string{"INIT ACK", "COOKIE ACK"}, may: handshake,
			start: func(x *attackEnv) (func(int) error, error) {
				p, err := x.openAssoc(x.victimPort(portSCTP), nil)
				return func(int) error { p.own = x.w.randomTag(); return p.connectAssoc() }, err
			}},
		{name: "packets out of the blue in the names of third parties", rfc: "5062 8, 9260 8.4",
			must: []string{"ABORT" + third}, echo: 1,
			start: withoutAssoc(func(x *attackEnv, i int) error {
				from := x.innocentAddr(i)
				var b []byte
				for range 90 {
					b = wire.AppendHeartbeat(b, make([]byte, 4))
				}
				return x.w.sendSCTP(from, x.victimPort(portSCTP), x.w.randomTag(), b)
			})},
		{name: "SHUTDOWN ACK out of the blue in the names of third parties", rfc: "5062 8, 9260 8.4",
			must: []string{"SHUTDOWN COMPLETE" + third}, echo: 1,
			start: withoutAssoc(func(x *attackEnv, i int) error {
				return x.w.sendSCTP(x.innocentAddr(i), x.victimPort(portSCTP), x.w.randomTag(),
					wire.AppendShutdownAck(nil))
			})},
	}
	return append(list, nobodyAttacks(f)...)
}

// nobodyAttacks are of IPv6: over IPv4 the kernel stands before us.
func nobodyAttacks(f *family) []attack {
	if len(f.nobodies) == 0 {
		return nil
	}
	var failed uint64
	return []attack{
		{name: "INIT, SHUTDOWN ACK and DATA from nobody's and the victim's own addresses", rfc: "9260 8.4",
			start: func(x *attackEnv) (func(int) error, error) {
				var s victimStats
				err := x.victim.callAgent("stats", nil, &s)
				failed = s.Transport.TxFailed
				return func(i int) error {
					from := netip.AddrPortFrom(x.nobodies[i/3%len(x.nobodies)], portSCTP)
					switch i % 3 {
					case 0:
						return x.w.sendSCTP(from, x.victimPort(portSCTP), 0, initChunk(x.w.randomTag(), 1, 1<<16, nil))
					case 1:
						return x.w.sendSCTP(from, x.victimPort(portSCTP), x.w.randomTag(), wire.AppendShutdownAck(nil))
					}
					return x.w.sendSCTP(from, x.victimPort(portSCTP), x.w.randomTag(),
						dataChunk(nil, 1, whole, 0, 0, 0, []byte{1}))
				}, err
			},
			finish: func(x *attackEnv) error {
				var s victimStats
				if err := x.victim.callAgent("stats", nil, &s); err != nil {
					return err
				}
				if n := s.Transport.TxFailed - failed; n > 0 {
					return fmt.Errorf("%d answers to addresses that the victim has no way to", n)
				}
				return nil
			}},
		{name: "associations that list nobody's and the victim's own addresses", rfc: "5062 5, 9260 5.1.2",
			must: []string{"INIT ACK", "COOKIE ACK"}, may: []string{"HEARTBEAT"},
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				var params []byte
				for _, a := range x.nobodies {
					params = wire.AppendParam(params, wire.ParamIPv6, a.AsSlice())
				}
				_, err := x.openAssoc(x.victimPort(portSCTP), params)
				return err
			})},
	}
}

// occupyPeerAddr sets up associations that list the second address of the honest client, from the
// port that it will use and from others.
func occupyPeerAddr(port uint16) func(*attackEnv) (func(int) error, error) {
	return withoutAssoc(func(x *attackEnv, i int) error {
		p := x.w.newPeer(netip.AddrPortFrom(hostAddr(x.attackers, 1000+i/2000), uint16(campedPort+i%2000)),
			x.victimPort(port))
		p.inits = wire.AppendAddressParam(nil, x.friendOther)
		x.peers = append(x.peers, p)
		return p.connectAssoc()
	})
}
