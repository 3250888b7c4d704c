package sctp

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
)

// An option of the core that Config lacks, has under another default, or does not hand on could be set by nobody.
func TestConfigHasTheOptionsOfTheCore(t *testing.T) {
	fields := func(file string) string {
		_, rest, _ := strings.Cut(string(must.Get(os.ReadFile(file))(t)), "\ntype Config struct {\n")
		inside, _, _ := strings.Cut(rest, "\n}\n")
		return inside
	}
	check.That(t, strings.Contains(fields("config.go"), "\n"+fields("assoc/config.go")+"\n"), "copy the fields of assoc.Config, with their comments, to the beginning of Config")

	set := &Config{Events: 7}
	v := reflect.ValueOf(set).Elem()
	for i := range numOptions {
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i + 1))
		case reflect.Uint8, reflect.Uint16, reflect.Uint32:
			f.SetUint(uint64(i + 1))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), i, i))
		default:
			set.NewController = cc.NewCubic
		}
	}
	set.Core(func(c *assoc.Config) {
		core := reflect.ValueOf(c).Elem()
		for i := range numOptions {
			name := core.Type().Field(i).Name
			check.That(t, v.Type().Field(i).Name == name && !core.Field(i).IsZero(), "%s is not handed on", name)
		}
		*c = assoc.Config{OutStreams: c.OutStreams}
	})
	check.That(t, set.OutStreams == 1 && set.InStreams == 0 && set.Events == 7, "what comes back of the core: %+v", set)

	full, err := (*Config)(nil).Complete()
	check.That(t, err == nil && full.OutStreams == 10 && full.SackDelay != 0, "the defaults are %+v, %v", full, err)
	var bad *ConfigError
	_, err = (&Config{MTU: 1}).Complete()
	check.That(t, errors.As(err, &bad) && bad.Field == "MTU", "an option that cannot be: %v", err)
}
