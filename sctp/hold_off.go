//go:build !holds || !linux

package sctp

// MeasuresHolds says that LongestHold measures: this package was built for Linux, with the tag holds.
const MeasuresHolds = false

type (
	hold    struct{}
	longest struct{}
)

func (c *Conn) holds()   { _ = c.hold }
func (c *Conn) hasHeld() {}

// WatchHolds begins, or ends, to measure.
func (t *Transport) WatchHolds(bool) {}

// LongestHold returns the longest hold since it was asked last. Only under the build tag holds it is measured.
func (t *Transport) LongestHold() Hold {
	_ = t.longest
	return Hold{}
}
