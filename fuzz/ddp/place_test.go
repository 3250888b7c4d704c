package ddp

import (
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
)

// FuzzPlace places and delivers arbitrary segments and compares all memory with the model after
// each: nothing outside a registered region or posted buffer changes, nothing inside but what was
// placed.
//
//fuzz:covers ./ddp
func FuzzPlace(f *testing.F) {
	f.Add([]byte{0, 0x40, 10, 0, 0, 0, 2, 0x40, 9, 0, 0, 0})
	f.Add([]byte{2, 0, 5, 0, 0x10, 0, 2, 0x40, 5, 0, 0, 0, 2, 0x40, 5, 0, 0, 0})
	f.Add([]byte{0x84, 0, 3, 2, 0x0F, 0xC0, 3, 14, 0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0x10, 0x02, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		w := newWorld(t)
		s := fuzzinput.Script(input)
		for serial := byte(0); len(s) > 0 && serial < 100; serial++ {
			if s[0]&0xF0 == 0xF0 { // the ULP revokes a region
				a := &w.areas[int(s.Byte()&15)%len(w.areas)]
				a.region.Invalidate()
				a.valid = false
				continue
			}
			seg := w.makeSegment(&s, serial)
			dead := w.fault != nil
			var p ddp.Placed
			w.stream.Place(seg, &p)
			if dead {
				must.That(t, p.Err == nil && w.real == w.arena,
					"a segment after a fatal error was not dropped silently")
				continue
			}
			typ, code, ok := w.placeSegment(seg)
			must.That(t, ok == (p.Err == nil) && (ok || p.Err.Type == typ && p.Err.Code == code),
				"segment % x: %v, want ok %t or %d/%d", seg, p.Err, ok, typ, code)
			must.That(t, w.real == w.arena, "segment % x: memory differs from the model", seg)
			fatal := !ok || w.deliverSegment(seg)
			w.stream.Deliver(&p)
			must.That(t, fatal == (w.fault != nil), "segment % x: fault %v, want one: %t", seg, w.fault, fatal)
			must.That(t, w.real == w.arena && w.queue.First() == w.model.next,
				"segment % x: delivery changed memory, or went to MSN %d instead of %d", seg, w.queue.First(),
				w.model.next)
		}
	})
}
