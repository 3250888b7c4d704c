package tx

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

func TestChoiceOfThePath(t *testing.T) {
	type state struct {
		PathState
		errors int
	}
	const u, a, pf, in = Unconfirmed, Active, PotentiallyFailed, Inactive
	for _, row := range []struct {
		name      string
		paths     []state // the first is the primary; odd ones have another source address than even ones
		data      int     // where new DATA goes
		alternate int     // where it goes again when the primary did not answer
	}{
		{"the primary while it is active", []state{{a, 0}, {a, 0}}, 0, 1},
		{"an active path instead of a potentially failed one", []state{{pf, 1}, {a, 0}}, 1, 1}, // req 7829-3.2-3
		{"an active path with errors instead of a potentially failed one", []state{{pf, 1}, {a, 9}}, 1, 1},
		{"of the active ones the most different", []state{{in, 6}, {a, 0}, {a, 0}}, 1, 1}, // req 9260-6.4.1-2
		{"of the active ones the most different, not the first", []state{{in, 6}, {u, 0}, {a, 0}, {a, 0}}, 3, 3},
		{"the same path when the other is worse", []state{{a, 0}, {pf, 1}}, 0, 0},
		// req 7829-3.2-5
		{"a potentially failed path instead of an inactive one", []state{{in, 6}, {pf, 5}}, 1, 1},
		// req 7829-3.2-6
		{"of the potentially failed ones that with fewest errors", []state{{pf, 3}, {pf, 2}, {pf, 1}}, 2, 2},
		{"with equal errors the primary, and again another", []state{{pf, 1}, {pf, 1}}, 0, 1},
		// req 7829-4.1-1, 7829-4.1-3
		{"all inactive: that with fewest errors", []state{{in, 9}, {in, 8}, {in, 7}}, 2, 2},
		{"never an unconfirmed one", []state{{in, 60}, {u, 0}}, 0, 0}, // req 9260-5.4-8
		{"a primary that is not confirmed carries nothing", []state{{u, 0}, {in, 60}}, 1, 1},
		{"alone", []state{{in, 6}}, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, len(row.paths))
			for i, st := range row.paths {
				p := l.pathAt(i)
				p.State, p.Errors = st.PathState, st.errors
				p.Local = netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(1 + i%2)}), 0)
			}
			got := l.s.DataPath()
			check.That(t, got == l.pathAt(row.data), "new DATA goes to path %d", got.Index())
			got = l.s.Alternate(l.pathAt(0))
			check.That(t, got == l.pathAt(row.alternate), "the alternate is path %d", got.Index())
			for i, st := range row.paths { // req 7829-3.2-4, 7829-4.1-2
				p := l.pathAt(i)
				check.That(t, p.State == st.PathState && p.Errors == st.errors, "path %d is %v with %d errors now", i,
					p.State, p.Errors)
			}
		})
	}
}
