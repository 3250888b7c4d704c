package rdmap_test

import (
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/golden"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
)

// In each situation of a QP and for each thing that can happen then, testdata/conduct.txt has what
// comes of it: at once, when all has left and is acknowledged, when the peer closes, and when the
// stream is gone.
func TestConductIsAsWrittenDown(t *testing.T) {
	golden.Table(t, "testdata/conduct.txt", func(situation []string, step string) string {
		p := rdmaptest.NewPlayer(t)
		for _, s := range situation {
			p.Step(s)
		}
		p.Look()
		p.Step(step)
		told := []string{p.Look()}
		for _, then := range [][]string{{"all", "ack"}, {"halfclosed", "all", "ack"}, {"closed", "ended"}} {
			for _, s := range then {
				p.Step(s)
			}
			if now := p.Look(); now != told[len(told)-1] && now != "LOST lost, Error" {
				told = append(told, now)
			}
		}
		if p.E.Fault != nil {
			told = append(told, "BROKEN")
		}
		return strings.Join(told, " | ")
	})
}
