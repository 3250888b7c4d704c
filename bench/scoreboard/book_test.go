package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/bench/machine"
	"github.com/rddp-go/rddp/internal/test/must"
)

// What one machine has measured stays when another one, or the same, measures something else.
func TestTheBookKeepsWhatWasNotMeasuredAgain(t *testing.T) {
	write, pump, cold := ddpbenchSpec("write", "raw", lo64K, big), pumpOver("raw", lo64K),
		withColdMemory(ddpbenchSpec("write", "raw", lo64K, big))
	b := new(book)
	for _, run := range []struct {
		cpu, commit, want string
		results           map[spec][]*figures
	}{
		{"A", "old", "0 0 1 not measured since the last change", map[spec][]*figures{write: figuresOfGBps(3), pump: figuresOfGBps(5), cold: figuresOfGBps(2)}},
		{"B", "new", "1 1 1 met", map[spec][]*figures{write: figuresOfGBps(4), pump: figuresOfGBps(5)}},
		{"A", "new", "2 1 0 not met", map[spec][]*figures{write: figuresOfGBps(3), pump: figuresOfGBps(5)}},
	} {
		bd := boardOf(run.results)
		bd.Machine = machine.Machine{CPU: run.cpu, CPUs: 2, Commit: run.commit}
		b.addBoard(bd)
		b.markStale(func(commit string, _ []spec) bool { return commit == "old" })
		var doc bytes.Buffer
		b.writeDocument(&doc)
		var err error
		if b, err = readBook(doc.Bytes()); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(b.summaryTable()[1][2:], " ")
		must.That(t, got == run.want, "after a run of %s on %s: %s", run.commit, run.cpu, got)
	}
	a := b.blockOf("2 x A")
	must.That(t, len(b.blocks) == 2 && len(a.runs) == 2 && len(a.rows[bulkRows]) == 3 &&
		a.rows[bulkRows][2].commitOf() == "old", "%d blocks, %+v", len(b.blocks), a)
}

// A row is stale also if what changed is a package of internal that the measured ones import.
func TestWhatTheLibraryIsBuiltOnIsKnown(t *testing.T) {
	const internal = "github.com/rddp-go/rddp/internal/"
	var want []string
	list := exec.Command("go", "list", "-deps", "./sctp", "./rdma", "./compat", "./rawio/raw", "./rawio/udp",
		"./rawio/tun", "./rawio/mem")
	list.Dir = "../.."
	for pkg := range strings.Lines(string(must.Get(list.Output())(t))) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(pkg), internal); ok {
			want = append(want, "internal/"+name)
		}
	}
	slices.Sort(want)
	must.That(t, slices.Equal(below, want), "below is %v, want %v", below, want)
}

// A row is stale as soon as a line of code that it measures is another, and not before.
func TestWhatMakesARowStale(t *testing.T) {
	t.Chdir(t.TempDir())
	commit := func(file, text string) string {
		must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)))
		const git = "git init -q && git add . && git -c user.name=x -c user.email=x@example.org commit -q -m x " +
			"&& git rev-parse HEAD"
		return machine.Said("sh", "-c", git)
	}
	first := commit("sctp/a.go", "package sctp\n")
	before := first
	about := []spec{sctpSpec("udp", lo1500, mid), sctpSpec("udp", lo1500, page), tcpSpec(lo1500, mid)}
	for _, test := range []struct {
		file, text string
		stale      bool
	}{
		{"README", "words", false},
		{"sctp/a_test.go", "package sctp\n", false},
		{"sctp/a.go", "// Package sctp has a comment.\npackage sctp\n", false},
		{"internal/test/baseline/a.go", "package pump\n", false},
		{"internal/prefetch/a.go", "package ahead\n", true},
		{"internal/prefetch/a.s", "// func f()\n", false},
		{"internal/prefetch/a.s", "TEXT f(SB)\n", true},
		{"sctp/a.go", "package sctp // and code\n\nvar x int\n", true},
	} {
		here := commit(test.file, test.text)
		h := newHistory()
		must.That(t, h.isStale(before, about) == test.stale && !h.isStale(here, about) && !h.isStale(first, about[2:]),
			"after %s with %q", test.file, test.text)
		before = here
	}
	if h := newHistory(); !h.isStale(strings.Repeat("a", 12), about) || !h.isStale(first+machine.Dirty, about[1:]) ||
		!h.isStale(machine.Commit(), nil) {
		t.Error("what nobody can look up is not known to be as it was")
	}
}
