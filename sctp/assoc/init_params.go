package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// maxUnknownParams bounds how many unknown parameters of one chunk are reported (section 12.4
// allows fewer than all).
const maxUnknownParams = 8

// initParams is what an INIT or INIT ACK says, checked. Its slices are views into the packet.
type initParams struct {
	tag, rwnd             uint32
	tsn                   wire.TSN
	outStreams, inStreams uint16 // OS and MIS of the peer
	adaptation            uint32
	hasAdaptation         bool
	ecn                   bool
	offered               Extensions // of this side
	extensions            announcedExtensions
	errorDetection        rawio.ErrorDetection // by which the peer takes checksum zero
	takesKeyOffer         bool                 // this side wants protection
	keyOffer              keyOffer             // the peer's, if so
	cookieExtensionMS     uint32               // by how many ms the peer wants its cookie to live longer
	cookie                []byte               // State Cookie of an INIT ACK
	source                netip.Addr           // of the packet
	usableFamilies        familySet            // what addresses of the peer are of use
	env                   *Env                 // knows this host's
	addrs                 [MaxPaths]netip.Addr
	numAddrs              int       // usable addresses listed, the packet's source not counted
	ignoredAddrs          int       // usable addresses listed beyond MaxPaths
	supportedFamilies     familySet // what the peer supports: none listed means all
	listedFamilies        familySet // what it lists addresses of
	unknownParams         [maxUnknownParams]wire.Param
	numUnknown            int
}

// refusal is why a chunk is not accepted: the error cause of the ABORT that answers it.
type refusal struct {
	code wire.CauseCode
	info []byte
}

// readInitParams checks an INIT or INIT ACK that came from source, and reads it. If ok is false the
// answer is an ABORT with the refusal. The Initiate Tag is not judged: 0 has its own answer in each
// state.
func readInitParams(c wire.Init, source netip.Addr, usable familySet, cfg *Config, env *Env, o *initParams) (
	why refusal, ok bool) {
	*o = initParams{source: source, usableFamilies: usable, offered: cfg.offeredExtensions(),
		takesKeyOffer: cfg.Protected, env: env, tag: c.Tag(), rwnd: c.ARwnd(), tsn: c.TSN(),
		outStreams: c.OutStreams(), inStreams: c.InStreams()}
	if o.rwnd < minWindow || o.outStreams == 0 || o.inStreams == 0 {
		return refusal{code: wire.CauseInvalidParam}, false // sections 3.3.2 and 3.3.3
	}
	ps := c.Params()
	for p, more := ps.Next(); more; p, more = ps.Next() {
		why, stop := o.readParam(c.Type(), p)
		if why.code != 0 {
			return why, false
		}
		if stop {
			ps = wire.Params{}
		}
	}
	if err := ps.Err(); err != nil {
		return violationCause(err), false
	}
	if c.Type() == wire.ChunkInitAck && o.cookie == nil {
		// Count 1, then the type: section 3.3.10.2.
		return refusal{code: wire.CauseMissingParam, info: []byte{0, 0, 0, 1, 0, byte(wire.ParamStateCookie)}}, false
	}
	return refusal{}, true
}

// readParam reads one parameter; stop says that an unknown one ends the reading (section 3.2.1).
func (o *initParams) readParam(chunk wire.ChunkType, p wire.Param) (why refusal, stop bool) {
	var err error
	switch t := p.Type(); t {
	case wire.ParamForwardTSN:
		if o.extensions.forwardTSN = true; !o.offered.Has(PartialReliability) {
			return refusal{}, o.noteUnknown(p)
		}
	case wire.ParamIPv4, wire.ParamIPv6:
		var a netip.Addr
		if a, err = p.Addr(); err == nil {
			o.addAddr(a)
		}
	case wire.ParamStateCookie:
		if o.cookie == nil {
			o.cookie = p.Value()
		}
	case wire.ParamAdaptationIndication:
		o.adaptation, err = p.AdaptationIndication()
		o.hasAdaptation = err == nil
	case wire.ParamHostName: // section 3.3.2.1.4
		why = refusal{code: wire.CauseUnresolvableAddress, info: p[:min(len(p), maxReport)]}
	case wire.ParamSupportedAddrTypes:
		v4, bad := p.SupportsAddrType(wire.ParamIPv4)
		v6, _ := p.SupportsAddrType(wire.ParamIPv6)
		if err = bad; v4 {
			o.supportedFamilies |= family4
		}
		if v6 {
			o.supportedFamilies |= family6
		}
	case wire.ParamECNCapable:
		o.ecn = true
	case wire.ParamCookiePreservative:
		o.cookieExtensionMS, err = p.CookieIncrement()
	case wire.ParamSupportedExtensions:
		err = o.extensions.read(p)
	case wire.ParamZeroChecksum:
		err = o.readZeroChecksum(p)
	case wire.ParamKeyManagement:
		if !o.takesKeyOffer {
			return refusal{}, o.noteUnknown(p)
		}
		if !o.keyOffer.isThere() {
			o.keyOffer, err = readKeyOffer(p)
		}
	case wire.ParamUnrecognizedParam:
		// Known, and of no consequence here. Padding is so too, as its type says.
	default:
		stop = o.noteUnknown(p)
	}
	if err != nil {
		why = violationCause(err)
	}
	return why, stop
}

// noteUnknown handles an unknown parameter as its type says (section 3.2.1).
func (o *initParams) noteUnknown(p wire.Param) (stop bool) {
	stop, report := p.Type().UnknownAction()
	if report && o.numUnknown < maxUnknownParams {
		o.unknownParams[o.numUnknown] = p
		o.numUnknown++
	}
	return stop
}

// addAddr records a listed address that can be a destination. Others are ignored (section 5.1.2).
func (o *initParams) addAddr(a netip.Addr) {
	if !Unicast(a) || o.env.isPointToPoint() { // there addresses mean nothing
		return
	}
	o.listedFamilies |= familyOf(a)
	a = withZone(a, o.source.Zone())
	if a == o.source || familyOf(a)&o.usableFamilies == 0 || !isMeaningfulAt(a, o.source) || o.hasAddr(a) {
		return
	}
	if o.env.isLocalAddr(a) && !o.env.isLocalAddr(o.source) {
		return // it means this host
	}
	if o.numAddrs >= MaxPaths-1 { // the source is one too
		o.ignoredAddrs++
	}
	if o.numAddrs == MaxPaths {
		return
	}
	o.addrs[o.numAddrs] = a
	o.numAddrs++
}

func (o *initParams) hasAddr(a netip.Addr) bool {
	for _, b := range o.addrs[:o.numAddrs] {
		if a == b {
			return true
		}
	}
	return false
}

// peerFamilies returns the families that the peer takes addresses of. These are the ones it names
// and those that it uses itself (section 5.1.2).
func (o *initParams) peerFamilies() familySet {
	if o.supportedFamilies == 0 {
		return family4 | family6
	}
	return o.supportedFamilies | o.listedFamilies | familyOf(o.source)
}

func violationCause(err error) refusal {
	return refusal{code: wire.CauseProtocolViolation, info: []byte(err.Error())}
}

// checkAdaptation says whether the peer's indication is what cfg requires.
func (c *Config) checkAdaptation(got uint32, has bool) error {
	if !c.RequireAdaptation || (has && got == *c.Adaptation) {
		return nil
	}
	return &AdaptationError{Want: *c.Adaptation, Got: got, Absent: !has}
}
