package main

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
)

// A mutant is woven in as a fault is: its function gets a second body. Before the statement that it
// changes stands a probe, by which a test tells that it comes there.

const (
	reachVar = "wovenReach"
	reachEnv = "WOVEN_REACH" // the file that probes write their numbers to
)

func (m *mutant) functionSuffix() string { return fmt.Sprintf("_fault%d", m.number) }

// graftMutants returns the texts of the package's files with mutants in them, and one more file
// that these need. The statements with mutants get their numbers.
func (p *typedPackage) graftMutants(list []*mutant) (texts []string, err error) {
	for i, name := range p.names {
		w, err := newWeaver(p.texts[i])
		if err != nil {
			return nil, err
		}
		probed := make(map[int]int)
		for _, m := range list {
			if m.file != name {
				continue
			}
			if err := w.weaveMutant(m, probed); err != nil {
				return nil, fmt.Errorf("%s: %w", m, err)
			}
		}
		texts = append(texts, string(w.wovenFile()))
	}
	return append(texts, p.reachFile()), nil
}

// weaveMutant weaves a mutant in under its number. Mutants of one statement share a probe, with the
// number of the first.
func (w *weaver) weaveMutant(m *mutant, probed map[int]int) error {
	for _, d := range w.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || w.offsetOf(f.Pos()) > m.at || w.offsetOf(f.End()) <= m.at {
			continue
		}
		wrong := m.fileText(w.text)
		grown := len(wrong) - len(w.text)
		w.addSecondBody(f, m.number, wrong[w.offsetOf(f.Pos()):w.offsetOf(f.Name.Pos())],
			wrong[w.offsetOf(f.Name.End()):w.offsetOf(f.End())+grown])
		if m.site = probed[m.probe]; m.site == 0 {
			m.site, probed[m.probe] = m.number, m.number
			w.edits = append(w.edits,
				edit{m.probe, m.probe, fmt.Sprintf("if %s != \"\" { wovenHit(%d) }; ", reachVar, m.number)})
		}
		return nil
	}
	return errNotWoven
}

// reachFile is the file of a package with mutants that reads the number and notes which statements
// are reached.
func (p *typedPackage) reachFile() string {
	return fmt.Sprintf(`package %s

import (
	"os"
	"strconv"
	"sync"
	"unsafe"
)

var %s, _ = strconv.Atoi(os.Getenv(%q))
var %s = os.Getenv(%q)
var wovenSeen sync.Map

// wovenFile is open from the beginning: a test may leave no descriptor for it.
var wovenFile = sync.OnceValue(func() *os.File {
	f, _ := os.OpenFile(%s, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return f
})

func init() {
	if %s != "" {
		wovenFile()
	}
}

func wovenHit(n int) {
	if _, seen := wovenSeen.LoadOrStore(n, true); !seen {
		wovenFile().WriteString(strconv.Itoa(n) + "\n")
	}
}
%s`, p.files[0].Name.Name, switchVar, switchEnv, reachVar, reachEnv, reachVar, reachVar, plainCode)
}

// putMutants writes the mutants into the tree.
func (t checkedOutTree) putMutants(list []*typedPackage, mutants []*mutant) error {
	for i, m := range mutants {
		m.number = i + 1
	}
	for _, p := range list {
		mine := slices.Clone(mutants)
		if mine = slices.DeleteFunc(mine, func(m *mutant) bool { return m.pkg != p.path }); len(mine) == 0 {
			continue
		}
		texts, err := p.graftMutants(mine)
		if err != nil {
			return err
		}
		for i, name := range append(slices.Clone(p.names), p.path+"/woven_fault.go") {
			if err := os.WriteFile(filepath.Join(string(t), name), []byte(texts[i]), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
