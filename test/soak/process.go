//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unsafe"
)

// process is a child as its parent sees it.
type process struct {
	order
	ns       string
	cmd      *exec.Cmd
	in       io.WriteCloser
	book     *ledger
	killedAt int64
	answers  chan answer
	gone     chan struct{}
}

// startProcess runs a process and waits until it is ready.
func startProcess(ns string, o order, dir string) (*process, error) {
	p := &process{order: o, ns: ns}
	p.Ledger = filepath.Join(dir, fmt.Sprintf("%s-%d", o.Name, o.Number))
	var err error
	if p.book, err = openLedger(p.Ledger); err != nil {
		return nil, err
	}
	text, err := json.Marshal(p.order)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command("ip", "netns", "exec", ns, self, "-child", string(text))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil { // "ip netns exec" becomes the program, under the same process id
		return nil, err
	}
	p.answers, p.gone = make(chan answer, 1), make(chan struct{})
	go func() {
		for d := json.NewDecoder(bufio.NewReader(out)); ; {
			var a answer
			if d.Decode(&a) != nil {
				close(p.gone)
				return
			}
			p.answers <- a
		}
	}()
	_, err = p.waitAnswer(20 * time.Second)
	return p, err
}

var errGone = errors.New("has died")

func (p *process) waitAnswer(limit time.Duration) (answer, error) {
	select {
	case a := <-p.answers:
		return a, nil
	case <-p.gone:
		return answer{}, fmt.Errorf("%s (%d) %w", p.Name, p.Number, errGone)
	case <-time.After(limit):
		return answer{}, fmt.Errorf("%s (%d) does not answer", p.Name, p.Number)
	}
}

func (p *process) sendCommand(command string) (answer, error) {
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		return answer{}, fmt.Errorf("%s (%d): %w", p.Name, p.Number, err)
	}
	return p.waitAnswer(2 * restLimit)
}

// killProcess is a kill -9. The ledger stays.
func (p *process) killProcess() {
	p.killedAt = time.Now().UnixNano()
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// quitProcess lets the process end by itself.
func (p *process) quitProcess() {
	p.in.Close()
	t := time.AfterFunc(5*time.Second, func() { p.cmd.Process.Kill() })
	p.cmd.Wait()
	t.Stop()
}

// copyLedger returns a copy of the ledger.
func (p *process) copyLedger() ledgerCopy {
	b := ledgerCopy{name: fmt.Sprintf("%s (%d)", p.Name, p.Number), server: p.Server, killedAt: p.killedAt}
	for i := range p.book.entries {
		if p.book.entries[i].id != 0 {
			b.entries = append(b.entries, p.book.entries[i])
		}
	}
	return b
}

// clearBook empties the ledger of a process at rest.
func (p *process) clearBook() {
	clear(unsafe.Slice((*byte)(unsafe.Pointer(&p.book.entries[0])), ledgerSize))
}

// removeLedger removes the ledger of a process that is no more.
func (p *process) removeLedger() {
	p.book.closeFile()
	os.Remove(p.Ledger)
}

// cpuTime returns the processor time that the process has used so far.
func (p *process) cpuTime() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var user, system int64
	_, after, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(after)
	if len(f) > 12 {
		fmt.Sscan(f[11], &user)
		fmt.Sscan(f[12], &system)
	}
	return time.Duration(user+system) * (time.Second / 100) // USER_HZ
}
