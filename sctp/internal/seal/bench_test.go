package seal

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// BenchmarkSealAndOpen is one record there: gathered, sealed and opened in place. Beside it the
// cipher alone, which is the most that there can be.
func BenchmarkSealAndOpen(b *testing.B) {
	for _, suite := range Suites() {
		for _, n := range []int{100, 1440, MaxContent} {
			buf, scratch, content := make([]byte, 0, 20000), make([]byte, 20000), testContent(n)
			b.Run(fmt.Sprintf("%v/%d", suite, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				r := newRing(b, suite)
				for range b.N {
					r.a.send.next %= maxGCMSeals / 2
					chunk, err := r.a.Append(buf, content)
					if err != nil {
						b.Fatal(err)
					}
					if r.a.send.next == 1 {
						r.b.primary[0].window = newReplayWindow(0)
					}
					if _, _, err = r.b.Open(now, wire.DTLS(chunk[:len(chunk)-3]), scratch); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("%v/%d/cipher", suite, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				c := must.Get(newRecordCipher(testMaterial(suite, 1)))(b)
				for i := range b.N {
					nonce := c.nonceOf(uint64(i))
					sealed := c.aead.Seal(buf, nonce, content, nil)
					if _, err := c.aead.Open(sealed[:0], nonce, sealed, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
