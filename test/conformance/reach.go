package conformance

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A test that cites a row and calls only what no program can reach holds the row for nobody. What
// programs reach is what the commands' mains reach, and the exported names of the packages that
// they may import as their way in. It is found by references: a function that one in reach names,
// calls or not, is in reach; so is a method that looks like one of an interface, for callers by
// an interface is not looked for.

const modulePath = "github.com/rddp-go/rddp"

// waysIn are the packages whose exported names are for programs; with /... those below too. Mains
// are ways in themselves.
var waysIn = []string{"sctp", "rdma", "rawio/...", "metrics"}

// callGraph knows the functions of the module.
type callGraph struct {
	fset  *token.FileSet
	info  types.Info
	pkgs  map[string]*types.Package
	files map[string][]*ast.File // by import path, tests aside
	std   types.Importer
	in    map[string]bool // functions in reach, by name (nameOf)
	tells map[string]bool // functions that only tell something: one return statement, without a call
	prod  map[string]bool // packages with a function in reach
	iface map[string]bool // methods of interfaces, by shape
}

// listed is a package as go list tells it.
type listed struct{ path, name, dir, export, files string }

// goList asks for the packages of the module and what they are made of.
func goList(root string) (list []listed, err error) {
	c := exec.Command("go", "list", "-test", "-deps", "-export", "-f",
		"{{.ImportPath}}\t{{.Name}}\t{{.Dir}}\t{{.Export}}\t{{join .GoFiles \" \"}}", "./...", "./cmd/...",
		"./metrics/...")
	c.Dir = root
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	var out, wrong bytes.Buffer
	c.Stdout, c.Stderr = &out, &wrong
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, &wrong)
	}
	for line := range strings.Lines(out.String()) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) == 5 && !strings.Contains(f[0], " [") && !strings.HasSuffix(f[0], ".test") { // tests are read apart
			list = append(list, listed{f[0], f[1], f[2], f[3], f[4]})
		}
	}
	return list, nil
}

func isOurs(path string) bool { return path == modulePath || strings.HasPrefix(path, modulePath+"/") }

// newReach reads the module and finds what is in reach.
func newReach(root string) (*callGraph, error) {
	list, err := goList(root)
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	for _, p := range list {
		exports[p.path] = p.export
	}
	r := &callGraph{fset: token.NewFileSet(), pkgs: make(map[string]*types.Package),
		files: make(map[string][]*ast.File),
		in:    make(map[string]bool), tells: make(map[string]bool), prod: make(map[string]bool),
		iface: make(map[string]bool)}
	r.info = types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
		Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	r.std = importer.ForCompiler(r.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	for _, p := range list { // what a package imports comes before it
		if !isOurs(p.path) {
			continue
		}
		for name := range strings.FieldsSeq(p.files) {
			f, err := parser.ParseFile(r.fset, filepath.Join(p.dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			r.files[p.path] = append(r.files[p.path], f)
		}
		if r.pkgs[p.path], err = (&types.Config{Importer: r}).Check(p.path, r.fset, r.files[p.path], &r.info); err !=
			nil {
			return nil, err
		}
	}
	r.findReachable()
	return r, nil
}

// Import gives the module's packages from their sources and the others from what the compiler has
// made of them.
func (r *callGraph) Import(path string) (*types.Package, error) {
	if p := r.pkgs[path]; p != nil {
		return p, nil
	}
	p, err := r.std.Import(path)
	if err == nil { // all interfaces that somebody may call by
		r.addInterfaces(p.Scope())
	}
	return p, err
}

func (r *callGraph) addInterfaces(s *types.Scope) {
	for _, name := range s.Names() {
		if t, ok := s.Lookup(name).(*types.TypeName); ok {
			if i, ok := t.Type().Underlying().(*types.Interface); ok {
				for m := range i.Methods() {
					r.iface[signatureShape(m)] = true
				}
			}
		}
	}
}

// signatureShape is what a method has in common with that of an interface which it implements.
func signatureShape(f *types.Func) string {
	var b strings.Builder
	b.WriteString(f.Name())
	for _, list := range []*types.Tuple{f.Signature().Params(), f.Signature().Results()} {
		b.WriteString(" (")
		for v := range list.Variables() {
			b.WriteString(v.Type().String() + " ")
		}
		b.WriteString(")")
	}
	return b.String()
}

// nameOf is the same for a function whether its package was read from source or from export data.
func nameOf(f *types.Func) string { return f.Origin().FullName() }

// findReachable follows the references from the ways in.
func (r *callGraph) findReachable() {
	body := make(map[string]*ast.FuncDecl)
	methods := make(map[string][]string)   // by shape
	initial := make(map[string][]ast.Node) // what a package does when it is imported
	var queue []string
	for path, files := range r.files {
		r.addInterfaces(r.pkgs[path].Scope())
		for _, f := range files {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					initial[path] = append(initial[path], d)
					continue
				}
				obj, _ := r.info.Defs[fn.Name].(*types.Func)
				if obj == nil {
					continue
				}
				name := nameOf(obj)
				if fn.Name.Name == "init" {
					initial[path] = append(initial[path], fn)
					continue
				}
				body[name], r.tells[name] = fn, onlyTells(fn)
				if fn.Recv != nil {
					methods[signatureShape(obj)] = append(methods[signatureShape(obj)], name)
				}
				if r.wayIn(path) && fn.Name.IsExported() || fn.Name.Name == "main" && f.Name.Name == "main" &&
					strings.HasPrefix(path, modulePath+"/cmd/") {
					queue = append(queue, name)
				}
			}
		}
	}
	seen := make(map[string]bool) // packages
	used := make(map[types.Object]bool)
	var visit func(n ast.Node)
	enter := func(path string) {
		if !seen[path] && isOurs(path) {
			seen[path] = true
			for _, n := range initial[path] {
				visit(n)
			}
		}
	}
	visit = func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			obj := r.info.Uses[id]
			if obj == nil || used[obj] || obj.Pkg() == nil {
				return true
			}
			used[obj] = true
			enter(obj.Pkg().Path())
			if f, ok := obj.(*types.Func); ok {
				queue = append(queue, nameOf(f))
			}
			return true
		})
	}
	for more := true; more; {
		for len(queue) > 0 {
			name := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			if fn := body[name]; fn != nil && !r.in[name] {
				path := r.info.Defs[fn.Name].Pkg().Path()
				r.prod[path] = true
				enter(path)
				visit(fn)
			}
			r.in[name] = true
		}
		more = false
		for m, all := range methods { // an interface may call them
			for _, name := range all {
				if r.iface[m] && !r.in[name] && seen[r.info.Defs[body[name].Name].Pkg().Path()] {
					queue, more = append(queue, name), true
				}
			}
		}
	}
}

// onlyTells reports whether a function is one return statement without a call, or makes text:
// whether a program asks for that, too, makes no difference to what a test holds.
func onlyTells(fn *ast.FuncDecl) bool {
	if fn.Recv != nil && fn.Name.Name == "String" {
		return true
	}
	if fn.Body == nil || len(fn.Body.List) != 1 {
		return false
	}
	tells := false
	ast.Inspect(fn.Body.List[0], func(n ast.Node) bool {
		switch n.(type) {
		case *ast.ReturnStmt:
			tells = true
		case *ast.CallExpr:
			tells = false
			return false
		}
		return true
	})
	return tells
}

func (r *callGraph) wayIn(path string) bool {
	rel := strings.TrimPrefix(path, modulePath+"/")
	for _, w := range waysIn {
		if under, all := strings.CutSuffix(w, "/..."); w == rel ||
			all && (rel == under || strings.HasPrefix(rel, under+"/")) {
			return true
		}
	}
	return false
}

// CitedOutOfReach returns what is wrong with citations whose tests call functions of the packages
// that programs are made of, but none that a program reaches. What counts is what the test itself
// calls; of one that only has helpers at work, what these call, in test files and packages that are
// only for tests.
func CitedOutOfReach(root string) error {
	r, err := newReach(root)
	if err != nil {
		return err
	}
	cites, err := Citations(root)
	if err != nil {
		return err
	}
	byDir := make(map[string][]Citation)
	for _, c := range cites {
		dir := filepath.Dir(c.Pos.Filename)
		byDir[dir] = append(byDir[dir], c)
	}
	var errs []error
	for dir, cites := range byDir {
		calls, err := r.testCalls(root, dir)
		if err != nil {
			return err
		}
		for _, c := range cites {
			if names := calls[c.Test]; len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool {
				return r.in[n]
			}) {
				errs = append(errs, fmt.Errorf("%v: %s cites %s, but no program reaches what it calls: %s", c.Pos,
					c.Test, c.ID, strings.Join(names, ", ")))
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// testCalls returns for each test of a folder what it calls.
func (r *callGraph) testCalls(root, dir string) (map[string][]string, error) {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, err
	}
	path := modulePath + "/" + filepath.ToSlash(rel)
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	inside, outside := slices.Clone(r.files[path]), []*ast.File(nil)
	for _, name := range names {
		f, err := parser.ParseFile(r.fset, name, nil, parser.SkipObjectResolution)
		switch {
		case err != nil:
			return nil, err
		case strings.HasSuffix(f.Name.Name, "_test"):
			outside = append(outside, f)
		default:
			inside = append(inside, f)
		}
	}
	info := types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
	quiet := func(error) {} // files for other systems are among them: what is known of the others suffices
	own, _ := (&types.Config{Importer: r, Error: quiet}).Check(path, r.fset, inside, &info)
	(&types.Config{Importer: importerWith{r, path, own}, Error: quiet}).Check(path+"_test", r.fset, outside, &info)
	bodies := make(map[types.Object]*ast.FuncDecl)
	for _, f := range append(inside, outside...) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				bodies[info.Defs[fn.Name]] = fn
			}
		}
	}
	calls := make(map[string][]string)
	for obj, fn := range bodies {
		if obj == nil || !strings.HasSuffix(r.fset.Position(fn.Pos()).Filename, "_test.go") {
			continue
		}
		var direct, through []string
		seen := make(map[*ast.FuncDecl]bool)
		var walk func(fn *ast.FuncDecl, to *[]string)
		walk = func(fn *ast.FuncDecl, to *[]string) {
			if seen[fn] {
				return
			}
			seen[fn] = true
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				f, ok := info.Uses[id].(*types.Func)
				if !ok || f.Pkg() == nil || !isOurs(strings.TrimSuffix(f.Pkg().Path(), "_test")) {
					return true
				}
				helper := bodies[f.Origin()]
				switch {
				case helper != nil && strings.HasSuffix(r.fset.Position(helper.Pos()).Filename, "_test.go"):
					walk(helper, &through)
				case r.tells[nameOf(f)]:
				case r.prod[f.Pkg().Path()]:
					*to = append(*to, nameOf(f))
				default: // a package for tests: what it is made of is in reach, or its own tests say otherwise
					through = append(through, nameOf(f))
					r.in[nameOf(f)] = true
				}
				return true
			})
		}
		walk(fn, &direct)
		if len(direct) == 0 {
			direct = through
		}
		slices.Sort(direct)
		calls[fn.Name.Name] = slices.Compact(direct)
	}
	return calls, nil
}

// importerWith gives a package with its own test files in place of the one without.
type importerWith struct {
	*callGraph
	path string
	own  *types.Package
}

func (i importerWith) Import(path string) (*types.Package, error) {
	if path == i.path {
		return i.own, nil
	}
	return i.callGraph.Import(path)
}
