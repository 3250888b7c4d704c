// Command datachannel sends data over WebRTC data channels of pion/webrtc. What carries them is this
// stack: see the replace lines in go.mod. Without flags two peers in one process send each other
// 64 MB. With --http it serves a page, and answers the browser that shows it.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	at := flag.String("http", "", "serve a page at this `address`, such as 127.0.0.1:8080")
	flag.Parse()
	if err := run(*at); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(at string) error {
	if at == "" {
		return runPeers(os.Stdout, 64<<20)
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", l.Addr())
	return http.Serve(l, newPage())
}
