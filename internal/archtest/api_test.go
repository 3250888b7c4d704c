package archtest

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

var updateAPI = flag.Bool("update-api", false, "write testdata/api.txt")

// face lists the packages that a program imports, on Linux.
var face = []string{"compat", "metrics", "rawio", "rawio/mem", "rawio/pcap", "rawio/raw", "rawio/tun", "rawio/udp", "rdma", "sctp", "sctp/assoc", "sctp/cc", "sctp/qlog"}

// Whatever a program can see changes on purpose only: make api writes it down.
func TestExportedAPIIsAsWrittenDown(t *testing.T) {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH = "linux", "amd64"
	var out bytes.Buffer
	for _, pkg := range face {
		p, err := ctx.ImportDir(filepath.Join(root, pkg), 0)
		must.OK(t, err)
		var decls []string
		fset := token.NewFileSet()
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(root, pkg, name), nil, parser.SkipObjectResolution)
			must.OK(t, err)
			ast.FileExports(f)
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
					continue
				}
				if fn, ok := d.(*ast.FuncDecl); ok {
					fn.Body = nil
				}
				var b bytes.Buffer
				must.OK(t, format.Node(&b, fset, d))
				decls = append(decls, b.String())
			}
		}
		slices.Sort(decls)
		fmt.Fprintf(&out, "package %s\n\n", pkg)
		for _, d := range decls {
			fmt.Fprintf(&out, "%s\n\n", d)
		}
	}
	golden := filepath.Join("testdata", "api.txt")
	if *updateAPI {
		must.OK(t, os.WriteFile(golden, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	must.OK(t, err)
	check.That(t, bytes.Equal(out.Bytes(), want),
		"the exported API has changed: if that was meant, run make api and say so in CHANGELOG.md")
}
