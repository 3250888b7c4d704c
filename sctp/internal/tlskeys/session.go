package tlskeys

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"time"

	"github.com/rddp-go/rddp/internal/mutualtls"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// errData is for a peer that uses the TLS connection.
var errData = errors.New("the peer has sent application data in the TLS connection of key management")

// Owner hears of a session, in the session's goroutine. The calls come one after another, and
// Failed is the last. It also comes for a session that the owner has closed, and may be ignored
// then.
type Owner interface {
	// Wrote hands over TLS records for the peer.
	Wrote(id uint64, records []byte)
	// Done says that the handshake has ended well.
	Done(id uint64, r Result)
	// Failed says that the session has ended with an error, and what is to be sent of it.
	Failed(id uint64, err error, alert []byte)
}

// Result is what a handshake has led to.
type Result struct {
	keymgmt.Outcome
	State tls.ConnectionState // the identity of the peer is in it
}

// errClosed is for a peer that closes the TLS connection too early.
var errClosed = errors.New("the TLS connection of key management was closed")

// Config is what the sessions of an association have in common.
type Config struct {
	Identity    *mutualtls.Identity
	Params      keymgmt.Params
	WithRestart bool
	Pool        *Pool
}

// Session is one TLS session.
type Session struct {
	id       uint64
	isClient bool
	cfg      *Config
	owner    Owner
	pipe     *pipe
	mutualtls.Handshake
}

// Start begins a session. first is the certificate that the peer has shown in the first session of
// the association, nil in that one.
func Start(id uint64, isClient bool, first *x509.Certificate, cfg *Config, owner Owner) (*Session, error) {
	if !cfg.Pool.open() {
		return nil, ErrBusy
	}
	s := &Session{id: id, isClient: isClient, cfg: cfg, owner: owner}
	s.pipe = newPipe(cfg.Pool, func(records []byte) { owner.Wrote(id, records) })
	go s.run(first)
	return s, nil
}

// Feed gives the session records of the peer. It does not wait.
func (s *Session) Feed(records []byte) { s.pipe.feed(records) }

// Unread returns how many octets of the peer the session has not read. Within a call of Owner.Done
// these are what came behind the handshake.
func (s *Session) Unread() int { return s.pipe.unreadLen() }

// Close ends the session. If its handshake was complete, it writes its close_notify.
func (s *Session) Close() { s.pipe.fail(io.EOF) }

// WaitIdle waits until the session waits for the peer, or has ended, so that one goroutine can run
// it in virtual time.
func (s *Session) WaitIdle() { s.pipe.waitIdle() }

// run is the session's goroutine.
func (s *Session) run(first *x509.Certificate) {
	pool := s.cfg.Pool
	pool.acquire()
	defer func() {
		pool.release()
		pool.close()
		s.pipe.end()
	}()
	var conn *tls.Conn
	if c := s.cfg.Identity.Config(&s.Handshake, first); s.isClient {
		conn = tls.Client(s.pipe, c)
	} else {
		conn = tls.Server(s.pipe, c)
	}
	if err := conn.Handshake(); err != nil {
		s.owner.Failed(s.id, err, s.alertFor(err))
		return
	}
	r, err := s.result(conn)
	if err != nil {
		s.owner.Failed(s.id, err, keymgmt.CanceledAlert())
		return
	}
	s.owner.Done(s.id, r)
	s.readOn(conn)
}

// alertFor returns what the peer is to hear of an error. TLS has written it, but not for errors of
// the program.
func (s *Session) alertFor(err error) []byte {
	held := s.pipe.takeHeld()
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "remote error" {
		return nil
	}
	if last := lastRecordType(held); last == recordAlert || last == recordEncrypted {
		return held
	}
	return append(held, keymgmt.CanceledAlert()...)
}

// Types of TLS records. An alert is encrypted once there are keys.
const (
	recordAlert     = 21
	recordEncrypted = 23
)

// lastRecordType returns the type of the last of whole records, 0 for none.
func lastRecordType(records []byte) (last byte) {
	for n := keymgmt.RecordLen(records); n > 0; n = keymgmt.RecordLen(records) {
		last, records = records[0], records[min(n, len(records)):]
	}
	return last
}

// result exports the keys.
func (s *Session) result(conn *tls.Conn) (r Result, err error) {
	if s.isClient && !s.WasAsked {
		return r, mutualtls.ErrNotAsked
	}
	r.State = conn.ConnectionState()
	r.Secrets, err = keymgmt.Export(r.State.ExportKeyingMaterial, seal.Suite(r.State.CipherSuite), s.cfg.Params,
		s.cfg.WithRestart)
	r.Output = s.pipe.takeHeld()
	now := s.cfg.Identity.Now()
	for _, c := range []*x509.Certificate{s.Shown, r.State.PeerCertificates[0]} {
		if left := c.NotAfter.Sub(now); r.ExpiresIn == 0 || left < r.ExpiresIn {
			r.ExpiresIn = max(left, time.Second)
		}
	}
	return r, err
}

// readOn waits for what the peer still has to say: a server judges its client's certificate after
// the client's handshake has ended.
func (s *Session) readOn(conn *tls.Conn) {
	n, err := conn.Read(make([]byte, 1))
	switch {
	case n > 0:
		s.owner.Failed(s.id, errData, keymgmt.CanceledAlert())
	case errors.Is(err, io.EOF): // closed, by the owner or by the peer
		_ = conn.Close()
		if records := s.pipe.takeHeld(); len(records) > 0 {
			s.owner.Wrote(s.id, records)
		}
		s.owner.Failed(s.id, errClosed, nil)
	default:
		s.owner.Failed(s.id, err, s.alertFor(err))
	}
}
