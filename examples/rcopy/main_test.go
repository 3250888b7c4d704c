package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestCommandLineMistakesAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	must.OK(t, os.WriteFile(file, []byte("x"), 0o600))
	for _, test := range []struct {
		name string
		args []string
		code int
		text string // on standard error, or on standard output without an error; one of several
	}{
		{"help", []string{"--help"}, exitWell, "Usage: rcopy"},
		{"nothing", nil, exitError, "FILE and HOST are needed"},
		{"no host", []string{file}, exitError, "FILE and HOST are needed"},
		{"too much", []string{file, "h", "x"}, exitError, "FILE and HOST are needed"},
		{"a server with a host", []string{"-l", file, "h"}, exitError, "takes no FILE"},
		{"no such flag", []string{"--frob"}, exitError, "unknown flag"},
		{"no such file", []string{file + "x", "127.0.0.1"}, exitError, "no such file"},
		{"a directory", []string{filepath.Dir(file), "127.0.0.1"}, exitError, "not a regular file"},
		{"a name with a path", []string{file, "127.0.0.1:a/b"}, exitError, "only a plain name"},
		{"no patience", []string{"-w", "0", file, "h"}, exitError, "-w 0: it is a time in seconds, from 0.001 to 1000000"},
		{"port 0", []string{"-p", "0", file, "h"}, exitError, "-p 0: it is a port, from 1 to 65535"},
		{"a size that is none", []string{"-l", "--max-size", "9P"}, exitError, "--max-size 9P: it is a number of bytes, such as 4096, 64K or 1M, from 0 to 4194304T"},
		{"a directory that is none", []string{"-l", "--dir", file + "x"}, exitError, "no such file"},
		{"no such link", []string{"--link", "ether", file, "127.0.0.1"}, exitError, "one of raw, udp, tun"},
		// A system that passes on ICMP knows at once.
		{"nobody there", []string{"--link", "udp", "--local", "127.0.0.1", "--encap-port", "1", "-w", "5", file, "127.0.0.1"}, exitFailed, "start the server|no answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(context.Background(), test.args, &stdout, &stderr, nil)
			out := stderr.String()
			if test.code == exitWell {
				out = stdout.String()
			}
			said := slices.ContainsFunc(strings.Split(test.text, "|"), func(s string) bool {
				return strings.Contains(out, s)
			})
			check.That(t, code == test.code && said, "exit code %d and %q, want %d and %q", code, out, test.code,
				test.text)
		})
	}
}

func TestSplitTarget(t *testing.T) {
	for _, test := range []struct{ in, host, name string }{
		{"host", "host", ""}, {"host:f", "host", "f"}, {"host:f:g", "host", "f:g"}, {"10.0.0.1:f", "10.0.0.1", "f"},
		{"fd77::2", "fd77::2", ""}, {"[fd77::2]", "fd77::2", ""}, {"[fd77::2]:f", "fd77::2", "f"}, {"[fe80::1%eth0]:f", "fe80::1%eth0", "f"},
	} {
		host, name := splitTarget(test.in)
		check.That(t, host == test.host && name == test.name, "%s: %q and %q, want %q and %q", test.in, host, name,
			test.host, test.name)
	}
}
