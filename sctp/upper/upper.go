package upper

import (
	"log/slog"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Protocol takes an association over from the message API. It sees each DATA chunk at arrival,
// supplies messages when they can be sent, and gets the association's events. The owner of the
// association calls all methods but Settled, one at a time.
type Protocol interface {
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

// Association gives a Protocol locked access to its association.
type Association interface {
	// Lock makes the caller the owner of the association and returns its core and the time. Between
	// Lock and Unlock the core may be used freely; nothing in between may block.
	Lock() (*assoc.Assoc, rawio.Time)
	// Unlock sends what has become ready, hands on packets that arrived meanwhile and gives
	// ownership up.
	Unlock()
	// UnlockAt is Unlock for a caller that has done so little since now that the clock need not be
	// read again.
	UnlockAt(now rawio.Time)
	// Peek calls look under the association lock, which it takes for that long only. look copies
	// what it wants to know, changes nothing and does not block.
	Peek(look func(*assoc.Assoc))
}

// Transport is what a Protocol needs of the sctp.Transport below it.
type Transport interface {
	// NewSignal returns a signal that is not set.
	NewSignal() Signal
	// Rouse makes a goroutine in Signal.Wait look at its channels.
	Rouse()
	// Journal writes a line about a rare event to sctp.TransportConfig.Logger. It is not for use
	// under the association lock, and never per packet. remote, if it is valid, is the peer that
	// the line is about. With no Logger it does nothing. There are at most 100 lines in a second,
	// 10 of them about one address.
	Journal(level slog.Level, remote netip.AddrPort, msg string, attrs ...slog.Attr)
}

// Signal is a token that makes a waiting goroutine look again. A goroutine that waits for it may
// read the link of its Transport meanwhile. Its methods may be called from several goroutines.
type Signal interface {
	// C has the token while the signal is set, for use in select.
	C() <-chan struct{}
	// Set sets the signal, and wakes one goroutine that waits for it.
	Set()
	// Brings counts one of the things that the signal is set for. It is for one goroutine that
	// serves many associations. That goroutine is woken once, and as many answers are expected of
	// it as things have come.
	Brings()
	// Wait blocks until the signal is set, which it reports and undoes, or a channel is closed. A
	// nil channel never is. Code that closes one calls Transport.Rouse afterwards. No lock may be
	// held: the calling goroutine may have to receive packets of any association meanwhile.
	Wait(a, b <-chan struct{}) (set bool)
}

// Options are those of an sctp.Config, as package assoc has them.
type Options interface {
	// Change lets change read and set the options.
	Change(change func(*assoc.Config))
	// Complete gives each option that is left out its default. The error is an *assoc.ConfigError.
	Complete() error
}
