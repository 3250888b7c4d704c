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

// instruments are started by the scripts of the project, for those that work on it: their flags
// need no range.
var instruments = []string{"bench", "test/interop/peer", "test/interop/pion", "test/locks", "test/mutants", "test/watch"}

var numberFlag = regexp.MustCompile(
	`^(Int|Int8|Int16|Int32|Int64|Uint|Uint8|Uint16|Uint32|Uint64|Float32|Float64|Duration|Count)(Slice)?(Var)?P?$`)

// A number on the command line of a program has a range, and so is a cli.Number: packages flag and
// pflag take NaN, negative numbers, and times that overflow.
func TestNumbersOfCommandLinesHaveARange(t *testing.T) {
	programs := 0
	for _, dir := range []string{"cmd", "examples", "fuzz", "test", "bench", "internal/cli"} {
		must.OK(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			rel, _ := filepath.Rel(root, filepath.Dir(path))
			if slices.ContainsFunc(instruments, func(p string) bool {
				return rel == p || strings.HasPrefix(rel, p+"/")
			}) {
				return nil
			}
			fset := token.NewFileSet()
			f := must.Get(parser.ParseFile(fset, path, nil, parser.SkipObjectResolution))(t)
			if !slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
				return i.Path.Value == `"flag"` || i.Path.Value == `"github.com/spf13/pflag"` ||
					i.Path.Value == `"`+module+`internal/cli"`
			}) {
				return nil
			}
			programs++
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				if x, plain := ast.Expr(nil), false; ok && numberFlag.MatchString(s.Sel.Name) && len(call.Args) >= 3 {
					x = s.X
					if id, is := x.(*ast.Ident); is {
						plain = id.Name != "cli"
					}
					check.That(t, !plain, "%v: a flag is a number by %s: take one of internal/cli, which has a range",
						fset.Position(call.Pos()), s.Sel.Name)
				}
				return true
			})
			return nil
		}))
	}
	check.That(t, programs > 10, "%d files were looked at", programs)
}
