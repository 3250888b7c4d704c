// Package leak ends the tests of a package with a look at what they have left behind.
package leak

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rddp-go/rddp/rawio"
)

// Main is the body of TestMain: it runs the tests and fails them where a goroutine still runs once they are
// over, or a packet buffer was never released.
func Main(m *testing.M) {
	outstanding := rawio.TrackPools()
	code := m.Run()
	if code == 0 && !Clean(outstanding, os.Stderr) {
		code = 1
	}
	os.Exit(code)
}

// Goroutines is Main without the look at buffers, for the tests of links: what a link has ready to receive into goes
// back when its reader learns that it is closed, and there nobody may read then.
func Goroutines(m *testing.M) { goleak.VerifyTestMain(m) }

// Clean says whether nothing is left, and on w what is. Goroutines that are about to end get a moment to do so.
func Clean(outstanding func() int, w io.Writer, opts ...goleak.Option) bool {
	clean := true
	if err := goleak.Find(opts...); err != nil {
		fmt.Fprintf(w, "leak: %v\n", err)
		clean = false
	}
	n := outstanding()
	for end := time.Now().Add(2 * time.Second); n > 0 && time.Now().Before(end); n = outstanding() {
		time.Sleep(time.Millisecond)
	}
	if n > 0 {
		fmt.Fprintf(w, "leak: %d packet buffers were never released\n", n)
		clean = false
	}
	return clean
}
