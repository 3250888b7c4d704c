package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// receiveLines is how long the way of a packet from the link to its association may be.
const receiveLines = 60

// The way of a packet through the shell is one file that can be read at a glance: all calls that
// fetch packets and that hand them on are there, but for the one by which a read policy waits; each
// function there calls another of them or is one of its ends, and together they have no more than
// 60 lines.
func TestWayOfAPacketIsOneShortFile(t *testing.T) {
	ends := []string{"ReadBatch", "PollBatch", "HandlePackets"}
	lines, found := 0, map[string]bool{}
	for _, path := range sourceFiles(t, "sctp") {
		fset, own := token.NewFileSet(), filepath.Base(path) == "receive.go"
		f := must.Get(parser.ParseFile(fset, path, nil, parser.SkipObjectResolution))(t)
		known := append(slices.Clone(ends), "WaitBatch")
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				known = append(known, fn.Name.Name)
			}
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			calls := methodCalls(fn)
			for _, c := range calls {
				if slices.Contains(ends, c) {
					waits := c == "ReadBatch" && filepath.Base(path) == "read_policy.go"
					check.That(t, own || waits, "%s calls %s, as only receive.go does", path, c)
					found[c] = true
				}
			}
			if own {
				lines += fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
				check.That(t, slices.ContainsFunc(calls, func(c string) bool { return slices.Contains(known, c) }),
					"%s is not on the way", fn.Name.Name)
			}
		}
	}
	check.Equal(t, "ends of the way", len(found), len(ends))
	check.That(t, lines <= receiveLines, "the way takes %d lines; it is to be read at a glance", lines)
}

// methodCalls are the names of the methods that a function calls.
func methodCalls(fn *ast.FuncDecl) (list []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok {
				list = append(list, s.Sel.Name)
			}
		}
		return true
	})
	return list
}
