package mpa

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// The table in the package comment is the one that the code goes by.
func TestTableIsThatOfTheComment(t *testing.T) {
	for st := Requesting; st < numStates; st++ {
		var list []string
		for by, to := range transitions[st] {
			if to != stateNone {
				list = append(list, fmt.Sprintf("%v: %v", trigger(by), to))
			}
		}
		check.Documented(t, strings.TrimRight(fmt.Sprintf("\t%-13s %s", st, strings.Join(list, ", ")), " ")+"\n")
	}
}

func TestNamesForTraces(t *testing.T) {
	check.Equal(t, "state", fmt.Sprint(BothClosing, State(99)), "both-closing unknown")
	check.Equal(t, "event", fmt.Sprint(EventRequest, EventKind(99)), "request unknown")
	check.Equal(t, "fault", fmt.Sprint(FaultKey, FrameFault(99)), "the peer does not speak MPA unknown fault")
}
