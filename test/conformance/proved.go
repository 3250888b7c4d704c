package conformance

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// Where a row stands that a test cites: a fault that violates it is known to be caught by such a
// test, there can be none, or the citation is all there is. make proofs tries the faults; what they
// prove stands in their files.
const (
	Proved    = "proved"
	NoProof   = "no proof"
	OnlyCited = "only cited"
)

// maxNoProof is the share of the rows that are to be proved, in percent, for which there may be no
// fault.
const maxNoProof = 5

// Provable reports whether a row is to be proved: a MUST or MUST NOT that a test cites.
func (r *Report) Provable(row *Row) bool {
	return (row.Level == "MUST" || row.Level == "MUST NOT") && r.isTested(row)
}

// State says where a row stands that a test cites.
func (r *Report) State(row *Row) string {
	switch {
	case r.proved[row.ID]:
		return Proved
	case r.noProof[row.ID] != "":
		return NoProof
	}
	return OnlyCited
}

// collectProofs collects the rows that the faults below root prove.
func collectProofs(root string) (map[string]bool, error) {
	names, err := filepath.Glob(filepath.Join(root, "test", "mutants", "faults", "*.txt"))
	if err != nil {
		return nil, err
	}
	rows := make(map[string]bool)
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		for s.Scan() {
			if rest, ok := strings.CutPrefix(s.Text(), "proves "); ok {
				id, _, _ := strings.Cut(rest, " ")
				rows[id] = true
			}
		}
		if err := s.Err(); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// checkNoProof looks at the rows for which there can be no fault.
func (r *Report) checkNoProof() {
	all := 0
	for _, row := range r.rows {
		if r.Provable(row) {
			all++
		}
	}
	for id, reason := range r.noProof {
		switch row := r.rows[id]; {
		case row == nil || !r.Provable(row):
			r.addFault("unprovable.tsv: %s is no row that is to be proved", id)
		case r.proved[id]:
			r.addFault("unprovable.tsv: %s is proved", id)
		case len(strings.Fields(reason)) < 4:
			r.addFault("unprovable.tsv: %s: no reason", id)
		}
	}
	if n := len(r.noProof); n*100 > all*maxNoProof {
		r.addFault("unprovable.tsv: %d of %d rows, which is more than %d %%", n, all, maxNoProof)
	}
}

// proofCount counts of a file, or of all, the rows that are to be proved, those of them that are or
// cannot be, and the proved rows of any level.
func (r *Report) proofCount(files ...File) (provable, proved, none, any int) {
	for _, f := range files {
		for i := range f.Rows {
			row := &f.Rows[i]
			state := r.State(row)
			if state == Proved {
				any++
			}
			if !r.Provable(row) {
				continue
			}
			provable++
			switch state {
			case Proved:
				proved++
			case NoProof:
				none++
			}
		}
	}
	return
}
