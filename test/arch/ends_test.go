package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

var funcName = regexp.MustCompile(`^func (?:\(.*?\) )?(\w+)`)

// Each way in which an association, a session or a QP ends is one that the package comment lists: a
// program can switch on it.
func TestEveryEndIsListed(t *testing.T) {
	read := func(path string) string {
		text := must.Get(os.ReadFile(path))(t)
		return string(text)
	}
	for _, row := range ends {
		doc := read(filepath.Join(root, strings.TrimSuffix(row.pkg, "/rdmap"), "doc.go"))
		seen := make(map[string]bool)
		for _, path := range sourceFiles(t, row.pkg) {
			name := ""
			for _, line := range strings.Split(read(path), "\n") {
				if m := funcName.FindStringSubmatch(line); m != nil {
					name = m[1]
				}
				if m := regexp.MustCompile(row.calls).FindStringSubmatch(line); m != nil {
					what := name + ": " + m[1]
					seen[what] = true
					check.That(t, row.list[what] != "", "%s: %q is a way to end that is not listed", path, what)
				}
			}
		}
		for what, end := range row.list {
			check.That(t, seen[what], "%s: nothing ends by %q", row.pkg, what)
			check.That(t, regexp.MustCompile(`(?m)^//   - .*`+regexp.QuoteMeta(end)).MatchString(doc),
				"%s: the package comment does not list %q", row.pkg, end)
		}
	}
}
