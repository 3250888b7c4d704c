package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestDataArrives(t *testing.T) {
	var said strings.Builder
	if err := runPeers(&said, 4<<20); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(said.String(), "4 MB in ") {
		t.Errorf("it says %q", said.String())
	}
}

// The example would show the original without its replace lines.
func TestTheStackIsOurs(t *testing.T) {
	c := exec.Command("go", "list", "-m", "-f", "{{.Replace.Path}}", "github.com/pion/sctp")
	c.Env = append(os.Environ(), "GOWORK=off")
	out, err := c.Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != "../../compat/pion" {
		t.Errorf("github.com/pion/sctp is %q (%v)", got, err)
	}
}
