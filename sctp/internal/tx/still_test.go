package tx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// Where nothing is outstanding and there is nothing to send, there is no need to look for what to
// send.
func TestStill(t *testing.T) {
	l := newLab(t, 1)
	still := func(what string, want bool) {
		t.Helper()
		check.Equal(t, what+": still", l.s.HasNothingPending(), want)
	}
	still("at first", true)
	l.enqueueMany(1, 100)
	still("with a message", false)
	l.transmit()
	still("while that is outstanding", false)
	l.sack(1)
	still("when it is acknowledged", true)
	l.handleSack(makeSack(1, 0)) // the window closes
	l.enqueueMany(1, full)
	l.transmit()
	still("with a message that waits for the window", false)
	l = newLab(t, 1)
	u := &countedSource{n: 1, size: 100}
	l.s.SetUpper(u, u)
	still("with a Source that has a message", false)
	l.transmit()
	l.sack(1)
	still("when it has none", true)
}
