package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestTSNsAreComparedInSerialArithmetic(t *testing.T) {
	// req 9260-1.6-2
	for _, c := range []struct {
		name   string
		a, b   wire.TSN
		less   bool
		lessEq bool
		sub    int32
	}{
		{"equal", 7, 7, false, true, 0},
		{"one behind", 7, 8, true, true, -1},
		{"one ahead", 8, 7, false, false, 1},
		{"behind across the wrap", 0xffffffff, 0, true, true, -1},
		{"ahead across the wrap", 0, 0xffffffff, false, false, 1},
		{"furthest behind", 0, 0x7fffffff, true, true, -0x7fffffff},
		{"furthest ahead", 0x7fffffff, 0, false, false, 0x7fffffff},
		{"half the circle has no order", 0, 0x80000000, false, false, -0x80000000},
		{"half the circle, the other way", 0x80000000, 0, false, false, -0x80000000},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Equal(t, "Less", c.a.Less(c.b), c.less)
			check.Equal(t, "LessEq", c.a.LessEq(c.b), c.lessEq)
			check.Equal(t, "Sub", c.a.Sub(c.b), c.sub)
		})
	}
	check.Equal(t, "Add over the wrap", wire.TSN(0xfffffffe).Add(3), 1)
}

func TestSSNOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b wire.SSN
		less bool
	}{
		{"equal", 7, 7, false},
		{"one behind", 7, 8, true},
		{"behind across the wrap", 0xffff, 0, true},
		{"ahead across the wrap", 0, 0xffff, false},
		{"furthest behind", 0, 0x7fff, true},
		{"half the circle has no order", 0, 0x8000, false},
		{"half the circle, the other way", 0x8000, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) { check.Equal(t, "Less", c.a.Less(c.b), c.less) })
	}
}

func TestMIDAndFSNOrder(t *testing.T) {
	check.Equal(t, "MID behind across the wrap", wire.MID(0xffffffff).Less(0), true)
	check.Equal(t, "MID half the circle", wire.MID(0).Less(1<<31), false)
	check.Equal(t, "FSN behind across the wrap", wire.FSN(0xffffffff).Less(0), true)
	check.Equal(t, "FSN equal", wire.FSN(3).Less(3), false)
}
