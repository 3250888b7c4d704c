package main

import (
	"fmt"
	"go/importer"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
)

const example = `# of what is counted

fault early
in a/b.go
by ./a/b ./a
proves 9260-1-1 a/b TestB
 	for i := range n {
-		if i > 3 {
+		if i >= 3 {
`

func TestFaultsAreParsedAndBrokenOnesRefused(t *testing.T) {
	list, err := parseFaults(example + "\nfault same\nin c.go\nby ./c\nequivalent nobody looks\n-\tx()\n")
	must.That(t, err == nil && len(list) == 2, "%v, %v", list, err)
	f, g := list[0], list[1]
	check.That(t, f.name == "early" && f.file == "a/b.go" && strings.Join(f.tests, " ") == "./a/b ./a" &&
		f.proves[0] == (proof{"9260-1-1", "a/b", "TestB"}) && f.equivalent == "", "%+v", f)
	check.That(t, f.old == "\tfor i := range n {\n\t\tif i > 3 {\n" &&
		f.new == "\tfor i := range n {\n\t\tif i >= 3 {\n",
		"%q becomes %q", f.old, f.new)
	check.That(t, g.equivalent == "nobody looks" && g.old == "\tx()\n" && g.new == "", "%+v", g)
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a line of no fault":           "in a.go\n",
		"a line of unknown kind":       example + "because\n",
		"a fault without a file":       "fault x\nby ./a\n-y\n",
		"a fault without packages":     "fault x\nin a.go\n-y\n",
		"a fault that changes nothing": "fault x\nin a.go\nby ./a\n y\n",
	} {
		_, err := parseFaults(text)
		check.That(t, err != nil, "%s is taken", name)
	}
}

func TestFaultIsAppliedWhereItsLinesStandOnce(t *testing.T) {
	f := &fault{file: "a.go", old: "\tx()\n", new: "\ty()\n"}
	for _, row := range []struct{ name, text, want string }{
		{"in the middle", "a\n\tx()\nb\n", "a\n\ty()\nb\n"},
		{"at the beginning", "\tx()\nb\n", "\ty()\nb\n"},
		{"lines that only end alike stay", "a\n\tif \tx()\n\tx()\n", "a\n\tif \tx()\n\ty()\n"},
	} {
		got, err := f.applyTo(row.text)
		check.That(t, err == nil && got == row.want, "%s: %q, %v", row.name, got, err)
	}
	for name, text := range map[string]string{
		"no such line":   "a\n",
		"twice":          "\tx()\na\n\tx()\n",
		"twice, at once": "\tx()\n\tx()\n",
	} {
		got, err := f.applyTo(text)
		check.That(t, err != nil, "%s: %q", name, got)
	}
}

// Every fault can still be made, in every layer: who changes lines that a fault changes lets it
// follow.
func TestFaultsApply(t *testing.T) {
	race.Alone(t)
	list := must.Get(loadFaults())(t)
	for _, err := range applyAll("../..", list) {
		t.Error(err)
	}
	check.OK(t, must.Get(readClaims("../.."))(t).checkProofs(list))
	count := make(map[string]int)
	for _, f := range list {
		count[f.layerOf()]++
	}
	for _, layer := range []string{"rawio", "sctp/wire", "sctp/internal/tsnset", "sctp/internal/rx", "sctp/internal/tx",
		"sctp/internal/pack", "sctp/internal/pmtud", "sctp/internal/reconfig", "sctp/internal/asconf", "sctp/cc", "sctp/assoc", "sctp/endpoint",
		"sctp", "ddp", "ddpadapt", "mpa",
		"rdma/rdmap", "rdma", "metrics"} {
		check.That(t, count[layer] >= 4, "%d faults in %s", count[layer], layer)
	}
}

// Every fault compiles: one that does not is noticed by no test. All of a package are checked at
// once; each that this says nothing good of is then checked alone.
func TestFaultsCompile(t *testing.T) {
	race.Alone(t)
	at := make(map[string][]*fault) // by package
	for _, f := range must.Get(loadFaults())(t) {
		at[path.Dir(f.file)] = append(at[path.Dir(f.file)], f)
	}
	for _, p := range must.Get(checkedOutTree("../..").loadPackages(slices.Sorted(maps.Keys(at))))(t) {
		for _, f := range p.doubtfulFaults(at[p.path]) {
			i := slices.Index(p.names, f.file)
			must.That(t, i >= 0, "%s is not built here", f.file)
			texts := slices.Clone(p.texts)
			if changed, err := f.applyTo(texts[i]); err == nil { // else TestFaultsApply says so
				texts[i] = changed
			}
			// what there was is woven in beside it
			if err := p.checkTypes(texts, nil); err != nil && !strings.HasSuffix(err.Error(), "imported and not used") {
				t.Errorf("fault %s: %v", f.name, err)
			}
		}
	}
}

// doubtfulFaults weaves the faults into the package. It returns those that cannot be woven or that
// no compiler takes, and all of them if it cannot tell.
func (p *typedPackage) doubtfulFaults(faults []*fault) (doubtful []*fault) {
	var texts []string
	for i, name := range p.names {
		w, err := newWeaver(p.texts[i])
		if err != nil {
			return faults
		}
		for _, f := range faults {
			if f.file == name && w.weaveFault(f) != nil {
				doubtful = append(doubtful, f)
			}
		}
		texts = append(texts, string(w.wovenFile()))
	}
	wrong := make(map[string]bool)
	if p.checkTypes(append(texts, switchFile(p.files[0].Name.Name)), wrong) != nil {
		return faults
	}
	for _, f := range faults {
		of := func(function string) bool { return strings.HasSuffix(function, fmt.Sprint("_fault", f.number)) }
		if !slices.Contains(p.names, f.file) || slices.ContainsFunc(slices.Collect(maps.Keys(wrong)), of) {
			doubtful = append(doubtful, f)
		}
	}
	return doubtful
}

// Faults that do not compile are told from those that do, woven in beside each other.
func TestFaultsThatDoNotCompileAreFound(t *testing.T) {
	p := &typedPackage{path: "a", names: []string{"a/a.go"}, fset: token.NewFileSet(), from: importer.Default(),
		texts: []string{"package a\n\nfunc two() int {\n\tn := 2\n\treturn n\n}\n\nvar three = 3\n"}}
	must.OK(t, p.checkTypes(p.texts, nil))
	made := []*fault{
		{name: "another number", old: "\tn := 2\n", new: "\tn := 3\n"},
		{name: "another type", old: "\treturn n\n", new: "\treturn \"n\"\n"},
		{name: "a name that is not there", old: "\treturn n\n", new: "\treturn m\n"},
		{name: "a variable that is not used", old: "\treturn n\n", new: "\treturn 2\n"},
		{name: "outside all functions", old: "var three = 3\n", new: "var three = 4\n"},
	}
	for i, f := range made {
		f.number, f.file = i+1, "a/a.go"
	}
	var names []string
	for _, f := range p.doubtfulFaults(made) {
		names = append(names, f.name)
	}
	check.Equal(t, "doubtful", strings.Join(names, ", "),
		"outside all functions, another type, a name that is not there, a variable that is not used")
}
