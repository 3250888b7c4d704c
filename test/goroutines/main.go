// Command goroutines prints the packages whose tests run more than one goroutine. Only there has
// the race detector something to see; the protocol code runs in one, and so do its tests.
//
//	go run ./test/goroutines ./... ./cmd/...
//
// A package counts if its tests, or code of ours that they are made of, start a goroutine, or hand
// a function to something that calls it from one.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	list, err := listPackages(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "goroutines:", err)
		os.Exit(1)
	}
	names, err := concurrentPackages(list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "goroutines:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(names, "\n"))
}

// goPackage is a package as go list prints it. Of a test binary Deps are all that it is made of.
type goPackage struct {
	ImportPath, Dir                    string
	Standard                           bool
	Deps                               []string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// listPackages lists the packages of the patterns, their test binaries and all below them.
func listPackages(patterns []string) (list []goPackage, err error) {
	c := exec.Command(goTool(), append([]string{"list", "-test", "-deps",
		"-json=ImportPath,Dir,Standard,Deps,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// concurrentPackages returns those packages of the list whose tests run more than one goroutine.
func concurrentPackages(list []goPackage) (names []string, err error) {
	code, tests := make(map[string]bool), make(map[string]bool) // by import path
	for _, p := range list {
		if p.Standard || strings.Contains(p.ImportPath, " ") || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		if code[p.ImportPath], err = anyStartsGoroutines(p.Dir, p.GoFiles); err != nil {
			return nil, err
		}
		tests[p.ImportPath], err = anyStartsGoroutines(p.Dir, slices.Concat(p.TestGoFiles, p.XTestGoFiles))
		if err != nil {
			return nil, err
		}
	}
	for _, p := range list {
		name, ok := strings.CutSuffix(p.ImportPath, ".test")
		inDeps := func(dep string) bool {
			dep, _, _ = strings.Cut(dep, " ") // one that is compiled again for a test
			return code[dep]
		}
		if ok && (tests[name] || slices.ContainsFunc(p.Deps, inDeps)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func anyStartsGoroutines(dir string, files []string) (bool, error) {
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if startsGoroutines(f) {
			return true, nil
		}
	}
	return false, nil
}

// callers are packages of the standard library that call functions of ours from goroutines of
// theirs, and starters are functions and methods that do.
var (
	callers  = []string{"expvar", "net/http", "net/http/httptest", "net/rpc", "os/signal", "testing/synctest"}
	starters = []string{"AddCleanup", "AfterFunc", "Go", "Parallel", "RunParallel", "SetFinalizer"}
)

// startsGoroutines reports whether code of a file runs in a second goroutine.
func startsGoroutines(f *ast.File) (starts bool) {
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		starts = starts || slices.Contains(callers, path)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr:
			starts = starts || slices.Contains(starters, n.Sel.Name)
		}
		return !starts
	})
	return starts
}

// goTool is the go command: GO, or the one on the path.
func goTool() string {
	if g := os.Getenv("GO"); g != "" {
		return g
	}
	return "go"
}
