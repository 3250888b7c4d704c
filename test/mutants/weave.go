package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// Most faults change one function. Such a function gets a second body for each fault, and jumps
// there when the environment names that fault: so all faults of a package are in one test binary,
// which is built once.

// switchVar is the variable of the number of the fault in use; switchEnv is where it comes from.
const (
	switchVar = "wovenFault"
	switchEnv = "WOVEN_FAULT"
)

// switchFile is the file of a package with woven faults that reads the number.
func switchFile(pkg string) string {
	return fmt.Sprintf(
		"package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar %s, _ = strconv.Atoi(os.Getenv(%q))\n",
		pkg, switchVar, switchEnv)
}

// errNotWoven is a fault that is not within the body of one function.
var errNotWoven = errors.New("not within one function")

// weaver is a source file that faults are woven into.
type weaver struct {
	text  string
	fset  *token.FileSet
	file  *ast.File
	edits []edit
	tail  strings.Builder // the second bodies
	named map[*ast.FuncDecl]bool
}

type edit struct {
	at, end int // octets of the text that are replaced
	by      string
}

func newWeaver(text string) (*weaver, error) {
	w := &weaver{text: text, fset: token.NewFileSet(), named: make(map[*ast.FuncDecl]bool)}
	var err error
	w.file, err = parser.ParseFile(w.fset, "", text, parser.SkipObjectResolution)
	return w, err
}

// weaveFault weaves a fault in under its number.
func (w *weaver) weaveFault(f *fault) error {
	wrong, err := f.applyTo(w.text)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", wrong, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if len(file.Decls) != len(w.file.Decls) {
		return errNotWoven
	}
	var was, is *ast.FuncDecl
	for i, d := range w.file.Decls {
		if w.textBetween(d.Pos(), d.End()) ==
			wrong[offsetIn(fset, file.Decls[i].Pos()):offsetIn(fset, file.Decls[i].End())] {
			continue
		}
		a, ok := d.(*ast.FuncDecl)
		b, too := file.Decls[i].(*ast.FuncDecl)
		if was != nil || !ok || !too || a.Body == nil || b.Body == nil {
			return errNotWoven
		}
		was, is = a, b
	}
	if was == nil || was.Recv == nil && slices.Contains([]string{"init", "main", "_"}, was.Name.Name) ||
		w.textBetween(was.Pos(), was.Body.Lbrace) != wrong[offsetIn(fset, is.Pos()):offsetIn(fset, is.Body.Lbrace)] {
		return errNotWoven
	}
	w.addSecondBody(was, f.number, wrong[offsetIn(fset, is.Pos()):offsetIn(fset, is.Name.Pos())],
		wrong[offsetIn(fset, is.Name.End()):offsetIn(fset, is.End())])
	return nil
}

// addSecondBody gives a function a second body, which is the text before and after its name, and
// the way there.
func (w *weaver) addSecondBody(f *ast.FuncDecl, number int, before, after string) {
	name := fmt.Sprintf("%s_fault%d", f.Name.Name, number)
	call := w.callText(f, name)
	if f.Type.Results != nil {
		call = "return " + call
	} else {
		call += "; return"
	}
	at := w.offsetOf(f.Body.Lbrace) + 1
	w.edits = append(w.edits, edit{at, at, fmt.Sprintf(" if %s == %d { %s };", switchVar, number, call)})
	w.tail.WriteString("\n" + before + name + after + "\n")
}

// callText returns a call of the function's other body. It gives names to the parameters that have
// none.
func (w *weaver) callText(f *ast.FuncDecl, name string) string {
	first := !w.named[f]
	w.named[f] = true
	n := 0
	names := func(list *ast.FieldList) (all []string) {
		for _, field := range list.List {
			if len(field.Names) == 0 {
				all = append(all, w.renameResults(first, field.Type.Pos(), field.Type.Pos(), &n))
			}
			for _, id := range field.Names {
				if id.Name == "_" {
					all = append(all, w.renameResults(first, id.Pos(), id.End(), &n))
				} else {
					all = append(all, id.Name)
				}
			}
			if _, ok := field.Type.(*ast.Ellipsis); ok {
				all[len(all)-1] += "..."
			}
		}
		return all
	}
	if f.Recv != nil {
		name = names(f.Recv)[0] + "." + name
	}
	if f.Type.TypeParams != nil {
		name += "[" + strings.Join(names(f.Type.TypeParams), ", ") + "]"
	}
	return name + "(" + strings.Join(names(f.Type.Params), ", ") + ")"
}

func (w *weaver) renameResults(edits bool, from, to token.Pos, n *int) string {
	*n++
	name := fmt.Sprintf("woven%d", *n)
	if edits {
		by := name
		if from == to {
			by += " "
		}
		w.edits = append(w.edits, edit{w.offsetOf(from), w.offsetOf(to), by})
	}
	return name
}

// wovenFile is the file with the faults that were added.
func (w *weaver) wovenFile() []byte {
	slices.SortStableFunc(w.edits, func(a, b edit) int { return a.at - b.at })
	var b bytes.Buffer
	at := 0
	for _, e := range w.edits {
		b.WriteString(w.text[at:e.at] + e.by)
		at = e.end
	}
	b.WriteString(w.text[at:] + w.tail.String())
	return b.Bytes()
}

func (w *weaver) textBetween(from, to token.Pos) string {
	return w.text[w.offsetOf(from):w.offsetOf(to)]
}
func (w *weaver) offsetOf(p token.Pos) int { return offsetIn(w.fset, p) }

func offsetIn(fset *token.FileSet, p token.Pos) int { return fset.Position(p).Offset }
