package compat

import (
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp"
)

// options are those of a socket at level SOL_SCTP, and what is read back from its placeholder.
type options struct {
	events         [numEvents]byte
	context        uint32
	send           SndRcvInfo // SCTP_DEFAULT_SEND_PARAM
	cfg            sctp.Config
	sackEvery      int // packets
	noMapped       bool
	interleave     int
	linger         bool
	lingerTime     time.Duration
	rcvBuf, sndBuf int // SO_RCVBUF, SO_SNDBUF; 0 for the default
	class          int // IP_TOS or IPV6_TCLASS, as the descriptor had it last
}

func (o *options) init() {
	o.cfg, _ = new(sctp.Config).Complete() // the defaults
	o.sackEvery, o.cfg.MaxInitRTO = 2, o.cfg.RTOMax
	o.cfg.OutStreams = 10 // as a kernel has it, whatever the peer opens
}

// live gives an association what may change while it lives.
func (o *options) live(c *sctp.Conn) error {
	return c.Reconfigure(func(cfg *sctp.Config) { *cfg = o.cfg })
}

// apply has the association be as the options are, and what comes by a listener from now on.
func (o *options) apply(c *sctp.Conn, l *sctp.Listener) error {
	switch {
	case l != nil:
		return l.Reconfigure(func(cfg *sctp.Config) { *cfg = o.cfg })
	case c == nil:
		return nil
	}
	return o.live(c)
}

// option is one option of SOL_SCTP. get returns its structure; arg is what the caller's memory has of it. set takes a structure.
type option struct {
	size int // of the structure, in octets
	// least is the shortest that set takes where there is an older, shorter structure, or any from that on. 0: it must be size.
	least int
	get   func(s *Socket, arg []byte, f *fields) error
	set   func(s *Socket, b []byte) error
}

// Options of RFC 6458 section 8, by their numbers on Linux.
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
	_ // SCTP_RECVRCVINFO and SCTP_RECVNXTINFO: Recv has an SndRcvInfo, which says as much
	_
	optDefaultSndInfo
	optAuthDeactivate
)

// Those of the functions of section 9, and the rest.
const (
	optBindAdd       = 100
	optBindRem       = 101
	optPeelOff       = 102
	optConnectOld    = 107
	optPeerAddrs     = 108
	optLocalAddrs    = 109
	optConnect       = 110
	optConnectGet    = 111 // takes a pointer within its structure, which Go's memory may not have
	optEvent         = 127 // SCTP_EVENT: one of optEvents
	sizeAddrsHeader  = 8
	sizePeerAddrInfo = 24 + sizeStorage
)

// Getsockopt is getsockopt at level SOL_SCTP: b is the caller's memory, which some options take an argument from. It returns how much of it is
// the option.
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
	o, ok := table[name]
	switch {
	case !ok:
		return 0, syscall.ENOPROTOOPT
	case name == optEvents:
		o.size = min(o.size, len(b))
	case name == optMaxSeg && len(b) == 4, name == optMaxBurst && len(b) == 4: // the older form, an int
		o.size = 4
	case name == optDelayedSack && len(b) == 8:
		o.size = 8
	case name == optPeerAddrParams && len(b) >= o.least:
		o.size = min(o.size, len(b))
	}
	if len(b) < o.size {
		return 0, syscall.EINVAL
	}
	f := make(fields, 0, sizePeerAddrInfo+32)
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
	native.PutUint32(b[4:], uint32(n))
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
	case name == optBindAdd || name == optBindRem:
		return s.Bind(b, name == optBindRem)
	case name == optConnect || name == optConnectOld:
		_, err := s.Connect(b)
		return err
	}
	o, ok := table[name]
	switch {
	case !ok || o.set == nil:
		return syscall.ENOPROTOOPT
	case o.least == 0 && len(b) != o.size, len(b) < o.least, name == optEvents && len(b) > o.size:
		return syscall.EINVAL
	}
	s.mu.Lock()
	before := s.opts
	err := o.set(s, b)
	if err == nil {
		_, err = s.opts.cfg.Complete()
	}
	if err != nil {
		s.opts = before
	}
	c, l, opts := s.conn, s.listener, s.opts
	s.mu.Unlock()
	if err == nil {
		if err = opts.apply(c, l); err != nil { // as where a link cannot mark packets
			s.mu.Lock()
			s.opts = before
			s.mu.Unlock()
		}
	}
	if err == nil && (name == optEvents || name == optEvent) {
		s.subscribe(c)
		if c != nil && asksDry(name, b) {
			s.dry(c)
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

// integer is an option that is an int.
func integer(get func(o *options) int, set func(o *options, v int) error) option {
	return option{size: 4, least: 4,
		get: func(s *Socket, _ []byte, f *fields) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.u32(get(&s.opts))
			return nil
		},
		set: func(s *Socket, b []byte) error { return set(&s.opts, int(int32(native.Uint32(b)))) },
	}
}

// value is an option that is a sctp_assoc_value, or an int in its older form.
func value(get func(o *options) int, set func(o *options, v int) error) option {
	return option{size: 8, least: 4,
		get: func(s *Socket, _ []byte, f *fields) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.u32(0)
			f.u32(get(&s.opts))
			return nil
		},
		set: func(s *Socket, b []byte) error { return set(&s.opts, int(int32(native.Uint32(b[len(b)-4:])))) },
	}
}

var table map[int]option

func init() {
	table = map[int]option{
		optRTOInfo:          {16, 0, getRTOInfo, setRTOInfo},
		optAssocInfo:        {20, 0, getAssocInfo, setAssocInfo},
		optInitMsg:          {8, 0, getInitMsg, setInitMsg},
		optPrimaryAddr:      {4 + sizeStorage, 0, getPrimary, setPrimary},
		optPeerAddrParams:   {156, 152, getPeerAddrParams, setPeerAddrParams},
		optDefaultSend:      {SndRcvInfoSize, 0, getDefaultSend, setDefaultSend},
		optDefaultSndInfo:   {16, 0, getDefaultSndInfo, setDefaultSndInfo},
		optEvents:           {numEvents, 0, getEvents, setEvents},
		optEvent:            {8, 0, getEvent, setEvent},
		optStatus:           {24 + sizePeerAddrInfo, 0, getStatus, nil},
		optPeerAddrInfo:     {sizePeerAddrInfo, 0, getPeerAddrInfo, nil},
		optDelayedSack:      {12, 8, getDelayedSack, setDelayedSack},
		optNoDelay:          integer(func(o *options) int { return boolInt(o.cfg.NoDelay) }, func(o *options, v int) error { o.cfg.NoDelay = v != 0; return nil }),
		optDisableFragments: integer(func(o *options) int { return boolInt(o.cfg.DisableFragments) }, func(o *options, v int) error { o.cfg.DisableFragments = v != 0; return nil }),
		optMappedV4:         integer(func(o *options) int { return boolInt(!o.noMapped) }, func(o *options, v int) error { o.noMapped = v == 0; return nil }),
		optInterleave:       integer(func(o *options) int { return o.interleave }, func(o *options, v int) error { o.interleave = boolInt(v != 0); return nil }),
		optAdaptation:       integer(getAdaptation, func(o *options, v int) error { u := uint32(v); o.cfg.Adaptation = &u; return nil }),
		optContext:          value(func(o *options) int { return int(o.context) }, func(o *options, v int) error { o.context = uint32(v); return nil }),
		optMaxBurst:         value(func(o *options) int { return max(o.cfg.MaxBurst, 0) }, setMaxBurst),
		optMaxSeg:           value(func(o *options) int { return o.cfg.MaxSegment }, func(o *options, v int) error { o.cfg.MaxSegment = v; return nil }),
		optPartialDelivery:  integer(func(o *options) int { return o.cfg.PartialDelivery }, func(o *options, v int) error { o.cfg.PartialDelivery = v; return nil }),
	}
	o := table[optEvents]
	o.least = 1
	table[optEvents] = o
}

func getAdaptation(o *options) int {
	if o.cfg.Adaptation == nil {
		return 0
	}
	return int(*o.cfg.Adaptation)
}

func setMaxBurst(o *options, v int) error {
	if o.cfg.MaxBurst = v; v == 0 { // no limit
		o.cfg.MaxBurst = -1
	}
	return nil
}

func getRTOInfo(s *Socket, _ []byte, f *fields) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.u32(0)
	f.ms(s.opts.cfg.RTOInitial)
	f.ms(s.opts.cfg.RTOMax)
	f.ms(s.opts.cfg.RTOMin)
	return nil
}

// setRTOInfo takes what is not zero.
func setRTOInfo(s *Socket, b []byte) error {
	c := s.opts.cfg
	for i, p := range []*time.Duration{&c.RTOInitial, &c.RTOMax, &c.RTOMin} {
		if d := millis(b[4+4*i:]); d != 0 {
			*p = d
		}
	}
	if millis(b[4:]) > c.RTOMax {
		return syscall.EINVAL
	}
	c.RTOInitial = min(c.RTOInitial, c.RTOMax) // which nobody has set
	s.opts.cfg = c
	return nil
}

func getAssocInfo(s *Socket, _ []byte, f *fields) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, id := s.conn, 0
	var st sctp.Stats
	peers := 0
	if c != nil {
		st, peers, id = c.Stats(), len(c.Paths()), int(s.id)
	}
	f.u32(id)
	f.u16(s.opts.cfg.AssocMaxRetrans)
	f.u16(peers)
	f.u32(st.PeerWindow)
	f.u32(st.RecvWindow)
	f.ms(s.opts.cfg.CookieLife)
	return nil
}

func setAssocInfo(s *Socket, b []byte) error {
	if n := int(native.Uint16(b[4:])); n != 0 {
		s.opts.cfg.AssocMaxRetrans = n
	}
	if d := millis(b[16:]); d != 0 {
		s.opts.cfg.CookieLife = d
	}
	return nil
}

func getInitMsg(s *Socket, _ []byte, f *fields) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.u16(int(s.opts.cfg.OutStreams))
	f.u16(int(s.opts.cfg.InStreams))
	f.u16(s.opts.cfg.MaxInitRetrans)
	f.u16(int(s.opts.cfg.MaxInitRTO.Milliseconds()))
	return nil
}

// setInitMsg takes what is not zero.
func setInitMsg(s *Socket, b []byte) error {
	for i, set := range []func(v uint16){
		func(v uint16) { s.opts.cfg.OutStreams = v }, func(v uint16) { s.opts.cfg.InStreams = v },
		func(v uint16) { s.opts.cfg.MaxInitRetrans = int(v) }, func(v uint16) { s.opts.cfg.MaxInitRTO = time.Duration(v) * time.Millisecond },
	} {
		if v := native.Uint16(b[2*i:]); v != 0 {
			set(v)
		}
	}
	return nil
}

func getDefaultSend(s *Socket, _ []byte, f *fields) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*f = s.opts.send.AppendTo(*f)
	return nil
}

func setDefaultSend(s *Socket, b []byte) error {
	in := ParseSndRcvInfo(b)
	if in.Flags&^flagNames != 0 {
		return syscall.EINVAL
	}
	s.opts.send = SndRcvInfo{Stream: in.Stream, Flags: in.Flags, PPID: in.PPID, Context: in.Context, TTL: in.TTL}
	return nil
}

func getDefaultSndInfo(s *Socket, _ []byte, f *fields) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.opts.send
	f.u16(int(d.Stream))
	f.u16(int(d.Flags))
	f.u32(int(d.PPID))
	f.u32(int(d.Context))
	f.u32(0)
	return nil
}

func setDefaultSndInfo(s *Socket, b []byte) error {
	flags := native.Uint16(b[2:])
	if flags&^flagNames != 0 {
		return syscall.EINVAL
	}
	s.opts.send = SndRcvInfo{Stream: native.Uint16(b), Flags: flags, PPID: native.Uint32(b[4:]), Context: native.Uint32(b[8:]), TTL: s.opts.send.TTL}
	return nil
}

func getEvents(s *Socket, _ []byte, f *fields) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*f = append(*f, s.opts.events[:]...)
	return nil
}

// setEvents takes an older, shorter structure too, which leaves the events that it does not know as they are.
func setEvents(s *Socket, b []byte) error {
	for i := range b {
		s.opts.events[i] = byte(boolInt(b[i] != 0))
	}
	return nil
}

// eventOf returns the event that a sctp_event names by the type of its notification.
func eventOf(b []byte) (int, error) {
	i := int(native.Uint16(b[4:])) - noteData
	if i < 0 || i >= numEvents {
		return 0, syscall.EINVAL
	}
	return i, nil
}

func getEvent(s *Socket, arg []byte, f *fields) error {
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

// asksDry says whether a structure for optEvents or optEvent subscribes to the event of a sender that is dry.
func asksDry(name int, b []byte) bool {
	if name == optEvent {
		return native.Uint16(b[4:]) == noteSenderDry && b[6] != 0
	}
	return len(b) > eventSenderDry && b[eventSenderDry] != 0
}

func getDelayedSack(s *Socket, arg []byte, f *fields) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delay, every := s.opts.cfg.SackDelay, s.opts.sackEvery
	if every == 1 {
		delay = 0
	}
	f.u32(0)
	f.ms(delay)
	f.u32(every)
	return nil
}

// setDelayedSack takes a sctp_sack_info, or a sctp_assoc_value with the delay alone, where 0 is none.
func setDelayedSack(s *Socket, b []byte) error {
	delay, every := millis(b[4:]), 2
	if len(b) >= 12 {
		every = int(native.Uint32(b[8:]))
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
		o.sackEvery = min(every, 2) // no packet in more waits than RFC 9260 section 6.2 lets
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

// paths returns those of the association, EINVAL without one.
func (s *Socket) paths() (*sctp.Conn, []sctp.PathStats, error) {
	c, err := s.association(syscall.EINVAL)
	if err != nil {
		return nil, nil, err
	}
	return c, c.Paths(), nil
}

func getPrimary(s *Socket, _ []byte, f *fields) error {
	c, _, err := s.paths()
	if err != nil {
		return err
	}
	f.u32(int(s.id))
	*f = appendSockaddr(*f, s.shown(c.RemoteAddr().(sctp.Addr).AddrPort))
	f.zero(4 + sizeStorage)
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

func getStatus(s *Socket, _ []byte, f *fields) error {
	c, paths, err := s.paths()
	if err != nil {
		return err
	}
	if c.Err() != nil {
		return syscall.EINVAL
	}
	st := c.Stats()
	f.u32(int(s.id))
	f.u32(statusStates[st.State])
	f.u32(st.PeerWindow)
	f.u16(st.Unacked)
	f.u16(st.Buffered)
	f.u16(st.InStreams)
	f.u16(st.OutStreams)
	a, _ := c.Gate().Lock()
	f.u32(a.MaxPayload())
	c.Gate().Unlock()
	s.addrInfo(c, &paths[st.Primary], f)
	return nil
}

// statusStates are the states of RFC 6458 section 8.2.1, as both packages name them; Linux has each lower by one.
var statusStates = map[sctp.State]int{
	sctp.Closed: 0, sctp.CookieWait: 3, sctp.CookieEchoed: 4, sctp.Established: 5, sctp.ShutdownPending: 6, sctp.ShutdownSent: 7,
	sctp.ShutdownReceived: 8, sctp.ShutdownAckSent: 9,
}

func (s *Socket) addrInfo(c *sctp.Conn, p *sctp.PathStats, f *fields) {
	const unconfirmed, active, inactive, failed = 3, 2, 0, 1 // on Linux
	f.u32(int(s.id))
	at := len(*f)
	*f = appendSockaddr(*f, s.shown(netip.AddrPortFrom(p.Remote.Addr(), c.RemoteAddr().(sctp.Addr).Port())))
	f.zero(at + sizeStorage)
	f.u32(map[sctp.PathState]int{sctp.PathUnconfirmed: unconfirmed, sctp.PathActive: active, sctp.PathPotentiallyFailed: failed, sctp.PathInactive: inactive}[p.State])
	f.u32(p.Cwnd)
	f.ms(p.SRTT)
	f.ms(p.RTO)
	f.u32(p.MTU + rawio.Overhead(p.Remote))
}

// pathTo returns the path that an argument names.
func pathTo(paths []sctp.PathStats, sockaddr []byte) (*sctp.PathStats, error) {
	a, _, _ := nextSockaddr(sockaddr) // none, to which there is no path
	i := slices.IndexFunc(paths, func(p sctp.PathStats) bool { return p.Remote.Addr() == a.Addr() })
	if i < 0 {
		return nil, syscall.EINVAL
	}
	return &paths[i], nil
}

func getPeerAddrInfo(s *Socket, arg []byte, f *fields) error {
	c, paths, err := s.paths()
	if err != nil {
		return err
	}
	p, err := pathTo(paths, arg[4:])
	if err != nil {
		return err
	}
	s.addrInfo(c, p, f)
	return nil
}

// named returns the path of which a sctp_paddrparams is, nil if it is of all: then the address is none, or stands for any. It fails with EINVAL. Called with mu held.
func (s *Socket) named(sockaddr []byte) (*sctp.PathStats, error) {
	if native.Uint16(sockaddr) == 0 {
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

func getPeerAddrParams(s *Socket, arg []byte, f *fields) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg := &s.opts.cfg
	p, err := s.named(arg[4:])
	if err != nil {
		return err
	}
	hb, mtu, label, dscp := cfg.HeartbeatInterval, cfg.MTU, cfg.FlowLabel, cfg.DSCP
	if p != nil {
		hb, mtu, label, dscp = p.Heartbeat, p.MTU+rawio.Overhead(p.Remote), p.FlowLabel, p.DSCP
	}
	flags := pick(cfg.DisablePMTUD, sppNoPMTUD, sppPMTUD) | pick(s.opts.sackEvery == 1, sppNoSackDelay, sppSackDelay) | pick(hb < 0, sppNoHeartbeat, sppHeartbeat) |
		pick(label != 0, sppFlowLabel, 0) | pick(dscp != 0, sppDSCP, 0)
	*f = append(*f, arg[:4+sizeStorage]...)
	f.ms(max(hb, 0))
	f.u16(cfg.PathMaxRetrans)
	f.u32(mtu)
	f.ms(cfg.SackDelay)
	f.u32(flags)
	f.u32(int(label))
	*f = append(*f, dscp<<2)
	f.zero(156)
	return nil
}

// allPaths is what of SCTP_PEER_ADDR_PARAMS cannot differ from path to path.
type allPaths struct {
	retrans, mtu, every int
	noPMTUD             bool
	sack                time.Duration
}

func (o *options) allPaths() allPaths {
	return allPaths{o.cfg.PathMaxRetrans, o.cfg.MTU, o.sackEvery, o.cfg.DisablePMTUD, o.cfg.SackDelay}
}

func (o *options) setAllPaths(a allPaths) {
	o.cfg.PathMaxRetrans, o.cfg.MTU, o.sackEvery, o.cfg.DisablePMTUD, o.cfg.SackDelay = a.retrans, a.mtu, a.every, a.noPMTUD, a.sack
}

func setPeerAddrParams(s *Socket, b []byte) error {
	addr, rest := b[4:4+sizeStorage], b[4+sizeStorage:]
	hb, retrans, mtu := millis(rest), int(native.Uint16(rest[4:])), int(native.Uint32(rest[6:]))
	sack, flags := millis(rest[10:]), native.Uint32(rest[14:])
	has := func(f uint32) bool { return flags&f == f }
	if has(sppHeartbeat|sppNoHeartbeat) || has(sppPMTUD|sppNoPMTUD) || has(sppSackDelay|sppNoSackDelay) || sack > 500*time.Millisecond {
		return syscall.EINVAL
	}
	if has(sppDemand) && s.conn == nil {
		return syscall.EINVAL
	}
	if flags&(sppFlowLabel|sppDSCP) != 0 && len(b) < table[optPeerAddrParams].size { // the older structure has neither
		return syscall.EINVAL
	}
	p, err := s.named(addr)
	if err != nil {
		return err
	}
	all := s.opts.allPaths()
	if retrans != 0 {
		all.retrans = retrans
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
		all.sack, all.every = 1, 1
	case has(sppSackDelay) && sack != 0:
		all.sack, all.every = sack, 2
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
	if p != nil && all != s.opts.allPaths() && len(s.conn.Paths()) > 1 {
		return syscall.EOPNOTSUPP
	}
	s.opts.setAllPaths(all)
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

// flowLabel is that at the start of the marks of a sctp_paddrparams. The DSCP is behind it, as the upper six bits of an octet.
func flowLabel(marks []byte) uint32 { return native.Uint32(marks) & 0xfffff }

// setPath sets what SCTP_PEER_ADDR_PARAMS sets for the path to one address.
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
