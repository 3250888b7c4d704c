package leak

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rddp-go/rddp/rawio"
)

func TestWhatIsLeftIsFound(t *testing.T) {
	here := goleak.IgnoreCurrent()
	outstanding := rawio.TrackPools()
	var said strings.Builder
	if !Clean(outstanding, &said, here) {
		t.Errorf("found without a leak: %s", &said)
	}
	b := rawio.NewPool(100, 1).Get()
	stop := make(chan struct{})
	go func() { <-stop }()
	if Clean(outstanding, &said, here) {
		t.Error("nothing found")
	}
	for _, want := range []string{"found unexpected goroutines", "1 packet buffers"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in %s", want, &said)
		}
	}
	close(stop)
	b.Release()
	said.Reset()
	if !Clean(outstanding, &said, here) {
		t.Errorf("found after the end of it: %s", &said)
	}
}
