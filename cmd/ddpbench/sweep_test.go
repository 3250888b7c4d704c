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
)

// TestSweep measures the small end of each axis and keeps what it finds.
func TestSweep(t *testing.T) {
	o := &options{sweep: t.TempDir()}
	o.link.Kind, o.duration = "mem", 10*time.Millisecond
	for i := range axes {
		a := axes[i]
		a.values = a.values[:2]
		t.Run(a.Name, func(t *testing.T) {
			var points []point
			for _, v := range a.values {
				p, err := o.measure(t.Context(), &a, v)
				if err != nil {
					t.Fatal(err)
				}
				if p.Value != v || p.Packets == 0 || p.Rate <= 0 || p.GBps <= 0 || p.Resent > p.Packets {
					t.Errorf("at %d: %+v", v, p)
				}
				points = append(points, p)
			}
			if err := o.keep(&a, points); err != nil {
				t.Fatal(err)
			}
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

func wellFormed(t *testing.T, name, title string) {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
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
