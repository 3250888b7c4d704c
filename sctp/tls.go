package sctp

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"

	"github.com/rddp-go/rddp/internal/mutualtls"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/tlskeys"
)

// TLSConfigError says why a Config.TLS does not do: Dial and Listen return it.
//
//	type ConfigError struct {
//		What string
//	}
//
//	func (e *ConfigError) Error() string
type TLSConfigError = mutualtls.ConfigError

// KeyError ends an association that has no keys: a handshake has failed, or keys could not be
// replaced. It says why, and unwraps to what crypto/tls says.
type KeyError = assoc.KeyFailure

// maxKeySessions bounds the TLS handshakes of a Transport at a time. Further ones fail.
const maxKeySessions = 4096

// withIdentity returns a copy of c that is ready for TLS, or c if it has none. Dial names the host
// that it calls, which has to be in the certificate; a listener names none.
func (c *Config) withIdentity(host string) (*Config, error) {
	if c.TLS == nil {
		if c.RestartStore != nil {
			return nil, &ConfigError{Field: "RestartStore", Range: "nil without TLS"}
		}
		return c, nil
	}
	own := *c
	var err error
	own.identity, err = mutualtls.NewIdentity(mutualtls.Calling(c.TLS, host))
	return &own, err
}

// dialledHost is the name that a peer has to show, without one its address.
func (c *Config) dialledHost(remote netip.Addr) string {
	if c.tlsHost != "" {
		return c.tlsHost
	}
	return remote.Unmap().WithZone("").String()
}

// hostOf returns the host of an address, for the certificate.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return "localhost"
	}
	return host
}

// keyShell runs the TLS sessions of an association. The association lock guards it.
type keyShell struct {
	c        *Conn
	cfg      tlskeys.Config
	sessions map[uint64]*tlskeys.Session
	first    *x509.Certificate // of the peer, in the first session
	state    tls.ConnectionState
	keeper   *restartKeeper // nil: no restart
}

// newKeyShell has an association run its TLS sessions, if it is to have any.
func (c *Conn) newKeyShell(cfg *Config) {
	if cfg.identity == nil {
		return
	}
	k := &keyShell{c: c, cfg: tlskeys.Config{Identity: cfg.identity, Pool: c.t.keyPool},
		sessions: make(map[uint64]*tlskeys.Session)}
	c.core.SetKeySessions(k)
	k.keepRestartKeys(cfg.RestartStore)
}

// StartSession starts a goroutine for a session.
func (k *keyShell) StartSession(id uint64, isClient bool, p assoc.KeyParams) error {
	cfg := k.cfg
	cfg.Params, cfg.WithRestart = p, p.HasRestart()
	s, err := tlskeys.Start(id, isClient, k.first, &cfg, k)
	if err == nil {
		k.sessions[id] = s
	}
	return err
}

// FeedSession gives a session records of the peer.
func (k *keyShell) FeedSession(id uint64, records []byte) {
	if s := k.sessions[id]; s != nil {
		s.Feed(records)
	}
}

// forgetRestart forgets what is stored of an association that has ended. Owner only.
func (c *Conn) forgetRestart() {
	if k, ok := c.core.KeySessions().(*keyShell); ok && k.keeper != nil {
		k.keeper.drop()
	}
}

// CloseSession ends a session. It says goodbye by itself.
func (k *keyShell) CloseSession(id uint64) {
	if s := k.sessions[id]; s != nil {
		s.Close()
	}
}

// Wrote, Done and Failed are called by the goroutine of a session.
func (k *keyShell) Wrote(id uint64, records []byte) {
	k.locked(func(a *assoc.Assoc, now rawio.Time) { a.KeySessionWrote(now, id, records) })
}

func (k *keyShell) Done(id uint64, r tlskeys.Result) {
	k.locked(func(a *assoc.Assoc, now rawio.Time) {
		s := k.sessions[id]
		if s == nil {
			return
		}
		r.Unread = s.Unread()
		if k.state = r.State; k.first == nil {
			k.first = r.State.PeerCertificates[0]
		}
		a.KeySessionDone(now, id, r.Outcome)
	})
}

func (k *keyShell) Failed(id uint64, err error, alert []byte) {
	k.locked(func(a *assoc.Assoc, now rawio.Time) {
		delete(k.sessions, id)
		a.KeySessionFailed(now, id, err, alert)
	})
}

func (k *keyShell) locked(do func(a *assoc.Assoc, now rawio.Time)) {
	a, now := k.c.lock()
	do(a, now)
	k.c.unlock()
}

// Rekey asks for new keys, by a TLS handshake in which both sides show their certificates again. It
// does not wait for them: they come when the last ones have drained. Keys are replaced without
// being asked for after an hour, and before they are worn. It does nothing without Config.TLS.
func (c *Conn) Rekey() {
	a, now := c.lock()
	defer c.unlock()
	a.Rekey(now)
}

// ConnectionState returns what TLS knows of the peer: its certificates, the version and the cipher
// suite, as of the last handshake. Every packet since the association was established was sealed
// with keys of that. It returns false if packets go in the clear: without Config.TLS, or under
// Config.LooseTLS to a peer that does not encrypt.
func (c *Conn) ConnectionState() (state tls.ConnectionState, ok bool) {
	a, _ := c.lock()
	defer c.unlock()
	if k, ok := a.KeySessions().(*keyShell); ok && a.IsProtected() {
		return k.state, true
	}
	return state, false
}
