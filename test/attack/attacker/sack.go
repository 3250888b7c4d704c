package attacker

import "github.com/rddp-go/rddp/sctp/wire"

var (
	sackMoves = []move{(*Peer).honestSack, (*Peer).renegeSack, (*Peer).renegeSack, (*Peer).closeWindow,
		(*Peer).optimisticSack}
	rudeSack = []move{(*Peer).lyingSack, (*Peer).renegeSack, (*Peer).anySack, (*Peer).anySack, (*Peer).appendShutdown}
)

// numOutstanding is how many of the victim's TSNs are known to be under way.
func (p *Peer) numOutstanding() int {
	return max(int(int32(p.k.highest-p.k.sent)), 0)
}

func (p *Peer) honestSack(b []byte) []byte {
	return wire.AppendSack(b, wire.SackFields{CumTSN: p.k.sent, ARwnd: 1 << uint(p.Below(22))})
}

// closeWindow closes the window.
func (p *Peer) closeWindow(b []byte) []byte {
	return wire.AppendSack(b, wire.SackFields{CumTSN: p.k.sent, ARwnd: uint32(p.Below(2))})
}

// optimisticSack acknowledges what was not received, but was sent.
func (p *Peer) optimisticSack(b []byte) []byte {
	return wire.AppendSack(b, wire.SackFields{CumTSN: p.k.highest, ARwnd: 1 << 24})
}

// lyingSack acknowledges what was not sent.
func (p *Peer) lyingSack(b []byte) []byte {
	f := wire.SackFields{CumTSN: p.k.highest + wire.TSN(p.Below(3)), ARwnd: p.Uint32()}
	if p.One(4) {
		f.CumTSN = p.k.sent + wire.TSN(p.Below(100)) - 50
	}
	if p.One(8) {
		f.CumTSN = wire.TSN(p.Uint32())
	}
	return wire.AppendSack(b, f)
}

// renegeSack acknowledges by gap blocks and takes back in the next chunk, as often as there is
// room.
func (p *Peer) renegeSack(b []byte) []byte {
	n := min(p.numOutstanding(), 60000)
	for range 1 + p.Below(40) {
		f := wire.SackFields{CumTSN: p.k.sent, ARwnd: 1 << 20}
		step := 1 + p.Below(4)
		for at := 1 + p.Below(3); at <= n && len(f.Gaps) < 300; at += 2 * step {
			f.Gaps = append(f.Gaps, wire.GapBlock{Start: uint16(at), End: uint16(min(at+step-1, n))})
		}
		if p.One(2) && n > 1 {
			f.Gaps = []wire.GapBlock{{Start: 2, End: uint16(n)}}
		}
		next := wire.AppendSack(b, f)
		next = wire.AppendSack(next, wire.SackFields{CumTSN: p.k.sent, ARwnd: 1 << 20})
		if len(next) > p.cfg.MTU {
			break
		}
		b = next
	}
	return b
}

// anySack lies in every field.
func (p *Peer) anySack(b []byte) []byte {
	f := wire.SackFields{CumTSN: p.k.sent + wire.TSN(p.Below(4)), ARwnd: p.Uint32()}
	for range p.Below(1 << (1 + p.Below(8))) {
		s := uint16(p.Uint32())
		f.Gaps = append(f.Gaps, wire.GapBlock{Start: s, End: s + uint16(p.Below(20)) - 4})
	}
	for range p.Below(1 << (1 + p.Below(6))) {
		f.Dups = append(f.Dups, wire.TSN(p.Uint32()))
	}
	at := len(b)
	b = wire.AppendSack(b, f)
	if p.One(6) { // counts that the chunk does not have
		b[at+13] = byte(p.Below(256))
		b[at+15] = byte(p.Below(256))
	}
	return b
}
