//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/sctp/wire"
)

// campedPort is the first of those that the attacker guesses the honest client will use next.
const campedPort = 41000

// listed is address parameters of n third parties.
func (f *family) listed(n int) (b []byte) {
	for i := range n {
		b = wire.AppendAddressParam(b, host(f.innocents, i))
	}
	return b
}

func setupAttacks(f *family) []attack {
	handshake := []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT"}
	list := []attack{
		{name: "INIT flood, nothing follows", rfc: "9260 5.1.3", must: []string{"INIT ACK"},
			start: blind(func(x *scene, _ int) error {
				return x.w.sctp(x.own(), x.to(portSCTP), 0, initChunk(x.w.guess(), 1, 1<<16, nil))
			})},
		{name: "INIT flood in the names of third parties", rfc: "5062 9", must: []string{"INIT ACK" + third}, echo: 4,
			start: blind(func(x *scene, i int) error {
				from := x.innocent(i)
				return x.w.sctp(from, x.to(portSCTP), 0, initChunk(x.w.guess(), 1, 1<<16, nil))
			})},
		{name: fmt.Sprintf("INIT with %d addresses", f.addrs), rfc: "5062 6", must: []string{"INIT ACK"},
			start: blind(func(x *scene, _ int) error {
				return x.w.sctp(x.own(), x.to(portSCTP), 0, initChunk(x.w.guess(), 1, 1<<16, x.listed(x.addrs)))
			})},
		{name: fmt.Sprintf("INIT with %d,%03d addresses, in IP fragments", f.mostAddrs/1000, f.mostAddrs%1000),
			rfc: "5062 6", must: []string{"INIT ACK"}, idle: 2 << 20,
			start: func(x *scene) (func(int) error, error) {
				params := x.listed(x.mostAddrs)
				return func(int) error {
					src := x.own()
					return x.w.fragments(src.Addr(), x.victimAddr,
						packet(src.Port(), portSCTP, 0, initChunk(x.w.guess(), 1, 1<<16, params)))
				}, nil
			}},
		{name: fmt.Sprintf("INIT with %d unknown parameters to report", f.params), rfc: "5062 8, 9260 3.2.2", must: []string{"INIT ACK"},
			start: blind(func(x *scene, _ int) error {
				var params []byte
				for range x.params {
					params = wire.AppendParam(params, 0xC0FE, nil)
				}
				return x.w.sctp(x.own(), x.to(portSCTP), 0, initChunk(x.w.guess(), 1, 1<<16, params))
			})},
		{name: "INIT with malformed parameters", rfc: "9260 3.2.1", must: []string{"ABORT 13"},
			start: blind(func(x *scene, i int) error {
				c := initChunk(x.w.guess(), 1, 1<<16, wire.AppendParam(nil, 0x8123, make([]byte, 12)))
				c[23] = [...]byte{0, 1, 2, 3, 200}[i%5] // shorter than its own header, longer than the chunk
				return x.w.sctp(x.own(), x.to(portSCTP), 0, c)
			})},
		{name: "made-up cookies", rfc: "9260 5.1.5",
			start: blind(func(x *scene, _ int) error {
				return x.w.sctp(x.own(), x.to(portSCTP), x.w.guess(), wire.AppendCookieEcho(nil, noise(x, 124)))
			})},
		{name: "cookies with one bit changed", rfc: "9260 5.1.5",
			start: func(x *scene) (func(int) error, error) {
				p := x.peer(x.to(portSCTP), nil)
				if err := p.ask(); err != nil {
					return nil, err
				}
				return func(i int) error {
					c := bytes.Clone(p.cookie)
					bit := i % (8 * len(c))
					c[bit/8] ^= 1 << (bit % 8)
					return p.send(wire.AppendCookieEcho(nil, c))
				}, nil
			}},
		{name: "stale cookies", rfc: "9260 5.1.5", must: []string{"ERROR 3"},
			start: func(x *scene) (func(int) error, error) {
				p := x.peer(x.to(portStale), nil)
				err := p.ask()
				time.Sleep(staleLife + 50*time.Millisecond)
				return func(int) error { p.drain(); return p.send(wire.AppendCookieEcho(nil, p.cookie)) }, err
			}},
		{name: "redirection: cookies from another port or address", rfc: "5062 7",
			start: func(x *scene) (func(int) error, error) {
				p := x.peer(x.to(portSCTP), nil)
				if err := p.ask(); err != nil {
					return nil, err
				}
				return func(i int) error {
					to, from := p.dst, p.src
					switch i % 3 {
					case 0:
						from = netip.AddrPortFrom(from.Addr(), from.Port()+1)
					case 1:
						from = netip.AddrPortFrom(host(x.attackers, 900), from.Port())
					case 2:
						to = netip.AddrPortFrom(to.Addr(), portStale)
					}
					return x.w.sctp(from, to, p.tag, wire.AppendCookieEcho(nil, p.cookie))
				}, nil
			}},
		{name: "cookie replay: one that lists third parties, whose ABORT has ended the association", rfc: "5062 6",
			must: []string{"COOKIE ACK", "ABORT"}, may: append(handshake, "HEARTBEAT"+third), echo: 1,
			start: func(x *scene) (func(int) error, error) {
				p := x.peer(x.to(portSCTP), x.listed(7))
				if err := p.ask(); err != nil {
					return nil, err
				}
				p.silent = true
				return func(i int) error {
					if err := p.send(wire.AppendCookieEcho(nil, p.cookie)); err != nil {
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
					from := netip.AddrPortFrom(host(x.innocents, i%7), p.src.Port())
					return x.w.sctp(from, x.to(portSCTP), p.own, wire.AppendAbort(nil, true))
				}, nil
			}},
		{name: "associations that say nothing", rfc: "5042 6.4.1", most: 3000,
			must: []string{"INIT ACK", "COOKIE ACK"}, may: handshake,
			start: blind(func(x *scene, _ int) error {
				p, err := x.open(x.to(portSCTP), nil)
				p.forget() // but not the victim
				return err
			})},
		{name: "address camping: the only address that the client will use", rfc: "5062 2", most: 1500,
			must: []string{"INIT ACK", "COOKIE ACK"}, may: append(handshake, "HEARTBEAT"+client, "INIT ACK"+client,
				"COOKIE ACK"+client, "ABORT 12"+client),
			start: camp(portSCTP),
			finish: func(x *scene) error {
				return x.friend.ask("dial", dialing{Port: campedPort, To: portSCTP, Timeout: leave}, nil)
			}},
		{name: "address camping: one of two addresses, until its probes have gone unanswered", rfc: "5062 2",
			most: 1500,
			must: []string{"INIT ACK", "COOKIE ACK"},
			may: append(handshake, "ABORT", "HEARTBEAT"+client, "INIT ACK"+client, "COOKIE ACK"+client,
				"ABORT 12"+client),
			start: camp(portHasty),
			finish: func(x *scene) error {
				for end := time.Now().Add(leave); ; {
					time.Sleep(hastyEnd)
					err := x.friend.ask("dial", dialing{Port: campedPort, To: portHasty, Both: true, Timeout: leave},
						nil)
					if err == nil || time.Now().After(end) {
						return err
					}
				}
			}},
		{name: "hijack: INIT on one's own association shows no tag of it", rfc: "5062 3", must: []string{"INIT ACK"},
			may: handshake,
			start: func(x *scene) (func(int) error, error) {
				p, err := x.open(x.to(portSCTP), nil)
				if err != nil {
					return nil, err
				}
				own, theirs := number(p.own), number(p.tag)
				return func(int) error {
					q := *p
					q.own = x.w.guess()
					if err := q.ask(); err != nil {
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
			start: func(x *scene) (func(int) error, error) {
				p, err := x.open(x.to(portSCTP), nil)
				return func(int) error { p.own = x.w.guess(); return p.connect() }, err
			}},
		{name: "packets out of the blue in the names of third parties", rfc: "5062 8, 9260 8.4",
			must: []string{"ABORT" + third}, echo: 1,
			start: blind(func(x *scene, i int) error {
				from := x.innocent(i)
				var b []byte
				for range 90 {
					b = wire.AppendHeartbeat(b, make([]byte, 4))
				}
				return x.w.sctp(from, x.to(portSCTP), x.w.guess(), b)
			})},
		{name: "SHUTDOWN ACK out of the blue in the names of third parties", rfc: "5062 8, 9260 8.4",
			must: []string{"SHUTDOWN COMPLETE" + third}, echo: 1,
			start: blind(func(x *scene, i int) error {
				return x.w.sctp(x.innocent(i), x.to(portSCTP), x.w.guess(), wire.AppendShutdownAck(nil))
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
			start: func(x *scene) (func(int) error, error) {
				var s victimStats
				err := x.victim.ask("stats", nil, &s)
				failed = s.Transport.TxFailed
				return func(i int) error {
					from := netip.AddrPortFrom(x.nobodies[i/3%len(x.nobodies)], portSCTP)
					switch i % 3 {
					case 0:
						return x.w.sctp(from, x.to(portSCTP), 0, initChunk(x.w.guess(), 1, 1<<16, nil))
					case 1:
						return x.w.sctp(from, x.to(portSCTP), x.w.guess(), wire.AppendShutdownAck(nil))
					}
					return x.w.sctp(from, x.to(portSCTP), x.w.guess(), dataChunk(nil, 1, whole, 0, 0, 0, []byte{1}))
				}, err
			},
			finish: func(x *scene) error {
				var s victimStats
				if err := x.victim.ask("stats", nil, &s); err != nil {
					return err
				}
				if n := s.Transport.TxFailed - failed; n > 0 {
					return fmt.Errorf("%d answers to addresses that the victim has no way to", n)
				}
				return nil
			}},
		{name: "associations that list nobody's and the victim's own addresses", rfc: "5062 5, 9260 5.1.2",
			must: []string{"INIT ACK", "COOKIE ACK"}, may: []string{"HEARTBEAT"},
			start: blind(func(x *scene, _ int) error {
				var params []byte
				for _, a := range x.nobodies {
					params = wire.AppendParam(params, wire.ParamIPv6, a.AsSlice())
				}
				_, err := x.open(x.to(portSCTP), params)
				return err
			})},
	}
}

// camp sets up associations that list the second address of the honest client, from the port that
// it will use and from others.
func camp(port uint16) func(*scene) (func(int) error, error) {
	return blind(func(x *scene, i int) error {
		p := x.w.peer(netip.AddrPortFrom(host(x.attackers, 1000+i/2000), uint16(campedPort+i%2000)), x.to(port))
		p.inits = wire.AppendAddressParam(nil, x.friendOther)
		x.peers = append(x.peers, p)
		return p.connect()
	})
}
