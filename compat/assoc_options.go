package compat

import (
	"syscall"
	"time"

	"github.com/rddp-go/rddp/sctp"
)

func getAdaptation(o *socketOptions) int {
	if o.cfg.Adaptation == nil {
		return 0
	}
	return int(*o.cfg.Adaptation)
}

func setMaxBurst(o *socketOptions, v int) error {
	if o.cfg.MaxBurst = v; v == 0 { // no limit
		o.cfg.MaxBurst = -1
	}
	return nil
}

func getRTOInfo(s *Socket, _ []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.appendUint32(0)
	f.appendMillis(s.opts.cfg.RTOInitial)
	f.appendMillis(s.opts.cfg.RTOMax)
	f.appendMillis(s.opts.cfg.RTOMin)
	return nil
}

// setRTOInfo sets the fields that are not zero.
func setRTOInfo(s *Socket, b []byte) error {
	c := s.opts.cfg
	for i, p := range []*time.Duration{&c.RTOInitial, &c.RTOMax, &c.RTOMin} {
		if d := parseMillis(b[4+4*i:]); d != 0 {
			*p = d
		}
	}
	if parseMillis(b[4:]) > c.RTOMax {
		return syscall.EINVAL
	}
	c.RTOInitial = min(c.RTOInitial, c.RTOMax) // the program has not set it
	s.opts.cfg = c
	return nil
}

func getAssocInfo(s *Socket, _ []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, id := s.conn, 0
	var st sctp.Stats
	peers := 0
	if c != nil {
		st, peers, id = c.Stats(), len(c.Paths()), int(s.assocID)
	}
	f.appendUint32(id)
	f.appendUint16(s.opts.cfg.AssocMaxRetrans)
	f.appendUint16(peers)
	f.appendUint32(st.PeerWindow)
	f.appendUint32(st.RecvWindow)
	f.appendMillis(s.opts.cfg.CookieLife)
	return nil
}

func setAssocInfo(s *Socket, b []byte) error {
	if n := int(nativeOrder.Uint16(b[4:])); n != 0 {
		s.opts.cfg.AssocMaxRetrans = n
	}
	if d := parseMillis(b[16:]); d != 0 {
		s.opts.cfg.CookieLife = d
	}
	return nil
}

func getInitMsg(s *Socket, _ []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.appendUint16(int(s.opts.cfg.OutStreams))
	f.appendUint16(int(s.opts.cfg.InStreams))
	f.appendUint16(s.opts.cfg.MaxInitRetrans)
	f.appendUint16(int(s.opts.cfg.MaxInitRTO.Milliseconds()))
	return nil
}

// setInitMsg sets the fields that are not zero.
func setInitMsg(s *Socket, b []byte) error {
	for i, set := range []func(v uint16){
		func(v uint16) { s.opts.cfg.OutStreams = v }, func(v uint16) { s.opts.cfg.InStreams = v },
		func(v uint16) { s.opts.cfg.MaxInitRetrans = int(v) }, func(v uint16) {
			s.opts.cfg.MaxInitRTO = time.Duration(v) * time.Millisecond
		},
	} {
		if v := nativeOrder.Uint16(b[2*i:]); v != 0 {
			set(v)
		}
	}
	return nil
}

func getDefaultSend(s *Socket, _ []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*f = s.opts.defaultSend.AppendTo(*f)
	return nil
}

func setDefaultSend(s *Socket, b []byte) error {
	in := ParseSndRcvInfo(b)
	if in.Flags&^flagNames != 0 {
		return syscall.EINVAL
	}
	s.opts.defaultSend = SndRcvInfo{Stream: in.Stream, Flags: in.Flags, PPID: in.PPID, Context: in.Context, TTL: in.TTL}
	return nil
}

func getDefaultSndInfo(s *Socket, _ []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.opts.defaultSend
	f.appendUint16(int(d.Stream))
	f.appendUint16(int(d.Flags))
	f.appendUint32(int(d.PPID))
	f.appendUint32(int(d.Context))
	f.appendUint32(0)
	return nil
}

func setDefaultSndInfo(s *Socket, b []byte) error {
	flags := nativeOrder.Uint16(b[2:])
	if flags&^flagNames != 0 {
		return syscall.EINVAL
	}
	s.opts.defaultSend = SndRcvInfo{Stream: nativeOrder.Uint16(b), Flags: flags, PPID: nativeOrder.Uint32(b[4:]),
		Context: nativeOrder.Uint32(b[8:]), TTL: s.opts.defaultSend.TTL}
	return nil
}

func getDelayedSack(s *Socket, arg []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delay, every := s.opts.cfg.SackDelay, s.opts.sackEvery
	if every == 1 {
		delay = 0
	}
	f.appendUint32(0)
	f.appendMillis(delay)
	f.appendUint32(every)
	return nil
}

// setDelayedSack takes a sctp_sack_info, or a sctp_assoc_value with the delay alone. There a delay
// of 0 means none.
func setDelayedSack(s *Socket, b []byte) error {
	delay, every := parseMillis(b[4:]), 2
	if len(b) >= 12 {
		every = int(nativeOrder.Uint32(b[8:]))
		if delay == 0 && every == 0 {
			return nil
		}
	} else if delay == 0 {
		every = 1
	}
	if delay > 500*time.Millisecond {
		return syscall.EINVAL
	}
	o := &s.opts
	if every != 0 {
		o.sackEvery = min(every, 2) // RFC 9260 section 6.2 lets no more than 2 packets wait
	}
	switch {
	case every == 1:
		o.cfg.SackDelay = 1 // at once
	case delay != 0:
		o.cfg.SackDelay = delay
	}
	o.cfg.LoneSackDelay = 0
	return nil
}

// setInterleaving offers I-DATA to future peers. The program has to take interleaved messages, and
// to have said so by SCTP_FRAGMENT_INTERLEAVE, as on Linux.
func setInterleaving(s *Socket, b []byte) error {
	v := nativeOrder.Uint32(b[4:])
	if v != 0 && s.opts.fragmentInterleave == 0 {
		return syscall.EPERM
	}
	s.opts.cfg.Interleaving = v != 0
	return nil
}
