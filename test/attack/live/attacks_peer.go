//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/attacker"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// Whoever has an association, and knows what its other end keeps of it, may try to have that cost
// much.
func peerAttacks() []attack {
	usual := []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT", "SACK"}
	source := append(usual, "DATA")
	list := []attack{
		{name: "SACKs that acknowledge by a gap block, and take back in the next chunk, 30 in a packet",
			rfc: "9260 6.2.1, 3.3.4", may: source,
			start: renegeThenSend(func(p *peer, n int) (b []byte) {
				for range 15 {
					b = wire.AppendSack(b, wire.SackFields{CumTSN: p.cum, ARwnd: 1 << 20,
						Gaps: []wire.GapBlock{{Start: 2, End: uint16(n)}}})
					b = wire.AppendSack(b, wire.SackFields{CumTSN: p.cum, ARwnd: 1 << 20})
				}
				return b
			})},
		{name: "SACKs that acknowledge every second chunk, and take back", rfc: "9260 6.2.1, 3.3.4", may: source,
			start: renegeThenSend(func(p *peer, n int) []byte {
				f := wire.SackFields{CumTSN: p.cum, ARwnd: 1 << 20}
				b := wire.AppendSack(nil, f)
				for at := 2; at <= n && len(f.Gaps) < 300; at += 2 {
					f.Gaps = append(f.Gaps, wire.GapBlock{Start: uint16(at), End: uint16(at)})
				}
				return wire.AppendSack(b, f)
			})},
		{name: "ordered messages of 1 octet whose SSNs descend, 70 in a packet", rfc: "9260 6.6",
			must: []string{"SACK"}, may: usual,
			start: fillBuffer(func(p *peer, b []byte, i int) []byte {
				return p.appendData(b, whole, 1, uint16(60000-i), 0,
					[]byte{1})
			}, 70)},
		{name: "messages of 1 octet whose TSNs descend, 70 in a packet", rfc: "9260 6.2", must: []string{"SACK"},
			may: usual,
			start: fillBuffer(func(p *peer, b []byte, i int) []byte {
				return dataChunk(b, p.next+60000-wire.TSN(i), whole|wire.FlagU, 0, 0, 0, []byte{1})
			}, 70)},
		{name: "SSNs that wait on 1000 streams, then come", rfc: "9260 6.6", must: []string{"SACK"}, may: usual,
			start: fillBuffer(func(p *peer, b []byte, i int) []byte {
				ssn := i / 1000 % 6
				return p.appendData(b, whole, uint16(i%1000), uint16(i/6000*6+(ssn+1)%6), 0, []byte{1})
			}, 70)},
		{name: "one octet on stream 65534 of each association", rfc: "9260 6.5", must: []string{"SACK"}, may: usual,
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				p := x.newPeer(x.victimPort(portSCTP), nil)
				p.streams = 65535
				if err := p.connectAssoc(); err != nil {
					return err
				}
				defer p.stopReceiving()
				return p.sendChunks(p.appendData(nil, whole, 65534, 0, 0, []byte{1}))
			})},
		{name: "tiny fragments on 1000 streams in turn, none the last", rfc: "9260 6.9", must: []string{"SACK"},
			may: append(usual, "ABORT 13"),
			start: fillBuffer(func(p *peer, b []byte, i int) []byte {
				if i%2 == 0 {
					p.next++
					return p.appendData(b, wire.FlagB|wire.FlagU, uint16(i/2%1000), 0, 0, []byte{1})
				}
				return p.appendData(b, wire.FlagU, uint16(i/2%1000), 0, 0, []byte{1})
			}, 60)},
		{name: "ECNE and CWR, 150 in a packet", rfc: "9260 appendix A", may: append(usual, "CWR", "ERROR 6"),
			start: onOneAssoc("hello", func(_ *attackEnv, p *peer, i int) error {
				return p.sendChunks(bytes.Repeat(wire.AppendChunk(nil, wire.ChunkECNE+wire.ChunkType(i%2), 0,
					uint32Octets(uint32(p.cum))), 150))
			})},
		{name: "SHUTDOWN that acknowledges nothing, of a victim that sends", rfc: "9260 9.2",
			may: append(source, "SHUTDOWN ACK"),
			start: onOneAssoc(askSource, func(_ *attackEnv, p *peer, _ int) error {
				return p.sendChunks(wire.AppendShutdown(nil, p.cum))
			})},
		{name: "associations that are shut down and not to the end", rfc: "9260 9.2", must: []string{"SHUTDOWN ACK"},
			may: usual,
			start: withoutAssoc(func(x *attackEnv, _ int) error {
				p, err := x.openAssoc(x.victimPort(portSCTP), nil)
				if err != nil {
					return err
				}
				defer p.stopReceiving()
				return p.sendChunks(wire.AppendShutdown(nil, p.cum))
			})},
		// Where packets count by their own octets, and not by the buffers that they lie in, the
		// heap has more than is accounted for.
		{name: "tiny packets, while the victim's program holds the gate of the association", rfc: "9260 6.2",
			least: 3000, may: append(usual, "HEARTBEAT ACK"),
			start: func(x *attackEnv) (func(int) error, error) {
				if err := x.victim.callAgent("release", nil, nil); err != nil { // of the time before
					return nil, err
				}
				p, err := x.openAssoc(x.victimPort(portSCTP), nil)
				if err != nil {
					return nil, err
				}
				if err := p.sendMessage(askHold); err != nil {
					return nil, err
				}
				b := wire.AppendHeartbeat(nil, make([]byte, 4))
				return func(int) error { return p.sendChunks(b) }, x.victim.callAgent("held", nil, nil)
			}},
		{name: "COOKIE ECHO of 60 KB, in IP fragments", rfc: "9260 5.1.5",
			start: func(x *attackEnv) (func(int) error, error) {
				c := wire.AppendCookieEcho(nil, randomOctets(x, 60_000))
				return func(int) error {
					src := x.freshAddr()
					return x.w.sendFragments(src.Addr(), x.victimAddr,
						forge.Packet(src.Port(), portSCTP, x.w.randomTag(), c))
				}, nil
			}, idle: 2 << 20},
	}
	for i := range 4 {
		over, careful := i&1 != 0, i&2 != 0
		where, how := "SCTP", "whatever it makes of it"
		if over {
			where = "RDMA"
		}
		if careful {
			how = "what need not end the association"
		}
		list = append(list, attack{name: fmt.Sprintf("a hostile peer of test/attack/attacker, %s: %s", where, how),
			rfc: "all", any: true, start: randomAttackers(over, careful),
			finish: func(x *attackEnv) error { return x.victim.callAgent("renew", nil, nil) }})
	}
	return list
}

// sessionAttacks are of a peer that has sessions.
func sessionAttacks() []attack {
	usual := []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT", "SACK", "Accept", "session Terminate", "control"}
	ended := append(usual, "Terminate 0/2/5", "Terminate 1/2/2", "Terminate 2/0/1")
	stop := func(s *session) error {
		s.ssn++
		return s.sendDDP(s.stream, ddpadapt.PPIDControl, forge.Control(s.ssn-1, forge.Terminate, nil))
	}
	return []attack{
		{name: "the last segment alone of an untagged message", rfc: "5041 5.3, 7.1",
			must: ddpUntagged(ddp.CodeInvalidMO), may: ended,
			start: onNewSessions(func(_ *attackEnv, s *session) error { // it brings what is there
				if err := s.sendSegment(forge.Untagged(rdmap.OpSend, rdmap.QueueSend, 1, recvLen-8, secret)); err !=
					nil {
					return err
				}
				return stop(s)
			})},
		{name: "a message of another protocol on a session's stream", rfc: "5043 5.2.1, 6.1",
			must: []string{"session Terminate"}, may: usual,
			start: onNewSessions(func(_ *attackEnv, s *session) error {
				return s.sendDDP(s.stream, 4711, forge.Evil(8))
			})},
		{name: "Initiates with the most private data, and then nothing", rfc: "5043 5.2.3", must: []string{"Accept"},
			may: usual,
			start: sendControl(func(_ int) []byte {
				return forge.Control(0, forge.Initiate, make([]byte, llp.MaxPrivateData))
			})},
		{name: "Initiates that are malformed, and refusals that are not acknowledged", rfc: "5043 5.2.3, 6.4",
			must: []string{"session Terminate"}, may: usual,
			start: sendControl(func(int) []byte {
				return forge.Control(0, forge.Initiate, make([]byte, llp.MaxPrivateData+1))
			})},
		{name: "Terminates of no session", rfc: "5043 6.4", may: usual,
			start: sendControl(func(int) []byte { return forge.Control(0, forge.Terminate, nil) })},
		{name: "a malformed Initiate behind a Terminate, while the victim's is not acknowledged", rfc: "5043 5.2.3, 6.6", must: []string{"session Terminate"},
			may: usual, start: onRDMAAssoc(malformedBehindTerminate)},
		{name: "a segment 30000 DDP-SSNs ahead of the Accept", rfc: "5043 10", must: []string{"Accept"}, may: usual,
			start: onRDMAAssoc(func(x *attackEnv, p *peer, i int) error {
				stream := uint16(i % 1000)
				b := p.appendData(nil, whole|wire.FlagU, stream, 0, ddpadapt.PPIDControl,
					forge.Control(0, forge.Initiate, nil))
				return p.sendChunks(p.appendData(b, whole|wire.FlagU, stream, 0, ddpadapt.PPIDSegment,
					forge.Numbered(30000, forge.Write(1, 0, forge.Evil(8)))))
			})},
		{name: "Reads of 4 KiB, as fast as they are answered", rfc: "5042 6.4.3.3", may: append(ended, "Read Response"),
			start: func(x *attackEnv) (func(int) error, error) {
				p, err := x.openAssoc(x.victimPort(portRDMA), adaptationParam())
				if err != nil {
					return nil, err
				}
				s := &session{peer: p, stags: make(map[string]rdma.STag)}
				if err := s.openSession(); err != nil {
					return nil, err
				}
				msn, due := uint32(0), 0
				return func(int) error {
					for due > 0 { // one at a time
						m, err := s.nextData(0)
						if err != nil {
							return err
						}
						if m.ppid == ddpadapt.PPIDSegment {
							due -= max(len(m.data)-16, 1)
						}
					}
					msn++
					due = pageLen
					return s.sendSegment(forge.ReadRequest(msn,
						rdmap.ReadRequest{SinkSTag: 7, Size: pageLen, SrcSTag: s.stags["ro"], SrcTO: regionBase}))
				}, nil
			}},
	}
}

// renegeThenSend has the victim send much, acknowledges none of it for good, and sends what f makes
// of n chunks that are outstanding.
func renegeThenSend(f func(p *peer, n int) []byte) func(*attackEnv) (func(int) error, error) {
	return func(x *attackEnv) (func(int) error, error) {
		p, err := x.openAssoc(x.victimPort(portSCTP), nil)
		if err != nil {
			return nil, err
		}
		if err := p.sendMessage(askSource); err != nil {
			return nil, err
		}
		for n := p.cum; p.cum-n < 500; { // so that it has much under way
			if _, err := p.nextData(0); err != nil {
				return nil, err
			}
		}
		p.silent = true
		highest := p.cum
		return func(int) error {
			for more := true; more; {
				select {
				case b := <-p.in:
					cs := wire.Packet(b).Chunks()
					for c, ok := cs.Next(); ok; c, ok = cs.Next() {
						if d, err := wire.AsData(c); err == nil && c.Type() == wire.ChunkData && highest.Less(d.TSN()) {
							highest = d.TSN()
						}
					}
				default:
					more = false
				}
			}
			return p.sendChunks(f(p, max(int(highest-p.cum), 2)))
		}, nil
	}
}

// onRDMAAssoc makes steps on one association with the RDMA server.
func onRDMAAssoc(f func(x *attackEnv, p *peer, i int) error) func(*attackEnv) (func(int) error, error) {
	return func(x *attackEnv) (func(int) error, error) {
		p, err := x.openAssoc(x.victimPort(portRDMA), adaptationParam())
		return func(i int) error {
			p.drainPackets()
			return f(x, p, i)
		}, err
	}
}

// sendControl sends control messages, each on a stream of its own, and does nothing more about
// them.
func sendControl(f func(i int) []byte) func(*attackEnv) (func(int) error, error) {
	return onRDMAAssoc(func(_ *attackEnv, p *peer, i int) error {
		return p.sendDDP(uint16(i%1000), ddpadapt.PPIDControl, f(i))
	})
}

// randomAttackers are four hostile peers that come from a seed.
func randomAttackers(overRDMA, careful bool) func(*attackEnv) (func(int) error, error) {
	return func(x *attackEnv) (func(int) error, error) {
		port := uint16(portSCTP)
		if overRDMA {
			port = portRDMA
		}
		var list []*randomAttacker
		for i := range 4 {
			p := x.newPeer(netip.AddrPortFrom(x.victimAddr, port), nil)
			list = append(list, newGremlin(p, uint64(i), overRDMA, careful))
		}
		return func(i int) error { return list[i%len(list)].sendNext() }, nil
	}
}

// newGremlin has an attacker of a seed speak in a peer's place.
func newGremlin(p *peer, seed uint64, overRDMA, careful bool) *randomAttacker {
	return &randomAttacker{w: p.w, src: p.src, dst: p.dst, in: p.in, peer: attacker.New(attacker.Seeded(seed),
		attacker.Config{LocalPort: p.src.Port(), RemotePort: p.dst.Port(), RDMA: overRDMA, MTU: 1400,
			Careful: careful})}
}
