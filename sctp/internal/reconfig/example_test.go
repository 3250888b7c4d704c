package reconfig_test

import (
	"fmt"
	"time"

	"github.com/rddp-go/rddp/sctp/internal/reconfig"
	"github.com/rddp-go/rddp/sctp/wire"
)

// exampleHost is an association of one stream on which nothing was sent.
type exampleHost struct{}

func (exampleHost) Streams() (out, in int)                       { return 1, 1 }
func (exampleHost) NextTSN() wire.TSN                            { return 1 }
func (exampleHost) CumTSN() wire.TSN                             { return 0 }
func (exampleHost) RTO() time.Duration                           { return time.Second }
func (exampleHost) IsAcked(wire.TSN) bool                        { return true }
func (exampleHost) HoldOut([]wire.StreamID) reconfig.Hold        { return 1 }
func (exampleHost) HoldMore(reconfig.Hold, []wire.StreamID) bool { return true }
func (exampleHost) HasSettled(reconfig.Hold, bool) bool          { return true }
func (exampleHost) ReleaseOut(reconfig.Hold)                     {}
func (exampleHost) Violate(error)                                {}
func (exampleHost) ResetOut([]wire.StreamID, wire.TSN)           {}
func (exampleHost) OutIsAtZero([]wire.StreamID) bool             { return true }
func (exampleHost) HoldIn([]wire.StreamID, wire.TSN)             {}
func (exampleHost) ReleaseIn()                                   {}
func (exampleHost) ResetIn([]wire.StreamID, wire.TSN)            {}
func (exampleHost) FreezeIn()                                    {}
func (exampleHost) ThawIn()                                      {}
func (exampleHost) AddOut(n int)                                 { fmt.Println(n, "more streams go out") }
func (exampleHost) AddIn(int)                                    {}
func (exampleHost) RestartTSNs(next, expected wire.TSN)          {}
func (exampleHost) Report(e reconfig.Event)                      { fmt.Println("error:", e.Err) }

// An association asks for two more streams, and the peer has no objections.
func Example() {
	m := reconfig.New(reconfig.Config{LocalTSN: 1, PeerTSN: 1, MaxTries: 10}, exampleHost{})
	_, _ = m.StartInTurn(0, reconfig.Request{AddOut: 2}, 0)
	fmt.Printf("%x\n", m.AppendRequest(nil))
	m.NoteRequestSent(0)

	answer := wire.CloseChunk(wire.AppendReconfigResponse(wire.AppendReconfig(nil), 1, wire.ReconfigPerformed), 0)
	_ = m.HandleChunk(0, wire.Reconfig(answer))
	// Output:
	// 820000100011000c0000000100020000
	// 2 more streams go out
	// error: <nil>
}
