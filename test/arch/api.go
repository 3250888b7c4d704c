package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
)

// face lists the packages that a program imports, on Linux, and those for harnesses around the
// core: assoc, endpoint, wire and simnet.
var face = []string{
	"compat", "metrics", "rawio", "rawio/mem", "rawio/netconn", "rawio/pcap", "rawio/raw", "rawio/simnet", "rawio/tun",
	"rawio/udp", "rdma",
	"sctp", "sctp/assoc", "sctp/cc", "sctp/endpoint", "sctp/qlog", "sctp/sched", "sctp/upper", "sctp/wire",
}

// exportedAPI is all that a program can see: the declarations of these packages, without bodies.
func exportedAPI(t *testing.T) []byte {
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
	return out.Bytes()
}
