// Pion is one end of an association over pion/sctp, the original, in UDP: the counterpart of ../peer,
// with its messages, options and report. It ends as they do: "result ok" or "result bad", and then it
// waits for SIGTERM.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/test/interop/internal/pattern"
)

// options is the command line: what ../peer has, as far as pion/sctp can do it.
type options struct {
	server             bool
	local, peer        string
	send, expect       int
	partial            bool
	interleave         bool
	scheduler          string
	zeroChecksum       bool
	abandon            int
	policy             string
	resets             string
	ending             string
	reorder            int
	rtoMax             int
	outgoing, incoming pattern.Pattern
}

func parseOptions() *options {
	o := new(options)
	f := pflag.CommandLine
	f.BoolVar(&o.server, "server", false, "accept (default: connect)")
	f.StringVar(&o.local, "local", "", "own `address`")
	f.StringVar(&o.peer, "peer", "", "the other end's `address`")
	f.Uint16Var(&o.outgoing.Streams, "streams", 10, "streams each way")
	f.IntVar(&o.send, "send", 0, "messages to send")
	f.IntVar(&o.expect, "expect", 0, "messages to receive")
	f.StringVar(&o.outgoing.Sizes, "sizes", "mixed", "of the messages")
	f.StringVar(&o.outgoing.Order, "order", "ordered", "ordered, unordered or both")
	f.Uint64Var(&o.outgoing.Seed, "seed", 0, "of the messages sent, and of reordering")
	peerSeed := f.Uint64("peer-seed", 0, "of the messages received")
	f.BoolVar(&o.partial, "partial", false, "fewer messages than expected are no failure")
	f.BoolVar(&o.interleave, "interleave", false, "offer I-DATA (RFC 8260)")
	f.StringVar(&o.scheduler, "scheduler", "", "of streams with I-DATA: rr or wfq")
	f.BoolVar(&o.zeroChecksum, "zero-checksum", false, "offer to leave checksums 0 (RFC 9653)")
	f.IntVar(&o.abandon, "abandon", -1,
		"give a message up (RFC 7496), by --policy; all is received with the last one")
	f.StringVar(&o.policy, "policy", "resent", "when it was sent again so often; timed: after so many ms")
	f.StringVar(&o.resets, "resets", "",
		"last: close the last stream in the middle of the messages, and go on with it anew")
	f.StringVar(&o.ending, "end", "wait", "wait (for the peer to end it) or shutdown, once all is sent and received")
	f.IntVar(&o.reorder, "reorder", 0, "percent of packets that later ones overtake")
	f.IntVar(&o.rtoMax, "rto-max", 0, "RTO.Max in `ms`")
	_ = f.Int("rto-min", 0, "not pion's")
	_ = f.Bool("keep-first", false, "what pion/sctp needs of its peer")
	timeout := f.Int("timeout", 60, "give up after so many `seconds`")
	pflag.Parse()
	o.incoming = o.outgoing
	o.incoming.Seed = *peerSeed
	time.AfterFunc(time.Duration(*timeout)*time.Second, func() {
		printLine("error: timeout")
		os.Exit(3)
	})
	return o
}

// printLine prints one line of the report, at once.
func printLine(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func main() {
	o := parseOptions()
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	if o.run() {
		printLine("result ok")
	} else {
		printLine("result bad")
	}
	<-term
}

// udpPort is that of both ends, and mtu is the longest SCTP packet in UDP of an IP MTU of 1500.
const (
	udpPort = 9899
	mtu     = 1500 - 20 - 8
)

func (o *options) run() bool {
	socket, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(o.local), Port: udpPort},
		&net.UDPAddr{IP: net.ParseIP(o.peer), Port: udpPort})
	if err != nil {
		printLine("error %v", err)
		return false
	}
	printLine("listening")
	conn := newCarrier(socket, o.reorder, o.outgoing.Seed)
	logs := logging.NewDefaultLoggerFactory()
	logs.Writer = os.Stdout
	opts := []sctp.AssociationOption{sctp.WithNetConn(conn), sctp.WithLoggerFactory(logs), sctp.WithBlockWrite(true),
		sctp.WithMTU(mtu), sctp.WithEnableInterleaving(o.interleave), sctp.WithEnableZeroChecksum(o.zeroChecksum)}
	switch o.scheduler {
	case "rr":
		opts = append(opts, sctp.WithInterleavingOptions(sctp.WithInterleavingRoundRobinScheduler()))
	case "wfq":
		opts = append(opts, sctp.WithInterleavingOptions(sctp.WithInterleavingWeightedFairQueueingScheduler()))
	}
	if o.rtoMax > 0 {
		opts = append(opts, sctp.WithRTOMax(float64(o.rtoMax)))
	}
	a, err := o.setUp(opts)
	if err != nil {
		printLine("error %v", err)
		return false
	}
	printLine("up")
	t := newTransfer(o, a, conn)
	return t.run()
}

func (o *options) setUp(opts []sctp.AssociationOption) (*sctp.Association, error) {
	if o.server {
		var list []sctp.ServerOption
		for _, opt := range opts {
			list = append(list, opt)
		}
		return sctp.ServerWithOptions(list...)
	}
	var list []sctp.ClientOption
	for _, opt := range opts {
		list = append(list, opt)
	}
	return sctp.ClientWithOptions(list...)
}

// reportEnd says how the association has ended, as a stream's reader hears it.
func reportEnd(err error) {
	if err != nil && strings.Contains(err.Error(), sctp.ErrChunk.Error()) {
		printLine("end abort by=peer reason=%q", err)
		return
	}
	printLine("end shutdown")
}
