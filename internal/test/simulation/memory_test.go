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
		{"an operation under way", func(_ *memory, open, _ area) { open.bytes()[3]++ }, ""},
		{"after its end", func(_ *memory, _, closed area) { closed.bytes()[0]++ }, Revoked},
		{"one octet too many", func(m *memory, open, _ area) { m.actual[open.off+open.n]++ }, Outside},
		{"one octet before", func(m *memory, open, _ area) { m.actual[open.off-1]++ }, Outside},
		{"somewhere else", func(m *memory, _, _ area) { m.actual[memorySize-1]++ }, Outside},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := New(1)
			open, closed := w.a.mem.alloc(100), w.a.mem.alloc(100)
			open.open()
			closed.open()
			closed.absorb(nil, nil, "nothing")
			row.spoil(w.a.mem, open, closed)
			w.a.mem.check("here")
			switch b := w.Broken(); {
			case row.want == "" && b != nil, row.want != "" && (b == nil || b.Invariant != row.want || b.Host != "A"):
				t.Errorf("%v, want %q", b, row.want)
			}
		})
	}
}
