package metrics

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// A browser on this host carries requests of any page that its user looks at. Two rules keep those
// pages out:
//
//   - The Host of a request must be this host's: an IP address, localhost, or a name that the
//     program has given. Otherwise a page whose own name suddenly leads to 127.0.0.1 (DNS
//     rebinding) could read everything.
//   - A page of another origin gets nothing and starts nothing. Sec-Fetch-Site, Origin and Referer
//     show the origin. http.CrossOriginProtection lets GET pass, and all requests here are GET,
//     also the one that begins a profile.

// isLocalRequest reports whether a request came over a connection within this host.
func isLocalRequest(r *http.Request) bool {
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && from.Addr().Unmap().IsLoopback() {
		return true
	}
	a, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return a != nil && a.IP.IsLoopback()
}

// hasAllowedHost reports whether the Host of a request is one of this host's, or of hosts.
func hasAllowedHost(r *http.Request, hosts []string) bool {
	name := r.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	} else {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap().IsLoopback() || !isLocalRequest(r) || slices.Contains(hosts, name)
	}
	name = strings.TrimSuffix(name, ".")
	return strings.EqualFold(name, "localhost") || slices.ContainsFunc(hosts, func(h string) bool {
		return strings.EqualFold(h, name)
	})
}

// isCrossOrigin reports whether a page of another origin has a browser make the request. navigation
// lets the user follow a link there.
func isCrossOrigin(r *http.Request, navigation bool) bool {
	h := r.Header
	switch h.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		// Tools have none, and neither have browsers where a page of another host is asked for
		// without TLS.
		return isOtherOrigin(h.Get("Origin"), r.Host) || isOtherOrigin(h.Get("Referer"), r.Host) && !navigation
	}
	return !(navigation && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document")
}

// isOtherOrigin reports whether a header names an origin that is not host.
func isOtherOrigin(origin, host string) bool {
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != host
}

// looksLikeBrowser reports whether a request looks like a browser's that does not tell which page
// it is for.
func looksLikeBrowser(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "" && strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// refuseRequest answers a request that a page of another origin may be behind, and reports whether
// it was one. The names of hosts are good over any connection. With free, any other Host is good
// too, unless the connection is within this host.
func refuseRequest(w http.ResponseWriter, r *http.Request, hosts []string, free bool) bool {
	switch {
	case !hasAllowedHost(r, hosts) && (!free || isLocalRequest(r)):
		http.Error(w, "this page does not go by the name of "+printableHost(r.Host)+
			": ask for it as localhost, by an address, or by a name that the program has been given",
			http.StatusForbidden)
	case isCrossOrigin(r, true):
		http.Error(w, "this page is not for pages of other sites", http.StatusForbidden)
	default:
		return false
	}
	return true
}

// printableHost leaves what may be in a name.
func printableHost(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), 100)])
}
