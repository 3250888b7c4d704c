package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// What the documents say that a test holds, a test of that name in that file does.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	citation := regexp.MustCompile("`([\\w/]+_test\\.go):(\\w+)`")
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range citation.FindAllSubmatch(text, -1) {
			n++
			src, err := os.ReadFile(filepath.Join(root, string(m[1])))
			if err != nil || !regexp.MustCompile(`(?m)^func `+string(m[2])+`\(`).Match(src) {
				t.Errorf("%s names %s:%s, which is not there", filepath.Base(doc), m[1], m[2])
			}
		}
	}
	if n < 100 {
		t.Errorf("%d tests named: docs/security.md and docs/reliability.md have more", n)
	}
}
