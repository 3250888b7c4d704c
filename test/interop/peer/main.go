// Peer is one end of an association over package sctp, the counterpart of ../usrsctp. It sends and
// checks messages of a known pattern, reports what happens on standard output, one line each, and
// ends with "result ok" or "result bad". Then it lives on until SIGTERM, to answer retransmissions
// of the peer.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/test/interop/internal/pattern"
)

// options is the command line; ../theirs/options.c has the same.
type options struct {
	server, udp        bool
	local, peer        []string
	port, localPort    uint16
	udpPort            int
	encapPort          uint16
	streams            uint16
	send, expect       int
	sizes, order       string
	seed, peerSeed     uint64
	run, peerRun       int
	partial            bool
	interleave         bool
	connected          bool
	zeroChecksum       bool
	abandon            int
	keepFirst          bool
	policy, scheduler  string
	adaptation         int64
	ending, reason     string
	rtoMin, rtoMax     time.Duration
	heartbeat          time.Duration
	pathRetrans        int
	buffer             int
	resets             string
	reorder            int
	cookieLife         time.Duration
	timeout            time.Duration
	outgoing, incoming pattern.Pattern
}

func parseOptions() *options {
	o := new(options)
	f := pflag.CommandLine
	f.BoolVar(&o.server, "server", false, "accept (default: connect)")
	f.BoolVar(&o.udp, "udp", false, "encapsulate in UDP (RFC 6951)")
	f.StringArrayVar(&o.local, "local", nil, "own `address`; again for more (default: all)")
	f.StringArrayVar(&o.peer, "peer", nil, "the server's `address`; again for more")
	f.Uint16Var(&o.port, "port", 5001, "SCTP port of the server")
	f.Uint16Var(&o.localPort, "local-port", 0, "SCTP port of the client (default: any)")
	f.IntVar(&o.udpPort, "udp-port", 9899, "own UDP port")
	f.Uint16Var(&o.encapPort, "encap-port", 9899, "the peer's UDP port")
	f.Uint16Var(&o.streams, "streams", 10, "streams each way")
	f.IntVar(&o.send, "send", 0, "messages to send")
	f.IntVar(&o.expect, "expect", 0, "messages to receive")
	f.StringVar(&o.sizes, "sizes", "mixed",
		"of the messages, octets: short (to 1000), small (1400), mixed (60000, mostly short), big (60000, evenly)")
	f.StringVar(&o.order, "order", "ordered", "ordered, unordered or both")
	f.Uint64Var(&o.seed, "seed", 0, "of the messages sent")
	f.Uint64Var(&o.peerSeed, "peer-seed", 0, "of the messages received")
	f.IntVar(&o.run, "run", 0, "which start of this program it is")
	f.IntVar(&o.peerRun, "peer-run", 0, "which start of the peer it is")
	f.BoolVar(&o.partial, "partial", false, "fewer messages than expected are no failure")
	f.BoolVar(&o.interleave, "interleave", false, "offer I-DATA (RFC 8260), and take turns among streams")
	f.BoolVar(&o.connected, "connected", false, "by a connected UDP socket, with the --peer of a server too")
	f.BoolVar(&o.zeroChecksum, "zero-checksum", false, "claim that it does what DTLS does (RFC 9653)")
	f.BoolVar(&o.keepFirst, "keep-first", false, "give the first message of no stream up")
	f.IntVar(&o.abandon, "abandon", -1,
		"give a message up (RFC 7496), by --policy; all is received with the last one")
	f.StringVar(&o.policy, "policy", "resent", "when it was sent again so often; timed: after so many ms; "+
		"priority: for want of room, at this priority")
	f.StringVar(&o.scheduler, "scheduler", "", "of streams: fcfs, rr, wfq or prio, where stream n has priority n % 3")
	f.Int64Var(&o.adaptation, "adaptation", -1, "announce this adaptation layer indication")
	f.StringVar(&o.ending, "end", "wait",
		"wait (for the peer to end it), shutdown or abort, once all is sent and received")
	f.StringVar(&o.reason, "reason", "", "of the abort")
	rtoMin := f.Int("rto-min", 0, "RTO.Min in `ms` (default: the RFC's)")
	rtoMax := f.Int("rto-max", 0, "RTO.Max and RTO.Initial in `ms`")
	heartbeat := f.Int("heartbeat", 0, "HB.interval in `ms`")
	cookieLife := f.Int("cookie-life", 0, "Valid.Cookie.Life in `ms`")
	f.IntVar(&o.pathRetrans, "path-retrans", 0, "Path.Max.Retrans")
	f.IntVar(&o.buffer, "buffer", 0, "`octets` of sending, and of receiving")
	f.StringVar(&o.resets, "resets", "",
		"ask for these among the messages: out, in, all-out, all-in, add-out, add-in, tsns; "+
			"first: close the first stream as data channels are (RFC 8831)")
	f.IntVar(&o.reorder, "reorder", 0, "percent of packets that later ones overtake")
	timeout := f.Int("timeout", 60, "give up after so many `seconds`")
	pflag.Parse()
	o.rtoMin, o.rtoMax = time.Duration(*rtoMin)*time.Millisecond, time.Duration(*rtoMax)*time.Millisecond
	o.heartbeat, o.cookieLife = time.Duration(*heartbeat)*time.Millisecond, time.Duration(*cookieLife)*time.Millisecond
	o.timeout = time.Duration(*timeout) * time.Second
	o.outgoing = pattern.Pattern{Seed: o.seed, Sizes: o.sizes, Order: o.order, Streams: o.streams}
	o.incoming = o.outgoing
	o.incoming.Seed = o.peerSeed
	return o
}

// printLine prints one line of the report, at once.
func printLine(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func main() {
	o := parseOptions()
	time.AfterFunc(o.timeout, func() {
		printLine("error: timeout")
		os.Exit(3)
	})
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	ok, err := o.serveOnce()
	if err != nil {
		printLine("error %v", err)
	}
	if ok {
		printLine("result ok")
		<-term
		return
	}
	printLine("result bad")
	<-term
	os.Exit(1)
}

func (o *options) serveOnce() (ok bool, err error) {
	link, err := o.openLink()
	if err != nil {
		return false, err
	}
	if o.reorder > 0 {
		raw, ok := link.(rawLink)
		if !ok {
			return false, errors.New("--reorder is for raw links")
		}
		link = &reorderingLink{rawLink: raw, percent: o.reorder}
	}
	t, err := sctp.NewTransport(link, &sctp.TransportConfig{CloseTimeout: o.timeout})
	if err != nil {
		return false, err
	}
	c, err := o.connectPeer(t)
	if err != nil {
		return false, err
	}
	return o.runTransfer(c), nil
}

func (o *options) newConfig() (*sctp.Config, error) {
	c := &sctp.Config{EncapPort: o.encapPort, LocalPort: o.localPort, Events: 1024, OutStreams: o.streams,
		SendBuffer: o.buffer, RecvBuffer: o.buffer,
		RTOMin: o.rtoMin, RTOMax: o.rtoMax, RTOInitial: o.rtoMax, HeartbeatInterval: o.heartbeat,
		CookieLife: o.cookieLife, PathMaxRetrans: o.pathRetrans, PartialReliability: o.abandon >= 0}
	if o.interleave {
		c.Interleaving, c.NewScheduler = true, sched.RoundRobin
	}
	switch o.scheduler {
	case "":
	case "fcfs":
		c.NewScheduler = nil
	case "rr":
		c.NewScheduler = sched.RoundRobin
	case "wfq":
		c.NewScheduler = sched.WeightedFairQueueing
	case "prio":
		c.NewScheduler = sched.Priority
	default:
		return nil, fmt.Errorf("no scheduler %q", o.scheduler)
	}
	if o.resets != "" {
		c.StreamReset = sctp.AllowStreamReset | sctp.AllowTSNReset | sctp.AllowAddStreams
	}
	if o.adaptation >= 0 {
		a := uint32(o.adaptation)
		c.Adaptation = &a
	}
	var err error
	if c.LocalAddrs, err = parseAddrs(o.local); err != nil {
		return nil, err
	}
	c.RemoteAddrs, err = parseAddrs(o.peer)
	return c, err
}

func parseAddrs(list []string) (out []netip.Addr, err error) {
	for _, s := range list {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (o *options) connectPeer(t *sctp.Transport) (*sctp.Conn, error) {
	ctx := context.Background() // the timeout ends the program
	cfg, err := o.newConfig()
	if err != nil {
		return nil, err
	}
	if !o.server {
		if len(cfg.RemoteAddrs) == 0 {
			return nil, errors.New("a client needs --peer")
		}
		return t.Dial(ctx, netip.AddrPortFrom(cfg.RemoteAddrs[0], o.port), cfg)
	}
	l, err := t.Listen(o.port, cfg)
	if err != nil {
		return nil, err
	}
	printLine("listening")
	return l.Accept(ctx)
}
