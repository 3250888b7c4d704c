package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestHelpsAreUpToDate(t *testing.T) {
	want := must.Get(generateHelps("../../.."))(t)
	got, err := os.ReadFile("../../helps.go")
	check.That(t, err == nil && bytes.Equal(got, want),
		"helps.go is not what the comments say now (%v): run go generate ./metrics", err)
}
