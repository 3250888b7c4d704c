package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// service answers pings.
type service struct {
	dev               *rdma.Device
	out               io.Writer
	timestamps, quiet bool
	memoryQuota       quota.Semaphore   // octets that sessions take
	logLimiter        *quota.LogLimiter // of log lines
}

// maxServeMemory bounds what all sessions together take: two of the longest pings. One address may
// take half of it.
const maxServeMemory = 512 << 20

var errBusy = errors.New("the server is busy with other clients: try again later, or with shorter pings")

// idleTimeout is how long a session lasts without a ping.
const idleTimeout = 10 * time.Minute

var errIdle = fmt.Errorf("no ping has come for %v", idleTimeout)

func (s *service) acceptClients(ctx context.Context, l *rdma.Listener) {
	s.memoryQuota.Max = cmp.Or(s.memoryQuota.Max, maxServeMemory)
	s.logLimiter = quota.NewServerLimiter()
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			return
		}
		go func() {
			if err := s.serveClient(ctx, req); err != nil && ctx.Err() == nil {
				s.logLine(req.RemoteAddr(), "%s", cli.Explain(err))
			}
		}()
	}
}

// logLine writes a line about a client.
func (s *service) logLine(from netip.AddrPort, format string, args ...any) {
	left, ok := s.logLimiter.Allow(time.Now(), from.Addr())
	if s.quiet || !ok {
		return
	}
	line := quota.WithLeftOut(fmt.Sprintf("%v: ", from)+fmt.Sprintf(format, args...), left)
	if s.timestamps {
		line = formatTimestamp(time.Now()) + line
	}
	fmt.Fprintln(s.out, line)
}

// readSeq is the number of the ping whose data a client reads.
const readSeq = 0

// serveClient handles one client until it goes.
func (s *service) serveClient(ctx context.Context, req *rdma.Request) error {
	var client hello
	err := client.decode(req.PrivateData())
	if err == nil && client.size > maxSize {
		err = fmt.Errorf("%d bytes are too many, %d is the most", client.size, maxSize)
	}
	if err != nil {
		req.Reject([]byte(err.Error()))
		return err
	}
	from, octets := req.RemoteAddr().Addr(), int64(endpointMemory(int(client.size)))
	if !s.memoryQuota.TryAcquire(from, octets) {
		req.Reject([]byte(errBusy.Error()))
		return errBusy
	}
	defer s.memoryQuota.Release(from, octets)
	e, err := newEndpoint(s.dev, int(client.size), client.pattern)
	if err != nil {
		req.Reject([]byte(err.Error()))
		return err
	}
	defer e.close()
	fillData(e.readTarget, readSeq, e.pattern)
	mine := e.makeHello()
	if err := req.Accept(e.qp, mine.encode()); err != nil {
		return err
	}
	s.logLine(req.RemoteAddr(), "connected, %d bytes a ping", client.size)
	ctx, cancel := context.WithCancelCause(ctx)
	silent := time.AfterFunc(idleTimeout, func() { cancel(errIdle) })
	defer silent.Stop()
	var pings int
	defer func() { s.logLine(req.RemoteAddr(), "gone after %d pings", pings) }()
	for {
		wc, err := e.nextCompletion(ctx)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		silent.Reset(idleTimeout)
		switch {
		case wc.Status == rdmap.StatusWRFlushErr:
			return e.qp.Err() // the client has gone
		case wc.Status != rdmap.StatusSuccess:
			return e.requestError(wc)
		case wc.Opcode == rdmap.WCRecv:
			pings++
			if err := s.answerPing(e, &client, wc); errors.Is(err, rdmap.ErrState) {
				return e.qp.Err() // the client has gone meanwhile
			} else if err != nil {
				return err
			}
		}
	}
}

// answerPing replies to one Send. It also answers by RDMA Write what was written before it.
func (s *service) answerPing(e *endpoint, client *hello, wc rdma.WC) error {
	msg := e.receivedMessage(wc)
	if len(msg) < headerLen {
		return fmt.Errorf("a message of %d octets is not a ping", len(msg))
	}
	op, seq := operation(msg[0]), binary.BigEndian.Uint64(msg[2:])
	data := msg[headerLen:]
	if op == opWrite {
		data = e.copyWritten(seq)
	}
	verdict := verdictGood
	if !e.hasPingData(data, seq) {
		verdict = verdictBad
	}
	if op == opWrite {
		if err := e.postWrite(client.write, seq, data); err != nil {
			return err
		}
		data = nil
	}
	if err := e.postMessage(op, verdict, seq, data); err != nil {
		return err
	}
	return e.postRecv(int(wc.ID))
}
