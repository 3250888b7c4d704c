package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// ddpbenchCommand runs the project's own tool.
func ddpbenchCommand(b *bench, e *end) []string {
	argv := []string{b.ddpbench, e.Verb, "--json", "--link", e.Link}
	if e.Server || e.Link != linkTCP { // over TCP a client leaves by the system's routes
		argv = append(argv, "--local", e.Local.String())
	}
	if e.Host.IsValid() {
		argv = append(argv, "--tun-host", e.Host.String())
	}
	if e.Poll != 0 {
		argv = append(argv, "--poll="+e.Poll.String())
	}
	if e.Encrypted {
		argv = append(argv, "--insecure-self-signed")
	}
	if e.Server {
		return argv
	}
	argv = append(argv, e.Remote.String(), "-s", strconv.Itoa(e.Size), "-D",
		strconv.FormatFloat(e.Seconds, 'f', -1, 64))
	if e.PingPong {
		argv = append(argv, "--lat")
	}
	if e.Both {
		argv = append(argv, "-b")
	}
	if e.Memory > 0 {
		argv = append(argv, "--memory", strconv.Itoa(e.Memory))
	}
	if e.QPs > 1 {
		argv = append(argv, "-q", strconv.Itoa(e.QPs))
	}
	return argv
}

// ddpbenchLine is any line of the client's output.
type ddpbenchLine struct {
	Type       string
	Bytes      float64
	Iterations float64
	MBps       float64 `json:"bw_avg_MiBps"` // of 2^20 octets
	Typical    float64 `json:"t_typical_us"`
	P99        float64 `json:"p99_us"`
	Usage      struct {
		PacketsOut uint64   `json:"packets_out"`
		BatchesOut uint64   `json:"link_batches_out"`
		PacketsIn  uint64   `json:"packets_in"`
		BatchesIn  uint64   `json:"link_batches_in"`
		Allocs     *float64 `json:"allocs_per_message"`
	}
}

// parseDDPBench reads the client's output. Latency is that of a round trip here: ddpbench, as
// perftest does, halves it except for RDMA Read.
func parseDDPBench(s spec, _, client []byte) (f figures, err error) {
	trips := 2.0
	if s.Verb == "read" {
		trips = 1
	}
	found := false
	for line := range bytes.Lines(client) {
		var l ddpbenchLine
		if err := json.Unmarshal(line, &l); err != nil {
			return f, fmt.Errorf("ddpbench: %w", err)
		}
		switch l.Type {
		case "result":
			found = true
			f.GBps, f.Octets = l.MBps*(1<<20)/1e9, l.Bytes*l.Iterations
			f.P50, f.P99 = trips*l.Typical, trips*l.P99
			if s.PingPong {
				f.Octets *= trips
			}
		case "summary":
			f.Allocs[0] = l.Usage.Allocs
			switch {
			case s.Link == "tun": // a batch is many system calls
			case s.Verb == "read":
				f.Batch[0] = ratioOrZero(l.Usage.PacketsIn, l.Usage.BatchesIn)
			default:
				f.Batch[0] = ratioOrZero(l.Usage.PacketsOut, l.Usage.BatchesOut)
			}
		}
	}
	if !found {
		return f, errors.New("ddpbench: no result")
	}
	return f, nil
}
