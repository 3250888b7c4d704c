package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestGoroutinesAreSeen(t *testing.T) {
	for _, row := range []struct {
		name, text string
		starts     bool
	}{
		{"one goroutine", "import \"sync\"\n\nfunc f(mu *sync.Mutex) { mu.Lock(); defer mu.Unlock() }", false},
		{"a go statement", "func f() { go f() }", true},
		{"a go statement in a function literal", "var f = func() { go println() }", true},
		{"sync.WaitGroup.Go", "import \"sync\"\n\nfunc f(wg *sync.WaitGroup) { wg.Go(func() {}) }", true},
		{"time.AfterFunc", "import \"time\"\n\nvar _ = time.AfterFunc(0, func() {})", true},
		{"tests beside each other", "import \"testing\"\n\nfunc TestA(t *testing.T) { t.Parallel() }", true},
		{"a web server", "import \"net/http\"\n\nvar _ http.Handler", true},
	} {
		f := must.Get(parser.ParseFile(token.NewFileSet(), "a.go", "package a\n\n"+row.text, 0))(t)
		check.Equal(t, row.name, startsGoroutines(f), row.starts)
	}
}

// What starts a goroutine counts for all packages whose tests are made of it, and for no other.
func TestGoroutinesCountWhereTheyAreImported(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("quiet.go", "package a\n")
	write("starts.go", "package a\n\nfunc f() { go f() }\n")
	quiet, starts := []string{"quiet.go"}, []string{"starts.go"}
	names := must.Get(concurrentPackages([]goPackage{
		{ImportPath: "std", Standard: true, Dir: dir, GoFiles: starts},
		{ImportPath: "low", Dir: dir, GoFiles: starts},
		{ImportPath: "high", Dir: dir, GoFiles: quiet}, {ImportPath: "high.test", Deps: []string{"std", "low [high.test]"}},
		{ImportPath: "core", Dir: dir, GoFiles: quiet, TestGoFiles: quiet}, {ImportPath: "core.test", Deps: []string{"std"}},
		{ImportPath: "own", Dir: dir, GoFiles: quiet, XTestGoFiles: starts}, {ImportPath: "own.test"},
		{ImportPath: "code", Dir: dir, GoFiles: starts}, {ImportPath: "code.test", Deps: []string{"code [code.test]"}},
	}))(t)
	check.Slice(t, "packages", names, []string{"code", "high", "own"})
}

// Of this module the shells are raced, and the protocol code is not.
func TestShellsAreConcurrentAndCoresAreNot(t *testing.T) {
	names := must.Get(concurrentPackages(must.Get(listPackages([]string{"../../sctp/...", "../../rdma/..."}))(t)))(t)
	for pkg, want := range map[string]bool{"sctp": true, "rdma": true, "sctp/assoc": false, "sctp/internal/tx": false,
		"rdma/rdmap": false} {
		check.That(t, slices.Contains(names, "github.com/rddp-go/rddp/"+pkg) == want, "%s is one of %s, want %v", pkg,
			strings.Join(names, " "), want)
	}
}
