package assoc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Whatever happens to an association, in each of its states, does what the table in the package
// comment says, and nothing else: what is sent, and the state after it.
func TestEverythingInEachState(t *testing.T) {
	// req 9260-5.2.2-1, 9260-9.2-19, 9260-5.2.3-1, 9260-5.2.5-1, 9260-6-3, 9260-6-4, 9260-6-6,
	// 9260-4-1 req 9260-9.2-16, 9260-9.2-17, 9260-8.5.1-8, 9260-5.2.6-1
	for _, h := range sctptest.Befallings {
		var order []string
		states := make(map[string][]string)
		most := ""
		for state := assoc.Closed; state <= assoc.ShutdownAckSent; state++ {
			says := h.HappensIn(t, state)
			if states[says] == nil {
				order = append(order, says)
			}
			if states[says] = append(states[says], state.String()); len(states[says]) > len(states[most]) {
				most = says
			}
		}
		line := most
		for _, says := range order {
			if says != most {
				line += "; " + strings.Join(states[says], ", ") + ": " + says
			}
		}
		check.Documented(t, fmt.Sprintf("\t%-26s %s\n", h.Name, line))
	}
}
