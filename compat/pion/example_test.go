package sctp_test

import (
	"fmt"
	"log"
	"sync"

	"github.com/pion/sctp"
)

// Two ends over a connection that keeps packets apart, as DTLS does.
func Example() {
	a, b := newPipe()
	var both sync.WaitGroup
	both.Go(func() {
		client, err := sctp.ClientWithOptions(sctp.WithNetConn(a), sctp.WithEnableZeroChecksum(true))
		if err != nil {
			log.Fatal(err)
		}
		stream, err := client.OpenStream(1, sctp.PayloadTypeWebRTCString)
		if err != nil {
			log.Fatal(err)
		}
		stream.SetReliabilityParams(true, sctp.ReliabilityTypeRexmit, 3)
		if _, err := stream.Write([]byte("hello")); err != nil {
			log.Fatal(err)
		}
		if _, err := client.AcceptStream(); err == nil { // up to the end
			log.Fatal("nobody opens another stream")
		}
	})
	server, err := sctp.Server(sctp.Config{NetConn: b})
	if err != nil {
		log.Fatal(err)
	}
	stream, err := server.AcceptStream()
	if err != nil {
		log.Fatal(err)
	}
	message := make([]byte, 100)
	n, kind, err := stream.ReadSCTP(message)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("stream %d: %s, %s\n", stream.StreamIdentifier(), kind, message[:n])
	server.Close()
	both.Wait()
	// Output: stream 1: WebRTC String, hello
}
