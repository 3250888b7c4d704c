package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp"
)

// The code in the guide is that of the examples, which are compiled and run.
func TestGuideShowsCodeOfTheExamples(t *testing.T) {
	guide := must.Get(os.ReadFile(filepath.Join(root, "docs", "guide.md")))(t)
	var code []byte
	for _, name := range []string{"examples/echo/main.go", "examples/board/main.go", "rawio/netconn/example_test.go"} {
		src := must.Get(os.ReadFile(filepath.Join(root, name)))(t)
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

// A document for users links to documents and headings, and names files, that exist.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)
	pages, n := must.Get(filepath.Glob(filepath.Join(root, "docs/*.md")))(t), 0
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"),
		filepath.Join(root, "CHANGELOG.md")) {
		text := string(must.Get(os.ReadFile(page))(t))
		rel := must.Get(filepath.Rel(root, page))(t)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			n++
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			there, err := os.ReadFile(target)
			check.That(t, err == nil && (m[2] == "" || slices.Contains(anchors(string(there)), m[2])),
				"%s links to %s, %v",
				rel, m[0], err)
		}
		for _, m := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if file, _, _ := strings.Cut(m[1], ":"); filePath.MatchString(file) && !strings.HasPrefix(file, "./") {
				n++
				check.That(t, pathExists(rel, file), "%s names the file %s, which is not there", rel, file)
			}
		}
	}
	check.That(t, n >= 100, "%d links and files", n)
}

// anchors returns the names by which headings are linked to.
func anchors(text string) (list []string) {
	other := regexp.MustCompile(`[^a-z0-9 _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(other.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}

// The texts that docs/troubleshooting.md explains are those that the code has.
func TestTroubleshootingQuotesTheCode(t *testing.T) {
	doc := must.Get(os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md")))(t)
	texts := literals(t) +
		(&rawio.PermissionError{Link: "raw", Capability: "CAP_NET_RAW", Err: syscall.EPERM}).Error() +
		(&sctp.AbortError{ByPeer: true}).Error()
	quoted, n := regexp.MustCompile("`[^`]+`"), 0
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(line[1:], "|")
		for _, q := range quoted.FindAllString(first, -1) {
			for part := range strings.SplitSeq(strings.Trim(q, "`"), "...") {
				if part = strings.Trim(part, " :;,()"); strings.Contains(part, " ") {
					n++
					check.That(t, strings.Contains(texts, part), "no string of the code has %q", part)
				}
			}
		}
	}
	check.That(t, n >= 50, "%d texts", n)
}

// literals returns the strings in the code of the product, with those joined by + in one.
func literals(t *testing.T) string {
	var all strings.Builder
	var fold func(e ast.Expr) (string, bool)
	fold = func(e ast.Expr) (string, bool) {
		switch e := e.(type) {
		case *ast.BasicLit:
			s, err := strconv.Unquote(e.Value)
			return s, err == nil && e.Kind == token.STRING
		case *ast.BinaryExpr:
			x, _ := fold(e.X)
			y, ok := fold(e.Y)
			return x + y, ok && e.Op == token.ADD
		}
		return "", false
	}
	for _, dir := range []string{"cmd", "ddp", "ddpadapt", "internal", "mpa", "rawio", "rdma", "sctp"} {
		must.OK(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			ast.Inspect(must.Get(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t), func(n ast.Node) bool {
				if e, isExpr := n.(ast.Expr); isExpr {
					if s, ok := fold(e); ok {
						all.WriteString(s + "\n")
						return false
					}
				}
				return true
			})
			return nil
		}))
	}
	return all.String()
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
