package assoc

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Negotiation of the DTLS chunk and of the method for its keys
// (draft-ietf-tsvwg-sctp-dtls-chunk section 5.1).

const (
	ownKeyOfferLen = 10 // octets of the parameter that this side sends
	maxKeyOffer    = 64 // octets of the peer's, which may list 55 methods
)

// keyOffer is a DTLS Key Management parameter as it is on the wire, without padding. The keys
// depend on each of its octets.
type keyOffer struct {
	octets [maxKeyOffer]byte
	length uint8 // 0: there is none
}

func (o *keyOffer) param() wire.Param { return wire.Param(o.octets[:o.length]) }
func (o *keyOffer) isThere() bool     { return o.length > 0 }

// parse returns what the offer says. It was looked at before.
func (o *keyOffer) parse() wire.KeyManagement {
	k, _ := o.param().KeyManagement()
	return k
}

// readKeyOffer takes a parameter of the peer.
func readKeyOffer(p wire.Param) (o keyOffer, err error) {
	if _, err = p.KeyManagement(); err == nil && len(p) > maxKeyOffer {
		err = wire.ErrParamLength
	}
	if err == nil {
		o.length = uint8(copy(o.octets[:], p))
	}
	return o, err
}

// newKeyOffer makes the own parameter, with a fresh tie breaker. A listener is the server. A side
// that sends an INIT takes either role, as its peer may do the same at that moment. So of two sides
// the one that has begun is the client.
func newKeyOffer(rand io.Reader, takesEither, restartable bool) (o keyOffer, err error) {
	var tie [4]byte
	if _, err = io.ReadFull(rand, tie[:]); err != nil {
		return o, err
	}
	b := wire.AppendKeyManagement(o.octets[:0], wire.KeyManagement{TieBreaker: binary.BigEndian.Uint32(tie[:]),
		Restart: restartable, Server: true, Client: takesEither, Methods: []byte{keymgmt.Method}})
	o.length = uint8(copy(o.octets[:], b[:ownKeyOfferLen]))
	return o, nil
}

// isClient returns this side's role, or why there is none.
func (own *keyOffer) isClient(peer *keyOffer) (is bool, why refusal) {
	if !peer.isThere() {
		return false, refusal{code: wire.CauseNoDTLSSupport}
	}
	a, b := own.parse(), peer.parse()
	if !bytes.Contains(b.Methods, []byte{keymgmt.Method}) {
		return false, refusal{code: wire.CauseNoCommonKeyMethod}
	}
	mayBeClient, mayBeServer := a.Client && b.Server, a.Server && b.Client
	switch {
	case !mayBeClient && !mayBeServer:
		return false, refusal{code: wire.CauseKeyRoles}
	case mayBeClient != mayBeServer:
		return mayBeClient, refusal{}
	case a.TieBreaker == b.TieBreaker:
		return false, refusal{code: wire.CauseTieBreaker}
	}
	return a.TieBreaker < b.TieBreaker, refusal{}
}

// fitTo returns the offer to answer that of an INIT with, or why there is none. In loose mode an INIT
// without an offer, or with one that is not compatible, is answered without one: that tells the peer
// that the association is in the clear.
func (own *keyOffer) fitTo(peer *keyOffer, loose bool) (o keyOffer, why refusal) {
	_, why = own.isClient(peer)
	switch {
	case why.code == 0:
		return *own, why
	case loose && why.code != wire.CauseTieBreaker:
		return keyOffer{}, refusal{}
	}
	return keyOffer{}, why
}

// appendKeyOffer appends the own parameter to an INIT or INIT ACK.
func appendKeyOffer(b []byte, o *keyOffer) []byte {
	if !o.isThere() {
		return b
	}
	p := o.param()
	return wire.AppendParam(b, p.Type(), p.Value())
}

// newListenerOffer returns what a listener answers an INIT with, nothing without protection.
func (c *Config) newListenerOffer(env *Env) (o keyOffer, err error) {
	if !c.Protected {
		return o, nil
	}
	return newKeyOffer(env.Rand, false, c.Restartable)
}

// offerToPeer returns what an INIT for this association is answered with. Until it is established
// that is the own parameter of before, so that both sides compare the same numbers.
func (a *Assoc) offerToPeer() (o keyOffer, err error) {
	if s := a.protection(); s != nil && setupStates.has(a.state) {
		return s.local, nil
	}
	return a.cfg.newListenerOffer(a.env)
}

// adoptKeyOffers takes both sides' parameters from a cookie.
func (a *Assoc) adoptKeyOffers(c *Cookie) {
	s := a.protection()
	if s == nil {
		s = newProtection(c.localOffer)
		a.ensureRareState().protection = s
	}
	s.local, s.peer = c.localOffer, c.peerOffer
	s.isClient, _ = s.local.isClient(&s.peer) // it was found compatible before the cookie was made
}
