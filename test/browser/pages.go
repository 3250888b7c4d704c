// Package browser opens the pages of the tools in a browser: a module of its own, so that nobody
// else pays for what that takes.
package browser

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "keep screenshots in this directory")

// result is what axe finds.
type result struct {
	Violations []struct {
		ID    string `json:"id"`
		Help  string `json:"help"`
		Nodes []struct {
			HTML    string `json:"html"`
			Summary string `json:"failureSummary"`
		} `json:"nodes"`
	} `json:"violations"`
	Passes []struct {
		ID string `json:"id"`
	} `json:"passes"`
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// get is must for what returns something that nobody needs.
func get(t *testing.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		must(t, err)
	}
}

func look(t *testing.T, browser context.Context, axe, url, name string, width int64, scheme string) {
	ctx, cancel := chromedp.NewContext(browser)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	must(t, chromedp.Listen(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			if ev.Request.URL != url && !strings.HasPrefix(ev.Request.URL, "data:") {
				t.Errorf("asks for %s", ev.Request.URL)
			}
		case *runtime.EventConsoleAPICalled:
			t.Errorf("console: %s", ev.Type)
		case *runtime.EventExceptionThrown:
			t.Errorf("exception: %v", ev.ExceptionDetails)
		case *log.EventEntryAdded:
			t.Errorf("log: %s", ev.Entry.Text)
		}
	}))
	get(t)(chromedp.Call(ctx, network.Enable, network.EnableParams{}))
	get(t)(chromedp.Call(ctx, log.Enable, cdp.Empty{}))
	get(t)(chromedp.Call(ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
	must(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(url)))
	wide, err := chromedp.Run(ctx, chromedp.Evaluate[int64]("document.documentElement.scrollWidth"))
	must(t, err)
	shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	must(t, err)
	// the tables too
	must(t,
		chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](
			"document.querySelectorAll('details').forEach(d => { d.open = true })"),
			chromedp.Evaluate[chromedp.Void](axe)))
	found, err := chromedp.Run(ctx,
		chromedp.Evaluate[result]("axe.run({runOnly: ['wcag2a', 'wcag2aa'], resultTypes: ['violations']})",
			chromedp.EvalAwaitPromise))
	must(t, err)
	for _, v := range found.Violations {
		t.Errorf("%s: %s: %d times, first %+v", v.ID, v.Help, len(v.Nodes), v.Nodes[0])
	}
	if len(found.Passes) < 5 {
		t.Errorf("axe has looked at little: %v", found.Passes)
	}
	if wide > width {
		t.Errorf("it is %d wide", wide)
	}
	if *shots != "" {
		must(t, os.WriteFile(filepath.Join(*shots, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), shot, 0o644))
	}
}

// pages makes one of each kind, and returns their addresses.
func pages(t *testing.T) map[string]string {
	dir := t.TempDir()
	tool := filepath.Join(dir, "ddpbench")
	build := exec.Command("go", "build", "-o", tool, "./cmd/ddpbench")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list := make(map[string]string)
	for name, args := range map[string]string{"bandwidth": "write -n 2000", "latency": "send --lat -n 2000",
		"sizes": "write -a -n 10 -t 4"} {
		file := filepath.Join(dir, name+".html")
		if out, err := exec.Command(tool, append(strings.Fields(args), "--self", "--link", "mem", "--report", file,
			"--trace", filepath.Join(dir, "trace"))...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		list[name] = "file://" + file
	}
	if out, err := exec.Command(tool, "trace", filepath.Join(dir, "trace")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list["trace"] = "file://" + filepath.Join(dir, "trace.html")
	list["status"] = serve(t, tool)
	list["datachannel"] = serveChannels(t)
	return list
}

// serve has a run go on, and returns the address of its debug page, which is not to load itself
// anew meanwhile.
func serve(t *testing.T, tool string) string {
	cmd := exec.Command(tool, "write", "--self", "--link", "mem", "-D", "3600", "-q", "3", "--metrics", "127.0.0.1:0")
	pipe, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	line, err := bufio.NewReader(pipe).ReadString('\n')
	at, ok := strings.CutPrefix(strings.TrimSpace(line), "metrics: ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	return strings.TrimSuffix(at, "metrics") + "status/?hold"
}

// serveChannels has the example serve its page, and returns the address.
func serveChannels(t *testing.T) string {
	tool := filepath.Join(t.TempDir(), "datachannel")
	build := exec.Command("go", "build", "-o", tool, ".")
	build.Dir, build.Env = "../../examples/datachannel", append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(tool, "-http", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must(t, err)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(pipe).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}
