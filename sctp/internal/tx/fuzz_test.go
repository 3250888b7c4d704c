package tx_test

import (
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/sctp/internal/tx/model"
)

// FuzzSender gives the sending half a list of commands. The books agree after each, what is sent is
// what was handed over, each message is acknowledged once and in order; and in the end a peer that
// takes everything gets it all, or each message fails once.
func FuzzSender(f *testing.F) {
	f.Add([]byte{1, 0, 3, 0, 0, 200, 90, 2, 4, 0x23, 200, 200, 1, 2, 3, 4, 5, 6, 2, 6, 100, 100, 2})
	f.Add([]byte{2, 0, 0x90, 20, 1, 0, 0, 255, 255, 2, 8, 1, 1, 6, 200, 200, 2, 4, 2, 50, 50, 2, 7, 2})
	f.Add([]byte{0x80, 2, 7, 1, 1, 11, 9, 9, 4, 0x42, 100, 100, 1, 1, 1, 2, 2, 1, 3, 3, 1, 4, 4, 1, 2, 2, 9, 3, 10, 0,
		11, 7, 2})
	f.Add([]byte{0xC0, 0, 1, 0, 0, 0, 2, 6, 255, 255, 4, 2, 0, 0, 6, 255, 255, 2, 6, 255, 255, 2, 8, 0x10, 255})
	for seed := range 400 {
		f.Add(fuzzinput.Random(seed, 1000))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 0 && len(in) <= 1000 {
			model.RunCommands(t, in, nil)
		}
	})
}

// What the sending half does in such lists of commands is written down to the octet, as a digest:
// so that nothing else changes unnoticed.
func TestCommandsByChanceDoWhatTheyDid(t *testing.T) {
	fuzzinput.CheckRecording(t, "testdata/commands.txt", 300, func(seed int, told *strings.Builder) {
		model.RunCommands(t, fuzzinput.Random(seed+1000, 1000), told)
	})
}
