package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// target is a fuzz target of this module.
type target struct {
	pkg    string   // as in "./ddp"
	name   string   // with Fuzz
	covers []string // packages under test
}

func (t target) String() string { return t.pkg + " " + t.name }

// findTargets reads the test files below root for targets that can run on this system. Other
// modules are not looked into.
func findTargets(root string, match *regexp.Regexp) (list []target, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		if ok, err := build.Default.MatchFile(filepath.Dir(path), filepath.Base(path)); err != nil || !ok {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Fuzz") {
				continue
			}
			t := target{pkg: "./" + filepath.ToSlash(filepath.Dir(path)), name: fn.Name.Name}
			t.covers = coveredBy(fn.Doc, t.pkg)
			if match.MatchString(t.String()) {
				list = append(list, t)
			}
		}
		return nil
	})
	slices.SortFunc(list, byPackage)
	return list, err
}

// coveredBy returns what the comment of a target says that it covers.
func coveredBy(doc *ast.CommentGroup, pkg string) []string {
	if doc != nil {
		for _, c := range doc.List {
			if list, ok := strings.CutPrefix(c.Text, "//fuzz:covers "); ok {
				return strings.Fields(list)
			}
		}
	}
	return []string{pkg}
}

// notMeasured is what a log says of the coverage of a target that was only run.
const notMeasured = "coverage: not measured\n"

// fuzzFor fuzzes for a time, then measures what the corpus covers if that is wanted, and leaves what
// Go prints in a log.
func (t target) fuzzFor(d time.Duration, cover bool, log string) error {
	f, err := os.Create(log)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(f, "date: %s\n", time.Now().UTC().Format(time.DateOnly))
	cmd := exec.Command(goTool(), "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", d.String(),
		"-fuzzminimizetime", "10x", "-parallel", "1", t.pkg)
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Run(); err != nil {
		if b, _ := os.ReadFile(log); !expired.Match(b) {
			t.quoteFailed(f, b)
			return err
		}
	}
	if !cover {
		_, err = f.WriteString(notMeasured)
		return err
	}
	return t.measureCoverage(f)
}

// written is how Go says where the input is that failed.
var written = regexp.MustCompile(`(?m)^ +Failing input written to (testdata/fuzz/\w+/\w+)$`)

// quoteFailed adds to a log the inputs that it says have failed: the machine may be gone before
// somebody looks for the files.
func (t target) quoteFailed(w io.Writer, log []byte) {
	for _, m := range written.FindAllSubmatch(log, -1) {
		path := filepath.Join(t.pkg, filepath.FromSlash(string(m[1])))
		if b, err := os.ReadFile(path); err == nil {
			fmt.Fprintf(w, "%s:\n%s", path, b)
		}
	}
}

// expired is how Go before 1.27 ends a run now and then when its time is over, which is no failure
// (go.dev/issue/75804). An input that fails is written down, and says so.
var expired = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ .*\n    context deadline exceeded\nFAIL$`)

// measureCoverage runs the target over its seeds and over what the fuzzer has found, which Go keeps
// in its cache.
func (t target) measureCoverage(log *os.File) error {
	dir, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "target.test")
	cmd := exec.Command(goTool(), "test", "-c", "-o", program, "-cover", "-covermode=set",
		"-coverpkg="+strings.Join(t.covers, ","), t.pkg)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return err
	}
	seeds := filepath.Join("testdata", "fuzz", t.name)
	into := filepath.Join(dir, seeds)
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	cache, err := t.cacheDir()
	if err != nil {
		return err
	}
	for _, from := range []string{filepath.Join(t.pkg, seeds), cache} {
		if _, err := os.Stat(from); err != nil {
			continue // no such inputs yet
		}
		if err := os.CopyFS(into, os.DirFS(from)); err != nil {
			return err
		}
	}
	cmd = exec.Command(program, "-test.run", "^"+t.name+"$", "-test.timeout", "10m")
	cmd.Dir = dir // where it looks for testdata
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run()
}

// cacheDir returns where Go keeps the inputs that were new.
func (t target) cacheDir() (string, error) {
	b, err := exec.Command(goTool(), "env", "GOCACHE").Output()
	if err != nil {
		return "", err
	}
	path, err := exec.Command(goTool(), "list", t.pkg).Output()
	if err != nil {
		return "", err
	}
	return filepath.Join(string(bytes.TrimSpace(b)), "fuzz", filepath.FromSlash(string(bytes.TrimSpace(path))),
		t.name), nil
}

// goTool is the go command: GO, or the one on the path.
func goTool() string {
	if g := os.Getenv("GO"); g != "" {
		return g
	}
	return "go"
}
