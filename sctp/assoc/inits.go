package assoc

import (
	"errors"
	"io"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Inits are the INIT chunks of both sides, which they have exchanged by other means. With them an
// association is set up without a packet (draft-hancke-tsvwg-snap). The means have to authenticate
// the peer: no handshake makes sure of its address.
type Inits struct {
	Own  []byte // of NewInit
	Peer []byte
}

// Errors of Inits.
var (
	// ErrInits: one of the chunks is no INIT, or not one that could be answered.
	ErrInits = errors.New("sctp: not two INIT chunks that fit each other")
	// ErrInitsLink: addresses would have to be confirmed, where a link leads to more than one peer.
	ErrInitsLink = errors.New("sctp: no set-up by INIT chunks over a link that leads to more than one peer")
)

// NewInit makes the INIT chunk of an association that Connect is to set up by Inits, with the same
// cfg and env. cfg is complete.
func NewInit(cfg *Config, env *Env) ([]byte, error) {
	if !env.isPointToPoint() {
		return nil, ErrInitsLink
	}
	id, err := newIdentity(env.Rand)
	if err != nil {
		return nil, err
	}
	b := appendExtensions(cfg.appendInit(nil, id), cfg.offeredExtensions())
	return wire.CloseChunk(appendZeroChecksum(b, env), 0), nil
}

// identity returns the tag and the TSN of the own INIT, or draws some where there is none.
func (i *Inits) identity(rand io.Reader) (identity, error) {
	if i == nil {
		return newIdentity(rand)
	}
	own, err := readInit(i.Own)
	if err != nil {
		return identity{}, err
	}
	return identity{tag: own.Tag(), tsn: own.TSN()}, nil
}

// readInit returns a chunk as an INIT.
func readInit(b []byte) (wire.Init, error) {
	cs := wire.Packet(append(make([]byte, wire.CommonHeaderLen), b...)).Chunks()
	c, ok := cs.Next()
	if !ok || c.Type() != wire.ChunkInit {
		return nil, ErrInits
	}
	init, err := wire.AsInit(c)
	if err != nil || init.Tag() == 0 {
		return nil, ErrInits
	}
	return init, nil
}

// readOffer reads what one of the INITs says.
func (a *Assoc) readOffer(b []byte, to *initParams) bool {
	init, err := readInit(b)
	if err != nil {
		return false
	}
	_, ok := readInitParams(init, a.paths[0].Remote.Addr(), 0, a.cfg, a.env, to)
	return ok
}

// adoptInits takes over what both INITs say. The association is established then.
func (a *Assoc) adoptInits(now rawio.Time, of *Inits) error {
	if !a.env.isPointToPoint() {
		return ErrInitsLink
	}
	var mine, its initParams
	if !a.readOffer(of.Own, &mine) || !a.readOffer(of.Peer, &its) {
		return ErrInits
	}
	if err := a.cfg.checkAdaptation(its.adaptation, its.hasAdaptation); err != nil {
		return err
	}
	a.id.peerTag = its.tag
	a.agreed.outStreams, a.agreed.inStreams = min(mine.outStreams, its.inStreams), min(mine.inStreams, its.outStreams)
	a.agreed.peerAdaptation, a.agreed.hasAdaptation = its.adaptation, its.hasAdaptation
	a.agreed.extensions = mine.agreeOn(a.cfg) & its.agreeOn(a.cfg)
	a.state, a.stateData = Established, nil
	a.startData(its.rwnd, its.tsn)
	a.reportEstablished(now)
	return nil
}
