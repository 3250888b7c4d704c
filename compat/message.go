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

// Send is sendmsg: it sends b as one message, as info says, or without it as SCTP_DEFAULT_SEND_PARAM does. info may ask for the end of the
// association instead.
func (s *Socket) Send(b []byte, info *SndRcvInfo) (int, error) {
	c, err := s.association(syscall.ENOTCONN)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	if info == nil {
		d := s.opts.send
		info = &d
	}
	shut := s.shut
	s.mu.Unlock()
	eof := info.Flags&flagEOF != 0 || len(b) == 0 && info.Flags&flagTTL != 0
	switch {
	case info.Flags&^flagNames != 0, eof && len(b) > 0:
		return 0, syscall.EINVAL
	case info.Flags&flagAbort != 0:
		c.Abort(string(b))
		s.ended(syscall.ECONNABORTED)
		return len(b), nil
	case eof:
		return 0, s.Shutdown()
	case shut:
		return 0, syscall.EPIPE
	}
	m := sctp.SendInfo{Stream: info.Stream, PPID: Swap(info.PPID), Unordered: info.Flags&flagUnordered != 0, SackNow: info.Flags&flagSackNow != 0,
		Context: info.Context, Lifetime: time.Duration(info.TTL) * time.Millisecond}
	end := s.wr.begin()
	defer s.wr.done(end)
	for {
		n, err := c.WriteMsg(b, m)
		switch {
		case err == nil:
			return n, nil
		case err == os.ErrDeadlineExceeded:
			if s.Closed() {
				return 0, syscall.EPIPE
			}
			if err = s.wr.over(end); err == nil {
				continue
			}
			return 0, err
		case errors.Is(err, net.ErrClosed) && !s.Closed(): // aborted from here
			return 0, syscall.EPIPE
		}
		switch e := errnoOf(err); e {
		case syscall.EINVAL, syscall.EMSGSIZE, syscall.EPIPE, syscall.EBADF: // of this call
			return 0, e
		}
		return 0, s.broken(err, syscall.EPIPE)
	}
}

// Recv is recvmsg: it returns a message, or what fits b of it, and the rest at the next call; with MsgNotification among the flags a
// notification. MsgEOR among the flags says that b has the end of either. told says whether info was filled in, as it is if the event of data is
// subscribed to. At the end of the association it fails with io.EOF.
func (s *Socket) Recv(b []byte, info *SndRcvInfo) (n int, told bool, flags int, err error) {
	c, err := s.association(syscall.ENOTCONN)
	if err != nil {
		return 0, false, 0, err
	}
	end := s.rd.begin()
	defer s.rd.done(end)
	p := &s.parts
	if p.mu.TryLock() {
		defer p.mu.Unlock()
	} else { // another call has them
		p = new(parts)
	}
	for {
		if !p.amid {
			if n, flags := s.notes.read(b, false, &s.rd); flags != 0 {
				return n, false, flags, nil
			}
		}
		n, r, err := p.read(c, b)
		switch {
		case err == nil:
			if r.More != p.amid {
				p.amid = r.More
				s.notes.hush(r.More, &s.rd)
			}
			return n, s.rcvInfo(&r, info), endFlag(r.More), nil
		case err == os.ErrDeadlineExceeded:
			if s.Closed() {
				return 0, false, 0, io.EOF
			}
			if err = s.rd.over(end); err != nil {
				return 0, false, 0, err
			}
			continue
		case err == sctp.ErrCutOff: // why it is comes next
			p.amid = false
			s.cutOff(&r)
			continue
		case s.Closed():
			return 0, false, 0, io.EOF
		}
		if n, flags := s.last(b); flags != 0 {
			return n, false, flags, nil
		}
		if err == io.EOF {
			return 0, false, 0, err
		}
		return 0, false, 0, s.broken(err, syscall.ENOTCONN)
	}
}

// endFlag is MsgEOR, unless there is more.
func endFlag(more bool) int {
	if more {
		return 0
	}
	return MsgEOR
}

// rcvInfo puts into info what Recv says of a message, if it does.
func (s *Socket) rcvInfo(r *sctp.RecvInfo, info *SndRcvInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.events[eventData] == 0 {
		return false
	}
	*info = SndRcvInfo{Stream: r.Stream, SSN: r.SSN, PPID: Swap(r.PPID), Context: s.opts.context, TSN: r.TSN, CumTSN: r.CumTSN, AssocID: s.id}
	if r.Unordered {
		info.Flags, info.SSN = flagUnordered, 0
	}
	return true
}

// broken is what a call hears of an association that has failed: why, once, and then another errno.
func (s *Socket) broken(why error, then syscall.Errno) error {
	s.mu.Lock()
	heard := s.down != nil
	s.mu.Unlock()
	if errors.Is(why, sctp.ErrShutdown) || heard {
		return then
	}
	e := errnoOf(why)
	s.ended(e)
	return e
}

func (s *Socket) ended(why error) {
	s.mu.Lock()
	s.down = why
	s.mu.Unlock()
}
