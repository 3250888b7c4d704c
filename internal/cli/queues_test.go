package cli

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// Each place of a queue is counted, with its pieces and its inline octets; one place more than
// Send asks for, and reads in both directions.
func TestEachPlaceOfAQueueIsCounted(t *testing.T) {
	const pair, send, piece, recv, read, done = 16 << 10, 320, 64, 224, 512, 80
	for _, row := range []struct {
		name string
		q    Queues
		want int64
	}{
		{"nothing is asked for", Queues{}, pair + send},
		{"requests to send", Queues{Send: 6}, pair + 7*send},
		{"requests to receive", Queues{Recv: 5}, pair + send + 5*recv},
		{"reads", Queues{Reads: 3}, pair + send + 2*3*read},
		{"no reads at all", Queues{Reads: -1}, pair + send},
		{"completions", Queues{Completions: 9}, pair + send + 9*done},
		{"pieces", Queues{Send: 2, Recv: 4, SGEs: 3}, pair + 3*(send+3*piece) + 4*(recv+3*piece)},
		{"inline octets, of what is sent alone", Queues{Send: 2, Recv: 4, Inline: 10}, pair + 3*(send+10) + 4*recv},
		{"all", Queues{Send: 1, Recv: 2, Reads: 3, Completions: 4, SGEs: 5, Inline: 6},
			pair + 2*(send+5*piece+6) + 2*(recv+5*piece) + 2*3*read + 4*done},
		{"more than 32 bits count", Queues{Send: 1 << 24, SGEs: 1 << 10}, pair + (1<<24+1)*(send+piece<<10)},
	} {
		check.Equal(t, row.name, row.q.Memory(), row.want)
	}
}
