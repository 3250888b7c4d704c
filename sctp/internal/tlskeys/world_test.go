package tlskeys

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"sync"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/mutualtls"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// host is one end of an association: a Manager, and sessions that run TLS.
type host struct {
	t        testing.TB
	w        *world
	m        *keymgmt.Manager
	keys     *seal.Keyring
	cfg      Config
	mu       sync.Mutex
	events   []func()
	sessions map[uint64]*Session
	first    *x509.Certificate
	state    tls.ConnectionState
	secrets  *keymgmt.Secrets // of the last session
	failure  *keymgmt.Failure
	sent     [][]byte // messages that the peer has not read
	all      [][]byte // every message
	acked    uint64
}

// world is two hosts, whose messages arrive in order, in virtual time.
type world struct {
	t        testing.TB
	now      rawio.Time
	hosts    [2]*host
	onAction func(h *host, a keymgmt.Action) // before it is done
}

var testParams = keymgmt.Params{Client: []byte{0x80, 6, 0, 10, 1, 2, 3, 4, 1, 192}, Server: []byte{0x80, 6, 0, 10, 5, 6, 7, 8, 2, 192}}

// newWorld returns a world whose first host has the role of the client.
func newWorld(t testing.TB, client, server *tls.Config) *world {
	w := &world{t: t, now: 1e9}
	for i, c := range []*tls.Config{client, server} {
		h := &host{t: t, w: w, keys: seal.NewKeyring(seal.Limits{}, 0), sessions: make(map[uint64]*Session),
			cfg: Config{Identity: must.Get(mutualtls.NewIdentity(c))(t), Params: testParams, WithRestart: true, Pool: NewPool(10)}}
		h.m = keymgmt.New(w.now, keymgmt.Config{IsClient: i == 0, FailureTime: 363 * time.Second}, h.keys)
		w.hosts[i] = h
	}
	t.Cleanup(func() {
		for _, h := range w.hosts {
			for _, s := range h.sessions {
				s.Close()
				s.WaitIdle()
			}
		}
	})
	return w
}

// Wrote, Done and Failed note what a session's goroutine says, for the world's to handle.
func (h *host) Wrote(id uint64, records []byte) {
	h.note(func() { h.m.SessionWrote(h.w.now, id, records) })
}

func (h *host) Done(id uint64, r Result) {
	h.note(func() {
		h.state, h.secrets = r.State, r.Secrets
		if h.first == nil {
			h.first = r.State.PeerCertificates[0]
		}
		h.m.SessionDone(h.w.now, id, r.Outcome)
	})
}

func (h *host) Failed(id uint64, err error, alert []byte) {
	h.note(func() { h.m.SessionFailed(h.w.now, id, err, alert) })
}

func (h *host) note(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, f)
}

// work does what there is to do, and says whether there was anything.
func (h *host) work() (any bool) {
	for _, s := range h.sessions {
		s.WaitIdle()
	}
	h.mu.Lock()
	events := h.events
	h.events = nil
	h.mu.Unlock()
	for _, f := range events {
		f()
		any = true
	}
	for a, ok := h.m.Next(); ok; a, ok = h.m.Next() {
		any = true
		if h.w.onAction != nil {
			h.w.onAction(h, a)
		}
		switch a.Kind {
		case keymgmt.SendMessage:
			h.sent, h.all = append(h.sent, a.Data), append(h.all, a.Data)
		case keymgmt.StartSession:
			s, err := Start(a.Session, a.IsClient, h.first, &h.cfg, h)
			must.OK(h.t, err)
			h.sessions[a.Session] = s
		case keymgmt.FeedSession:
			h.sessions[a.Session].Feed(a.Data)
		case keymgmt.CloseSession:
			h.sessions[a.Session].Close()
		case keymgmt.Abort:
			h.failure = a.Failure
		}
	}
	return any
}

// run lets messages arrive until nothing happens any more.
func (w *world) run() {
	w.t.Helper()
	for range 1000 {
		any := false
		for i, h := range w.hosts {
			any = h.work() || any
			peer := w.hosts[1-i]
			for _, m := range h.sent {
				any = true
				peer.m.HandleMessage(w.now, m)
				h.acked++
			}
			h.sent = nil
			h.m.MessagesAcked(w.now, h.acked)
		}
		if !any {
			return
		}
	}
	w.t.Fatal("no end of messages")
}

// wait lets time pass.
func (w *world) wait(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); ; {
		w.run()
		at := end
		for _, h := range w.hosts {
			at = min(at, h.m.Deadline(w.now))
		}
		w.now = max(w.now, at)
		for _, h := range w.hosts {
			h.m.HandleTimeout(w.now)
		}
		w.run()
		if w.now >= end {
			return
		}
	}
}

// checkKeys looks whether each end opens what the other seals, with the keys of that epoch.
func (w *world) checkKeys(epoch uint64) {
	w.t.Helper()
	for i, h := range w.hosts {
		check.Equal(w.t, "epoch", h.m.Epoch(), epoch)
		b, err := h.keys.Append(nil, []byte("abcd"))
		if !check.OK(w.t, err) {
			continue
		}
		got, with, err := w.hosts[1-i].keys.Open(w.now, b[:len(b)-3], nil)
		check.That(w.t, err == nil && bytes.Equal(got, []byte("abcd")) && with == epoch, "host %d: %q of %d, %v", 1-i, got,
			with, err)
	}
}

// checkMessages looks at the form of all messages.
func (w *world) checkMessages() {
	w.t.Helper()
	for i, h := range w.hosts {
		check.That(w.t, len(h.all) > 0, "host %d has sent nothing", i)
		for _, m := range h.all {
			for b := m[1:]; m[0]&0x80 == 0 && len(b) > 0; {
				n := 5 + int(b[3])<<8 + int(b[4])
				must.That(w.t, n <= len(b), "a record is cut: %x", m)
				b = b[n:]
			}
		}
	}
}
