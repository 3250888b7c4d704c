package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// mutantFinder finds the mutants of one file.
type mutantFinder struct {
	*typedPackage
	scope    *scope
	file     *ast.File
	name     string // of the file
	text     string
	function *ast.FuncDecl
	stack    []ast.Node // from the function to the node at hand
	list     []*mutant
}

// mutantsOf returns all mutants of a file, in the order of the text.
func (p *typedPackage) mutantsOf(s *scope, i int) []*mutant {
	m := &mutantFinder{typedPackage: p, scope: s, file: p.files[i], name: p.names[i], text: p.texts[i]}
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
			m.mutateNode(n)
			return true
		})
	}
	return m.list
}

// addMutant adds a mutant: the text of from to end becomes by.
func (m *mutantFinder) addMutant(operator string, from, end token.Pos, by string) {
	in, race := m.scope.usesOperator(operator)
	if !in || m.isCapacity() {
		return
	}
	x := &mutant{pkg: m.path, file: m.name, function: functionName(m.function), operator: operator, race: race,
		at: m.offsetOf(from), end: m.offsetOf(end), by: by, probe: m.offsetOf(m.enclosingStatement().Pos())}
	if x.setLines(m.text); x.old != x.new {
		m.list = append(m.list, x)
	}
}

// isCapacity reports whether the node at hand is of the capacity of a slice that is made.
func (m *mutantFinder) isCapacity() bool {
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

// parentNode is n nodes above the node at hand.
func (m *mutantFinder) parentNode(n int) ast.Node {
	if n >= len(m.stack) {
		return nil
	}
	return m.stack[len(m.stack)-1-n]
}

// inList reports whether the node at hand is a statement of a block.
func (m *mutantFinder) inList() bool {
	switch m.parentNode(1).(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		s, ok := m.parentNode(0).(ast.Stmt)
		if c, comm := m.parentNode(1).(*ast.CommClause); comm && ast.Stmt(c.Comm) == s {
			return false
		}
		return ok
	}
	return false
}

// enclosingStatement is the innermost statement of a block around the node at hand.
func (m *mutantFinder) enclosingStatement() ast.Node {
	was := m.stack
	defer func() { m.stack = was }()
	for ; len(m.stack) > 1; m.stack = m.stack[:len(m.stack)-1] {
		switch m.parentNode(0).(type) {
		case *ast.CaseClause, *ast.CommClause: // clauses are listed too
		default:
			if m.inList() {
				return m.parentNode(0)
			}
		}
	}
	return m.function.Body.List[0]
}

func (m *mutantFinder) sourceOf(n ast.Node) string {
	return m.text[m.offsetOf(n.Pos()):m.offsetOf(n.End())]
}

func (m *mutantFinder) mutateNode(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		m.negateCondition(n.Cond)
	case *ast.ForStmt:
		m.negateCondition(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					m.negateCondition(e)
				}
			}
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB && m.constantValue(n) == nil {
			m.addMutant(map[token.Token]string{token.NOT: "negate", token.SUB: "arith"}[n.Op], n.Pos(), n.End(),
				m.sourceOf(n.X))
		}
	case *ast.BinaryExpr:
		m.mutateBinary(n)
	case *ast.CallExpr:
		m.mutateCall(n)
	case *ast.BasicLit:
		m.mutateLiteral(n)
	case *ast.Ident:
		m.mutateIdent(n)
	case *ast.SelectorExpr:
		m.mutateSelector(n)
	case *ast.ReturnStmt:
		m.mutateReturn(n)
	case ast.Stmt:
		m.dropStatement(n)
	}
}

func (m *mutantFinder) negateCondition(e ast.Expr) {
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
	m.addMutant("negate", e.Pos(), e.End(), "!("+m.sourceOf(e)+")")
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

func (m *mutantFinder) mutateBinary(n *ast.BinaryExpr) {
	op := n.OpPos + token.Pos(len(n.Op.String()))
	switch by, arith := otherArithmetic[n.Op]; {
	case otherComparison[n.Op] != "":
		m.addMutant("compare", n.OpPos, op, otherComparison[n.Op])
	case n.Op == token.LAND || n.Op == token.LOR:
		m.addMutant("logic", n.OpPos, op, map[token.Token]string{token.LAND: "||", token.LOR: "&&"}[n.Op])
		m.addMutant("clause", n.Pos(), n.End(), m.sourceOf(n.X))
		m.addMutant("clause", n.Pos(), n.End(), m.sourceOf(n.Y))
	case arith && m.isNumeric(n):
		m.addMutant("arith", n.OpPos, op, by)
	}
}

func (m *mutantFinder) isNumeric(e ast.Expr) bool {
	b, ok := m.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0
}

func (m *mutantFinder) constantValue(e ast.Expr) any {
	if v := m.info.Types[e].Value; v != nil {
		return v
	}
	return nil
}

func (m *mutantFinder) mutateCall(n *ast.CallExpr) {
	if s, ok := n.Fun.(*ast.SelectorExpr); ok {
		m.mutateSerial(n, s)
		m.mutateAtomic(n, s)
	}
	if id, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"min", "max", "append"}, id.Name) ||
		n.Ellipsis != 0 {
		return
	}
	for i := 1; i < len(n.Args); i++ {
		a, b := n.Args[i-1], n.Args[i]
		t, u := m.info.TypeOf(a), m.info.TypeOf(b)
		if t != nil && u != nil && types.Identical(t, u) && m.sourceOf(a) != m.sourceOf(b) {
			m.addMutant("swap", a.Pos(), b.End(), m.sourceOf(b)+m.text[m.offsetOf(a.End()):m.offsetOf(b.Pos())]+
				m.sourceOf(a))
		}
	}
}

// mutateSerial turns comparisons of serial numbers round, or lets them take in their limit.
func (m *mutantFinder) mutateSerial(n *ast.CallExpr, s *ast.SelectorExpr) {
	other, ok := map[string]string{"Less": "LessEq", "LessEq": "Less"}[s.Sel.Name]
	if !ok || len(n.Args) != 1 || m.info.Selections[s] == nil {
		return
	}
	turned := "(" + m.sourceOf(n.Args[0]) + ")." + s.Sel.Name + "(" + m.sourceOf(s.X) + ")"
	if id, ok := n.Args[0].(*ast.Ident); ok {
		turned = id.Name + "." + s.Sel.Name + "(" + m.sourceOf(s.X) + ")"
	}
	if o, _, _ := types.LookupFieldOrMethod(m.info.TypeOf(s.X), true, m.pkg, other); o != nil {
		m.addMutant("serial", s.Sel.Pos(), s.Sel.End(), other)
	} else {
		m.addMutant("serial", n.Pos(), n.End(), "!"+turned)
	}
	m.addMutant("serial", n.Pos(), n.End(), turned)
}

func (m *mutantFinder) mutateLiteral(n *ast.BasicLit) {
	switch p := m.parentNode(1).(type) {
	case *ast.ArrayType:
		return
	case *ast.KeyValueExpr:
		if p.Key == ast.Expr(n) {
			return
		}
	}
	switch {
	case n.Kind == token.FLOAT:
		m.addMutant("constant", n.Pos(), n.End(), "(2*"+n.Value+")")
	case n.Kind == token.INT && n.Value == "0":
		m.addMutant("constant", n.Pos(), n.End(), "1")
	case n.Kind == token.INT:
		m.addMutant("constant", n.Pos(), n.End(), "0")
		if n.Value == "1" {
			m.addMutant("constant", n.Pos(), n.End(), "2")
		} else {
			m.addMutant("constant", n.Pos(), n.End(), "("+n.Value+"+1)")
		}
	}
}

// mutateIdent replaces a variable or a constant by another.
func (m *mutantFinder) mutateIdent(n *ast.Ident) {
	if s, ok := m.parentNode(1).(*ast.SelectorExpr); ok && s.Sel == n {
		return
	}
	if kv, ok := m.parentNode(1).(*ast.KeyValueExpr); ok && kv.Key == ast.Expr(n) {
		return
	}
	switch o := m.info.Uses[n].(type) {
	case *types.Const:
		if o.Name() == "true" || o.Name() == "false" {
			if o.Parent() == types.Universe {
				operator := "constant"
				if _, ok := m.parentNode(1).(*ast.ReturnStmt); ok {
					operator = "return"
				}
				m.addMutant(operator, n.Pos(), n.End(), map[string]string{"true": "false", "false": "true"}[o.Name()])
			}
			return
		}
		m.mutateConstant(n, o, "")
	case *types.Var:
		if o.IsField() || o.Parent() == m.pkg.Scope() || strings.HasPrefix(o.Name(), "err") {
			return
		}
		if by := m.otherVariable(n, o); by != "" {
			m.addMutant("wrong", n.Pos(), n.End(), by)
		}
	}
}

// otherVariable is the variable of the same type that was declared last before the use of another.
func (m *mutantFinder) otherVariable(n *ast.Ident, o *types.Var) (name string) {
	var at token.Pos
	for s := m.pkg.Scope().Innermost(n.Pos()); s != nil && s != m.pkg.Scope(); s = s.Parent() {
		for _, other := range s.Names() {
			v, ok := s.Lookup(other).(*types.Var)
			if !ok || other == o.Name() || other == "_" || v.Pos() >= m.enclosingStatement().Pos() || v.Pos() <= at ||
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

// mutateConstant makes a number one more, and a code, state or kind another one.
func (m *mutantFinder) mutateConstant(n ast.Expr, o *types.Const, prefix string) {
	b, ok := o.Type().Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsNumeric == 0 || o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), module) {
		return
	}
	if _, array := m.parentNode(1).(*ast.ArrayType); array {
		return
	}
	t, named := o.Type().(*types.Named)
	switch {
	case named && t.Obj().Pkg() == o.Pkg():
		if by := nextConstant(o, m.pkg); by != "" {
			m.addMutant("wrong", n.Pos(), n.End(), prefix+by)
		}
	case named: // a time.Duration, mostly
		m.addMutant("constant", n.Pos(), n.End(), "(2*"+m.sourceOf(n)+")")
	default:
		m.addMutant("constant", n.Pos(), n.End(), "("+m.sourceOf(n)+"+1)")
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
		if first == nil || constLess(c, first.(*types.Const)) {
			first = c
		}
		if constLess(o, c) && (next == nil || constLess(c, next.(*types.Const))) {
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

// constLess puts constants in the order of their values.
func constLess(a, b *types.Const) bool {
	if len(a.Val().ExactString()) != len(b.Val().ExactString()) {
		return len(a.Val().ExactString()) < len(b.Val().ExactString())
	}
	return a.Val().ExactString()+a.Name() < b.Val().ExactString()+b.Name()
}

// mutateSelector replaces a field by the next one of its struct that has the same type.
func (m *mutantFinder) mutateSelector(n *ast.SelectorExpr) {
	if id, ok := n.X.(*ast.Ident); ok {
		if _, ok := m.info.Uses[id].(*types.PkgName); ok {
			if c, ok := m.info.Uses[n.Sel].(*types.Const); ok {
				m.mutateConstant(n, c, id.Name+".")
			}
			return
		}
	}
	s := m.info.Selections[n]
	if s == nil || s.Kind() != types.FieldVal || isSyncType(s.Obj().Type()) {
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
			m.addMutant("wrong", n.Sel.Pos(), n.Sel.End(), f.Name())
			return
		}
	}
}

func (m *mutantFinder) mutateReturn(n *ast.ReturnStmt) {
	if len(n.Results) > 0 {
		last := n.Results[len(n.Results)-1]
		t := m.info.TypeOf(last)
		if id, ok := last.(*ast.Ident); (!ok || id.Name != "nil") && t != nil && m.returnsError(len(n.Results)) {
			m.addMutant("error", last.Pos(), last.End(), "nil")
		}
	}
	if body, ok := m.parentNode(1).(*ast.BlockStmt); ok && body == m.function.Body {
		return // the last one of the function
	}
	m.addMutant("return", n.Pos(), n.End(), "")
}

// returnsError reports whether the innermost function has n results, the last of them an error.
func (m *mutantFinder) returnsError(n int) bool {
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

// dropStatement leaves statements out.
func (m *mutantFinder) dropStatement(n ast.Stmt) {
	operator := "drop"
	switch n := n.(type) {
	case *ast.ExprStmt:
		c, ok := n.X.(*ast.CallExpr)
		if !ok || m.mutateLock(n, c, false) {
			return
		}
		if id, ok := c.Fun.(*ast.Ident); ok && id.Name == "panic" {
			return
		}
	case *ast.DeferStmt:
		if m.mutateLock(n, n.Call, true) {
			return
		}
	case *ast.AssignStmt:
		if by := otherArithmetic[n.Tok]; by != "" && m.isNumeric(n.Lhs[0]) {
			m.addMutant("arith", n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), by)
		}
		if n.Tok == token.DEFINE {
			return
		}
		if id, ok := n.Lhs[0].(*ast.Ident); ok && id.Name == "_" {
			return
		}
	case *ast.IncDecStmt:
		m.addMutant("arith", n.TokPos, n.TokPos+2, otherArithmetic[n.Tok])
	case *ast.SendStmt, *ast.GoStmt:
	case *ast.BranchStmt:
		if operator = "return"; n.Tok != token.BREAK && n.Tok != token.CONTINUE {
			return
		}
	default:
		return
	}
	if m.inList() {
		m.addMutant(operator, n.Pos(), n.End(), "")
	}
}

// typeName is what messages and operators call a type.
func typeName(t types.Type) string { return strings.TrimPrefix(fmt.Sprint(t), "*") }

func isSyncType(t types.Type) bool {
	return strings.HasPrefix(typeName(t), "sync.") || strings.HasPrefix(typeName(t), "sync/atomic.")
}
