package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// TestSweepMeasuresAndKeepsEveryAxis measures the small end of each axis and keeps what it finds.
func TestSweepMeasuresAndKeepsEveryAxis(t *testing.T) {
	o := &options{sweep: t.TempDir()}
	o.link.Kind, o.duration = "mem", 10*time.Millisecond
	for i := range axes {
		a := axes[i]
		a.values = a.values[:2]
		t.Run(a.Name, func(t *testing.T) {
			var points []point
			for _, v := range a.values {
				p := must.Get(o.measure(t.Context(), &a, v))(t)
				if p.Value != v || p.Packets == 0 || p.Rate <= 0 || p.GBps <= 0 || p.Resent > p.Packets || p.Memory*float64(v) > rigMemory/2 {
					t.Errorf("at %d: %+v", v, p)
				}
				points = append(points, p)
			}
			must.OK(t, o.keep(&a, points))
			var kept []point
			b, err := os.ReadFile(filepath.Join(o.sweep, a.Name+".json"))
			if err == nil {
				err = json.Unmarshal(b, &kept)
			}
			if err != nil || len(kept) != 2 || kept[1] != points[1] {
				t.Errorf("kept %+v, %v", kept, err)
			}
			wellFormed(t, filepath.Join(o.sweep, a.Name+".svg"), a.Title)
		})
	}
}

func TestPointIsWhatHappenedInBetween(t *testing.T) {
	at := time.Unix(1000, 0)
	p := point{scale: scale{Size: 500_000}}
	p.between(reading{at, time.Second, 10, 1000, 3, 100}, reading{at.Add(2 * time.Second), 4 * time.Second, 4010, 7000, 7, 8100})
	want := point{scale: p.scale, GBps: 1, Rate: 2000, Packets: 6000, Cost: 500, PerGB: 1.5, Allocs: 2, Resent: 4}
	check.Equal(t, "what was parsed", p, want)
}

func wellFormed(t *testing.T, name, title string) {
	b := must.Get(os.ReadFile(name))(t)
	if !strings.Contains(string(b), title) {
		t.Errorf("the plot does not say %q", title)
	}
	d := xml.NewDecoder(strings.NewReader(string(b)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepOptions(t *testing.T) {
	o, err := parse([]string{"--sweep", "plots", "--link", "mem"}, io.Discard)
	if err != nil || o.sweep != "plots" || o.duration != defaultSweep {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"--sweep", "plots", "write"}, {"--sweep", "plots", "-q", "4"}, {"--sweep", "plots", "--lat"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v: accepted", args)
		}
	}
}
