// Command conformance prints which requirements of the RFCs the tests hold. Run it in the root of
// the repository.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/rddp-go/rddp/test/conformance"
)

const readme = "test/conformance/README.md"

func main() {
	update := flag.Bool("update", false, "rewrite the table in "+readme)
	list := flag.String("list", "", "list the untested rows of this RFC instead, for example 9260")
	flag.Parse()
	if err := run(*update, *list); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(update bool, list string) error {
	r, err := conformance.Examine("test/conformance", ".")
	if err != nil {
		return err
	}
	if list != "" {
		for _, f := range r.Files {
			if f.RFC != list {
				continue
			}
			for _, row := range r.Untested(f) {
				fmt.Printf("%-18s %-10s %-6s %-8s %s\n", row.ID, row.Level, row.Layer, row.Side, row.Text)
			}
		}
		return nil
	}
	fmt.Print(r.Table())
	if !update {
		return nil
	}
	got, want, err := r.Readme(readme)
	if err != nil || got == want {
		return err
	}
	return os.WriteFile(readme, []byte(want), 0o644)
}
