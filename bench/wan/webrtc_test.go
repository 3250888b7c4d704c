package main

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

// A goal is missed by what is worse than it, and by nothing else.
func TestWebRTCGoals(t *testing.T) {
	run := func(mbits, p99 int, cpu time.Duration) webrtcRuns {
		return webrtcRuns{{OneWay: []time.Duration{time.Duration(p99) * time.Millisecond}, Octets: mbits * 1e6 / 8,
			Time: time.Second, All: 1000, CPU: cpu}}
	}
	original := run(10, 100, 1000)
	for _, row := range []struct {
		name   string
		goal   webrtcGoal
		own    webrtcRuns
		said   int
		missed bool
	}{
		{"all are met", webrtcGoal{0, "webrtc-cubic", 1.4}, run(14, 100, 900), 3, false},
		{"too little bulk", webrtcGoal{0, "webrtc-cubic", 1.5}, run(14, 100, 900), 3, true},
		{"short messages wait", webrtcGoal{0, "webrtc-cubic", 1.4}, run(14, 101, 900), 3, true},
		{"too much processor time", webrtcGoal{0, "webrtc-cubic", 1.4}, run(14, 100, 901), 3, true},
		{"with loss that does not count", webrtcGoal{0.01, "webrtc-bbr", 10}, run(100, 100, 2000), 2, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			said, missed := row.goal.judge(row.own, original)
			check.Equal(t, "lines", len(said), row.said)
			check.Equal(t, "missed", missed, row.missed)
		})
	}
	_, env, err := programOf(&end{Stack: "webrtc-bbr", Programs: "x"})
	check.That(t, err == nil && len(env) == 1 && env[0] == "RDDP_CC=bbr", "environment %v, %v", env, err)
}
