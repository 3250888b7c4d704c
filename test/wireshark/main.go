// Command wireshark has Wireshark's dissectors, which are not ours, judge our messages.
//
//	wireshark [-keep file] script
//
// It sends every message of RDMAP (RFC 5040, RFC 7306) and of DDP stream sessions (RFC 5043, RFC
// 6581) over UDP on this host, and records the packets. tshark decodes them with
// tools/wireshark/rddp.lua. What tshark sees is compared, field by field, with what was sent.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	keep := flag.String("keep", "", "write the capture to this `file` and leave it there")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: wireshark [-keep file] script")
		os.Exit(2)
	}
	c, err := recordAndCheck(*keep, flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "wireshark:", err)
		os.Exit(2)
	}
	fmt.Printf("%d passed, %d failed\n", c.passed, c.failed)
	if c.failed > 0 {
		os.Exit(1)
	}
}

// recordAndCheck plays the scenes and compares. capture is kept if it has a name.
func recordAndCheck(capture, script string) (*checker, error) {
	if capture == "" {
		dir, err := os.MkdirTemp("", "wireshark")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		capture = filepath.Join(dir, "scenes.pcapng")
	}
	scenes, err := recordScenes(capture)
	if err != nil {
		return nil, err
	}
	v, err := tsharkVersion()
	if err != nil {
		return nil, err
	}
	fmt.Println(v)
	chunks, faults, err := runTshark(capture, script)
	if err != nil {
		return nil, err
	}
	c := &checker{out: os.Stdout}
	c.printVerdict(fmt.Sprintf("%d DATA chunks, all well formed", len(chunks)), faults)
	all, err := splitHalves(chunks)
	if err != nil {
		return nil, err
	}
	c.checkScenes(scenes, all)
	if c.failed == 0 {
		c.checkNotices(scenes, all)
	}
	return c, nil
}

// recordScenes plays the scenes into a capture.
func recordScenes(capture string) ([]scene, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := openStage(ctx, capture)
	if err != nil {
		return nil, err
	}
	if err := s.playAll(); err != nil {
		return nil, err
	}
	return s.scenes, s.closeStage()
}
