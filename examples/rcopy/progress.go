package main

import (
	"fmt"
	"io"
	"time"
)

// progress is a line on a terminal that says how far a copy has come, five times a second.
type progress struct {
	w            io.Writer
	size, copied uint64 // octets
	began, shown time.Time
}

func (p *progress) add(n int) {
	p.copied += uint64(n)
	if now := time.Now(); now.Sub(p.shown) >= 200*time.Millisecond {
		p.shown = now
		p.show(now)
	}
}

func (p *progress) show(now time.Time) {
	share := 100.0
	if p.size > 0 {
		share *= float64(p.copied) / float64(p.size)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%.0f %%, %d of %d MiB, %.1f MB/s", share, p.copied>>20, p.size>>20,
		float64(p.copied)/1e6/max(now.Sub(p.began), time.Millisecond).Seconds())
}

// end leaves the line as it is at last.
func (p *progress) end() {
	p.show(time.Now())
	fmt.Fprintln(p.w)
}
