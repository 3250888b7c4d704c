package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// mutateLock makes the faults of a call that locks or unlocks a mutex. It reports whether this is
// one.
//
// A mutex that is not locked is not unlocked either: both calls of the statement list go. The
// runtime ends a program that unlocks what is not locked, and then no test needs to look.
func (m *mutantFinder) mutateLock(n ast.Stmt, c *ast.CallExpr, deferred bool) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || m.info.Selections[s] == nil {
		return false
	}
	t := typeName(m.info.TypeOf(s.X))
	if t != "sync.Mutex" && t != "sync.RWMutex" {
		return false
	}
	block, i := m.siblingStatements(n)
	if block == nil || !strings.HasSuffix(s.Sel.Name, "ock") {
		return true
	}
	mu := m.sourceOf(s.X)
	switch s.Sel.Name {
	case "Lock", "RLock":
		if deferred {
			return true
		}
		// up to the Unlock of the same list, all between them as it is
		unlock := mu + "." + strings.Replace(s.Sel.Name, "Lock", "Unlock", 1) + "()"
		for _, later := range block[i+1:] {
			if src := m.sourceOf(later); src == unlock || src == "defer "+unlock {
				m.addMutant("lock", n.Pos(), later.End(), m.text[m.offsetOf(n.End()):m.offsetOf(later.Pos())])
				break
			}
		}
	default:
		switch {
		case deferred:
			m.addMutant("early", n.Pos(), n.End(), m.sourceOf(c))
		case i > 0 && !m.isLock(block[i-1], mu):
			if _, label := block[i-1].(*ast.LabeledStmt); !label {
				before := block[i-1]
				m.addMutant("early", before.Pos(), n.End(), m.sourceOf(n)+"; "+m.sourceOf(before))
			}
		}
	}
	return true
}

// siblingStatements is the list that the statement at hand is in, and its place there.
func (m *mutantFinder) siblingStatements(n ast.Stmt) (list []ast.Stmt, i int) {
	switch p := m.parentNode(1).(type) {
	case *ast.BlockStmt:
		list = p.List
	case *ast.CaseClause:
		list = p.Body
	case *ast.CommClause:
		list = p.Body
	}
	for i, s := range list {
		if s == n {
			return list, i
		}
	}
	return nil, 0
}

func (m *mutantFinder) isLock(s ast.Stmt, mu string) bool {
	src := m.sourceOf(s)
	return src == mu+".Lock()" || src == mu+".RLock()"
}

// mutateAtomic makes the operations of an atomic variable plain ones. The race detector, or a lost
// count, tells.
func (m *mutantFinder) mutateAtomic(n *ast.CallExpr, s *ast.SelectorExpr) {
	t := typeName(m.info.TypeOf(s.X))
	kind, ok := strings.CutPrefix(t, "sync/atomic.")
	if !ok || m.info.Selections[s] == nil {
		return
	}
	plain := map[string]string{"Int32": "int32", "Int64": "int64", "Uint32": "uint32", "Uint64": "uint64"}[kind]
	if plain == "" {
		return
	}
	at := m.sourceOf(s.X)
	if _, ok := m.info.TypeOf(s.X).(*types.Pointer); !ok {
		at = "&" + at
	}
	switch s.Sel.Name {
	case "Load", "Store", "Add":
		args := strings.TrimSuffix(m.text[m.offsetOf(n.Lparen)+1:m.offsetOf(n.Rparen)], ",")
		if args != "" {
			args = ", " + args
		}
		m.addMutant("plain", n.Pos(), n.End(), fmt.Sprintf("wovenPlain%s[%s](%s%s)", s.Sel.Name, plain, at, args))
	}
}

// plainCode is what the plain operations are in a package with woven faults.
const plainCode = `
func wovenPlainLoad[T, A any](a *A) T     { return *(*T)(unsafe.Pointer(a)) }
func wovenPlainStore[T, A any](a *A, v T) { *(*T)(unsafe.Pointer(a)) = v }
func wovenPlainAdd[T int32 | int64 | uint32 | uint64, A any](a *A, v T) T {
	*(*T)(unsafe.Pointer(a)) += v
	return *(*T)(unsafe.Pointer(a))
}
`
