package sctp

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// Inits are the INIT chunks of both sides, for Config.Inits.
//
//	type Inits struct {
//		Own  []byte // of NewInit
//		Peer []byte
//	}
type Inits = assoc.Inits

// Errors of Inits.
var (
	ErrInits     = assoc.ErrInits     // not two INIT chunks that fit each other
	ErrInitsLink = assoc.ErrInitsLink // the link leads to more than one peer
)

// NewInit makes the INIT chunk of an association that Dial is to set up without a packet
// (draft-hancke-tsvwg-snap). Both sides send theirs by means that authenticate the peer, such as
// the signalling of WebRTC, and dial with both in Config.Inits. The rest of cfg is the same then.
// The link has to lead to one peer, and detect errors by the method given, as netconn does. The
// chunk serves once.
func NewInit(cfg *Config, by rawio.ErrorDetection) ([]byte, error) {
	if cfg == nil {
		cfg = defaultConfig
	}
	e := endpoint.New(endpoint.Config{Rand: new(TransportConfig).randReader(), Features: rawio.PointToPoint,
		ErrorDetection: by})
	return e.NewInit(cfg.assocConfig())
}
