package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// typedPackage is a package of the tree with its types.
type typedPackage struct {
	path  string // sctp/assoc
	names []string
	texts []string
	files []*ast.File
	fset  *token.FileSet
	info  *types.Info
	pkg   *types.Package
	from  types.Importer
}

func (p *typedPackage) offsetOf(at token.Pos) int { return p.fset.Position(at).Offset }

// loadPackages reads the packages and their types. What they import comes from the compiler.
func (t checkedOutTree) loadPackages(paths []string) (list []*typedPackage, err error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, p := range paths {
		args = append(args, "./"+p)
	}
	c := t.goCommand(args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports, files := make(map[string]string), make(map[string][]string)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath], files[p.Dir] = p.Export, p.GoFiles
	}
	root, err := filepath.Abs(string(t))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range paths {
		p := &typedPackage{path: path, fset: fset, from: from}
		for _, f := range files[filepath.Join(root, path)] {
			name := path + "/" + f
			text, err := os.ReadFile(filepath.Join(string(t), name))
			if err != nil {
				return nil, err
			}
			p.names, p.texts = append(p.names, name), append(p.texts, string(text))
		}
		if err := p.checkTypes(p.texts, nil); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// checkTypes finds the types of the package with other texts of its files. Given a place for errors
// it goes on behind them and says which functions have them.
func (p *typedPackage) checkTypes(texts []string, wrong map[string]bool) error {
	p.files, p.info = nil, &types.Info{Types: make(map[ast.Expr]types.TypeAndValue),
		Defs: make(map[*ast.Ident]types.Object),
		Uses: make(map[*ast.Ident]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	for i, text := range texts {
		f, err := parser.ParseFile(p.fset, p.names[min(i, len(p.names)-1)], text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files = append(p.files, f)
	}
	var other error
	conf := types.Config{Importer: p.from}
	if wrong != nil {
		conf.Error = func(err error) {
			var e types.Error
			if errors.As(err, &e) {
				if name := p.functionAt(e.Pos); strings.Contains(name, "_fault") {
					wrong[name] = true
					return
				}
			}
			other = err
		}
	}
	pkg, err := conf.Check(module+p.path, p.fset, p.files, p.info)
	if wrong != nil {
		return other
	}
	p.pkg = pkg
	return err
}

func (p *typedPackage) functionAt(at token.Pos) string {
	for _, f := range p.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Pos() <= at && at < fn.End() {
				return fn.Name.Name
			}
		}
	}
	return ""
}
