// Package golden compares what a piece of protocol code does with what is written down: in each
// situation that it can be in, for each thing that can happen next. What is written down is a text
// for people to read: a changed line is a changed behaviour, to be meant or to be mended.
//
//	= what has happened, each step behind the other, by commas
//	a step; another with the same answer => the answer
//
// A line that is neither is a remark. "go test -run ... -update" writes the answers anew.
package golden

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
)

// Table plays all steps in all situations of a file. answer has a host of its own for each.
func Table(t *testing.T, file string, answer func(situation []string, step string) string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var situation []string
	for line := range strings.Lines(string(text)) {
		steps, want, row := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if s, ok := strings.CutPrefix(steps, "= "); ok {
			situation = strings.Split(s, ", ")
		}
		if !row {
			out.WriteString(line)
			continue
		}
		with := map[string][]string{} // an answer, and the steps that have it
		var order []string
		for step := range strings.SplitSeq(steps, "; ") {
			got := answer(situation, step)
			if got != want && !*fuzzinput.Update {
				t.Errorf("%s; %s:\n got %s\nwant %s", strings.Join(situation, ", "), step, got, want)
			}
			if with[got] == nil {
				order = append(order, got)
			}
			with[got] = append(with[got], step)
		}
		for _, got := range order {
			fmt.Fprintf(&out, "%s => %s\n", strings.Join(with[got], "; "), got)
		}
	}
	if *fuzzinput.Update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
