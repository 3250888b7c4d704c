// Agent runs commands in a guest for its host. `agent serve ADDRESS` is the guest's end, `agent run
// ADDRESS COMMAND ARGS...` the host's, which prints what the command prints and ends with its
// status. When the host's end goes, its command is killed.
package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
)

// unreachable is the exit status of `agent run` when there is no agent, or no such command.
const unreachable = 125

// reply is what the guest's end sends: output, and at last the status.
type reply struct {
	Output []byte
	Done   bool
	Status int
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		fmt.Fprintln(os.Stderr, "agent:", serveCommands(os.Args[2]))
		os.Exit(1)
	}
	if len(os.Args) < 4 || os.Args[1] != "run" {
		fmt.Fprintln(os.Stderr, "usage: agent serve ADDRESS | agent run ADDRESS COMMAND ARGS...")
		os.Exit(2)
	}
	status, err := runCommand(os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
	}
	os.Exit(status)
}

func runCommand(address string, command []string) (status int, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return unreachable, err
	}
	if err := gob.NewEncoder(conn).Encode(command); err != nil {
		return unreachable, err
	}
	for replies := gob.NewDecoder(conn); ; {
		var r reply
		if err := replies.Decode(&r); err != nil {
			return unreachable, err
		}
		if r.Done {
			return r.Status, nil
		}
		if _, err := os.Stdout.Write(r.Output); err != nil {
			return unreachable, err
		}
	}
}

func serveCommands(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go executeCommand(conn)
	}
}

// output sends what a command writes.
type output struct{ replies *gob.Encoder }

func (o output) Write(b []byte) (int, error) {
	if err := o.replies.Encode(reply{Output: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// executeCommand runs the command that conn brings, until it ends or conn does.
func executeCommand(conn net.Conn) {
	defer conn.Close()
	var command []string
	if err := gob.NewDecoder(conn).Decode(&command); err != nil || len(command) == 0 {
		return
	}
	replies := gob.NewEncoder(conn)
	cmd := exec.Command(command[0], command[1:]...)
	out := output{replies}
	cmd.Stdout, cmd.Stderr = out, out // one writer for both, so that exec serialises them
	if err := cmd.Start(); err != nil {
		replies.Encode(reply{Output: []byte(err.Error() + "\n")})
		replies.Encode(reply{Done: true, Status: unreachable})
		return
	}
	go func() { // the host sends nothing more: its end is all that can be read
		io.Copy(io.Discard, conn)
		cmd.Process.Kill()
	}()
	err := cmd.Wait()
	status := cmd.ProcessState.ExitCode()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		status = unreachable
	}
	replies.Encode(reply{Done: true, Status: status})
}
