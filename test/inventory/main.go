package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rddp-go/rddp/test/conformance"
)

func main() {
	ran := flag.String("ran", "", "list the tests and subtests of this output of go test -json too")
	flag.Parse()
	if err := list(os.Stdout, ".", *ran); err != nil {
		fmt.Fprintln(os.Stderr, "inventory:", err)
		os.Exit(1)
	}
}

// list writes the inventory of a checkout.
func list(w io.Writer, root, ran string) error {
	t, err := readTree(root)
	if err != nil {
		return err
	}
	cites, err := citations(root)
	if err != nil {
		return err
	}
	lines := slices.Concat(t.tests(), t.corpora(), t.golden(), cites, t.mutants(), t.commands())
	if ran != "" {
		names, err := subtests(ran)
		if err != nil {
			return err
		}
		lines = append(lines, names...)
	}
	slices.Sort(lines)
	_, err = fmt.Fprintln(w, strings.Join(slices.Compact(lines), "\n"))
	return err
}

// citations lists which test cites which row of the RFCs.
func citations(root string) (lines []string, err error) {
	list, err := conformance.Citations(root)
	for _, c := range list {
		dir := strings.TrimPrefix(c.Pos.Filename[:strings.LastIndexByte(c.Pos.Filename, '/')], root+"/")
		lines = append(lines, fmt.Sprintf("cites %s %s %s", c.ID, dir, c.Test))
	}
	return lines, err
}

// subtests lists the tests of an output of go test -json, and how they ended.
func subtests(file string) (lines []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var e struct{ Action, Package, Test string }
		if json.Unmarshal(in.Bytes(), &e) == nil && e.Test != "" && slices.Contains([]string{"pass", "fail", "skip"},
			e.Action) {
			lines = append(lines, fmt.Sprintf("ran %s %s %s",
				strings.TrimPrefix(e.Package, "github.com/rddp-go/rddp/"), e.Test, e.Action))
		}
	}
	if len(lines) == 0 {
		return nil, errors.New(file + " names no test: is it an output of go test -json?")
	}
	return lines, in.Err()
}
