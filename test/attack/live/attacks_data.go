//go:build linux

package main

import (
	"errors"

	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// Whoever has an association may send what no honest peer would.
func dataAttacks() []attack {
	usual := []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT", "SACK"}
	source := append(usual, "DATA")
	late := append(usual, "ABORT") // of what comes out of the blue, because the association is gone
	return []attack{
		{name: "optimistic SACK: a TSN that was not sent", rfc: "5062 5.3, 9260 12.4", must: []string{"ABORT 13"},
			may: late,
			start: onNewAssocs(func(_ *attackEnv, p *peer, _ int) error {
				return p.sendChunks(wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum + 1, ARwnd: 1 << 20}))
			})},
		{name: "optimistic SACK: a gap block of what was not sent", rfc: "5062 5.3, 9260 12.4",
			must: []string{"ABORT 13"}, may: late,
			start: onNewAssocs(func(_ *attackEnv, p *peer, _ int) error {
				return p.sendChunks(wire.AppendSack(nil,
					wire.SackFields{CumTSN: p.cum, ARwnd: 1 << 20, Gaps: []wire.GapBlock{{Start: 2, End: 60000}}}))
			})},
		{name: "optimistic SHUTDOWN: a TSN that was not sent", rfc: "5062 5.3, 9260 12.4", must: []string{"ABORT 13"},
			may: late,
			start: onNewAssocs(func(_ *attackEnv, p *peer, _ int) error {
				return p.sendChunks(wire.AppendShutdown(nil, p.cum+9))
			})},
		{name: "SACK with 340 gap blocks of nothing: empty, backwards, over each other", rfc: "9260 3.3.4",
			may: append(source, "ABORT 13", "ABORT"),
			start: withoutAssoc(func(x *attackEnv, i int) error {
				p, err := x.openAssoc(x.victimPort(portSCTP), nil)
				if err != nil {
					return err
				}
				defer x.dropPeer(p)
				defer p.abortAssoc()
				if err := p.sendMessage(askSource); err != nil {
					return err
				}
				gaps := make([]wire.GapBlock, 340)
				for k := range gaps {
					gaps[k] = [...]wire.GapBlock{{Start: 0, End: 0}, {Start: 9, End: 3}, {Start: 1, End: 1},
						{Start: 1, End: 1}}[(i+k)%4]
				}
				return p.sendChunks(wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum, ARwnd: 1 << 20, Gaps: gaps}))
			})},
		{name: "SACK that takes back what it acknowledged", rfc: "9260 6.2.1", may: source,
			start: onOneAssoc(askSource, func(_ *attackEnv, p *peer, i int) error {
				return p.sendChunks(wire.AppendSack(nil,
					wire.SackFields{CumTSN: p.cum - wire.TSN(i%1000), ARwnd: 1 << 20}))
			})},
		{name: "ordered messages of 1 octet, 70 in a packet", rfc: "9260 6.9, 9260 12.4", must: []string{"SACK"},
			may:   usual,
			start: sendTiny(0)},
		{name: "unordered messages of 1 octet, 70 in a packet, and a program that does not read", rfc: "9260 6.9",
			must: []string{"SACK"}, may: usual,
			start: fillBuffer(func(p *peer, b []byte,
				_ int) []byte {
				return p.appendData(b, whole|wire.FlagU, 0, 0, 0, []byte{1})
			}, 70)},
		{name: "first fragments on 1024 streams that never end", rfc: "9260 6.9", must: []string{"SACK"},
			may: append(usual, "ABORT 13"),
			start: fillBuffer(func(p *peer, b []byte, i int) []byte {
				p.next++ // a gap before each, or it would be a violation
				return p.appendData(b, wire.FlagB, uint16(i%1024), 0, 0, []byte{1, 2, 3, 4})
			}, 50)},
		{name: "one message that never ends", rfc: "9260 6.9", must: []string{"SACK"}, may: usual,
			start: onOneAssoc("hello", func(_ *attackEnv, p *peer, i int) error {
				var f uint8
				if i == 0 {
					f = wire.FlagB
				}
				return p.sendChunks(p.appendData(nil, f, 1, 0, 0, make([]byte, 1400)))
			})},
		{name: "streams that never fill: SSN 0 is missing on 1024 of them", rfc: "9260 6.6", must: []string{"SACK"},
			may: usual,
			start: fillBuffer(func(p *peer, b []byte, i int) []byte {
				return p.appendData(b, whole, uint16(i%1024), uint16(1+i/1024), 0, []byte{1})
			}, 70)},
		{name: "every second TSN only", rfc: "9260 6.2", must: []string{"SACK"}, may: usual,
			start: fillBuffer(func(p *peer, b []byte, _ int) []byte {
				p.next++
				return p.appendData(b, whole|wire.FlagU, 0, 0, 0, []byte{1})
			}, 70)},
		{name: "the same TSN again and again, 70 in a packet", rfc: "9260 6.2", must: []string{"SACK"}, may: usual,
			start: onOneAssoc("hello", func(_ *attackEnv, p *peer, _ int) error {
				var b []byte
				for range 70 {
					b = dataChunk(b, p.next-1, whole, 0, 0, 0, []byte{1})
				}
				return p.sendChunks(b)
			})},
		{name: "TSNs far ahead of the window", rfc: "9260 6.2", must: []string{"SACK"}, may: usual,
			start: onOneAssoc("hello", func(x *attackEnv, p *peer, _ int) error {
				return p.sendChunks(dataChunk(nil, p.next+1<<17+wire.TSN(x.w.rnd.Uint32()>>2), whole, 0, 0, 0,
					make([]byte, 1400)))
			})},
		{name: "beyond the receive window of a program that does not read", rfc: "9260 6.2", must: []string{"SACK"},
			may: usual,
			start: onOneAssoc(askStall, func(_ *attackEnv, p *peer, i int) error {
				return p.sendChunks(p.appendData(nil, whole, 1, uint16(i), 0, make([]byte, 1400)))
			})},
		{name: "DATA without user data", rfc: "9260 3.3.1", must: []string{"ABORT 9"}, may: late,
			start: onNewAssocs(func(_ *attackEnv, p *peer, _ int) error {
				return p.sendChunks(p.appendData(nil, whole, 0, 0, 0, nil))
			})},
		{name: "I-DATA that was not agreed on", rfc: "8260 2.2.3", must: []string{"ABORT 13"}, may: late,
			start: onNewAssocs(sendChunkOf(wire.ChunkIData, 24))},
		{name: "FORWARD-TSN that was not offered", rfc: "3758 3.3, 9260 3.2", must: []string{"ERROR 6"}, may: usual,
			start: sendUnoffered(wire.ChunkForwardTSN, 8)},
		{name: "I-FORWARD-TSN that was not agreed on", rfc: "8260 2.3.1", must: []string{"ABORT 13"}, may: late,
			start: onNewAssocs(sendChunkOf(wire.ChunkIForwardTSN, 12))},
		{name: "RE-CONFIG that was not offered", rfc: "6525 3.1, 9260 3.2", may: usual,
			start: sendUnoffered(wire.ChunkReconfig, 20)},
		{name: "ASCONF that was not offered: add an address, delete the other", rfc: "5062 3, 5061 4.1",
			must: []string{"ERROR 6"}, may: usual,
			start: onOneAssoc("hello", func(x *attackEnv, p *peer, i int) error {
				b := wire.AppendAsconf(nil, uint32(i), p.src.Addr())
				b = wire.AppendAddrRequest(b, wire.ParamAddIP, 1, hostAddr(x.innocents, 1))
				b = wire.AppendAddrRequest(b, wire.ParamDeleteIP, 2, p.src.Addr())
				return p.sendChunks(wire.CloseChunk(b, 0))
			})},
		{name: "AUTH that was not offered", rfc: "4895 6, 9260 3.2", may: usual,
			start: sendUnoffered(wire.ChunkAuth, 24)},
		{name: "chunks cut short, too long, and of length 0 to 3", rfc: "9260 3.2, 6.10", may: usual,
			start: onOneAssoc("hello", func(x *attackEnv, p *peer, i int) error {
				b := dataChunk(nil, p.next, whole, 0, 0, 0, make([]byte, 100))
				n := [...]int{0, 1, 2, 3, 5, 12, 15, 200, 1000, 65535}[i%10]
				b[2], b[3] = byte(n>>8), byte(n)
				return p.sendChunks(b)
			})},
		{name: "malformed SACK, HEARTBEAT, ERROR, SHUTDOWN, ABORT", rfc: "9260 3.3", may: usual,
			start: onOneAssoc("hello", func(x *attackEnv, p *peer, i int) error {
				types := [...]wire.ChunkType{wire.ChunkSack, wire.ChunkHeartbeat, wire.ChunkShutdown,
					wire.ChunkHeartbeatAck, wire.ChunkError}
				b := wire.AppendChunk(nil, types[i%len(types)], 0, []byte{0xFF, 0xFF, 0xFF})
				return p.sendChunks(b)
			})},
		{name: "bad checksums and the checksum 0", rfc: "9260 6.8",
			start: withoutAssoc(func(x *attackEnv, i int) error {
				b := forge.Packet(friendSCTP, portSCTP, x.w.randomTag(),
					dataChunk(nil, 1, whole, 0, 0, 0, make([]byte, 1000)))
				b[8], b[9], b[10], b[11] = 0, 0, 0, byte(i%2)
				return x.w.sendIP(x.w.carrySCTP(x.friendAddr, x.victimAddr, encapPort, b))
			})},
		{name: "packets shorter than a header, with port 0, without a chunk", rfc: "9260 3.1",
			start: withoutAssoc(func(x *attackEnv, i int) error {
				b := forge.Packet(uint16(i%2*7), portSCTP, x.w.randomTag(), nil)
				return x.w.sendIP(x.w.carrySCTP(hostAddr(x.attackers, 1), x.victimAddr, encapPort,
					b[:[...]int{12, 11, 4, 1}[i%4]]))
			})},
	}
}

// sendTiny sends ordered messages of one octet.
func sendTiny(flags uint8) func(*attackEnv) (func(int) error, error) {
	return onOneAssoc("hello", func(_ *attackEnv, p *peer, i int) error {
		var b []byte
		for k := range 70 {
			b = p.appendData(b, whole|flags, 1, uint16(i*70+k), 0, []byte{1})
		}
		return p.sendChunks(b)
	})
}

// fillBuffer sends DATA, n chunks in a packet, to a program that does not read, so that all that
// the victim takes it has to hold.
func fillBuffer(f func(p *peer, b []byte, i int) []byte, n int) func(*attackEnv) (func(int) error, error) {
	return func(x *attackEnv) (func(int) error, error) {
		var p *peer
		return func(i int) error {
			if p == nil {
				var err error
				if p, err = x.openAssoc(x.victimPort(portSCTP), nil); err != nil {
					return err
				}
				if err := p.sendMessage(askStall); err != nil {
					return err
				}
			}
			p.drainPackets()
			var b []byte
			for k := range n {
				b = f(p, b, i*n+k)
			}
			return p.sendChunks(b)
		}, nil
	}
}

// sendUnoffered sends chunks of an extension that was not agreed on, with n octets of no meaning.
func sendUnoffered(t wire.ChunkType, n int) func(*attackEnv) (func(int) error, error) {
	return onOneAssoc("hello", sendChunkOf(t, n))
}

// sendChunkOf sends a chunk with n octets of no meaning.
func sendChunkOf(t wire.ChunkType, n int) func(*attackEnv, *peer, int) error {
	return func(x *attackEnv, p *peer, _ int) error {
		if p.tag == 0 {
			return errors.New("no association")
		}
		return p.sendChunks(wire.AppendChunk(nil, t, wire.FlagB|wire.FlagE, randomOctets(x, n)))
	}
}
