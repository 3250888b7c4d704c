package compat

import (
	"net/netip"
	"slices"
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

// Flags of SCTP_PEER_ADDR_PARAMS.
const (
	sppHeartbeat = 1 << iota
	sppNoHeartbeat
	sppDemand
	sppPMTUD
	sppNoPMTUD
	sppSackDelay
	sppNoSackDelay
	sppHeartbeatNow
	sppFlowLabel
	sppDSCP
)

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
	return optionSpec{size: 8, minSize: 4,
		get: func(s *Socket, _ []byte, f *structWriter) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.appendUint32(0)
			f.appendUint32(get(&s.opts))
			return nil
		},
		set: func(s *Socket, b []byte) error { return set(&s.opts, int(int32(nativeOrder.Uint32(b[len(b)-4:])))) },
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

		optReconfigSupported: {8, 0, getReconfigSupported, setReconfigSupported},
		optEnableStreamReset: {8, 0, getEnableStreamReset, setEnableStreamReset},
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
		optInterleaving: {8, 0, getInterleaving, setInterleaving},
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

func getAdaptation(o *socketOptions) int {
	if o.cfg.Adaptation == nil {
		return 0
	}
	return int(*o.cfg.Adaptation)
}

// getInterleaving returns what was agreed on, or else what will be offered.
func getInterleaving(s *Socket, _ []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.appendUint32(0)
	if s.conn != nil {
		f.appendUint32(boolInt(s.conn.Extensions().Has(sctp.Interleaving)))
	} else {
		f.appendUint32(boolInt(s.opts.cfg.Interleaving))
	}
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

func getEvents(s *Socket, _ []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*f = append(*f, s.opts.events[:]...)
	return nil
}

// setEvents takes an older, shorter structure too. That leaves the events that it does not know as
// they are.
func setEvents(s *Socket, b []byte) error {
	for i := range b {
		s.opts.events[i] = byte(boolInt(b[i] != 0))
	}
	return nil
}

// eventOf returns the event that a sctp_event names by its notification type.
func eventOf(b []byte) (int, error) {
	i := int(nativeOrder.Uint16(b[4:])) - typeData
	if i < 0 || i >= numEvents {
		return 0, syscall.EINVAL
	}
	return i, nil
}

func getEvent(s *Socket, arg []byte, f *structWriter) error {
	i, err := eventOf(arg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*f = append(append(*f, arg[:6]...), s.opts.events[i], 0)
	return nil
}

func setEvent(s *Socket, b []byte) error {
	i, err := eventOf(b)
	if err == nil {
		s.opts.events[i] = byte(boolInt(b[6] != 0))
	}
	return err
}

// subscribesSenderDry reports whether a structure for optEvents or optEvent subscribes to the
// sender-dry event.
func subscribesSenderDry(name int, b []byte) bool {
	if name == optEvent {
		return nativeOrder.Uint16(b[4:]) == typeSenderDry && b[6] != 0
	}
	return len(b) > eventSenderDry && b[eventSenderDry] != 0
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

// connPaths returns the paths of the association, or EINVAL without one.
func (s *Socket) connPaths() (*sctp.Conn, []sctp.PathStats, error) {
	c, err := s.waitConn(syscall.EINVAL)
	if err != nil {
		return nil, nil, err
	}
	return c, c.Paths(), nil
}

func getPrimary(s *Socket, _ []byte, f *structWriter) error {
	c, _, err := s.connPaths()
	if err != nil {
		return err
	}
	f.appendUint32(int(s.assocID))
	*f = appendSockaddr(*f, s.presentedAddr(c.RemoteAddr().(sctp.Addr).AddrPort))
	f.padTo(4 + sockaddrStorageLen)
	return nil
}

func setPrimary(s *Socket, b []byte) error {
	a, _, err := nextSockaddr(b[4:])
	if err != nil {
		return err
	}
	if s.conn == nil {
		return syscall.EINVAL
	}
	return s.conn.SetPrimary(a.Addr())
}

func getStatus(s *Socket, _ []byte, f *structWriter) error {
	c, paths, err := s.connPaths()
	if err != nil {
		return err
	}
	if c.Err() != nil {
		return syscall.EINVAL
	}
	st := c.Stats()
	f.appendUint32(int(s.assocID))
	f.appendUint32(statusStates[st.State])
	f.appendUint32(st.PeerWindow)
	f.appendUint16(st.Unacked)
	f.appendUint16(st.Buffered)
	f.appendUint16(st.InStreams)
	f.appendUint16(st.OutStreams)
	a, _ := c.Upper().Lock()
	f.appendUint32(a.MaxPayload())
	c.Upper().Unlock()
	s.appendAddrInfo(c, &paths[st.Primary], f)
	return nil
}

// statusStates are the states of RFC 6458 section 8.2.1, as both packages name them. Linux's values
// are lower by one.
var statusStates = map[sctp.State]int{
	sctp.Closed: 0, sctp.CookieWait: 3, sctp.CookieEchoed: 4, sctp.Established: 5, sctp.ShutdownPending: 6,
	sctp.ShutdownSent:     7,
	sctp.ShutdownReceived: 8, sctp.ShutdownAckSent: 9,
}

func (s *Socket) appendAddrInfo(c *sctp.Conn, p *sctp.PathStats, f *structWriter) {
	const unconfirmed, active, inactive, failed = 3, 2, 0, 1 // on Linux
	f.appendUint32(int(s.assocID))
	at := len(*f)
	*f = appendSockaddr(*f, s.presentedAddr(netip.AddrPortFrom(p.Remote.Addr(), c.RemoteAddr().(sctp.Addr).Port())))
	f.padTo(at + sockaddrStorageLen)
	f.appendUint32(map[sctp.PathState]int{sctp.PathUnconfirmed: unconfirmed, sctp.PathActive: active,
		sctp.PathPotentiallyFailed: failed, sctp.PathInactive: inactive}[p.State])
	f.appendUint32(p.Cwnd)
	f.appendMillis(p.SRTT)
	f.appendMillis(p.RTO)
	f.appendUint32(p.MTU)
}

// pathTo returns the path that an argument names.
func pathTo(paths []sctp.PathStats, sockaddr []byte) (*sctp.PathStats, error) {
	a, _, _ := nextSockaddr(sockaddr) // none on an error: there is no path to it
	i := slices.IndexFunc(paths, func(p sctp.PathStats) bool { return p.Remote.Addr() == a.Addr() })
	if i < 0 {
		return nil, syscall.EINVAL
	}
	return &paths[i], nil
}

func getPeerAddrInfo(s *Socket, arg []byte, f *structWriter) error {
	c, paths, err := s.connPaths()
	if err != nil {
		return err
	}
	p, err := pathTo(paths, arg[4:])
	if err != nil {
		return err
	}
	s.appendAddrInfo(c, p, f)
	return nil
}

// pathOrAll returns the path that a sctp_paddrparams names. It returns nil for all paths: then the
// address is missing or unspecified. It fails with EINVAL. Called with mu held.
func (s *Socket) pathOrAll(sockaddr []byte) (*sctp.PathStats, error) {
	if nativeOrder.Uint16(sockaddr) == 0 {
		return nil, nil
	}
	switch a, _, err := nextSockaddr(sockaddr); {
	case err != nil:
		return nil, err
	case a.Addr().IsUnspecified():
		return nil, nil
	case s.conn == nil:
		return nil, syscall.EINVAL
	}
	return pathTo(s.conn.Paths(), sockaddr)
}

func getPeerAddrParams(s *Socket, arg []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg := &s.opts.cfg
	p, err := s.pathOrAll(arg[4:])
	if err != nil {
		return err
	}
	hb, mtu, label, dscp := cfg.HeartbeatInterval, cfg.MTU, cfg.FlowLabel, cfg.DSCP
	if p != nil {
		hb, mtu, label, dscp = p.Heartbeat, p.MTU, p.FlowLabel, p.DSCP
	}
	flags := pickInt(cfg.DisablePMTUD, sppNoPMTUD, sppPMTUD) | pickInt(s.opts.sackEvery == 1, sppNoSackDelay,
		sppSackDelay) | pickInt(hb < 0, sppNoHeartbeat, sppHeartbeat) |
		pickInt(label != 0, sppFlowLabel, 0) | pickInt(dscp != 0, sppDSCP, 0)
	*f = append(*f, arg[:4+sockaddrStorageLen]...)
	f.appendMillis(max(hb, 0))
	f.appendUint16(cfg.PathMaxRetrans)
	f.appendUint32(mtu)
	f.appendMillis(cfg.SackDelay)
	f.appendUint32(flags)
	f.appendUint32(int(label))
	*f = append(*f, dscp<<2)
	f.padTo(156)
	return nil
}

// pathDefaults are the parts of SCTP_PEER_ADDR_PARAMS that are the same for all paths.
type pathDefaults struct {
	maxRetrans, mtu, sackEvery int
	noPMTUD                    bool
	sackDelay                  time.Duration
}

func (o *socketOptions) pathDefaults() pathDefaults {
	return pathDefaults{o.cfg.PathMaxRetrans, o.cfg.MTU, o.sackEvery, o.cfg.DisablePMTUD, o.cfg.SackDelay}
}

func (o *socketOptions) setPathDefaults(a pathDefaults) {
	o.cfg.PathMaxRetrans, o.cfg.MTU, o.sackEvery, o.cfg.DisablePMTUD, o.cfg.SackDelay = a.maxRetrans, a.mtu,
		a.sackEvery, a.noPMTUD, a.sackDelay
}

func setPeerAddrParams(s *Socket, b []byte) error {
	addr, rest := b[4:4+sockaddrStorageLen], b[4+sockaddrStorageLen:]
	hb, retrans, mtu := parseMillis(rest), int(nativeOrder.Uint16(rest[4:])), int(nativeOrder.Uint32(rest[6:]))
	sack, flags := parseMillis(rest[10:]), nativeOrder.Uint32(rest[14:])
	has := func(f uint32) bool { return flags&f == f }
	if has(sppHeartbeat|sppNoHeartbeat) || has(sppPMTUD|sppNoPMTUD) || has(sppSackDelay|sppNoSackDelay) ||
		sack > 500*time.Millisecond {
		return syscall.EINVAL
	}
	if has(sppDemand) && s.conn == nil {
		return syscall.EINVAL
	}
	if flags&(sppFlowLabel|sppDSCP) != 0 && len(b) < optionTable[optPeerAddrParams].size { // not in the older structure
		return syscall.EINVAL
	}
	p, err := s.pathOrAll(addr)
	if err != nil {
		return err
	}
	all := s.opts.pathDefaults()
	if retrans != 0 {
		all.maxRetrans = retrans
	}
	switch {
	case has(sppNoPMTUD):
		all.noPMTUD = true
		if mtu != 0 {
			all.mtu = mtu
		}
	case has(sppPMTUD):
		all.noPMTUD, all.mtu = false, 0
	}
	switch {
	case has(sppNoSackDelay):
		all.sackDelay, all.sackEvery = 1, 1
	case has(sppSackDelay) && sack != 0:
		all.sackDelay, all.sackEvery = sack, 2
	}
	interval := time.Duration(0)
	switch {
	case has(sppNoHeartbeat):
		interval = -1
	case has(sppHeartbeat | sppHeartbeatNow):
		interval = 1
	case has(sppHeartbeat):
		interval = hb
	}
	if p != nil && all != s.opts.pathDefaults() && len(s.conn.Paths()) > 1 {
		return syscall.EOPNOTSUPP
	}
	s.opts.setPathDefaults(all)
	marks := rest[18:]
	if p != nil {
		return s.setPath(p.Remote.Addr(), interval, flags, marks)
	}
	cfg := &s.opts.cfg
	if has(sppFlowLabel) {
		cfg.FlowLabel = flowLabel(marks)
	}
	if has(sppDSCP) {
		cfg.DSCP = marks[4] >> 2
	}
	if interval != 0 {
		cfg.HeartbeatInterval = interval
	}
	if has(sppDemand) {
		return s.conn.RequestHeartbeat(s.conn.RemoteAddr().(sctp.Addr).Addr())
	}
	return nil
}

// flowLabel returns the flow label at the start of the marks of a sctp_paddrparams. The DSCP
// follows it, as the upper six bits of an octet.
func flowLabel(marks []byte) uint32 { return nativeOrder.Uint32(marks) & 0xfffff }

// setPath applies SCTP_PEER_ADDR_PARAMS to the path to one address.
func (s *Socket) setPath(to netip.Addr, interval time.Duration, flags uint32, marks []byte) (err error) {
	if interval != 0 {
		err = s.conn.SetHeartbeat(to, interval)
	}
	if err == nil && flags&sppFlowLabel != 0 {
		err = s.conn.SetFlowLabel(to, flowLabel(marks))
	}
	if err == nil && flags&sppDSCP != 0 {
		err = s.conn.SetDSCP(to, marks[4]>>2)
	}
	if err == nil && flags&sppDemand != 0 {
		err = s.conn.RequestHeartbeat(to)
	}
	return err
}
