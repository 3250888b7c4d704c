package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestEveryRequirementHasItsTest(t *testing.T) {
	r := must.Get(Examine(".", "../.."))(t)
	for _, f := range r.Faults {
		t.Error(f)
	}
}

func TestReadmeShowsTheTable(t *testing.T) {
	r := must.Get(Examine(".", "../.."))(t)
	got, want := must.Two(r.Readme("README.md"))(t)
	if got == want {
		return
	}
	const what = "the table in test/conformance/README.md is not up to date; run: make conformance"
	if os.Getenv("CI") == "" { // while work goes on the table may be behind; at the gate it is right
		t.Log(what)
		return
	}
	t.Error(what)
}

func TestCited(t *testing.T) {
	for _, c := range []struct{ name, comment, want string }{
		{"one", "req 9260-5.2.4-3", "9260-5.2.4-3"},
		{"with a remark", "req 9260-5.2.4-3: a new association", "9260-5.2.4-3"},
		{"a list over two lines", "req 5041-4.1-2, 5041-4.2-2,\n5041-4.2-5: all", "5041-4.1-2 5041-4.2-2 5041-4.2-5"},
		{"and", "req 9260-A-1 and 9260-A-2", "9260-A-1 9260-A-2"},
		{"of drafts", "req dtlschunk-4.2-1, dtlskeys-6.2.4-1: a remark", "dtlschunk-4.2-1 dtlskeys-6.2.4-1"},
		{"two lists", "req 9260-6.1-2: zero; req 9260-6.1-3: not zero", "9260-6.1-2 9260-6.1-3"},
		{"a mention is no citation", "unlike 9260-6.1-2, this", ""},
		{"a list ends with the text", "req 9260-6.1-2, as opposed to 9260-6.1-3", "9260-6.1-2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Equal(t, "what is cited", strings.Join(Cited(c.comment), " "), c.want)
		})
	}
}

func TestOnlyCommentsInsideTestsCount(t *testing.T) {
	src := `package p
// req 9260-1-1
// req 9260-1-2
func TestA(t *testing.T) {
	// req 9260-1-3
	t.Run("x", func(t *testing.T) {
		check(t) // req 9260-1-4
	})
	_ = "req 9260-1-9"
}
// req 9260-1-5
func check(t *testing.T) {
	// req 9260-1-6
}
func FuzzB(f *testing.F) {
	// req 9260-1-7
}
func BenchmarkC(b *testing.B) {
	// req 9260-1-8
}
`
	cites := must.Get(citationsOf("p_test.go", src))(t)
	var got []string
	for _, c := range cites {
		got = append(got, c.ID[len("9260-1-"):]+c.Test)
	}
	check.Equal(t, "citations", strings.Join(got, " "), "1 2 3TestA 4TestA 5 6 7FuzzB 8")
}

// aFile has one MUST row per layer given.
func aFile(rfc string, layers ...string) File {
	f := File{RFC: rfc, Set: "s"}
	for i, l := range layers {
		f.Rows = append(f.Rows, Row{ID: fmt.Sprintf("%s-1-%d", rfc, i+1), Section: "1", Level: "MUST", Layer: l,
			Text: "Do it."})
	}
	return f
}

func TestMistakesInTheTablesAreFound(t *testing.T) {
	const reason = "because nothing can reach it"
	many := slices.Repeat([]string{"sctp"}, 21)
	cite := func(ids ...string) (list []Citation) {
		for _, id := range ids {
			list = append(list, Citation{ID: id, Test: "TestX"})
		}
		return list
	}
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprintf("7000-1-%d", i+1))
	}
	for _, c := range []struct {
		name    string
		file    File
		waivers map[string]string
		cites   []Citation
		want    string // in the only fault; empty: none
	}{
		{"cited", aFile("7000", "sctp"), nil, cite("7000-1-1"), ""},
		{"not cited", aFile("7000", "sctp"), nil, nil, "7000-1-1: neither cited nor waived"},
		{"unknown id", aFile("7000"), nil, cite("7000-1-1"), "no row"},
		{"cited outside of a test", aFile("7000", "sctp"), nil, append(cite("7000-1-1"), Citation{ID: "7000-1-1"}), "outside of a test"},
		{"waiver with reason", aFile("7000", many...), map[string]string{"7000-1-21": reason}, cite(all...), ""},
		{"waiver without reason", aFile("7000", many...), map[string]string{"7000-1-21": "later"}, cite(all...), "no reason"},
		{"waiver of a cited row", aFile("7000", many...), map[string]string{"7000-1-1": reason}, cite(append(all, "7000-1-21")...), "a test cites it"},
		{"waiver of an unknown row", aFile("7000"), map[string]string{"7000-1-1": reason}, nil, "no such row"},
		{"proved, and said not to be", aFile("7000", many[:20]...), nil, cite(all...), "is proved"},
		{"said not to be proved, and not cited", aFile("7000", many...), map[string]string{"off:7000": reason}, append(cite("7000-1-21"), cite(all[1:]...)...), "no row that is to be proved"},
		{"too many that cannot be proved", aFile("7000", many[:19]...), nil, cite(all[:19]...), "more than 5 %"},
		{"5 % waived", aFile("7000", many[:20]...), map[string]string{"7000-1-20": reason}, cite(all[:19]...), "5 % or more"},
		{"layer n/a waived whole", aFile("7000", "n/a", "n/a"), map[string]string{"layer:n/a": reason}, nil, ""},
		{"a waived layer may be tested", aFile("7000", "app", "app"), map[string]string{"layer:app": reason}, cite("7000-1-1"), ""},
		{"layer sctp is not waived whole", aFile("7000", "sctp"), map[string]string{"layer:sctp": reason}, cite("7000-1-1"), "only layers"},
		{"two rows with one id", aFile("7000", "sctp"), nil, cite("7000-1-1"), "two rows"},
		{"an RFC that is not offered", aFile("7000", many...), map[string]string{"off:7000": reason}, nil, ""},
		{"a section that is not offered", aFile("7000", many...), map[string]string{"off:7000-1": reason}, nil, ""},
		{"a row that is not offered", aFile("7000", "sctp"), map[string]string{"off:7000-1-1": reason}, nil, ""},
		{"another row with the same beginning", aFile("7000", many[:10]...), map[string]string{"off:7000-1-1": reason}, cite(all[1:9]...), "7000-1-10: neither cited nor waived"},
		{"not offered, but tested", aFile("7000", "sctp", "sctp"), map[string]string{"off:7000": reason}, cite("7000-1-1"), ""},
		{"not offered without reason", aFile("7000", "sctp"), map[string]string{"off:7000": "later"}, nil, "no reason"},
		{"nothing left that is not offered", aFile("7000", "sctp"), map[string]string{"off:7000": reason}, cite("7000-1-1"), "no row without a test"},
		{"what is not offered makes no room for waivers", aFile("7000", many[:20]...),
			map[string]string{"7000-1-1": reason, "off:7000-1-2": reason}, cite(all[2:]...), "5 % or more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := []File{c.file}
			if c.want == "two rows" {
				list = append(list, c.file)
			}
			r := newReport(list, c.waivers, c.cites)
			if strings.Contains(c.name, "proved") {
				r.proved, r.noProof = map[string]bool{"7000-1-1": c.want == "is proved"},
					map[string]string{"7000-1-1": reason}
				r.checkNoProof()
			}
			switch {
			case c.want == "" && len(r.Faults) > 0:
				t.Errorf("faults %q", r.Faults)
			case c.want != "" && (len(r.Faults) != 1 || !strings.Contains(r.Faults[0], c.want)):
				t.Errorf("faults %q, want %q", r.Faults, c.want)
			}
		})
	}
}

func TestRowsThatAreNotOfferedAreNotCounted(t *testing.T) {
	r := newReport([]File{aFile("7000", "sctp", "sctp", "n/a")},
		map[string]string{"off:7000": "this code does not do that"},
		[]Citation{{ID: "7000-1-1", Test: "TestX"}})
	check.Equal(t, "MUST", r.Count(r.Files[0])["MUST"], (Count{Rows: 1, Tested: 1, Off: 2}))
	for _, table := range []string{r.Table(), r.Markdown()} {
		check.That(t, strings.Contains(table, "(not offered)") &&
			strings.Contains(table, "not counted: 2\nuntested: 0  waived: 0  rows: 1\n"), "%s", table)
	}
}

func TestUpdateReadme(t *testing.T) {
	r := newReport([]File{aFile("7000", "sctp", "sctp", "n/a")},
		map[string]string{"layer:n/a": "not for this code at all"},
		[]Citation{{ID: "7000-1-1", Test: "TestX"}})
	got, ok := r.UpdateReadme("a\n<!-- conformance -->\nyesterday\n<!-- /conformance -->\nb\n")
	check.That(t, ok && !strings.Contains(got, "yesterday") && strings.HasPrefix(got, "a\n") &&
		strings.HasSuffix(got, "\nb\n") &&
		strings.Contains(got, "| 1+1/3 |") && strings.Contains(got, "untested: 1  waived: 1  rows: 3\n"), "%v, %q",
		ok, got)
	again, ok := r.UpdateReadme(got)
	check.That(t, ok && again == got, "a second update changes the text: %q", again)
	_, ok = r.UpdateReadme("no block")
	check.That(t, !ok, "a text without a block was updated")
}
