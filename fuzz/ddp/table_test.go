package ddp

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
)

// FuzzTable gives an STag table a list of commands: registrations, windows, revocations, changes
// and accesses by three streams. Each ends as the model says, and memory holds what was allowed to
// go there.
//
//fuzz:covers ./ddp
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 0, 200, 0, 15, 0, 0, 5, 0, 0, 0, 0, 0, 3, 7, 6, 0, 0, 0, 0, 0, 0, 5, 7, 0, 0, 0, 0, 9, 9})
	f.Add([]byte{0, 0, 200, 0, 15, 2, 1, 1, 0, 0, 1, 15, 0, 8, 64, 2, 0, 5, 1, 0, 0, 0, 0, 0, 9, 1})
	f.Add([]byte{0, 0, 200, 0, 15, 2, 1, 7, 0, 0, 0, 0, 0, 0, 3, 1, 8, 0, 4, 0, 8, 0, 3, 0, 8, 0})
	f.Add([]byte{0, 0, 200, 0, 15, 2, 1, 1, 0, 0, 0, 15, 0, 8, 64, 2, 3, 2, 0, 7, 1, 0, 0, 0, 0, 0, 1, 0, 3, 0, 8, 64,
		2, 15, 8, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		l := &tableLab{t: t, s: input, table: ddp.NewTable(bytes.NewReader([]byte("sixteen octets!!"))),
			streams: [3]streamKey{{1, 4}, {1, 5}, {2, 4}}}
		l.arena = unsafe.Slice((*byte)(unsafe.Pointer(&l.words)), len(l.want))
		l.table.MaxPerPD = maxPerPD
		for steps := 0; len(l.s) > 0 && steps < 300; steps++ {
			switch op := l.s.Byte() % 9; op {
			case 0:
				l.registerRegion()
			case 1:
				l.bindWindow()
			case 2, 3, 4:
				l.changeEntry([]byte{0, 1, 3}[op-2])
			case 5, 6, 7:
				l.accessNow(op - 5)
			case 8:
				if b := l.s.Byte(); b%4 == 3 {
					l.changeEntry(2)
				} else {
					l.useResolved()
				}
			}
			l.checkTable()
		}
	})
}
