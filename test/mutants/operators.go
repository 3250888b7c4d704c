package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// maker finds the mutants of one file.
type maker struct {
	*typed
	scope    *scope
	file     *ast.File
	name     string // of the file
	text     string
	function *ast.FuncDecl
	stack    []ast.Node // from the function to the node at hand
	list     []*mutant
}

// mutants returns all mutants of a file, in the order of the text.
func (p *typed) mutants(s *scope, i int) []*mutant {
	m := &maker{typed: p, scope: s, file: p.files[i], name: p.names[i], text: p.texts[i]}
	for _, d := range m.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || slices.Contains([]string{"init", "main", "_", "String", "GoString", "Error"},
			f.Name.Name) {
			continue
		}
		m.function, m.stack = f, nil
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if n == nil {
				m.stack = m.stack[:len(m.stack)-1]
				return true
			}
			m.stack = append(m.stack, n)
			m.node(n)
			return true
		})
	}
	return m.list
}

// emit adds a mutant: the text of from to end becomes by.
func (m *maker) emit(operator string, from, end token.Pos, by string) {
	in, race := m.scope.has(operator)
	if !in || m.capacity() {
		return
	}
	x := &mutant{pkg: m.path, file: m.name, function: functionName(m.function), operator: operator, race: race,
		at: m.offset(from), end: m.offset(end), by: by, probe: m.offset(m.statement().Pos())}
	if x.setLines(m.text); x.old != x.new {
		m.list = append(m.list, x)
	}
}

// capacity reports whether the node at hand is of the capacity of a slice that is made.
func (m *maker) capacity() bool {
	for i := 1; i < len(m.stack); i++ {
		c, ok := m.stack[i-1].(*ast.CallExpr)
		if !ok || len(c.Args) != 3 || c.Args[2] != m.stack[i] {
			continue
		}
		if id, ok := c.Fun.(*ast.Ident); ok && id.Name == "make" {
			return true
		}
	}
	return false
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.Ident:
			return u.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// parent is n nodes above the node at hand.
func (m *maker) parent(n int) ast.Node {
	if n >= len(m.stack) {
		return nil
	}
	return m.stack[len(m.stack)-1-n]
}

// inList reports whether the node at hand is a statement of a block.
func (m *maker) inList() bool {
	switch m.parent(1).(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		s, ok := m.parent(0).(ast.Stmt)
		if c, comm := m.parent(1).(*ast.CommClause); comm && ast.Stmt(c.Comm) == s {
			return false
		}
		return ok
	}
	return false
}

// statement is the innermost statement of a block around the node at hand.
func (m *maker) statement() ast.Node {
	was := m.stack
	defer func() { m.stack = was }()
	for ; len(m.stack) > 1; m.stack = m.stack[:len(m.stack)-1] {
		switch m.parent(0).(type) {
		case *ast.CaseClause, *ast.CommClause: // clauses are listed too
		default:
			if m.inList() {
				return m.parent(0)
			}
		}
	}
	return m.function.Body.List[0]
}

func (m *maker) src(n ast.Node) string { return m.text[m.offset(n.Pos()):m.offset(n.End())] }

func (m *maker) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		m.negate(n.Cond)
	case *ast.ForStmt:
		m.negate(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					m.negate(e)
				}
			}
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB && m.value(n) == nil {
			m.emit(map[token.Token]string{token.NOT: "negate", token.SUB: "arith"}[n.Op], n.Pos(), n.End(), m.src(n.X))
		}
	case *ast.BinaryExpr:
		m.binary(n)
	case *ast.CallExpr:
		m.call(n)
	case *ast.BasicLit:
		m.literal(n)
	case *ast.Ident:
		m.ident(n)
	case *ast.SelectorExpr:
		m.selector(n)
	case *ast.ReturnStmt:
		m.returns(n)
	case ast.Stmt:
		m.drop(n)
	}
}

func (m *maker) negate(e ast.Expr) {
	switch b := e.(type) {
	case nil:
		return
	case *ast.UnaryExpr:
		return // loses its !
	case *ast.BinaryExpr:
		if b.Op == token.EQL || b.Op == token.NEQ {
			return
		}
	}
	m.emit("negate", e.Pos(), e.End(), "!("+m.src(e)+")")
}

var (
	otherComparison = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
		token.EQL: "!=", token.NEQ: "=="}
	otherArithmetic = map[token.Token]string{token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
		token.REM: "*",
		token.SHL: ">>", token.SHR: "<<", token.AND: "|", token.OR: "&", token.AND_NOT: "&", token.XOR: "|",
		token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.QUO_ASSIGN: "*=",
		token.SHL_ASSIGN: ">>=",
		token.SHR_ASSIGN: "<<=", token.AND_ASSIGN: "|=", token.OR_ASSIGN: "&=", token.AND_NOT_ASSIGN: "&=",
		token.INC: "--",
		token.DEC: "++"}
)

func (m *maker) binary(n *ast.BinaryExpr) {
	op := n.OpPos + token.Pos(len(n.Op.String()))
	switch by, arith := otherArithmetic[n.Op]; {
	case otherComparison[n.Op] != "":
		m.emit("compare", n.OpPos, op, otherComparison[n.Op])
	case n.Op == token.LAND || n.Op == token.LOR:
		m.emit("logic", n.OpPos, op, map[token.Token]string{token.LAND: "||", token.LOR: "&&"}[n.Op])
		m.emit("clause", n.Pos(), n.End(), m.src(n.X))
		m.emit("clause", n.Pos(), n.End(), m.src(n.Y))
	case arith && m.numeric(n):
		m.emit("arith", n.OpPos, op, by)
	}
}

func (m *maker) numeric(e ast.Expr) bool {
	b, ok := m.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0
}

func (m *maker) value(e ast.Expr) any {
	if v := m.info.Types[e].Value; v != nil {
		return v
	}
	return nil
}

func (m *maker) call(n *ast.CallExpr) {
	if s, ok := n.Fun.(*ast.SelectorExpr); ok {
		m.serial(n, s)
		m.atomic(n, s)
	}
	if id, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"min", "max", "append"}, id.Name) ||
		n.Ellipsis != 0 {
		return
	}
	for i := 1; i < len(n.Args); i++ {
		a, b := n.Args[i-1], n.Args[i]
		t, u := m.info.TypeOf(a), m.info.TypeOf(b)
		if t != nil && u != nil && types.Identical(t, u) && m.src(a) != m.src(b) {
			m.emit("swap", a.Pos(), b.End(), m.src(b)+m.text[m.offset(a.End()):m.offset(b.Pos())]+m.src(a))
		}
	}
}

// serial turns comparisons of serial numbers round, or lets them take in their limit.
func (m *maker) serial(n *ast.CallExpr, s *ast.SelectorExpr) {
	other, ok := map[string]string{"Less": "LessEq", "LessEq": "Less"}[s.Sel.Name]
	if !ok || len(n.Args) != 1 || m.info.Selections[s] == nil {
		return
	}
	turned := "(" + m.src(n.Args[0]) + ")." + s.Sel.Name + "(" + m.src(s.X) + ")"
	if id, ok := n.Args[0].(*ast.Ident); ok {
		turned = id.Name + "." + s.Sel.Name + "(" + m.src(s.X) + ")"
	}
	if o, _, _ := types.LookupFieldOrMethod(m.info.TypeOf(s.X), true, m.pkg, other); o != nil {
		m.emit("serial", s.Sel.Pos(), s.Sel.End(), other)
	} else {
		m.emit("serial", n.Pos(), n.End(), "!"+turned)
	}
	m.emit("serial", n.Pos(), n.End(), turned)
}

func (m *maker) literal(n *ast.BasicLit) {
	switch p := m.parent(1).(type) {
	case *ast.ArrayType:
		return
	case *ast.KeyValueExpr:
		if p.Key == ast.Expr(n) {
			return
		}
	}
	switch {
	case n.Kind == token.FLOAT:
		m.emit("constant", n.Pos(), n.End(), "(2*"+n.Value+")")
	case n.Kind == token.INT && n.Value == "0":
		m.emit("constant", n.Pos(), n.End(), "1")
	case n.Kind == token.INT:
		m.emit("constant", n.Pos(), n.End(), "0")
		if n.Value == "1" {
			m.emit("constant", n.Pos(), n.End(), "2")
		} else {
			m.emit("constant", n.Pos(), n.End(), "("+n.Value+"+1)")
		}
	}
}

// ident replaces a variable or a constant by another.
func (m *maker) ident(n *ast.Ident) {
	if s, ok := m.parent(1).(*ast.SelectorExpr); ok && s.Sel == n {
		return
	}
	if kv, ok := m.parent(1).(*ast.KeyValueExpr); ok && kv.Key == ast.Expr(n) {
		return
	}
	switch o := m.info.Uses[n].(type) {
	case *types.Const:
		if o.Name() == "true" || o.Name() == "false" {
			if o.Parent() == types.Universe {
				operator := "constant"
				if _, ok := m.parent(1).(*ast.ReturnStmt); ok {
					operator = "return"
				}
				m.emit(operator, n.Pos(), n.End(), map[string]string{"true": "false", "false": "true"}[o.Name()])
			}
			return
		}
		m.constant(n, o, "")
	case *types.Var:
		if o.IsField() || o.Parent() == m.pkg.Scope() || strings.HasPrefix(o.Name(), "err") {
			return
		}
		if by := m.otherVariable(n, o); by != "" {
			m.emit("wrong", n.Pos(), n.End(), by)
		}
	}
}

// otherVariable is the variable of the same type that was declared last before the use of another.
func (m *maker) otherVariable(n *ast.Ident, o *types.Var) (name string) {
	var at token.Pos
	for s := m.pkg.Scope().Innermost(n.Pos()); s != nil && s != m.pkg.Scope(); s = s.Parent() {
		for _, other := range s.Names() {
			v, ok := s.Lookup(other).(*types.Var)
			if !ok || other == o.Name() || other == "_" || v.Pos() >= m.statement().Pos() || v.Pos() <= at ||
				!types.Identical(v.Type(), o.Type()) {
				continue
			}
			if _, seen := s.Innermost(n.Pos()).LookupParent(other, n.Pos()); seen != v {
				continue
			}
			name, at = other, v.Pos()
		}
	}
	return name
}

// constant makes a number one more, and a code, state or kind another one.
func (m *maker) constant(n ast.Expr, o *types.Const, prefix string) {
	b, ok := o.Type().Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsNumeric == 0 || o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), module) {
		return
	}
	if _, array := m.parent(1).(*ast.ArrayType); array {
		return
	}
	t, named := o.Type().(*types.Named)
	switch {
	case named && t.Obj().Pkg() == o.Pkg():
		if by := nextConstant(o, m.pkg); by != "" {
			m.emit("wrong", n.Pos(), n.End(), prefix+by)
		}
	case named: // a time.Duration, mostly
		m.emit("constant", n.Pos(), n.End(), "(2*"+m.src(n)+")")
	default:
		m.emit("constant", n.Pos(), n.End(), "("+m.src(n)+"+1)")
	}
}

// nextConstant is the constant of the same type that is declared next after one, or else the first.
func nextConstant(o *types.Const, from *types.Package) string {
	var first, next types.Object
	for _, name := range o.Pkg().Scope().Names() {
		c, ok := o.Pkg().Scope().Lookup(name).(*types.Const)
		if !ok || c == o || !types.Identical(c.Type(), o.Type()) || o.Pkg() != from && !c.Exported() ||
			c.Val().ExactString() == o.Val().ExactString() {
			continue
		}
		if first == nil || less(c, first.(*types.Const)) {
			first = c
		}
		if less(o, c) && (next == nil || less(c, next.(*types.Const))) {
			next = c
		}
	}
	switch {
	case next != nil:
		return next.Name()
	case first != nil:
		return first.Name()
	}
	return ""
}

// less puts constants in the order of their values.
func less(a, b *types.Const) bool {
	if len(a.Val().ExactString()) != len(b.Val().ExactString()) {
		return len(a.Val().ExactString()) < len(b.Val().ExactString())
	}
	return a.Val().ExactString()+a.Name() < b.Val().ExactString()+b.Name()
}

// selector replaces a field by the next one of its struct that has the same type.
func (m *maker) selector(n *ast.SelectorExpr) {
	if id, ok := n.X.(*ast.Ident); ok {
		if _, ok := m.info.Uses[id].(*types.PkgName); ok {
			if c, ok := m.info.Uses[n.Sel].(*types.Const); ok {
				m.constant(n, c, id.Name+".")
			}
			return
		}
	}
	s := m.info.Selections[n]
	if s == nil || s.Kind() != types.FieldVal || synchronises(s.Obj().Type()) {
		return
	}
	t := s.Recv()
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	u, ok := t.Underlying().(*types.Struct)
	if !ok || len(s.Index()) != 1 {
		return
	}
	for i := 1; i < u.NumFields(); i++ {
		f := u.Field((s.Index()[0] + i) % u.NumFields())
		if f.Name() != "_" && !f.Embedded() && types.Identical(f.Type(), s.Obj().Type()) &&
			(f.Exported() || f.Pkg() == m.pkg) {
			m.emit("wrong", n.Sel.Pos(), n.Sel.End(), f.Name())
			return
		}
	}
}

func (m *maker) returns(n *ast.ReturnStmt) {
	if len(n.Results) > 0 {
		last := n.Results[len(n.Results)-1]
		t := m.info.TypeOf(last)
		if id, ok := last.(*ast.Ident); (!ok || id.Name != "nil") && t != nil && m.returnsError(len(n.Results)) {
			m.emit("error", last.Pos(), last.End(), "nil")
		}
	}
	if body, ok := m.parent(1).(*ast.BlockStmt); ok && body == m.function.Body {
		return // the last one of the function
	}
	m.emit("return", n.Pos(), n.End(), "")
}

// returnsError reports whether the innermost function has n results, the last of them an error.
func (m *maker) returnsError(n int) bool {
	s, _ := m.info.Defs[m.function.Name].Type().(*types.Signature)
	for i := len(m.stack) - 1; i >= 0; i-- {
		if f, ok := m.stack[i].(*ast.FuncLit); ok {
			s, _ = m.info.TypeOf(f).(*types.Signature)
			break
		}
	}
	return s != nil && s.Results().Len() == n && types.Identical(s.Results().At(n-1).Type(),
		types.Universe.Lookup("error").Type())
}

// drop leaves statements out.
func (m *maker) drop(n ast.Stmt) {
	operator := "drop"
	switch n := n.(type) {
	case *ast.ExprStmt:
		c, ok := n.X.(*ast.CallExpr)
		if !ok || m.lock(n, c, false) {
			return
		}
		if id, ok := c.Fun.(*ast.Ident); ok && id.Name == "panic" {
			return
		}
	case *ast.DeferStmt:
		if m.lock(n, n.Call, true) {
			return
		}
	case *ast.AssignStmt:
		if by := otherArithmetic[n.Tok]; by != "" && m.numeric(n.Lhs[0]) {
			m.emit("arith", n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), by)
		}
		if n.Tok == token.DEFINE {
			return
		}
		if id, ok := n.Lhs[0].(*ast.Ident); ok && id.Name == "_" {
			return
		}
	case *ast.IncDecStmt:
		m.emit("arith", n.TokPos, n.TokPos+2, otherArithmetic[n.Tok])
	case *ast.SendStmt, *ast.GoStmt:
	case *ast.BranchStmt:
		if operator = "return"; n.Tok != token.BREAK && n.Tok != token.CONTINUE {
			return
		}
	default:
		return
	}
	if m.inList() {
		m.emit(operator, n.Pos(), n.End(), "")
	}
}

// typeName is what messages and operators call a type.
func typeName(t types.Type) string { return strings.TrimPrefix(fmt.Sprint(t), "*") }

func synchronises(t types.Type) bool {
	return strings.HasPrefix(typeName(t), "sync.") || strings.HasPrefix(typeName(t), "sync/atomic.")
}
