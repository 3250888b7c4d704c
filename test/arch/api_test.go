package arch

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

var updateAPI = flag.Bool("update-api", false, "write testdata/api.txt")

// Whatever a program can see changes on purpose only: make api writes it down.
func TestExportedAPIIsAsWrittenDown(t *testing.T) {
	api := exportedAPI(t)
	golden := filepath.Join("testdata", "api.txt")
	if *updateAPI {
		must.OK(t, os.WriteFile(golden, api, 0o644))
	}
	want := must.Get(os.ReadFile(golden))(t)
	check.That(t, bytes.Equal(api, want),
		"the exported API has changed: if that was meant, run make api and say so in CHANGELOG.md")
}
