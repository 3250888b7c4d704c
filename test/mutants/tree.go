package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// modules are those of the product, with their tests, once joinPion has been called.
var modules = []string{"./...", "./cmd/...", "./metrics/...", "./compat/free5gc/...", "./compat/ishidawataru/...",
	"./compat/pion/..."}

// checkedOutTree is a copy of the committed tree.
type checkedOutTree string

// newCheckout makes a copy. What it returns with an error is to be removed too.
func newCheckout(dir string) (checkedOutTree, error) {
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	archive := exec.Command("git", "archive", "HEAD")
	archive.Dir = strings.TrimSpace(string(root))
	archive.Stderr = os.Stderr
	tar, err := archive.Output()
	if err != nil {
		return "", fmt.Errorf("git archive: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	extract := exec.Command("tar", "-x", "-f", "-")
	extract.Dir, extract.Stdin, extract.Stderr = dir, bytes.NewReader(tar), os.Stderr
	if err := extract.Run(); err != nil {
		return "", fmt.Errorf("tar: %w", err)
	}
	return checkedOutTree(dir), nil
}

// joinPion lets the workspace have compat/pion in place of bench, which wants the original of it.
func (t checkedOutTree) joinPion() error {
	c := exec.Command("go", "work", "edit", "-dropuse=./bench", "-use=./compat/pion")
	c.Dir = string(t)
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go work edit: %w\n%s", err, out)
	}
	return nil
}

// weaveFaults puts the faults into the tree. It returns those that are to be made one at a time.
func (t checkedOutTree) weaveFaults(faults []*fault) (apart []*fault, err error) {
	var files []string
	in := make(map[string][]*fault)
	for _, f := range faults {
		if in[f.file] == nil {
			files = append(files, f.file)
		}
		in[f.file] = append(in[f.file], f)
	}
	for _, file := range files {
		path := filepath.Join(string(t), file)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		w, err := newWeaver(string(text))
		if err != nil {
			return nil, err
		}
		for _, f := range in[file] {
			switch err := w.weaveFault(f); {
			case errors.Is(err, errNotWoven):
				apart = append(apart, f)
			case err != nil:
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
		}
		if err := os.WriteFile(path, w.wovenFile(), 0o644); err != nil {
			return nil, err
		}
		name := filepath.Join(filepath.Dir(path), "woven_fault.go")
		if err := os.WriteFile(name, []byte(switchFile(w.file.Name.Name)), 0o644); err != nil {
			return nil, err
		}
	}
	return apart, nil
}

// withFault makes a fault in the tree while do runs.
func (t checkedOutTree) withFault(f *fault, do func()) error {
	path := filepath.Join(string(t), f.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	wrong, err := f.applyTo(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(wrong), 0o644); err != nil {
		return err
	}
	do()
	return os.WriteFile(path, text, 0o644)
}

// buildTests compiles the tests of a package. Without what a debugger needs the linker takes half
// the time.
func (t checkedOutTree) buildTests(pkg, binary string) error {
	return compilePackage(pkg, t.goCommand("test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, pkg))
}

// buildRace compiles them with the race detector.
func (t checkedOutTree) buildRace(pkg, binary string) error {
	c := t.goCommand("test", "-c", "-race", "-vet=off", "-ldflags=-s -w", "-o", binary, pkg)
	c.Env = append(c.Env, "CGO_ENABLED=1")
	return compilePackage(pkg, c)
}

func compilePackage(pkg string, c *exec.Cmd) error {
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	if err := runAndCount(c); err != nil {
		return fmt.Errorf("the tests of %s do not compile:\n%s", pkg, &out)
	}
	return nil
}

// usesNetwork reports whether the tests of a package reach the network, so that two runs might
// meet.
func (t checkedOutTree) usesNetwork(pkg string) (bool, error) {
	out, err := t.goCommand("list", "-test", "-deps", pkg).Output()
	if err != nil {
		return false, fmt.Errorf("go list %s: %w", pkg, err)
	}
	return slices.Contains(strings.Fields(string(out)), "net"), nil
}

// goCommand is the go tool in the tree. The copies share what they compile.
func (t checkedOutTree) goCommand(args ...string) *exec.Cmd {
	c := exec.Command("go", slices.Insert(args, 1, "-trimpath", "-p=1")...)
	c.Dir = string(t)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	return c
}

// checkSyntax reports an error of syntax.
func checkSyntax(text string) error {
	_, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	return err
}
