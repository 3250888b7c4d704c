// Package arch holds the rules of docs/dev/modules.md that the compiler does not.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
)

const module = "github.com/rddp-go/rddp/"

// sansIO lists the packages that never touch the world.
var sansIO = []string{
	"ddp", "ddp/llp", "ddpadapt", "internal/overlap", "internal/sparse", "mpa", "rawio/internal/defrag", "rawio/simnet", "rdma/rdmap",
	"sctp/assoc", "sctp/cc", "sctp/endpoint", "sctp/sched", "sctp/wire", "sctp/internal/*",
}

// touching lists packages below a pattern of sansIO that do touch the world: shells beside the core.
var touching = []string{"sctp/internal/tlskeys"}

// forbidden are the imports that would let them.
var forbidden = []string{"net", "os", "sync", "math/rand", "math/rand/v2", "crypto/rand", "log", "context",
	"os/signal", "golang.org/x/sys/unix"}

// timeNames are what sans-IO code may take from package time: lengths, never points.
var timeNames = []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// layers go down: a package may import from its own and later lines only.
var layers = [][]string{
	{"cmd/*", "bench/*", "compat/*", "examples/*", "fuzz/*", "test/*", "internal/*", "rawio/internal/defrag/model", "sctp/cc/model", "sctp/internal/rx/model", "sctp/internal/tx/model"},
	{"metrics", "metrics/*"},
	{"compat"},
	{"rdma", "rdma/rdmap"},
	{"ddpadapt", "mpa"},
	{"ddp", "ddp/llp"},
	{"sctp/qlog"},
	{"sctp"},
	{"sctp/endpoint"},
	{"sctp/upper"},
	{"sctp/assoc"},
	{"sctp/internal/*", "sctp/cc"},
	{"sctp/sched"},
	{"sctp/wire"},
	{"rawio/*"},
	{"internal/portregistry", "internal/pollpolicy", "internal/readrole"},
	{"rawio"},
	{"rawio/rddplayers"}, // which must not share code with what it decodes
	{"internal/prefetch", "internal/counters", "internal/crc32c", "internal/test/concurrent", "internal/quota", "internal/grace", "internal/hostaddr", "internal/invariant", "internal/kernelsctp", "internal/limits", "internal/mutualtls", "internal/overlap", "internal/sparse"},
}

// layerOf is the line of a package, -1 where it has none.
func layerOf(pkg string) int {
	wide := -1 // by a pattern, which a layer that names the package overrides
	for i, l := range layers {
		for _, p := range l {
			if p == pkg {
				return i
			}
			if wide < 0 && strings.HasSuffix(p, "/*") && strings.HasPrefix(pkg, strings.TrimSuffix(p, "*")) {
				wide = i
			}
		}
	}
	return wide
}

// checkFile looks for what a sans-IO file must not have.
func checkFile(t *testing.T, path string) {
	fset := token.NewFileSet()
	f := must.Get(parser.ParseFile(fset, path, nil, parser.SkipObjectResolution))(t)
	for _, imp := range f.Imports {
		if p, _ := strconv.Unquote(imp.Path.Value); slices.Contains(forbidden, p) {
			t.Errorf("%v imports %s", fset.Position(imp.Pos()), p)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%v starts a goroutine", fset.Position(n.Pos()))
		case *ast.SelectStmt:
			t.Errorf("%v has a select statement", fset.Position(n.Pos()))
		case *ast.ChanType:
			t.Errorf("%v uses a channel", fset.Position(n.Pos()))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && !slices.Contains(timeNames, n.Sel.Name) {
				t.Errorf("%v uses time.%s", fset.Position(n.Pos()), n.Sel.Name)
			}
		}
		return true
	})
}

const root = "../.."

// expandPackages expands a trailing * into the folders below.
func expandPackages(t *testing.T, patterns []string) []string {
	var list []string
	for _, p := range patterns {
		dirs, err := filepath.Glob(filepath.Join(root, p))
		must.That(t, err == nil && len(dirs) != 0, "no package matches %s (%v)", p, err)
		for _, d := range dirs {
			rel, _ := filepath.Rel(root, d)
			list = append(list, rel)
		}
	}
	return list
}

// sourceFiles are the files of a package, but its tests.
func sourceFiles(t *testing.T, pkg string) []string {
	all := must.Get(os.ReadDir(filepath.Join(root, pkg)))(t)
	var list []string
	for _, e := range all {
		if n := e.Name(); strings.HasSuffix(n, ".go") && !strings.HasSuffix(n, "_test.go") {
			list = append(list, filepath.Join(root, pkg, n))
		}
	}
	return list
}
