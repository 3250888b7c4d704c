package conformance

import (
	"fmt"
	"os"
	"strings"
)

// Count is where the rows of one level stand. Those of extensions that are not offered are Off and
// none of the Rows.
type Count struct{ Rows, Tested, Proved, Waived, Off int }

// Untested counts the rows that nothing holds.
func (c Count) Untested() int { return c.Rows - c.Tested - c.Waived }

// Count counts the rows of a file by level.
func (r *Report) Count(f File) map[string]Count {
	counts := make(map[string]Count)
	for i := range f.Rows {
		row := &f.Rows[i]
		c := counts[row.Level]
		if r.State(row) == Proved {
			c.Proved++
		}
		switch {
		case r.Off(row):
			c.Off++
			c.Rows--
		case r.isTested(row):
			c.Tested++
		case r.isWaived(row):
			c.Waived++
		}
		c.Rows++
		counts[row.Level] = c
	}
	return counts
}

// Summary ends both tables.
func (r *Report) Summary() string {
	var untested, waived, rows, off int
	for _, f := range r.Files {
		untested += len(r.Untested(f))
		for _, c := range r.Count(f) {
			waived += c.Waived
			rows += c.Rows
			off += c.Off
		}
	}
	provable, proved, none, any := r.proofCount(r.Files...)
	return fmt.Sprintf("not offered to peers, and not counted: %d\n", off) +
		fmt.Sprintf("untested: %d  waived: %d  rows: %d\n", untested, waived, rows) +
		fmt.Sprintf("proved: %d of %d MUST and MUST NOT that tests cite (no fault can be: %d), %d rows in all, "+
			"%.0f %%\n",
			proved, provable, none, any, 100*float64(any)/float64(max(rows, 1)))
}

// Table has a line per RFC and level.
func (r *Report) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s  %-10s %5s %7s %7s %7s %9s %5s\n", "RFC", "level", "rows", "tested", "proved", "waived",
		"untested", "off")
	for _, f := range r.Files {
		note, counts := r.titleOf(&f), r.Count(f)
		for _, level := range Levels {
			c := counts[level]
			if c.Rows+c.Off == 0 {
				continue
			}
			untested := fmt.Sprint(c.Untested())
			if level == "MAY" {
				untested = "-" // an option
			}
			line := fmt.Sprintf("%-9s  %-10s %5d %7d %7d %7d %9s %5d  %s", f.RFC, level, c.Rows, c.Tested, c.Proved,
				c.Waived, untested, c.Off, note)
			fmt.Fprintln(&b, strings.TrimRight(line, " "))
			note = ""
		}
	}
	b.WriteString(r.Summary())
	return b.String()
}

func (r *Report) titleOf(f *File) string {
	if r.isOffered(f) {
		return f.Subject
	}
	return f.Subject + " (not offered)"
}

const (
	blockStart = "<!-- conformance -->\n"
	blockEnd   = "<!-- /conformance -->\n"
)

// Markdown is the table for the README: a line per RFC, and per level the rows tested, waived
// (after +) and all, and in brackets those of extensions that are not offered. The last column is
// the rows proved of those MUST and MUST NOT that a test holds.
func (r *Report) Markdown() string {
	var b strings.Builder
	b.WriteString("A cell has the rows that a test holds, + those waived with a reason, / all rows. In brackets are " +
		"rows of extensions that are not offered to peers.\n" +
		"A MUST or MUST NOT is proved if its tests fail when a fault breaks that row and nothing else " +
		"(`make proofs`).\n\n" +
		"| RFC | subject | " + strings.Join(Levels, " | ") + " | untested | proved |\n|---|---|" +
		strings.Repeat("---|", len(Levels)+2) + "\n")
	for _, f := range r.Files {
		fmt.Fprintf(&b, "| %s | %s |", f.RFC, r.titleOf(&f))
		counts := r.Count(f)
		for _, level := range Levels {
			c := counts[level]
			cell := fmt.Sprintf("%d/%d", c.Tested, c.Rows)
			if c.Waived > 0 {
				cell = fmt.Sprintf("%d+%d/%d", c.Tested, c.Waived, c.Rows)
			}
			if c.Rows == 0 {
				cell = ""
			}
			if c.Off > 0 {
				cell = strings.TrimLeft(fmt.Sprintf("%s (%d)", cell, c.Off), " ")
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		provable, proved, _, _ := r.proofCount(f)
		fmt.Fprintf(&b, " %d | %d/%d |\n", len(r.Untested(f)), proved, provable)
	}
	return b.String() + "\n" + r.Summary()
}

// UpdateReadme returns the text with the block between the markers replaced; ok is false when it
// has no such block.
func (r *Report) UpdateReadme(text string) (updated string, ok bool) {
	before, rest, found := strings.Cut(text, blockStart)
	if !found {
		return text, false
	}
	_, after, found := strings.Cut(rest, blockEnd)
	if !found {
		return text, false
	}
	return before + blockStart + r.Markdown() + blockEnd + after, true
}

// Readme reads the file, and says what it should be. A README that does not exist needs nothing.
func (r *Report) Readme(name string) (got, want string, err error) {
	data, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	want, ok := r.UpdateReadme(string(data))
	if !ok {
		return "", "", fmt.Errorf("%s has no block between the lines %s and %s", name, strings.TrimSpace(blockStart),
			strings.TrimSpace(blockEnd))
	}
	return string(data), want, nil
}
