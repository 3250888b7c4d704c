package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// iperfCommand runs iperf3. It takes whole seconds only; a spec without a size has its default.
func iperfCommand(_ *bench, e *end) []string {
	if e.Server {
		return []string{"iperf3", "-s", "-1", "--forceflush", "-B", e.Local.String()}
	}
	argv := []string{"iperf3", "-c", e.Remote.String(), "-J", "-t", strconv.Itoa(int(max(1, math.Round(e.Seconds))))}
	if e.Size > 0 {
		argv = append(argv, "-l", strconv.Itoa(e.Size))
	}
	return argv
}

// parseIperf reads the client's report, which has the server's numbers in it.
func parseIperf(_ spec, _, client []byte) (f figures, err error) {
	var r struct {
		Error string
		End   struct {
			SumReceived struct {
				Bytes   float64
				Seconds float64
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(client, &r); err != nil {
		return f, fmt.Errorf("iperf3: %w", err)
	}
	if r.Error != "" {
		return f, fmt.Errorf("iperf3: %s", r.Error)
	}
	got := r.End.SumReceived
	if got.Seconds > 0 {
		f.GBps, f.Octets = got.Bytes/got.Seconds/1e9, got.Bytes
	}
	return f, nil
}
