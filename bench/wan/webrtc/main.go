// Command webrtc is an end of a run of bench/wan: two data channels of pion/webrtc, one for bulk and
// one for short messages beside it. It is built twice. With go.mod its SCTP is this project's, with
// original.mod it is pion/sctp.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"
	"golang.org/x/sys/unix"
)

// end is what the end has to do: the fields of bench/wan that matter here.
type end struct {
	Server        bool
	Local, Remote netip.Addr
	Time, Startup time.Duration // of the run, and of that in which nothing is measured
}

const (
	port        = 5001
	shortOctets = 100
	shortEvery  = 10 * time.Millisecond
	bulkMessage = 16 << 10
	highWater   = 4 << 20 // octets of bulk that are not acknowledged
)

// Data channels, whose numbers both ends know.
const (
	bulk uint16 = iota
	short
	channels
)

func main() {
	if err := run(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arg string) error {
	var e end
	if err := json.Unmarshal([]byte(arg), &e); err != nil {
		return err
	}
	if e.Server {
		return e.serve()
	}
	return e.receive()
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// now is the time of CLOCK_MONOTONIC, in ns, which both ends share.
func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// newPeer makes a peer with both channels.
func (e *end) newPeer() (p *webrtc.PeerConnection, of [channels]*webrtc.DataChannel, err error) {
	var s webrtc.SettingEngine
	s.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	s.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	sock, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(e.Local, port)))
	if err != nil {
		return nil, of, err
	}
	s.SetICEUDPMux(webrtc.NewICEUDPMux(nil, sock)) // the road's device tells of no address
	if p, err = webrtc.NewAPI(webrtc.WithSettingEngine(s)).NewPeerConnection(webrtc.Configuration{}); err != nil {
		return nil, of, err
	}
	negotiated := true
	for id := range channels {
		if of[id], err = p.CreateDataChannel("", &webrtc.DataChannelInit{Negotiated: &negotiated, ID: &id}); err != nil {
			return nil, of, err
		}
	}
	return p, of, nil
}

// describe makes and returns a description with all addresses.
func describe(p *webrtc.PeerConnection, make func() (webrtc.SessionDescription, error)) (
	*webrtc.SessionDescription, error) {
	d, err := make()
	if err != nil {
		return nil, err
	}
	ready := webrtc.GatheringCompletePromise(p)
	if err := p.SetLocalDescription(d); err != nil {
		return nil, err
	}
	<-ready
	return p.LocalDescription(), nil
}

// serve sends on both channels to whoever connects, until standard input ends.
func (e *end) serve() error {
	p, of, err := e.newPeer()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp4", netip.AddrPortFrom(e.Local, port).String())
	if err != nil {
		return err
	}
	of[bulk].OnOpen(func() { go sendBulk(of[bulk]) })
	of[short].OnOpen(func() { go sendShort(of[short]) })
	fmt.Println("ready")
	failed := make(chan error, 1)
	go func() {
		if err := answer(p, l); err != nil {
			failed <- err
		}
	}()
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	select {
	case err := <-failed:
		return err
	case <-over:
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"resent": -1, "cpu": used()})
}

// answer answers an offer that comes over TCP.
func answer(p *webrtc.PeerConnection, l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	var offer webrtc.SessionDescription
	if err := json.NewDecoder(c).Decode(&offer); err != nil {
		return err
	}
	if err := p.SetRemoteDescription(offer); err != nil {
		return err
	}
	d, err := describe(p, func() (webrtc.SessionDescription, error) { return p.CreateAnswer(nil) })
	if err != nil {
		return err
	}
	return json.NewEncoder(c).Encode(d)
}

func sendBulk(d *webrtc.DataChannel) {
	isLow := make(chan struct{}, 1)
	d.SetBufferedAmountLowThreshold(highWater * 3 / 4) // more than the road and its queue hold
	d.OnBufferedAmountLow(func() {
		select {
		case isLow <- struct{}{}:
		default:
		}
	})
	for message := make([]byte, bulkMessage); d.Send(message) == nil; {
		for d.BufferedAmount() > highWater {
			<-isLow
		}
	}
}

func sendShort(d *webrtc.DataChannel) {
	message, next := make([]byte, shortOctets), time.Now()
	for {
		binary.BigEndian.PutUint64(message, uint64(now()))
		if d.Send(message) != nil {
			return
		}
		next = next.Add(shortEvery)
		time.Sleep(time.Until(next))
	}
}

// report is what the client saw.
type report struct {
	OneWay    []time.Duration // of short messages
	Octets    int             // of bulk
	Time      time.Duration   // that was measured
	Longest   time.Duration   // without any bulk
	All       int             // octets of bulk, from the beginning
	Processor time.Duration   `json:"cpu"`
}

// receive reads what comes for the time of the run.
func (e *end) receive() error {
	p, of, err := e.newPeer()
	if err != nil {
		return err
	}
	r := report{Time: e.Time - e.Startup}
	var mu sync.Mutex // of r
	began, last := now(), int64(0)
	measured := func(at int64) bool { return time.Duration(at-began) >= e.Startup }
	of[bulk].OnMessage(func(m webrtc.DataChannelMessage) {
		at := now()
		mu.Lock()
		defer mu.Unlock()
		if r.All += len(m.Data); measured(at) {
			r.Octets += len(m.Data)
			if last > 0 {
				r.Longest = max(r.Longest, time.Duration(at-last))
			}
			last = at
		}
	})
	of[short].OnMessage(func(m webrtc.DataChannelMessage) {
		at := now()
		mu.Lock()
		defer mu.Unlock()
		if measured(at) {
			r.OneWay = append(r.OneWay, time.Duration(at-int64(binary.BigEndian.Uint64(m.Data))))
		}
	})
	if err := e.offer(p); err != nil {
		return err
	}
	time.Sleep(e.Time)
	mu.Lock()
	done := r
	done.OneWay, done.Processor = slices.Clone(r.OneWay), used()
	mu.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(&done); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// offer asks the server for an answer.
func (e *end) offer(p *webrtc.PeerConnection) error {
	d, err := describe(p, func() (webrtc.SessionDescription, error) { return p.CreateOffer(nil) })
	if err != nil {
		return err
	}
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(e.Local, 0))}
	c, err := dialer.Dial("tcp4", netip.AddrPortFrom(e.Remote, port).String())
	if err != nil {
		return err
	}
	defer c.Close()
	if err := json.NewEncoder(c).Encode(d); err != nil {
		return err
	}
	var answer webrtc.SessionDescription
	if err := json.NewDecoder(c).Decode(&answer); err != nil {
		return err
	}
	return p.SetRemoteDescription(answer)
}
