package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// The code in the guide is that of the examples, which are compiled and run.
func TestGuideShowsCodeOfTheExamples(t *testing.T) {
	guide := must.Get(os.ReadFile(filepath.Join(root, "docs", "guide.md")))(t)
	var code []byte
	for _, name := range []string{"echo", "board"} {
		src := must.Get(os.ReadFile(filepath.Join(root, "examples", name, "main.go")))(t)
		code = append(code, src...)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(guide, -1)
	for _, b := range blocks {
		check.That(t, bytes.Contains(code, b[1]), "not in an example:\n%s", b[1])
	}
	readme := must.Get(os.ReadFile(filepath.Join(root, "README.md")))(t)
	talk := must.Get(os.ReadFile(filepath.Join(root, "examples", "talk", "main.go")))(t)
	for _, b := range regexp.MustCompile("(?s)```go\n(\t.*?)```").FindAllSubmatch(readme, -1) {
		check.That(t, bytes.Contains(talk, b[1]), "of README.md, not in examples/talk:\n%s", b[1])
	}
	check.That(t, len(blocks) >= 9, "%d pieces of code", len(blocks))
}

// A test stands in the file of its topic, not in that of the reason why it was written.
func TestFilesAreNamedByTopic(t *testing.T) {
	reason := regexp.MustCompile(`^(conf|mutant)(_.*)?_test\.go$`)
	must.OK(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		check.That(t, err != nil || !reason.MatchString(d.Name()), "%s: put its tests into the files of their topics",
			path)
		return err
	}))
}
