package qlog

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Schema names the events and their fields. It changes whenever they change in a way that a reader
// would notice.
const Schema = "https://github.com/rddp-go/rddp/docs/trace-1.md"

const (
	fileSchema = "urn:ietf:params:qlog:file:sequential"
	mediaType  = "application/qlog+json-seq"
)

// Head is the first record of a file (section 5 of the draft).
type Head struct {
	FileSchema string   `json:"file_schema"`
	Format     string   `json:"serialization_format"`
	Title      string   `json:"title,omitempty"`
	Trace      TraceSeq `json:"trace"`
}

// TraceSeq says what all events have in common (section 5.1).
type TraceSeq struct {
	Common  Common   `json:"common_fields"`
	Vantage Vantage  `json:"vantage_point"`
	Schemas []string `json:"event_schemas"`
}

// Common are the fields of section 7.5.
type Common struct {
	TimeFormat string    `json:"time_format"`
	Reference  Reference `json:"reference_time"`
}

// Reference is what times are relative to (section 7.1): here, the moment when the trace was begun.
type Reference struct {
	Clock string `json:"clock_type"`
	Epoch string `json:"epoch"`
	Wall  string `json:"wall_clock_time"`
}

// Vantage is where the trace was taken (section 6).
type Vantage struct {
	Type string `json:"type"`
}

// eventRecord is an event in the file (section 7).
type eventRecord struct {
	Time  float64 `json:"time"` // milliseconds
	Name  string  `json:"name"`
	Group string  `json:"group_id,omitempty"`
	Data  any     `json:"data"`
}

// Names of events.
const (
	NameStarted   = "sctp:association_started"
	NameState     = "sctp:association_state_updated"
	NameMetrics   = "sctp:metrics_updated"
	NameLoss      = "sctp:data_retransmitted"
	NamePath      = "sctp:path_updated"
	NameMTU       = "sctp:mtu_updated"
	NameRestarted = "sctp:association_restarted"
	NamePeerError = "sctp:error_received"
	NameClosed    = "sctp:association_closed"
	NameNotice    = "sctp:association_notified"
	NameDropped   = "sctp:events_dropped"
)

// Started is the data of NameStarted.
type Started struct {
	LocalPort uint16         `json:"local_port"`
	Peer      netip.AddrPort `json:"peer"`      // address, and SCTP port
	Initiator string         `json:"initiator"` // local or remote
}

// State is the data of NameState.
type State struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Metrics is the data of NameMetrics: of one path, and of the association. Figures are octets
// unless noted.
type Metrics struct {
	Path
	Cwnd        int     `json:"congestion_window"`
	Ssthresh    int     `json:"ssthresh"`
	Flight      int     `json:"bytes_in_flight"` // of the path
	SRTT        float64 `json:"smoothed_rtt"`    // milliseconds; 0: not measured
	RTTVar      float64 `json:"rtt_variance"`    // milliseconds
	RTO         float64 `json:"rto"`             // milliseconds
	MTU         int     `json:"mtu"`
	Controller  string  `json:"controller"`
	Outstanding int     `json:"outstanding"` // user data, on all paths
	PeerWindow  int     `json:"peer_window"`
	OwnWindow   int     `json:"own_window"`
	Queued      int     `json:"queued"`
	Buffered    int     `json:"buffered"`
	PacketsOut  uint64  `json:"packets_sent"`
	PacketsIn   uint64  `json:"packets_received"`
	OctetsOut   uint64  `json:"bytes_sent"` // of packets
	OctetsIn    uint64  `json:"bytes_received"`
	DataOut     uint64  `json:"data_chunks_sent"`
	DataIn      uint64  `json:"data_chunks_received"`
	UserIn      uint64  `json:"user_data_received"`
	Retransmits uint64  `json:"data_chunks_retransmitted"`
}

// Loss is the data of NameLoss: what was done since the last event of the association.
type Loss struct {
	Chunks         uint64 `json:"chunks"`
	FastRecoveries uint64 `json:"fast_recoveries"`
	Timeouts       uint64 `json:"timeouts"`
	TailProbes     uint64 `json:"tail_probes"`
	WindowProbes   uint64 `json:"window_probes"`
	Reneged        uint64 `json:"reneged"`
}

// Path is the data of NamePath.
type Path struct {
	Local   netip.Addr `json:"local,omitzero"` // none: the link chooses it
	Remote  netip.Addr `json:"remote"`
	State   string     `json:"path_state"`
	Primary bool       `json:"primary"`
	Errors  int        `json:"errors"` // consecutive
}

// MTU is the data of NameMTU: the largest SCTP packet.
type MTU struct {
	Remote netip.Addr `json:"remote"`
	MTU    int        `json:"mtu"`
}

// Notice is the data of NameClosed, NameRestarted, NamePeerError and NameNotice.
type Notice struct {
	Event  string `json:"event,omitempty"`  // NameNotice
	Reason string `json:"reason,omitempty"` // NameClosed and NamePeerError; the peer may have written it
}

// Dropped is the data of NameDropped.
type Dropped struct {
	Events uint64 `json:"events"` // that should stand before this one
}

// describeEvent returns an event's name and data.
func describeEvent(e *sctp.TraceEvent) (name string, data any) {
	switch e.Kind {
	case sctp.TraceStarted:
		s := Started{e.Local, e.Remote, "local"}
		if e.Passive {
			s.Initiator = "remote"
		}
		return NameStarted, s
	case sctp.TraceState:
		return NameState, State{e.Old.String(), e.Stats.State.String()}
	case sctp.TraceMetrics:
		return NameMetrics, metricsOf(&e.Stats, &e.Path)
	case sctp.TraceLoss:
		return NameLoss, Loss(e.Lost)
	}
	reason := ""
	if e.Event.Err != nil {
		reason = e.Event.Err.Error()
	}
	switch e.Event.Kind {
	case sctp.EventPathUp, sctp.EventPathDown, sctp.EventPathPotentiallyFailed, sctp.EventPrimary:
		return NamePath, pathOf(&e.Path)
	case sctp.EventMTUChanged:
		return NameMTU, MTU{e.Path.Remote.Addr(), e.Path.MaxPacket}
	case sctp.EventRestart:
		return NameRestarted, Notice{}
	case sctp.EventPeerError:
		return NamePeerError, Notice{Reason: reason}
	case sctp.EventDown:
		return NameClosed, Notice{Reason: reason}
	}
	return NameNotice, Notice{Event: e.Event.Kind.String(), Reason: reason}
}

func metricsOf(s *assoc.Stats, p *assoc.PathStats) *Metrics {
	return &Metrics{Path: pathOf(p), Cwnd: p.Cwnd, Ssthresh: p.Ssthresh, Flight: p.Flight, SRTT: toMillis(p.SRTT),
		RTTVar: toMillis(p.RTTVar), RTO: toMillis(p.RTO),
		MTU: p.MaxPacket, Controller: p.Controller, Outstanding: s.Outstanding, PeerWindow: s.PeerWindow,
		OwnWindow: s.RecvWindow, Queued: s.Queued, Buffered: s.Buffered,
		PacketsOut: s.PacketsOut, PacketsIn: s.PacketsIn, OctetsOut: s.OctetsOut, OctetsIn: s.OctetsIn,
		DataOut: s.DataOut, DataIn: s.DataIn, UserIn: s.DataOctetsIn,
		Retransmits: s.Retransmits}
}

func pathOf(p *assoc.PathStats) Path {
	state := p.State.String()
	if p.Suspected {
		state = "suspected"
	}
	return Path{p.Local.Addr(), p.Remote.Addr(), state, p.Primary, p.Errors}
}

func groupID(source string, n uint64) string { return fmt.Sprintf("%s-%d", source, n) }
