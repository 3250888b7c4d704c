package main

import (
	"os/exec"
	"slices"
	"strings"

	"github.com/rddp-go/rddp/bench/machine"
)

// codeLine matches a line of code that is more than a comment.
const codeLine = `^[[:space:]]*([^/[:space:]]|/[^/])`

// history answers from the repository in the working directory.
type history struct {
	known map[string]bool
}

func newHistory() *history { return &history{known: make(map[string]bool)} }

// isStale reports whether what specs measure has changed since commit, or may have. No specs:
// nothing measures it any more.
func (h *history) isStale(commit string, about []spec) bool {
	if len(about) == 0 || strings.HasSuffix(commit, machine.Dirty) || strings.HasPrefix(commit, "-") {
		return true
	}
	var paths []string
	for _, s := range about {
		paths = append(paths, s.codeFolders()...)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	key := commit + " " + strings.Join(paths, " ")
	old, ok := h.known[key]
	if !ok {
		old = codeChanged(commit, paths)
		h.known[key] = old
	}
	return old
}

// codeChanged reports whether a line of code in one of paths is not as it was in commit.
func codeChanged(commit string, paths []string) bool {
	if exec.Command("git", "merge-base", "--is-ancestor", commit, "HEAD").Run() != nil {
		return true // of another history, or none
	}
	if len(paths) == 0 {
		return false
	}
	args := append([]string{"log", "-1", "--format=%H", "-G" + codeLine, commit + "..HEAD", "--"}, paths...)
	out, err := exec.Command("git", append(args, ":(top,exclude,glob)**/*_test.go")...).Output()
	return err != nil || len(out) > 0
}

// below are the packages of internal that the library is built on.
var below = []string{
	"internal/counters", "internal/crc32c", "internal/grace", "internal/hostaddr",
	"internal/invariant", "internal/kernelsctp", "internal/limits", "internal/mutualtls", "internal/overlap",
	"internal/pollpolicy", "internal/portregistry", "internal/prefetch", "internal/quota", "internal/readrole",
	"internal/sparse",
}

// codeFolders are those of the code that a spec measures, as git has them. Programs of others have
// none.
func (s spec) codeFolders() (list []string) {
	add := func(dirs ...string) {
		for _, d := range dirs {
			list = append(list, ":(top,glob)"+d+"/**/*.go", ":(top,glob)"+d+"/**/*.s")
		}
	}
	if s.Link == linkTCP {
		add("mpa", "ddp", "rdma")
		add(below...)
		return append(list, ":(top,glob)rawio/*.go")
	}
	switch s.Peer {
	case "pump":
		add("internal/test/baseline")
	case "sctp":
		add("sctp")
	case "ddpbench", "rdma":
		add("sctp", "ddp", "ddpadapt", "rdma")
	case "diameter":
		if s.Link == "" {
			return nil
		}
		add("sctp", "compat")
	default:
		return nil
	}
	add(below...)
	add("rawio/internal", "rawio/"+s.Link)
	return append(list, ":(top,glob)rawio/*.go")
}
