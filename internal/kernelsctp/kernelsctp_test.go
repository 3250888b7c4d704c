package kernelsctp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestTheKernelsSCTPIsFound(t *testing.T) {
	was := Root
	defer func() { Root = was }()
	for path, want := range map[string]bool{"proc/net/sctp": true, "sys/module/sctp": true, "proc/net/sctp6": false} {
		Root = t.TempDir()
		must.OK(t, os.MkdirAll(filepath.Join(Root, path), 0o755))
		check.Equal(t, path, IsLoaded(), want)
	}
}

func TestTheAdviceNamesEachWayOut(t *testing.T) {
	for _, way := range []string{"an SCTP of its own", "rmmod sctp", "--link udp", "RDDP_LINK=udp", "RDDP_LINK=raw",
		"nft 'add table", "skuid >= 0 accept", "sctp drop'"} {
		check.That(t, strings.Contains(Advice, way), "%q is not in %q", way, Advice)
	}
}
