package main

import (
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/testns"
)

func TestTalk(t *testing.T) {
	testns.New(t).Do(func() error {
		if err := listen(":5000"); err != nil {
			return err
		}
		var out strings.Builder
		err := call(t.Context(), "localhost:5000", &out)
		check.That(t, out.String() == "\"hello\" on stream 3\n", "%q", out.String())
		return err
	})
}
