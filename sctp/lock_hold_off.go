//go:build !holds || !linux

package sctp

// MeasuresHolds says that LongestHold measures: this package was built for Linux, with the tag
// holds.
const MeasuresHolds = false

type (
	lockHold    struct{}
	longestHold struct{}
)

func (c *Conn) beginHold() { _ = c.assocLock.hold }
func (c *Conn) endHold()   {}

// WatchHolds begins, or ends, to measure.
func (t *Transport) WatchHolds(bool) {}

// LongestHold returns the longest hold since it was asked last. Only under the build tag holds it
// is measured.
func (t *Transport) LongestHold() Hold {
	_ = t.longestHold
	return Hold{}
}
