package main

import (
	"fmt"
	"io"
	"time"

	"github.com/pion/webrtc/v4"
)

// runPeers sends so many octets from one peer to the other.
func runPeers(w io.Writer, octets int) error {
	var peers [2]*webrtc.PeerConnection
	for i := range peers {
		p, err := webrtc.NewPeerConnection(webrtc.Configuration{})
		if err != nil {
			return err
		}
		defer p.Close()
		peers[i] = p
	}
	arrived := make(chan time.Duration, 1)
	peers[1].OnDataChannel(func(d *webrtc.DataChannel) {
		got, began := 0, time.Now()
		d.OnMessage(func(m webrtc.DataChannelMessage) {
			if got += len(m.Data); got == octets {
				arrived <- time.Since(began)
			}
		})
	})
	d, err := peers[0].CreateDataChannel("numbers", nil)
	if err != nil {
		return err
	}
	d.OnOpen(func() { go send(d, octets) })
	if err := connect(peers[0], peers[1]); err != nil {
		return err
	}
	select {
	case took := <-arrived:
		fmt.Fprintf(w, "%d MB in %.1f s\n", octets>>20, took.Seconds())
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("not all of %d octets has arrived", octets)
	}
}

// connect has two peers of one process tell each other of their addresses.
func connect(a, b *webrtc.PeerConnection) error {
	offer, err := a.CreateOffer(nil)
	if err != nil {
		return err
	}
	ready := webrtc.GatheringCompletePromise(a)
	if err := a.SetLocalDescription(offer); err != nil {
		return err
	}
	<-ready
	if err := b.SetRemoteDescription(*a.LocalDescription()); err != nil {
		return err
	}
	answer, err := b.CreateAnswer(nil)
	if err != nil {
		return err
	}
	ready = webrtc.GatheringCompletePromise(b)
	if err := b.SetLocalDescription(answer); err != nil {
		return err
	}
	<-ready
	return a.SetRemoteDescription(*b.LocalDescription())
}
