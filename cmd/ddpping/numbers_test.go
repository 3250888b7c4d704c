package main

import (
	"io"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/cli/flagtest"
)

// No number of the command line means anything else than what it says.
func TestEveryNumberHasARange(t *testing.T) {
	flagtest.CheckNumbers(t, func() *pflag.FlagSet {
		fs, o := cli.NewFlags("ddpping"), &options{}
		o.addFlags(fs, &markFlags{})
		o.link.Add(fs)
		o.metrics.Add(fs)
		return fs
	}, func(args ...string) error {
		_, err := parseArgs(append(args, "host"), io.Discard)
		return err
	})
}
