package sctp

import (
	"slices"
	"testing"

	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzHostilePeer plays a list of steps against a victim in one of its states. The first octet is
// the situation and the kind of association; each step is an octet that says what to do, a quarter
// of a length, and so many octets of data:
//
//	0..199  a packet, of 8 values the last with a wrong checksum, the one before with 0; the next
//	        octet says how it is wrapped, the rest are its chunks
//	200..   time passes; the user reads, writes, shuts down or aborts; the good peer answers
//
//fuzz:covers ./sctp/assoc ./sctp/endpoint ./sctp/internal/rx ./sctp/internal/tx
func FuzzHostilePeer(f *testing.F) {
	step := func(op byte, data ...byte) []byte {
		n := (len(data) + 3) / 4
		return append(append([]byte{op, byte(n)}, data...), make([]byte, 4*n-len(data))...)
	}
	data := func(flags byte, tsn wire.TSN, n int) []byte {
		b := wire.AppendDataHeader([]byte{4}, wire.DataFields{Flags: flags, TSN: tsn, PayloadLen: n})
		return append(b, make([]byte, wire.PaddedLen(n))...)
	}
	for i := range situations {
		s := []byte{byte(i)}
		f.Add(slices.Concat(s, step(200, 200)))
		f.Add(slices.Concat(s, step(0, data(3, 0, 10)...), step(0, data(2, 2, 10)...), step(0, data(1, 1, 10)...),
			step(230)))
		f.Add(slices.Concat(s, step(0, append([]byte{4}, wire.AppendShutdown(nil, 0)...)...), step(255)))
		f.Add(slices.Concat(s, step(0, append([]byte{2}, wire.AppendAbort(nil, true)...)...)))
		f.Add(slices.Concat(s,
			step(0, append([]byte{3}, wire.AppendInit(nil, wire.ChunkInit,
				wire.InitFields{Tag: 7, ARwnd: 9000, OutStreams: 1, InStreams: 1})...)...),
			step(0, append([]byte{5}, wire.AppendCookieEcho(nil, nil)...)...), step(0, data(3, 0, 10)...),
			step(240, 1)))
		f.Add(slices.Concat(s,
			step(0, append([]byte{3}, wire.AppendInit(nil, wire.ChunkInit,
				wire.InitFields{Tag: 7, ARwnd: 9000, OutStreams: 1, InStreams: 1})...)...),
			step(200, 255), step(0, append([]byte{5}, wire.AppendCookieEcho(nil, nil)...)...)))
		initAck := wire.AppendInit([]byte{0}, wire.ChunkInitAck,
			wire.InitFields{Tag: 7, ARwnd: 9000, OutStreams: 1, InStreams: 1})
		initAck = wire.AppendParam(wire.AppendParam(initAck, wire.ParamStateCookie, []byte("cookie")), 0xC0FF,
			[]byte("who knows"))
		f.Add(slices.Concat(s, step(0, wire.CloseChunk(initAck, 1)...),
			step(0, append([]byte{0}, wire.AppendCookieAck(nil)...)...)))
		f.Add(slices.Concat(s, step(253, 3, 150, 0), step(253, 0, 0, 0), step(253, 0x12, 0, 0)))
		f.Add(slices.Concat(s, step(240, 1, 2, 3),
			step(0, append([]byte{4}, wire.AppendSack(nil, wire.SackFields{ARwnd: 100})...)...)))
	}
	for i := range situations {
		for _, kind := range []byte{changing, interleaving, changing | interleaving} {
			s := []byte{byte(i) + kind*byte(len(situations))}
			reconfig := func(how byte, b []byte) []byte {
				return step(0, append([]byte{how}, wire.CloseChunk(append(wire.AppendReconfig(nil), b...), 0)...)...)
			}
			for op := range byte(checksumsDrawn) {
				f.Add(slices.Concat(s, step(op, data(3, 0, 10)...), step(op, append([]byte{3},
					wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: 7, ARwnd: 9000, OutStreams: 1, InStreams: 1})...)...),
					step(op, append([]byte{5}, wire.AppendCookieEcho(nil, nil)...)...), step(op, data(3, 1, 10)...)))
			}
			iData := wire.AppendIDataHeader([]byte{4}, wire.IDataFields{Flags: 2, MID: 1, PayloadLen: 4})
			f.Add(slices.Concat(s, step(240, 1, 2), step(245, 1, 0), step(0, data(3, 1, 10)...),
				reconfig(4, wire.AppendReconfigResponse(nil, 0, wire.ReconfigPerformed)), step(240, 1)))
			f.Add(slices.Concat(s, step(0, data(3, 1, 10)...), reconfig(4, wire.AppendOutgoingReset(nil, 0, 0, 1, nil)),
				step(0, data(3, 0, 10)...), step(0, data(3, 0, 10)...), step(245, 4), step(255), step(210, 50)))
			f.Add(slices.Concat(s, reconfig(4, wire.AppendTSNReset(nil, 0)), step(255), step(255),
				reconfig(4, wire.AppendIncomingReset(nil, 0, []wire.StreamID{0})), step(240, 1), step(255)))
			f.Add(slices.Concat(s, reconfig(4, wire.AppendAddStreams(nil, wire.ParamAddInStreams, 0, 3)), step(245, 8, 0, 0, 0),
				step(245, 65, 0), step(255), step(210, 90)))
			f.Add(slices.Concat(s, step(0, append(iData, 1, 2, 3, 4)...), step(0, append([]byte{4},
				wire.AppendIForwardTSN(nil, 3, []wire.ISkip{{Stream: 0, MID: 1}})...)...), step(230)))
			f.Add(slices.Concat(s, step(240, 1, 2, 3, 4, 5), step(210, 60), step(0, append([]byte{4},
				wire.AppendForwardTSN(nil, 3, []wire.Skip{{Stream: 0, SSN: 1}})...)...), step(230)))
		}
	}
	for i, b := range corpus.Packets() {
		chunks := b[wire.CommonHeaderLen:]
		tag := byte(4)
		if wire.Chunk(chunks).Type() == wire.ChunkInit {
			tag = 7
		}
		f.Add(slices.Concat([]byte{byte(i * 5)}, step(0, append([]byte{tag}, chunks...)...), step(255), step(210, 50)))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 {
			return
		}
		l := newBed(t, script[0]/byte(len(situations)))
		l.reachSituation(script[0])
		script = script[1:]
		for steps := 0; len(script) >= 2 && steps < 200; steps++ {
			op, n := script[0], min(4*int(script[1]), len(script)-2)
			arg := script[2 : 2+n]
			script = script[2+n:]
			l.doStep(op, arg)
			l.checkInvariants()
		}
		l.closeAll()
	})
}
