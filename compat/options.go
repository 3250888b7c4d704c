package compat

import (
	"syscall"
	"time"

	"github.com/rddp-go/rddp/sctp"
)

// socketOptions are the options of a socket at level SOL_SCTP, and those that are read back from
// its placeholder.
type socketOptions struct {
	events             [numEvents]byte
	recvContext        uint32
	defaultSend        SndRcvInfo // SCTP_DEFAULT_SEND_PARAM
	cfg                sctp.Config
	sackEvery          int // packets
	noMappedV4         bool
	fragmentInterleave int
	linger             bool
	lingerTime         time.Duration
	rcvBuf, sndBuf     int // SO_RCVBUF, SO_SNDBUF; 0 for the default
	streamResets       streamResetOptions
	class              int // IP_TOS or IPV6_TCLASS, as the descriptor had it last
}

func (o *socketOptions) setDefaults() {
	_ = o.cfg.Upper().Complete() // the defaults
	o.sackEvery, o.cfg.MaxInitRTO = 2, o.cfg.RTOMax
	o.cfg.OutStreams = 10 // the kernel's default, whatever the peer opens
}

// applyToConn applies the options that may change during the life of an association.
func (o *socketOptions) applyToConn(c *sctp.Conn) error {
	return c.Reconfigure(func(cfg *sctp.Config) { *cfg = o.cfg })
}

// applyToBoth applies the options to the association, and to the future associations of a listener.
func (o *socketOptions) applyToBoth(c *sctp.Conn, l *sctp.Listener) error {
	switch {
	case l != nil:
		return l.Reconfigure(func(cfg *sctp.Config) { *cfg = o.cfg })
	case c == nil:
		return nil
	}
	return o.applyToConn(c)
}

// optionSpec is one option of SOL_SCTP. get returns its structure; arg is the part of it in the
// caller's memory. set takes a structure.
type optionSpec struct {
	size int // of the structure, in octets
	// minSize is the shortest structure that set takes: an older, shorter one, or any length from
	// minSize on. 0: it must be size.
	minSize int
	get     func(s *Socket, arg []byte, f *structWriter) error
	set     func(s *Socket, b []byte) error
}

// These are the options of RFC 6458 section 8, by their numbers on Linux.
const (
	optRTOInfo = iota
	optAssocInfo
	optInitMsg
	optNoDelay
	optAutoclose
	optSetPeerPrimary
	optPrimaryAddr
	optAdaptation
	optDisableFragments
	optPeerAddrParams
	optDefaultSend
	optEvents
	optMappedV4
	optMaxSeg
	optStatus
	optPeerAddrInfo
	optDelayedSack
	optContext
	optInterleave
	optPartialDelivery
	optMaxBurst
	optAuthChunk // the first of six about authentication, and two that only get
	_
	_
	_
	_
	_
	optLocalAuthChunks
	optAssocNumber
	optAssocIDs
	optAutoASCONF
	optThresholds
	_ // SCTP_RECVRCVINFO and SCTP_RECVNXTINFO: the SndRcvInfo of Recv says as much
	_
	optDefaultSndInfo
	optAuthDeactivate
)

// These are the options of the functions of section 9, and the rest.
const (
	optBindAdd       = 100
	optBindRemove    = 101
	optPeelOff       = 102
	optConnectOld    = 107
	optPeerAddrs     = 108
	optLocalAddrs    = 109
	optConnect       = 110
	optConnectGet    = 111 // takes a pointer within its structure, which Go's memory may not have
	optInterleaving  = 125 // SCTP_INTERLEAVING_SUPPORTED (RFC 8260 section 4.3.1)
	optEvent         = 127 // SCTP_EVENT: one of optEvents
	sizeAddrsHeader  = 8
	sizePeerAddrInfo = 24 + sockaddrStorageLen
)

// Getsockopt is getsockopt at level SOL_SCTP. b is the caller's memory, from which some options
// take an argument. It returns the length of the option in b.
func (s *Socket) Getsockopt(name int, b []byte) (int, error) {
	if s.Closed() {
		return 0, syscall.EBADF
	}
	switch {
	case name >= optAuthChunk && name <= optLocalAuthChunks, name == optAuthDeactivate:
		return 0, syscall.EACCES // there is no authentication
	case name == optAutoclose, name == optAssocNumber: // of the one-to-many style, as on Linux
		return 0, syscall.EOPNOTSUPP
	case name == optPeelOff:
		_, err := s.PeelOff(0)
		return 0, err
	case name == optPeerAddrs || name == optLocalAddrs:
		return s.getAddrs(name, b)
	}
	o, ok := optionTable[name]
	switch {
	case !ok:
		return 0, syscall.ENOPROTOOPT
	case name == optEvents:
		o.size = min(o.size, len(b))
	case name == optMaxSeg && len(b) == 4, name == optMaxBurst && len(b) == 4: // the older form, an int
		o.size = 4
	case name == optDelayedSack && len(b) == 8:
		o.size = 8
	case name == optPeerAddrParams && len(b) >= o.minSize:
		o.size = min(o.size, len(b))
	}
	if len(b) < o.size {
		return 0, syscall.EINVAL
	}
	f := make(structWriter, 0, sizePeerAddrInfo+32)
	if err := o.get(s, b[:o.size], &f); err != nil {
		return 0, errnoOf(err)
	}
	if o.size == 4 && len(f) == 8 { // the value without the association
		f = f[4:]
	}
	return copy(b, f[:o.size]), nil
}

// getAddrs is Getsockopt for lists of addresses.
func (s *Socket) getAddrs(name int, b []byte) (int, error) {
	if len(b) < sizeAddrsHeader {
		return 0, syscall.EINVAL
	}
	of := s.LocalAddrs
	if name == optPeerAddrs {
		of = s.RemoteAddrs
	}
	list, n, err := of()
	switch {
	case err == syscall.ENOTCONN:
		return 0, syscall.EINVAL
	case err != nil:
		return 0, err
	case len(list) > len(b)-sizeAddrsHeader:
		return 0, syscall.ENOMEM
	}
	nativeOrder.PutUint32(b[4:], uint32(n))
	return sizeAddrsHeader + copy(b[sizeAddrsHeader:], list), nil
}

// Setsockopt is setsockopt at level SOL_SCTP.
func (s *Socket) Setsockopt(name int, b []byte) error {
	if s.Closed() {
		return syscall.EBADF
	}
	switch {
	case name >= optAuthChunk && name < optAuthChunk+5, name == optAuthDeactivate:
		return syscall.EACCES
	case name == optAutoclose:
		return syscall.EOPNOTSUPP
	case name == optSetPeerPrimary: // without ASCONF
		return syscall.EPERM
	case name == optBindAdd || name == optBindRemove:
		return s.Bind(b, name == optBindRemove)
	case name == optConnect || name == optConnectOld:
		_, err := s.Connect(b)
		return err
	case name == optResetStreams || name == optResetAssoc || name == optAddStreams:
		return s.askPeer(name, b)
	}
	o, ok := optionTable[name]
	switch {
	case !ok || o.set == nil:
		return syscall.ENOPROTOOPT
	case o.minSize == 0 && len(b) != o.size, len(b) < o.minSize, name == optEvents && len(b) > o.size:
		return syscall.EINVAL
	}
	s.mu.Lock()
	before := s.opts
	err := o.set(s, b)
	if err == nil {
		cfg := s.opts.cfg
		err = cfg.Upper().Complete()
	}
	if err != nil {
		s.opts = before
	}
	c, l, opts := s.conn, s.listener, s.opts
	s.mu.Unlock()
	if err == nil {
		if err = opts.applyToBoth(c, l); err != nil { // as where a link cannot mark packets
			s.mu.Lock()
			s.opts = before
			s.mu.Unlock()
		}
	}
	if err == nil && (name == optEvents || name == optEvent) {
		s.updateSubscriptions(c)
		if c != nil && subscribesSenderDry(name, b) {
			s.notifySenderDry(c)
		}
	}
	return errnoOf(err)
}

// intOption returns an option that is an int.
func intOption(get func(o *socketOptions) int, set func(o *socketOptions, v int) error) optionSpec {
	return optionSpec{size: 4, minSize: 4,
		get: func(s *Socket, _ []byte, f *structWriter) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.appendUint32(get(&s.opts))
			return nil
		},
		set: func(s *Socket, b []byte) error { return set(&s.opts, int(int32(nativeOrder.Uint32(b)))) },
	}
}

// assocValueOption returns an option that is a sctp_assoc_value, or an int in its older form.
func assocValueOption(get func(o *socketOptions) int, set func(o *socketOptions, v int) error) optionSpec {
	return optionSpec{size: 8, minSize: 4, get: getAssocValue(get),
		set: func(s *Socket, b []byte) error { return set(&s.opts, int(int32(nativeOrder.Uint32(b[len(b)-4:])))) },
	}
}

// getAssocValue returns the get of an option that is a sctp_assoc_value.
func getAssocValue(get func(o *socketOptions) int) func(*Socket, []byte, *structWriter) error {
	return func(s *Socket, _ []byte, f *structWriter) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.appendUint32(0)
		f.appendUint32(get(&s.opts))
		return nil
	}
}

// getExtension returns the get of an option that offers an extension. Of an association it says
// whether both sides have offered it.
func getExtension(x sctp.Extensions, offers func(o *socketOptions) bool) func(*Socket, []byte, *structWriter) error {
	return func(s *Socket, _ []byte, f *structWriter) error {
		s.mu.Lock()
		c, is := s.conn, offers(&s.opts)
		s.mu.Unlock()
		if c != nil {
			is = c.Extensions().Has(x)
		}
		f.appendUint32(0)
		f.appendUint32(boolInt(is))
		return nil
	}
}

var optionTable map[int]optionSpec

func init() {
	optionTable = map[int]optionSpec{
		optRTOInfo:        {16, 0, getRTOInfo, setRTOInfo},
		optAssocInfo:      {20, 0, getAssocInfo, setAssocInfo},
		optInitMsg:        {8, 0, getInitMsg, setInitMsg},
		optPrimaryAddr:    {4 + sockaddrStorageLen, 0, getPrimary, setPrimary},
		optPeerAddrParams: {156, 152, getPeerAddrParams, setPeerAddrParams},
		optDefaultSend:    {SndRcvInfoSize, 0, getDefaultSend, setDefaultSend},
		optDefaultSndInfo: {16, 0, getDefaultSndInfo, setDefaultSndInfo},
		optEvents:         {numEvents, 0, getEvents, setEvents},
		optEvent:          {8, 0, getEvent, setEvent},
		optStatus:         {24 + sizePeerAddrInfo, 0, getStatus, nil},
		optPeerAddrInfo:   {sizePeerAddrInfo, 0, getPeerAddrInfo, nil},
		optDelayedSack:    {12, 8, getDelayedSack, setDelayedSack},

		optReconfigSupported: {8, 0, getExtension(sctp.StreamReconfiguration,
			func(o *socketOptions) bool { return o.streamResets.supported }), setReconfigSupported},
		optEnableStreamReset: {8, 0, getAssocValue(func(o *socketOptions) int { return int(o.streamResets.enabled) }),
			setEnableStreamReset},
		optInterleaving: {8, 0, getExtension(sctp.Interleaving,
			func(o *socketOptions) bool { return o.cfg.Interleaving }), setInterleaving},
		optNoDelay: intOption(func(o *socketOptions) int { return boolInt(o.cfg.NoDelay) },
			func(o *socketOptions, v int) error { o.cfg.NoDelay = v != 0; return nil }),
		optDisableFragments: intOption(func(o *socketOptions) int { return boolInt(o.cfg.DisableFragments) },
			func(o *socketOptions, v int) error { o.cfg.DisableFragments = v != 0; return nil }),
		optMappedV4: intOption(func(o *socketOptions) int { return boolInt(!o.noMappedV4) },
			func(o *socketOptions, v int) error { o.noMappedV4 = v == 0; return nil }),
		optInterleave: intOption(func(o *socketOptions) int { return o.fragmentInterleave },
			func(o *socketOptions, v int) error {
				o.fragmentInterleave = boolInt(v != 0)
				o.cfg.Interleaving = o.cfg.Interleaving && v != 0
				return nil
			}),
		optAdaptation: intOption(getAdaptation, func(o *socketOptions, v int) error {
			u := uint32(v)
			o.cfg.Adaptation = &u
			return nil
		}),
		optContext: assocValueOption(func(o *socketOptions) int { return int(o.recvContext) },
			func(o *socketOptions, v int) error { o.recvContext = uint32(v); return nil }),
		optMaxBurst: assocValueOption(func(o *socketOptions) int { return max(o.cfg.MaxBurst, 0) },
			setMaxBurst),
		optMaxSeg: assocValueOption(func(o *socketOptions) int { return o.cfg.MaxSegment },
			func(o *socketOptions, v int) error { o.cfg.MaxSegment = v; return nil }),
		optPartialDelivery: intOption(func(o *socketOptions) int { return o.cfg.PartialDelivery },
			func(o *socketOptions, v int) error { o.cfg.PartialDelivery = v; return nil }),
	}
	o := optionTable[optEvents]
	o.minSize = 1
	optionTable[optEvents] = o
}
