package leaktest

import (
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

func TestWhatIsLeftIsFound(t *testing.T) {
	here := runningStacks()
	outstanding := rawio.TrackPools()
	var said strings.Builder
	check.That(t, reportLeaks(outstanding, here, &said), "found without a leak: %s", &said)
	b := rawio.NewPool(100, 1).Get()
	stop := make(chan struct{})
	go func() { <-stop }()
	check.That(t, !reportLeaks(outstanding, here, &said), "nothing found")
	for _, want := range []string{"TestWhatIsLeftIsFound.func", "1 packet buffers"} {
		check.That(t, strings.Contains(said.String(), want), "no %q in %s", want, &said)
	}
	close(stop)
	b.Release()
	said.Reset()
	check.That(t, reportLeaks(outstanding, here, &said), "found after the end of it: %s", &said)
}
