package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// command is a go test with an expression for names of tests.
type command struct {
	file  string
	flag  string   // -run, -fuzz or -bench
	expr  string   // without quotes, and as make passes it on
	pkgs  []string // folders; one may end in "..."
	words string   // all of it
}

var (
	goTest = regexp.MustCompile("(?:\\$\\(GO\\)|\\bgo) test\\b(?:'[^'\n]*'|[^'`\n|;&])*")
	quoted = regexp.MustCompile("(?s)`[^`]*`")
	word   = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
)

// isScript says whether a file has commands for people or for CI to run. The diaries tell of the
// past.
func isScript(name string) bool {
	switch {
	case path.Base(name) == "experiments.md" || name == "CHANGELOG.md":
		return false
	case name == "Makefile" || name == ".ci/run":
		return true
	}
	return path.Ext(name) == ".md" || path.Ext(name) == ".sh"
}

// testCommands finds the commands that name tests.
func (t *tree) testCommands() (list []command) {
	for _, f := range t.files {
		if !isScript(f) {
			continue
		}
		text := t.readText(f)
		if path.Ext(f) == ".md" { // a command between backquotes may be on two lines
			text = quoted.ReplaceAllStringFunc(text, func(s string) string {
				if strings.HasPrefix(s, "``") {
					return s
				}
				return strings.Join(strings.Fields(s), " ")
			})
		}
		for _, m := range goTest.FindAllString(text, -1) {
			list = append(list, commandsOf(f, m)...)
		}
	}
	return list
}

// commandsOf reads one command line.
func commandsOf(file, line string) (list []command) {
	c := command{file: file, words: strings.TrimSpace(line)}
	words := word.FindAllString(line, -1)
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "./"):
			c.pkgs = append(c.pkgs, path.Clean(strings.TrimRight(w, ".,:")))
			if strings.HasSuffix(w, "...") {
				c.pkgs[len(c.pkgs)-1] = path.Join(path.Clean(strings.TrimSuffix(w, "...")), "...")
			}
		case slices.Contains([]string{"-run", "-fuzz", "-bench"}, w) && i+1 < len(words):
			expr := strings.ReplaceAll(strings.Trim(words[i+1], `'"`), "$$", "$")
			if expr != "^$" && !strings.HasPrefix(expr, "$(") {
				list = append(list, command{file: file, flag: w, expr: expr})
			}
		}
	}
	for i := range list {
		list[i].pkgs, list[i].words = c.pkgs, c.words
	}
	return list
}

// findTests returns the tests that one alternative of the expression names.
func (t *tree) findTests(c command, alternative string) (names []string, err error) {
	top, _, _ := strings.Cut(alternative, "/")
	expr, err := regexp.Compile(top)
	if err != nil {
		return nil, err
	}
	for dir, funcs := range t.funcs {
		if !slices.ContainsFunc(c.pkgs, func(p string) bool { return p == dir || t.matchesDir(p, dir) }) {
			continue
		}
		for _, f := range funcs {
			if expr.MatchString(f) && strings.HasPrefix(f, "Benchmark") == (c.flag == "-bench") {
				names = append(names, dir+" "+f)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// matchesDir says whether a pattern with "..." has a folder: those of other modules below it are
// none of its own.
func (t *tree) matchesDir(pattern, dir string) bool {
	above, wide := strings.CutSuffix(pattern, "...")
	return wide && strings.HasPrefix(dir+"/", above) && t.moduleOf(dir) == t.moduleOf(path.Clean(above))
}

// listCommands lists which tests the commands of scripts and documents run.
func (t *tree) listCommands() (lines []string) {
	for _, c := range t.testCommands() {
		for alternative := range strings.SplitSeq(c.expr, "|") {
			names, err := t.findTests(c, alternative)
			if err != nil {
				names = []string{err.Error()}
			}
			lines = append(lines, fmt.Sprintf("run %s %s %s: %s", c.file, c.flag, alternative,
				strings.Join(names, ", ")))
		}
	}
	return lines
}
