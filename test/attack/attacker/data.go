package attacker

import "github.com/rddp-go/rddp/sctp/wire"

var (
	dataMoves = []move{(*Peer).inOrder, (*Peer).inOrder, (*Peer).leaveGap, (*Peer).repeatTSN, (*Peer).sendBackwards,
		(*Peer).appendFragment, (*Peer).sendSSNsDown, (*Peer).wideStream}
	rudeData = []move{(*Peer).inOrder, (*Peer).leaveGap, (*Peer).appendFragment, (*Peer).appendFragment,
		(*Peer).anyData,
		(*Peer).wideStream}
)

// appendData appends a DATA chunk, or I-DATA where that was agreed on.
func (p *Peer) appendData(b []byte, f wire.DataFields, payload []byte) []byte {
	f.PayloadLen = len(payload)
	if p.k.interleaves {
		if p.k.fsn++; f.Flags&wire.FlagB != 0 {
			p.k.fsn = 0
		}
		return append(wire.AppendIDataHeader(b, wire.IDataFields{Flags: f.Flags, TSN: f.TSN, Stream: f.Stream,
			MID: wire.MID(f.SSN), PPID: f.PPID, FSN: p.k.fsn, PayloadLen: len(payload)}), payload...)
	}
	return append(wire.AppendDataHeader(b, f), payload...)
}

const whole = wire.FlagB | wire.FlagE

// drawPayload is short mostly.
func (p *Peer) drawPayload() []byte {
	if p.One(6) {
		return p.Octets(1 + p.Length(p.cfg.MTU-60))
	}
	return p.Octets(1 + p.Length(40))
}

// inOrder is the next message, on one of a few streams.
func (p *Peer) inOrder(b []byte) []byte {
	s := p.Below(min(len(p.k.ssn), p.k.streams))
	f := wire.DataFields{Flags: whole, TSN: p.k.next, Stream: wire.StreamID(s), SSN: p.k.ssn[s],
		PPID: uint32(p.Below(60))}
	p.k.next++
	p.k.ssn[s]++
	if p.One(4) {
		f.Flags |= wire.FlagI
	}
	return p.appendData(b, f, p.drawPayload())
}

// leaveGap leaves a gap.
func (p *Peer) leaveGap(b []byte) []byte {
	f := wire.DataFields{Flags: whole | byte(p.Below(2))*wire.FlagU,
		TSN:    p.k.next + 1 + wire.TSN(p.Below(1<<(1+p.Below(17)))),
		Stream: wire.StreamID(p.Below(4)), SSN: p.k.ssn[0] + wire.SSN(p.Below(100))}
	return p.appendData(b, f, p.drawPayload())
}

// repeatTSN repeats a TSN, perhaps with another content.
func (p *Peer) repeatTSN(b []byte) []byte {
	f := wire.DataFields{Flags: whole, TSN: p.k.next - wire.TSN(p.Below(20)), SSN: wire.SSN(p.Below(8))}
	return p.appendData(b, f, p.drawPayload())
}

// sendBackwards fills a row of TSNs from its end.
func (p *Peer) sendBackwards(b []byte) []byte {
	n := 2 + p.Below(60)
	for i := n; i > 0 && len(b) < p.cfg.MTU-24; i-- {
		b = p.appendData(b, wire.DataFields{Flags: whole | wire.FlagU, TSN: p.k.next + wire.TSN(i)}, []byte{1})
		b = append(b, 0, 0, 0)
	}
	return b
}

// sendSSNsDown sends SSNs from the highest down, none of which is the next.
func (p *Peer) sendSSNsDown(b []byte) []byte {
	top := p.k.ssn[1] + 1 + wire.SSN(p.Below(20000))
	for i := wire.SSN(0); i < 60 && len(b) < p.cfg.MTU-24; i++ {
		b = p.appendData(b, wire.DataFields{Flags: whole, TSN: p.k.next, Stream: 1, SSN: top - i}, []byte{1})
		b = append(b, 0, 0, 0)
		p.k.next++
	}
	return b
}

// appendFragment begins, continues or ends a message, at times where another was begun.
func (p *Peer) appendFragment(b []byte) []byte {
	f := wire.DataFields{TSN: p.k.next, Stream: 2, SSN: p.k.ssn[2]}
	p.k.next++
	switch {
	case p.k.fragments == 0 || !p.care && p.One(20):
		f.Flags = wire.FlagB
		p.k.fragments++
	case p.One(10):
		f.Flags = wire.FlagE
		p.k.fragments = 0
		p.k.ssn[2]++
	default:
		p.k.fragments++
	}
	if !p.care && p.One(12) {
		f.Stream, f.SSN = wire.StreamID(p.Below(4)), f.SSN+wire.SSN(p.Below(3))
	}
	if !p.care && p.One(16) {
		f.Flags ^= wire.FlagU
	}
	return p.appendData(b, f, p.drawPayload())
}

// wideStream is one message on a stream with a high number.
func (p *Peer) wideStream(b []byte) []byte {
	f := wire.DataFields{Flags: whole | byte(p.Below(2))*wire.FlagU, TSN: p.k.next,
		Stream: wire.StreamID(p.k.streams - 1 - p.Below(min(p.k.streams, 300)))}
	if p.One(10) {
		f.Stream = wire.StreamID(p.Uint32())
	}
	p.k.next++
	return p.appendData(b, f, []byte{0xAA})
}

// anyData lies in every field.
func (p *Peer) anyData(b []byte) []byte {
	f := wire.DataFields{Flags: byte(p.Below(16)), TSN: p.k.next + wire.TSN(p.Below(8)) - 2,
		Stream: wire.StreamID(p.Uint32()), SSN: wire.SSN(p.Uint32()), PPID: p.Uint32()}
	if p.One(8) {
		f.TSN = wire.TSN(p.Uint32())
	}
	if f.TSN == p.k.next {
		p.k.next++
	}
	if p.One(10) {
		return p.appendData(b, f, nil)
	}
	return p.appendData(b, f, p.drawPayload())
}
