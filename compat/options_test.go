package compat

import (
	"bytes"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp"
)

func uint32s(v ...int) (b []byte) {
	for _, v := range v {
		b = nativeOrder.AppendUint32(b, uint32(v))
	}
	return b
}

func uint16s(v ...int) (b []byte) {
	for _, v := range v {
		b = nativeOrder.AppendUint16(b, uint16(v))
	}
	return b
}

// paramsOf is a sctp_paddrparams without an address.
func paramsOf(heartbeat, retrans, mtu, sack, flags, label int, dscp byte) []byte {
	b := nativeOrder.AppendUint32(make([]byte, 4+sockaddrStorageLen), uint32(heartbeat))
	b = nativeOrder.AppendUint16(b, uint16(retrans))
	b = append(b, uint32s(mtu, sack, flags, label)...)
	return append(b, dscp, 0)
}

// optionRow is an option: what it is set to, and what the association has then. Those that the peer
// is told of hold for what is set up later.
type optionRow struct {
	name  string
	opt   int
	set   []byte
	get   []byte // nil: as it was set
	see   func(cfg *sctp.Config) bool
	told  bool
	other []byte // what a socket has that nobody has set it on
}

const ms = time.Millisecond

var optionRows = []optionRow{
	{name: "RTO", opt: optRTOInfo, set: uint32s(0, 300, 4000, 200), other: uint32s(0, 1000, 60000, 1000),
		see: func(c *sctp.Config) bool { return c.RTOInitial == 300*ms && c.RTOMax == 4000*ms && c.RTOMin == 200*ms }},
	{name: "RTO.Initial alone", opt: optRTOInfo, set: uint32s(0, 3000, 0, 0), get: uint32s(0, 3000, 60000, 1000),
		other: uint32s(0, 1000, 60000, 1000),
		see: func(c *sctp.Config) bool {
			return c.RTOInitial == 3000*ms && c.RTOMax == time.Minute && c.RTOMin == time.Second
		}},
	{name: "RTO.Max alone, below RTO.Initial", opt: optRTOInfo, set: uint32s(0, 0, 500, 100),
		get: uint32s(0, 500, 500, 100), other: uint32s(0, 1000, 60000, 1000),
		see: func(c *sctp.Config) bool { return c.RTOInitial == 500*ms && c.RTOMax == 500*ms }},
	{name: "NODELAY", opt: optNoDelay, set: uint32s(1), other: uint32s(0), see: func(c *sctp.Config) bool { return c.NoDelay }},
	{name: "NODELAY, as any other number", opt: optNoDelay, set: uint32s(7), get: uint32s(1), other: uint32s(0), see: func(c *sctp.Config) bool { return c.NoDelay }},
	{name: "DISABLE_FRAGMENTS", opt: optDisableFragments, set: uint32s(1), other: uint32s(0), see: func(c *sctp.Config) bool { return c.DisableFragments }},
	{name: "MAXSEG", opt: optMaxSeg, set: uint32s(0, 900), other: uint32s(0, 0), see: func(c *sctp.Config) bool { return c.MaxSegment == 900 }},
	{name: "MAXSEG as an int", opt: optMaxSeg, set: uint32s(901), other: uint32s(0), see: func(c *sctp.Config) bool { return c.MaxSegment == 901 }},
	{name: "MAX_BURST", opt: optMaxBurst, set: uint32s(0, 9), other: uint32s(0, 4), see: func(c *sctp.Config) bool { return c.MaxBurst == 9 }},
	{name: "MAX_BURST as an int", opt: optMaxBurst, set: uint32s(9), other: uint32s(4), see: func(c *sctp.Config) bool { return c.MaxBurst == 9 }},
	{name: "no MAX_BURST", opt: optMaxBurst, set: uint32s(0, 0), other: uint32s(0, 4), see: func(c *sctp.Config) bool { return c.MaxBurst < 0 }},
	{name: "PARTIAL_DELIVERY_POINT", opt: optPartialDelivery, set: uint32s(5000), other: uint32s(0), see: func(c *sctp.Config) bool { return c.PartialDelivery == 5000 }},
	{name: "CONTEXT", opt: optContext, set: uint32s(0, 4), other: uint32s(0, 0)},
	{name: "FRAGMENT_INTERLEAVE", opt: optInterleave, set: uint32s(2), get: uint32s(1), other: uint32s(0)},
	{name: "I_WANT_MAPPED_V4_ADDR", opt: optMappedV4, set: uint32s(0), other: uint32s(1)},
	{name: "ADAPTATION_LAYER", opt: optAdaptation, set: uint32s(7), other: uint32s(0), told: true, see: func(c *sctp.Config) bool { return c.Adaptation != nil && *c.Adaptation == 7 }},
	{name: "SACK", opt: optDelayedSack, set: uint32s(0, 100, 2), other: uint32s(0, 200, 2), see: func(c *sctp.Config) bool { return c.SackDelay == 100*ms }},
	{name: "SACK, as late as may be", opt: optDelayedSack, set: uint32s(0, 500, 2), other: uint32s(0, 200, 2), see: func(c *sctp.Config) bool { return c.SackDelay == 500*ms }},
	{name: "SACK, the delay alone", opt: optDelayedSack, set: uint32s(0, 100, 0), get: uint32s(0, 100, 2),
		other: uint32s(0, 200, 2),
		see:   func(c *sctp.Config) bool { return c.SackDelay == 100*ms }},
	{name: "SACK, every packet", opt: optDelayedSack, set: uint32s(0, 0, 1), get: uint32s(0, 0, 1), other: uint32s(0, 200, 2), see: func(c *sctp.Config) bool { return c.SackDelay == 1 }},
	{name: "SACK, every tenth packet", opt: optDelayedSack, set: uint32s(0, 150, 10), get: uint32s(0, 150, 2),
		other: uint32s(0, 200, 2),
		see:   func(c *sctp.Config) bool { return c.SackDelay == 150*ms }},
	{name: "SACK, neither", opt: optDelayedSack, set: uint32s(0, 0, 0), get: uint32s(0, 200, 2), other: uint32s(0, 200, 2), see: func(c *sctp.Config) bool { return c.SackDelay == 200*ms }},
	{name: "SACK, as a sctp_assoc_value", opt: optDelayedSack, set: uint32s(0, 50), other: uint32s(0, 200), see: func(c *sctp.Config) bool { return c.SackDelay == 50*ms }},
	{name: "SACK, as a sctp_assoc_value of 0", opt: optDelayedSack, set: uint32s(0, 0), other: uint32s(0, 200), see: func(c *sctp.Config) bool { return c.SackDelay == 1 }},
	{name: "INITMSG", opt: optInitMsg, set: uint16s(20, 30, 3, 500), other: uint16s(10, 65535, 8, 60000), told: true,
		see: func(c *sctp.Config) bool {
			return c.OutStreams == 20 && c.InStreams == 30 && c.MaxInitRetrans == 3 && c.MaxInitRTO == 500*ms
		}},
	{name: "INITMSG, some of it", opt: optInitMsg, set: uint16s(0, 40, 0, 0), get: uint16s(10, 40, 8, 60000),
		other: uint16s(10, 65535, 8, 60000), told: true,
		see: func(c *sctp.Config) bool { return c.OutStreams == 10 && c.InStreams == 40 && c.MaxInitRetrans == 8 }},
	{name: "DEFAULT_SEND_PARAM", opt: optDefaultSend,
		set: (&SndRcvInfo{Stream: 1, SSN: 2, Flags: flagUnordered, PPID: 3, Context: 4, TTL: 5, TSN: 6, CumTSN: 7,
			AssocID: 8}).AppendTo(nil),
		get:   (&SndRcvInfo{Stream: 1, Flags: flagUnordered, PPID: 3, Context: 4, TTL: 5}).AppendTo(nil),
		other: make([]byte, SndRcvInfoSize)},
	{name: "DEFAULT_SNDINFO", opt: optDefaultSndInfo, set: append(uint16s(1, flagUnordered), uint32s(3, 4, 8)...),
		get:   append(uint16s(1, flagUnordered), uint32s(3, 4, 0)...),
		other: make([]byte, 16)},
	{name: "ENABLE_STREAM_RESET", opt: optEnableStreamReset, set: uint32s(0, 7), other: uint32s(0, 0),
		see: func(c *sctp.Config) bool { return c.StreamReset == 0 }}, // without RECONFIG_SUPPORTED
	{name: "EVENTS", opt: optEvents, set: []byte{1, 0, 2, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1}, get: []byte{1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1}, other: make([]byte, 14)},
	{name: "PEER_ADDR_PARAMS", opt: optPeerAddrParams,
		set:   paramsOf(7000, 3, 1400, 90, sppHeartbeat|sppNoPMTUD|sppSackDelay|sppFlowLabel|sppDSCP, 0xabcde, 46<<2),
		other: paramsOf(30000, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0), see: func(c *sctp.Config) bool {
			return c.HeartbeatInterval == 7*time.Second && c.PathMaxRetrans == 3 && c.MTU == 1400 && c.DisablePMTUD &&
				c.SackDelay == 90*ms && c.FlowLabel == 0xabcde && c.DSCP == 46
		}},
	{name: "PEER_ADDR_PARAMS that change nothing", opt: optPeerAddrParams,
		set:   paramsOf(7000, 0, 1400, 90, 0, 0xabcde, 46<<2),
		get:   paramsOf(30000, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0),
		other: paramsOf(30000, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0),
		see: func(c *sctp.Config) bool {
			return c.HeartbeatInterval == 30*time.Second && c.PathMaxRetrans == 5 && c.MTU == 0 && c.DSCP == 0
		}},
	{name: "no HEARTBEATs, no SACK delay", opt: optPeerAddrParams,
		set:   paramsOf(7000, 0, 0, 0, sppNoHeartbeat|sppNoSackDelay|sppPMTUD, 0, 0),
		get:   paramsOf(0, 5, 0, 0, sppNoHeartbeat|sppPMTUD|sppNoSackDelay, 0, 0),
		other: paramsOf(30000, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0),
		see:   func(c *sctp.Config) bool { return c.HeartbeatInterval < 0 && c.SackDelay == 1 }},
	{name: "no HEARTBEATs, no search", opt: optPeerAddrParams, set: paramsOf(0, 0, 1400, 0, sppNoHeartbeat|sppNoPMTUD,
		0, 0), get: paramsOf(0, 5, 1400, 200, sppNoHeartbeat|sppNoPMTUD|sppSackDelay, 0, 0),
		other: paramsOf(30000, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0),
		see:   func(c *sctp.Config) bool { return c.HeartbeatInterval < 0 && c.DisablePMTUD && c.MTU == 1400 }},
	{name: "HEARTBEATs each RTO", opt: optPeerAddrParams, set: paramsOf(7000, 0, 0, 0, sppHeartbeat|sppHeartbeatNow,
		0, 0), get: paramsOf(0, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0),
		other: paramsOf(30000, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0),
		see:   func(c *sctp.Config) bool { return c.HeartbeatInterval == 1 }},
	{name: "PEER_ADDR_PARAMS, the older structure", opt: optPeerAddrParams,
		set:   paramsOf(7000, 3, 1400, 500, sppHeartbeat|sppNoPMTUD|sppSackDelay, 0, 0)[:152],
		other: paramsOf(30000, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0)[:152],
		see: func(c *sctp.Config) bool {
			return c.HeartbeatInterval == 7*time.Second && c.PathMaxRetrans == 3 && c.MTU == 1400 &&
				c.SackDelay == 500*ms
		}},
	{name: "ASSOCINFO", opt: optAssocInfo, set: append(append(uint32s(0), uint16s(4, 0)...), uint32s(0, 0, 9000)...),
		get:   append(append(uint32s(0), uint16s(4, 0)...), uint32s(0, 0, 9000)...),
		other: append(append(uint32s(0), uint16s(10, 0)...), uint32s(0, 0, 60000)...),
		see:   func(c *sctp.Config) bool { return c.AssocMaxRetrans == 4 }},
}

func (row *optionRow) wantedValue() []byte {
	if row.get == nil {
		return row.set
	}
	return row.get
}

// checkOption checks that an option is read back, and no octet beyond it is touched.
func (row *optionRow) checkOption(t *testing.T, when string, s *Socket, want []byte) {
	t.Helper()
	b := bytes.Repeat([]byte{0xee}, len(want)+9)[:len(want)]
	if row.opt == optPeerAddrParams {
		clear(b)
	}
	n, err := s.Getsockopt(row.opt, b)
	if row.opt == optAssocInfo && err == nil { // the rest is of the association
		clear(b[:4])
		clear(b[6:16])
	}
	check.That(t, err == nil && n == len(want) && bytes.Equal(b, want) &&
		bytes.Equal(b[n : n+9][:9], bytes.Repeat([]byte{0xee}, 9)), "%s: % x, %v; want % x", when, b, err, want)
}

// checkAssoc checks that the association of a socket has it.
func (row *optionRow) checkAssoc(t *testing.T, when string, s *Socket) {
	t.Helper()
	var cfg sctp.Config
	must.OK(t, s.conn.Reconfigure(func(c *sctp.Config) { cfg = *c }))
	check.That(t, row.see == nil || row.see(&cfg), "%s: the association has %+v", when, cfg)
}

// Each option holds whenever it is set: on a socket that connects then, on one that is connected,
// on one that listens then, and on one that listens, for what it accepts; and is read back field by
// field. What is set on one socket is not on another.
func TestOptionsHoldWheneverTheyAreSet(t *testing.T) {
	for i := range optionRows {
		row := &optionRows[i]
		t.Run(row.name, func(t *testing.T) {
			accept := func(l *Socket, c *Socket) *Socket {
				at, _ := must.Two(l.LocalAddrs())(t)
				must.Get(c.Connect(at))(t)
				return must.Get(l.Accept())(t)
			}
			set := func(s *Socket) { t.Helper(); must.OK(t, s.Setsockopt(row.opt, row.set)) }
			socket := func() *Socket {
				s := NewSocket(false, false)
				t.Cleanup(func() {
					if s.conn != nil {
						s.conn.Abort("")
					}
					s.Close()
				})
				return s
			}
			before, first, second := socket(), socket(), socket()
			set(before)
			row.checkOption(t, "set before Listen", before, row.wantedValue())
			must.OK(t, before.Bind(RawAddrs(home, 0), false))
			must.OK(t, before.Listen())
			row.checkOption(t, "of the listener", before, row.wantedValue())
			s := accept(before, first)
			defer s.Close()
			row.checkOption(t, "of one that is accepted, set before Listen", s, row.wantedValue())
			row.checkAssoc(t, "of one that is accepted, set before Listen", s)
			row.checkOption(t, "of the peer, on which nobody has set it", first, row.other)

			set(second)
			row.checkOption(t, "set before Connect", second, row.wantedValue())
			after := socket()
			must.OK(t, after.Bind(RawAddrs(home, 0), false))
			must.OK(t, after.Listen())
			s = accept(after, second)
			defer s.Close()
			row.checkOption(t, "set before Connect, once connected", second, row.wantedValue())
			row.checkAssoc(t, "set before Connect, once connected", second)
			row.checkOption(t, "of one that is accepted, on which nobody has set it", s, row.other)
			set(s)
			row.checkOption(t, "set on one that is accepted", s, row.wantedValue())
			if !row.told {
				row.checkAssoc(t, "set on one that is accepted", s)
			}
			row.checkOption(t, "of the listener, whose accepted one had it set", after, row.other)
			set(after)
			s = accept(after, socket())
			defer s.Close()
			row.checkOption(t, "of one that is accepted, set after Listen", s, row.wantedValue())
			row.checkAssoc(t, "of one that is accepted, set after Listen", s)
			if !row.told {
				set(first)
				row.checkOption(t, "set once connected", first, row.wantedValue())
				row.checkAssoc(t, "set once connected", first)
			}
		})
	}
}

// What is wrong is refused by the errno of Linux, and changes nothing.
func TestOptionsThatAreRefused(t *testing.T) {
	a, _ := newPair(t)
	unknown := RawAddrs([]net.IPAddr{{IP: net.IPv4(192, 0, 2, 1)}}, 1)
	address := func(b []byte, of []byte) []byte {
		b = bytes.Clone(b)
		copy(b[4:], of)
		return b
	}
	for name, row := range map[string]struct {
		opt  int
		set  []byte
		want syscall.Errno
	}{
		"RTO.Max below RTO.Min":          {optRTOInfo, uint32s(0, 0, 10, 20), syscall.EINVAL},
		"RTO.Initial above RTO.Max":      {optRTOInfo, uint32s(0, 5001, 5000, 20), syscall.EINVAL},
		"too short":                      {optRTOInfo, uint32s(0, 0, 0), syscall.EINVAL},
		"too long":                       {optRTOInfo, uint32s(0, 0, 0, 0, 0), syscall.EINVAL},
		"an int that is too short":       {optNoDelay, []byte{1, 0, 0}, syscall.EINVAL},
		"MAXSEG below that of Linux":     {optMaxSeg, uint32s(0, 443), syscall.EINVAL},
		"a SACK too late":                {optDelayedSack, uint32s(0, 501, 2), syscall.EINVAL},
		"a SACK in no structure":         {optDelayedSack, uint32s(0), syscall.EINVAL},
		"events of a structure too long": {optEvents, make([]byte, numEvents+1), syscall.EINVAL},
		"no events":                      {optEvents, nil, syscall.EINVAL},
		"an event below the first": {optEvent, append(uint32s(0), append(uint16s(typeData-1), 1, 0)...),
			syscall.EINVAL},
		"an event beyond the last": {optEvent,
			append(uint32s(0), append(uint16s(typeData+numEvents), 1, 0)...), syscall.EINVAL},
		"an event in a shorter structure": {optEvent, append(uint32s(0), append(uint16s(typeData), 1)...),
			syscall.EINVAL},
		"flags that there are not": {optDefaultSend, (&SndRcvInfo{Flags: 1 << 12}).AppendTo(nil),
			syscall.EINVAL},
		"flags that there are not, of SNDINFO": {optDefaultSndInfo, append(uint16s(0, 1<<12), uint32s(0, 0, 0)...),
			syscall.EINVAL},
		"PARTIAL_DELIVERY_POINT too far": {optPartialDelivery, uint32s(1<<20 + 1), syscall.EINVAL},
		"HEARTBEATs and none": {optPeerAddrParams,
			paramsOf(1, 0, 0, 0, sppHeartbeat|sppNoHeartbeat, 0, 0), syscall.EINVAL},
		"a search for the MTU and none": {optPeerAddrParams, paramsOf(1, 0, 0, 0, sppPMTUD|sppNoPMTUD, 0, 0),
			syscall.EINVAL},
		"a SACK delay and none": {optPeerAddrParams,
			paramsOf(1, 0, 0, 0, sppSackDelay|sppNoSackDelay, 0, 0), syscall.EINVAL},
		"a SACK delay that is too long": {optPeerAddrParams, paramsOf(1, 0, 0, 501, sppSackDelay, 0, 0),
			syscall.EINVAL},
		"a DSCP in the older structure": {optPeerAddrParams, paramsOf(0, 0, 0, 0, sppDSCP, 0, 4)[:152],
			syscall.EINVAL},
		"a label in the older structure": {optPeerAddrParams, paramsOf(0, 0, 0, 0, sppFlowLabel, 1, 0)[:152],
			syscall.EINVAL},
		"less than the older structure": {optPeerAddrParams, paramsOf(0, 0, 0, 0, 0, 1, 0)[:151],
			syscall.EINVAL},
		"of an address that is unknown": {optPeerAddrParams,
			address(paramsOf(1000, 0, 0, 0, sppHeartbeat, 0, 0), unknown), syscall.EINVAL},
		"of an address of no family": {optPeerAddrParams,
			address(paramsOf(1000, 0, 0, 0, sppHeartbeat, 0, 0), []byte{99}), syscall.EINVAL},
		"a primary address unknown": {optPrimaryAddr, address(make([]byte, 4+sockaddrStorageLen), unknown),
			syscall.EINVAL},
		"a primary address of no family":     {optPrimaryAddr, make([]byte, 4+sockaddrStorageLen), syscall.EINVAL},
		"a primary address of the peer's":    {optSetPeerPrimary, make([]byte, 4+sockaddrStorageLen), syscall.EPERM},
		"AUTOCLOSE":                          {optAutoclose, uint32s(1), syscall.EOPNOTSUPP},
		"authentication":                     {optAuthChunk, uint32s(1), syscall.EACCES},
		"authentication, the last of it":     {optAuthChunk + 4, uint32s(1), syscall.EACCES},
		"the peer's chunks, only to be read": {optAuthChunk + 5, uint32s(1), syscall.ENOPROTOOPT},
		"authentication, taken back":         {optAuthDeactivate, uint32s(1), syscall.EACCES},
		"RECVRCVINFO":                        {optDefaultSndInfo - 2, uint32s(1), syscall.ENOPROTOOPT},
		"RECVNXTINFO":                        {optDefaultSndInfo - 1, uint32s(1), syscall.ENOPROTOOPT},
		"what can only be read":              {optStatus, make([]byte, 176), syscall.ENOPROTOOPT},
		"resets of a fourth kind":            {optEnableStreamReset, uint32s(0, 8), syscall.EINVAL},
		"resets in an int":                   {optEnableStreamReset, uint32s(1), syscall.EINVAL},
		"unknown":                            {99, uint32s(1), syscall.ENOPROTOOPT},
	} {
		check.Equal(t, name, a.Setsockopt(row.opt, row.set), error(row.want))
	}
	for i := range optionRows { // nothing has changed
		row := &optionRows[i]
		row.checkOption(t, row.name, a, row.other)
	}
	for name, row := range map[string]struct {
		opt, size int
		want      syscall.Errno
	}{
		"RTO, too short": {optRTOInfo, 15, syscall.EINVAL}, "no int": {optNoDelay, 3, syscall.EINVAL},
		"no MAXSEG": {optMaxSeg, 3, syscall.EINVAL},
		"no SACK":   {optDelayedSack, 7, syscall.EINVAL}, "params, too short": {optPeerAddrParams, 151, syscall.EINVAL},
		"an event, too short":        {optEvent, 7, syscall.EINVAL},
		"status, too short":          {optStatus, 175, syscall.EINVAL},
		"addresses, too short":       {optPeerAddrs, 7, syscall.EINVAL},
		"addresses, no room":         {optPeerAddrs, 23, syscall.ENOMEM},
		"own addresses, no room":     {optLocalAddrs, 23, syscall.ENOMEM},
		"AUTOCLOSE":                  {optAutoclose, 4, syscall.EOPNOTSUPP},
		"the number of associations": {optAssocNumber, 4, syscall.EOPNOTSUPP},
		"peel off":                   {optPeelOff, 8, syscall.EINVAL},
		"authentication":             {optAuthChunk, 8, syscall.EACCES},
		"its chunks":                 {optLocalAuthChunks, 8, syscall.EACCES},
		"its end":                    {optAuthDeactivate, 8, syscall.EACCES},
		"RECVRCVINFO":                {optDefaultSndInfo - 2, 4, syscall.ENOPROTOOPT},
		"what can only be set":       {optBindAdd, 16, syscall.ENOPROTOOPT},
		"resets, too short":          {optEnableStreamReset, 7, syscall.EINVAL},
		"resets of streams":          {optResetStreams, 8, syscall.ENOPROTOOPT},
		"resets of TSNs":             {optResetAssoc, 4, syscall.ENOPROTOOPT},
		"more streams":               {optAddStreams, 8, syscall.ENOPROTOOPT},
		"identifiers":                {optAssocIDs, 16, syscall.ENOPROTOOPT}, "unknown": {99, 4, syscall.ENOPROTOOPT},
		"of an address of no family": {optPeerAddrInfo, 152, syscall.EINVAL},
	} {
		_, err := a.Getsockopt(row.opt, make([]byte, row.size))
		check.Equal(t, "get "+name, err, error(row.want))
	}
	s := NewSocket(false, false) // without an association
	for name, opt := range map[string]int{"status": optStatus, "the primary address": optPrimaryAddr,
		"an address": optPeerAddrInfo, "the peer's addresses": optPeerAddrs} {
		_, err := s.Getsockopt(opt, make([]byte, 300))
		check.Equal(t, name+" without an association", err, error(syscall.EINVAL))
	}
	checkSame(t, s.Setsockopt(optPeerAddrParams, paramsOf(0, 0, 0, 0, sppHeartbeat|sppDemand, 0, 0)),
		error(syscall.EINVAL))
	checkSame(t, s.Setsockopt(optPeerAddrParams, address(paramsOf(1000, 0, 0, 0, sppHeartbeat, 0, 0), unknown)),
		error(syscall.EINVAL))
	checkSame(t, s.Setsockopt(optPrimaryAddr, address(make([]byte, 4+sockaddrStorageLen), unknown)),
		error(syscall.EINVAL))
	must.OK(t, s.Close())
	checkSame(t, s.Setsockopt(optNoDelay, uint32s(1)), error(syscall.EBADF))
	_, err := s.Getsockopt(optNoDelay, make([]byte, 4))
	checkSame(t, err, error(syscall.EBADF))
}

// Each event is subscribed to alone, by either option, and read by both.
func TestEventsBitByBit(t *testing.T) {
	event := func(i int, on byte) []byte { return append(uint32s(0), append(uint16s(typeData+i), on, 0)...) }
	for i := range numEvents {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s := NewSocket(false, false)
			defer s.Close()
			all := func(want []byte) {
				t.Helper()
				got := make([]byte, numEvents)
				must.Get(s.Getsockopt(optEvents, got))(t)
				checkSame(t, got, want)
				for j := range numEvents {
					one := event(j, 0xee)
					n := must.Get(s.Getsockopt(optEvent, one))(t)
					check.That(t, n == 8 && bytes.Equal(one, event(j, want[j])), "event %d: % x", j, one)
				}
			}
			want := make([]byte, numEvents)
			want[i] = 1
			must.OK(t, s.Setsockopt(optEvent, event(i, 1)))
			all(want)
			check.Equal(t, "other than that of data", s.opts.hasSubscription(), i != eventData)
			must.OK(t, s.Setsockopt(optEvent, event(i, 0)))
			all(make([]byte, numEvents))
			must.OK(t, s.Setsockopt(optEvents, want))
			all(want)
			if i > 0 {
				must.OK(t, s.Setsockopt(optEvents, make([]byte, i))) // which does not know of it
			}
			all(want)
			must.OK(t, s.Setsockopt(optEvents, make([]byte, i+1)))
			all(make([]byte, numEvents))
		})
	}
}

// States of associations are those that both packages name, states of addresses those of Linux.
func TestStatesByTheirNumbers(t *testing.T) {
	a, _ := newPair(t)
	for state, want := range map[sctp.State]int{sctp.Closed: 0, sctp.CookieWait: 3, sctp.CookieEchoed: 4,
		sctp.Established: 5, sctp.ShutdownPending: 6, sctp.ShutdownSent: 7,
		sctp.ShutdownReceived: 8, sctp.ShutdownAckSent: 9} {
		check.Equal(t, state.String(), statusStates[state], want)
	}
	for state, want := range map[sctp.PathState]int{sctp.PathInactive: 0, sctp.PathPotentiallyFailed: 1,
		sctp.PathActive: 2, sctp.PathUnconfirmed: 3} {
		var f structWriter
		p := a.conn.Paths()[0]
		p.State, p.Cwnd, p.SRTT, p.RTO, p.MTU = state, 11, 22*ms, 33*ms, 44+28
		a.appendAddrInfo(a.conn, &p, &f)
		check.That(t, len(f) == sizePeerAddrInfo &&
			bytes.Equal(f[4+sockaddrStorageLen:], uint32s(want, 11, 22, 33, 44+28)), "%v: % x", state,
			f[4+sockaddrStorageLen:])
	}
}

// What an option does not say is what it was, and what can be read is read back in the length that
// it was asked for.
func TestOptionsInOtherLengths(t *testing.T) {
	s := NewSocket(false, false)
	defer s.Close()
	for name, row := range map[string]struct {
		opt, size, want int
	}{
		"MAXSEG as an int": {optMaxSeg, 4, 4}, "MAXSEG": {optMaxSeg, 8, 8}, "MAXSEG in more": {optMaxSeg, 99, 8},
		"MAX_BURST as an int": {optMaxBurst, 4, 4}, "SACK as a value": {optDelayedSack, 8, 8},
		"SACK": {optDelayedSack, 12, 12}, "SACK in more": {optDelayedSack, 99, 12}, "events, some": {optEvents, 3, 3},
		"events, none": {optEvents, 0, 0}, "events, more": {optEvents, 99, numEvents},
		"params, the older": {optPeerAddrParams, 152, 152}, "params": {optPeerAddrParams, 156, 156},
		"params in more": {optPeerAddrParams, 160, 156}, "params, between": {optPeerAddrParams, 154, 154},
		"own addresses of one that is not bound": {optLocalAddrs, 8, 8},
	} {
		b := make([]byte, row.size)
		n, err := s.Getsockopt(row.opt, b)
		check.That(t, n == row.want && err == nil, "%s: %d octets, %v", name, n, err)
	}
	_, err := s.Getsockopt(optContext, make([]byte, 4)) // which has no older form
	check.Equal(t, "CONTEXT as an int", err, error(syscall.EINVAL))
	_, err = s.Getsockopt(optEvent, append(append(uint32s(0), uint16s(typeData-1)...), 0, 0))
	check.Equal(t, "an event below the first", err, error(syscall.EINVAL))
}
