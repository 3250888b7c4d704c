package main

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/docgen"
	"github.com/rddp-go/rddp/internal/test/must"
)

var update = flag.Bool("update", false, "write the tables of docs/tools.md")

// Each flag of ping(8), of the committed list and of the ping that is installed here, is taken or
// refused with a reason, as the tables say.
func TestEveryFlagOfPing(t *testing.T) {
	b := must.Get(os.ReadFile("testdata/ping.txt"))(t)
	installed, _ := exec.Command("ping", "-h").CombinedOutput() // it may not be there, and its exit code is 2
	var theirs []docgen.ForeignFlag
	seen := map[string]bool{"h": true} // help is help
	for _, m := range regexp.MustCompile(`(?m)^  -(\w) `).FindAllStringSubmatch(string(b)+string(installed), -1) {
		if !seen[m[1]] {
			seen[m[1]] = true
			theirs = append(theirs, docgen.ForeignFlag{Short: m[1]})
		}
	}
	fs := cli.NewFlags("ddpping")
	(&options{}).addFlags(fs, &markFlags{})
	must.OK(t, cli.Parse(fs, nil, os.Stdout, ""))
	docgen.Check(t, "../../docs/tools.md", "ping", must.Get(docgen.FlagTables(fs, theirs, "ddpping"))(t), *update)
	for _, f := range refusedFlags {
		code, out, errs := runTool(t.Context(), "-"+f.Short, "host")
		check.That(t, code == exitError && out == "" && strings.Contains(errs, "-"+f.Short+": "+f.Why),
			"-%s: exit %d, %q", f.Short, code, errs)
	}
}
