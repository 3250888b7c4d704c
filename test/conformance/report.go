package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// files lists the RFCs, those that matter most first.
var files = []File{
	{RFC: "9260", Subject: "SCTP, with the I bit of RFC 7053", Set: "sctp"},
	{RFC: "5061", Subject: "adaptation indication, addresses that change", Set: "sctp"},
	{RFC: "6951", Subject: "UDP encapsulation", Set: "sctp"},
	{RFC: "8899", Subject: "packetization layer PMTU discovery", Set: "sctp"},
	{RFC: "8261", Subject: "SCTP over DTLS", Set: "sctp"},
	{RFC: "4820", Subject: "padding", Set: "sctp"},
	{RFC: "7829", Subject: "potentially failed paths", Set: "sctp"},
	{RFC: "5043", Subject: "DDP over SCTP", Set: "rdma"},
	{RFC: "5041", Subject: "DDP", Set: "rdma"},
	{RFC: "5040", Subject: "RDMAP", Set: "rdma"},
	{RFC: "5044", Subject: "DDP over TCP (MPA)", Set: "rdma"},
	{RFC: "6581", Subject: "enhanced connection setup", Set: "rdma"},
	{RFC: "7306", Subject: "atomics, immediate data", Set: "rdma"},
	{RFC: "5042", Subject: "security of DDP and RDMAP", Set: "rdma"},
	{RFC: "3758", Subject: "partial reliability", Set: "extensions"},
	{RFC: "6525", Subject: "stream reconfiguration", Set: "extensions"},
	{RFC: "7496", Subject: "policies of partial reliability", Set: "extensions"},
	{RFC: "8260", Subject: "interleaving, schedulers", Set: "extensions"},
	{RFC: "9653", Subject: "zero checksum", Set: "extensions"},
	{RFC: "4895", Subject: "authentication", Set: "extensions"},
	{RFC: "dtlschunk", Subject: "DTLS chunk, draft-ietf-tsvwg-sctp-dtls-chunk", Set: "encryption"},
	{RFC: "dtlskeys", Subject: "its keys, draft-porfiri-tsvwg-sctp-dtls-handshake", Set: "encryption"},
}

// maxWaived is the share of a set's binding rows, in percent, that waivers must stay below.
const maxWaived = 5

// Report says where each RFC stands.
type Report struct {
	Files  []File
	Faults []string // what go test ./test/conformance fails for

	rows    map[string]*Row
	cited   map[string]bool
	waivers map[string]string // reason by row id or layer:name
	proved  map[string]bool   // by row id
	noProof map[string]string // reason by row id
	off     []string          // scopes of extensions that are not offered, see offPrefix
}

// Examine reads the rows and waivers in dir and the tests below root.
func Examine(dir, root string) (*Report, error) {
	files, err := Load(dir)
	if err != nil {
		return nil, err
	}
	waivers, err := readReasons(dir, "waivers.tsv")
	if err != nil {
		return nil, err
	}
	cites, err := Citations(root)
	if err != nil {
		return nil, err
	}
	r := newReport(files, waivers, cites)
	if r.proved, err = collectProofs(root); err != nil {
		return nil, err
	}
	if r.noProof, err = readReasons(dir, "unprovable.tsv"); err != nil {
		return nil, err
	}
	r.checkNoProof()
	return r, nil
}

func newReport(files []File, waivers map[string]string, cites []Citation) *Report {
	r := &Report{Files: files, rows: make(map[string]*Row), cited: make(map[string]bool), waivers: waivers}
	for i := range files {
		for j := range files[i].Rows {
			row := &files[i].Rows[j]
			if r.rows[row.ID] != nil {
				r.addFault("%s: two rows", row.ID)
			}
			r.rows[row.ID] = row
		}
	}
	for id := range waivers {
		if scope, ok := strings.CutPrefix(id, offPrefix); ok {
			r.off = append(r.off, scope)
		}
	}
	for _, c := range cites {
		switch {
		case r.rows[c.ID] == nil:
			r.addFault("%v: cites %s, which is no row", c.Pos, c.ID)
		case c.Test == "":
			r.addFault("%v: cites %s outside of a test function; cite it where it is tested", c.Pos, c.ID)
		default:
			r.cited[c.ID] = true
		}
	}
	r.checkWaivers()
	r.checkSets()
	for _, f := range files {
		for _, row := range r.Untested(f) {
			if row.Binding() {
				r.addFault("%s: neither cited nor waived: %s", row.ID, row.Text)
			}
		}
	}
	slices.Sort(r.Faults)
	return r
}

func (r *Report) checkWaivers() {
	layers := make(map[string]bool)
	for _, row := range r.rows {
		layers[row.Layer] = true
	}
	for id, reason := range r.waivers {
		layer, wholesale := strings.CutPrefix(id, "layer:")
		scope, off := strings.CutPrefix(id, offPrefix)
		switch {
		case len(strings.Fields(reason)) < 4:
			r.addFault("waiver of %s: no reason", id)
		case wholesale && layer != "n/a" && layer != "app":
			r.addFault("waiver of %s: only layers n/a and app are waived as a whole", id)
		case off && r.hasNoRows(scope):
			r.addFault("%s: no row without a test", id)
		case off:
		case wholesale && !layers[layer], !wholesale && r.rows[id] == nil:
			r.addFault("waiver of %s: no such row", id)
		case r.cited[id]:
			r.addFault("waiver of %s: a test cites it", id)
		}
	}
}

// hasNoRows reports whether an extension that is not offered has no rows left to say so for.
func (r *Report) hasNoRows(scope string) bool {
	for id, row := range r.rows {
		if scopeCovers(scope, id) && !r.isTested(row) {
			return false
		}
	}
	return true
}

// checkSets holds the number of waived binding rows of each set down. Rows of a layer waived as a
// whole, and of extensions that are not offered, are no concern of the code here and do not count.
func (r *Report) checkSets() {
	binding, waived := make(map[string]int), make(map[string]int)
	for _, f := range r.Files {
		for i := range f.Rows {
			row := &f.Rows[i]
			if _, whole := r.waivers["layer:"+row.Layer]; whole || !row.Binding() || r.Off(row) {
				continue
			}
			binding[f.Set]++
			if _, ok := r.waivers[row.ID]; ok {
				waived[f.Set]++
			}
		}
	}
	for set, n := range waived {
		if n*100 >= binding[set]*maxWaived {
			r.addFault("set %s: %d of %d binding rows waived, which is %d %% or more", set, n, binding[set], maxWaived)
		}
	}
}

func (r *Report) addFault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

func (r *Report) isTested(row *Row) bool { return r.cited[row.ID] }

// isWaived is false for a row that is tested all the same, or not offered.
func (r *Report) isWaived(row *Row) bool {
	_, alone := r.waivers[row.ID]
	_, layer := r.waivers["layer:"+row.Layer]
	return !r.isTested(row) && !r.Off(row) && (alone || layer)
}

// Untested lists the rows of a file that have neither test nor waiver; MAY rows are options and
// never among them.
func (r *Report) Untested(f File) []*Row {
	var list []*Row
	for i := range f.Rows {
		if row := &f.Rows[i]; row.Level != "MAY" && !r.isTested(row) && !r.isWaived(row) && !r.Off(row) {
			list = append(list, row)
		}
	}
	return list
}
