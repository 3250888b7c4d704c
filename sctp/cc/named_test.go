package cc

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

func TestNamed(t *testing.T) {
	for _, row := range []struct {
		name string
		want Factory
	}{{"cubic", NewCubic}, {"newreno", NewReno}, {"rfc9260", RFC9260}, {"bbr", NewBBR}} {
		t.Run(row.name, func(t *testing.T) {
			got, want := Named(row.name)(1444, false), row.want(1444, false)
			check.Equal(t, "controller", fmt.Sprintf("%T", got), fmt.Sprintf("%T", want))
			check.Equal(t, "window", got.Window(), want.Window())
		})
	}
	for _, name := range []string{"", "BBR", "reno"} {
		check.That(t, Named(name) == nil, "%q is a controller", name)
	}
}
