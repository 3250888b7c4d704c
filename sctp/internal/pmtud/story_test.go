package pmtud

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// scriptPlayer plays a story. Sizes in it are those of IP packets.
type scriptPlayer struct {
	lab
	sizes []int // of the probes, from the first on
}

// playLine does what a line says, and returns how the search stands then.
func (l *scriptPlayer) playLine(line string) string {
	var word string
	var a, b int
	n, _ := fmt.Sscan(line, &word, &a, &b)
	said := ""
	switch word {
	case "link": // its MTU, and perhaps another base size than 1220
		if n < 3 {
			b = 1220
		}
		*l = scriptPlayer{lab: lab{t: l.t, now: second,
			s: New(Limits{Min: min(556, b-20), Base: b - 20, Max: a - 20, Overhead: 20})}}
	case "start":
		l.s.Start(l.now)
	case "stop":
		l.s.Stop()
	case "send": // with a round trip and PROBE_TIMER, in milliseconds
		if n < 3 {
			a, b = 40, 1000
		}
		size := l.s.ProbeDue(l.now)
		l.sizes = append(l.sizes, size+20)
		check.That(l.t, size != 0, "nothing is to be sent after %d probes", len(l.sizes)-1)
		l.s.ProbeSent(l.now, uint64(len(l.sizes)), time.Duration(a)*time.Millisecond, time.Duration(b)*time.Millisecond)
	case "answer": // to which probe, perhaps with another size, 40 ms later
		if l.now = l.now.Add(rtt); n < 3 {
			b = l.sizes[a-1]
		}
		trip, ok := l.s.ProbeAcked(l.now, uint64(a), b-20)
		if said = fmt.Sprintf(" after %v", trip); !ok {
			said = " not taken"
		}
	case "timer": // the next one expires
		l.now = max(l.now, l.s.Deadline())
		l.s.HandleTimeout(l.now)
	case "wait":
		d, err := time.ParseDuration(strings.Fields(line)[1])
		l.now = l.now.Add(d)
		must.That(l.t, err == nil, "%v, %v", line, err)
		l.s.HandleTimeout(l.now)
	case "report":
		l.s.HandleTooBig(l.now, a-20)
	case "hole":
		l.s.HandleBlackHole(l.now)
	case "max":
		l.s.SetMax(a - 20)
	case "refused": // a size, by a link that says how much it takes
		l.s.HandleLinkRefusal(l.now, a-20, b-20)
	case "shift":
		l.s.ShiftSizes(l.now, a)
		said = fmt.Sprintf(" limits %+v", l.s.Limits())
	default:
		l.t.Fatalf("what is %q?", line)
	}
	said += fmt.Sprintf(" %v %d", l.s.State(), l.s.Size()+20)
	if size := l.s.ProbeDue(l.now); size > 0 {
		said += fmt.Sprintf(" probe %d", size+20)
	} else if l.s.Deadline() != rawio.Never {
		said += fmt.Sprintf(" timer %v", l.s.Deadline().Sub(l.now))
	}
	return said[1:]
}

// Each story of testdata/stories.txt comes to what it says, line by line: what is probed next,
// when, and what counts.
func TestStoriesOfASearch(t *testing.T) {
	const file = "testdata/stories.txt"
	text := must.Get(os.ReadFile(file))(t)
	l := &scriptPlayer{lab: lab{t: t}}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		line, want, _ := strings.Cut(line, "=>")
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		got := l.playLine(line)
		lines[i] = fmt.Sprintf("%-17s=> %s", line, got)
		check.That(t, got == strings.TrimSpace(want) || *fuzzinput.Update, "%s:%d: %s: %s, want%s", file, i+1, line,
			got, want)
	}
	if *fuzzinput.Update {
		must.OK(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644))
	}
}

// So do stories that chance has written, of which only a digest is.
func TestSearchesByChanceGoAsTheyDid(t *testing.T) {
	fuzzinput.CheckRecording(t, "testdata/chance.txt", 1000, func(seed int, told *strings.Builder) {
		in := fuzzinput.Script(fuzzinput.Random(seed, 300))
		sizes := []int{68, 556, 576, 1220, 1280, 1284, 1400, 1420, 1452, 1480, 1492, 1500, 1544, 4352, 9000, 65535}
		words := strings.Split("start,stop,timer,timer,timer,timer,wait 40ms,wait 700s,report #,report "+
			"#,hole,max #,refused # #,shift -20,shift 8,shift 20", ",")
		l := &scriptPlayer{lab: lab{t: t}}
		for line := in.Line([]string{"link #", "link # 1400", "link 1500", "link 9000 600"}, sizes); len(in) >
			0; line = in.Line(words, sizes) {
			fmt.Fprintln(told, line, l.playLine(line), l.s.Limits(), l.s.Size())
			for probe := 0; l.s.ProbeDue(l.now) > 0 && probe < 3; probe++ {
				fmt.Fprintln(told, l.playLine(fmt.Sprint("send ", in.Next(), 10*in.Next())))
				if b := in.Next(); b%8 < 5 {
					fmt.Fprintln(told,
						l.playLine(fmt.Sprint("answer ", len(l.sizes)-min(b>>3%5*(b>>6/3), len(l.sizes)-1))))
				}
			}
		}
	})
}
