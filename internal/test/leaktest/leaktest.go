// Package leaktest ends the tests of a package with a look at what they have left behind.
package leaktest

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// patience is how many looks, a millisecond apart, goroutines that are about to end and buffers
// about to be released get.
const patience = 2000

// Main is the body of TestMain: it runs the tests and fails them where a goroutine still runs once
// they are over, or a packet buffer was never released.
func Main(m *testing.M) { exitWithCheck(m, rawio.TrackPools()) }

// Goroutines is Main without the look at buffers, for the tests of links. The receive buffers of a
// link go back when its reader learns that it is closed. In these tests there may be no reader.
func Goroutines(m *testing.M) { exitWithCheck(m, func() int { return 0 }) }

func exitWithCheck(m *testing.M, outstanding func() int) {
	code := m.Run()
	if code == 0 && !reportLeaks(outstanding, nil, os.Stderr) {
		code = 1
	}
	os.Exit(code)
}

// reportLeaks says whether nothing is left, the known goroutines aside, and on w what is.
func reportLeaks(outstanding func() int, known map[string]string, w io.Writer) bool {
	for looks := 1; ; looks++ {
		left, buffers := runningStacks(), outstanding()
		for id := range known {
			delete(left, id)
		}
		switch {
		case len(left) == 0 && buffers == 0:
			return true
		case looks < patience:
			time.Sleep(time.Millisecond)
			continue
		}
		for _, stack := range left {
			fmt.Fprintf(w, "leak: a goroutine still runs: %s\n\n", stack)
		}
		if buffers > 0 {
			fmt.Fprintf(w, "leak: %d packet buffers were never released\n", buffers)
		}
		return false
	}
}

// runningStacks returns the stacks of the goroutines that run beside this one, by their numbers.
// Package os/signal and the runtime keep theirs.
func runningStacks() map[string]string {
	buf := make([]byte, 1<<16)
	n := runtime.Stack(buf, true)
	for ; n == len(buf); n = runtime.Stack(buf, true) {
		buf = make([]byte, 2*len(buf))
	}
	others := make(map[string]string)
	for _, stack := range strings.Split(strings.TrimSpace(string(buf[:n])), "\n\n")[1:] { // this one is the first
		if !strings.Contains(stack, "\ncreated by os/signal.") && !strings.Contains(stack, "\ncreated by runtime.") {
			id, _, _ := strings.Cut(stack, " [")
			others[id] = stack
		}
	}
	return others
}
