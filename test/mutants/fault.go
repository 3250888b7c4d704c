package main

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

// fault is one change of the program that a test has to notice.
type fault struct {
	number     int // from 1 on
	name, file string
	tests      []string // packages, those nearest to the fault first
	equivalent string   // why no test can notice it, empty where one can
	proves     []proof
	old, new   string // whole lines
}

//go:embed faults/*.txt
var data embed.FS

// loadFaults reads all faults.
func loadFaults() (list []*fault, err error) {
	files, err := data.ReadDir("faults")
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, f := range files {
		text, err := data.ReadFile("faults/" + f.Name())
		if err != nil {
			return nil, err
		}
		faults, err := parseFaults(string(text))
		if err != nil {
			return nil, fmt.Errorf("faults/%s: %w", f.Name(), err)
		}
		for _, f := range faults {
			if seen[f.name] {
				return nil, fmt.Errorf("there are two faults %s", f.name)
			}
			seen[f.name] = true
			f.number = len(seen)
		}
		list = append(list, faults...)
	}
	return list, nil
}

// parseFaults reads one file of faults. A fault begins with its name. The change is written as in a
// diff, in whole lines, with as much around it as makes the place the only one:
//
//	fault sack-one-late
//	in sctp/internal/rx/ack.go
//	by ./sctp/internal/rx ./sctp/assoc
//	-	if a.packets >= 2 {
//	+	if a.packets >= 3 {
//
// The tests of the packages behind "by" are run, the quickest first. A line "equivalent REASON"
// says that no test can tell the difference. Lines that begin with # and empty ones say nothing. A
// line
//
//	proves 9260-6.2-7 sctp/assoc TestSackComesWithTheSecondPacketOrIn200ms
//
// says that the fault violates that row of conformance and nothing beside, and that this test,
// which cites the row, fails for it (proofs.go).
func parseFaults(text string) (list []*fault, err error) {
	var f *fault
	for i, line := range strings.Split(text, "\n") {
		key, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case key == "fault":
			f = &fault{name: rest}
			list = append(list, f)
		case f == nil:
			return nil, fmt.Errorf("line %d comes before the first fault", i+1)
		case key == "in":
			f.file = rest
		case key == "by":
			f.tests = strings.Fields(rest)
		case key == "proves":
			p := strings.Fields(rest)
			if len(p) != 3 && len(p) != 1 {
				return nil, fmt.Errorf("line %d: a proof is a row, a package and a test", i+1)
			}
			p = append(p, "", "")
			f.proves = append(f.proves, proof{row: p[0], pkg: p[1], test: p[2]})
		case key == "equivalent":
			f.equivalent = rest
		case line[0] == '-':
			f.old += line[1:] + "\n"
		case line[0] == '+':
			f.new += line[1:] + "\n"
		case line[0] == ' ':
			f.old += line[1:] + "\n"
			f.new += line[1:] + "\n"
		default:
			return nil, fmt.Errorf("line %d: %q", i+1, line)
		}
	}
	for _, f := range list {
		if f.name == "" || f.file == "" || len(f.tests) == 0 || f.old == "" || f.old == f.new {
			return nil, fmt.Errorf("fault %q lacks a name, a file, packages or a change", f.name)
		}
		if len(f.proves) > 0 && f.equivalent != "" {
			return nil, fmt.Errorf("fault %q proves something that no test can notice", f.name)
		}
	}
	return list, nil
}

// layerOf is the part of the house that the fault is in: its package, or rawio with what is below
// it.
func (f *fault) layerOf() string {
	if strings.HasPrefix(f.file, "rawio/") {
		return "rawio"
	}
	return path.Dir(f.file)
}

// applyTo returns the text of the file with the fault in it.
func (f *fault) applyTo(text string) (string, error) {
	before, after, ok := strings.Cut("\n"+text, "\n"+f.old)
	switch {
	case !ok:
		return "", fmt.Errorf("%s has no such lines: if the code has changed, let the fault follow it", f.file)
	case strings.Contains("\n"+after, "\n"+f.old):
		return "", fmt.Errorf("%s has these lines more than once", f.file)
	}
	return (before + "\n" + f.new + after)[1:], nil
}
