package simulation

import "testing"

// What changes an octet that nobody may write to is named after what the octet was: never open, or
// open once.
func TestMemoryNamesWhatWasBroken(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(m *memory, open, closed area)
		want  Invariant // "": nothing
	}{
		{"an operation under way", func(_ *memory, open, _ area) { open.actualBytes()[3]++ }, ""},
		{"after its end", func(_ *memory, _, closed area) { closed.actualBytes()[0]++ }, Revoked},
		{"one octet too many", func(m *memory, open, _ area) { m.actual[open.off+open.n]++ }, Outside},
		{"one octet before", func(m *memory, open, _ area) { m.actual[open.off-1]++ }, Outside},
		{"somewhere else", func(m *memory, _, _ area) { m.actual[memorySize-1]++ }, Outside},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := New(1)
			open, closed := w.a.mem.allocArea(100), w.a.mem.allocArea(100)
			open.allowWrites()
			closed.allowWrites()
			closed.acceptEither(nil, nil, "nothing")
			row.spoil(w.a.mem, open, closed)
			w.a.mem.checkMemory("here")
			switch b := w.Violation(); {
			case row.want == "" && b != nil, row.want != "" && (b == nil || b.Invariant != row.want || b.Host != "A"):
				t.Errorf("%v, want %q", b, row.want)
			}
		})
	}
}
