package assoc

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// expireMessages reports the messages whose life has ended before a part of them was sent (section
// 11.1.5).
func (a *Assoc) expireMessages(now rawio.Time) {
	if a.IsIdle() {
		return
	}
	if list := a.sender().Expire(now); list != nil {
		a.reportExpired(list)
	}
	a.reportAbandoned()
	a.reportLow()
	a.reportSenderDry()
	a.advanceShutdown(now)
}

func (a *Assoc) reportExpired(list []tx.FailedMessage) {
	for _, f := range list {
		a.events.push(Event{Kind: EventSendFailed, Stream: f.Stream, Token: f.Token, Unsent: true})
	}
}

// ReportSenderDry says whether anybody wants EventSenderDry, the one event that all messages lead
// to. By default it is reported.
func (a *Assoc) ReportSenderDry(on bool) { a.hints.ignoresDry = !on }

// reportSenderDry reports that nothing is left to send or to be acknowledged, once.
func (a *Assoc) reportSenderDry() {
	if a.send.hasUnackedSends && a.sender().Outstanding() == 0 && a.sender().Queued() == 0 {
		if a.send.hasUnackedSends = false; a.hints.ignoresDry {
			return
		}
		a.events.push(Event{Kind: EventSenderDry})
	}
}
