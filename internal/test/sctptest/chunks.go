package sctptest

import (
	"bytes"
	"strings"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Packet makes a packet of chunks.
func Packet(src, dst uint16, tag uint32, chunks ...[]byte) []byte {
	pkt := append(wire.AppendHeader(nil, src, dst, tag), bytes.Join(chunks, nil)...)
	wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
	return pkt
}

// DataChunk makes a whole unordered message.
func DataChunk(tsn wire.TSN, stream wire.StreamID, ssn wire.SSN, payload string) []byte {
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE | wire.FlagU, TSN: tsn,
		Stream: stream, SSN: ssn, PPID: 7, PayloadLen: len(payload)})
	return append(append(b, payload...), wire.Padding(len(payload))...)
}

// InitChunk makes the INIT of an ordinary peer.
func InitChunk(tag uint32, tsn wire.TSN, params ...[]byte) []byte {
	return InitLike(wire.ChunkInit, wire.InitFields{Tag: tag, ARwnd: 1 << 20, OutStreams: 16, InStreams: 16,
		TSN: tsn}, params...)
}

// InitAckChunk makes the INIT ACK of an ordinary peer.
func InitAckChunk(tag uint32, tsn wire.TSN, cookie []byte, params ...[]byte) []byte {
	f := wire.InitFields{Tag: tag, ARwnd: 1 << 20, OutStreams: 16, InStreams: 16, TSN: tsn}
	return InitLike(wire.ChunkInitAck, f, append([][]byte{wire.AppendParam(nil, wire.ParamStateCookie, cookie)},
		params...)...)
}

// InitLike makes an INIT or INIT ACK.
func InitLike(t wire.ChunkType, f wire.InitFields, params ...[]byte) []byte {
	b := wire.AppendInit(nil, t, f)
	return wire.CloseChunk(append(b, bytes.Join(params, nil)...), 0)
}

// StaleError makes an ERROR that calls a cookie stale.
func StaleError() []byte {
	return wire.CloseChunk(wire.AppendStaleCookieCause(wire.AppendError(nil), 5000), 0)
}

// Has says whether the packet holds a chunk of that type.
func Has(pkt wire.Packet, t wire.ChunkType) bool { return ChunkOf(pkt, t) != nil }

// ChunkOf returns the first chunk of that type, or nil.
func ChunkOf(pkt wire.Packet, t wire.ChunkType) wire.Chunk {
	cs := pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if c.Type() == t {
			return c
		}
	}
	return nil
}

// ChunkTypes lists the chunks of a packet.
func ChunkTypes(pkt wire.Packet) (list []wire.ChunkType) {
	cs := pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		list = append(list, c.Type())
	}
	return list
}

// ParamOf returns the first parameter of that type, or nil.
func ParamOf(i wire.Init, t wire.ParamType) wire.Param {
	ps := i.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		if p.Type() == t {
			return p
		}
	}
	return nil
}

// CauseOf returns the first cause of an ABORT or ERROR chunk in the packet, 0 without one.
func CauseOf(pkt wire.Packet) (wire.CauseCode, wire.Cause) {
	var cs wire.Causes
	if c := ChunkOf(pkt, wire.ChunkAbort); c != nil {
		ab, _ := wire.AsAbort(c)
		cs = ab.Causes()
	} else if c := ChunkOf(pkt, wire.ChunkError); c != nil {
		e, _ := wire.AsError(c)
		cs = e.Causes()
	}
	if c, ok := cs.Next(); ok {
		return c.Code(), c
	}
	return 0, nil
}

// Describe lists the chunk types of packets, for failure messages and comparisons.
func Describe(pkts []wire.Packet) string {
	var list []string
	for _, p := range pkts {
		var chunks []string
		for _, t := range ChunkTypes(p) {
			chunks = append(chunks, t.String())
		}
		list = append(list, strings.Join(chunks, " "))
	}
	return strings.Join(list, " | ")
}
