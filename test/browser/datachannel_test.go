package browser

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var channelOctets = flag.Int("octets", 100_000_000, "carry so much over each data channel, each way")

// tally is what has come of messages; carried, what became of a channel each way.
type (
	tally   struct{ Messages, Octets, Overtaken, Twice, Damaged int }
	carried struct {
		ID                 int
		Up, Down           tally
		UpMbits, DownMbits int
	}
)

// Chromium and pion/webrtc on this stack carry data over channels of each kind, which either side
// opens and closes, and the number of a channel is free again.
func TestDataChannels(t *testing.T) {
	url := serveChannels(t)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.Flag("allow-loopback-in-peer-connection", true))
	allocated, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	defer cancel()
	ctx, end := chromedp.NewContext(allocated)
	defer end()
	must(t, chromedp.Do(ctx, chromedp.Navigate(url)))
	first := -1
	for _, connection := range []string{"first", "second"} {
		must(t, chromedp.Do(ctx, evaluate[chromedp.Void]("(async () => { pc = await connect() })()")))
		for _, row := range []struct {
			name, options  string
			ordered, whole bool
		}{
			{"reliable", "{}", true, true},
			{"reliable, unordered", "{ordered: false}", false, true},
			{"no retransmission", "{maxRetransmits: 0}", true, false},
			{"no retransmission, unordered", "{ordered: false, maxRetransmits: 0}", false, false},
			{"a time", "{maxPacketLifeTime: 1000}", true, false},
			{"a time, unordered", "{ordered: false, maxPacketLifeTime: 1000}", false, false},
			{"reliable again", "{}", true, true},
		} {
			octets := *channelOctets
			if connection == "second" || row.name == "reliable again" {
				if !row.whole {
					continue // one expiry of T3-rtx may end all of so little
				}
				octets /= 10
			}
			t.Run(connection+" connection/"+row.name, func(t *testing.T) {
				ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
				defer stop()
				got, err := chromedp.Run(ctx, evaluate[carried](fmt.Sprintf("carry(pc, %s, %d)", row.options, octets)))
				must(t, err)
				t.Logf("channel %d: up %d MB at %d Mbit/s, down %d MB at %d Mbit/s", got.ID, got.Up.Octets/1e6,
					got.UpMbits, got.Down.Octets/1e6, got.DownMbits)
				got.Up.check(t, "up", octets, row.ordered, row.whole)
				got.Down.check(t, "down", octets, row.ordered, row.whole)
				if first < 0 {
					first = got.ID
				}
				if got.ID != first {
					t.Errorf("the number is %d, and %d is not free again", got.ID, first)
				}
			})
		}
		must(t, chromedp.Do(ctx, evaluate[chromedp.Void]("pc.close()")))
	}
}

func (g *tally) check(t *testing.T, way string, octets int, ordered, whole bool) {
	t.Helper()
	switch {
	case g.Twice > 0 || g.Damaged > 0 || ordered && g.Overtaken > 0:
		t.Errorf("%s: %+v", way, *g)
	case whole && g.Octets != octets:
		t.Errorf("%s: %d of %d octets", way, g.Octets, octets)
	case g.Octets < octets/2:
		t.Errorf("%s: only %d of %d octets", way, g.Octets, octets)
	}
}

// evaluate waits for what an expression promises.
func evaluate[T any](expression string) chromedp.Action[T] {
	return chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise)
}
