package attacker

import (
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// A victim that answers an INIT with a cookie, and a cookie with a COOKIE ACK, and then sends data:
// enough for each move to have what it lies about.
func answerSetup(k *victimState, local, remote uint16, pkt []byte, tsn *wire.TSN) []byte {
	p, err := wire.ParsePacket(pkt)
	if err != nil {
		return nil
	}
	b := wire.AppendHeader(nil, remote, local, k.localTag)
	cs := p.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		switch c.Type() {
		case wire.ChunkInit:
			at := len(b)
			b = wire.AppendInit(b, wire.ChunkInitAck,
				wire.InitFields{Tag: 77, ARwnd: 1 << 16, OutStreams: 10, InStreams: 10, TSN: *tsn})
			return forge.SetLength(wire.AppendParam(b, wire.ParamStateCookie, []byte("cookie")), at)
		case wire.ChunkCookieEcho:
			b = wire.AppendCookieAck(b)
			b = wire.AppendHeartbeat(b, []byte("nonce"))
			for range 3 {
				b = append(wire.AppendDataHeader(b, wire.DataFields{Flags: whole, TSN: *tsn, PayloadLen: 4}), 1, 2, 3,
					4)
				*tsn++
			}
			return b
		}
	}
	return nil
}
