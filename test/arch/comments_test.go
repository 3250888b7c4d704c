package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// leadLines is how long the comment of a package may be before its first heading.
const leadLines = 10

// harness are the folders whose packages are no part of the product.
var harness = regexp.MustCompile(`^(test|bench|fuzz|internal/test)(/|$)`)

// The comment of a package says at a glance what it is for; tables and details have headings. A
// package that programs may import has an example that is run.
func TestPackagesExplainThemselves(t *testing.T) {
	packages := 0
	must.OK(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		if err != nil || !d.IsDir() {
			return err
		}
		if harness.MatchString(filepath.ToSlash(rel)) || d.Name() == "testdata" || d.Name() == ".git" {
			return fs.SkipDir
		}
		name, doc, examples := packageComment(t, path)
		if name == "" || name == "main" {
			return nil
		}
		packages++
		lead, _, _ := strings.Cut(doc, "\n# ")
		lines := slices.DeleteFunc(strings.Split(lead, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
		check.That(t, strings.HasPrefix(doc, "Package "+name+" "), "%s: the comment begins %.30q", rel, doc)
		check.That(t, len(lines) <= leadLines, "%s: the comment has %d lines before its first heading", rel, len(lines))
		internal := strings.Contains("/"+filepath.ToSlash(rel)+"/", "/internal/") || filepath.Base(rel) == "model"
		forTests := filepath.ToSlash(rel) == "compat/original"
		check.That(t, internal || forTests || examples > 0, "%s: there is no example that is run", rel)
		return nil
	}))
	check.That(t, packages > 40, "%d packages", packages)
}

// packageComment returns the name of the package in a folder, its comment, and how many examples
// with an output it has.
func packageComment(t *testing.T, dir string) (name, doc string, examples int) {
	for _, path := range must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t) {
		f := must.Get(parser.ParseFile(token.NewFileSet(), path, nil,
			parser.ParseComments|parser.SkipObjectResolution))(t)
		if !strings.HasSuffix(path, "_test.go") {
			name, doc = f.Name.Name, doc+f.Doc.Text()
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
				for _, c := range f.Comments {
					if c.Pos() > fn.Pos() && c.End() < fn.End() && strings.Contains(c.Text(), "Output:") {
						examples++
					}
				}
			}
		}
	}
	return name, doc, examples
}
