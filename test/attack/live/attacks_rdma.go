//go:build linux

package main

import (
	"encoding/binary"
	"fmt"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// session is one use of a stream of the attacker's association with the RDMA server.
type session struct {
	*peer
	stream uint16
	ssn    uint16 // DDP-SSN of the next message
	stags  map[string]rdma.STag
}

// sendSegment sends a segment in its turn.
func (s *session) sendSegment(b []byte) error {
	s.ssn++
	return s.sendDDP(s.stream, ddpadapt.PPIDSegment, forge.Numbered(s.ssn-1, b))
}

// segmentAs sends a segment with a DDP-SSN of the attacker's choice.
func (s *session) segmentAs(ssn uint16, b []byte) error {
	return s.sendDDP(s.stream, ddpadapt.PPIDSegment, forge.Numbered(ssn, b))
}

// openSession opens a session and reads the STags that the victim advertises.
func (s *session) openSession() error {
	s.ssn = 1
	if err := s.sendDDP(s.stream, ddpadapt.PPIDControl, forge.Control(0, forge.Initiate, nil)); err != nil {
		return err
	}
	m, err := s.nextData(s.stream)
	if err != nil {
		return fmt.Errorf("no answer to the Initiate: %w", err)
	}
	b := m.data
	if m.ppid != ddpadapt.PPIDControl || len(b) != 4+4*len(names) || binary.BigEndian.Uint16(b[2:]) != forge.Accept {
		return fmt.Errorf("an Initiate is answered by %x", b)
	}
	for i, name := range names {
		s.stags[name] = rdma.STag(binary.BigEndian.Uint32(b[4+4*i:]))
	}
	return nil
}

// endSession waits for the victim's end of the session, and ends the other.
func (s *session) endSession() error {
	if err := s.awaitTerminate(); err != nil {
		return err
	}
	return s.sendDDP(s.stream, ddpadapt.PPIDControl, forge.Control(s.ssn, forge.Terminate, nil))
}

// awaitTerminate waits for the victim's Terminate.
func (s *session) awaitTerminate() error {
	for {
		m, err := s.nextData(s.stream)
		if err != nil {
			return fmt.Errorf("the end of the session: %w", err)
		}
		if m.ppid == ddpadapt.PPIDControl && len(m.data) >= 4 && binary.BigEndian.Uint16(m.data[2:]) ==
			forge.Terminate {
			return nil
		}
	}
}

// onNewSessions makes steps that each open a session, attack in it, and see the victim end it.
func onNewSessions(f func(x *attackEnv, s *session) error) func(*attackEnv) (func(int) error, error) {
	return func(x *attackEnv) (func(int) error, error) {
		p, err := x.openAssoc(x.victimPort(portRDMA), adaptationParam())
		return func(i int) error {
			p.drainPackets()
			s := &session{peer: p, stream: uint16(i % 1000), stags: make(map[string]rdma.STag)}
			if err := s.openSession(); err != nil {
				return err
			}
			if err := f(x, s); err != nil {
				return err
			}
			return s.endSession()
		}, err
	}
}

// oneSegment is an attack by one segment.
func oneSegment(f func(s *session) []byte) func(*attackEnv) (func(int) error, error) {
	return onNewSessions(func(_ *attackEnv, s *session) error { return s.sendSegment(f(s)) })
}

// readAttack is an attack by one Read of 64 octets.
func readAttack(region string, to uint64) func(*attackEnv) (func(int) error, error) {
	return oneSegment(func(s *session) []byte {
		return forge.ReadRequest(1, rdmap.ReadRequest{SinkSTag: 7, Size: 64, SrcSTag: s.stags[region], SrcTO: to})
	})
}

// writeAttack is an attack by one Write of 64 octets.
func writeAttack(region string, to uint64) func(*attackEnv) (func(int) error, error) {
	return oneSegment(func(s *session) []byte { return forge.Write(s.stags[region], to, forge.Evil(64)) })
}

// fetchAddAttack is an attack by one FetchAdd.
func fetchAddAttack(region string, to uint64) func(*attackEnv) (func(int) error, error) {
	return oneSegment(func(s *session) []byte {
		return forge.AtomicRequest(1, rdmap.AtomicRequest{ID: 1, STag: s.stags[region], TO: to, Op: rdmap.FetchAdd(1)})
	})
}

// Terminates, as describeData names them.
func ddpTagged(code uint8) []string {
	return terminateKind(rdmap.LayerDDP, rdmap.EType(ddp.TypeTagged), code)
}
func ddpUntagged(code uint8) []string {
	return terminateKind(rdmap.LayerDDP, rdmap.EType(ddp.TypeUntagged), code)
}
func protectionError(code uint8) []string {
	return terminateKind(rdmap.LayerRDMA, rdmap.RemoteProtection, code)
}
func operationError(code uint8) []string {
	return terminateKind(rdmap.LayerRDMA, rdmap.RemoteOperation, code)
}

func terminateKind(l rdmap.Layer, t rdmap.EType, code uint8) []string {
	return []string{fmt.Sprintf("Terminate %d/%d/%d", l, t, code)}
}

func rdmaAttacks() []attack {
	list := []attack{
		{name: "Write with a forged STag", rfc: "5042 6.1.1", must: ddpTagged(ddp.CodeInvalidSTag),
			start: onNewSessions(func(x *attackEnv, s *session) error {
				return s.sendSegment(forge.Write(rdma.STag(x.w.rnd.Uint32()), regionBase, forge.Evil(64)))
			})},
		{name: "Read with a forged STag", rfc: "5042 6.1.1", must: protectionError(rdmap.CodeInvalidSTag),
			start: onNewSessions(func(x *attackEnv, s *session) error {
				return s.sendSegment(forge.ReadRequest(1,
					rdmap.ReadRequest{Size: 64, SrcSTag: rdma.STag(x.w.rnd.Uint32()), SrcTO: regionBase}))
			})},
		{name: "Write past the end of a region", rfc: "5042 6.2.1", must: ddpTagged(ddp.CodeBaseBounds), start: writeAttack("rw", regionBase+pageLen-63)},
		{name: "Write before a region", rfc: "5042 6.2.1", must: ddpTagged(ddp.CodeBaseBounds), start: writeAttack("rw", regionBase-1)},
		{name: "Read past the end of a region", rfc: "5042 6.3.1", must: protectionError(rdmap.CodeBounds), start: readAttack("ro", regionBase+pageLen-63)},
		{name: "Write whose end wraps the Tagged Offset", rfc: "5041 7.1", must: ddpTagged(ddp.CodeTOWrap), start: writeAttack("top", 1<<64-8)},
		{name: "Write to another Protection Domain", rfc: "5042 6.1.1", must: ddpTagged(ddp.CodeNotAssociated), start: writeAttack("foreign", regionBase)},
		{name: "Read of another Protection Domain", rfc: "5042 6.1.1", must: protectionError(rdmap.CodeNotAssociated), start: readAttack("foreign", regionBase)},
		{name: "Write to the region of another queue pair", rfc: "5042 6.1.1", must: ddpTagged(ddp.CodeNotAssociated), start: writeAttack("scoped", regionBase)},
		{name: "Write to the honest client's memory", rfc: "5042 6.1.1", must: ddpTagged(ddp.CodeNotAssociated),
			start: onNewSessions(func(x *attackEnv, s *session) error {
				return s.sendSegment(forge.Write(x.regions["friend"], regionBase, forge.Evil(64)))
			})},
		{name: "Write to a revoked region", rfc: "5042 6.2.2", must: ddpTagged(ddp.CodeInvalidSTag), start: writeAttack("revoked", regionBase)},
		{name: "Read of a revoked region", rfc: "5042 6.3.3", must: protectionError(rdmap.CodeInvalidSTag), start: readAttack("revoked", regionBase)},
		{name: "Write to read-only memory", rfc: "5042 6.2.1", must: ddpTagged(ddp.CodeInvalidSTag), start: writeAttack("ro", regionBase)},
		{name: "Read of write-only memory", rfc: "5042 6.3.1", must: protectionError(rdmap.CodeAccess), start: readAttack("wo", regionBase)},
		{name: "Read of memory that was never advertised", rfc: "5042 6.3.1", must: protectionError(rdmap.CodeAccess), start: readAttack("local", regionBase)},
		{name: "atomic on memory without that right", rfc: "7306 8.2", must: protectionError(rdmap.CodeAccess), start: fetchAddAttack("rw", regionBase)},
		{name: "atomic on an address that is not aligned", rfc: "7306 5.1.1", must: operationError(rdmap.CodeCatastrophic), start: fetchAddAttack("atomic", regionBase+4)},
		{name: "Send longer than its receive", rfc: "5041 7.1", must: ddpUntagged(ddp.CodeTooLong),
			start: oneSegment(func(*session) []byte {
				return forge.Untagged(rdmap.OpSend, rdmap.QueueSend, 1, 0, forge.Evil(recvLen+1))
			})},
		{name: "Send without a receive", rfc: "5042 6.4.3.1", must: ddpUntagged(ddp.CodeNoBuffer),
			start: oneSegment(func(*session) []byte {
				return forge.Untagged(rdmap.OpSend, rdmap.QueueSend, 2, 0, forge.Evil(8))
			})},
		{name: "Immediate Data without a receive", rfc: "7306 6.3", must: ddpUntagged(ddp.CodeNoBuffer),
			start: oneSegment(func(*session) []byte {
				return forge.Untagged(rdmap.OpImmediate, rdmap.QueueSend, 2, 0, forge.Evil(8))
			})},
		{name: "message sequence number out of range", rfc: "5041 7.1", must: ddpUntagged(ddp.CodeMSNRange),
			start: oneSegment(func(*session) []byte {
				return forge.Untagged(rdmap.OpSend, rdmap.QueueSend, 0, 0, forge.Evil(8))
			})},
		{name: "queue number that is not there", rfc: "5041 7.1", must: ddpUntagged(ddp.CodeInvalidQN),
			start: oneSegment(func(*session) []byte { return forge.Untagged(rdmap.OpSend, 9, 1, 0, forge.Evil(8)) })},
		{name: "more Reads than the read queue holds", rfc: "5042 6.4.3.3", must: ddpUntagged(ddp.CodeNoBuffer), may: []string{"Read Response"},
			start: onNewSessions(func(_ *attackEnv, s *session) error {
				for msn := uint32(3); msn > 0; msn-- { // the last one first, so that none can be served before
					r := rdmap.ReadRequest{Size: 8, SrcSTag: s.stags["ro"], SrcTO: regionBase}
					if err := s.segmentAs(uint16(msn), forge.ReadRequest(msn, r)); err != nil {
						return err
					}
				}
				s.ssn = 4
				return nil
			})},
		{name: "DDP-SSN that jumps ahead of the window", rfc: "5043 10", must: []string{"session Terminate"},
			start: onNewSessions(func(_ *attackEnv, s *session) error {
				return s.segmentAs(40000, forge.Write(s.stags["rw"], regionBase+1<<20, forge.Evil(64)))
			})},
		{name: "DDP-SSN used twice", rfc: "5043 10", must: []string{"session Terminate"},
			start: onNewSessions(func(_ *attackEnv, s *session) error {
				return s.segmentAs(0, forge.Write(s.stags["rw"], regionBase+1<<20, forge.Evil(64)))
			})},
		{name: "opcode that is reserved", rfc: "5040 7.2", must: operationError(rdmap.CodeUnexpectedOpcode),
			start: oneSegment(func(s *session) []byte {
				return forge.Tagged(13, s.stags["rw"], regionBase, forge.Evil(8))
			})},
	}
	for i := range list {
		list[i].may = append(list[i].may, "INIT ACK", "COOKIE ACK", "HEARTBEAT", "SACK", "Accept",
			"session Terminate", "SHUTDOWN ACK")
	}
	return append(list, floodAttacks()...)
}

// floodAttacks are about what the victim can be made to hold.
func floodAttacks() []attack {
	usual := []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT", "SACK", "Accept", "session Terminate", "control"}
	return []attack{
		{name: "sessions that are opened and left, on all streams of each association", rfc: "5042 6.4.1",
			must: []string{"Accept"}, may: usual,
			start: func(x *attackEnv) (func(int) error, error) {
				var p *peer
				return func(i int) error {
					if i%1000 == 0 {
						var err error
						if p, err = x.openAssoc(x.victimPort(portRDMA), adaptationParam()); err != nil {
							return err
						}
					}
					p.drainPackets()
					return p.sendDDP(uint16(i%1000), ddpadapt.PPIDControl, forge.Control(0, forge.Initiate, nil))
				}, nil
			}},
		{name: "an ABORT, for as many sessions as an association has", rfc: "5042 6.4.1", least: 2002,
			must: []string{"Accept"}, may: usual,
			start: func(x *attackEnv) (func(int) error, error) {
				var p *peer
				return func(i int) (err error) {
					switch i % 1001 {
					case 0:
						p, err = x.openAssoc(x.victimPort(portRDMA), adaptationParam())
						return err
					case 1000:
						p.abortAssoc()
						return nil
					}
					p.drainPackets()
					return p.sendDDP(uint16(i%1001), ddpadapt.PPIDControl, forge.Control(0, forge.Initiate, nil))
				}, nil
			}},
		{name: "segments that leave DDP-SSN gaps on all streams", rfc: "5042 6.4.3, 5043 10", may: usual,
			start: func(x *attackEnv) (func(int) error, error) {
				p, err := x.openAssoc(x.victimPort(portRDMA), adaptationParam())
				return func(i int) error {
					p.drainPackets()
					stream := uint16(i / 40 % 1000)
					if i%40 == 0 {
						return p.sendDDP(stream, ddpadapt.PPIDControl, forge.Control(0, forge.Initiate, nil))
					}
					return p.sendDDP(stream, ddpadapt.PPIDSegment,
						forge.Numbered(uint16(2*(i%40)), forge.Write(1, 0, forge.Evil(1200))))
				}, err
			}},
		{name: "ordered messages with missing SSNs, 60 in a packet, on sessions that are over",
			rfc: "5043 5.2, 9260 6.6", may: usual,
			start: func(x *attackEnv) (func(int) error, error) {
				p, err := x.openAssoc(x.victimPort(portRDMA), adaptationParam())
				return func(i int) error {
					p.drainPackets()
					var b []byte
					for k := range 60 {
						n := i*60 + k
						b = p.appendData(b, whole, uint16(n/30000%1000), uint16(1+n%30000), ddpadapt.PPIDSegment,
							[]byte{0, 1, 2})
					}
					return p.sendChunks(b)
				}, err
			}},
		{name: "fragments of segments that never end", rfc: "5043 9, 9260 6.9", may: append(usual, "ABORT 13"),
			start: func(x *attackEnv) (func(int) error, error) {
				p, err := x.openAssoc(x.victimPort(portRDMA), adaptationParam())
				return func(i int) error {
					p.drainPackets()
					p.next++
					return p.sendChunks(p.appendData(nil, wire.FlagB|wire.FlagU, uint16(i%1000), 0,
						ddpadapt.PPIDSegment,
						make([]byte, 1400)))
				}, err
			}},
		{name: "Initiate and Terminate, again and again", rfc: "5042 6.4.1", must: []string{"Accept"}, may: usual,
			start: onNewSessions(func(_ *attackEnv, s *session) error {
				s.ssn++
				return s.sendDDP(s.stream, ddpadapt.PPIDControl, forge.Control(s.ssn-1, forge.Terminate, nil))
			})},
	}
}
