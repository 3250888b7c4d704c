package main

import (
	"errors"
	"go/format"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

const woven = `package p

// Less compares.
func (t T) Less(u T) bool { return t < u }

func (T) pad(n int, _ string, more ...int) (m int) {
	n++
	return n
}

func generic[K any, V int](k K, v V) {
	use(k)
	use(v)
}

func literal(int, func(int) bool) {
	use(1)
}

var v = 1
`

func TestWeave(t *testing.T) {
	for _, row := range []struct{ name, old, new, jump, body string }{
		{"a method on one line", "func (t T) Less(u T) bool { return t < u }\n",
			"func (t T) Less(u T) bool { return t <= u }\n",
			"func (t T) Less(u T) bool { if wovenFault == 7 { return t.Less_fault7(u) }; return t < u }",
			"func (t T) Less_fault7(u T) bool { return t <= u }"},
		{"names are given", "\tn++\n", "\tn--\n",
			"func (woven1 T) pad(n int, woven2 string, more ...int) (m int) { if wovenFault == 7 { return woven1.pad_fault7(n, woven2, more...) };\n\tn++",
			"func (T) pad_fault7(n int, _ string, more ...int) (m int) {\n\tn--\n\treturn n\n}"},
		{"type parameters", "\tuse(k)\n", "",
			"func generic[K any, V int](k K, v V) { if wovenFault == 7 { generic_fault7[K, V](k, v); return };\n\tuse(k)",
			"func generic_fault7[K any, V int](k K, v V) {\n\tuse(v)\n}"},
		{"parameters without names", "\tuse(1)\n", "\tuse(2)\n",
			"func literal(woven1 int, woven2 func(int) bool) { if wovenFault == 7 { literal_fault7(woven1, " +
				"woven2); return };",
			"func literal_fault7(int, func(int) bool) {\n\tuse(2)\n}"},
	} {
		w := must.Get(newWeaver(woven))(t)
		err := w.weaveFault(&fault{number: 7, old: row.old, new: row.new})
		must.That(t, err == nil, "%v, %v", row.name, err)
		got := string(w.wovenFile())
		check.That(t, strings.Contains(got, row.jump) && strings.Contains(got, row.body), "%s:\n%s", row.name, got)
		_, err = format.Source([]byte(got))
		check.That(t, err == nil, "%s: %v", row.name, err)
	}
}

// Two faults of one function stand side by side.
func TestWeaveTwo(t *testing.T) {
	w := must.Get(newWeaver(woven))(t)
	for i, by := range []string{"\tn--\n", ""} {
		must.OK(t, w.weaveFault(&fault{number: i + 1, old: "\tn++\n", new: by}))
	}
	got := string(w.wovenFile())
	check.That(t, strings.Count(got, "func (woven1 T) pad(n int, woven2 string") == 1 &&
		strings.Count(got, "woven1.pad_fault") == 2,
		"%v", got)
	check.Do(format.Source([]byte(got)))(t)
}

func TestWeaveOnlyWithinAFunction(t *testing.T) {
	for name, f := range map[string]*fault{
		"a variable":  {old: "var v = 1\n", new: "var v = 2\n"},
		"a signature": {old: "func literal(int, func(int) bool) {\n", new: "func literal(int, func(int8) bool) {\n"},
		"a function":  {old: "func (t T) Less(u T) bool { return t < u }\n", new: ""},
		"two at a time": {old: "\tuse(v)\n}\n\nfunc literal(int, func(int) bool) {\n",
			new: "}\n\nfunc literal(int, func(int) bool) {\n\tuse(v)\n"},
		"a comment only": {old: "// Less compares.\n", new: "// Less.\n"},
	} {
		w := must.Get(newWeaver(woven))(t)
		err := w.weaveFault(f)
		check.That(t, errors.Is(err, errNotWoven), "%s: %v", name, err)
	}
}
