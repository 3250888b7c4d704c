package main

import (
	"bytes"
	"os"
	"testing"
)

func TestHelpsAreUpToDate(t *testing.T) {
	want, err := generate("../../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../helps.go")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("helps.go is not what the comments say now (%v): run go generate ./metrics", err)
	}
}
