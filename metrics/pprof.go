package metrics

import (
	"fmt"
	"net/http"
	"runtime/pprof"
	"strconv"
	"time"
)

// serveProfile serves a profile of the process for go tool pprof. profile is the CPU profile, for
// so many seconds. Package net/http/pprof is not imported, as it registers itself with
// http.DefaultServeMux.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	if isCrossOrigin(r, false) || looksLikeBrowser(r) {
		http.Error(w, "a profile is for go tool pprof, or for a page of this site", http.StatusForbidden)
		return
	}
	name := r.PathValue("profile")
	p := pprof.Lookup(name)
	if p == nil && name != "profile" {
		http.Error(w, "no such profile", http.StatusNotFound)
		return
	}
	seconds, err := 10, error(nil)
	if s := r.FormValue("seconds"); s != "" {
		seconds, err = strconv.Atoi(s)
	}
	if err != nil || seconds < 1 || seconds > 300 {
		http.Error(w, "seconds: 1 to 300", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	if p != nil {
		_ = p.WriteTo(w, 0) // a client that has gone does not see the error
		return
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		w.Header().Del("Content-Disposition")
		http.Error(w, "the processor is being profiled already", http.StatusConflict)
		return
	}
	defer pprof.StopCPUProfile()
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
	case <-r.Context().Done():
	}
}
