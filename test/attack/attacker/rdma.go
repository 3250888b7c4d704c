package attacker

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// Payload protocol identifiers of RFC 5043 section 5.2.
const (
	ppidSegment = 16
	ppidControl = 17
)

// ddpState is what the peer knows of the DDP sessions.
type ddpState struct {
	ssn   [numSessions]uint16 // the peer's next DDP-SSN on each stream
	msn   [numSessions][4]uint32
	asked [numSessions]bool // the victim has sent an Initiate
	stags []ddp.STag        // that the victim has told, or seems to have told
}

const numSessions = 4 // streams that the peer uses

// learnSTags learns STags: every word of a message of the victim's may be one.
func (k *ddpState) learnSTags(d wire.Data) {
	b := d.Payload()
	if d.PPID() == ppidControl && len(b) >= 4 && d.Stream() < numSessions &&
		binary.BigEndian.Uint16(b[2:]) == forge.Initiate {
		k.asked[d.Stream()] = true
	}
	for i := 2; i+4 <= len(b) && i < 60; i += 2 {
		if v := binary.BigEndian.Uint32(b[i:]); v > 0xFFFF {
			k.stags = append(k.stags, ddp.STag(v))
		}
	}
	if n := len(k.stags); n > 64 {
		k.stags = append(k.stags[:0], k.stags[n-64:]...)
	}
}

// appendDDP appends a DATA chunk with a message of a DDP session, in its turn mostly.
func (p *Peer) appendDDP(b []byte) []byte {
	k := &p.k.ddp
	s := p.Below(min(numSessions, p.k.streams))
	ppid, fn := uint32(ppidSegment), uint16(0)
	switch {
	case k.ssn[s] == 0 && k.asked[s] && !p.One(6):
		ppid, fn = ppidControl, forge.Accept+uint16(p.Below(2))*uint16(p.Below(3))
	case k.ssn[s] == 0 && !p.One(10):
		ppid, fn = ppidControl, forge.Initiate
		if p.One(4) {
			fn = forge.EnhancedInitiate
		}
	case p.One(12):
		ppid, fn = ppidControl, uint16(p.Below(9))
	}
	body := p.ddpSegment(s)
	if ppid == ppidControl {
		body = binary.BigEndian.AppendUint16(nil, fn)
		body = append(body, p.Octets(p.Length(20))...)
		if p.One(12) {
			body = append(body, p.Octets(p.Length(600))...)
		}
	}
	ssn := k.ssn[s]
	switch p.Below(16) {
	case 1:
		ssn += uint16(p.Below(5))
	case 2:
		ssn = uint16(p.Uint32())
	default:
		k.ssn[s]++
	}
	if fn == forge.Terminate && p.One(2) {
		k.ssn[s], k.msn[s] = 0, [4]uint32{}
	}
	if p.One(24) {
		ppid = p.Uint32()
	}
	f := wire.DataFields{Flags: whole | wire.FlagU, TSN: p.k.next, Stream: wire.StreamID(s), PPID: ppid}
	if p.One(20) {
		f.Flags = byte(p.Below(16))
	}
	if p.One(16) {
		f.TSN += wire.TSN(p.Below(30))
	} else {
		p.k.next++
	}
	return p.appendData(b, f, p.cutSegment(forge.Numbered(ssn, body)))
}

// cutSegment shortens a message now and then; none is empty.
func (p *Peer) cutSegment(b []byte) []byte {
	if p.One(30) {
		return b[:1+p.Below(len(b))]
	}
	return b[:min(len(b), p.cfg.MTU-40)]
}

// drawSTag is one that the victim has told, one beside it, or any.
func (p *Peer) drawSTag() ddp.STag {
	if n := len(p.k.ddp.stags); n > 0 && !p.One(6) {
		s := p.k.ddp.stags[p.Below(n)]
		if p.One(10) {
			s += ddp.STag(p.Below(5)) - 2
		}
		return s
	}
	return ddp.STag(p.Uint32())
}

// drawOffset is a tagged offset, often near an edge.
func (p *Peer) drawOffset() uint64 {
	switch p.Below(5) {
	case 0:
		return uint64(p.Below(5000))
	case 1:
		return uint64(p.Uint32())<<32 | uint64(p.Uint32())
	case 2:
		return -uint64(p.Below(64))
	}
	return uint64(4096 - p.Below(64))
}

// ddpSegment is a DDP segment of any RDMAP message (RFC 5040 section 4, RFC 7306).
func (p *Peer) ddpSegment(s int) []byte {
	msn := func(q int) uint32 {
		n := &p.k.ddp.msn[s][q]
		if p.One(10) {
			return p.Uint32()
		}
		*n++
		return *n
	}
	payload := forge.Evil(p.Length(200))
	var b []byte
	switch p.Below(11) {
	case 0, 1:
		b = forge.Write(p.drawSTag(), p.drawOffset(), payload)
	case 2, 3:
		mo := uint32(0)
		if p.One(3) { // the last segment alone, or one behind the buffer
			mo = p.Uint32()
		}
		b = forge.Untagged(rdmap.OpSend+rdmap.Opcode(p.Below(4)), rdmap.QueueSend, msn(0), mo, payload)
	case 4:
		b = forge.Invalidating(rdmap.OpSendInv, msn(0), p.drawSTag())
	case 5, 6:
		b = forge.ReadRequest(msn(1), rdmap.ReadRequest{SinkSTag: p.drawSTag(), SinkTO: p.drawOffset(),
			Size: p.Uint32() & (1<<p.Below(32) - 1), SrcSTag: p.drawSTag(), SrcTO: p.drawOffset()})
	case 7:
		b = forge.AtomicRequest(msn(1), rdmap.AtomicRequest{ID: p.Uint32(), STag: p.drawSTag(), TO: p.drawOffset() &^ 7,
			Op: rdmap.AtomicOp{Swap: p.One(2)}})
	case 8:
		b = forge.Tagged(rdmap.OpReadResponse, p.drawSTag(), p.drawOffset(), payload)
	case 9:
		b = forge.AtomicResponse(msn(3), p.Uint32())
	default:
		b = forge.Untagged(rdmap.Opcode(p.Below(16)), uint32(p.Below(5)), msn(p.Below(4)), p.Uint32(), payload)
	}
	if p.One(8) {
		b = forge.More(b)
	}
	if p.One(20) {
		b = forge.With(b, p.Below(min(len(b), 20)), byte(p.Below(256)))
	}
	return b
}
