//go:build linux

package main

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Whoever is not on the path knows addresses and ports, and has to guess tags.
const client = " to the client" // marks what the victim sent to the honest client

// asClient sends a packet in the honest client's name.
func asClient(f func(x *attackEnv, i int) []byte) func(*attackEnv) (func(int) error, error) {
	return withoutAssoc(func(x *attackEnv, i int) error {
		return x.w.sendSCTP(x.clientAddr(), x.victimPort(portSCTP), x.w.randomTag(), f(x, i))
	})
}

// tBitOfOdd sets the T bit of every second packet.
func tBitOfOdd(i int) bool { return i%2 == 1 }

func blindAttacks(f *family) []attack {
	list := []attack{
		{name: "ABORT with guessed tags, T bit on and off", rfc: "5062 3.2, 9260 8.5.1",
			start: asClient(func(_ *attackEnv, i int) []byte { return wire.AppendAbort(nil, tBitOfOdd(i)) })},
		{name: "SHUTDOWN with guessed tags", rfc: "9260 8.5.1",
			start: asClient(func(x *attackEnv, _ int) []byte {
				return wire.AppendShutdown(nil, wire.TSN(x.w.rnd.Uint32()))
			})},
		{name: "SHUTDOWN ACK with guessed tags", rfc: "9260 8.5.1",
			start: asClient(func(*attackEnv, int) []byte { return wire.AppendShutdownAck(nil) })},
		{name: "SHUTDOWN COMPLETE with guessed tags, T bit on and off", rfc: "9260 8.5.1",
			start: asClient(func(_ *attackEnv, i int) []byte {
				return wire.AppendShutdownComplete(nil, tBitOfOdd(i))
			})},
		{name: "DATA with guessed tags and TSNs", rfc: "5062 3.2, 9260 8.5",
			start: asClient(func(x *attackEnv, _ int) []byte {
				return dataChunk(nil, wire.TSN(x.w.rnd.Uint32()), whole, 0, uint16(x.w.rnd.Uint32()), 0,
					make([]byte, 1000))
			})},
		{name: "SACK with guessed tags and TSNs", rfc: "5062 5.3, 9260 8.5",
			start: asClient(func(x *attackEnv, _ int) []byte {
				return wire.AppendSack(nil, wire.SackFields{CumTSN: wire.TSN(x.w.rnd.Uint32())})
			})},
		{name: "ERROR Stale Cookie and COOKIE ACK with guessed tags", rfc: "9260 5.2.5, 5.2.6",
			start: asClient(func(_ *attackEnv, i int) []byte {
				if tBitOfOdd(i) {
					return wire.AppendCookieAck(nil)
				}
				return wire.CloseChunk(wire.AppendStaleCookieCause(wire.AppendError(nil), 1000), 0)
			})},
		{name: "HEARTBEAT ACK with guessed tags and nonces", rfc: "5062 2.3",
			start: asClient(func(x *attackEnv, _ int) []byte {
				return wire.AppendHeartbeatAck(nil, guessedNonce(x, x.friendOther))
			})},
		{name: "INIT in the client's name, again and again", rfc: "5062 4, 9260 5.2.2", must: []string{"INIT ACK" + client},
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				return x.w.sendSCTP(x.clientAddr(), x.victimPort(portSCTP), 0,
					initChunk(x.w.randomTag(), 1, 1<<16, nil))
			})},
		{name: "INIT that lists the client's address, from the client's port", rfc: "5062 2, 9260 5.2.2", must: []string{"ABORT 11"},
			start: withoutAssoc(func(x *attackEnv, i int) error {
				from := netip.AddrPortFrom(hostAddr(x.attackers, i%200), friendSCTP)
				return x.w.sendSCTP(from, x.victimPort(portSCTP), 0,
					initChunk(x.w.randomTag(), 1, 1<<16, wire.AppendAddressParam(nil, x.friendAddr)))
			})},
		{name: "COOKIE ECHO with made-up cookies in the client's name", rfc: "9260 5.1.5, 5.2.4",
			start: asClient(func(x *attackEnv, _ int) []byte {
				return wire.AppendCookieEcho(nil, randomOctets(x, 124))
			})},
		{name: "COOKIE ECHO with cookies of the attacker's in the client's name", rfc: "5062 4, 9260 5.2.4",
			start: func(x *attackEnv) (func(int) error, error) {
				p := x.w.newPeer(netip.AddrPortFrom(hostAddr(x.attackers, 900), friendSCTP), x.victimPort(portSCTP))
				defer p.stopReceiving()
				if err := p.requestCookie(); err != nil {
					return nil, err
				}
				return func(i int) error {
					return x.w.sendSCTP(x.clientAddr(), x.victimPort(portSCTP), p.tag,
						wire.AppendCookieEcho(nil, p.cookie))
				}, nil
			}},
		{name: f.protocol.name + " with guessed tags", rfc: "9260 10",
			start: reportICMP(f.protocol, 0)},
		{name: f.port.name + " with guessed tags", rfc: "9260 10",
			start: reportICMP(f.port, 0)},
	}
	for _, mtu := range append([]uint32{f.leastMTU}, f.badMTUs...) {
		list = append(list, attack{name: fmt.Sprintf("%s, MTU %d, with guessed tags", f.tooBig.name, mtu),
			rfc:   "5062 10, 9260 10, 8899 4.6",
			start: reportICMP(f.tooBig, mtu), finish: checkMTUKept})
	}
	return list
}

// reportICMP sends reports about the client's association, and about one of another host of its
// network, in the name of a router.
func reportICMP(t icmpError, mtu uint32) func(*attackEnv) (func(int) error, error) {
	return func(x *attackEnv) (func(int) error, error) {
		x.bystander++
		about := []netip.AddrPort{x.clientAddr(), netip.AddrPortFrom(x.unknownHost(), friendSCTP)}
		return func(i int) error {
			return x.w.sendICMP(hostAddr(x.attackers, i%200), x.victimPort(portSCTP), about[i%2], t, mtu,
				x.w.randomTag())
		}, nil
	}
}

// unknownHost is a host that the present attack speaks of and the victim does not know yet.
func (x *attackEnv) unknownHost() netip.Addr {
	a := x.friendAddr.As16()
	a[15] += 10 + x.bystander
	return netip.AddrFrom16(a).Unmap()
}

// checkMTUKept checks that new associations do not begin with the MTU of a report that nobody could
// verify.
func checkMTUKept(x *attackEnv) error {
	var mtu int
	if err := x.victim.callAgent("mtu", x.unknownHost(), &mtu); err != nil {
		return err
	}
	if mtu < 1400 {
		return fmt.Errorf("the victim takes %d octets to be all that a path carries", mtu)
	}
	return nil
}

// randomOctets is random octets.
func randomOctets(x *attackEnv, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(x.w.rnd.Uint32())
	}
	return b
}

// guessedNonce is Heartbeat Info as the victim makes it, with a guessed nonce.
func guessedNonce(x *attackEnv, of netip.Addr) []byte {
	b, a := randomOctets(x, 32), of.As16()
	copy(b[16:], a[:])
	return b
}
