package conformance

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Levels lists the levels in the order of the table. RULE is normative text without a keyword.
var Levels = []string{"MUST", "MUST NOT", "RULE", "SHOULD", "SHOULD NOT", "MAY"}

// Row is one requirement.
type Row struct {
	ID, Section string
	Level       string // one of Levels
	Layer       string // sctp, ddpadapt, mpa, ddp, rdma, rawio, app, n/a
	Side        string // sender, receiver, both, local
	Text        string
}

// Binding says whether the row needs a test or a waiver.
func (r *Row) Binding() bool {
	return r.Level == "MUST" || r.Level == "MUST NOT" || r.Level == "RULE"
}

// File is one RFC, or a draft.
type File struct {
	RFC, Subject string // the number of an RFC, or a short name of a draft
	Set          string // the RFCs of a set share one allowance of waivers
	Rows         []Row
}

// fileName is the name of its table.
func (f *File) fileName() string {
	if f.RFC[0] >= '0' && f.RFC[0] <= '9' {
		return "rfc" + f.RFC + ".tsv"
	}
	return "draft-" + f.RFC + ".tsv"
}

// Load reads every RFC listed in files from the folder dir.
func Load(dir string) ([]File, error) {
	list := slices.Clone(files)
	for i := range list {
		f := &list[i]
		name := filepath.Join(dir, f.fileName())
		lines, err := readTable(name, 6)
		if err != nil {
			return nil, err
		}
		for _, c := range lines {
			r := Row{c[0], c[1], c[2], c[3], c[4], c[5]}
			if !strings.HasPrefix(r.ID, f.RFC+"-"+r.Section+"-") || !slices.Contains(Levels, r.Level) || r.Text == "" {
				return nil, fmt.Errorf("%s: bad row %q", name, c)
			}
			f.Rows = append(f.Rows, r)
		}
	}
	return list, nil
}

// readReasons reads a table of two columns in dir: the reason by row id, in waivers.tsv by
// layer:name too for all rows of a layer.
func readReasons(dir, file string) (map[string]string, error) {
	name := filepath.Join(dir, file)
	lines, err := readTable(name, 2)
	if err != nil {
		return nil, err
	}
	w := make(map[string]string, len(lines))
	for _, c := range lines {
		if _, twice := w[c[0]]; twice {
			return nil, fmt.Errorf("%s: %s is there twice", name, c[0])
		}
		w[c[0]] = c[1]
	}
	return w, nil
}

// readTable reads the lines below the header of a tab-separated file, each with the given number of
// columns.
func readTable(name string, columns int) ([][]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines [][]string
	s := bufio.NewScanner(f)
	for header := true; s.Scan(); header = false {
		if c := strings.Split(s.Text(), "\t"); len(c) != columns {
			return nil, fmt.Errorf("%s: %d columns instead of %d: %q", name, len(c), columns, s.Text())
		} else if !header {
			lines = append(lines, c)
		}
	}
	return lines, s.Err()
}
