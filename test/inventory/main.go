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
	if err := writeInventory(os.Stdout, ".", *ran); err != nil {
		fmt.Fprintln(os.Stderr, "inventory:", err)
		os.Exit(1)
	}
}

// writeInventory writes the inventory of a checkout.
func writeInventory(w io.Writer, root, ran string) error {
	t, err := readTree(root)
	if err != nil {
		return err
	}
	cites, err := listCitations(root)
	if err != nil {
		return err
	}
	targets, err := t.listTargets()
	if err != nil {
		return err
	}
	lines := slices.Concat(t.listTests(), t.listCorpora(), t.listGolden(), cites, t.listFaults(), t.listCommands(),
		targets)
	if ran != "" {
		names, err := listSubtests(ran)
		if err != nil {
			return err
		}
		lines = append(lines, names...)
	}
	slices.Sort(lines)
	_, err = fmt.Fprintln(w, strings.Join(slices.Compact(lines), "\n"))
	return err
}

// listCitations lists which test cites which row of the RFCs.
func listCitations(root string) (lines []string, err error) {
	list, err := conformance.Citations(root)
	for _, c := range list {
		dir := strings.TrimPrefix(c.Pos.Filename[:strings.LastIndexByte(c.Pos.Filename, '/')], root+"/")
		lines = append(lines, fmt.Sprintf("cites %s %s %s", c.ID, dir, c.Test))
	}
	return lines, err
}

// listSubtests lists the tests of an output of go test -json, and how they ended.
func listSubtests(file string) (lines []string, err error) {
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
