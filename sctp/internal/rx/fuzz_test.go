package rx_test

import (
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/sctp/internal/rx/model"
)

// FuzzReceiver gives the receiving half chunks in any order, and reads. Each message of a peer that
// does as it should is delivered once, whole, and in the order of its stream; SACKs name what has
// come and nothing else; with forged chunks among them, memory is bounded still, and in the end all
// of it is given back.
func FuzzReceiver(f *testing.F) {
	race.Alone(f)
	// req 9260-3.3.2-10: when all is read
	f.Add([]byte{0, 0, 0x45, 0, 1, 0x80, 0x32, 0, 1, 3, 6, 6, 7, 7, 8, 9, 200})
	f.Add([]byte{1, 0, 0xC5, 0, 8, 0xC3, 0, 1, 0x42, 0x74, 2, 1, 0, 3, 2, 8, 0x14, 9, 1, 6, 6, 7, 0, 7, 0, 0x18})
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 1, 0x82, 2, 0x92, 0, 1, 5, 2, 6, 7, 8})
	f.Add([]byte{0, 0, 0x45, 0, 1, 0x80, 0x32, 0, 1, 3, 0x85, 1, 0, 1, 3, 0x85, 2, 1, 0x41, 8, 6})
	for seed := range 400 {
		f.Add(fuzzinput.Random(seed, 1000))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 0 && len(in) <= 1000 {
			model.Play(t, in, nil)
		}
	})
}

// What the receiving half does with such chunks is written down to the octet, as a digest: so that
// nothing else changes unnoticed.
func TestChunksByChanceDoWhatTheyDid(t *testing.T) {
	fuzzinput.CheckRecording(t, "testdata/chunks.txt", 400, func(seed int, told *strings.Builder) {
		model.Play(t, fuzzinput.Random(seed+1000, 1000), told)
	})
}
