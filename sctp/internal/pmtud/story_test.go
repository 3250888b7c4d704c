package pmtud

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
)

var update = flag.Bool("update", false, "write down what the stories come to")

// teller plays a story. Sizes in it are those of IP packets.
type teller struct {
	lab
	sizes []int // of the probes, from the first on
}

// tell does what a line says, and returns how the search stands then.
func (l *teller) tell(line string) string {
	var word string
	var a, b int
	n, _ := fmt.Sscan(line, &word, &a, &b)
	said := ""
	switch word {
	case "link": // its MTU, and perhaps another base size than 1220
		if n < 3 {
			b = 1220
		}
		*l = teller{lab: lab{t: l.t, now: second, s: New(Limits{Min: min(556, b-20), Base: b - 20, Max: a - 20, Overhead: 20})}}
	case "start":
		l.s.Start(l.now)
	case "stop":
		l.s.Stop()
	case "send": // with a round trip and PROBE_TIMER, in milliseconds
		if n < 3 {
			a, b = 40, 1000
		}
		size := l.s.Due(l.now)
		if l.sizes = append(l.sizes, size+20); size == 0 {
			l.t.Errorf("nothing is to be sent after %d probes", len(l.sizes)-1)
		}
		l.s.Sent(l.now, uint64(len(l.sizes)), time.Duration(a)*time.Millisecond, time.Duration(b)*time.Millisecond)
	case "answer": // to which probe, perhaps with another size, 40 ms later
		if l.now = l.now.Add(rtt); n < 3 {
			b = l.sizes[a-1]
		}
		trip, ok := l.s.Arrived(l.now, uint64(a), b-20)
		if said = fmt.Sprintf(" after %v", trip); !ok {
			said = " not taken"
		}
	case "timer": // the next one expires
		l.now = max(l.now, l.s.Deadline())
		l.s.HandleTimeout(l.now)
	case "wait":
		d, err := time.ParseDuration(strings.Fields(line)[1])
		if l.now = l.now.Add(d); err != nil {
			l.t.Fatal(line, err)
		}
		l.s.HandleTimeout(l.now)
	case "report":
		l.s.TooBig(l.now, a-20)
	case "hole":
		l.s.BlackHole(l.now)
	case "max":
		l.s.SetMax(a - 20)
	case "refused": // a size, by a link that says how much it takes
		l.s.Refused(l.now, a-20, b-20)
	case "shift":
		l.s.Shift(l.now, a)
		said = fmt.Sprintf(" limits %+v", l.s.Limits())
	default:
		l.t.Fatalf("what is %q?", line)
	}
	said += fmt.Sprintf(" %v %d", l.s.State(), l.s.Size()+20)
	if size := l.s.Due(l.now); size > 0 {
		said += fmt.Sprintf(" probe %d", size+20)
	} else if l.s.Deadline() != rawio.Never {
		said += fmt.Sprintf(" timer %v", l.s.Deadline().Sub(l.now))
	}
	return said[1:]
}

// Each story of testdata/stories.txt comes to what it says, line by line: what is probed next, when, and what counts.
func TestStoriesOfASearch(t *testing.T) {
	const file = "testdata/stories.txt"
	text, err := os.ReadFile(file)
	must.OK(t, err)
	l := &teller{lab: lab{t: t}}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		line, want, _ := strings.Cut(line, "=>")
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		got := l.tell(line)
		if lines[i] = fmt.Sprintf("%-17s=> %s", line, got); got != strings.TrimSpace(want) && !*update {
			t.Errorf("%s:%d: %s: %s, want%s", file, i+1, line, got, want)
		}
	}
	if *update {
		must.OK(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644))
	}
}
