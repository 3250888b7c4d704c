//go:build unix

// Package session is what somebody does who has just heard of the tools.
package session

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// toolFolder has a folder with the programs.
type toolFolder struct {
	*testing.T
	bin string
}

// program is one that runs.
type program struct {
	*toolFolder
	cmd   *exec.Cmd
	lines *bufio.Scanner
	said  strings.Builder
}

// startTool runs a tool, whose words are read by await and end.
func (s *toolFolder) startTool(args ...string) *program {
	s.Helper()
	p := &program{toolFolder: s, cmd: exec.Command(filepath.Join(s.bin, args[0]), args[1:]...)}
	r, w, err := os.Pipe()
	must.OK(s, err)
	p.cmd.Stdout, p.cmd.Stderr = w, w
	must.OK(s, p.cmd.Start())
	w.Close()
	p.lines = bufio.NewScanner(r)
	s.Cleanup(func() { p.cmd.Process.Kill(); r.Close() })
	return p
}

// awaitLine reads until a line matches, and returns it.
func (p *program) awaitLine(pattern string) string {
	p.Helper()
	for p.lines.Scan() {
		fmt.Fprintln(&p.said, p.lines.Text())
		if regexp.MustCompile(pattern).MatchString(p.lines.Text()) {
			return p.lines.Text()
		}
	}
	p.Fatalf("%v: it does not say %s but\n%s", p.cmd.Args, pattern, &p.said)
	return ""
}

// awaitEnd waits for the end, and compares all that was said with a pattern. Words of ours stand
// for figures.
func (p *program) awaitEnd(code int, pattern string) string {
	p.Helper()
	for p.lines.Scan() {
		fmt.Fprintln(&p.said, p.lines.Text())
	}
	p.cmd.Wait()
	check.Equal(p, "exit of "+p.cmd.String(), p.cmd.ProcessState.ExitCode(), code)
	if !matchPattern(pattern, p.said.String()) {
		p.Errorf("%v says\n%s\nwant\n%s", p.cmd.Args, &p.said, pattern)
	}
	return p.said.String()
}

func (p *program) sendInterrupt() *program {
	p.cmd.Process.Signal(os.Interrupt)
	return p
}

// figures are the ranges that figures are in, whatever else the machine does. A round trip of a
// host to itself takes more than a microsecond and less than a hundred seconds. A rate is more than
// a KiB a second and less than a TiB.
var figures = strings.NewReplacer(
	"MS", `(0\.(00[1-9]|0[1-9]\d|[1-9]\d\d)|[1-9]\d{0,4}(\.\d{1,3})?)`, "RTTS",
	`\d{1,5}\.\d{3}/\d{1,5}\.\d{3}/\d{1,5}\.\d{3}/\d{1,5}\.\d{3}`, "SECONDS", `[0-9]{1,2}\.\d\d`, "LOSS",
	`[1-9]\d?(\.\d\d?)?`,
	"RATE", `(0\.\d[1-9]|0\.[1-9]\d|[1-9]\d{0,5}\.\d\d)`, "BYTES", `[1-9]\d{3,7}`, "COUNT", `[1-9]\d{0,6}`, "FEW",
	`\d{1,4}`, "US", `[1-9]\d{0,7}(\.\d+)?`)

func matchPattern(pattern, text string) bool {
	return regexp.MustCompile(`^` + figures.Replace(pattern) + `$`).MatchString(text)
}

func getPage(t *testing.T, url string) string {
	resp := must.Get(http.Get(url))(t)
	defer resp.Body.Close()
	check.Equal(t, url, resp.StatusCode, http.StatusOK)
	return string(must.Get(io.ReadAll(resp.Body))(t))
}

// freePort is one of UDP.
func freePort(t *testing.T) string {
	c := must.Get(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer c.Close()
	return fmt.Sprint(c.LocalAddr().(*net.UDPAddr).Port)
}
