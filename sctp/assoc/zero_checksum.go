package assoc

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// ZeroChecksum leaves the checksum of packets 0, as what carries them detects errors (RFC 9653).
const ZeroChecksum Extensions = 1 << 7

// appendZeroChecksum announces the method by which the link detects errors, if it has one.
func appendZeroChecksum(b []byte, env *Env) []byte {
	if env.ErrorDetection == rawio.NoErrorDetection {
		return b
	}
	return wire.AppendZeroChecksumAcceptable(b, wire.ErrorDetectionMethod(env.ErrorDetection))
}

// readZeroChecksum reads the method that the peer announces. Only the first parameter counts, and
// none where this side announces none: the parameter is unknown then.
func (o *initParams) readZeroChecksum(p wire.Param) error {
	if o.env.ErrorDetection == rawio.NoErrorDetection {
		return nil
	}
	m, err := p.ZeroChecksumMethod()
	if o.errorDetection == rawio.NoErrorDetection {
		o.errorDetection = rawio.ErrorDetection(m)
	}
	return err
}

// agreeOn returns which extensions both ends have announced.
func (o *initParams) agreeOn(cfg *Config) Extensions {
	e := o.extensions.agreeOn(cfg.offeredExtensions())
	if m := o.env.ErrorDetection; m != rawio.NoErrorDetection && m == o.errorDetection {
		e |= ZeroChecksum
	}
	return e
}

// sendsZeroChecksum reports whether packets go without a checksum. Those with an INIT or a COOKIE
// ECHO never do, nor do answers of an Outbox.
func (a *Assoc) sendsZeroChecksum() bool {
	return a.agreed.extensions.Has(ZeroChecksum) && !setupStates.has(a.state)
}
