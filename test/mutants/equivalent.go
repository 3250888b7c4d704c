package main

import (
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

//go:embed equivalent.txt
var equivalentText string

// parseEquivalent reads the mutants that no test can notice: the reason by the mutant's key.
func parseEquivalent(text string) (map[string]string, error) {
	reasons := make(map[string]string)
	var key string
	for i, line := range strings.Split(text, "\n") {
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case first == "in":
			if key != "" {
				return nil, fmt.Errorf("equivalent line %d: the entry before has no reason", i+1)
			}
			key = rest + "\n"
		case key == "":
			return nil, fmt.Errorf("equivalent line %d is of no entry", i+1)
		case line[0] == '-' || line[0] == '+':
			key += line + "\n"
		case first == "because" && rest != "":
			if reasons[key] != "" {
				return nil, fmt.Errorf("equivalent line %d: there twice", i+1)
			}
			reasons[key], key = rest, ""
		default:
			return nil, fmt.Errorf("equivalent line %d: %q", i+1, line)
		}
	}
	if key != "" {
		return nil, errors.New("equivalent: the last entry has no reason")
	}
	return reasons, nil
}

// checkOutdated returns an error for each entry that is of no mutant.
func checkOutdated(reasons map[string]string, populations ...map[string][]*mutant) error {
	known := make(map[string]bool)
	for _, all := range populations {
		for _, list := range all {
			for _, m := range list {
				known[m.mutantKey()] = true
			}
		}
	}
	var errs []error
	for key := range reasons {
		if !known[key] {
			errs = append(errs, fmt.Errorf("equivalent.txt: the machine makes no such mutant:\nin %s", key))
		}
	}
	return errors.Join(errs...)
}

// checkStands returns an error when the function of an entry has not got its lines: what a test can
// tell without types.
func checkStands(key, root string) error {
	place, diff, _ := strings.Cut(key, "\n")
	file, function, _ := strings.Cut(place, " ")
	var old string
	for line := range strings.Lines(diff) {
		if line[0] == '-' {
			old += line[1:]
		}
	}
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, 0)
	if err != nil {
		return err
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && functionName(f) == function &&
			strings.Contains("\n"+string(text[set.Position(f.Pos()).Offset:set.Position(f.End()).Offset])+"\n",
				"\n"+old) {
			return nil
		}
	}
	return fmt.Errorf("equivalent.txt: these lines are not in %s:\n%s", place, old)
}
