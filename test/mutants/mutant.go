package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// mutant is a fault made by an operator: a piece of a function's text is replaced.
type mutant struct {
	number   int    // in the environment, from 1 on, once it is woven in
	site     int    // of the statement that it is in
	id       string // the same as long as the function's name and the lines are
	pkg      string // sctp/assoc
	file     string // sctp/assoc/path.go
	function string // path.usable
	operator string
	race     bool
	at, end  int // octets of the file
	by       string
	probe    int    // where the statement begins
	old, new string // whole lines
	line     int
}

// setLines fills in the lines that change.
func (m *mutant) setLines(text string) {
	from := strings.LastIndexByte(text[:m.at], '\n') + 1
	to := m.end + strings.IndexByte(text[m.end:], '\n')
	m.old, m.new = text[from:to], text[from:m.at]+m.by+text[m.end:to]
	m.line = 1 + strings.Count(text[:from], "\n")
	if strings.TrimSpace(m.new) == "" {
		m.new = ""
	}
}

// mutantKey is what the mutant is known by: not its line, which moves.
func (m *mutant) mutantKey() string { return m.file + " " + m.function + "\n" + m.diffText() }

// diffText shows the lines as faults do.
func (m *mutant) diffText() string { return prefixLines("-", m.old) + prefixLines("+", m.new) }

func prefixLines(mark, lines string) (s string) {
	if lines == "" {
		return ""
	}
	for line := range strings.SplitSeq(lines, "\n") {
		s += mark + line + "\n"
	}
	return s
}

// setIDs gives each mutant a name made of what it changes. Those that change lines alike in one
// function are counted.
func setIDs(list []*mutant) {
	count := make(map[string]int)
	for _, m := range list {
		k := m.mutantKey()
		count[k]++
		m.id = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s%d", k, count[k])))[:8]
	}
}

// fileText is the file with the mutant in it.
func (m *mutant) fileText(file string) string { return file[:m.at] + m.by + file[m.end:] }

func (m *mutant) String() string {
	return fmt.Sprintf("%s %s:%d %s %s", m.id, m.file, m.line, m.function, m.operator)
}
