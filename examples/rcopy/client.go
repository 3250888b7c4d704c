package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

const (
	chunk = 256 << 10 // octets of one RDMA Write
	ring  = 32        // Writes under way at most: 8 MiB, several times what is in flight
)

// upload is one copy to a server.
type upload struct {
	offer
	src      io.Reader
	patience time.Duration    // without anything moving
	progress func(octets int) // hears what was acknowledged

	e      *end
	where  grant
	sealed bool
	stored bool
	stats  rdma.AssocStats // once it is stored
}

// refusedError is the server's verdict that the file was not stored.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return "the server did not keep the file: " + e.text }

// sourceError is a failure to read the file to be copied.
type sourceError struct{ err error }

func (e *sourceError) Error() string {
	if errors.Is(e.err, io.EOF) || errors.Is(e.err, io.ErrUnexpectedEOF) {
		return "the file became shorter while it was copied"
	}
	return e.err.Error()
}

func (e *sourceError) Unwrap() error { return e.err }

// run copies the file and returns the SHA-256 that both sides have found.
func (u *upload) run(ctx context.Context, dev *rdma.Device, to netip.AddrPort) ([]byte, error) {
	var err error
	if u.e, err = newEnd(dev, ring+1); err != nil {
		return nil, err
	}
	defer u.e.close()
	if err := u.connect(ctx, to); err != nil {
		if ctx.Err() != nil {
			return nil, u.broken(ctx, err)
		}
		return nil, err
	}
	sum, err := u.transfer(ctx)
	if err != nil {
		return nil, u.broken(ctx, err)
	}
	u.stats, _ = u.e.qp.Stats()
	leaving, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	u.e.qp.Disconnect(leaving) // the file is stored even if this fails
	return sum, nil
}

func (u *upload) transfer(ctx context.Context) ([]byte, error) {
	sum, err := u.write(ctx)
	if err != nil {
		return nil, err
	}
	s := seal{size: u.size, sum: [sha256.Size]byte(sum)}
	u.sealed = true
	if err := u.e.say(s.encode()); err != nil {
		return nil, err
	}
	for !u.stored { // the server's disk may take any time; the session shows that it lives
		if _, err := u.step(ctx, math.MaxInt64); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// broken returns what an end before the verdict means.
func (u *upload) broken(ctx context.Context, err error) error {
	var refused *refusedError
	var source *sourceError
	switch {
	case errors.As(err, &refused), errors.As(err, &source):
		return err
	case ctx.Err() != nil:
		err = errors.New("interrupted")
	}
	if u.sealed {
		return fmt.Errorf("the server may have stored the file or not, its verdict is missing: %v", err)
	}
	return fmt.Errorf("nothing was stored: %v", err)
}

func (u *upload) connect(ctx context.Context, to netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, u.patience)
	defer cancel()
	answer, err := u.e.qp.Connect(ctx, to, u.encode())
	if err != nil {
		return err
	}
	return u.where.decode(answer)
}

// write fills the window and returns the SHA-256 of its content.
func (u *upload) write(ctx context.Context) ([]byte, error) {
	buf := make([]byte, min(ring*chunk, u.size))
	mr, err := u.e.pd.Register(buf, 0, nil)
	if err != nil {
		return nil, err
	}
	defer mr.Deregister()
	h := sha256.New()
	for posted, acked := uint64(0), uint64(0); acked < u.size; {
		if posted < u.size && posted-acked < uint64(len(buf)) {
			off, n := int(posted%uint64(len(buf))), int(min(chunk, u.size-posted))
			b := buf[off : off+n]
			if _, err := io.ReadFull(u.src, b); err != nil {
				return nil, &sourceError{err}
			}
			h.Write(b)
			err := u.e.qp.PostSend(&rdma.SendWR{
				ID: uint64(n), Op: rdma.OpWrite, SGL: []rdma.SGE{mr.SGE(off, n)},
				RemoteSTag: rdma.STag(u.where.stag), RemoteTO: u.where.to + posted,
			})
			if err != nil {
				return nil, u.e.reason(err)
			}
			posted += uint64(n)
			continue
		}
		n, err := u.step(ctx, u.patience)
		if err != nil {
			return nil, err
		}
		acked += n
		u.progress(int(n))
	}
	return h.Sum(nil), nil
}

// step handles one completion and returns how many octets of the file it acknowledges.
func (u *upload) step(ctx context.Context, patience time.Duration) (uint64, error) {
	wc, err := u.e.next(ctx, patience)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return 0, fmt.Errorf("nothing has moved for %v", patience)
	case err != nil:
		return 0, err
	case wc.Opcode == rdmap.WCWrite:
		return wc.ID, nil
	case wc.Opcode != rdmap.WCRecv:
		return 0, nil
	}
	var v verdict
	if err := v.decode(u.e.received(wc)); err != nil || v.stored && !u.sealed {
		return 0, errProtocol
	}
	if !v.stored {
		return 0, &refusedError{v.text}
	}
	u.stored = true
	return 0, nil
}
