// Malformed plays a peer that breaks the rules of RFC 5044, 5041 and 5040 against another
// implementation of RDMA over TCP, one rule on each connection, and says how each was answered:
//
//	malformed --connect ADDRESS          by Requests, against a server that serves every connection
//	malformed --connect ADDRESS --fpdus  by FPDUs, behind a good start-up
//	malformed --listen ADDRESS           by Replies, against clients that connect, one for each row
//
// It prints a line for each row, and at the end "result ok rows=N", or how many were not answered
// as they are to be.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Ways in which the other end answers.
const (
	closed   = "closed"   // without a word
	rejected = "rejected" // a Reply that rejects
	accepted = "accepted"
	silent   = "silent" // nothing at all, in time
)

// terminated is a Terminate Message with this layer, error type and code, and then the end.
func terminated(l rdmap.Layer, etype rdmap.EType, code uint8) string {
	return fmt.Sprintf("terminated %d/%d/%#02x", l, etype, code)
}

// terminatedEither is terminated, or the same as siw has it: with layer and type in each other's place.
func terminatedEither(l rdmap.Layer, etype rdmap.EType, code uint8) []string {
	return []string{terminated(l, etype, code), terminated(rdmap.Layer(etype), rdmap.EType(l), code)}
}

// row is a rule that is broken.
type row struct {
	name  string
	start []byte   // in place of a start-up frame
	fpdus []byte   // once the other end has accepted
	fin   bool     // and then the end of the stream
	want  []string // how that may be answered
}

func main() {
	fs := cli.NewFlags("malformed")
	connect := fs.String("connect", "", "break the rules of a Request at the server at this `address`")
	listen := fs.String("listen", "", "break the rules of a Reply to clients that connect to this `address`")
	fpdus := fs.Bool("fpdus", false, "with --connect, break the rules of FPDUs")
	skip := fs.String("skip", "^$", "leave out rows whose name matches this `regexp`")
	var only int
	fs.Var(cli.Int(&only, 0, 0, 1000), "only", "only the row of this `number`, from 1 on; 0 is all")
	var patience, settle time.Duration
	fs.Var(cli.Duration(&settle, 0, 0, time.Minute), "settle", "how long to wait before FPDUs")
	fs.Var(cli.Duration(&patience, 20*time.Second, time.Second, time.Hour), "patience", "how long to wait")
	const usage = "Usage: malformed --connect ADDRESS | --listen ADDRESS"
	if err := cli.Parse(fs, os.Args[1:], os.Stdout, usage); err != nil {
		fmt.Println("result failed:", err)
		os.Exit(2)
	}
	left, err := regexp.Compile(*skip)
	if err != nil {
		fmt.Println("result failed:", err)
		os.Exit(2)
	}
	rows, next := requestRows(), func() (net.Conn, error) { return dialPatiently(*connect, patience) }
	if *fpdus {
		rows = fpduRows()
	}
	if *connect == "" {
		l, err := net.Listen("tcp", *listen)
		if err != nil {
			fmt.Println("result failed:", err)
			os.Exit(2)
		}
		fmt.Println("listening")
		rows, next = replyRows(), l.Accept
	}
	if only > len(rows) {
		fmt.Println("result none")
		return
	}
	if only > 0 {
		rows = rows[only-1 : only]
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return left.MatchString(r.name) })
	wrong := 0
	for _, r := range rows {
		c, err := next()
		if err != nil {
			fmt.Println("result failed:", err)
			os.Exit(1)
		}
		got := r.play(c, *connect == "", settle, patience)
		c.Close()
		verdict := "ok"
		if !slices.Contains(r.want, got) {
			verdict = fmt.Sprintf("WRONG, it is to be one of %q", r.want)
			wrong++
		}
		fmt.Printf("row %q: %s: %s\n", r.name, got, verdict)
	}
	if wrong > 0 {
		fmt.Printf("result failed: %d of %d rows\n", wrong, len(rows))
		os.Exit(1)
	}
	fmt.Printf("result ok rows=%d\n", len(rows))
}

// dialPatiently connects to a server that may have to be started again.
func dialPatiently(to string, patience time.Duration) (c net.Conn, err error) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(100 * time.Millisecond) {
		if c, err = net.DialTimeout("tcp", to, patience); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// play plays the row on a connection, and returns how it was answered.
func (r *row) play(c net.Conn, isResponder bool, settle, patience time.Duration) string {
	c.SetDeadline(time.Now().Add(patience))
	if isResponder { // the Request is first
		if _, err := readFrame(c); err != nil {
			return "no Request: " + err.Error()
		}
	}
	if _, err := c.Write(r.start); err != nil {
		return closed
	}
	if r.fin && len(r.fpdus) == 0 {
		c.(*net.TCPConn).CloseWrite()
	}
	if isResponder {
		return awaitEnd(c)
	}
	f, err := readFrame(c)
	switch {
	case err != nil:
		return endOf(err)
	case f.Rejected:
		return rejected
	case len(r.fpdus) == 0:
		return accepted
	}
	time.Sleep(settle)
	if _, err := c.Write(r.fpdus); err != nil {
		return closed
	}
	if r.fin {
		c.(*net.TCPConn).CloseWrite()
	}
	return awaitEnd(c)
}

// awaitEnd reads FPDUs until the end, and returns what they say.
func awaitEnd(c net.Conn) string {
	for {
		u, err := readFPDU(c)
		if err != nil {
			return endOf(err)
		}
		if len(u) < 18 || rdmap.Opcode(u[1]&15) != rdmap.OpTerminate {
			continue
		}
		t, err := rdmap.ParseTerminate(u[18:])
		if err != nil {
			return "a Terminate that is wrong: " + err.Error()
		}
		if _, err := io.Copy(io.Discard, c); err != nil && endOf(err) == silent {
			return "terminated, and not closed"
		}
		return terminated(t.Layer, t.EType, t.Code)
	}
}

func endOf(err error) string {
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return silent
	}
	return closed
}

// readFrame reads a start-up frame.
func readFrame(c net.Conn) (mpa.Frame, error) {
	b := make([]byte, mpa.FrameHeaderLen)
	if _, err := io.ReadFull(c, b); err != nil {
		return mpa.Frame{}, err
	}
	b = append(b, make([]byte, binary.BigEndian.Uint16(b[mpa.FrameHeaderLen-2:]))...)
	if _, err := io.ReadFull(c, b[mpa.FrameHeaderLen:]); err != nil {
		return mpa.Frame{}, err
	}
	f, _, err := mpa.ParseFrame(b, bytes.HasPrefix(b, []byte("MPA ID Rep")))
	return f, err
}

// readFPDU reads an FPDU without Markers, and returns its ULPDU.
func readFPDU(c net.Conn) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(head[:]))
	b := make([]byte, (n+2+3)&^3+4-2)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	return b[:n], nil
}
