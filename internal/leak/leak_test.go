package leak

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/rawio"
)

func TestWhatIsLeftIsFound(t *testing.T) {
	here := goleak.IgnoreCurrent()
	outstanding := rawio.TrackPools()
	var said strings.Builder
	check.That(t, Clean(outstanding, &said, here), "found without a leak: %s", &said)
	b := rawio.NewPool(100, 1).Get()
	stop := make(chan struct{})
	go func() { <-stop }()
	check.That(t, !Clean(outstanding, &said, here), "nothing found")
	for _, want := range []string{"found unexpected goroutines", "1 packet buffers"} {
		check.That(t, strings.Contains(said.String(), want), "no %q in %s", want, &said)
	}
	close(stop)
	b.Release()
	said.Reset()
	check.That(t, Clean(outstanding, &said, here), "found after the end of it: %s", &said)
}
