package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed scope.txt
var scopeText string

// scope is what the machine makes mutants of.
type scope struct {
	packages  []string // protocol packages first
	protocol  map[string]bool
	skip      map[string]bool // files
	operators []string
	race      []string // operators of concurrency
}

func parseScope(text string) (*scope, error) {
	s := &scope{protocol: make(map[string]bool), skip: make(map[string]bool)}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		key, rest, _ := strings.Cut(line, " ")
		first, why, _ := strings.Cut(strings.TrimSpace(rest), " ")
		switch key {
		case "protocol":
			s.protocol[first] = true
			s.packages = append(s.packages, first)
		case "other":
			s.packages = append(s.packages, first)
		case "skip":
			if why == "" {
				return nil, fmt.Errorf("scope line %d: no reason", i+1)
			}
			s.skip[strings.TrimSuffix(first, ":")] = true
		case "operator":
			s.operators = append(s.operators, first)
		case "race":
			s.race = append(s.race, first)
		default:
			return nil, fmt.Errorf("scope line %d: %q", i+1, line)
		}
	}
	return s, nil
}

// usesOperator reports whether the operator is in use, and whether it makes faults of concurrency.
func (s *scope) usesOperator(operator string) (in, race bool) {
	race = slices.Contains(s.race, operator)
	return race || slices.Contains(s.operators, operator), race
}
