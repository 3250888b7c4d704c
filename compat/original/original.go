// Package original compares a module in compat with the module that it replaces. The tests of these
// modules use it.
package original

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Compare compares the package in the current directory with a module at a version. It reports each
// exported name that is missing or differs. It compares types, values of constants, fields of
// structures in their order, and methods of types. systems are GOOS/GOARCH.
func Compare(t *testing.T, module, version string, systems ...string) {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", module+"@"+version).Output()
	if err != nil {
		t.Fatalf("go mod download %s@%s: %v", module, version, err)
	}
	var at struct{ Dir string }
	if err := json.Unmarshal(out, &at); err != nil {
		t.Fatal(err)
	}
	anywhere := make(map[string]bool)
	for _, system := range systems {
		want, got := load(t, at.Dir, module, system), load(t, ".", module, system)
		if len(want) < 100 {
			t.Errorf("%s: the original has only %d names", system, len(want))
		}
		for name, w := range want {
			anywhere[name] = true
			if g := got[name]; g != w {
				t.Errorf("%s: %s is\n\t%s, in the original\n\t%s", system, name, g, w)
			}
		}
		for name := range got { // we may have on others what it has on one
			if !anywhere[name] {
				t.Errorf("%s: the original has no %s", system, name)
			}
		}
	}
}

var (
	// std imports the standard library.
	std     = importer.ForCompiler(token.NewFileSet(), "source", nil)
	imports = others{make(map[string]*types.Package)}
)

// hasUnexported says whether a function has a parameter that other packages cannot name.
func hasUnexported(f *types.Signature) bool {
	for v := range f.Params().Variables() {
		t := v.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		if n, ok := t.(*types.Named); ok && !n.Obj().Exported() && n.Obj().Pkg() != nil {
			return true
		}
	}
	return false
}

// load lists what programs see of a package on a system, name by name.
func load(t *testing.T, dir, path, system string) map[string]string {
	t.Helper()
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, _ = strings.Cut(system, "/")
	ctx.CgoEnabled = false
	pkg, err := imports.check(&ctx, dir, path)
	if err != nil {
		t.Fatal(err)
	}
	return face(pkg)
}

// others imports the standard library, and of other modules what the package in the current
// directory requires itself: signatures have no names but those.
type others struct{ imported map[string]*types.Package }

func (o others) Import(path string) (*types.Package, error) {
	if !strings.Contains(path, ".") {
		return std.Import(path)
	}
	if p := o.imported[path]; p != nil {
		return p, nil
	}
	var p *types.Package
	if dir, err := exec.Command("go", "list", "-mod=readonly", "-find", "-f", "{{.Dir}}", path).Output(); err == nil {
		p, _ = o.check(&build.Default, strings.TrimSpace(string(dir)), path)
	}
	if p == nil {
		p = types.NewPackage(path, filepath.Base(path))
		p.MarkComplete()
	}
	o.imported[path] = p
	return p, nil
}

// check returns the package in a folder as a system has it, without the bodies of its functions.
func (o others) check(ctx *build.Context, dir, path string) (*types.Package, error) {
	b, err := ctx.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range b.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: o, IgnoreFuncBodies: true, Sizes: types.SizesFor("gc", ctx.GOARCH),
		Error: func(error) {}} // what is missing shows in the comparison; names of other modules are missing
	p, _ := conf.Check(path, fset, files, nil)
	return p, nil
}

func face(p *types.Package) map[string]string {
	names := make(map[string]string)
	q := func(o *types.Package) string { return o.Path() }
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			names[name] = fmt.Sprintf("const %s = %s", types.TypeString(o.Type(), q), o.Val().ExactString())
		case *types.TypeName:
			names[name] = fmt.Sprintf("type alias %v, %s", o.IsAlias(), underlying(o.Type(), q))
			set := types.NewMethodSet(types.NewPointer(o.Type()))
			if types.IsInterface(o.Type()) {
				set = types.NewMethodSet(o.Type())
			}
			for m := range set.Methods() {
				if m.Obj().Exported() {
					names[name+"."+m.Obj().Name()] = signature(m.Type(), q)
				}
			}
		case *types.Func:
			names[name] = signature(o.Type(), q)
		default:
			names[name] = fmt.Sprintf("%T %s", o, types.TypeString(o.Type(), q))
		}
	}
	return names
}

// signature returns the signature of a function, without the names of its parameters.
func signature(t types.Type, q types.Qualifier) string {
	s := t.(*types.Signature)
	list := func(tuple *types.Tuple) string {
		var all []string
		for v := range tuple.Variables() {
			all = append(all, types.TypeString(v.Type(), q))
		}
		return "(" + strings.Join(all, ", ") + ")"
	}
	return fmt.Sprintf("func%s %s, variadic %v", list(s.Params()), list(s.Results()), s.Variadic())
}

// underlying returns the type behind a name. Of a structure it returns the exported fields, and
// what is between them in memory. Of an interface it returns whether other packages can implement
// it: the methods that they see have lines of their own.
func underlying(t types.Type, q types.Qualifier) string {
	if i, ok := t.Underlying().(*types.Interface); ok && i.NumMethods() > 0 {
		for m := range i.Methods() {
			if !m.Exported() {
				return "interface of one package"
			}
		}
		return "interface"
	}
	if f, ok := t.Underlying().(*types.Signature); ok && hasUnexported(f) {
		return "function with a parameter of one package"
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return types.TypeString(t.Underlying(), q)
	}
	var fields []string
	exported := false
	for f := range s.Fields() {
		exported = exported || f.Exported()
	}
	for f := range s.Fields() {
		if f.Exported() || exported && f.Name() == "_" {
			fields = append(fields, f.Name()+" "+types.TypeString(f.Type(), q))
		}
	}
	return "struct {" + strings.Join(fields, "; ") + "}"
}
