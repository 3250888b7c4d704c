package sctp

// SOL_SCTP is the level of SCTP's socket options.
const (
	SOL_SCTP = 132

	SCTP_BINDX_ADD_ADDR = 0x01
	SCTP_BINDX_REM_ADDR = 0x02

	MSG_NOTIFICATION = 0x8000
)

// Socket options (RFC 6458 section 8).
const (
	SCTP_RTOINFO = iota
	SCTP_ASSOCINFO
	SCTP_INITMSG
	SCTP_NODELAY
	SCTP_AUTOCLOSE
	SCTP_SET_PEER_PRIMARY_ADDR
	SCTP_PRIMARY_ADDR
	SCTP_ADAPTATION_LAYER
	SCTP_DISABLE_FRAGMENTS
	SCTP_PEER_ADDR_PARAMS
	SCTP_DEFAULT_SENT_PARAM
	SCTP_EVENTS
	SCTP_I_WANT_MAPPED_V4_ADDR
	SCTP_MAXSEG
	SCTP_STATUS
	SCTP_GET_PEER_ADDR_INFO
	SCTP_DELAYED_ACK_TIME
	SCTP_DELAYED_ACK  = SCTP_DELAYED_ACK_TIME
	SCTP_DELAYED_SACK = SCTP_DELAYED_ACK_TIME

	SCTP_SOCKOPT_BINDX_ADD = 100
	SCTP_SOCKOPT_BINDX_REM = 101
	SCTP_SOCKOPT_PEELOFF   = 102
	SCTP_GET_PEER_ADDRS    = 108
	SCTP_GET_LOCAL_ADDRS   = 109
	SCTP_SOCKOPT_CONNECTX  = 110
	SCTP_SOCKOPT_CONNECTX3 = 111
)

// Events, for SubscribeEvents.
const (
	SCTP_EVENT_DATA_IO = 1 << iota
	SCTP_EVENT_ASSOCIATION
	SCTP_EVENT_ADDRESS
	SCTP_EVENT_SEND_FAILURE
	SCTP_EVENT_PEER_ERROR
	SCTP_EVENT_SHUTDOWN
	SCTP_EVENT_PARTIAL_DELIVERY
	SCTP_EVENT_ADAPTATION_LAYER
	SCTP_EVENT_AUTHENTICATION
	SCTP_EVENT_SENDER_DRY

	SCTP_EVENT_ALL = SCTP_EVENT_DATA_IO | SCTP_EVENT_ASSOCIATION | SCTP_EVENT_ADDRESS |
		SCTP_EVENT_SEND_FAILURE | SCTP_EVENT_PEER_ERROR | SCTP_EVENT_SHUTDOWN | SCTP_EVENT_PARTIAL_DELIVERY |
		SCTP_EVENT_ADAPTATION_LAYER | SCTP_EVENT_AUTHENTICATION | SCTP_EVENT_SENDER_DRY
)

// SCTPNotificationType is the type of a notification (RFC 6458 section 6.1).
type SCTPNotificationType int

// Types of notifications.
const (
	SCTP_SN_TYPE_BASE = SCTPNotificationType(iota + (1 << 15))
	SCTP_ASSOC_CHANGE
	SCTP_PEER_ADDR_CHANGE
	SCTP_SEND_FAILED
	SCTP_REMOTE_ERROR
	SCTP_SHUTDOWN_EVENT
	SCTP_PARTIAL_DELIVERY_EVENT
	SCTP_ADAPTATION_INDICATION
	SCTP_AUTHENTICATION_INDICATION
	SCTP_SENDER_DRY_EVENT
)

// Types of control messages.
const (
	SCTP_CMSG_INIT = iota
	SCTP_CMSG_SNDRCV
	SCTP_CMSG_SNDINFO
	SCTP_CMSG_RCVINFO
	SCTP_CMSG_NXTINFO
)

// Flags of SndRcvInfo.
const (
	SCTP_UNORDERED = 1 << iota
	SCTP_ADDR_OVER
	SCTP_ABORT
	SCTP_SACK_IMMEDIATELY
	SCTP_EOF
)

// SCTP_MAX_STREAM is the highest number of streams.
const (
	SCTP_MAX_STREAM = 0xffff
)

// SCTPState is what an association change reports.
type SCTPState uint16

// Association changes.
const (
	SCTP_COMM_UP = SCTPState(iota)
	SCTP_COMM_LOST
	SCTP_RESTART
	SCTP_SHUTDOWN_COMP
	SCTP_CANT_STR_ASSOC
)

// StatusState is the state of an association.
type StatusState int32

// States of associations.
const (
	SCTP_CLOSED StatusState = iota
	SCTP_BOUND
	SCTP_LISTEN
	SCTP_COOKIE_WAIT
	SCTP_COOKIE_ECHOED
	SCTP_ESTABLISHED
	SCTP_SHUTDOWN_PENDING
	SCTP_SHUTDOWN_SENT
	SCTP_SHUTDOWN_RECEIVED
	SCTP_SHUTDOWN_ACK_SENT
)

// PeerState is the state of an address of the peer.
type PeerState int32

// States of addresses.
const (
	SCTP_UNCONFIRMED PeerState = iota
	SCTP_ACTIVE
	SCTP_INACTIVE
)

// SCTPAssocID is the number of an association.
type SCTPAssocID int32

// EventSubscribe is sctp_event_subscribe (RFC 6458 section 6.2.1).
type EventSubscribe struct {
	DataIO          uint8
	Association     uint8
	Address         uint8
	SendFailure     uint8
	PeerError       uint8
	Shutdown        uint8
	PartialDelivery uint8
	AdaptationLayer uint8
	Authentication  uint8
	SenderDry       uint8
}

// InitMsg is sctp_initmsg (section 5.3.1). A field that is 0 changes nothing.
type InitMsg struct {
	NumOstreams    uint16
	MaxInstreams   uint16
	MaxAttempts    uint16
	MaxInitTimeout uint16 // milliseconds
}

// SndRcvInfo is sctp_sndrcvinfo (section 5.3.2). The PPID is in host byte order for programs
// written for versions from August 2025 on. For older programs it is as it lies in memory: see
// PPIDs of package compat.
type SndRcvInfo struct {
	Stream  uint16
	SSN     uint16
	Flags   uint16
	_       uint16
	PPID    uint32
	Context uint32
	TTL     uint32 // milliseconds
	TSN     uint32
	CumTSN  uint32
	AssocID int32
}

// SndInfo is sctp_sndinfo (section 5.3.4).
type SndInfo struct {
	SID     uint16
	Flags   uint16
	PPID    uint32
	Context uint32
	AssocID int32
}

// SackTimer is sctp_sack_info (section 8.1.19).
type SackTimer struct {
	AssocID       SCTPAssocID
	SackDelay     uint32 // milliseconds
	SackFrequency uint32 // packets
}

// PeerAddrinfo is sctp_paddrinfo (section 8.2.2).
type PeerAddrinfo struct {
	AssocID SCTPAssocID
	Address [128]byte // a sockaddr
	State   PeerState
	CWND    uint32
	SRTT    uint32
	RTO     uint32
	MTU     uint32
}

// Status is sctp_status (section 8.2.1).
type Status struct {
	AssocID            SCTPAssocID
	State              StatusState
	RWND               uint32
	Unackdata          uint16
	Penddata           uint16
	Instreams          uint16
	Ostreams           uint16
	FragmentationPoint uint32
	PrimaryPeerAddr    PeerAddrinfo
}

// GetAddrsOld is what Linux takes for SCTP_SOCKOPT_CONNECTX3. This package refuses that option.
type GetAddrsOld struct {
	AssocID int32
	AddrNum int32
	Addrs   uintptr
}

// NotificationHeader is the head of each notification (section 6.1).
type NotificationHeader struct {
	Type   uint16
	Flags  uint16
	Length uint32
}

// NotificationHandler is called with the octets of each notification.
type NotificationHandler func([]byte) error
