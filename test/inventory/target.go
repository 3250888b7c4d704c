package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	targetLine = regexp.MustCompile(`(?m)^([a-z-]+):.*## `)
	changeDir  = regexp.MustCompile(`\bcd (\S+) && `)
	started    = regexp.MustCompile(`\bgo (?:run|build)\b[^;&|\n]*? (\./[\w/-]+)(?:\s|$)`)
	script     = regexp.MustCompile(`(?:^|\s)((?:test|bench)/[\w/-]+\.sh)\b`)
)

// listTargets lists for each target of the Makefile the folders whose tests it runs, with how many,
// and the commands and scripts that it starts.
func (t *tree) listTargets() (lines []string, err error) {
	for _, m := range targetLine.FindAllStringSubmatch(t.readText("Makefile"), -1) {
		commands, err := t.dryRun(m[1])
		if err != nil {
			return nil, err
		}
		tests := make(map[string]int)
		for line := range strings.Lines(commands) {
			if err := t.countTests(line, tests); err != nil {
				return nil, fmt.Errorf("make %s: %w", m[1], err)
			}
			for _, expr := range []*regexp.Regexp{started, script} {
				for _, s := range expr.FindAllStringSubmatch(line, -1) {
					lines = append(lines, fmt.Sprintf("target %s starts %s", m[1], path.Clean(s[1])))
				}
			}
		}
		for dir, n := range tests {
			lines = append(lines, fmt.Sprintf("target %s runs %d of %s", m[1], n, dir))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// dryRun returns the commands that a target consists of, those of other targets included.
func (t *tree) dryRun(target string) (string, error) {
	c := exec.Command("make", "-n", "--no-print-directory", "-C", t.root, "GO=go", target)
	fromMake := func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") }
	c.Env = slices.DeleteFunc(os.Environ(), fromMake) // what another make hands down to its tests
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make -n %s: %w: %s", target, err, out)
	}
	return strings.ReplaceAll(string(out), "\\\n", " "), nil
}

// countTests adds the tests, fuzz targets and examples that a command line runs, by folder.
func (t *tree) countTests(line string, count map[string]int) error {
	at := "."
	if m := changeDir.FindStringSubmatch(line); m != nil {
		at = m[1]
	}
	for _, words := range goTest.FindAllString(line, -1) {
		run, bench, pkgs := "", "", []string(nil)
		list := word.FindAllString(words, -1)
		for i, w := range list {
			switch {
			case w == "." || strings.HasPrefix(w, "./"):
				pkgs = append(pkgs, cmp.Or(path.Join(at, w), "."))
			case w == "-run" && i+1 < len(list):
				run = strings.Trim(list[i+1], `'"`)
			case w == "-bench" && i+1 < len(list):
				bench = strings.Trim(list[i+1], `'"`)
			}
		}
		for _, c := range []command{{flag: "-run", expr: run, pkgs: pkgs}, {flag: "-bench", expr: bench, pkgs: pkgs}} {
			if c.flag == "-bench" && bench == "" {
				continue
			}
			names, err := t.findTests(c, c.expr)
			if err != nil {
				return err
			}
			for _, name := range names {
				dir, _, _ := strings.Cut(name, " ")
				count[dir]++
			}
		}
	}
	return nil
}

// moduleOf returns the folder of the module that a folder belongs to.
func (t *tree) moduleOf(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if slices.Contains(t.files, dir+"/go.mod") {
			return dir
		}
	}
	return dir
}
