package sctptest

import (
	"strings"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Placer answers by what the payload begins with: place, drop or abort.
type Placer struct {
	Seen []string
	Meet func() // if set, called for each
}

// Place makes it an assoc.Placer.
func (p *Placer) Place(_ rawio.Time, d wire.Data, _ *rawio.Buf) assoc.Verdict {
	s := string(d.Payload())
	p.Seen = append(p.Seen, s)
	if p.Meet != nil {
		p.Meet()
	}
	switch {
	case strings.HasPrefix(s, "place"):
		return assoc.Consumed
	case strings.HasPrefix(s, "drop"):
		return assoc.DropUnacked
	case strings.HasPrefix(s, "abort"):
		return assoc.AbortAssoc
	}
	return assoc.Queue
}
