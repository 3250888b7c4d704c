package corpus_test

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func ExamplePackets() {
	for _, b := range corpus.Packets() {
		if p, err := wire.ParsePacket(b); err == nil && p.ChecksumOK() {
			fmt.Println("a whole packet")
			break
		}
	}
	// Output: a whole packet
}

// The corpus is worth its name if the chunks of an association's whole life are in it, and all of
// DDP's PPIDs.
func TestPacketsCoverALife(t *testing.T) {
	chunks, ppids := map[wire.ChunkType]int{}, map[uint32]int{}
	for _, b := range corpus.Packets() {
		p, err := wire.ParsePacket(b)
		must.That(t, err == nil && p.ChecksumOK(), "%x: %v", b, err)
		it := p.Chunks()
		for c, ok := it.Next(); ok; c, ok = it.Next() {
			chunks[c.Type()]++
			if d, err := wire.AsData(c); err == nil {
				ppids[d.PPID()]++
			}
		}
		check.That(t, it.Err() == nil, "%x: %v", b, it.Err())
	}
	for _, typ := range []wire.ChunkType{wire.ChunkData, wire.ChunkInit, wire.ChunkInitAck, wire.ChunkSack,
		wire.ChunkHeartbeat,
		wire.ChunkHeartbeatAck, wire.ChunkAbort, wire.ChunkShutdown, wire.ChunkShutdownAck, wire.ChunkError,
		wire.ChunkCookieEcho,
		wire.ChunkCookieAck, wire.ChunkShutdownComplete} {
		check.That(t, chunks[typ] != 0, "no %v", typ)
	}
	check.That(t, ppids[16] != 0 && ppids[17] != 0, "PPIDs %v: no DDP segment, or no session control", ppids)
}
