package assoc

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
)

// ErrNoMarks is why there is no DSCP or flow label on a link without rawio.Marking. It matches
// errors.ErrUnsupported.
var ErrNoMarks = fmt.Errorf("sctp: this link cannot mark the packets of an association with a DSCP or flow label: %w",
	errors.ErrUnsupported)

const (
	maxDSCP      = 1<<6 - 1
	maxFlowLabel = 1<<20 - 1
)

// packetMark returns what the packets of a new path are marked with.
func (c *Config) packetMark() pack.Mark { return pack.Mark{DSCP: c.DSCP, FlowLabel: c.FlowLabel} }

// CanMark fails with ErrNoMarks when the configuration asks for marks that the link does not make.
func (c *Config) CanMark(env *Env) error { return canMark(c.packetMark(), env) }

func canMark(m pack.Mark, env *Env) error {
	if m != (pack.Mark{}) && env.Features&rawio.Marking == 0 {
		return ErrNoMarks
	}
	return nil
}

// SetDSCP changes Config.DSCP for the path to an address of the peer. The path restarts its
// congestion control (section 7.2.5.1). SetDSCP fails with ErrNoPath, ErrNoMarks or a *ConfigError.
func (a *Assoc) SetDSCP(addr netip.Addr, dscp uint8) error {
	if dscp > maxDSCP {
		return &ConfigError{Field: "DSCP", Range: dscpRange}
	}
	return a.setMark(addr, func(m *pack.Mark) { m.DSCP = dscp })
}

// SetFlowLabel changes Config.FlowLabel for the path to an address of the peer. It fails as SetDSCP
// does.
func (a *Assoc) SetFlowLabel(addr netip.Addr, label uint32) error {
	if label > maxFlowLabel {
		return &ConfigError{Field: "FlowLabel", Range: flowLabelRange}
	}
	return a.setMark(addr, func(m *pack.Mark) { m.FlowLabel = label })
}

func (a *Assoc) setMark(addr netip.Addr, change func(*pack.Mark)) error {
	p := a.findPath(addr.Unmap())
	if p == nil {
		return ErrNoPath
	}
	m := p.mark
	change(&m)
	if err := canMark(m, a.env); err != nil {
		return err
	}
	p.setMark(m)
	return nil
}

// setMark marks the packets of a path from now on. With another DSCP they may wait in other queues.
func (p *path) setMark(m pack.Mark) {
	if m.DSCP != p.mark.DSCP {
		p.ResetCongestion()
	}
	p.mark = m
}
