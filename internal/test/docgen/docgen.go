// Package docgen holds the parts of documents that programs write.
package docgen

import (
	"os"
	"strings"
	"testing"
)

// Check compares text with what a document has between <!-- name --> and <!-- /name -->, and puts
// it there where update says so.
func Check(t *testing.T, document, name, text string, update bool) {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	open, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	head, rest, ok := strings.Cut(string(b), open)
	was, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no %s", document, open+end)
	case was == text:
	case update:
		if err := os.WriteFile(document, []byte(head+open+text+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s, %s: it has\n%s\nnot, as go test -update would write,\n%s", document, name, was, text)
	}
}
