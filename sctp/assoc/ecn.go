package assoc

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// ecn is explicit congestion notification (RFC 3168) with the chunks of RFC 4960 appendix A, which
// RFC 9260 reserves. The half for the sender of DATA is in tx.
type ecn struct {
	enabled      bool     // both sides have announced it
	echoPending  bool     // a mark has come that the peer has not reacted to
	lowestMarked wire.TSN // lowest of the last packet that had a mark
}

const ecneLen = 8

// offersECN says whether ECN is announced. The link has to report marks. ECN-capable packets are
// marked, not lost, in congestion: their sender must not miss the marks.
func (c *Config) offersECN(env *Env) bool {
	return !c.DisableECN && env.Features&rawio.ECNField != 0
}

// appendECNCapable announces ECN.
func appendECNCapable(b []byte, capable bool) []byte {
	if !capable {
		return b
	}
	return wire.AppendParam(b, wire.ParamECNCapable, nil)
}

// setECN sets what both sides agreed on.
func (a *Assoc) setECN(on bool) {
	a.ecn = ecn{enabled: on}
	a.sender().SetECN(on)
}

// noteMark records a DATA chunk that is new. Marks on others are ignored: they may be forged (RFC
// 3168 section 6.1.5).
func (in *inbound) noteMark(t wire.TSN) {
	if in.ECN == rawio.CE && (!in.hasMark || t.Less(in.lowestMarked)) {
		in.hasMark, in.lowestMarked = true, t
	}
}

// startECNEcho makes every SACK carry an ECNE from now on, until the peer has reacted to the last
// mark.
func (a *Assoc) startECNEcho(in *inbound) {
	if !in.hasMark || !a.ecn.enabled {
		return
	}
	a.rareCounters().MarksIn++
	if !a.ecn.echoPending || a.ecn.lowestMarked.Less(in.lowestMarked) {
		a.ecn.echoPending, a.ecn.lowestMarked = true, in.lowestMarked
	}
}

// appendECNE adds the echo that goes with a SACK.
func (a *Assoc) appendECNE(out *TxBatch) {
	if a.ecn.echoPending && out.Room() >= ecneLen+wire.SackLen(0, 0) {
		out.Commit(wire.AppendECNE(out.Tail(), a.ecn.lowestMarked))
	}
}

// handleECNE takes the peer's echo, and answers that it may stop. It answers also if the window was
// reduced before: the peer may not know.
func (a *Assoc) handleECNE(now rawio.Time, in *inbound, c wire.Chunk) {
	e, err := wire.AsECNE(c)
	if err != nil {
		a.rareCounters().Malformed++
		return
	}
	if !a.ecn.enabled || !sackStates.has(a.state) {
		a.rareCounters().Unexpected++
		return
	}
	a.sender().HandleECNE(now, e.TSN())
	p, local := a.replyPath(in)
	a.queueReply(p, local, wire.AppendCWR(a.control.buf, e.TSN()))
}

// handleCWR stops the echo of marks up to the one that the peer has reacted to.
func (a *Assoc) handleCWR(c wire.Chunk) {
	w, err := wire.AsCWR(c)
	if err != nil {
		a.rareCounters().Malformed++
		return
	}
	if a.ecn.lowestMarked.LessEq(w.TSN()) {
		a.ecn.echoPending = false
	}
}
