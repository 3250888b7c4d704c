package main

import (
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/testns"
)

func TestTalk(t *testing.T) {
	testns.New(t).Do(func() error {
		if err := listen(":5000"); err != nil {
			return err
		}
		var out strings.Builder
		err := call(t.Context(), "localhost:5000", &out)
		if out.String() != "hello on stream 3\n" {
			t.Errorf("%q", out.String())
		}
		return err
	})
}
