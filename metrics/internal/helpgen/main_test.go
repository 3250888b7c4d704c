package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/rddp-go/rddp/internal/must"
)

func TestHelpsAreUpToDate(t *testing.T) {
	want := must.Get(generate("../../.."))(t)
	got, err := os.ReadFile("../../helps.go")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("helps.go is not what the comments say now (%v): run go generate ./metrics", err)
	}
}
