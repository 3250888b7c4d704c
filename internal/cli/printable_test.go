package cli

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
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
}
