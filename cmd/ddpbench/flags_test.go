package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/docgen"
	"github.com/rddp-go/rddp/internal/test/must"
)

var update = flag.Bool("update", false, "write the tables of docs/tools.md")

// Each flag of perftest is taken or refused with a reason, as the tables say.
func TestEveryFlagOfPerftest(t *testing.T) {
	var theirs []docgen.ForeignFlag
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/perftest.txt"))(t))) {
		f := docgen.ForeignFlag{}
		for name := range strings.FieldsSeq(line) {
			if long, ok := strings.CutPrefix(name, "--"); ok {
				f.Long = long
			} else {
				f.Short = name[1:]
			}
		}
		if f.Long != "help" {
			theirs = append(theirs, f)
		}
	}
	fs, o := cli.NewFlags("ddpbench"), &options{}
	o.addFlags(fs)
	must.OK(t, cli.Parse(fs, nil, os.Stdout, ""))
	docgen.Check(t, "../../docs/tools.md", "perftest", must.Get(docgen.FlagTables(fs, theirs, "ddpbench"))(t), *update)
	for _, f := range refusedFlags {
		given := "--" + f.Long
		if f.Short != "" {
			given = "-" + f.Short
		}
		out, errs, code := runBench(t, "write", "host", given)
		check.That(t, code == exitError && out == "" && strings.Contains(errs, f.Name()+": "+f.Why),
			"%s: exit %d, %q", given, code, errs)
	}
}
