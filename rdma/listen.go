package rdma

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/sctp"
)

// Listener takes requests for sessions on one SCTP port.
type Listener struct {
	d   *Device
	sl  *sctp.Listener
	req chan *Request

	once sync.Once
	done chan struct{}
}

// Listen takes requests on an SCTP port; 0 picks a free one. It fails with rawio.ErrPortInUse when the
// port is taken.
func (d *Device) Listen(port uint16) (*Listener, error) {
	l := &Listener{d: d, req: make(chan *Request, 1024), done: make(chan struct{})}
	sl, err := d.t.Listen(port, d.sctpConfig(false, l, nil))
	if err != nil {
		return nil, err
	}
	l.sl = sl
	return l, nil
}

// Port returns the SCTP port.
func (l *Listener) Port() uint16 { return l.sl.Port() }

// Accept returns the next request. It fails with net.ErrClosed after Close and with the context's
// error when that ends first.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	select {
	case r := <-l.req:
		return r, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close stops taking requests. QPs that were accepted live on.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() {
		err = l.sl.Close()
		close(l.done)
	})
	return err
}

// Request is a peer's wish for a session: answer it with Accept or Reject.
type Request struct {
	p       *peer
	s       *ddpadapt.Session
	private []byte
}

// PrivateData returns what the peer sent along, 512 octets at most.
func (r *Request) PrivateData() []byte { return r.private }

// RemoteAddr returns the peer's address and SCTP port.
func (r *Request) RemoteAddr() netip.AddrPort { return r.p.remote() }

// Accept connects qp to the peer and sends private data, 512 octets at most, along. Post receives on
// qp first: the peer may send as soon as it learns of the acceptance.
func (r *Request) Accept(qp *QP, private []byte) error {
	if len(private) > ddpadapt.MaxPrivateData {
		return ddpadapt.ErrPrivateDataTooLong
	}
	if err := qp.reserve(); err != nil {
		return err
	}
	_, now := r.p.conn.Lock()
	err := r.s.Accept(now, qp.core.Stream(), private)
	if err == nil {
		qp.bind(r.p, r.s)
		qp.connected(nil)
	}
	r.p.conn.Unlock()
	if err != nil {
		qp.release()
	}
	return err
}

// Reject refuses the session; private data says why to the peer's program.
func (r *Request) Reject(private []byte) error {
	_, now := r.p.conn.Lock()
	defer r.p.conn.Unlock()
	return r.s.Reject(now, private)
}
