package reconfig

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Each piece of memory behind a Machine counts once.
func TestEachPieceOfMemoryCounts(t *testing.T) {
	const n, id = 100, int(unsafe.Sizeof(wire.StreamID(0)))
	for name, row := range map[string]struct {
		grow func(m *Machine)
		want int
	}{
		"nothing":             {func(*Machine) {}, 0},
		"the answer":          {func(m *Machine) { m.answer = make([]byte, 0, n) }, n},
		"the own request":     {func(m *Machine) { m.own.chunk = make([]byte, 0, n) }, n},
		"its parts":           {func(m *Machine) { m.own.parts = make([]ownPart, 0, n) }, n * int(unsafe.Sizeof(ownPart{}))},
		"its streams":         {func(m *Machine) { m.own.streams = make([]wire.StreamID, 0, n) }, n * id},
		"the peer's request":  {func(m *Machine) { m.peer.ownChunk = make([]byte, 0, n) }, n},
		"a doubtful request":  {func(m *Machine) { m.doubt.chunk = make([]byte, 0, n) }, n},
		"streams of a reset":  {func(m *Machine) { m.deferred.streams = make([]wire.StreamID, 0, n) }, n * id},
		"two pieces together": {func(m *Machine) { m.answer, m.doubt.chunk = make([]byte, 0, n), make([]byte, 0, 2*n) }, 3 * n},
	} {
		m := New(Config{}, nil)
		row.grow(m)
		check.Equal(t, name, m.Held(), int(unsafe.Sizeof(*m))+row.want)
	}
}
