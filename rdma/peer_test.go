package rdma

import (
	"testing"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// What an acknowledgement completes is measured at its time, also where it is of several segments.
func TestAcknowledgementsComeAtAKnownTime(t *testing.T) {
	p := &sctpConn{Mux: ddpadapt.NewMux(nil, ddpadapt.Config{})}
	p.Acked(5, 0, 0)
	check.Equal(t, "time of one", p.now, rawio.Time(5))
	p.AckedRun(7, 0, 0, 2)
	check.Equal(t, "time of two", p.now, rawio.Time(7))
}

// What a segment brings comes at the time of its packet, also in a row.
func TestSegmentsComeAtAKnownTime(t *testing.T) {
	p := &sctpConn{Mux: ddpadapt.NewMux(nil, ddpadapt.Config{})}
	row, _ := assoc.MakeRow([]rawio.Packet{{}})
	check.Equal(t, "packets placed", p.PlaceRow(9, row), 0)
	check.Equal(t, "time of a row", p.now, rawio.Time(9))
}
