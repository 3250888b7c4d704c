package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

// An id begins with the number of an RFC, or with a name for a draft.
const idPattern = `(?:[0-9]{4}|dtlschunk|dtlskeys)-(?:[0-9]+|[A-Z])(?:\.[0-9]+)*-[0-9]+`

var (
	citePattern = regexp.MustCompile(`\breq\s+` + idPattern + `(?:(?:,|\s+and)\s+(?:req\s+)?` + idPattern + `)*`)
	idRegexp    = regexp.MustCompile(idPattern)
)

// Cited returns the ids that a comment cites: those of a list after the word req.
func Cited(comment string) []string {
	var ids []string
	for _, list := range citePattern.FindAllString(comment, -1) {
		ids = append(ids, idRegexp.FindAllString(list, -1)...)
	}
	return ids
}

// Citation is one id in one comment of a test file.
type Citation struct {
	ID   string
	Pos  token.Position
	Test string // the Test or Fuzz function that the comment is in; empty: none
}

// Citations collects those of every _test.go below root.
func Citations(root string) ([]Citation, error) {
	var list []Citation
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		found, err := citationsOf(path, nil)
		list = append(list, found...)
		return err
	})
	return list, err
}

// citationsOf reads one file, or src in its place.
func citationsOf(path string, src any) ([]Citation, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var list []Citation
	for _, g := range f.Comments {
		for _, id := range Cited(g.Text()) {
			list = append(list, Citation{ID: id, Pos: fset.Position(g.Pos()), Test: testAround(f, g)})
		}
	}
	return list, nil
}

// testAround names the test function whose body holds the comment.
func testAround(f *ast.File, g *ast.CommentGroup) string {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Body == nil || g.Pos() < fn.Body.Pos() || g.End() > fn.Body.End() {
			continue
		}
		if strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz") {
			return fn.Name.Name
		}
	}
	return ""
}
