package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// docs is the file with the table, and the marks around it.
const (
	docs  = "docs/dev/reliability.md"
	begin = "<!-- fuzz -->\n"
	end   = "<!-- /fuzz -->\n"
)

// result is what the log of a target says.
type result struct {
	target
	date     string
	elapsed  time.Duration
	execs    uint64
	fresh    int // inputs that reached something new
	corpus   int // all of them, seeds included
	coverage string
	passed   bool
}

var (
	dated    = regexp.MustCompile(`(?m)^date: (\S+)$`)
	progress = regexp.MustCompile(
		`(?m)^fuzz: elapsed: (\S+), execs: (\d+) .*?(?:new interesting: (\d+) \(total: (\d+)\))?$`)
	covered = regexp.MustCompile(`(?m)^coverage: (\S+%) of statements`)
	ended   = regexp.MustCompile(`(?m)^PASS$`)
)

func readLog(t target, log string) (result, error) {
	r := result{target: t}
	b, err := os.ReadFile(log)
	if err != nil {
		return r, err
	}
	s := string(b)
	if m := dated.FindStringSubmatch(s); m != nil {
		r.date = m[1]
	}
	for _, m := range progress.FindAllStringSubmatch(s, -1) { // the last one counts
		r.elapsed, _ = time.ParseDuration(m[1])
		r.execs, _ = strconv.ParseUint(m[2], 10, 64)
		if m[3] != "" {
			r.fresh, _ = strconv.Atoi(m[3])
			r.corpus, _ = strconv.Atoi(m[4])
		}
	}
	if m := covered.FindStringSubmatch(s); m != nil {
		r.coverage = m[1]
	}
	// Go says PASS after fuzzing, and once more after the corpus was run for its coverage.
	wantEnds := 2
	if strings.HasSuffix(s, notMeasured) {
		r.coverage, wantEnds = "?", 1
	}
	ends := len(ended.FindAllString(s, -1)) + len(expired.FindAllString(s, -1))
	r.passed = r.coverage != "" && ends == wantEnds && !isStuck(s)
	return r, nil
}

// isStuck says whether the executions stood still towards the end, which Go does not mind: an input
// that takes for ever.
func isStuck(log string) bool {
	const lines = 6 // of 3 seconds each
	all := progress.FindAllStringSubmatch(log, -1)
	return len(all) > lines && all[len(all)-1][2] == all[len(all)-lines][2]
}

func resultTable(list []result) string {
	var b strings.Builder
	b.WriteString("| Target | Time | Executions | Each second | New inputs | Corpus | Statements covered |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | --- |\n")
	var all result
	for _, r := range list {
		fmt.Fprintf(&b, "| `%s` %s | %v | %s | %s | %d | %d | %s of %s |\n", strings.TrimPrefix(r.pkg, "./"), r.name,
			r.elapsed,
			formatThousands(r.execs), r.rateText(), r.fresh, r.corpus, r.coverage, r.packageUnder())
		all.elapsed += r.elapsed
		all.execs += r.execs
		all.fresh += r.fresh
		all.corpus += r.corpus
	}
	fmt.Fprintf(&b, "| **%d targets** | %v | %s | | %d | %d | |\n", len(list), all.elapsed, formatThousands(all.execs),
		all.fresh, all.corpus)
	return b.String()
}

func (r *result) rateText() string {
	if r.elapsed < time.Second {
		return "-"
	}
	return formatThousands(uint64(float64(r.execs) / r.elapsed.Seconds()))
}

// packageUnder names the code under test.
func (r *result) packageUnder() string {
	var list []string
	for _, p := range r.covers {
		list = append(list, "`"+strings.TrimPrefix(p, "./")+"`")
	}
	return strings.Join(list, ", ")
}

func formatThousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// updateTable replaces what is between the marks.
func updateTable(list []result) error {
	b, err := os.ReadFile(docs)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s: the marks around the table are missing", docs)
	}
	first, last := list[0].date, list[0].date
	for _, r := range list {
		first, last = min(first, r.date), max(last, r.date)
	}
	when := first
	if last != first {
		when += " to " + last
	}
	text := fmt.Sprintf("Run on %s, with one worker for each target; no crash is open.\n\n", when)
	return os.WriteFile(docs, []byte(head+begin+text+resultTable(list)+end+tail), 0o644)
}
