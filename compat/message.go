package compat

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/sctp"
)

// Send is sendmsg: it sends b as one message. It sends as info says, or without info as
// SCTP_DEFAULT_SEND_PARAM does. info may ask for the end of the association instead.
func (s *Socket) Send(b []byte, info *SndRcvInfo) (int, error) {
	c, err := s.waitConn(syscall.ENOTCONN)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	if info == nil {
		d := s.opts.defaultSend
		info = &d
	}
	shut := s.sendingShut
	s.mu.Unlock()
	eof := info.Flags&flagEOF != 0 || len(b) == 0 && info.Flags&flagTTL != 0
	switch {
	case info.Flags&^flagNames != 0, eof && len(b) > 0:
		return 0, syscall.EINVAL
	case info.Flags&flagAbort != 0:
		c.Abort(string(b))
		s.recordEnd(syscall.ECONNABORTED)
		return len(b), nil
	case eof:
		return 0, s.Shutdown()
	case shut:
		return 0, syscall.EPIPE
	}
	m := sctp.SendInfo{Stream: info.Stream, PPID: Swap(info.PPID), Unordered: info.Flags&flagUnordered != 0,
		SackNow: info.Flags&flagSackNow != 0,
		Context: info.Context, Lifetime: time.Duration(info.TTL) * time.Millisecond}
	end := s.writeWaits.beginCall()
	defer s.writeWaits.endCall(end)
	for {
		n, err := c.WriteMsg(b, m)
		switch {
		case err == nil:
			return n, nil
		case err == os.ErrDeadlineExceeded:
			if s.Closed() {
				return 0, syscall.EPIPE
			}
			if err = s.writeWaits.checkExpired(end); err == nil {
				continue
			}
			return 0, err
		case errors.Is(err, net.ErrClosed) && !s.Closed(): // this side has aborted it
			return 0, syscall.EPIPE
		}
		switch e := errnoOf(err); e {
		case syscall.EINVAL, syscall.EMSGSIZE, syscall.EPIPE, syscall.EBADF: // of this call alone
			return 0, e
		}
		return 0, s.failureErrno(err, syscall.EPIPE)
	}
}

// Recv is recvmsg: it returns a message or a notification. If b is too short, it returns what fits,
// and the rest at the next call. MsgNotification in flags marks a notification. MsgEOR in flags
// says that b has the end of the message or notification. told says whether info was filled in,
// which needs a subscription to the event of data. At the end of the association Recv fails with
// io.EOF.
func (s *Socket) Recv(b []byte, info *SndRcvInfo) (n int, told bool, flags int, err error) {
	c, err := s.waitConn(syscall.ENOTCONN)
	if err != nil {
		return 0, false, 0, err
	}
	end := s.readWaits.beginCall()
	defer s.readWaits.endCall(end)
	p := &s.leftover
	if p.mu.TryLock() {
		defer p.mu.Unlock()
	} else { // another call has them
		p = new(partialMessage)
	}
	for {
		if !p.midMessage {
			if n, flags := s.notifications.readNext(b, false, &s.readWaits); flags != 0 {
				return n, false, flags, nil
			}
		}
		n, r, err := p.readMsg(c, b)
		switch {
		case err == nil:
			if r.More != p.midMessage {
				p.midMessage = r.More
				s.notifications.setMidMessage(r.More, &s.readWaits)
			}
			return n, s.fillRcvInfo(&r, info), endFlag(r.More), nil
		case err == os.ErrDeadlineExceeded:
			if s.Closed() {
				return 0, false, 0, io.EOF
			}
			if err = s.readWaits.checkExpired(end); err != nil {
				return 0, false, 0, err
			}
			continue
		case err == sctp.ErrCutOff: // the cause comes next
			p.midMessage = false
			s.notifyCutOff(&r)
			continue
		case s.Closed():
			return 0, false, 0, io.EOF
		}
		if n, flags := s.readEndNotification(b); flags != 0 {
			return n, false, flags, nil
		}
		if err == io.EOF {
			return 0, false, 0, err
		}
		return 0, false, 0, s.failureErrno(err, syscall.ENOTCONN)
	}
}

// endFlag returns MsgEOR, unless there is more.
func endFlag(more bool) int {
	if more {
		return 0
	}
	return MsgEOR
}

// fillRcvInfo fills info with what Recv reports of a message, if it is subscribed to.
func (s *Socket) fillRcvInfo(r *sctp.RecvInfo, info *SndRcvInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.events[eventData] == 0 {
		return false
	}
	*info = SndRcvInfo{Stream: r.Stream, SSN: r.SSN, PPID: Swap(r.PPID), Context: s.opts.recvContext, TSN: r.TSN,
		CumTSN: r.CumTSN, AssocID: s.assocID}
	if r.Unordered {
		info.Flags, info.SSN = flagUnordered, 0
	}
	return true
}

// failureErrno returns the errno of a call on an association that has failed. The first call gets
// the cause why, and later calls get then.
func (s *Socket) failureErrno(why error, then syscall.Errno) error {
	s.mu.Lock()
	heard := s.endErr != nil
	s.mu.Unlock()
	if errors.Is(why, sctp.ErrShutdown) || heard {
		return then
	}
	e := errnoOf(why)
	s.recordEnd(e)
	return e
}

func (s *Socket) recordEnd(why error) {
	s.mu.Lock()
	s.endErr = why
	s.mu.Unlock()
}
