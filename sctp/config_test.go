package sctp

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
)

// An option of the core that Config lacks, says something else of, or does not hand on could be set
// by nobody.
func TestConfigHasTheOptionsOfTheCore(t *testing.T) {
	fields := func(file string) string {
		_, rest, _ := strings.Cut(string(must.Get(os.ReadFile(file))(t)), "\ntype Config struct {\n")
		inside, _, _ := strings.Cut(rest, "\n}\n")
		return inside
	}
	core, _, _ := strings.Cut(fields("assoc/config.go"), "\n\n\t// Protected ") // which follows from TLS
	check.That(t, strings.Contains(fields("config.go"), "\n"+core+"\n"),
		"copy the fields of assoc.Config, with their comments, to the beginning of Config")

	cfg := &Config{OutStreams: 1, FlowLabel: 2, RFC9260: true, Events: 7}
	cfg.Upper().Change(func(c *assoc.Config) {
		check.That(t, c.OutStreams == 1 && c.FlowLabel == 2 && c.RFC9260, "the core gets %+v", c)
		c.OutStreams, c.NewController = 3, cc.NewCubic
	})
	check.That(t, cfg.OutStreams == 3 && cfg.NewController != nil && cfg.Events == 7, "what comes back is %+v", cfg)

	full := new(Config)
	err := full.Upper().Complete()
	check.That(t, err == nil && full.InStreams == 65535 && full.SackDelay != 0, "the defaults are %+v, %v", full, err)
	var bad *ConfigError
	err = (&Config{MTU: 1}).Upper().Complete()
	check.That(t, errors.As(err, &bad) && bad.Field == "MTU", "an option that cannot be: %v", err)
}
