// Command run runs all fuzz targets of the module, two at a time with one worker each, and prints
// for each the executions, the inputs that were new, and how much of the code under test the corpus
// covers. Run it in the root of the module.
//
//	go run ./fuzz/run -time 20s
//	go run ./fuzz/run -time 3s -cover=false        finds what crashes, in half the time
//	go run ./fuzz/run -time 10m -logs DIR -docs    also brings the table in docs/dev/reliability.md up to date
//	go run ./fuzz/run -resume -logs DIR -docs      runs only targets that have not ended well yet
//	go run ./fuzz/run -collect -logs DIR -docs     only reads the logs that are there
//
// What a target covers says a line of its comment, "//fuzz:covers ./ddp", or else it is its own
// package.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
)

func main() {
	var o options
	flag.Var(cli.Duration(&o.time, 20*time.Second, time.Millisecond, cli.Year), "time", "how long to run each target")
	flag.Var(cli.Int(&o.jobs, 2, 1, 1024), "jobs", "targets at a time")
	flag.StringVar(&o.match, "match", ".", "only targets whose package and name match this regular expression")
	flag.StringVar(&o.logs, "logs", "", "keep what the targets print in this folder")
	flag.BoolVar(&o.resume, "resume", false, "run only targets whose log does not tell a good end")
	flag.BoolVar(&o.collect, "collect", false, "run nothing, read the logs")
	flag.BoolVar(&o.cover, "cover", true, "measure what the corpora cover")
	flag.BoolVar(&o.docs, "docs", false, "bring the table in "+docs+" up to date")
	flag.Parse()
	if err := runTargets(o); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

type options struct {
	time    time.Duration
	jobs    int
	match   string
	logs    string
	resume  bool
	collect bool
	cover   bool
	docs    bool
}

func runTargets(o options) error {
	if o.docs && !o.cover {
		return errors.New("-docs writes down what the corpora cover: it needs -cover")
	}
	match, err := regexp.Compile(o.match)
	if err != nil {
		return err
	}
	targets, err := findTargets(".", match)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return errors.New("no target matches " + o.match)
	}
	if o.logs == "" {
		if o.logs, err = os.MkdirTemp("", "fuzz"); err != nil {
			return err
		}
		defer os.RemoveAll(o.logs)
	} else if err = os.MkdirAll(o.logs, 0o755); err != nil {
		return err
	}
	if !o.collect {
		o.executeAll(o.dueTargets(targets))
	}
	var list []result
	failed := 0
	for _, t := range targets {
		r, err := readLog(t, t.logFile(o.logs))
		if err != nil {
			return err
		}
		if !r.passed {
			failed++
			fmt.Printf("-- %s FAILED\n", t)
			showLog(os.Stdout, t.logFile(o.logs))
		}
		list = append(list, r)
	}
	fmt.Print(resultTable(list))
	if failed > 0 {
		return fmt.Errorf("%d of %d targets failed; the input that did it is below the target's testdata/fuzz",
			failed, len(list))
	}
	if o.docs {
		return updateTable(list)
	}
	return nil
}

// dueTargets returns the targets that are to run.
func (o *options) dueTargets(targets []target) []target {
	if !o.resume {
		return targets
	}
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		r, err := readLog(t, t.logFile(o.logs))
		return err == nil && r.passed
	})
}

// executeAll runs the targets.
func (o *options) executeAll(targets []target) {
	queue := make(chan target)
	var wg sync.WaitGroup
	for range o.jobs {
		wg.Go(func() {
			for t := range queue {
				if err := t.fuzzFor(o.time, o.cover, t.logFile(o.logs)); err != nil {
					fmt.Printf("-- %s: %v\n", t, err)
					continue
				}
				fmt.Printf("-- %s\n", t)
			}
		})
	}
	for _, t := range targets {
		queue <- t
	}
	close(queue)
	wg.Wait()
}

func showLog(w io.Writer, log string) {
	if b, err := os.ReadFile(log); err == nil {
		w.Write(b)
	}
}

func (t target) logFile(dir string) string {
	return filepath.Join(dir, regexp.MustCompile(`\W+`).ReplaceAllString(t.pkg, "_")+"."+t.name+".log")
}

func byPackage(a, b target) int {
	return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
}
