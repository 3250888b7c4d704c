package assoc

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Each timer of the table, as the only one that runs, is the next timeout.
func TestNextTimeoutIsThatOfTheTable(t *testing.T) {
	const at = rawio.Time(7 * time.Second)
	arm := [numTimers]func(a *Assoc, p *path){
		timerEarlyResend: func(a *Assoc, p *path) { p.reach.resendDue, *a.nextResendAt(p) = true, at },
		timerT1: func(a *Assoc, p *path) {
			a.state, a.stateData = CookieEchoed, &cookieEchoed{setup: setup{t1ExpiresAt: at}}
		},
		timerT5: func(a *Assoc, p *path) {
			a.state = ShutdownSent
			a.stateData = &shutdownSent{shutdownState{t2ExpiresAt: rawio.Never, t5ExpiresAt: at}}
		},
		timerT2: func(a *Assoc, p *path) {
			a.state = ShutdownAckSent
			a.stateData = &shutdownAckSent{shutdownState{t2ExpiresAt: at, t5ExpiresAt: rawio.Never}}
		},
		timerT3: func(a *Assoc, p *path) {
			must.OK(t, a.Send(0, &Message{Body: [2][]byte{{1}}}))
			a.PollTransmit(0, NewTxBatch(4))
		},
		timerHeartbeat: func(a *Assoc, p *path) { p.heartbeat.nextAt = at },
		timerPMTUD: func(a *Assoc, p *path) {
			a.env.Features = rawio.DontFragment
			a.runMTUSearches(0)
			p.mtuSearch.ProbeSent(0, 1, time.Second, time.Second)
		},
		timerSack: func(a *Assoc, p *path) {
			for tsn := range wire.TSN(2) { // the first is acknowledged at once
				a.recv.NoteCumAckSent()
				c := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE, TSN: tsn,
					PayloadLen: 4})
				d := must.Get(wire.AsData(append(c, 1, 2, 3, 4)))(t)
				a.recv.Admit(d)
				a.recv.Placed(d)
				must.OK(t, a.recv.PacketDone(0))
			}
		},
		timerAutoClose: func(a *Assoc, p *path) { a.cfg.AutoClose = time.Duration(at) },
		timerReconfig: func(a *Assoc, p *path) {
			a.agreed.extensions = StreamReconfiguration
			a.recv = &a.ensureDataState().receiver
			a.recv.Init(a.receiverConfig(0))
			must.Get(a.StartInTurn(0, StreamRequest{AddOut: 1}))(t)
		},
		timerAsconf: func(a *Assoc, p *path) { a.ensureAsconf().own.t4ExpiresAt = at },
		timerKeys: func(a *Assoc, p *path) {
			s := newProtection(keyOffer{})
			s.manager, s.deadlineAt = keymgmt.New(0, keymgmt.Config{}, newKeyring()), at
			a.ensureRareState().protection = s
		},
	}
	ofPaths := map[timer]func(*Assoc, *path) rawio.Time{timerEarlyResend: (*Assoc).earlyResendExpiresAt,
		timerHeartbeat: (*Assoc).heartbeatExpiresAt, timerPMTUD: (*Assoc).pmtudExpiresAt}
	for i, row := range timers {
		cfg := must.Get((*Config)(nil).Complete())(t)
		env := &Env{Rand: bytes.NewReader(bytes.Repeat([]byte{1}, 1<<10)),
			MTU: func(_, _ netip.Addr) int { return 1480 }}
		a := must.Get(Connect(0, &cfg, env, Peer{LocalPort: 1, PeerPort: 2,
			Remotes: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:0")}}))(t)
		a.state, a.stateData, a.agreed.outStreams = Established, nil, 1
		a.startData(1<<20, 0)
		must.Equal(t, "timeout without a timer", a.NextTimeout(), rawio.Never)
		arm[i](a, a.paths[0])
		want := rawio.Never
		if row.expiresAt != nil {
			want = row.expiresAt(a)
		} else {
			want = ofPaths[timer(i)](a, a.paths[0])
		}
		check.That(t, want > 0 && want != rawio.Never && a.NextTimeout() == want, "%s at %v: the next timeout is at %v",
			row.name, want, a.NextTimeout())
		check.That(t, row.fire != nil || timer(i) == timerSack, "%s fires nothing", row.name)
	}
}
