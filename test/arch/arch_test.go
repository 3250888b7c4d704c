package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestSansIOPackagesNeverTouchTheWorld(t *testing.T) {
	for _, pkg := range expandPackages(t, sansIO) {
		if slices.Contains(touching, pkg) {
			continue
		}
		for _, file := range sourceFiles(t, pkg) {
			checkFile(t, file)
		}
	}
}

func TestImportsOnlyGoDown(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		rel, _ := filepath.Rel(root, filepath.Dir(path))
		from := filepath.ToSlash(rel)
		if layerOf(from) < 0 {
			t.Errorf("package %s is in no layer", from)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			check.That(t, p != "log", "%s imports log: lines are those of log/slog", path)
			to, ok := strings.CutPrefix(p, module)
			check.That(t, !ok || layerOf(to) >= layerOf(from), "%s imports %s, which is above it", path, to)
		}
		return nil
	})
	must.OK(t, err)
	// In rdma only the files of its SCTP implementation know of SCTP.
	for _, file := range sourceFiles(t, "rdma") {
		if strings.HasPrefix(filepath.Base(file), "sctp_") {
			continue
		}
		f := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly))(t)
		for _, imp := range f.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			check.That(t, !strings.HasPrefix(p, module+"sctp") && p != module+"ddpadapt", "%s imports %s", file, p)
		}
	}
	// DDP knows nothing of SCTP: ddpadapt is the only room that knows both.
	for _, file := range slices.Concat(sourceFiles(t, "ddp"), sourceFiles(t, "ddp/llp"), sourceFiles(t, "mpa"),
		sourceFiles(t, "rdma/rdmap")) {
		f := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly))(t)
		for _, imp := range f.Imports {
			check.That(t, !strings.Contains(imp.Path.Value, module+"sctp"), "%s imports %s", file, imp.Path.Value)
		}
	}
}
