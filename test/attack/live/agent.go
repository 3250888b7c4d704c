//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/rddp-go/rddp/internal/test/netns"
)

// agent is a process of this program in another role: the victim or the honest client. It answers
// questions over a pipe and ends when the pipe does.
type agent struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	enc  *json.Encoder
	dec  *json.Decoder
}

// agentCall and answer are what goes over the pipe.
type agentCall struct {
	Ask string
	Arg json.RawMessage `json:",omitempty"`
}

type agentReply struct {
	Err    string          `json:",omitempty"`
	Result json.RawMessage `json:",omitempty"`
}

// startAgent runs a role in a namespace.
func startAgent(ns *netns.NS, name string, args ...string) (*agent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &agent{name: name, cmd: exec.Command(self, append([]string{"--role", name}, args...)...)}
	a.cmd.Stderr = os.Stderr
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.enc, a.dec = json.NewEncoder(a.in), json.NewDecoder(out)
	if err := ns.Do(a.cmd.Start); err != nil {
		return nil, err
	}
	return a, a.callAgent("hello", nil, nil)
}

// slow is how long an answer may take: a process that is worse than that is hung, and ended.
const slow = 30 * time.Second

// callAgent asks and waits for the answer.
func (a *agent) callAgent(what string, arg, result any) error {
	q := agentCall{Ask: what}
	var err error
	if arg != nil {
		if q.Arg, err = json.Marshal(arg); err != nil {
			return err
		}
	}
	timer := time.AfterFunc(slow, func() { a.cmd.Process.Kill() })
	defer timer.Stop()
	if err := a.enc.Encode(q); err != nil {
		return fmt.Errorf("the %s is gone: %w", a.name, err)
	}
	var ans agentReply
	if err := a.dec.Decode(&ans); err != nil {
		return fmt.Errorf("the %s is gone: %w", a.name, err)
	}
	if ans.Err != "" {
		return fmt.Errorf("%s: %s: %s", a.name, what, ans.Err)
	}
	if result != nil {
		return json.Unmarshal(ans.Result, result)
	}
	return nil
}

// stopAgent closes the pipe and waits for the process.
func (a *agent) stopAgent() {
	a.in.Close()
	timer := time.AfterFunc(5*time.Second, func() { a.cmd.Process.Kill() })
	defer timer.Stop()
	a.cmd.Wait()
}

// serveAgent is the other end of the pipe: it answers until the pipe closes.
func serveAgent(handlers map[string]func(arg json.RawMessage) (any, error)) error {
	dec, enc := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var q agentCall
		if err := dec.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var ans agentReply
		if h := handlers[q.Ask]; h == nil && q.Ask != "hello" {
			ans.Err = "no such question"
		} else if h != nil {
			result, err := h(q.Arg)
			if err != nil {
				ans.Err = err.Error()
			} else if ans.Result, err = json.Marshal(result); err != nil {
				return err
			}
		}
		if err := enc.Encode(ans); err != nil {
			return err
		}
	}
}
