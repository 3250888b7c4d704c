package seal

import (
	"bytes"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzOpen opens whatever comes: octets, or a record with changes in it. Only what was sealed comes
// out, and only once.
func FuzzOpen(f *testing.F) {
	f.Add(uint8(0), uint16(0), []byte{})
	f.Add(uint8(1), uint16(5), []byte{0x2b, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17})
	f.Add(uint8(2), uint16(65), bytes.Repeat([]byte{0x2b}, 100))
	f.Fuzz(func(t *testing.T, which uint8, at uint16, octets []byte) {
		r := restartRing(t, Suites()[which%3], FirstEpoch+uint64(which/3%2))
		good := sealed(t, r.a)
		bad := bytes.Clone(good)
		copy(bad[int(at)%len(bad):], octets)
		b := [][]byte{bad, append(wire.AppendDTLSHeader(nil, which&0x80 != 0, len(octets)), octets...), good}
		for i, chunk := range b {
			if n := min(int(bad[2])<<8|int(bad[3]), len(bad)); i == 0 && n >= wire.DTLSHeaderLen {
				chunk = chunk[:n] // as a packet with that chunk is read
			} else if i == 2 {
				chunk = chunk[:len(chunk)-3]
			}
			content, _, err := r.b.Open(now, wire.DTLS(chunk), make([]byte, len(chunk)))
			opened := r.b.Stats().Opened
			must.That(t, (err == nil) == (content != nil) && opened <= 1, "%d: %v, %d opened", i, err, opened)
			must.That(t, err != nil || bytes.Equal(content, testContent(8)), "%x", content)
		}
		must.That(t, r.b.Stats().Opened == 1, "the record did not open")
	})
}

// FuzzKeyring is two ends that seal, lose, reorder, double and forge, and change keys. Each record
// is opened at most once, at most by the end that it was for, and by it if the key is there and
// nothing says that it is too late; no number is given twice with a key.
func FuzzKeyring(f *testing.F) {
	for seed := range 200 {
		f.Add(fuzzinput.Random(seed, 300))
	}
	type sent struct {
		chunk  []byte
		epoch  uint64
		number uint64
		opened bool
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 600 {
			return
		}
		z := fuzzinput.Script(in)
		r := newRing(t, Suites()[z.Next()%3])
		at := now
		var flying []*sent
		drained := uint64(FirstEpoch - 1)  // the last epoch whose key is gone
		next := make(map[uint64]uint64)    // number by epoch
		compact := make(map[uint64]uint64) // the same when it was made compact
		for len(z) > 0 {
			at = at.Add(time.Duration(z.Next()) * time.Millisecond)
			switch op := z.Next(); {
			case op < 130:
				for range 1 + z.Next()/16 {
					number := r.a.Sealer().Sealed()
					flying = append(flying, &sent{sealed(t, r.a), r.epoch, number, false})
				}
			case op < 230 && len(flying) > 0:
				s := flying[len(flying)-1-z.Next()*(len(flying)-1)/255]
				chunk, forged := bytes.Clone(s.chunk), z.Next() < 40
				if forged {
					chunk[5+z.Next()%(len(chunk)-8)] ^= 1 << (z.Next() % 8)
				}
				tooLate := s.epoch <= drained || s.number < compact[s.epoch] ||
					s.number+minReplayWindow < next[s.epoch]
				content, epoch, err := r.b.Open(at, asChunk(t, chunk), make([]byte, 100))
				must.That(t, err != nil || !forged && !s.opened && epoch == s.epoch &&
					bytes.Equal(content, testContent(8)), "%+v was opened: %x of %d", s, content, epoch)
				must.That(t, err == nil || forged || s.opened || tooLate, "%+v was not opened: %v", s, err)
				if err == nil {
					s.opened, next[s.epoch] = true, max(next[s.epoch], s.number+1)
				}
				_, _, err = r.a.Open(at, asChunk(t, bytes.Clone(s.chunk)), nil)
				must.That(t, err != nil, "opened by who has sealed it")
			case op < 245:
				if len(r.b.primary) == maxKeys {
					drained++
					r.drain(drained)
				}
				r.rekey()
			default:
				r.b.Compact()
				for epoch, n := range next {
					compact[epoch] = n
				}
			}
		}
	})
}
