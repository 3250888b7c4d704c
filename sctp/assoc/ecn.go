package assoc

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// ecn is explicit congestion notification (RFC 3168) with the chunks of RFC 4960 appendix A, which RFC
// 9260 reserves. Its other half, that of the sender of DATA, is in tx.
type ecn struct {
	on   bool     // both sides have announced it
	echo bool     // a mark has come that the peer has not reacted to
	tsn  wire.TSN // lowest of the last packet that had a mark
}

const ecneLen = 8

// ecnCapable says whether ECN is announced. The link has to report marks: who sends ECN-capable packets
// does without losses as a sign of congestion, and must not be left without any.
func (c *Config) ecnCapable(env *Env) bool {
	return !c.DisableECN && env.Features&rawio.ECNField != 0
}

// appendECN announces it.
func appendECN(b []byte, capable bool) []byte {
	if !capable {
		return b
	}
	return wire.AppendParam(b, wire.ParamECNCapable, nil)
}

// useECN sets what was agreed.
func (a *Assoc) useECN(on bool) {
	a.ecn = ecn{on: on}
	a.sender().SetECN(on)
}

// noteMark notes a DATA chunk that is new. Marks on others are ignored: they may be forged (RFC 3168
// section 6.1.5).
func (in *inbound) noteMark(t wire.TSN) {
	if in.ECN == rawio.CE && (!in.marked || t.Less(in.lowest)) {
		in.marked, in.lowest = true, t
	}
}

// marked has every SACK carry an ECNE from now on, until the peer has reacted to the last mark.
func (a *Assoc) marked(in *inbound) {
	if !in.marked || !a.ecn.on {
		return
	}
	a.rare().MarksIn++
	if !a.ecn.echo || a.ecn.tsn.Less(in.lowest) {
		a.ecn.echo, a.ecn.tsn = true, in.lowest
	}
}

// appendECNE adds the echo that goes with a SACK.
func (a *Assoc) appendECNE(out *TxBatch) {
	if a.ecn.echo && out.Room() >= ecneLen+wire.SackLen(0, 0) {
		out.Commit(wire.AppendECNE(out.Tail(), a.ecn.tsn))
	}
}

// handleECNE takes the peer's echo, and tells it that it may stop, also when the window was reduced
// before: it may not know.
func (a *Assoc) handleECNE(now rawio.Time, in *inbound, c wire.Chunk) {
	e, err := wire.AsECNE(c)
	if err != nil {
		a.rare().Malformed++
		return
	}
	if !a.ecn.on || !sackStates.has(a.state) {
		a.rare().Unexpected++
		return
	}
	a.sender().HandleECNE(now, e.TSN())
	p, local := a.replyPath(in)
	a.reply(p, local, wire.AppendCWR(a.control.buf, e.TSN()))
}

// handleCWR stops the echo of marks up to that the peer has reacted to.
func (a *Assoc) handleCWR(c wire.Chunk) {
	w, err := wire.AsCWR(c)
	if err != nil {
		a.rare().Malformed++
		return
	}
	if a.ecn.tsn.LessEq(w.TSN()) {
		a.ecn.echo = false
	}
}
