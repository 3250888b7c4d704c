package sctp

import (
	"log/slog"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// What a protocol above SCTP needs, and a program does not, is in this file and [Signal].

// Upper is a protocol that takes an association over from the message API. It sees each DATA chunk
// at arrival, supplies messages when they can be sent, and gets the association's events. The owner
// of the association calls all methods but Settled, one at a time. Package ddpadapt is one.
type Upper interface {
	assoc.Placer
	assoc.Source
	// HandleEvent takes one event of the association.
	HandleEvent(now rawio.Time, ev assoc.Event)
	// HandleReceived takes the messages that the Placer left to ordinary delivery, and does what
	// else packets have brought about. more says that it has stopped to let others run.
	HandleReceived(now rawio.Time) (more bool)
	// Settled is called after ownership was given up, with no lock held: the place to wake users.
	Settled()
}

// Core lets change read and set the options as package assoc has them.
func (c *Config) Core(change func(*assoc.Config)) {
	a := c.assocConfig()
	change(a)
	copyOptions(c, a)
}

// Gate gives an upper-layer protocol locked access to the association of a Conn. Such a protocol
// uses it by nothing else.
type Gate struct{ c *Conn }

// Gate returns that of the association.
func (c *Conn) Gate() Gate { return Gate{c} }

// Lock makes the caller the owner of the association and returns its core and the time. Between
// Lock and Unlock the core may be used freely; nothing in between may block.
func (g Gate) Lock() (*assoc.Assoc, rawio.Time) { return g.c.lock() }

// Unlock sends what has become ready, hands on packets that arrived meanwhile and gives ownership
// up.
func (g Gate) Unlock() { g.c.unlock() }

// UnlockAt is Unlock for a caller that has done so little since now that the clock need not be read
// again.
func (g Gate) UnlockAt(now rawio.Time) { g.c.unlockAsOf(now) }

// Peek calls look under the association lock, which it takes for that long only. look copies what
// it wants to know, changes nothing and does not block.
func (g Gate) Peek(look func(a *assoc.Assoc)) { g.c.peekAssoc(look) }

// Layer is a Transport for the protocol above it.
type Layer struct{ t *Transport }

// Layer returns that of the Transport.
func (t *Transport) Layer() Layer { return Layer{t} }

// NewSignal returns a signal that is not set.
func (l Layer) NewSignal() *Signal { return l.t.newSignal() }

// Rouse makes a goroutine in Signal.Wait look at its channels.
func (l Layer) Rouse() { l.t.wakeLinkReader() }

// Journal writes a line about a rare event to TransportConfig.Logger. It is not for use under a
// Gate, and never per packet. remote, if it is valid, is the peer that the line is about. With no
// Logger it does nothing. There are at most 100 lines in a second, 10 of them about one address.
func (l Layer) Journal(level slog.Level, remote netip.AddrPort, msg string, attrs ...slog.Attr) {
	l.t.logLine(level, remote, msg, attrs...)
}
