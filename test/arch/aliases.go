package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
)

// aliased lists the packages whose types other packages define. The comment of such an alias shows
// what go doc cannot: the fields and the methods.
var aliased = []string{"rdma", "sctp"}

// A source is the files of one package, without tests.
type source struct {
	fset  *token.FileSet
	files map[string]*ast.File
}

func parsePackage(t testing.TB, dir string) source {
	t.Helper()
	s := source{token.NewFileSet(), make(map[string]*ast.File)}
	for _, path := range must.Get(filepath.Glob(filepath.Join(root, dir, "*.go")))(t) {
		if !strings.HasSuffix(path, "_test.go") {
			s.files[path] = must.Get(parser.ParseFile(s.fset, path, nil, parser.ParseComments))(t)
		}
	}
	return s
}

// typeSpec returns the declaration of an exported type, and its comment.
func (s source) typeSpec(name string) (*ast.TypeSpec, *ast.CommentGroup) {
	for _, f := range s.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				if ts := spec.(*ast.TypeSpec); ts.Name.Name == name {
					if ts.Doc == nil {
						return ts, g.Doc
					}
					return ts, ts.Doc
				}
			}
		}
	}
	return nil, nil
}

// shape is the declaration of a struct as a program sees it, and its methods, as lines of code.
func (s source) shape(t testing.TB, name string) []string {
	t.Helper()
	ts, _ := s.typeSpec(name)
	if ts == nil {
		return nil
	}
	st, ok := ts.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "package p\ntype %s struct {\n", name)
	for _, f := range st.Fields.List {
		names := slices.DeleteFunc(slices.Clone(f.Names), func(id *ast.Ident) bool { return !id.IsExported() })
		if len(names) == 0 && len(f.Names) > 0 {
			continue
		}
		var typ bytes.Buffer
		must.OK(t, printer.Fprint(&typ, s.fset, f.Type))
		above, beside := comment(f.Doc), comment(f.Comment)
		if len(beside) > 0 && len(beside[0])+typ.Len() > 64 {
			above, beside = append(above, wrapped(beside[0])...), nil
		}
		for _, l := range above {
			fmt.Fprintf(&out, "%s\n", l)
		}
		for i, id := range names {
			fmt.Fprintf(&out, "%s%s", [2]string{", ", ""}[b2i(i == 0)], id.Name)
		}
		out.WriteByte(' ')
		out.Write(typ.Bytes())
		for _, l := range beside {
			fmt.Fprintf(&out, " %s", l)
		}
		out.WriteByte('\n')
	}
	out.WriteString("}\n")
	methods := s.methods(t, name)
	if len(methods) > 0 {
		fmt.Fprintf(&out, "\n%s\n", strings.Join(methods, "\n"))
	}
	code := must.Get(format.Source(out.Bytes()))(t)
	return strings.Split(strings.TrimSpace(strings.TrimPrefix(string(code), "package p\n")), "\n")
}

// methods lists the exported methods of a type.
func (s source) methods(t testing.TB, name string) (list []string) {
	t.Helper()
	for _, f := range s.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !fn.Name.IsExported() {
				continue
			}
			of := fn.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if id, ok := of.(*ast.Ident); !ok || id.Name != name {
				continue
			}
			var b bytes.Buffer
			must.OK(t, printer.Fprint(&b, s.fset, &ast.FuncDecl{Recv: fn.Recv, Name: fn.Name, Type: fn.Type}))
			list = append(list, b.String())
		}
	}
	slices.Sort(list)
	return list
}

func comment(g *ast.CommentGroup) (lines []string) {
	if g == nil {
		return nil
	}
	for _, c := range g.List {
		lines = append(lines, c.Text)
	}
	return lines
}

// wrapped is a comment in lines that fit behind another comment's marks.
func wrapped(text string) (lines []string) {
	line := "//"
	for _, w := range strings.Fields(strings.TrimPrefix(text, "//")) {
		if len(line)+1+len(w) > 88 {
			lines = append(lines, line)
			line = "//"
		}
		line += " " + w
	}
	return append(lines, line)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// An alias is one of a type of another package of this module.
type alias struct {
	path  string // of its file
	first int    // line of its comment where the shape begins, or of its declaration
	last  int    // line of its declaration, or of its comment's end
	name  string
	want  []string // comment lines that show the type
	got   []string
}

// findAliases returns the aliases of structs in a package, in the order of their lines.
func findAliases(t testing.TB, dir string) (list []alias) {
	t.Helper()
	s := parsePackage(t, dir)
	for path, f := range s.files {
		imports := make(map[string]string)
		for _, i := range f.Imports {
			p := strings.Trim(i.Path.Value, `"`)
			if rest, ok := strings.CutPrefix(p, "github.com/rddp-go/rddp/"); ok {
				imports[rest[strings.LastIndex(rest, "/")+1:]] = rest
			}
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				ts := spec.(*ast.TypeSpec)
				sel, ok := ts.Type.(*ast.SelectorExpr)
				if !ok || !ts.Assign.IsValid() || !ts.Name.IsExported() {
					continue
				}
				from := imports[sel.X.(*ast.Ident).Name]
				if from == "" {
					continue
				}
				shape := parsePackage(t, from).shape(t, sel.Sel.Name)
				if shape == nil {
					continue
				}
				a := alias{path: path, name: ts.Name.Name}
				for _, l := range shape {
					a.want = append(a.want, strings.TrimRight("//\t"+l, "\t "))
				}
				doc := ts.Doc
				if doc == nil {
					doc = g.Doc
				}
				a.first = s.fset.Position(ts.Pos()).Line
				if g.Lparen == token.NoPos {
					a.first = s.fset.Position(g.Pos()).Line
				}
				a.last = a.first
				if doc != nil {
					for i, c := range doc.List {
						if strings.HasPrefix(c.Text, "//\ttype ") {
							a.first = s.fset.Position(c.Pos()).Line
							a.got = comment(&ast.CommentGroup{List: doc.List[i:]})
							break
						}
					}
				}
				list = append(list, a)
			}
		}
	}
	slices.SortFunc(list, func(a, b alias) int {
		return strings.Compare(fmt.Sprintf("%s:%9d", a.path, a.first), fmt.Sprintf("%s:%9d", b.path, b.first))
	})
	return list
}

// writeAliases brings the comments of a package's aliases up to date.
func writeAliases(t testing.TB, list []alias) {
	t.Helper()
	for _, a := range slices.Backward(list) {
		lines := strings.Split(string(must.Get(os.ReadFile(a.path))(t)), "\n")
		at, end := a.first-1, a.last-1
		indent := lines[end][:len(lines[end])-len(strings.TrimLeft(lines[end], "\t"))]
		var text []string
		if len(a.got) == 0 {
			text = append(text, indent+"//")
		}
		for _, l := range a.want {
			text = append(text, indent+l)
		}
		lines = slices.Replace(lines, at, end, text...)
		must.OK(t, os.WriteFile(a.path, must.Get(format.Source([]byte(strings.Join(lines, "\n"))))(t), 0o644))
	}
}
