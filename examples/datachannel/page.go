package main

import (
	_ "embed"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/pion/webrtc/v4"
)

//go:embed page.html
var page []byte

const (
	maxOffer  = 64 << 10
	maxOctets = 1 << 30
)

// controlID is the number of the channel on which the browser says that it hears a channel of ours.
const controlID uint16 = 1000

// newPage serves the page, and answers its offers.
func newPage() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	})
	m.HandleFunc("POST /offer", func(w http.ResponseWriter, r *http.Request) {
		offer, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxOffer))
		var answer string
		if err == nil {
			answer, err = answerOffer(string(offer))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, answer)
	})
	return m
}

// answerOffer makes a peer for a browser. It lives until the browser is gone.
func answerOffer(offer string) (answer string, err error) {
	var s webrtc.SettingEngine
	s.SetIncludeLoopbackCandidate(true)
	p, err := webrtc.NewAPI(webrtc.WithSettingEngine(s)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	p.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		if s == webrtc.PeerConnectionStateFailed || s == webrtc.PeerConnectionStateDisconnected {
			p.Close()
		}
	})
	control, err := p.CreateDataChannel("", &webrtc.DataChannelInit{Negotiated: ptr(true), ID: ptr(controlID)})
	if err != nil {
		return "", err
	}
	p.OnDataChannel(func(d *webrtc.DataChannel) { receive(p, control, d) })
	if err = p.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		return "", err
	}
	a, err := p.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	ready := webrtc.GatheringCompletePromise(p)
	if err = p.SetLocalDescription(a); err != nil {
		return "", err
	}
	<-ready
	return p.LocalDescription().SDP, nil
}

// receive counts what comes on a channel, whose label says how many octets are sent. When the
// browser has closed it, as much goes back on a channel of the same kind, whose label says what has
// come.
func receive(p *webrtc.PeerConnection, control, d *webrtc.DataChannel) {
	octets, err := strconv.Atoi(d.Label())
	if err != nil || octets < 0 || octets > maxOctets {
		d.Close()
		return
	}
	got := newTally(octets)
	d.OnMessage(func(m webrtc.DataChannelMessage) { got.add(m.Data) })
	d.OnClose(func() {
		if err := sendBack(p, control, d, got, octets); err != nil {
			slog.Error("sending", "error", err)
		}
	})
}

// sendBack waits until the browser hears the channel: Chromium loses what came before on a channel
// that is closed at once.
func sendBack(p *webrtc.PeerConnection, control, like *webrtc.DataChannel, got *tally, octets int) error {
	label, err := json.Marshal(got)
	if err != nil {
		return err
	}
	d, err := p.CreateDataChannel(string(label), &webrtc.DataChannelInit{Ordered: ptr(like.Ordered()),
		MaxRetransmits: like.MaxRetransmits(), MaxPacketLifeTime: like.MaxPacketLifeTime()})
	if err != nil {
		return err
	}
	control.OnMessage(func(webrtc.DataChannelMessage) {
		go func() {
			if err := send(d, octets); err != nil {
				slog.Error("sending", "error", err)
			}
			d.Close() // behind all that was sent
		}()
	})
	return nil
}

func ptr[T any](v T) *T { return &v }
