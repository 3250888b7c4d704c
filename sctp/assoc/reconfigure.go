package assoc

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pmtud"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// Reconfigure changes the configuration of a live association. change gets what holds now. A
// *ConfigError about its result, or ErrNoMarks, leaves everything as it was. These fields take
// effect at once, on every path:
//
// RTOInitial, RTOMin and RTOMax, AssocMaxRetrans, PathMaxRetrans, MaxInitRetrans, MaxInitRTO.
// PotentiallyFailedMaxRetrans, HidePotentiallyFailed and PrimarySwitchoverMaxRetrans. AutoClose,
// SackDelay and LoneSackDelay, HeartbeatInterval and HBMaxBurst. RecvBuffer, SendBuffer,
// PartialDelivery, MaxBurst, NoDelay, DisableFragments, DSCP and FlowLabel. MaxSegment, MTU and
// DisablePMTUD, which leaves a path the MTU that it has. MaxOutStreams, and what StreamReset
// allows.
//
// A window that the peer knows of stays open: a smaller RecvBuffer takes effect as it is used up.
// Anything else that change does is ignored: the peer knows it already, or it cannot change.
func (a *Assoc) Reconfigure(now rawio.Time, change func(*Config)) error {
	want := *a.cfg
	change(&want)
	want, err := want.CompleteFor(a.env)
	if err != nil {
		return err
	}
	if err := want.CanMark(a.env); err != nil {
		return err
	}
	c, old := new(Config), a.cfg
	*c = *old
	a.cfg = c
	c.RTOInitial, c.RTOMin, c.RTOMax = want.RTOInitial, want.RTOMin, want.RTOMax
	c.AssocMaxRetrans, c.PathMaxRetrans, c.MaxInitRetrans = want.AssocMaxRetrans, want.PathMaxRetrans,
		want.MaxInitRetrans
	c.PotentiallyFailedMaxRetrans, c.HidePotentiallyFailed = want.PotentiallyFailedMaxRetrans,
		want.HidePotentiallyFailed
	c.PrimarySwitchoverMaxRetrans = want.PrimarySwitchoverMaxRetrans
	c.MaxInitRTO, c.AutoClose = want.MaxInitRTO, want.AutoClose
	c.StreamReset, c.MaxOutStreams = want.StreamReset, want.MaxOutStreams
	if h := a.streamResets(); h != nil {
		h.machine.SetAllowed(c.StreamReset.allowed(), c.maxOutStreams(), int(c.InStreams))
	}
	c.SackDelay, c.LoneSackDelay = want.SackDelay, want.LoneSackDelay
	c.HeartbeatInterval, c.HBMaxBurst = want.HeartbeatInterval, want.HBMaxBurst
	c.MaxBurst, c.NoDelay, c.DisableFragments, c.MaxSegment = want.MaxBurst, want.NoDelay, want.DisableFragments,
		want.MaxSegment
	c.MTU, c.DisablePMTUD = want.MTU, want.DisablePMTUD

	c.SendBuffer, c.DSCP, c.FlowLabel = want.SendBuffer, want.DSCP, want.FlowLabel
	a.sender().Reconfigure(c.SendBuffer, max(c.MaxBurst, 0), c.NoDelay, c.DisableFragments, c.MaxSegment)
	if a.recv != nil {
		a.recv.SetSackDelay(c.SackDelay, c.LoneSackDelay)
		c.RecvBuffer, c.PartialDelivery = want.RecvBuffer, want.PartialDelivery
		a.recv.SetBuffers(c.initialWindow(), c.maxWindow(), c.PartialDelivery)
	}
	for _, p := range a.paths {
		p.SetRTO(c.rtoConfig())
		if c.HeartbeatInterval != old.HeartbeatInterval {
			_ = a.SetHeartbeat(now, p.Remote.Addr(), c.HeartbeatInterval) // the path exists
		}
		if c.packetMark() != old.packetMark() {
			p.setMark(c.packetMark())
		}
		if c.MTU != old.MTU || c.DisablePMTUD != old.DisablePMTUD {
			lim := c.mtuLimits(a.env, p.Local, p.Remote, p.mtuSearch.encapGain)
			p.mtuSearch.Search = pmtud.New(lim) // it begins anew
			first := c.firstMTU(a.env, lim)
			if c.DisablePMTUD && c.MTU == old.MTU { // what was found so far stays
				first = min(p.MTU(), lim.Max)
			}
			a.setMTU(p, first)
		}
	}
	return nil
}

func (c *Config) rtoConfig() tx.RTOConfig {
	return tx.RTOConfig{Initial: c.RTOInitial, Min: c.RTOMin, Max: c.RTOMax}
}
