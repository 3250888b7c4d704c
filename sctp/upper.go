package sctp

import (
	"log/slog"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/upper"
)

// Upper is for the protocol above this association. Programs have no use for it.
func (c *Conn) Upper() upper.Association { return association{c} }

// Upper is for the protocol above the Transport. Programs have no use for it.
func (t *Transport) Upper() upper.Transport { return layer{t} }

// Upper is for protocols above SCTP. Programs have no use for it.
func (c *Config) Upper() upper.Options { return options{c} }

// upperLayer is the protocol above an association.
type upperLayer struct {
	protocol    upper.Protocol // nil: the message API of Conn
	stepCounter stepCounter    // protocol, if it is one
}

// association is an upper.Association.
type association struct{ c *Conn }

func (a association) Lock() (*assoc.Assoc, rawio.Time) { return a.c.lock() }

func (a association) Unlock() { a.c.unlock() }

func (a association) UnlockAt(now rawio.Time) { a.c.unlockAt(now) }

func (a association) Peek(look func(a *assoc.Assoc)) { a.c.peekAssoc(look) }

// layer is an upper.Transport.
type layer struct{ t *Transport }

func (l layer) NewSignal() upper.Signal { return l.t.newSignal() }

func (l layer) Rouse() { l.t.wakeLinkReader() }

func (l layer) Journal(level slog.Level, remote netip.AddrPort, msg string, attrs ...slog.Attr) {
	l.t.logLine(level, remote, msg, attrs...)
}

// options are upper.Options.
type options struct{ c *Config }

func (o options) Change(change func(*assoc.Config)) {
	a := o.c.assocConfig()
	change(a)
	copyOptions(o.c, a)
}

func (o options) Complete() error {
	a, err := o.c.assocConfig().Complete()
	if err == nil {
		copyOptions(o.c, &a)
	}
	return err
}
