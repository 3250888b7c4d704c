package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// tree is a checkout: the files that git has.
type tree struct {
	root  string
	files []string
	funcs map[string][]string // the test functions of each folder
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)

func readTree(root string) (*tree, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	t := &tree{root: root, funcs: make(map[string][]string)}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			continue // removed, and not committed yet
		}
		t.files = append(t.files, name)
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range testFunc.FindAllStringSubmatch(t.readText(name), -1) {
			if m[1] != "TestMain" {
				t.funcs[path.Dir(name)] = append(t.funcs[path.Dir(name)], m[1])
			}
		}
	}
	return t, nil
}

// readText returns a file's text, none if it cannot be read.
func (t *tree) readText(name string) string {
	text, _ := os.ReadFile(filepath.Join(t.root, name))
	return string(text)
}

// listTests lists the test functions.
func (t *tree) listTests() (lines []string) {
	for dir, names := range t.funcs {
		for _, n := range names {
			lines = append(lines, fmt.Sprintf("test %s %s", dir, n))
		}
	}
	return lines
}

// corpusOf returns the folder and the target of a file of a fuzz corpus.
func corpusOf(name string) (dir, target string, ok bool) {
	dir, rest, ok := strings.Cut(name, "/testdata/fuzz/")
	target, _, _ = strings.Cut(rest, "/")
	return dir, target, ok
}

// listCorpora lists the fuzz corpora and how many inputs each has.
func (t *tree) listCorpora() (lines []string) {
	n := make(map[string]int)
	for _, f := range t.files {
		if dir, target, ok := corpusOf(f); ok {
			n[dir+" "+target]++
		}
	}
	for k, v := range n {
		lines = append(lines, fmt.Sprintf("corpus %s %d", k, v))
	}
	return lines
}

// listGolden lists the other files that tests compare with, and what is in them.
func (t *tree) listGolden() (lines []string) {
	for _, f := range t.files {
		if _, _, corpus := corpusOf(f); !corpus && strings.Contains(f, "/testdata/") {
			lines = append(lines, fmt.Sprintf("golden %s %.6x", f, sha256.Sum256([]byte(t.readText(f)))))
		}
	}
	return lines
}

// listFaults lists the faults made by hand, with what they prove, and the lines of the other tables
// of the mutation tests.
func (t *tree) listFaults() (lines []string) {
	for _, f := range t.files {
		table := path.Dir(f) == "test/mutants/faults"
		if !table && (path.Dir(f) != "test/mutants" || path.Ext(f) != ".txt") {
			continue
		}
		name := ""
		for line := range strings.Lines(t.readText(f)) {
			line = strings.TrimSpace(line)
			word, rest, _ := strings.Cut(line, " ")
			switch {
			case word == "fault":
				name = rest
				fallthrough
			case word == "in" || word == "by" || word == "proves" || word == "equivalent":
				lines = append(lines, fmt.Sprintf("%s %s: %s", path.Base(f), name, line))
			case path.Base(f) == "scope.txt" && line != "" && word != "#":
				lines = append(lines, "scope "+line)
			}
		}
	}
	return lines
}
