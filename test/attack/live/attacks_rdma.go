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
	"github.com/rddp-go/rddp/test/attack/rdmapeer/forge"
)

// session is one use of a stream of the attacker's association with the RDMA server.
type session struct {
	*peer
	stream uint16
	ssn    uint16 // DDP-SSN of the next message
	stags  map[string]rdma.STag
}

// segment sends a segment in its turn.
func (s *session) segment(b []byte) error {
	s.ssn++
	return s.ddp(s.stream, ddpadapt.PPIDSegment, forge.Numbered(s.ssn-1, b))
}

// segmentAs sends a segment with a DDP-SSN of the attacker's choice.
func (s *session) segmentAs(ssn uint16, b []byte) error {
	return s.ddp(s.stream, ddpadapt.PPIDSegment, forge.Numbered(ssn, b))
}

// begin opens a session and reads the STags that the victim advertises.
func (s *session) begin() error {
	s.ssn = 1
	if err := s.ddp(s.stream, ddpadapt.PPIDControl, forge.Control(0, forge.Initiate, nil)); err != nil {
		return err
	}
	m, err := s.message(s.stream)
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

// end waits for the victim's end of the session, and ends the other.
func (s *session) end() error {
	if err := s.terminated(); err != nil {
		return err
	}
	return s.ddp(s.stream, ddpadapt.PPIDControl, forge.Control(s.ssn, forge.Terminate, nil))
}

// terminated waits for the victim's Terminate.
func (s *session) terminated() error {
	for {
		m, err := s.message(s.stream)
		if err != nil {
			return fmt.Errorf("the end of the session: %w", err)
		}
		if m.ppid == ddpadapt.PPIDControl && len(m.data) >= 4 && binary.BigEndian.Uint16(m.data[2:]) ==
			forge.Terminate {
			return nil
		}
	}
}

// sessions makes steps that each open a session, attack in it, and see the victim end it.
func sessions(f func(x *scene, s *session) error) func(*scene) (func(int) error, error) {
	return func(x *scene) (func(int) error, error) {
		p, err := x.open(x.to(portRDMA), adaptation())
		return func(i int) error {
			p.drain()
			s := &session{peer: p, stream: uint16(i % 1000), stags: make(map[string]rdma.STag)}
			if err := s.begin(); err != nil {
				return err
			}
			if err := f(x, s); err != nil {
				return err
			}
			return s.end()
		}, err
	}
}

// one is an attack by one segment.
func one(f func(s *session) []byte) func(*scene) (func(int) error, error) {
	return sessions(func(_ *scene, s *session) error { return s.segment(f(s)) })
}

// reading is an attack by one Read of 64 octets.
func reading(region string, to uint64) func(*scene) (func(int) error, error) {
	return one(func(s *session) []byte {
		return forge.ReadRequest(1, rdmap.ReadRequest{SinkSTag: 7, Size: 64, SrcSTag: s.stags[region], SrcTO: to})
	})
}

// writing is an attack by one Write of 64 octets.
func writing(region string, to uint64) func(*scene) (func(int) error, error) {
	return one(func(s *session) []byte { return forge.Write(s.stags[region], to, forge.Evil(64)) })
}

// adding is an attack by one FetchAdd.
func adding(region string, to uint64) func(*scene) (func(int) error, error) {
	return one(func(s *session) []byte {
		return forge.AtomicRequest(1, rdmap.AtomicRequest{ID: 1, STag: s.stags[region], TO: to, Op: rdmap.FetchAdd(1)})
	})
}

// Terminates, as describeData names them.
func ddpTagged(code uint8) []string {
	return terminate(rdmap.LayerDDP, rdmap.EType(ddp.TypeTagged), code)
}
func ddpUntagged(code uint8) []string {
	return terminate(rdmap.LayerDDP, rdmap.EType(ddp.TypeUntagged), code)
}
func protection(code uint8) []string { return terminate(rdmap.LayerRDMA, rdmap.RemoteProtection, code) }
func operation(code uint8) []string  { return terminate(rdmap.LayerRDMA, rdmap.RemoteOperation, code) }

func terminate(l rdmap.Layer, t rdmap.EType, code uint8) []string {
	return []string{fmt.Sprintf("Terminate %d/%d/%d", l, t, code)}
}

func rdmaAttacks() []attack {
	list := []attack{
		{name: "Write with a forged STag", rfc: "5042 6.1.1", must: ddpTagged(ddp.CodeInvalidSTag),
			start: sessions(func(x *scene, s *session) error {
				return s.segment(forge.Write(rdma.STag(x.w.rnd.Uint32()), regionBase, forge.Evil(64)))
			})},
		{name: "Read with a forged STag", rfc: "5042 6.1.1", must: protection(rdmap.CodeInvalidSTag),
			start: sessions(func(x *scene, s *session) error {
				return s.segment(forge.ReadRequest(1,
					rdmap.ReadRequest{Size: 64, SrcSTag: rdma.STag(x.w.rnd.Uint32()), SrcTO: regionBase}))
			})},
		{name: "Write past the end of a region", rfc: "5042 6.2.1", must: ddpTagged(ddp.CodeBaseBounds), start: writing("rw", regionBase+pageLen-63)},
		{name: "Write before a region", rfc: "5042 6.2.1", must: ddpTagged(ddp.CodeBaseBounds), start: writing("rw", regionBase-1)},
		{name: "Read past the end of a region", rfc: "5042 6.3.1", must: protection(rdmap.CodeBounds), start: reading("ro", regionBase+pageLen-63)},
		{name: "Write whose end wraps the Tagged Offset", rfc: "5041 7.1", must: ddpTagged(ddp.CodeTOWrap), start: writing("top", 1<<64-8)},
		{name: "Write to another Protection Domain", rfc: "5042 6.1.1", must: ddpTagged(ddp.CodeNotAssociated), start: writing("foreign", regionBase)},
		{name: "Read of another Protection Domain", rfc: "5042 6.1.1", must: protection(rdmap.CodeNotAssociated), start: reading("foreign", regionBase)},
		{name: "Write to the region of another queue pair", rfc: "5042 6.1.1", must: ddpTagged(ddp.CodeNotAssociated), start: writing("scoped", regionBase)},
		{name: "Write to the honest client's memory", rfc: "5042 6.1.1", must: ddpTagged(ddp.CodeNotAssociated),
			start: sessions(func(x *scene, s *session) error {
				return s.segment(forge.Write(x.regions["friend"], regionBase, forge.Evil(64)))
			})},
		{name: "Write to a revoked region", rfc: "5042 6.2.2", must: ddpTagged(ddp.CodeInvalidSTag), start: writing("revoked", regionBase)},
		{name: "Read of a revoked region", rfc: "5042 6.3.3", must: protection(rdmap.CodeInvalidSTag), start: reading("revoked", regionBase)},
		{name: "Write to read-only memory", rfc: "5042 6.2.1", must: ddpTagged(ddp.CodeInvalidSTag), start: writing("ro", regionBase)},
		{name: "Read of write-only memory", rfc: "5042 6.3.1", must: protection(rdmap.CodeAccess), start: reading("wo", regionBase)},
		{name: "Read of memory that was never advertised", rfc: "5042 6.3.1", must: protection(rdmap.CodeAccess), start: reading("local", regionBase)},
		{name: "atomic on memory without that right", rfc: "7306 8.2", must: protection(rdmap.CodeAccess), start: adding("rw", regionBase)},
		{name: "atomic on an address that is not aligned", rfc: "7306 5.1.1", must: operation(rdmap.CodeCatastrophic), start: adding("atomic", regionBase+4)},
		{name: "Send longer than its receive", rfc: "5041 7.1", must: ddpUntagged(ddp.CodeTooLong),
			start: one(func(*session) []byte {
				return forge.Untagged(rdmap.OpSend, rdmap.QueueSend, 1, 0, forge.Evil(recvLen+1))
			})},
		{name: "Send without a receive", rfc: "5042 6.4.3.1", must: ddpUntagged(ddp.CodeNoBuffer),
			start: one(func(*session) []byte {
				return forge.Untagged(rdmap.OpSend, rdmap.QueueSend, 2, 0, forge.Evil(8))
			})},
		{name: "Immediate Data without a receive", rfc: "7306 6.3", must: ddpUntagged(ddp.CodeNoBuffer),
			start: one(func(*session) []byte {
				return forge.Untagged(rdmap.OpImmediate, rdmap.QueueSend, 2, 0, forge.Evil(8))
			})},
		{name: "message sequence number out of range", rfc: "5041 7.1", must: ddpUntagged(ddp.CodeMSNRange),
			start: one(func(*session) []byte {
				return forge.Untagged(rdmap.OpSend, rdmap.QueueSend, 0, 0, forge.Evil(8))
			})},
		{name: "queue number that is not there", rfc: "5041 7.1", must: ddpUntagged(ddp.CodeInvalidQN),
			start: one(func(*session) []byte { return forge.Untagged(rdmap.OpSend, 9, 1, 0, forge.Evil(8)) })},
		{name: "more Reads than the read queue holds", rfc: "5042 6.4.3.3", must: ddpUntagged(ddp.CodeNoBuffer), may: []string{"Read Response"},
			start: sessions(func(_ *scene, s *session) error {
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
			start: sessions(func(_ *scene, s *session) error {
				return s.segmentAs(40000, forge.Write(s.stags["rw"], regionBase+1<<20, forge.Evil(64)))
			})},
		{name: "DDP-SSN used twice", rfc: "5043 10", must: []string{"session Terminate"},
			start: sessions(func(_ *scene, s *session) error {
				return s.segmentAs(0, forge.Write(s.stags["rw"], regionBase+1<<20, forge.Evil(64)))
			})},
		{name: "opcode that is reserved", rfc: "5040 7.2", must: operation(rdmap.CodeUnexpectedOpcode),
			start: one(func(s *session) []byte { return forge.Tagged(13, s.stags["rw"], regionBase, forge.Evil(8)) })},
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
			start: func(x *scene) (func(int) error, error) {
				var p *peer
				return func(i int) error {
					if i%1000 == 0 {
						var err error
						if p, err = x.open(x.to(portRDMA), adaptation()); err != nil {
							return err
						}
					}
					p.drain()
					return p.ddp(uint16(i%1000), ddpadapt.PPIDControl, forge.Control(0, forge.Initiate, nil))
				}, nil
			}},
		{name: "an ABORT, for as many sessions as an association has", rfc: "5042 6.4.1", least: 2002,
			must: []string{"Accept"}, may: usual,
			start: func(x *scene) (func(int) error, error) {
				var p *peer
				return func(i int) (err error) {
					switch i % 1001 {
					case 0:
						p, err = x.open(x.to(portRDMA), adaptation())
						return err
					case 1000:
						p.abort()
						return nil
					}
					p.drain()
					return p.ddp(uint16(i%1001), ddpadapt.PPIDControl, forge.Control(0, forge.Initiate, nil))
				}, nil
			}},
		{name: "segments that leave DDP-SSN gaps on all streams", rfc: "5042 6.4.3, 5043 10", may: usual,
			start: func(x *scene) (func(int) error, error) {
				p, err := x.open(x.to(portRDMA), adaptation())
				return func(i int) error {
					p.drain()
					stream := uint16(i / 40 % 1000)
					if i%40 == 0 {
						return p.ddp(stream, ddpadapt.PPIDControl, forge.Control(0, forge.Initiate, nil))
					}
					return p.ddp(stream, ddpadapt.PPIDSegment,
						forge.Numbered(uint16(2*(i%40)), forge.Write(1, 0, forge.Evil(1200))))
				}, err
			}},
		{name: "ordered messages with missing SSNs, 60 in a packet, on sessions that are over",
			rfc: "5043 5.2, 9260 6.6", may: usual,
			start: func(x *scene) (func(int) error, error) {
				p, err := x.open(x.to(portRDMA), adaptation())
				return func(i int) error {
					p.drain()
					var b []byte
					for k := range 60 {
						n := i*60 + k
						b = p.data(b, whole, uint16(n/30000%1000), uint16(1+n%30000), ddpadapt.PPIDSegment,
							[]byte{0, 1, 2})
					}
					return p.send(b)
				}, err
			}},
		{name: "fragments of segments that never end", rfc: "5043 9, 9260 6.9", may: append(usual, "ABORT 13"),
			start: func(x *scene) (func(int) error, error) {
				p, err := x.open(x.to(portRDMA), adaptation())
				return func(i int) error {
					p.drain()
					p.next++
					return p.send(p.data(nil, wire.FlagB|wire.FlagU, uint16(i%1000), 0, ddpadapt.PPIDSegment,
						make([]byte, 1400)))
				}, err
			}},
		{name: "Initiate and Terminate, again and again", rfc: "5042 6.4.1", must: []string{"Accept"}, may: usual,
			start: sessions(func(_ *scene, s *session) error {
				s.ssn++
				return s.ddp(s.stream, ddpadapt.PPIDControl, forge.Control(s.ssn-1, forge.Terminate, nil))
			})},
	}
}
