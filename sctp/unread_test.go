package sctp

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
)

// More messages of one stream wait to be read than there are SSNs: Conn and Stream give them in
// order, and say their SSNs.
func TestMoreUnreadMessagesThanSSNs(t *testing.T) {
	race.Alone(t)
	const n = 70_000
	for _, stream := range []bool{false, true} {
		p := newPair(t)
		c, s := p.connect(t, &Config{SendBuffer: 16 << 20}, &Config{RecvBuffer: 32 << 20})
		for i := range n {
			_, err := c.WriteMsg(binary.BigEndian.AppendUint32(nil, uint32(i)), SendInfo{Stream: 3})
			must.OK(t, err)
		}
		until(t, "all acknowledged", func() bool { return c.Stats().Outstanding == 0 })
		for i := range n {
			b, ssn, err := make([]byte, 4), uint16(i), error(nil)
			if stream {
				_, err = io.ReadFull(s.Stream(3), b)
			} else {
				var info RecvInfo
				_, info, err = s.ReadMsg(b)
				ssn = info.SSN
			}
			must.OK(t, err)
			must.That(t, int(binary.BigEndian.Uint32(b)) == i && int(ssn) == i&0xffff,
				"where message %d is due: %x, SSN %d", i, b, ssn)
		}
		check.Equal(t, "room when all is read", s.Stats().RecvWindow, 32<<20)
		c.Abort("")
		s.Abort("")
	}
}
