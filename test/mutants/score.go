package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// score is what became of a sample.
type score struct {
	m            *mutationRun
	sample, race []*mutant
	reasons      map[string]string
	took         time.Duration
}

func newScore(m *mutationRun, sample, race []*mutant, reasons map[string]string) *score {
	if m.ids != nil {
		reasons = nil
	}
	return &score{m: m, sample: sample, race: race, reasons: reasons}
}

// row counts the mutants of a package.
type row struct{ sampled, caught, late, survived, uncovered, equivalent int }

// scorePercent is the score: what was caught, late or not, of all that can be.
func (r row) scorePercent() float64 {
	if r.sampled == r.equivalent {
		return 100
	}
	return 100 * float64(r.caught+r.late) / float64(r.sampled-r.equivalent)
}

func (s *score) packageRows(list []*mutant) (rows map[string]*row, all row) {
	rows = make(map[string]*row)
	for _, x := range list {
		if rows[x.pkg] == nil {
			rows[x.pkg] = new(row)
		}
		for _, r := range []*row{rows[x.pkg], &all} {
			r.sampled++
			switch {
			case s.reasons[x.mutantKey()] != "":
				r.equivalent++
			case s.m.state.fates[x.id].Outcome == fateCaught:
				r.caught++
			case s.m.state.fates[x.id].Outcome == fateLate:
				r.late++
			case s.m.state.fates[x.id].Outcome == fateUncovered:
				r.uncovered++
			default:
				r.survived++
			}
		}
	}
	return rows, all
}

func (s *score) markdownTable(list []*mutant) string {
	var b strings.Builder
	rows, all := s.packageRows(list)
	b.WriteString(
		"| Package | Mutants | Caught | Late | Survived | Uncovered | Equivalent | Score |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	line := func(name string, r row) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %.1f %% |\n", name, r.sampled, r.caught, r.late,
			r.survived,
			r.uncovered, r.equivalent, r.scorePercent())
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		line(name, *rows[name])
	}
	line("**all**", all)
	return b.String()
}

// unnoticedMutants returns the mutants that no test noticed, or only one that hangs.
func (s *score) unnoticedMutants(outcomes ...string) (list []*mutant) {
	for _, x := range slices.Concat(s.sample, s.race) {
		if s.reasons[x.mutantKey()] == "" && slices.Contains(outcomes, s.m.state.fates[x.id].Outcome) {
			list = append(list, x)
		}
	}
	return list
}

func (s *score) printScore(w io.Writer) {
	for _, x := range s.unnoticedMutants(fateSurvived, fateUncovered) {
		fmt.Fprintf(w, "\n%s: %s\n%s", s.m.state.fates[x.id].Outcome, x, x.diffText())
	}
	for _, x := range s.unnoticedMutants(fateLate) {
		fmt.Fprintf(w, "\ncaught late: %s: %s hangs\n%s", x, s.m.state.fates[x.id].By, x.diffText())
	}
	for _, x := range slices.Concat(s.sample, s.race) {
		if why := s.reasons[x.mutantKey()]; why != "" {
			fmt.Fprintf(w, "\nequivalent: %s: %s\n%s", x, why, x.diffText())
		}
	}
	var all []*mutant
	all = append(all, s.sample...)
	slices.SortStableFunc(all, func(a, b *mutant) int {
		return cmp.Compare(s.m.state.fates[b.id].Seconds, s.m.state.fates[a.id].Seconds)
	})
	fmt.Fprintf(w, "\n%s", s.markdownTable(s.sample))
	if len(s.race) > 0 {
		fmt.Fprintf(w, "\nFaults of concurrency, under the race detector:\n\n%s", s.markdownTable(s.race))
	}
	for _, x := range all[:min(5, len(all))] {
		fmt.Fprintf(w, "slowest %5.1fs  %s\n", s.m.state.fates[x.id].Seconds, x)
	}
	_, r := s.packageRows(s.sample)
	fmt.Fprintf(w, "mutants: seed %s, %d mutants: %d caught, %d late, %d survived, %d uncovered, %d equivalent: "+
		"%.1f %%, in %v, %v of processor time\n",
		s.m.seed, r.sampled, r.caught, r.late, r.survived, r.uncovered, r.equivalent, r.scorePercent(),
		s.took.Round(time.Second),
		time.Duration(processor.Load()).Round(time.Second))
}

// isGood reports whether the score is at least as many percent, and not too many mutants are called
// equivalent.
func (s *score) isGood(least float64) bool {
	_, r := s.packageRows(s.sample)
	return r.scorePercent() >= least && (r.sampled < 200 || 100*r.equivalent <= 15*r.sampled)
}

// The marks around what the machine writes into the documents.
const (
	docsBegin = "<!-- mutants: written by make mutants -->\n"
	docsEnd   = "<!-- end of mutants -->\n"
)

// updateDocs brings the table in a document up to date.
func (s *score) updateDocs(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	new, err := s.inDocs(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(new), 0o644)
}

func (s *score) inDocs(text string) (string, error) {
	head, rest, ok := strings.Cut(text, docsBegin)
	_, tail, too := strings.Cut(rest, docsEnd)
	if !ok || !too {
		return "", fmt.Errorf("the marks around the table are missing")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Sample of %d, seed `%s`, judged in %v.\n\n%s", len(s.sample), s.m.seed,
		s.took.Round(time.Minute), s.markdownTable(s.sample))
	if len(s.race) > 0 {
		fmt.Fprintf(&b, "\nFaults of concurrency, under the race detector:\n\n%s", s.markdownTable(s.race))
	}
	if left := s.unnoticedMutants(fateSurvived, fateUncovered); len(left) > 0 {
		b.WriteString("\nWhat no test noticed:\n\n```\n")
		for i, x := range left {
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "%s (%s)\n%s", x, s.m.state.fates[x.id].Outcome, x.diffText())
		}
		b.WriteString("```\n")
	}
	if late := s.unnoticedMutants(fateLate); len(late) > 0 {
		b.WriteString("\nCaught only by a test that hangs:\n\n```\n")
		for _, x := range late {
			fmt.Fprintf(&b, "%s: %s\n%s", x, s.m.state.fates[x.id].By, x.diffText())
		}
		b.WriteString("```\n")
	}
	return head + docsBegin + b.String() + docsEnd + tail, nil
}
