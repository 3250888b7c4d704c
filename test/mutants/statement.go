package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strings"
)

// countStatements counts what differs between two texts of a file: statements, or declarations
// outside of functions. A statement that holds others, such as an if, counts once for its head and
// for each that differs within.
func countStatements(was, is string) (int, error) {
	fset := token.NewFileSet()
	a, err := parser.ParseFile(fset, "", was, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	b, err := parser.ParseFile(fset, "", is, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	d := differ{fset}
	return d.diffDecls(a.Decls, b.Decls), nil
}

type differ struct{ fset *token.FileSet }

// nodeText is a node without what does not matter: comments, lengths of lines.
func (d differ) nodeText(n ast.Node) string {
	var b bytes.Buffer
	if format.Node(&b, d.fset, n) != nil {
		return "?"
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func (d differ) isSame(a, b ast.Node) bool { return d.nodeText(a) == d.nodeText(b) }

func (d differ) diffDecls(a, b []ast.Decl) int {
	return countUnlike(a, b, func(x, y ast.Decl) bool { return d.isSame(x, y) }, func(x, y ast.Decl) int {
		f, ok := x.(*ast.FuncDecl)
		g, too := y.(*ast.FuncDecl)
		if ok && too && f.Body != nil && g.Body != nil && d.isSame(f.Type, g.Type) && f.Name.Name == g.Name.Name {
			return d.diffStmts(f.Body.List, g.Body.List)
		}
		v, ok := x.(*ast.GenDecl)
		w, too := y.(*ast.GenDecl)
		if ok && too && v.Tok == w.Tok {
			return countUnlike(v.Specs, w.Specs, func(x, y ast.Spec) bool { return d.isSame(x, y) }, nil)
		}
		return 1
	})
}

func (d differ) diffStmts(a, b []ast.Stmt) int {
	return countUnlike(a, b, func(x, y ast.Stmt) bool { return d.isSame(x, y) }, d.diffStmt)
}

// countUnlike counts what differs between two lists that begin and end alike.
func countUnlike[T any](a, b []T, same func(x, y T) bool, within func(x, y T) int) int {
	for len(a) > 0 && len(b) > 0 && same(a[0], b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && same(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 1 && len(b) == 1 && within != nil {
		return within(a[0], b[0])
	}
	return max(len(a), len(b))
}

// diffStmt counts what differs between two statements that are not the same.
func (d differ) diffStmt(x, y ast.Stmt) int {
	p, q := d.innerBlocks(x), d.innerBlocks(y)
	if p == nil || len(p) != len(q) {
		return 1
	}
	inside := 0
	for i := range p {
		inside += d.diffStmts(p[i].List, q[i].List)
	}
	if d.headText(x) != d.headText(y) {
		inside++
	}
	return inside
}

// innerBlocks are the lists of statements directly within a statement.
func (d differ) innerBlocks(s ast.Stmt) (list []*ast.BlockStmt) {
	switch s := s.(type) {
	case *ast.BlockStmt:
		return []*ast.BlockStmt{s}
	case *ast.IfStmt:
		list = append(list, s.Body)
		if s.Else != nil {
			list = append(list, d.innerBlocks(s.Else)...)
		}
	case *ast.ForStmt:
		return []*ast.BlockStmt{s.Body}
	case *ast.RangeStmt:
		return []*ast.BlockStmt{s.Body}
	case *ast.LabeledStmt:
		return d.innerBlocks(s.Stmt)
	case *ast.SwitchStmt:
		return d.clauseBlocks(s.Body)
	case *ast.TypeSwitchStmt:
		return d.clauseBlocks(s.Body)
	}
	return list
}

func (d differ) clauseBlocks(b *ast.BlockStmt) (list []*ast.BlockStmt) {
	for _, c := range b.List {
		if c, ok := c.(*ast.CaseClause); ok {
			list = append(list, &ast.BlockStmt{List: c.Body})
		}
	}
	return list
}

// headText is a statement without the lists within it.
func (d differ) headText(s ast.Stmt) string {
	none := &ast.BlockStmt{}
	switch s := s.(type) {
	case *ast.BlockStmt:
		return "{}"
	case *ast.IfStmt:
		c := *s
		c.Body, c.Else = none, nil
		if s.Else != nil {
			return d.nodeText(&c) + " else " + d.headText(s.Else)
		}
		return d.nodeText(&c)
	case *ast.ForStmt:
		c := *s
		c.Body = none
		return d.nodeText(&c)
	case *ast.RangeStmt:
		c := *s
		c.Body = none
		return d.nodeText(&c)
	case *ast.LabeledStmt:
		return s.Label.Name + ": " + d.headText(s.Stmt)
	case *ast.SwitchStmt:
		c := *s
		c.Body = none
		return d.nodeText(&c) + d.caseTexts(s.Body)
	case *ast.TypeSwitchStmt:
		c := *s
		c.Body = none
		return d.nodeText(&c) + d.caseTexts(s.Body)
	}
	return d.nodeText(s)
}

func (d differ) caseTexts(b *ast.BlockStmt) (text string) {
	for _, c := range b.List {
		if c, ok := c.(*ast.CaseClause); ok {
			for _, e := range c.List {
				text += " " + d.nodeText(e)
			}
			text += ";"
		}
	}
	return text
}
