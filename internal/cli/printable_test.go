package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

func TestPrintable(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"letters and spaces stay", "Füße in 3 s", "Füße in 3 s"},
		{"a terminal's command shows", "a\x1b[2J", "a\uFFFD[2J"},
		{"a line stays one line", "a\nb\r", "a\uFFFDb\uFFFD"},
		{"what changes the direction of writing shows", "a\u202eb", "a\uFFFDb"},
		{"what is not UTF-8 shows", "a\xff", "a\uFFFD"},
	} {
		check.Equal(t, test.name, Printable(test.in), test.want)
	}
	check.Equal(t, "lines", PrintableLines("a\tb\n\x1b[2J\r\u009bc\n"), "a\tb\n\uFFFD[2J\uFFFD\uFFFDc\n")
	for name, err := range map[string]error{"an error": errors.New("its text: \x1b]0;x\x07\u009b2J\u202e"),
		"an error within": fmt.Errorf("a: %w", Usagef("b\x1bc")),
		"two errors":      errors.Join(errors.New("a"), errors.New("b\x1b"))} {
		s := Explain(err)
		check.That(t, s == Printable(s) && !strings.Contains(s, "\n"),
			"%s, as it is explained, has what a terminal obeys: %q", name, s)
	}
	check.Equal(t, "two errors", Explain(errors.Join(errors.New("a"), errors.New("b"))), "a; b")
}
