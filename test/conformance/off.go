package conformance

import "strings"

// offPrefix begins the id of a line in waivers.tsv about an extension that is not offered: off:NNNN
// for a whole RFC, off:NNNN-section for a section and those below it, off:id for a row. A peer is
// never told of such an extension, so its rules bind nobody: rows without a test are left out of
// the counts. What the codec or another extension needs of it is tested, and counts.
const offPrefix = "off:"

// scopeCovers reports whether a row lies in the RFC or the section, or is the row, that scope
// names.
func scopeCovers(scope, id string) bool {
	rest, ok := strings.CutPrefix(id, scope)
	return ok && (rest == "" || rest[0] == '-' || rest[0] == '.')
}

// Off is whether the row belongs to an extension that is not offered.
func (r *Report) Off(row *Row) bool {
	if r.isTested(row) {
		return false
	}
	for _, scope := range r.off {
		if scopeCovers(scope, row.ID) {
			return true
		}
	}
	return false
}

// isOffered reports whether rows of the file other than those cited are to be held.
func (r *Report) isOffered(f *File) bool {
	for _, scope := range r.off {
		if scope == f.RFC {
			return false
		}
	}
	return true
}
