package seal

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Second attempts are rare, and what asks for one may be a record that somebody sends again. So
// they come out of a bucket: a forger gets few more attempts than he sends packets.
const (
	maxSecondTries      = 16
	secondTriesInterval = 10 * time.Millisecond // a bucket gets another one
)

// secondTries is the bucket.
type secondTries struct {
	filledAt rawio.Time // it was last given another one
	left     uint8
}

func newSecondTries(now rawio.Time) secondTries { return secondTries{now, maxSecondTries} }

// available fills the bucket, and reports whether it has any.
func (t *secondTries) available(now rawio.Time) bool {
	if n := now.Sub(t.filledAt) / secondTriesInterval; n > 0 {
		t.left = uint8(min(time.Duration(t.left)+n, maxSecondTries))
		t.filledAt = t.filledAt.Add(n * secondTriesInterval)
	}
	return t.left > 0
}

func (t *secondTries) take() { t.left-- }
