package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
)

// aliased lists the packages whose types other packages define. The comment of such an alias shows
// what go doc cannot: the fields and the methods.
var aliased = []string{"rdma", "sctp"}

// shapes are the structs of a package, as lines of code: the declaration as a program sees it, and
// the methods.
func shapes(t *testing.T, pkg string) map[string][]string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range sourceFiles(t, pkg) {
		files = append(files, must.Get(parser.ParseFile(fset, path, nil, parser.ParseComments))(t))
	}
	list := make(map[string][]string)
	for _, typ := range must.Get(doc.NewFromFiles(fset, files, module+pkg))(t).Types {
		st, ok := typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
		if !ok {
			continue
		}
		var out bytes.Buffer
		fmt.Fprintf(&out, "package p\ntype %s struct {\n", typ.Name)
		for _, f := range st.Fields.List {
			writeField(t, &out, fset, f)
		}
		out.WriteString("}\n\n")
		for _, m := range typ.Methods {
			m.Decl.Doc, m.Decl.Body = nil, nil
			must.OK(t, printer.Fprint(&out, fset, m.Decl))
			out.WriteByte('\n')
		}
		code := strings.TrimPrefix(string(must.Get(format.Source(out.Bytes()))(t)), "package p\n")
		list[typ.Name] = strings.Split(strings.TrimSpace(code), "\n")
	}
	return list
}

// writeField writes a field with its comments, a long one above it.
func writeField(t *testing.T, out *bytes.Buffer, fset *token.FileSet, f *ast.Field) {
	t.Helper()
	var names []string
	for _, id := range f.Names {
		names = append(names, id.Name)
	}
	var typ bytes.Buffer
	must.OK(t, printer.Fprint(&typ, fset, f.Type))
	above, beside := commentLines(f.Doc), strings.Join(commentLines(f.Comment), " ")
	if len(beside)+typ.Len() > 64 {
		above, beside = append(above, wrapComment(beside)...), ""
	}
	for _, l := range above {
		fmt.Fprintln(out, l)
	}
	fmt.Fprintf(out, "%s %s %s\n", strings.Join(names, ", "), typ.String(), beside)
}

func commentLines(g *ast.CommentGroup) (lines []string) {
	if g == nil {
		return nil
	}
	for _, c := range g.List {
		lines = append(lines, c.Text)
	}
	return lines
}

// wrapComment is a comment in lines that fit behind another comment's marks.
func wrapComment(text string) (lines []string) {
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

// An alias is one of a struct of another package of this module.
type alias struct {
	path, name string
	declLine   int      // of its declaration
	want, got  []string // comment lines that show the struct, and those that are there
}

// findAliases returns the aliases of structs in a package.
func findAliases(t *testing.T, pkg string) (list []alias) {
	t.Helper()
	parsed := make(map[string]map[string][]string)
	for _, path := range sourceFiles(t, pkg) {
		fset := token.NewFileSet()
		f := must.Get(parser.ParseFile(fset, path, nil, parser.ParseComments))(t)
		imports := make(map[string]string)
		for _, i := range f.Imports {
			if rest, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ok {
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
				if parsed[from] == nil {
					parsed[from] = shapes(t, from)
				}
				shape := parsed[from][sel.Sel.Name]
				if shape == nil {
					continue
				}
				comment, at := ts.Doc, ts.Pos()
				if !g.Lparen.IsValid() {
					comment, at = g.Doc, g.Pos()
				}
				a := alias{path: path, name: ts.Name.Name, declLine: fset.Position(at).Line, got: commentLines(comment)}
				for _, l := range shape {
					a.want = append(a.want, strings.TrimRight("//\t"+l, "\t "))
				}
				if i := slices.IndexFunc(a.got, func(l string) bool { return strings.HasPrefix(l, "//\ttype ") }); i >= 0 {
					a.got = a.got[i:]
				} else {
					a.got = nil
				}
				list = append(list, a)
			}
		}
	}
	return list
}

// writeAliases brings the comments of the aliases up to date, the last of a file first. It formats
// the files behind all that, as that may move lines.
func writeAliases(t *testing.T, list []alias) {
	t.Helper()
	files := make(map[string][]string)
	for _, a := range slices.Backward(list) {
		if files[a.path] == nil {
			files[a.path] = strings.Split(string(must.Get(os.ReadFile(a.path))(t)), "\n")
		}
		text := a.want
		if len(a.got) == 0 {
			text = append([]string{"//"}, text...)
		}
		decl := a.declLine - 1
		files[a.path] = slices.Replace(files[a.path], decl-len(a.got), decl, text...)
	}
	for path, lines := range files {
		must.OK(t, os.WriteFile(path, must.Get(format.Source([]byte(strings.Join(lines, "\n"))))(t), 0o644))
	}
}
