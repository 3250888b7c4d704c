package cli

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// short is a disk with room for a few octets.
type short struct{ room int }

func (s *short) Write(b []byte) (int, error) {
	if s.room -= len(b); s.room < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// A program whose output is not all written has failed, and says why; any other ends as it does.
func TestOutputThatIsLostIsToldOf(t *testing.T) {
	for room, want := range map[int]string{8: "1 ", 7: "2 p: no space left on device\n"} {
		out, said := &Output{To: &short{room}}, new(strings.Builder)
		for range 4 {
			fmt.Fprint(out, "ab")
		}
		code := out.Exit(1, 2, said, "p")
		check.Equal(t, "exit", fmt.Sprint(code, " ", said), want)
	}
}
