package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// inbound is the packet that HandlePacket is processing.
type inbound struct {
	*rawio.Packet
	pkt          wire.Packet
	path         *path // where it came from; nil for an INIT ACK from an address not yet known
	hasData      bool
	hasAsconf    bool
	reconfigLast bool     // its RE-CONFIG chunks are processed behind all others
	sacksLeft    int      // SACK chunks in it that have not been looked at
	hasMark      bool     // it has DATA that is new, and a mark of congestion
	lowestMarked wire.TSN // of that DATA
}

// chunkSummary holds what the tag rules need of a packet before its first chunk is processed.
type chunkSummary struct {
	firstChunk     wire.Chunk // the first
	firstType      wire.ChunkType
	numChunks      int
	hasAbort       bool
	abortHasT      bool
	hasShutdownAck bool
	numSacks       int
}

func (g *chunkSummary) scanChunks(pkt wire.Packet) {
	cs := pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if g.numChunks == 0 {
			g.firstChunk, g.firstType = c, c.Type()
		}
		g.numChunks++
		switch c.Type() {
		case wire.ChunkAbort:
			if !g.hasAbort {
				g.hasAbort, g.abortHasT = true, c.Flags()&wire.FlagT != 0
			}
		case wire.ChunkShutdownAck:
			g.hasShutdownAck = true
		case wire.ChunkSack:
			g.numSacks++
		}
	}
}

// HandlePacket processes a received packet, or an ICMP report. The checksum has been verified. The
// tag rules of section 8.5 are applied here. p is borrowed for the length of the call.
func (a *Assoc) HandlePacket(now rawio.Time, p *rawio.Packet) {
	if p.Kind != rawio.KindSCTP {
		a.handleICMP(now, p)
		return
	}
	if s := a.protection(); s != nil {
		a.handleByProtection(now, s, p)
		return
	}
	a.handlePacket(now, p)
}

// handlePacket is HandlePacket for a packet of SCTP that is not sealed, or is opened.
func (a *Assoc) handlePacket(now rawio.Time, p *rawio.Packet) {
	pkt, err := wire.ParsePacket(p.Data)
	if err != nil || pkt.DstPort() != a.id.localPort || pkt.SrcPort() != a.id.peerPort || a.state == Closed {
		return
	}
	a.stats.PacketsIn++
	a.stats.OctetsIn += uint64(len(p.Data))
	a.control.closeEntry()
	// Both are filled where they lie. A copy of what was just written in pieces makes the processor
	// wait until it is in the cache.
	var in inbound
	in.Packet, in.pkt, in.path = p, pkt, a.findPath(p.Remote.Addr().Unmap())
	var g chunkSummary
	g.scanChunks(pkt)
	a.stats.workSteps += uint64(g.numChunks)
	if g.numChunks == 0 {
		a.rareCounters().Malformed++
		return
	}
	if !a.checkTag(now, &in, &g) {
		return
	}
	if in.path != nil {
		a.noteArrival(now, in.path, p)
	}
	a.notePeerAlive(now)
	in.sacksLeft = g.numSacks
	a.handleChunks(now, &in)
	if a.state == Closed || a.endIfInconsistent() {
		return
	}
	if in.hasData {
		a.endDataPacket(now, &in)
		a.advanceStreamResets(now)
	}
	a.advanceShutdown(now)
}

// checkTag applies the verification tag rules, and handles the packets that have rules of their
// own: 8.5.1 A to E. It says whether the chunks of the packet are to be processed. For all others,
// "the endpoint MUST ensure that the value in the Verification Tag field of the received SCTP
// packet matches its own tag" (section 8.5).
func (a *Assoc) checkTag(now rawio.Time, in *inbound, g *chunkSummary) bool {
	if (g.hasAbort || g.firstType == wire.ChunkShutdownComplete) && a.isFromThisHost(in.Packet) {
		a.rareCounters().ForeignSource++ // this host's answer to what the peer should have got
		return false
	}
	tag, c := in.pkt.VTag(), g.firstChunk
	own, reflected := tag == a.id.localTag, a.id.peerTag != 0 && tag == a.id.peerTag
	switch {
	case tag == 0 && g.firstType == wire.ChunkInit && g.numChunks == 1: // 8.5.1 A
		a.handleInit(now, in, c)
		return false
	case tag == 0 || g.firstType == wire.ChunkInit:
		own = false
	case g.hasAbort && a.protection() != nil && a.protection().wasToLeaving: // RFC 5061 section 5.3, F4
		return false
	case g.hasAbort: // 8.5.1 B
		if reflected && g.abortHasT && g.firstType == wire.ChunkAbort {
			if a.state == ShutdownAckSent {
				// An earlier packet of ours came late. The peer has ended the association, and we
				// have yet to hear of that.
				a.handleShutdownComplete()
				return false
			}
			a.handleAbort(c)
			return false
		}
		own = own && !g.abortHasT
	case g.firstType == wire.ChunkShutdownComplete: // 8.5.1 C
		if t := c.Flags()&wire.FlagT != 0; (own && !t) || (reflected && t) {
			a.handleShutdownComplete()
			return false
		}
		own = false
	case g.firstType == wire.ChunkCookieEcho: // 8.5.1 D
		return a.handleCookieEcho(now, in, c)
	case g.hasShutdownAck && setupStates.has(a.state): // 8.5.1 E
		Reflect(&a.outbox, in.Packet, true)
		return false
	}
	if own && in.path == nil && a.handleStranger(now, in) {
		return false
	}
	if own && in.path == nil && a.state != CookieWait {
		a.rareCounters().ForeignSource++ // out of the blue: not an address of the peer
		return false
	}
	if !own {
		a.rareCounters().WrongTag++
	}
	return own
}

// handleChunks processes the chunks in packet order.
func (a *Assoc) handleChunks(now rawio.Time, in *inbound) {
	cs := in.pkt.Chunks()
	for c, ok := cs.Next(); ok && a.state != Closed && a.internalErr == nil; c, ok = cs.Next() {
		if !a.handleChunk(now, in, c) {
			return
		}
	}
	if cs.Err() != nil { // the partial chunk is dropped, section 6.10
		a.rareCounters().Malformed++
	}
	if in.reconfigLast {
		a.handleLateReconfigs(now, in)
	}
}

// handleChunk processes one chunk and says whether to go on with the packet.
func (a *Assoc) handleChunk(now rawio.Time, in *inbound, c wire.Chunk) bool {
	t := c.Type()
	if a.state == CookieWait && t != wire.ChunkInitAck && t != wire.ChunkAbort {
		a.rareCounters().Unexpected++ // nothing else can be meant for this association yet
		return false
	}
	switch t {
	case wire.ChunkData:
		return a.handleData(now, in, c)
	case wire.ChunkSack:
		a.handleSack(now, in, c)
	case wire.ChunkHeartbeat:
		a.handleHeartbeat(in, c)
	case wire.ChunkHeartbeatAck:
		a.handleHeartbeatAck(now, c)
	case wire.ChunkInitAck:
		a.handleInitAck(now, in, c)
		return false // it travels alone
	case wire.ChunkCookieAck:
		a.handleCookieAck(now, c)
	case wire.ChunkAbort:
		a.handleAbort(c)
		return false
	case wire.ChunkShutdown:
		a.handleShutdown(now, c)
	case wire.ChunkShutdownAck:
		a.handleShutdownAck(in, c)
	case wire.ChunkError:
		a.handleError(now, c)
	case wire.ChunkECNE:
		a.handleECNE(now, in, c)
	case wire.ChunkCWR:
		a.handleCWR(c)
	case wire.ChunkForwardTSN:
		return a.handleForwardTSN(now, in, c)
	case wire.ChunkIData:
		return a.handleIData(in, c)
	case wire.ChunkIForwardTSN:
		return a.handleIForwardTSN(now, in, c)
	case wire.ChunkReconfig:
		return a.handleReconfig(now, in, c)
	case wire.ChunkAsconf:
		return a.handleAsconf(now, in, c)
	case wire.ChunkAsconfAck:
		return a.handleAsconfAck(now, in, c)
	case wire.ChunkCookieEcho, wire.ChunkPad:
		// COOKIE ECHO was handled before the others; PAD is to be ignored.
	case wire.ChunkInit, wire.ChunkShutdownComplete:
		a.rareCounters().Malformed++ // bundled where it must not be, section 3
		return false
	default:
		return a.handleUnknown(in, c)
	}
	return true
}

// replyPath returns where control chunks in answer to the packet go, and from which own address.
// They go back the way it came (section 6.4), unless that address is unconfirmed (section 5.4).
func (a *Assoc) replyPath(in *inbound) (p *path, local netip.AddrPort) {
	if in.path == nil || in.path.State == tx.Unconfirmed {
		return a.dataPath(), netip.AddrPort{}
	}
	return in.path, in.Local
}

// notePeerAlive records a packet of the peer: it is alive (section 9.2 for SHUTDOWN-SENT).
func (a *Assoc) notePeerAlive(now rawio.Time) {
	a.health.lastHeardAt = now
	if a.state == ShutdownSent {
		a.health.errorCount = 0
		a.startT2(now)
	}
}
