package main

import (
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// A fault that proves something changes one statement: two that each seem small are two.
func TestFaultThatProvesARowChangesOneStatement(t *testing.T) {
	const was = "package p\n\nfunc f() {\n\ta()\n\tif x {\n\t\tb()\n\t\treturn\n\t}\n\tswitch y {\n\tcase 1:\n\t\tc()\n\tcase 2:\n\t\td()\n\t}\n\te()\n}\n\nvar v, w = 1, 2\n"
	for _, row := range []struct {
		name, old, new string
		want           int
	}{
		{"nothing", "a()", "a() // as before", 0},
		{"a call", "a()", "b()", 1},
		{"a call dropped", "\ta()\n", "", 1},
		{"a call more", "\te()", "\te()\n\te()", 1},
		{"a condition", "if x", "if !x", 1},
		{"within a condition", "b()", "c()", 1},
		{"a condition and within it", "if x {\n\t\tb()", "if !x {\n\t\tc()", 2},
		{"a condition dropped", "\tif x {\n\t\tb()\n\t\treturn\n\t}\n", "", 1},
		{"two calls in a row", "b()\n\t\treturn", "c()\n\t\td()", 2},
		{"in two cases", "c()\n\tcase 2:\n\t\td()", "d()\n\tcase 2:\n\t\tc()", 2},
		{"a case", "case 2:", "case 3:", 1},
		{"a variable", "1, 2", "1, 3", 1},
	} {
		got, err := countStatements(was, strings.Replace(was, row.old, row.new, 1))
		check.That(t, err == nil && got == row.want, "%s: %d, %v, want %d", row.name, got, err, row.want)
	}
}
