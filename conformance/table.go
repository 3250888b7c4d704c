package conformance

import (
	"fmt"
	"os"
	"strings"
)

// Count is where the rows of one level stand.
type Count struct{ Rows, Tested, Waived int }

// Untested counts the rows that nothing holds.
func (c Count) Untested() int { return c.Rows - c.Tested - c.Waived }

// Count counts the rows of a file by level.
func (r *Report) Count(f File) map[string]Count {
	counts := make(map[string]Count)
	for i := range f.Rows {
		row := &f.Rows[i]
		c := counts[row.Level]
		c.Rows++
		if r.tested(row) {
			c.Tested++
		}
		if r.waived(row) {
			c.Waived++
		}
		counts[row.Level] = c
	}
	return counts
}

// Summary is the last line of both tables.
func (r *Report) Summary() string {
	var untested, waived, rows int
	for _, f := range r.Files {
		untested += len(r.Untested(f))
		rows += len(f.Rows)
		for _, c := range r.Count(f) {
			waived += c.Waived
		}
	}
	return fmt.Sprintf("untested: %d  waived: %d  rows: %d\n", untested, waived, rows)
}

// Table has a line per RFC and level.
func (r *Report) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-4s  %-10s %5s %7s %7s %9s\n", "RFC", "level", "rows", "tested", "waived", "untested")
	for _, f := range r.Files {
		note, counts := f.title(), r.Count(f)
		for _, level := range Levels {
			c := counts[level]
			if c.Rows == 0 {
				continue
			}
			untested := fmt.Sprint(c.Untested())
			if level == "MAY" {
				untested = "-" // an option
			}
			line := fmt.Sprintf("%-4s  %-10s %5d %7d %7d %9s  %s", f.RFC, level, c.Rows, c.Tested, c.Waived, untested, note)
			fmt.Fprintln(&b, strings.TrimRight(line, " "))
			note = ""
		}
	}
	b.WriteString(r.Summary())
	return b.String()
}

func (f *File) title() string {
	if f.Pending {
		return f.Subject + " (pending)"
	}
	return f.Subject
}

const (
	blockStart = "<!-- conformance -->\n"
	blockEnd   = "<!-- /conformance -->\n"
)

// Markdown is the table for the README: a line per RFC, and per level the rows tested, waived (after +) and all.
func (r *Report) Markdown() string {
	var b strings.Builder
	b.WriteString("Rows that a test holds, + rows waived with a reason, / all rows.\n\n| RFC | subject | " + strings.Join(Levels, " | ") + " | untested |\n|---|---|" + strings.Repeat("---|", len(Levels)+1) + "\n")
	for _, f := range r.Files {
		fmt.Fprintf(&b, "| %s | %s |", f.RFC, f.title())
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
			fmt.Fprintf(&b, " %s |", cell)
		}
		fmt.Fprintf(&b, " %d |\n", len(r.Untested(f)))
	}
	return b.String() + "\n" + r.Summary()
}

// UpdateReadme returns the text with the block between the markers replaced; ok is false when it has no such block.
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
		return "", "", fmt.Errorf("%s has no block between the lines %s and %s", name, strings.TrimSpace(blockStart), strings.TrimSpace(blockEnd))
	}
	return string(data), want, nil
}
