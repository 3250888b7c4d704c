package attacker

import (
	"encoding/binary"
	"slices"

	"github.com/rddp-go/rddp/sctp/wire"
)

// victimState is what the peer has seen of the victim.
type victimState struct {
	localTag, peerTag uint32
	formerTag         uint32 // of the victim, an association before
	up                bool   // the victim has answered the COOKIE ECHO, or has sent one
	invited           bool   // the victim has sent an INIT
	cookie            []byte // the last that the victim has given
	cookies           [][]byte
	mine              [][]byte // cookies that the victim took for the peer's own, and returned
	beat              []byte   // of its last HEARTBEAT
	beats             [][]byte
	next              wire.TSN // the peer's own next TSN
	acked             wire.TSN // of it, by the victim
	sent              wire.TSN // the highest of the victim's without a gap before it, as far as is known
	highest           wire.TSN // the highest of the victim's
	haveSent          bool
	streams           int // that the victim takes
	ssn               [4]wire.SSN
	fragments         int // of a message that was begun and not ended
	ddp               ddpState

	interleaves bool     // I-DATA is agreed on
	fsn         wire.FSN // of the message that was begun
	request     uint32   // the number of the peer's own next RE-CONFIG request
	asked       uint32   // that of the victim's last one
}

// beginLife begins a new life under another tag.
func (k *victimState) beginLife(tag uint32) {
	cookies, mine := k.cookies, k.mine
	*k = victimState{localTag: tag, formerTag: k.peerTag, cookies: cookies, mine: mine, streams: 65535,
		next: wire.TSN(tag * 2654435761), ddp: ddpState{stags: k.ddp.stags}}
	k.acked = k.next - 1
}

// keepFew remembers a few.
func keepFew(list [][]byte, b []byte) [][]byte {
	if len(list) >= 8 {
		list = list[1:]
	}
	return append(list, slices.Clone(b))
}

// Take shows the peer a packet of the victim's. What is malformed is passed over.
func (p *Peer) Take(b []byte) {
	pkt, err := wire.ParsePacket(b)
	if err != nil || pkt.DstPort() != p.cfg.LocalPort {
		return
	}
	it := pkt.Chunks()
	for c, ok := it.Next(); ok; c, ok = it.Next() {
		p.k.learnFrom(c)
	}
}

func (k *victimState) learnFrom(c wire.Chunk) {
	switch c.Type() {
	case wire.ChunkInit, wire.ChunkInitAck:
		if i, err := wire.AsInit(c); err == nil {
			k.takeInit(i)
		}
	case wire.ChunkCookieEcho:
		if e, err := wire.AsCookieEcho(c); err == nil {
			k.mine = keepFew(k.mine, e.Cookie())
			k.up = true
		}
	case wire.ChunkCookieAck:
		k.up, k.cookie = true, nil
	case wire.ChunkData:
		if d, err := wire.AsData(c); err == nil {
			k.takeData(d)
		}
	case wire.ChunkIData:
		if d, err := wire.AsIData(c); err == nil {
			k.takeTSN(d.TSN())
		}
	case wire.ChunkReconfig:
		if r, err := wire.AsReconfig(c); err == nil {
			k.takeRequests(r)
		}
	case wire.ChunkSack:
		if s, err := wire.AsSack(c); err == nil {
			k.acked = s.CumTSN()
		}
	case wire.ChunkHeartbeat:
		if h, err := wire.AsHeartbeat(c); err == nil {
			k.beat = slices.Clone(h.Info())
			k.beats = keepFew(k.beats, k.beat)
		}
	case wire.ChunkAbort, wire.ChunkShutdownComplete:
		k.beginLife(k.localTag*1664525 + 1013904223 | 1)
	}
}

func (k *victimState) takeInit(i wire.Init) {
	if k.peerTag != i.Tag() {
		k.formerTag, k.peerTag = k.peerTag, i.Tag()
	}
	k.sent, k.highest, k.haveSent = i.TSN()-1, i.TSN()-1, true
	k.streams = max(int(i.InStreams()), 1)
	k.invited = i.Type() == wire.ChunkInit
	ps := i.Params()
	for q, ok := ps.Next(); ok; q, ok = ps.Next() {
		if q.Type() == wire.ParamStateCookie {
			k.cookie = slices.Clone(q.Value())
			k.cookies = keepFew(k.cookies, k.cookie)
		}
	}
}

func (k *victimState) takeData(d wire.Data) {
	k.takeTSN(d.TSN())
	k.ddp.learnSTags(d)
}

func (k *victimState) takeTSN(t wire.TSN) {
	if t == k.sent+1 {
		k.sent++
	}
	if k.highest.Less(t) {
		k.highest = t
	}
}

// takeRequests learns the numbers of requests. After a reset of TSNs both sides go on elsewhere.
func (k *victimState) takeRequests(r wire.Reconfig) {
	ps := r.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		if len(p) < 8 {
			continue
		}
		seq := binary.BigEndian.Uint32(p[4:])
		if p.Type() != wire.ParamReconfigResponse {
			k.asked = seq
			continue
		}
		if int32(seq-k.request) >= 0 {
			k.request = seq + 1
		}
		if a, err := wire.AsReconfigResponse(p); err == nil && a.Result() == wire.ReconfigPerformed {
			if next, expected, ok := a.NextTSNs(); ok {
				k.sent, k.highest, k.next, k.acked = next-1, next-1, expected, expected-1
				k.ssn = [4]wire.SSN{}
			}
		}
	}
}
